// The facts that operators read beside runs: values of a status column, limits with their room, what is set up, and a run's agents and
// questions.
import { expect } from 'vitest';
import { nextRun } from '../../../operators/next-run.ts';
import { signIn } from '../../support/engine/operators.ts';
import { makeLinks, makeNotes } from '../../support/engine/status.ts';
import { chain, type Row, test } from '../../support/engine.ts';
import { completed, Worker } from '../../support/worker.ts';

/** A list that has each of these among others, such as those of the examples. */
const some = (...rows: Row[]) => expect.arrayContaining(rows.map((row) => expect.objectContaining(row)));

test('a status pipeline tells how many rows show each value, since when, and what may be written next', async ({
  engine,
}) => {
  await makeNotes(engine);
  const insert = (code: number | null) =>
    engine.value<string>(`insert into public.note (label, status_code) values ('n', $1) returning id`, [code]);
  const old = await insert(110);
  await engine.advance('1 hour');
  const young = await insert(110);
  await insert(null);
  const operator = await signIn(engine, 'ann', { role: 'viewer' });
  const { values, moves, ...rest } = await operator.ask<{ values: Row[]; moves: Row[] }>('status', {
    pipeline: 'notes',
  });
  expect(rest).toMatchObject({ column: 'status_code', looked: 3, whole: true });
  expect(values.filter(({ rows }) => rows !== 0)).toMatchObject([
    { value: '110', name: 'to_fetch', layer: 'discovery', rows: 2, oldest: expect.stringMatching(/T09:00:00/) },
    { value: null, rows: 1, oldest: null },
  ]);
  expect(values.map(({ value }) => value)).toContain('500');
  expect(moves.filter(({ from, by }) => from === '310' && by === 'person').map(({ to }) => to)).toEqual(
    expect.arrayContaining(['330', '340', '320', '300']),
  );
  const at = (value: string) => operator.ask<{ rows: Row[] }>('status', { pipeline: 'notes', value });
  expect(await at('110')).toMatchObject({
    rows: [
      { entity: String(old), run: { status: 'running' } },
      { entity: String(young), run: { status: 'running' } },
    ],
  });
  expect(await at('nothing')).toMatchObject({ rows: [] });
});

test('without a column for it, since when a row shows its value is told by the newest attempt', async ({ engine }) => {
  await makeLinks(engine);
  await engine.sql.query(`insert into public.link (label, status) values ('tea', 'new')`);
  const operator = await signIn(engine, 'ann', { role: 'viewer' });
  const { values } = await operator.ask<{ values: Row[] }>('status', { pipeline: 'page_links' });
  expect(values).toEqual(some({ value: 'new', rows: 1, oldest: expect.stringMatching(/T09:00:00/) }));
});

test('of many failed runs the newest are looked at, wherever their rows stand', async ({ engine }) => {
  await makeLinks(engine);
  await engine.sql.query('alter table public.link disable trigger user');
  await engine.sql.query(`insert into public.link (label, status)
    select 'l', case n when 1 then 'gone' else 'dead' end from generate_series(1, 8100) n`);
  await engine.sql.query(`
    insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at, failed_stage_id, error_code)
    select p.id, p.current_version_id, l.id::text, 'failed', millrace.now(),
      millrace.now() - interval '1 second' * row_number() over (order by l.id), s.id, 'x'
    from public.link l, millrace.pipelines p
    join millrace.stages s on s.pipeline_id = p.id and s.name = 'scrape'
    where p.name = 'page_links'`);
  const operator = await signIn(engine, 'ann', { role: 'viewer' });
  const { values } = await operator.ask<{ values: Row[] }>('status', { pipeline: 'page_links' });
  await engine.sql.query('truncate millrace.runs restart identity');
  expect(values).toEqual(some({ value: 'gone', rows: 1 }));
});

test('a pipeline without a status column says so, and one that is not seen is not there', async ({ engine }) => {
  await engine.pipeline([{ name: 'one' }]);
  const operator = await signIn(engine, 'ann', { pipelines: ['flow'] });
  expect(await operator.refusal('status', { pipeline: 'flow' })).toMatchObject({
    code: 'MR004',
    message: 'pipeline flow shows no status in one column',
  });
  for (const read of ['status', 'settings']) {
    expect(await operator.refusal(read, { pipeline: 'other' })).toMatchObject({ code: 'MR003' });
  }
});

test('limits tell what is in work, how many may begin, and what waits; others’ pipelines are left out', async ({
  engine,
}) => {
  await engine.sql.query(`select millrace.define_limit('host', '{"max_in_flight": 5}')`);
  const limits = { rate: { count: 4, per_seconds: 60 }, shared: ['host'] };
  const flow = await engine.pipeline([
    { name: 'fetch', limits },
    { name: 'free', needs: ['fetch'] },
  ]);
  await engine.define({ ...flow, quota: { column: 'label', starts: { count: 3, per_seconds: 3600 } } });
  await engine.pipeline([{ name: 'also', limits: { max_in_flight: 1 } }], {}, 'other');
  await engine.queued('fetch', 6);
  await (await Worker.of(engine, 'fetch')).take(1);
  const all = await signIn(engine, 'ann', { role: 'viewer' });
  const mine = await signIn(engine, 'ben', { pipelines: ['other'] });
  expect(await all.ask('limits')).toMatchObject({
    limits: some({ limit: 'host', in_flight: 1, today: { max_in_flight: 5 } }),
    stages: some(
      {
        stage: 'fetch',
        limits: { rate: { count: 4, per_seconds: 60 } },
        shared: ['host'],
        in_flight: 1,
        starts: 3,
        ready: 5,
      },
      { stage: 'also', limits: { max_in_flight: 1 }, in_flight: 0, starts: null },
    ),
    quotas: some({ kind: 'starts', used: 1, allowed: 3 }),
  });
  expect(await mine.ask('limits')).toMatchObject({ limits: [], stages: [{ stage: 'also' }], quotas: [] });
});

test('the settings show others’ rights to an operator of all pipelines alone, and the addresses of channels to nobody', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one']));
  await engine.pipeline(chain(['one', 'two']));
  await engine.sql.query(`insert into millrace.alert_channels (name, kind) values ('chat', 'slack')`);
  await engine.sql.query(`insert into millrace.settings (name, value)
    values ('channel_chat_address', 'https://hooks.example/secret')`);
  const viewer = await signIn(engine, 'vera', { role: 'viewer' });
  const admin = await signIn(engine, 'adam', {});
  const told = await viewer.ask<{ operators: Row[] }>('settings');
  expect(told).toMatchObject({
    operators: [{ subject: 'vera', role: 'viewer' }],
    channels: [{ channel: 'chat', kind: 'slack', last: null }],
    pipelines: expect.arrayContaining([expect.objectContaining({ pipeline: 'flow', version: 2, retention_days: 90 })]),
  });
  expect(JSON.stringify(told)).not.toContain('hooks.example');
  expect((await admin.ask<{ operators: Row[] }>('settings')).operators.map(({ subject }) => subject)).toEqual([
    'adam',
    'vera',
  ]);
  const { versions } = await viewer.ask<{ versions: Row[] }>('settings', { pipeline: 'flow' });
  expect(versions.map(({ version }) => version)).toEqual([2, 1]);
  expect(versions[0]?.graph).not.toEqual(versions[1]?.graph);

  expect(await viewer.refused('test_channel', { channel: 'chat' })).toMatchObject({ code: '42501' });
  await admin.act('test_channel', { channel: 'chat', reason: 'is anybody there' });
  expect(await viewer.ask('settings')).toMatchObject({ channels: [{ last: { state: 'waiting' } }] });
  expect(await admin.ask('journal', { verb: 'test_channel' })).toMatchObject({
    entries: [{ by: 'adam', reason: 'is anybody there', outcome: { channel: 'chat' } }],
  });
});

test('an operator of all pipelines sees the findings with their remedies, and others do not', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.sql.query(`select millrace.pause('flow')`);
  const amiss = await engine.rows(`select what, detail from millrace.doctor() where not ok`);
  expect(amiss).toContainEqual({ what: 'nothing is paused', detail: expect.stringContaining('unpause') });
  const ann = await signIn(engine, 'ann', { role: 'viewer' });
  const ben = await signIn(engine, 'ben', { role: 'viewer', pipelines: ['flow'] });
  expect(await ann.ask('settings')).toMatchObject({ findings: amiss });
  expect(await ben.ask('settings')).toMatchObject({ findings: null });
});

test('the next run of a job on Sundays is the same for 0 and 7, and none is named for a schedule in words', () => {
  const monday = Date.parse('2026-11-30T05:00:00Z');
  const sunday = Date.parse('2026-12-06T07:30:00Z');
  for (const weekdays of ['0', '7', '6-7']) {
    const days = weekdays === '6-7' ? 1 : 0;
    expect(nextRun(`30 7 * * ${weekdays}`, undefined, monday)).toBe(sunday - days * 86_400_000);
  }
  expect(nextRun('@daily', undefined, monday)).toBeUndefined();
});

test('the schedules include the jobs of the project itself, with their last failure and without their commands', async ({
  engine,
}) => {
  await engine.sql.query(`select cron.schedule('own-digest', '0 7 * * 1', $$select 'sb_secret_key'$$)`);
  await (await engine.database.connect('supabase_admin')).query(
    `insert into cron.job_run_details (jobid, command, start_time, end_time, status, return_message)
     select jobid, command, millrace.now() - $1::interval, millrace.now(), $2, $3 from cron.job
     where jobname = 'own-digest'`,
    ['1 minute', 'failed', 'ERROR: no such mailbox'],
  );
  const viewer = await signIn(engine, 'vera', { role: 'viewer' });
  const { jobs } = await viewer.ask<{ jobs: Row[] }>('settings');
  await engine.sql.query(`select cron.unschedule('own-digest')`);
  expect(jobs.map(({ job }) => job)).toContain('millrace-sweep');
  expect(jobs.find(({ job }) => job === 'own-digest')).toMatchObject({
    schedule: '0 7 * * 1',
    last: { status: 'failed', message: 'ERROR: no such mailbox' },
  });
  expect(JSON.stringify(jobs)).not.toContain('sb_secret_key');
});

test('a run shows what people were asked, and its decision to who sees payloads', async ({ engine }) => {
  await engine.pipeline([
    { name: 'read' },
    { name: 'check', kind: 'manual', needs: ['read'], decision: { schema: {}, deadline_seconds: 86_400 } },
  ]);
  await engine.queued('read');
  const worker = await Worker.of(engine, 'read');
  const [item] = await worker.take(1);
  await worker.report(completed(item as never));
  const run = item?.run;
  const reader = await signIn(engine, 'vera', { role: 'viewer' });
  const insider = await signIn(engine, 'otto', { payloads: true });
  const [{ attempt, ...asked } = {}] = (await reader.ask<{ decisions: Row[] }>('run', { run })).decisions;
  expect(asked).toMatchObject({ stage: 'check', asked_at: expect.any(String), schema: {} });
  await engine.sql.query('select public.millrace_decide($1, $2)', [attempt, { verdict: 'fine' }]);
  const decided = { stage: 'check', decided_at: expect.any(String) };
  const [told] = (await reader.ask<{ decisions: Row[] }>('run', { run })).decisions;
  expect(told).toMatchObject(decided);
  expect(told).not.toHaveProperty('decision');
  expect(await insider.ask('run', { run })).toMatchObject({
    table: { name: 'public.items', key: 'id', id: expect.any(Number) },
    decisions: [{ ...decided, decision: { value: { verdict: 'fine' } } }],
  });
});
