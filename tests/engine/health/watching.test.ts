import { expect } from 'vitest';
import { chain, type Engine, projectTest, type Row, findingsTest as test } from '../../support/engine.ts';
import { completed, failed, runStage, Worker, waiting } from '../../support/worker.ts';

const options = {
  kind: 'external',
  completion: { callback: true, deadline_seconds: 600 },
  retry: { max_attempts: 2, backoff: { kind: 'list', seconds: [30] } },
};

/** An item each: completed, waiting, started, failed for good, in backoff, ready. */
async function oneOfEach(engine: Engine): Promise<Worker> {
  await engine.pipeline([{ name: 'only', ...options }]);
  await engine.queued('only', 5);
  const worker = await Worker.of(engine, 'only');
  const [a, b, c, d, e] = await worker.take(5);
  if (!a || !b || !c || !d || !e) throw new Error('five items were queued');
  await engine.advance('10 seconds');
  await worker.report(completed(a), waiting(b, 'job-1'), failed(d, { permanent: true }), failed(e));
  await engine.queued('only');
  await engine.advance('5 seconds');
  return worker;
}

const named = (rows: Row[]) => rows.find((row) => row.pipeline === 'flow');

test('stage_health counts every state of a stage, its live workers, retries and the oldest open attempt', async ({
  engine,
}) => {
  await oneOfEach(engine);
  const health = named(
    await engine.rows('select *, extract(epoch from oldest_age)::int as age from millrace.stage_health'),
  );
  expect(health).toMatchObject({
    stage: 'only',
    enabled: true,
    ready: '1',
    in_backoff: '1',
    started: '1',
    waiting: '1',
    completed: '1',
    failed: '1',
    retries: '1',
    live_workers: '1',
    age: 15,
  });
  await engine.advance('15 seconds');
  expect(named(await engine.rows('select * from millrace.stage_health'))).toMatchObject({ live_workers: '0' });
});

test('a stage without any attempt is listed with zeros', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  expect(named(await engine.rows('select * from millrace.stage_health'))).toMatchObject({
    ready: '0',
    started: '0',
    oldest_age: null,
  });
});

test('dead_letters lists what failed for good or is exhausted, and no longer once it is retried', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only', ...options }]);
  const [permanent, exhausted] = await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take();
  await worker.report(...batch.map((item) => failed(item, { permanent: item.entity_id === permanent })));
  await engine.advance('30 seconds');
  await worker.report(failed(await worker.takeOne(), { code: 'unreadable', message: 'too many' }));
  const letters = await engine.rows(
    `select pipeline, stage, entity_id, error_code, error_message, retry_count from millrace.dead_letters order by run_id`,
  );
  const common = { pipeline: 'flow', stage: 'only' };
  expect(letters).toEqual([
    { ...common, entity_id: permanent, error_code: 'timeout', error_message: 'it took too long', retry_count: 0 },
    { ...common, entity_id: exhausted, error_code: 'unreadable', error_message: 'too many', retry_count: 1 },
  ]);
  await engine.sql.query(`select millrace.retry(run_id) from millrace.dead_letters where error_code = 'unreadable'`);
  expect(await engine.rows('select entity_id from millrace.dead_letters')).toEqual([{ entity_id: permanent }]);
});

test('timeline shows every attempt of a run in order, with times, parents, errors and usage', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second'], options));
  const [id] = await engine.queued('first');
  const worker = await Worker.of(engine, 'first');
  await engine.advance('2 seconds');
  const item = await worker.takeOne();
  await engine.advance('3 seconds');
  await worker.report({ ...failed(item, { stack: 'at handler' }), usage: { input_tokens: 7 } });
  await engine.advance('30 seconds');
  await worker.report({ ...completed(await worker.takeOne()), usage: { cost_usd: 0.5 } });
  const run = (await engine.run(id)).id;
  const rows = await engine.rows(
    `select stage, number, state, parent_id, retry_count, extract(epoch from took)::int as took,
       extract(epoch from started_at - queued_at)::int as queued_for, error_code, error_stack, usage from millrace.timeline($1)`,
    [run],
  );
  expect(rows).toMatchObject([
    {
      stage: 'first',
      number: 1,
      state: 'failed',
      took: 3,
      queued_for: 2,
      error_code: 'timeout',
      error_stack: 'at handler',
      usage: { input_tokens: 7 },
    },
    { stage: 'first', number: 2, state: 'completed', retry_count: 1, took: 0, usage: { cost_usd: 0.5 } },
    { stage: 'second', number: 1, state: 'queued', took: null, parent_id: null, usage: null },
  ]);
  expect(rows[1]?.parent_id).toBe(String(item.attempt));
});

test('prune deletes finished runs older than the retention with all that hangs on them, and nothing else', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only', ...options }]);
  const old = await engine.queued('only', 2);
  await runStage(engine, 'only');
  const waitingLong = await engine.queued('only');
  await engine.advance('50 days');
  await engine.queue('only', [old[0] as string]);
  const worker = await Worker.of(engine, 'only');
  await worker.report(
    ...(await worker.take()).filter((item) => item.entity_id === old[0]).map((item) => completed(item)),
  );
  await engine.advance('41 days');
  expect(await engine.value('select millrace.prune()')).toMatchObject({ runs: 2 });
  const left = await engine.rows('select entity_id, status from millrace.runs order by id');
  expect(left).toEqual([
    { entity_id: waitingLong[0], status: 'running' },
    { entity_id: old[0], status: 'completed' },
  ]);
  expect(await engine.value('select count(*)::int from millrace.attempts')).toBe(2);
  expect(await engine.value('select count(output)::int from millrace.attempts')).toBe(1);
});

test('prune goes on until it is done: pg_cron calls it again while there is more than one call may take', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only', ...options }]);
  await engine.queued('only', 2600);
  const worker = await Worker.of(engine, 'only');
  for (let batch = await worker.take(500); batch.length > 0; ) {
    ({ batch } = await worker.complete(
      batch.map((item) => completed(item)),
      500,
    ));
  }
  await engine.advance('91 days');
  const more = () => engine.rows(`select schedule, command from cron.job where jobname = 'millrace-prune-more'`);
  // Each look at the clock takes a second, so that a call ends after its first thousand.
  await engine.sql.query(`create or replace function millrace.now() returns timestamptz
    language plpgsql volatile set search_path = pg_catalog, pg_temp
    as $$ declare v_at timestamptz; begin update public.test_clock set at = at + interval '1 second' returning at into v_at; return v_at; end $$`);
  const pruned: number[] = [];
  for (let left = true; left; ) {
    const answer = await engine.value<{ runs: number; more: boolean }>('select millrace.prune()');
    left = answer.more;
    if (answer.runs > 0) pruned.push(answer.runs);
    expect(await more()).toEqual(left ? [{ schedule: '5 seconds', command: 'select millrace.prune()' }] : []);
  }
  expect(pruned).toEqual([1000, 1000, 600]);
  expect(await engine.value('select count(*)::int from millrace.runs')).toBe(0);
});

test("prune deletes what pg_cron remembers of each of the engine's own jobs, with an end or without one", async ({
  engine,
}) => {
  const owner = await engine.database.connect('supabase_admin');
  const commands = [
    ...(await engine.rows<{ command: string }>('select command from millrace.schedules')).map(({ command }) => command),
    'select millrace.sweep()',
    'select millrace.wake_job_poll()',
    'select millrace.doctor()',
  ];
  const remember = (from: number, start: string | null, end: string | null, status: string) =>
    owner.query(
      `insert into cron.job_run_details (runid, command, start_time, end_time, status)
       select $1 + n, c, millrace.now() - $3::interval, millrace.now() - $4::interval, $5
       from unnest($2::text[]) with ordinality u(c, n)`,
      [from, commands, start, end, status],
    );
  await remember(100, null, null, 'failed');
  await remember(200, '2 days', null, 'failed');
  await remember(300, '2 days', '2 days', 'succeeded');
  await remember(20_000, null, null, 'failed');
  await remember(20_100, '1 minute', null, 'running');
  await remember(20_200, '1 minute', '1 minute', 'succeeded');
  await engine.sql.query('select millrace.prune()');
  const left = await engine.rows<{ command: string; runids: number[] }>(
    `select command, array_agg(runid / 100 order by runid)::int[] as runids from cron.job_run_details group by 1`,
  );
  expect(Object.fromEntries(left.map(({ command, runids }) => [command, runids]))).toEqual(
    Object.fromEntries(
      commands.map((command) => [
        command,
        command === 'select millrace.doctor()' ? [1, 2, 3, 200, 201, 202] : [201, 202],
      ]),
    ),
  );
});

projectTest(
  "prune deletes old log lines, and of pg_cron's history the engine's own rows and those of jobs that ask for it",
  async ({ engine }) => {
    await engine.sql.query(`select millrace.report('error', 'old', 'an old line')`);
    await engine.advance('91 days');
    await engine.sql.query(`select millrace.report('error', 'new', 'a new line')`);
    await engine.sql.query(`select cron.schedule('mine', '* * * * *', 'select 1')`);
    const owner = await engine.database.connect('supabase_admin');
    await owner.query(
      `insert into cron.job_run_details (jobid, command, end_time)
     select jobid, command, millrace.now() - interval '2 days' from cron.job`,
    );
    expect(await engine.value(`select count(*)::int from cron.job where jobname = 'links-delete-old-pages'`)).toBe(1);
    await engine.sql.query('select millrace.prune()');
    expect(await engine.rows('select code from millrace.log')).toEqual([{ code: 'new' }]);
    // The example links has a job of its own, whose command asks for it.
    expect(
      await engine.rows('select j.jobname from cron.job_run_details d join cron.job j using (jobid) order by 1'),
    ).toEqual([{ jobname: 'mine' }]);
  },
);
