import { expect } from 'vitest';
import { chain, test } from '../../support/engine.ts';
import { completed, failed, resume, runStage, Worker, waiting } from '../../support/worker.ts';

const external = { kind: 'external', completion: { callback: true } };

test('cancelling ends the run, its live attempts and their leases; what was completed stays', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  const worker = await Worker.of(engine, 'two');
  const held = await worker.takeOne();
  await engine.sql.query('select millrace.cancel($1)', [held.run]);
  expect(await engine.attempts(id)).toEqual(['one 1 completed', 'two 1 cancelled']);
  expect(await engine.run(id)).toMatchObject({ status: 'cancelled' });
  expect(await worker.renew([held])).toEqual({ renewed: 0, lost: [held.attempt] });
  expect(await engine.item(id)).toMatchObject({
    one_status: 'completed',
    two_status: 'failed',
    two_error: 'cancelled',
  });
  expect((await worker.complete([completed(held)])).items).toMatchObject([
    { verdict: 'stale', reason: 'the attempt was cancelled' },
  ]);
  expect(await engine.rows('select * from millrace.claims')).toEqual([]);
});

test('cancelling one run of a claimed batch leaves the others to their worker', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  await engine.queued('one', 3);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take();
  await engine.sql.query('select millrace.cancel($1)', [batch[1]?.run]);
  expect(await worker.renew(batch)).toEqual({ renewed: 2, lost: [batch[1]?.attempt] });
  expect(await worker.report(...batch.map((item) => completed(item)))).toEqual(['accepted', 'stale', 'accepted']);
  expect(await engine.rows('select * from millrace.claims')).toEqual([]);
});

test('a job whose run was cancelled comes back stale, and a retry in backoff is cancelled with it', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one'], { ...external, retry: { backoff: { kind: 'list', seconds: [60] } } }));
  const [jobbing, backing] = await engine.queued('one', 2);
  const worker = await Worker.of(engine, 'one');
  const [first, second] = await worker.take();
  if (!first || !second) throw new Error('nothing claimed');
  await worker.report(waiting(first, 'job-1'), failed(second));
  for (const id of [jobbing, backing])
    await engine.sql.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
  const end = { submission: first.submission, service: 'scraper', job_id: 'job-1', outcome: 'completed', result: 1 };
  expect((await resume(engine, [end])).items).toMatchObject([{ verdict: 'stale' }]);
  await engine.advance('1 day');
  await engine.sql.query('select millrace.sweep()');
  expect(await worker.take()).toEqual([]);
  expect(await engine.attempts(backing)).toEqual(['one 1 failed', 'one 2 cancelled']);
});

test('a cancelled run is no dead letter and counts as no failure', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.queued('one');
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
  expect(await engine.rows('select * from millrace.dead_letters')).toEqual([]);
  expect(await engine.value(`select failed::int from millrace.stage_health where pipeline = 'flow'`)).toBe(0);
});

test('only a running run can be cancelled: the error says what it is', async ({ engine }) => {
  await engine.pipeline(chain(['one']));
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  const refusal = (run: unknown) => engine.refusal('select millrace.cancel($1)', [run]);
  expect(await refusal((await engine.run(id)).id)).toMatchObject({
    code: 'MR004',
    message: expect.stringMatching(/it is completed/),
  });
  expect(await refusal(999)).toMatchObject({ code: 'MR003', message: 'there is no run 999' });
  expect(await refusal(null)).toMatchObject({ code: 'MR003' });
});

test('after a cancel the entity may be queued anew, and the new run ends', async ({ engine }) => {
  await engine.pipeline(chain(['one', 'two']));
  const [id] = await engine.queued('one');
  await runStage(engine, 'one');
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
  await engine.queue('two', [id ?? '']);
  expect(await runStage(engine, 'two')).toHaveLength(1);
  expect((await engine.run(id)).status).toBe('completed');
  expect(await engine.item(id)).toMatchObject({ two_status: 'completed', two_error: null });
});
