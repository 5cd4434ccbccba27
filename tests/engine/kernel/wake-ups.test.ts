import { expect } from 'vitest';
import { chain, type Engine, test } from '../../support/engine.ts';
import { openTransaction, wokenStages } from '../../support/sessions.ts';
import { completed, failed, Worker } from '../../support/worker.ts';

async function oneStage(engine: Engine, options = {}): Promise<void> {
  await engine.configureWakeUps();
  await engine.pipeline([{ name: 'only', ...options }]);
}

test('a committed wake younger than two seconds is not woken again, an older one is', async ({ engine }) => {
  await oneStage(engine);
  await engine.queued('only');
  await engine.advance('1.9 seconds');
  await engine.queued('only');
  expect(await wokenStages(engine)).toHaveLength(1);
  await engine.advance('0.2 seconds');
  await engine.queued('only');
  expect(await wokenStages(engine)).toHaveLength(2);
});

test("another transaction's uncommitted wake is not relied on, and nobody waits for it", async ({ engine }) => {
  await oneStage(engine);
  const [first, second] = await engine.insert(2);
  const user = await openTransaction(engine);
  await user.query(`update public.items set only_status = 'queued' where id = $1`, [first]);
  await engine.queue('only', [second as string]);
  await user.query('rollback');
  expect(await wokenStages(engine)).toEqual(['flow.only']);
});

test('a worker that arrives answers the wakes so far, so that work queued after it left wakes anew', async ({
  engine,
}) => {
  await oneStage(engine);
  await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  await worker.complete([completed(await worker.takeOne())], 10);
  await worker.leave();
  await engine.queued('only');
  expect(await wokenStages(engine)).toHaveLength(2);
});

test('a wake-up that is rolled back with its write leaves no trace', async ({ engine }) => {
  await oneStage(engine);
  const [id] = await engine.insert();
  const user = await openTransaction(engine);
  await user.query(`update public.items set only_status = 'queued' where id = $1`, [id]);
  await user.query('rollback');
  expect(await wokenStages(engine)).toEqual([]);
  await engine.queue('only', [id as string]);
  expect(await wokenStages(engine)).toHaveLength(1);
});

test('the sweep wakes again for work whose wake was lost, once its wake-up is no longer fresh', async ({ engine }) => {
  await oneStage(engine);
  await engine.queued('only');
  await engine.sql.query('truncate net.http_request_queue');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 0 });
  await engine.advance('10 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 1 });
  expect(await wokenStages(engine)).toEqual(['flow.only']);
});

test('the sweep wakes for a retry that fell due, and not before', async ({ engine }) => {
  await oneStage(engine, { retry: { backoff: { kind: 'list', seconds: [60] } } });
  await engine.queued('only');
  const worker = await Worker.of(engine, 'only');
  await worker.report(failed(await worker.takeOne()));
  await worker.leave();
  await engine.sql.query('truncate net.http_request_queue');
  await engine.advance('59 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 0 });
  await engine.advance('1 second');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 1 });
});

test('the sweep wakes nothing for a stage with a live worker', async ({ engine }) => {
  await oneStage(engine);
  const worker = await Worker.of(engine, 'only');
  await worker.claim();
  await engine.queued('only');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 0 });
  await engine.advance('15 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 1 });
});

test('a completion returns the followers to wake and posts nothing itself', async ({ engine }) => {
  await engine.configureWakeUps();
  await engine.pipeline(chain(['first', 'second']));
  await engine.queued('first', 2);
  await engine.sql.query('truncate net.http_request_queue');
  const worker = await Worker.of(engine, 'first');
  const [one, two] = await worker.take();
  if (!one || !two) throw new Error('two items were queued');
  expect((await worker.complete([completed(one)])).wake).toMatchObject([{ stage: 'second' }]);
  expect((await worker.complete([completed(two)])).wake).toEqual([]);
  expect(await wokenStages(engine)).toEqual([]);
});

test('a completion returns no wake-up for a follower whose worker is live', async ({ engine }) => {
  await engine.pipeline(chain(['first', 'second']));
  await engine.queued('first');
  const [first, second] = [await Worker.of(engine, 'first'), await Worker.of(engine, 'second')];
  await second.claim();
  expect((await first.complete([completed(await first.takeOne())].slice(0, 1))).wake).toEqual([]);
  expect((await second.leave()).left).toBe(false);
});

test('wakes that a worker could not deliver are posted without a second look', async ({ engine }) => {
  await oneStage(engine);
  const client = await engine.database.connect('service_role');
  const stages = JSON.stringify([{ pipeline: 'flow', stage: 'only' }]);
  const { rows } = await client.query('select public.millrace_wake($1) as answer', [stages]);
  expect(rows[0].answer).toEqual({ woken: 1 });
  expect(await wokenStages(engine)).toEqual(['flow.only']);
});
