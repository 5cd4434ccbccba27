import { expect } from 'vitest';
import { type Engine, type Row, test } from '../../support/engine.ts';
import { jobEnd, openTransaction } from '../../support/sessions.ts';
import { type Claimed, completed, failed, released, resume, Worker, waiting } from '../../support/worker.ts';

const atOnce = { backoff: { kind: 'list', seconds: [0] } };
const failure = { outcome: 'failed', error: { code: 'http_500', message: 'the service failed' } };

interface Started {
  id: string;
  worker: Worker;
  item: Claimed;
}

/** An external stage with one item under way. */
async function started(engine: Engine, options: Row = {}): Promise<Started> {
  const completion = { callback: true, poll_seconds: 5, deadline_seconds: 600 };
  await engine.pipeline([{ name: 'only', kind: 'external', completion, retry: atOnce, ...options }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  return { id: id as string, worker, item: await worker.takeOne() };
}

/** An external stage with one item that waits for job-1. */
async function underWay(engine: Engine, options: Row = {}): Promise<Started> {
  const start = await started(engine, options);
  await start.worker.report(waiting(start.item, 'job-1'));
  return start;
}

const verdicts = async (engine: Engine, ...items: Row[]) =>
  (await resume(engine, items)).items.map((item) => item.verdict);

test('a waiting attempt shows its job, holds no lease, and ends with its job', async ({ engine }) => {
  const { id, item } = await underWay(engine);
  expect(await engine.item(id)).toMatchObject({ only_status: 'started', only_job_id: 'job-1' });
  expect(await engine.value('select count(*)::int from millrace.claims')).toBe(0);
  expect(await verdicts(engine, jobEnd(item, 'job-1', { result: { pages: 3 } }))).toEqual(['accepted']);
  expect(await engine.item(id)).toMatchObject({ only_status: 'completed', only_result: { pages: 3 } });
  expect((await engine.run(id)).status).toBe('completed');
});

test('a callback that comes before the worker said wait is taken, and the worker hears duplicate', async ({
  engine,
}) => {
  const { id, worker, item } = await started(engine);
  expect(await verdicts(engine, jobEnd(item, 'job-1', { result: 'early' }))).toEqual(['accepted']);
  expect(await worker.report(waiting(item, 'job-1'))).toEqual(['duplicate']);
  expect(await engine.item(id)).toMatchObject({ only_status: 'completed', only_result: 'early', only_job_id: 'job-1' });
});

test('a callback that comes while the worker is saying wait finds the job waiting', async ({ engine }) => {
  const { worker, item } = await started(engine);
  await worker.client.query('begin');
  await worker.report(waiting(item, 'job-1'));
  expect(await verdicts(engine, jobEnd(item, 'job-1'))).toEqual(['busy']);
  await worker.client.query('commit');
  expect(await verdicts(engine, jobEnd(item, 'job-1'))).toEqual(['accepted']);
});

test('a callback told twice is recorded once', async ({ engine }) => {
  const { item } = await underWay(engine);
  expect(await verdicts(engine, jobEnd(item, 'job-1', { result: 1 }))).toEqual(['accepted']);
  expect(await verdicts(engine, jobEnd(item, 'job-1', { result: 2 }))).toEqual(['duplicate']);
  expect(await engine.rows('select output from millrace.attempts where output is not null')).toEqual([{ output: 1 }]);
});

test('of a callback and the poller that bring the same end at once, the first one wins', async ({ engine }) => {
  const { item } = await underWay(engine);
  const callback = await openTransaction(engine);
  const first = JSON.stringify([jobEnd(item, 'job-1', { result: 'callback' })]);
  await callback.query('select public.millrace_resume($1)', [first]);
  const second = jobEnd(item, 'job-1', { result: 'poller' });
  expect(await verdicts(engine, second)).toEqual(['busy']);
  await callback.query('commit');
  expect(await verdicts(engine, second)).toEqual(['duplicate']);
  expect(await engine.rows('select output from millrace.attempts where output is not null')).toEqual([
    { output: 'callback' },
  ]);
});

test('a callback after the run was cancelled is stale', async ({ engine }) => {
  const { id, item } = await underWay(engine);
  await engine.sql.query('select millrace.cancel($1)', [item.run]);
  const { items } = await resume(engine, [jobEnd(item, 'job-1')]);
  expect(items).toMatchObject([{ verdict: 'stale', reason: 'the attempt was cancelled' }]);
  expect(await engine.item(id)).toMatchObject({ only_status: 'failed', only_error: 'cancelled', only_result: null });
});

test('a callback with the id of another job, or of another service, is stale', async ({ engine }) => {
  const { id, item } = await underWay(engine);
  expect(await verdicts(engine, jobEnd(item, 'job-2'))).toEqual(['stale']);
  expect(await verdicts(engine, jobEnd(item, 'job-1', { service: 'model' }))).toEqual(['stale']);
  expect(await engine.attempts(id)).toEqual(['only 1 waiting']);
});

test('a callback of a job whose attempt has been retried since is stale, its successor is not touched', async ({
  engine,
}) => {
  const { id, worker, item } = await underWay(engine);
  expect(await verdicts(engine, jobEnd(item, 'job-1', failure))).toEqual(['accepted']);
  const again = await worker.takeOne();
  await worker.report(waiting(again, 'job-2'));
  expect(await verdicts(engine, jobEnd(item, 'job-1'))).toEqual(['stale']);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 waiting']);
  expect(await verdicts(engine, jobEnd(again, 'job-2'))).toEqual(['accepted']);
});

test('a job that failed is tried again under a new submission', async ({ engine }) => {
  const { worker, item } = await underWay(engine);
  await resume(engine, [jobEnd(item, 'job-1', failure)]);
  const again = await worker.takeOne();
  expect(again.submission).toBe(again.attempt);
  expect(again.submission).not.toBe(item.submission);
});

test('a submission id is kept over a lost lease, so that a crash after submitting buys no second job', async ({
  engine,
}) => {
  const { id, item } = await started(engine);
  for (let time = 0; time < 2; time++) {
    await engine.advance('61 seconds');
    await engine.sql.query('select millrace.sweep()');
    if (time === 0) {
      const again = await (await Worker.of(engine, 'only')).takeOne();
      expect(again).toMatchObject({ submission: item.submission, isolated: true });
      expect(again.attempt).not.toBe(item.attempt);
    }
  }
  expect(await verdicts(engine, jobEnd(item, 'job-1', { result: 'bought once' }))).toEqual(['accepted']);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 failed', 'only 3 completed']);
  expect(await engine.item(id)).toMatchObject({ only_status: 'completed', only_result: 'bought once' });
});

test('a submission id is kept over a release and over a failure to reach the service', async ({ engine }) => {
  const { worker, item } = await started(engine);
  await worker.report(released(item));
  const second = await worker.takeOne();
  expect(second.submission).toBe(item.submission);
  await worker.report(failed(second));
  expect((await worker.takeOne()).submission).toBe(item.submission);
});

test('a stage started over voids the job under way', async ({ engine }) => {
  const { id, worker, item } = await underWay(engine);
  await engine.queue('only', [id]).catch(() => {});
  await engine.sql.query(`select millrace.start('flow', $1, p_restart => true)`, [id]);
  expect(await verdicts(engine, jobEnd(item, 'job-1'))).toEqual(['stale']);
  const again = await worker.takeOne();
  expect(again.submission).not.toBe(item.submission);
  await worker.report(completed(again));
  expect((await engine.run(id)).status).toBe('completed');
});

test('a callback for an attempt that never was, or whose entity is gone, is stale', async ({ engine }) => {
  const { id, item } = await underWay(engine);
  expect(await verdicts(engine, jobEnd({ submission: 987_654 }, 'job-1'))).toEqual(['stale']);
  await engine.sql.query('delete from public.items where id = $1', [id]);
  expect(await verdicts(engine, jobEnd(item, 'job-1'))).toEqual(['stale']);
});
