// A bypass: a stage is left out for a while, its rows go on, and each is remembered.
import { expect } from 'vitest';
import { bookkeepingFaults } from '../../support/bookkeeping.ts';
import { compiled } from '../../support/definitions.ts';
import { waitingFolder } from '../../support/engine/children.ts';
import { defineSplit, insertParts, partRuns, spawnParts } from '../../support/engine/operations.ts';
import { journal, signIn } from '../../support/engine/operators.ts';
import { planRows } from '../../support/engine/plan-rows.ts';
import { historyOf, makeLinks, makeNotes } from '../../support/engine/status.ts';
import { chain, type Engine, type Row, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, failed, resume, runStage, Worker, waiting } from '../../support/worker.ts';

const bypass = (engine: Engine, stage: string, minutes: number | null = null, pipeline = 'flow') =>
  engine.value<number>(
    `select millrace.bypass($1, $2, 'the model is down', millrace.now() + make_interval(mins => $3))`,
    [pipeline, stage, minutes],
  );
const endBypass = (engine: Engine, stage: string, pipeline = 'flow') =>
  engine.sql.query('select millrace.end_bypass($1, $2)', [pipeline, stage]);
const sweep = (engine: Engine) => engine.value<Row>('select millrace.sweep()');
const remembered = async (engine: Engine): Promise<string[]> =>
  (await engine.rows<{ entity_id: string }>('select entity_id from millrace.bypassed order by at, run_id')).map(
    (row) => row.entity_id,
  );

test('a row that is queued at a bypassed stage is skipped with the reason and remembered, and its run goes on', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two', 'three']));
  const ids = await engine.queued('one', 2);
  await runStage(engine, 'one');
  expect(await bypass(engine, 'two')).toBe(2);
  expect(await engine.statuses(ids[0])).toEqual({ one: 'completed', two: 'skipped', three: 'queued' });
  expect(await engine.attempts(ids[0])).toEqual([
    'one 1 completed',
    'two 1 cancelled',
    'two 2 skipped',
    'three 1 queued',
  ]);
  expect(await engine.value(`select error from millrace.attempts where state = 'skipped' limit 1`)).toEqual({
    code: 'bypassed',
    message: 'bypassed: the model is down',
  });
  expect(await remembered(engine)).toEqual(ids);
  const [next] = await (await Worker.of(engine, 'three')).take();
  expect(next?.needs).toEqual({ two: null });
  expect(await journal(engine)).toMatchObject([
    { verb: 'bypass', stage: 'two', reason: 'the model is down', outcome: { until: null, skipped: 2 } },
  ]);
});

test('a stage that a definition turns into a question this very moment is not bypassed', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const deploying = await openTransaction(engine);
  await deploying.query('select millrace.define($1)', [
    compiled({
      pipeline: 'flow',
      entity: { table: 'public.items', key: 'id', projection: 'columns' },
      stages: [{ name: 'one' }, { name: 'two', needs: ['one'], kind: 'manual', decision: { schema: {} } }],
    }),
  ]);
  const person = await engine.database.connect();
  const asked = begin(person.query(`select millrace.bypass('flow', 'two', 'the model is down')`));
  await untilBlocked(engine, person);
  await deploying.query('commit');
  await expect(asked).rejects.toMatchObject({ code: 'MR004', message: expect.stringContaining('a manual stage') });
});

test('a bypassed stage hands out no work and is not woken, and the sweep skips what comes in', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline(chain(['one', 'two']));
  expect(await bypass(engine, 'two')).toBe(0);
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
  const worker = await Worker.of(engine, 'two');
  expect(await worker.claim()).toMatchObject({
    status: 'refused',
    reason: 'the stage is bypassed',
    batch: [],
  });
  expect(await worker.leave()).toMatchObject({ left: true });
  await sweep(engine);
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'skipped' });
  expect((await engine.run(id)).status).toBe('completed');
  expect((await engine.wakes()).map(({ body }) => body.stage)).not.toContain('two');
  expect(await engine.rows('select * from millrace.doctor() where not ok and what ~ $1', ['taken within'])).toEqual([]);
});

test('ended, it works again; what it left out stays remembered', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [first] = await engine.queued('one');
  await runStage(engine, 'one');
  await bypass(engine, 'two');
  await endBypass(engine, 'two');
  const [second] = await engine.queued('one');
  await runStage(engine, 'one');
  await sweep(engine);
  expect((await runStage(engine, 'two')).map((item) => item.entity_id)).toEqual([second]);
  expect(await remembered(engine)).toEqual([first]);
  expect(await engine.rows('select * from millrace.bypasses')).toEqual([]);
});

test('a sweep that looked before the bypass was ended leaves nothing out', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  expect(await engine.value(`select millrace.bypass_queued(s, 100) from millrace.stages s where name = 'two'`)).toBe(0);
  expect(await engine.statuses(id)).toEqual({ one: 'completed', two: 'queued' });
  expect(await engine.rows(`select message from millrace.log where code = 'row_passed_over'`)).toEqual([]);
});

test('a bypass ends by itself when its time is over, and wakes the stage', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline(chain(['one']));
  await bypass(engine, 'one', 30);
  await engine.advance('31 minutes');
  const [id] = await engine.queued('one');
  await engine.advance('10 seconds');
  await sweep(engine);
  expect(await engine.statuses(id)).toEqual({ one: 'queued' });
  expect(await engine.wakes()).toHaveLength(1);
  expect(await runStage(engine, 'one')).toHaveLength(1);
  expect(await engine.rows('select * from millrace.bypasses')).toEqual([]);
});

test('a second bypass takes the place of the first', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await bypass(engine, 'one', 10);
  await engine.value(`select millrace.bypass('flow', 'one', 'still down')`);
  await engine.advance('1 hour');
  const [id] = await engine.queued('one');
  await sweep(engine);
  expect(await engine.statuses(id)).toEqual({ one: 'skipped' });
  expect(await engine.rows('select reason, until from millrace.bypasses')).toEqual([
    { reason: 'still down', until: null },
  ]);
});

test('a retry in backoff is left out too; what is in work or waits for its job goes on', async ({ engine }) => {
  const external = { kind: 'external', completion: { callback: true } };
  await engine.pipeline([
    { name: 'one', ...external },
    { name: 'two', needs: ['one'] },
  ]);
  const ids = await engine.queued('one', 3);
  const worker = await Worker.of(engine, 'one');
  const [first, second, third] = await worker.take(3);
  if (!first || !second || !third) throw new Error('three were queued');
  await worker.report(failed(first), waiting(second, 'job-2'));
  expect(await bypass(engine, 'one')).toBe(1);
  expect(await engine.attempts(ids[0])).toEqual(['one 1 failed', 'one 2 cancelled', 'one 3 skipped', 'two 1 queued']);
  expect(await worker.report(completed(third))).toEqual(['accepted']);
  await resume(engine, [
    { submission: second.submission, service: 'scraper', job_id: 'job-2', outcome: 'completed', result: {} },
  ]);
  await sweep(engine);
  expect(await engine.attempts(ids[1])).toEqual(['one 1 completed', 'two 1 queued']);
  expect(await engine.attempts(ids[2])).toEqual(['one 1 completed', 'two 1 queued']);
  expect(await remembered(engine)).toEqual([ids[0]]);
});

test('a map that is left out gives its children up', async ({ engine }) => {
  await defineSplit(engine, [], { retry: { max_attempts: 3 } });
  const [id] = await engine.queued('split');
  const parts = await insertParts(engine, 2);
  await spawnParts(engine, parts);
  await engine.sql.query(`update millrace.fan_outs set total = null`);
  await engine.value(`select millrace.fail_stage(millrace.run_of('flow', $1), 'split', 'no more')`, [id]);
  await bypass(engine, 'split');
  await sweep(engine);
  await sweep(engine);
  expect(await partRuns(engine, parts[0])).toEqual(['cancelled']);
  expect(await engine.statuses(id)).toMatchObject({ split: 'skipped', join: 'queued' });
});

test('children that leave a stage out are tallied: nobody counts their siblings anew', async ({ engine }) => {
  await waitingFolder(engine, 3);
  await bypass(engine, 'scan', null, 'files');
  expect(await engine.rows('select from millrace.child_tallies where recount')).toEqual([]);
});

test('with skip_dependents the stages after it are left out as after skip()', async ({ engine }) => {
  await engine.pipeline([
    { name: 'one', when: '$.entity.label != null', otherwise: 'skip_dependents' },
    { name: 'two', needs: ['one'] },
  ]);
  const [id] = await engine.queued('one');
  await bypass(engine, 'one');
  expect(await engine.statuses(id)).toEqual({ one: 'skipped', two: 'skipped' });
  expect((await engine.run(id)).status).toBe('completed');
});

test('a row of one status column keeps the word of the last stage done, and can be started again from it', async ({
  engine,
}) => {
  await makeLinks(engine);
  const ids = await engine.rows<{ id: string }>(
    `insert into public.link (label, status) values ('a', 'new'), ('b', 'new') returning id::text`,
  );
  const [one, two] = ids.map((row) => row.id);
  const shown = async () =>
    (await engine.rows('select status, attempt_count, next_attempt_at, last_error from public.link order by id')).map(
      (row) => Object.values(row).join(' ').trim(),
    );
  await runStage(engine, 'classify', 'page_links');
  await runStage(engine, 'scrape', 'page_links');
  const worker = await Worker.of(engine, 'extract', 'page_links');
  await worker.report(failed(await worker.takeOne()));
  expect((await shown())[0]).toContain('error 1');
  await bypass(engine, 'extract', null, 'page_links');
  expect(await shown()).toEqual(['scraped 0', 'scraped 0']);
  await engine.expectSound();
  await endBypass(engine, 'extract', 'page_links');
  await engine.sql.query(`update public.link set status = 'classified' where id = $1`, [one]);
  expect((await engine.run(one)).status).toBe('running');
  expect(await engine.value(`select millrace.start('page_links', $1, 'extract')`, [two])).toBeTruthy();
  expect(await runStage(engine, 'extract', 'page_links')).toHaveLength(1);
});

test('a row of which every stage is left out keeps the word at which the last was ready', async ({ engine }) => {
  await makeLinks(engine);
  for (const stage of ['classify', 'scrape', 'extract']) await bypass(engine, stage, null, 'page_links');
  await engine.sql.query(`insert into public.link (label, status) values ('a', 'new')`);
  for (let round = 0; round < 3; round++) await sweep(engine);
  expect(await engine.rows('select status from public.link')).toEqual([{ status: 'scraped' }]);
  expect(await engine.rows('select status from millrace.runs')).toEqual([{ status: 'completed' }]);
});

test('a history goes on from stage to stage, and a row whose last stage is left out keeps a person’s answer', async ({
  engine,
}) => {
  await makeNotes(engine);
  const id = await engine.value<string>(
    `insert into public.note (label, status_code) values ('a', 110) returning id::text`,
  );
  await runStage(engine, 'fetch', 'notes');
  const stages = await engine.rows<{ name: string }>(
    `select s.name from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id and p.name = 'notes'
     where s.function_name is not null and s.name <> 'fetch' order by s.id`,
  );
  const before = (await historyOf(engine, id)).length;
  for (const { name } of stages) await bypass(engine, name, null, 'notes');
  for (let round = 0; round < 4; round++) await sweep(engine);
  const since = async () => (await historyOf(engine, id)).slice(before);
  const moves = ['120>210 system:auto', '210>220 system:auto', '220>300 system:auto'];
  expect(await since()).toEqual(moves);
  for (const value of [310, 330]) await engine.sql.query('update public.note set status_code = $1', [value]);
  await sweep(engine);
  expect((await engine.run(id)).status).toBe('completed');
  expect((await since()).slice(3).map((move) => move.split(' ')[0])).toEqual(['300>310', '310>330']);
  await engine.expectSound();
});

test('a bypass that cannot be is refused with the remedy, and nothing is changed', async ({ engine }) => {
  await engine.pipeline([
    { name: 'one' },
    { name: 'ask', kind: 'manual', needs: ['one'], decision: { deadline_seconds: 60 } },
  ]);
  const refused = (call: string) => engine.refusal(`select millrace.${call}`);
  expect(await refused(`bypass('flow', 'ome', 'why')`)).toMatchObject({ code: 'MR003' });
  expect(await refused(`bypass('flow', 'one', ' ')`)).toMatchObject({
    code: 'MR002',
    message: 'reason is missing, but bypass needs it',
  });
  expect(await refused(`bypass('flow', 'one', 'why', millrace.now())`)).toMatchObject({
    code: 'MR002',
    hint: 'Set until, or minutes.',
  });
  expect(await refused(`bypass('flow', 'ask', 'why')`)).toMatchObject({
    code: 'MR004',
    message: 'stage ask cannot be bypassed: no worker takes anything of a manual stage',
    hint: `To let one run go on without it: select millrace.skip(run, 'ask').`,
  });
  expect(await refused(`end_bypass('flow', 'one')`)).toMatchObject({
    code: 'MR004',
    message: 'stage one is not bypassed',
  });
  expect(await engine.rows('select * from millrace.bypasses')).toEqual([]);
  expect(await journal(engine)).toEqual([]);
});

test('an operator bypasses a stage, sees it in the overview, and ends it', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one', 2);
  const ada = await signIn(engine, 'ada', { role: 'operator' });
  expect(await ada.refused('bypass', { pipeline: 'flow', stage: 'one' })).toMatchObject({ code: 'MR002' });
  expect(await ada.refused('bypass', { pipeline: 'flow', reason: 'why' })).toMatchObject({ code: 'MR002' });
  expect(await ada.act('bypass', { pipeline: 'flow', stage: 'one', reason: 'no money', minutes: 60 })).toMatchObject({
    skipped: 2,
  });
  const overview = await ada.ask<{ stages: Row[] }>('overview');
  expect(overview.stages.find((stage) => stage.pipeline === 'flow')?.bypass).toMatchObject({
    reason: 'no money',
    by: 'ada',
  });
  expect(await ada.refused('take_up', { pipeline: 'flow', stage: 'one' })).toMatchObject({ code: 'MR004' });
  await ada.act('end_bypass', { pipeline: 'flow', stage: 'one' });
  expect(await ada.act('take_up', { pipeline: 'flow', stage: 'one', count: 1 })).toMatchObject({ started: 1 });
  expect((await journal(engine)).map((line) => `${line.verb} ${line.subject}`)).toEqual([
    'bypass ada',
    'end_bypass ada',
    'take_up ada',
  ]);
});

test('a row that a trigger refuses to show keeps no other from being left out', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const ids = await engine.queued('one', 5);
  await engine.sql.query(`
    create function public.refuse() returns trigger language plpgsql as
      $$ begin raise exception 'not this one'; end $$;
    create trigger refuse before update on public.items for each row
      when (new.one_status = 'skipped' and new.label = 'item 3') execute function public.refuse()`);
  expect(await bypass(engine, 'one')).toBe(4);
  expect(await remembered(engine)).toEqual(ids.filter((_, at) => at !== 2));
  expect(await engine.value(`select message from millrace.log where code = 'row_passed_over'`)).toContain(
    `Row ${ids[2]} of pipeline flow`,
  );
  await engine.sql.query('drop trigger refuse on public.items');
  await sweep(engine);
  expect(await remembered(engine)).toHaveLength(5);
});

test('more than a portion is left out by the sweep, past rows that somebody holds', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const ids = await engine.queued('one', 1200);
  const holder = await openTransaction(engine);
  await holder.query('select from public.items where id <= $1 for update', [ids[599]]);
  expect(await bypass(engine, 'one')).toBe(600);
  await engine.sweepAll();
  expect(await remembered(engine)).toHaveLength(600);
  await holder.query('rollback');
  await engine.sweepAll();
  expect(await remembered(engine)).toHaveLength(1200);
});

test('a bypass and the completion that queues the stage: the sweep leaves out what the call did not see', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  const worker = await Worker.of(engine, 'one');
  const item = await worker.takeOne();
  await worker.client.query('begin');
  expect(await worker.report(completed(item))).toEqual(['accepted']);
  expect(await bypass(engine, 'two')).toBe(0);
  await worker.client.query('commit');
  await sweep(engine);
  expect(await engine.attempts(id)).toEqual(['one 1 completed', 'two 1 cancelled', 'two 2 skipped']);
  expect(await remembered(engine)).toEqual([id]);
});

test('a bypass and a completion of the stage itself: the result counts, whoever commits first', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [first, second] = await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  const [early, late] = await worker.take(2);
  if (!early || !late) throw new Error('two were queued');
  await worker.client.query('begin');
  expect(await worker.report(completed(early))).toEqual(['accepted']);
  const other = await openTransaction(engine);
  await other.query(`select millrace.bypass('flow', 'one', 'now')`);
  await worker.client.query('commit');
  expect(await worker.report(completed(late))).toEqual(['accepted']);
  await other.query('commit');
  await sweep(engine);
  expect(await engine.statuses(first)).toEqual({ one: 'completed', two: 'queued' });
  expect(await engine.statuses(second)).toEqual({ one: 'completed', two: 'queued' });
  expect(await remembered(engine)).toEqual([]);
});

test('a bypass waits for a claim that is taking what is queued, and leaves that in work', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [first, second] = await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  await worker.client.query('begin');
  const item = await worker.takeOne();
  // Shown on its row, which the bypass passes over; the other is left out at once.
  expect(await bypass(engine, 'one')).toBe(1);
  await worker.client.query('commit');
  await sweep(engine);
  expect(await engine.statuses(first)).toEqual({ one: 'started' });
  expect(await remembered(engine)).toEqual([second]);
  expect(await worker.report(completed(item))).toEqual(['accepted']);
  expect(await engine.statuses(first)).toEqual({ one: 'completed' });
});

test('without a projection a bypass waits for the claim itself', async ({ engine }) => {
  await engine.pipeline(chain(['one']), { projection: 'none' });
  const [id] = await engine.insert(1);
  await engine.value(`select millrace.start('flow', $1)`, [id]);
  const worker = await Worker.of(engine, 'one');
  await worker.client.query('begin');
  const item = await worker.takeOne();
  const other = await engine.database.connect();
  const call = begin(other.query<{ bypass: number }>(`select millrace.bypass('flow', 'one', 'now')`));
  await untilBlocked(engine, other);
  await worker.client.query('commit');
  expect((await call).rows).toEqual([{ bypass: 0 }]);
  expect(await worker.report(completed(item))).toEqual(['accepted']);
  expect(await engine.attempts(id)).toEqual(['one 1 completed']);
});

test('a session that dies in a portion leaves nothing half-done, and the next sweep does it all', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  const ids = await engine.queued('one', 3);
  const dying = await openTransaction(engine);
  await dying.query(`select millrace.bypass('flow', 'one', 'now')`);
  const gone = new Promise((resolve) => dying.once('end', resolve));
  dying.on('error', () => {});
  const { processID } = dying as unknown as { processID: number };
  await engine.sql.query('select pg_terminate_backend($1)', [processID]);
  await gone;
  expect(await engine.statuses(ids[0])).toEqual({ one: 'queued', two: 'pending' });
  expect(await engine.rows('select * from millrace.bypasses')).toEqual([]);
  expect(await bypass(engine, 'one')).toBe(3);
  expect(await remembered(engine)).toEqual(ids);
});

test('a sweep reads no more rows for a bypass after more rows were left out, nor with a longer history', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one', 'two']));
  await bypass(engine, 'two');
  const rows = async () => {
    await engine.queued('one', 20);
    await runStage(engine, 'one');
    return planRows(
      engine.database.superUrl,
      `set enable_seqscan = off; set enable_mergejoin = off; set enable_hashjoin = off; set enable_memoize = off;
       select millrace.sweep_bypasses(id, 250) from millrace.pipelines where name = 'flow'`,
    );
  };
  const few = await rows();
  await engine.queued('one', 1000);
  await runStage(engine, 'one');
  await engine.sweepAll();
  await engine.sql.query('vacuum analyze millrace.runs, millrace.attempts');
  const many = await rows();
  expect(await remembered(engine)).toHaveLength(1040);
  expect(few).toBeGreaterThan(100);
  expect(many).toBeLessThan(few * 2);
});

test('the invariants tell of a stage whose switch is not what its bypass says', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  await bypass(engine, 'one');
  const faults = () => engine.rows<{ rule: string }>(`select rule from (${bookkeepingFaults}) f`);
  expect(await faults()).toEqual([]);
  await engine.sql.query('begin');
  await engine.sql.query('update millrace.stages set bypassed = false');
  expect(await faults()).toEqual([{ rule: 'a stage is switched as its bypass says' }]);
  await engine.sql.query('rollback');
});

test('a stage that becomes one of which no worker takes anything is bypassed no more', async ({ engine }) => {
  const definition = await engine.pipeline(chain(['one', 'two']));
  await engine.queued('one', 2);
  await runStage(engine, 'one');
  await engine.sql.query(`select millrace.bypass('flow', 'two', 'no money')`);
  await engine.define({ ...definition, stages: [{ name: 'one' }, { name: 'two', needs: ['one'], kind: 'manual' }] });
  expect(await engine.rows('select * from millrace.bypasses')).toEqual([]);
  expect(await engine.value(`select millrace.take_up('flow', 'two')`)).toBe(2);
  expect(await engine.value(`select count(*)::int from millrace.attempts where state = 'waiting'`)).toBe(2);
});

test('a row that goes on without a stage is still charged to its tenant', async ({ engine }) => {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, tenant text)');
  await engine.define({
    pipeline: 'flow',
    entity: { table: 'public.items', key: 'id', projection: 'none' },
    quota: { column: 'tenant', starts: { count: 2, per_seconds: 3600 } },
    stages: chain(['one', 'two']),
  });
  await bypass(engine, 'one');
  const rows = await engine.rows<{ id: string }>(
    `insert into public.items (tenant) select 'a' from generate_series(1, 4) returning id::text`,
  );
  for (const { id } of rows) await engine.sql.query(`select millrace.start('flow', $1)`, [id]);
  await sweep(engine);
  expect(await remembered(engine)).toHaveLength(4);
  expect(await (await Worker.of(engine, 'two')).take()).toHaveLength(2);
});
