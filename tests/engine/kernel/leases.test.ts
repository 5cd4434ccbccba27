import { expect } from 'vitest';
import { type Engine, test } from '../../support/engine.ts';
import { completed, released, Worker } from '../../support/worker.ts';

const atOnce = { backoff: { kind: 'list', seconds: [0] } };

const sweep = (engine: Engine) => engine.value<{ leases: number }>('select millrace.sweep()');

test('a late completion is accepted as long as no sweep has taken the attempt', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await engine.advance('2 hours');
  expect(await worker.report(completed(item))).toEqual(['accepted']);
  expect((await engine.run(id)).status).toBe('completed');
  expect(await sweep(engine)).toMatchObject({ leases: 0 });
});

test('a late completion is stale once the sweep has taken the attempt', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await engine.advance('61 seconds');
  expect(await sweep(engine)).toMatchObject({ leases: 1 });
  expect(await worker.report(completed(item))).toEqual(['stale']);
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 queued']);
});

test('the sweep leaves a lease that has not expired', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await engine.advance('59 seconds');
  expect(await sweep(engine)).toMatchObject({ leases: 0 });
  expect(await worker.report(completed(item))).toEqual(['accepted']);
});

test('renewing keeps the whole batch for another lease', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take();
  for (let minute = 0; minute < 5; minute++) {
    await engine.advance('50 seconds');
    expect(await worker.renew(batch)).toMatchObject({ renewed: 3, lost: [] });
    expect(await sweep(engine)).toMatchObject({ leases: 0 });
  }
  expect(await worker.report(...batch.map((item) => completed(item)))).toEqual(['accepted', 'accepted', 'accepted']);
});

test('an expired lease can be renewed until the sweep has taken it', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  await worker.takeOne();
  await engine.advance('70 seconds');
  expect(await worker.renew()).toMatchObject({ renewed: 1 });
  expect(await sweep(engine)).toMatchObject({ leases: 0 });
});

test('renewing covers every claim that the worker holds', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  await worker.take(2);
  await worker.take(1);
  await engine.advance('50 seconds');
  expect(await worker.renew()).toMatchObject({ renewed: 3 });
  await engine.advance('50 seconds');
  expect(await sweep(engine)).toMatchObject({ leases: 0 });
});

test('renewing names the attempts that were taken away while others of the batch go on', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const ids = await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take();
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(ids[1])).id]);
  const gone = batch.find((item) => item.entity_id === ids[1])?.attempt;
  expect(await worker.renew(batch)).toMatchObject({ renewed: 2, lost: [gone] });
});

test('renewing names what was taken away when it was all that the worker held', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await engine.sql.query('select millrace.cancel($1)', [(await engine.run(id)).id]);
  expect(await worker.renew([item])).toMatchObject({ renewed: 0, lost: [item.attempt] });
});

test('renewing names an attempt whose entity was deleted', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const ids = await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take();
  await engine.sql.query('delete from public.items where id = $1', [ids[0]]);
  const gone = batch.find((item) => item.entity_id === ids[0])?.attempt;
  expect(await worker.renew(batch)).toMatchObject({ renewed: 1, lost: [gone] });
});

test('renewing calls a finished attempt lost, and leaves alone what it was not asked about', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const [first, second] = await worker.take();
  if (!first || !second) throw new Error('two items were queued');
  await worker.report(completed(first));
  expect(await worker.renew([second])).toEqual({ renewed: 1, lost: [] });
  expect(await worker.renew([first, second])).toEqual({ renewed: 1, lost: [first.attempt] });
});

test('a worker cannot renew what another one holds', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only');
  const [holder, other] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  const item = await holder.takeOne();
  await other.claim();
  await engine.advance('61 seconds');
  expect(await other.renew([item])).toEqual({ renewed: 0, lost: [item.attempt] });
  expect(await sweep(engine)).toMatchObject({ leases: 1 });
});

test('two releases cost no attempt, the third in a row does', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', retry: { max_attempts: 2, ...atOnce } }]);
  const [id] = await engine.queued('only');
  for (let time = 1; time <= 3; time++) {
    const worker = await Worker.of(engine, 'only');
    expect(await engine.attempts(id)).toEqual(['only 1 queued']);
    expect(await worker.report(released(await worker.takeOne()))).toEqual(['accepted']);
    await worker.leave(true);
  }
  expect(await engine.attempts(id)).toEqual(['only 1 failed', 'only 2 queued']);
  expect(await engine.item(id)).toMatchObject({
    only_status: 'queued',
    only_retry_count: 1,
    only_error: expect.stringContaining('released by three workers'),
  });
});

test('a released attempt is due at once and shown as queued', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await worker.report(released(item));
  expect(await engine.item(id)).toMatchObject({ only_status: 'queued', only_started_at: null, only_retry_count: 0 });
  const again = await worker.takeOne();
  expect(again).toMatchObject({ attempt: item.attempt, retry_count: 0, submission: item.submission });
  expect(again.token).not.toBe(item.token);
});
