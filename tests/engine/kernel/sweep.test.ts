import type pg from 'pg';
import { expect } from 'vitest';
import { countAnew } from '../../support/engine/count-anew.ts';
import { chain, type Engine, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { completed, Worker, waiting } from '../../support/worker.ts';

const atOnce = { backoff: { kind: 'list', seconds: [0] } };

const sweep = (engine: Engine) => engine.value<{ leases: number; deadlines: number }>('select millrace.sweep()');

test('the time of a sweep is read by every session, whatever its DateStyle', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only');
  await engine.sql.query("set datestyle = 'SQL, DMY'");
  await engine.advance('23 days');
  await sweep(engine);
  await engine.sql.query('reset datestyle');
  const worker = await Worker.of(engine, 'only');
  expect(await worker.claim()).toMatchObject({ status: 'working', sweep_due: false });
  await engine.sql.query(`delete from millrace.settings where name = 'last_sweep_at'`);
  expect(await worker.claim()).toMatchObject({ sweep_due: true });
});

test('a lost lease costs one attempt and is tried again', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', retry: { max_attempts: 2, ...atOnce } }]);
  const [id] = await engine.queued('only');
  await (await Worker.of(engine, 'only')).takeOne();
  await engine.advance('60 seconds');
  expect(await sweep(engine)).toMatchObject({ leases: 1 });
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 queued']);
  expect(await engine.item(id)).toMatchObject({ only_status: 'queued', only_retry_count: 1 });
  await (await Worker.of(engine, 'only')).takeOne();
  await engine.advance('60 seconds');
  await sweep(engine);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 failed']);
  expect((await engine.run(id)).status).toBe('failed');
});

test('of 50 rows that share a worker with one that kills it, only that one is exhausted', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', batch_size: 50, max_workers: 1000, retry: { max_attempts: 3, ...atOnce } }]);
  const ids = await engine.queued('only', 50);
  const killer = ids[17];
  let deaths = 0;
  for (;;) {
    const worker = await Worker.of(engine, 'only');
    let batch = await worker.take(50);
    while (batch.length > 0 && !batch.some((item) => item.entity_id === killer)) {
      ({ batch } = await worker.complete(
        batch.map((item) => completed(item)),
        50,
      ));
    }
    if (batch.length === 0) break;
    deaths++;
    await engine.advance('61 seconds');
    await sweep(engine);
  }
  expect(deaths).toBe(3);
  expect(await engine.rows(`select entity_id, error_code from millrace.dead_letters`)).toEqual([
    { entity_id: killer, error_code: 'resource_limit' },
  ]);
  expect(await engine.value(`select count(*)::int from millrace.runs where status = 'completed'`)).toBe(49);
});

test('a worker that renews while the sweep is under way keeps its lease', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await engine.advance('61 seconds');
  await worker.client.query('begin');
  await worker.renew();
  const sweeper = await engine.database.connect();
  const sweeping = begin(sweeper.query('select millrace.sweep()'));
  await Promise.race([sweeping, untilBlocked(engine, sweeper)]);
  await worker.client.query('commit');
  await sweeping;
  expect(await worker.report(completed(item))).toEqual(['accepted']);
});

test('the sweep passes over a row that a user holds, and takes it the next time', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [held, free] = await engine.queued('only', 2);
  await (await Worker.of(engine, 'only')).take();
  await engine.advance('61 seconds');
  const user = await openTransaction(engine);
  await user.query('select from public.items where id = $1 for update', [held]);
  expect(await sweep(engine)).toMatchObject({ leases: 1 });
  expect(await engine.attempts(held)).toEqual(['only 1 started']);
  expect(await engine.attempts(free)).toEqual(['only 1 failed', 'only 2 queued']);
  await user.query('commit');
  expect(await sweep(engine)).toMatchObject({ leases: 1 });
});

test('a job that does not end before its deadline is tried again under a new submission', async ({ engine }) => {
  const completion = { callback: true, deadline_seconds: 300 };
  await engine.pipeline([{ name: 'only', kind: 'external', completion, retry: atOnce }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await worker.report(waiting(item, 'job-1'));
  await engine.advance('299 seconds');
  expect(await sweep(engine)).toMatchObject({ deadlines: 0, leases: 0 });
  await engine.advance('1 second');
  expect(await sweep(engine)).toMatchObject({ deadlines: 1 });
  expect(await engine.item(id)).toMatchObject({ only_status: 'queued', only_retry_count: 1 });
  const again = await worker.takeOne();
  expect(again).toMatchObject({ isolated: false, submission: again.attempt });
  expect(again.submission).not.toBe(item.submission);
});

test('two sweeps at once take each lost lease once', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const ids = await engine.queued('only', 5);
  await (await Worker.of(engine, 'only')).take();
  await engine.advance('61 seconds');
  const [one, two] = [await openTransaction(engine), await engine.database.connect()];
  await one.query('select millrace.sweep()');
  const second = await two.query('select millrace.sweep() as swept');
  await one.query('commit');
  expect(second.rows[0].swept).toMatchObject({ leases: 0 });
  for (const id of ids) expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 queued']);
});

test('an idle sweep reads no more when there are fifty times as many finished runs', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second', 'third']), { projection: 'none' });
  const cost = async () => {
    await engine.sql.query('vacuum analyze');
    await engine.sql.query('select millrace.sweep()');
    const [row] = await engine.rows<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
      'explain (analyze, buffers, format json) select millrace.sweep()',
    );
    const plan = row?.['QUERY PLAN'][0].Plan ?? {};
    return Number(plan['Shared Hit Blocks']) + Number(plan['Shared Read Blocks']);
  };
  const addFinished = async (from: number, to: number) => {
    await engine.sql.query(
      `with run as (
         insert into millrace.runs (pipeline_id, version_id, entity_id, status, created_at, finished_at)
         select p.id, p.current_version_id, n::text, 'completed', millrace.now(), millrace.now()
         from millrace.pipelines p, generate_series($1::int, $2::int) n where p.name = 'flow' returning id, version_id
       )
       insert into millrace.attempts (run_id, stage_id, number, state, created_at, finished_at, output)
       select r.id, vs.stage_id, 1, 'completed', millrace.now(), millrace.now(), '{}'
       from run r join millrace.version_stages vs on vs.version_id = r.version_id`,
      [from, to],
    );
    await countAnew(engine.sql);
  };
  await addFinished(1, 100);
  const few = await cost();
  await addFinished(101, 5_000);
  expect(await cost()).toBeLessThan(few * 1.5 + 20);
});

/** An item that a dead worker holds, its lease expired, while pg_cron stands still; and one that is queued. */
async function stalled(engine: Engine): Promise<string> {
  await engine.pipeline([{ name: 'only', retry: { max_attempts: 2, ...atOnce } }]);
  await sweep(engine);
  const [lost] = await engine.queued('only');
  await (await Worker.of(engine, 'only')).takeOne();
  await engine.advance('59 seconds');
  await engine.queued('only');
  return lost as string;
}

const pipelineSweep = async (client: pg.Client) =>
  (await client.query('select public.millrace_sweep() as a')).rows[0].a;

test('when pg_cron stands still, the next worker that claims or reports learns that the sweep is due, and calls it', async ({
  engine,
}) => {
  const lost = await stalled(engine);
  const worker = await Worker.of(engine, 'only');
  expect(await worker.claim()).toMatchObject({ sweep_due: false });
  await engine.advance('1 second');
  const answer = await worker.claim();
  expect(answer).toMatchObject({ sweep_due: true });
  expect(await engine.value(`select public.millrace_resume('[]') -> 'sweep_due'`)).toBe(true);
  expect(await pipelineSweep(worker.client)).toEqual({ swept: true });
  expect(await engine.attempts(lost)).toEqual(['only 1 failed', 'only 2 queued']);
  expect(await worker.complete(answer.batch.map((item) => completed(item)))).toMatchObject({ sweep_due: false });
});

test('of two that make up for a late sweep at once one sweeps, and nobody sweeps again before a minute is over', async ({
  engine,
}) => {
  await stalled(engine);
  await engine.advance('1 second');
  const [one, two] = [await engine.database.connect('service_role'), await engine.database.connect('service_role')];
  await one.query('begin');
  expect(await pipelineSweep(one)).toEqual({ swept: true });
  expect(await pipelineSweep(two)).toEqual({ swept: false });
  await one.query('commit');
  expect(await pipelineSweep(two)).toEqual({ swept: false });
  await engine.advance('1 minute');
  expect(await pipelineSweep(two)).toEqual({ swept: true });
});

test('a clock set back a day keeps nothing: places, leases, wake-ups, retries, jobs and sweeps by workers', async ({
  engine,
}) => {
  await engine.pipeline([
    { name: 'one', concurrency: 2, retry: { max_attempts: 5, ...atOnce } },
    { name: 'job', kind: 'external', completion: { poll_seconds: 5, deadline_seconds: 60 } },
  ]);
  await engine.configureWakeUps();
  await engine.advance('1 day');
  await engine.queued('one', 5);
  await engine.queued('job');
  const dead = await Worker.of(engine, 'one');
  await dead.take(2);
  const jobs = await Worker.of(engine, 'job');
  await jobs.report(waiting(await jobs.takeOne(), 'job-1'));
  await engine.sweepAll();
  await engine.advance('-1 day');
  expect(await engine.value('select public.millrace_sweep()')).toEqual({ swept: true });
  // The dead worker's places are free after fifteen seconds, and its rows are retried when its lease is over.
  await engine.advance('20 seconds');
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take(2);
  expect(batch).toHaveLength(2);
  expect(await worker.report(...batch.map((item) => completed(item)))).toEqual(['accepted', 'accepted']);
  const client = await engine.database.connect('service_role');
  expect((await client.query('select public.millrace_poll(10) as answer')).rows[0].answer.jobs).toHaveLength(1);
  await engine.advance('2 minutes');
  await engine.sweepAll();
  expect(await engine.rows('select state, service from millrace.attempts where deadline_at is not null')).toEqual([]);
  expect(
    await engine.rows(`select number from millrace.attempts
      where error is null and number > 1 and state = 'queued' and queue_at <= millrace.now()`),
  ).toEqual([{ number: 2 }, { number: 2 }]);
  expect(
    await engine.value(
      `select count(*)::int from millrace.attempts where queue_at > millrace.now() + interval '1 hour'`,
    ),
  ).toBe(0);
  expect(await engine.value('select count(*)::int from millrace.wake_ups where woken_at > millrace.now()')).toBe(0);
});
