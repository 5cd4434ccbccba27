// Limits on a whole stage: most in flight, rate, back pressure. Groups have tests of their own.
import { expect } from 'vitest';
import { chain, type Engine, type Row, test } from '../../support/engine.ts';
import { jobEnd, wokenStages } from '../../support/sessions.ts';
import { type Claimed, completed, failed, released, resume, Worker, waiting } from '../../support/worker.ts';

const only = (engine: Engine, limits: Row, options: Row = {}) =>
  engine.pipeline([{ name: 'only', limits, max_workers: 10, ...options }]);
const external = { kind: 'external', completion: { callback: true } };
const slots = (engine: Engine) => engine.value<number>('select count(*)::int from millrace.in_flight');

test('no more than max_in_flight are handed out, to however many workers', async ({ engine }) => {
  await only(engine, { max_in_flight: 3 });
  await engine.queued('only', 10);
  const [one, two] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  expect(await one.take(2)).toHaveLength(2);
  expect(await two.take(10)).toHaveLength(1);
  expect(await one.claim()).toMatchObject({ status: 'empty', batch: [], wait_ms: null });
});

test('a completed, a failed and a released attempt each free a slot for the same call', async ({ engine }) => {
  await only(engine, { max_in_flight: 1 });
  await engine.queued('only', 4);
  const worker = await Worker.of(engine, 'only');
  let [item] = await worker.take();
  for (const report of [completed, failed, released]) {
    if (!item) throw new Error('no slot was free');
    const answer = await worker.complete([report(item)], 10);
    expect(answer.items).toMatchObject([{ verdict: 'accepted' }]);
    expect(answer.batch).toHaveLength(1);
    [item] = answer.batch;
  }
  expect(await slots(engine)).toBe(1);
});

test('a worker that only saves frees its slots too', async ({ engine }) => {
  await only(engine, { max_in_flight: 2 });
  await engine.queued('only', 4);
  const [one, two] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  const batch = await one.take();
  await one.complete(batch.map((item) => completed(item)));
  expect(await slots(engine)).toBe(0);
  expect(await two.take()).toHaveLength(2);
});

test('a worker gets its own slots back at once, however many others are in work', async ({ engine }) => {
  await only(engine, { max_in_flight: 450 });
  await engine.queued('only', 600);
  await (await Worker.of(engine, 'only')).take(400);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(50);
  const answer = await worker.complete(
    batch.map((item) => completed(item)),
    50,
  );
  expect(answer.batch).toHaveLength(50);
});

test('a cancelled run frees its slot at the next claim', async ({ engine }) => {
  await only(engine, { max_in_flight: 1 });
  await engine.queued('only', 2);
  const [one, two] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  const item = await one.takeOne();
  expect(await two.take()).toEqual([]);
  await engine.sql.query('select millrace.cancel($1)', [item.run]);
  expect(await two.take()).toHaveLength(1);
});

test('a lost lease frees its slot in the sweep, which wakes', async ({ engine }) => {
  await engine.configureWakeUps();
  await only(engine, { max_in_flight: 1 }, { retry: { max_attempts: 1 } });
  await engine.queued('only', 2);
  await (await Worker.of(engine, 'only')).takeOne();
  await engine.advance('61 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ leases: 1, woken: 1 });
  expect(await slots(engine)).toBe(0);
  expect(await (await Worker.of(engine, 'only')).take()).toHaveLength(1);
});

test('a deleted entity frees its slot', async ({ engine }) => {
  await only(engine, { max_in_flight: 1 });
  await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  await engine.sql.query('delete from public.items where id = $1', [item.entity_id]);
  expect(await worker.take()).toHaveLength(1);
});

test('waiting jobs count as in flight, and the end of one wakes its own stage', async ({ engine }) => {
  await only(engine, { max_in_flight: 1 }, external);
  await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  const answer = await worker.complete([waiting(item, 'job-1')], 10);
  expect(answer).toMatchObject({ status: 'empty', batch: [], wait_ms: null });
  expect(await worker.leave()).toMatchObject({ left: true });
  const end = await resume(engine, [jobEnd(item, 'job-1')]);
  expect(end.wake).toMatchObject([{ stage: 'only' }]);
  expect(await slots(engine)).toBe(0);
  expect(await (await Worker.of(engine, 'only')).take()).toHaveLength(1);
});

test('the end of a job wakes nothing where a worker of its stage is live, or nothing is queued', async ({ engine }) => {
  await only(engine, { max_in_flight: 2 }, external);
  await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take();
  await worker.report(...batch.map((item, place) => waiting(item, `job-${place}`)));
  const [first, second] = batch as [(typeof batch)[0], (typeof batch)[0]];
  expect((await resume(engine, [jobEnd(first, 'job-0')])).wake).toEqual([]);
  const third = await worker.takeOne();
  await worker.report(completed(third));
  await worker.leave();
  expect((await resume(engine, [jobEnd(second, 'job-1')])).wake).toEqual([]);
});

test('a limit that is added counts what is in work and what waits already', async ({ engine }) => {
  const definition = await engine.pipeline([{ name: 'only', ...external }]);
  await engine.queued('only', 5);
  const worker = await Worker.of(engine, 'only');
  const [started, job] = (await worker.take(2)) as [Claimed, Claimed];
  await worker.report(waiting(job, 'job-1'));
  definition.stages = [{ name: 'only', ...external, limits: { max_in_flight: 3 } }];
  await engine.define(definition);
  await engine.define(definition);
  expect(await slots(engine)).toBe(2);
  const [third] = (await worker.take()) as [Claimed];
  expect(await worker.take()).toEqual([]);
  await resume(engine, [jobEnd(job, 'job-1')]);
  const answer = await worker.complete([completed(started), completed(third)], 10);
  expect(answer.batch).toHaveLength(2);
});

test('a rate hands out its burst, then as many as fit into the time, and says how long to wait', async ({ engine }) => {
  await only(engine, { rate: { count: 10, per_seconds: 5, burst: 4 } });
  await engine.queued('only', 20);
  const worker = await Worker.of(engine, 'only');
  expect(await worker.take(50)).toHaveLength(4);
  expect(await worker.claim(50)).toMatchObject({ status: 'empty', wait_ms: 500 });
  await engine.advance('200 milliseconds');
  expect(await worker.claim(50)).toMatchObject({ status: 'empty', wait_ms: 300 });
  await engine.advance('300 milliseconds');
  expect(await worker.take(50)).toHaveLength(1);
  await engine.advance('1.5 seconds');
  expect(await worker.take(50)).toHaveLength(3);
  await engine.advance('1 hour');
  expect(await (await Worker.of(engine, 'only')).take(50)).toHaveLength(4);
});

test('a rate counts what all workers take, and a lower one applies at once', async ({ engine }) => {
  const definition = await only(engine, { rate: { count: 6, per_seconds: 60 } });
  await engine.queued('only', 20);
  const [one, two] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  expect(await one.take(2)).toHaveLength(2);
  expect(await two.take(10)).toHaveLength(4);
  expect(await one.take()).toEqual([]);
  await engine.advance('10 seconds');
  definition.stages = [{ name: 'only', max_workers: 10, limits: { rate: { count: 1, per_seconds: 60 } } }];
  await engine.define(definition);
  expect(await one.claim()).toMatchObject({ status: 'empty', wait_ms: 50_000 });
});

test('a rate slower than the sweep is served by its wakes', async ({ engine }) => {
  await engine.configureWakeUps();
  await only(engine, { rate: { count: 1, per_seconds: 60 } });
  await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  expect(await worker.take()).toHaveLength(1);
  expect(await worker.leave()).toMatchObject({ left: true });
  await engine.advance('30 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 0 });
  await engine.advance('30 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 1 });
});

test('a stage takes no more than a later one has room for, what is in work on the way included', async ({ engine }) => {
  const [first, ...rest] = chain(['first', 'second', 'third'], { max_workers: 5 });
  const limits = { back_pressure: { stage: 'third', backlog: 3 } };
  await engine.pipeline([{ name: 'first', ...first, limits }, ...rest]);
  await engine.queued('first', 5);
  const worker = await Worker.of(engine, 'first');
  const items = await worker.take(2);
  expect(await worker.take(3)).toHaveLength(1);
  await worker.report(...items.map((item) => completed(item)));
  expect(await worker.claim()).toMatchObject({ status: 'empty', wait_ms: 1000 });
  const second = await Worker.of(engine, 'second');
  await second.report(...(await second.take()).map((item) => completed(item)));
  expect(await worker.claim()).toMatchObject({ status: 'empty', wait_ms: 1000 });
  expect(await worker.leave()).toMatchObject({ left: true });
  const third = await Worker.of(engine, 'third');
  const item = await third.takeOne();
  expect(await (await Worker.of(engine, 'first')).take(1)).toEqual([]);
  await third.report(completed(item));
  expect(await (await Worker.of(engine, 'first')).take()).toHaveLength(1);
});

test('the strictest of several limits decides', async ({ engine }) => {
  const rate = { count: 5, per_seconds: 1, burst: 5 };
  await only(engine, { max_in_flight: 3, rate });
  await engine.queued('only', 20);
  const worker = await Worker.of(engine, 'only');
  const items = await worker.take(50);
  expect(items).toHaveLength(3);
  const answer = await worker.complete(
    items.map((item) => completed(item)),
    50,
  );
  expect(answer.batch).toHaveLength(2);
  expect(await worker.claim(50)).toMatchObject({ wait_ms: 200 });
});

test('a blocked stage neither keeps its worker nor wakes, also for what is queued meanwhile', async ({ engine }) => {
  await engine.configureWakeUps();
  await only(engine, { max_in_flight: 1 }, external);
  await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  await worker.report(waiting(await worker.takeOne(), 'job-1'));
  expect(await worker.leave()).toMatchObject({ left: true });
  const before = (await wokenStages(engine)).length;
  await engine.advance('20 seconds');
  await engine.queued('only', 1);
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 0 });
  expect(await wokenStages(engine)).toHaveLength(before);
});

test('a worker that hands over a blocked stage names it not', async ({ engine }) => {
  await only(engine, { rate: { count: 1, per_seconds: 60 } });
  await engine.queued('only', 3);
  const worker = await Worker.of(engine, 'only');
  await worker.complete([completed(await worker.takeOne())]);
  expect(await worker.leave(true)).toEqual({ left: true, wake: [] });
});

test('a stage does not scale out beyond what its limits let it take', async ({ engine }) => {
  await only(engine, { max_in_flight: 4 });
  await engine.queued('only', 20);
  expect((await (await Worker.of(engine, 'only')).claim(2)).wake).toMatchObject([{ stage: 'only' }]);
  expect((await (await Worker.of(engine, 'only')).claim(2)).wake).toEqual([]);
});

test('a follower at its limits is not woken by a completion', async ({ engine }) => {
  const [first, second] = chain(['first', 'second'], { max_workers: 5 });
  const limits = { rate: { count: 1, per_seconds: 60 } };
  await engine.pipeline([
    { name: 'first', ...first },
    { name: 'second', ...second, limits },
  ]);
  await engine.queued('first', 2);
  const worker = await Worker.of(engine, 'first');
  expect((await worker.complete([completed(await worker.takeOne())])).wake).toMatchObject([{ stage: 'second' }]);
  const other = await Worker.of(engine, 'second');
  await other.complete([completed(await other.takeOne())]);
  await other.leave();
  expect((await worker.complete([completed(await worker.takeOne())])).wake).toEqual([]);
});

test('a stage without limits answers no wait', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  expect(await worker.claim(1)).toMatchObject({ status: 'working', wait_ms: null });
});

test('limits that are taken away no longer hold', async ({ engine }) => {
  const definition = await only(engine, { max_in_flight: 1 });
  await engine.queued('only', 5);
  const worker = await Worker.of(engine, 'only');
  expect(await worker.take()).toHaveLength(1);
  definition.stages = [{ name: 'only' }];
  await engine.define(definition);
  expect(await worker.take()).toHaveLength(4);
});

test('an attempt that must be alone is alone at a stage with limits too', async ({ engine }) => {
  await only(engine, { max_in_flight: 5 }, { retry: { backoff: { kind: 'list', seconds: [0] } } });
  await engine.queued('only', 1);
  await (await Worker.of(engine, 'only')).takeOne();
  await engine.advance('61 seconds');
  await engine.sql.query('select millrace.sweep()');
  const worker = await Worker.of(engine, 'only');
  expect(await worker.take()).toMatchObject([{ isolated: true }]);
  await engine.queued('only', 2);
  expect(await worker.take()).toEqual([]);
});

test('an external stage that says nothing has at most a hundred in flight, and another number where it says one', async ({
  engine,
}) => {
  const limits = () => engine.value(`select limits from millrace.stages where name = 'only'`);
  await engine.pipeline([{ name: 'only', ...external }]);
  expect(await limits()).toEqual({ max_in_flight: 100 });
  await engine.queued('only', 120);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(200);
  expect(batch).toHaveLength(100);
  await worker.report(...batch.map((item, n) => waiting(item, `job-${n}`)));
  expect(await worker.take()).toEqual([]);
  await engine.pipeline([{ name: 'only', ...external, limits: { rate: { count: 50, per_seconds: 1 } } }]);
  expect(await limits()).toEqual({ max_in_flight: 100, rate: { count: 50, per_seconds: 1 } });
  expect(await slots(engine)).toBe(100);
  await engine.pipeline([{ name: 'only', ...external, limits: { max_in_flight: 110 } }]);
  expect(await worker.take(200)).toHaveLength(10);
  await engine.pipeline([{ name: 'only', kind: 'function' }]);
  expect(await limits()).toBeNull();
});
