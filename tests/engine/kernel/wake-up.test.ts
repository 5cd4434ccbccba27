import { expect } from 'vitest';
import { type Engine, test } from '../../support/engine.ts';
import { begin, openTransaction, untilBlocked, wokenStages } from '../../support/sessions.ts';
import { completed, Worker } from '../../support/worker.ts';

/** A pipeline of one stage with its wake-up configured, and an entity that is not queued yet. */
async function idleStage(engine: Engine): Promise<string> {
  await engine.configureWakeUps();
  await engine.pipeline([{ name: 'only' }]);
  const [id] = await engine.insert();
  return id as string;
}

const enqueue = `update public.items set only_status = 'queued' where id = $1`;

test('an enqueuer wakes once where no worker is live', async ({ engine }) => {
  const id = await idleStage(engine);
  await engine.queue('only', [id]);
  expect(await wokenStages(engine)).toEqual(['flow.only']);
});

test('an enqueuer leaves the wake out for a live worker, and that worker cannot leave before the commit', async ({
  engine,
}) => {
  const id = await idleStage(engine);
  const worker = await Worker.of(engine, 'only');
  expect(await worker.claim()).toMatchObject({ status: 'empty' });
  const user = await openTransaction(engine);
  await user.query(enqueue, [id]);
  expect(await worker.leave()).toEqual({ left: false, wake: [] });
  await user.query('commit');
  expect(await wokenStages(engine)).toEqual([]);
  expect(await worker.leave()).toEqual({ left: false, wake: [] });
  expect(await worker.take()).toHaveLength(1);
});

test('an enqueuer that starts after a worker left, wakes', async ({ engine }) => {
  const id = await idleStage(engine);
  const worker = await Worker.of(engine, 'only');
  await worker.claim();
  expect(await worker.leave()).toEqual({ left: true, wake: [] });
  await engine.queue('only', [id]);
  expect(await wokenStages(engine)).toEqual(['flow.only']);
});

test('an enqueuer whose worker is about to sign off waits for it, and then wakes', async ({ engine }) => {
  const id = await idleStage(engine);
  const worker = await Worker.of(engine, 'only');
  await worker.claim();
  await worker.client.query('begin');
  expect(await worker.leave()).toEqual({ left: true, wake: [] });
  const user = await engine.database.connect();
  const write = begin(user.query(enqueue, [id]));
  await untilBlocked(engine, user);
  await worker.client.query('commit');
  await write;
  expect(await wokenStages(engine)).toEqual(['flow.only']);
});

test('a worker that hands over while an enqueuer is uncommitted wakes for it', async ({ engine }) => {
  const id = await idleStage(engine);
  const worker = await Worker.of(engine, 'only');
  await worker.claim();
  const user = await openTransaction(engine);
  await user.query(enqueue, [id]);
  const answer = await worker.leave(true);
  await user.query('commit');
  const woken = [...(await wokenStages(engine)), ...answer.wake.map((wake) => `${wake.pipeline}.${wake.stage}`)];
  expect(woken).toContain('flow.only');
});

test('a worker that hands over names its stage when work is left, and nothing otherwise', async ({ engine }) => {
  const id = await idleStage(engine);
  const [busy, idle] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  await idle.claim();
  expect(await idle.leave(true)).toEqual({ left: true, wake: [] });
  await busy.claim();
  await engine.queue('only', [id]);
  expect(await busy.leave(true)).toMatchObject({ left: true, wake: [{ stage: 'only', function: 'flow-only' }] });
});

test('a worker kept by an enqueuer that never commits leaves at its third try', async ({ engine }) => {
  const id = await idleStage(engine);
  const worker = await Worker.of(engine, 'only');
  await worker.claim();
  const user = await openTransaction(engine);
  await user.query(enqueue, [id]);
  const left: boolean[] = [];
  for (let time = 0; time < 3; time++) {
    left.push((await worker.leave()).left);
    if (!left.at(-1)) expect(await worker.take()).toEqual([]);
  }
  expect(left).toEqual([false, false, true]);
  await user.query('commit');
  await engine.sql.query('select millrace.sweep()');
  expect(await wokenStages(engine)).toEqual(['flow.only']);
});

test('a worker that found work after a failed try to leave may try three times again', async ({ engine }) => {
  const id = await idleStage(engine);
  const worker = await Worker.of(engine, 'only');
  await worker.claim();
  await engine.queue('only', [id]);
  expect((await worker.leave()).left).toBe(false);
  expect((await worker.leave()).left).toBe(false);
  await worker.complete([completed(await worker.takeOne())]);
  const user = await openTransaction(engine);
  const [other] = await engine.insert();
  await user.query(enqueue, [other]);
  expect((await worker.leave()).left).toBe(false);
  await user.query('commit');
});

test('above read committed an enqueuer always wakes, live worker or not', async ({ engine }) => {
  await idleStage(engine);
  await (await Worker.of(engine, 'only')).claim();
  for (const isolation of ['repeatable read', 'serializable']) {
    const [id] = await engine.insert();
    const user = await openTransaction(engine, isolation);
    await user.query(enqueue, [id]);
    await user.query('commit');
  }
  expect(await wokenStages(engine)).toEqual(['flow.only', 'flow.only']);
});

test('a worker whose heartbeat is 15 seconds old is not live', async ({ engine }) => {
  const id = await idleStage(engine);
  await (await Worker.of(engine, 'only')).claim();
  const [other] = await engine.insert();
  await engine.advance('14 seconds');
  await engine.queue('only', [id]);
  expect(await wokenStages(engine)).toEqual([]);
  await engine.advance('1 second');
  await engine.queue('only', [other as string]);
  expect(await wokenStages(engine)).toEqual(['flow.only']);
});

test('every call of a worker is a heartbeat', async ({ engine }) => {
  await idleStage(engine);
  const worker = await Worker.of(engine, 'only');
  const live = () => engine.value<number>(`select live_workers::int from millrace.stage_health where stage = 'only'`);
  await worker.claim();
  const repeat = () => worker.claim(10, worker.seq);
  for (const call of [() => worker.claim(), () => worker.complete([]), () => worker.renew(), repeat]) {
    await engine.advance('14 seconds');
    await call();
    await engine.advance('14 seconds');
    expect(await live()).toBe(1);
  }
});
