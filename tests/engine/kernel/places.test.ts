// How many rows of a stage are in work at once: as many as its definition says, also while one isolate hands over to the next.
import { expect } from 'vitest';
import { type Engine, test } from '../../support/engine.ts';
import { begin, untilBlocked } from '../../support/sessions.ts';
import { completed, Worker } from '../../support/worker.ts';

const slotsOf = (engine: Engine) =>
  engine
    .rows("select concurrency, batch_size, max_workers from millrace.stages where name = 'only'")
    .then(([row]) => row);

test('a worker that has left finishes what it holds, and its successor takes the places that become free', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only', batch_size: 4, max_workers: 1 }]);
  await engine.queued('only', 10);
  const [first, second] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  const held = await first.take(4);
  await first.leave(true);
  expect(await second.claim(4)).toMatchObject({ status: 'empty', batch: [], wait_ms: 100 });
  await first.complete(
    held.slice(0, 3).map((item) => completed(item)),
    0,
  );
  expect(await second.take(4)).toHaveLength(3);
  await first.complete(
    held.slice(3).map((item) => completed(item)),
    0,
  );
  expect(await second.take(1)).toHaveLength(1);
  expect(await engine.value('select count(*)::int from millrace.workers where left_at is null')).toBe(1);
});

test('the places of a worker that died are free once it is no longer heard of', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', batch_size: 4, max_workers: 1 }]);
  await engine.queued('only', 8);
  const [first, second] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  await first.take(4);
  await first.leave(true);
  expect(await second.take(4)).toEqual([]);
  await engine.advance('16 seconds');
  expect(await second.take(4)).toHaveLength(4);
});

test('a worker that has left wakes somebody for the places that it frees, if nobody is there', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', batch_size: 2, max_workers: 1 }]);
  await engine.queued('only', 4);
  const worker = await Worker.of(engine, 'only');
  const held = await worker.take(2);
  expect((await worker.leave(true)).wake).toHaveLength(1);
  await engine.sql.query('delete from millrace.wake_ups');
  const { wake } = await worker.complete(
    held.slice(1).map((item) => completed(item)),
    0,
  );
  expect(wake).toMatchObject([{ stage: 'only' }]);
});

test('a stage that says concurrency has so many in work, however many workers ask at once', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', concurrency: 70 }]);
  expect(await slotsOf(engine)).toEqual({ concurrency: 70, batch_size: 35, max_workers: 2 });
  await engine.queued('only', 100);
  const [first, second] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  await first.claim(0);
  await second.claim(0);
  await first.client.query('begin');
  const held = await first.take(60);
  expect(held).toHaveLength(60);
  const beside = begin(second.take(35));
  await Promise.race([beside, untilBlocked(engine, second.client)]);
  await first.client.query('commit');
  expect(await beside).toHaveLength(10);
  expect(
    (
      await first.complete(
        held.slice(0, 5).map((item) => completed(item)),
        5,
      )
    ).batch,
  ).toHaveLength(5);
  expect((await second.claim(30)).batch).toEqual([]);
});

test('the engine chooses batch and workers by what rows have taken, and keeps to what a person has chosen', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only', concurrency: 200 }]);
  expect(await slotsOf(engine)).toEqual({ concurrency: 200, batch_size: 50, max_workers: 4 });
  const worker = await Worker.of(engine, 'only');
  await worker.claim(0);
  await worker.leave(true, { cpuMs: 50, bytes: 1_000 });
  expect(await slotsOf(engine)).toEqual({ concurrency: 200, batch_size: 20, max_workers: 10 });
  const heavy = await Worker.of(engine, 'only');
  expect((await heavy.claim(0)).stage).toMatchObject({ batch_size: 20, row_cpu_ms: 50 });
  await heavy.leave(true, { cpuMs: 2, bytes: 16 * 1024 * 1024 });
  expect(await slotsOf(engine)).toEqual({ concurrency: 200, batch_size: 4, max_workers: 50 });
  await engine.pipeline([{ name: 'only', concurrency: 8 }]);
  expect(await slotsOf(engine)).toEqual({ concurrency: 8, batch_size: 4, max_workers: 2 });
  await engine.pipeline([{ name: 'only', batch_size: 7, max_workers: 3 }]);
  expect(await slotsOf(engine)).toEqual({ concurrency: null, batch_size: 7, max_workers: 3 });
});

test('a function that ended without a word has taught its stage that rows cost more, twice as much at most', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only', batch_size: 50 }]);
  const costs = () =>
    engine.rows('select round(cpu_ms::numeric, 1)::float as cpu_ms, lives_cut from millrace.row_costs');
  const die = async (taken: number) => {
    await engine.queued('only', taken);
    await (await Worker.of(engine, 'only')).take(taken);
    await engine.advance('61 seconds');
    await engine.sql.query('select millrace.sweep()');
  };
  await die(50);
  expect(await costs()).toEqual([{ cpu_ms: 12, lives_cut: 1 }]);
  await engine.sql.query('update millrace.attempts set isolated = false');
  await die(50);
  expect(await costs()).toEqual([{ cpu_ms: 24, lives_cut: 2 }]);
});

test('an outage that ends many functions at once teaches their stage once', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', batch_size: 50, max_workers: 9 }]);
  await engine.queued('only', 400);
  for (let worker = 0; worker < 8; worker++) await (await Worker.of(engine, 'only')).take(50);
  await engine.advance('61 seconds');
  await engine.sweepAll();
  expect(await engine.rows('select cpu_ms from millrace.row_costs')).toEqual([{ cpu_ms: 12 }]);
});

test('renewing and completing take the worker first, and so never wait for each other', async ({ engine }) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(2);
  const timer = await engine.database.connect('service_role');
  await worker.client.query('begin');
  await worker.claim(0);
  const renewed = begin(timer.query('select public.millrace_renew($1, $2)', [worker.id, []]));
  await untilBlocked(engine, timer);
  await worker.complete(batch.map((item) => completed(item)));
  await worker.client.query('commit');
  await renewed;
  expect(await engine.value('select in_work from millrace.workers')).toBe(0);
});

test('a completion that says goodbye signs its worker off when there is nothing for it, and only then', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const [one] = await worker.take(1);
  const answer = await worker.goodbye([completed(one as never)], 1);
  expect(answer).toMatchObject({ left: false, batch: [{ isolated: false }] });
  expect(await worker.goodbye(answer.batch.map((item) => completed(item)))).toMatchObject({ left: true });
  expect(await engine.value('select count(*)::int from millrace.workers where left_at is null')).toBe(0);
});

test('a worker that says goodbye while a transaction queues stays, or that transaction wakes another', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 1);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(1);
  const user = await engine.database.connect();
  await user.query('begin');
  await user.query(`insert into public.items (only_status) values ('queued')`);
  expect(await worker.goodbye(batch.map((item) => completed(item)))).toMatchObject({ left: false });
  await user.query('commit');
  expect(await worker.take(1)).toHaveLength(1);
});
