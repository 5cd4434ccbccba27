// The money for attempts under a shared limit in a window: checked before work is dispatched, by what an attempt costs on average.
import { expect } from 'vitest';
import { test } from '../../support/engine/shared-limits.ts';
import { chain, type Engine, type Row } from '../../support/engine.ts';
import { begin, untilBlocked } from '../../support/sessions.ts';
import { type Claimed, completed, failed, Worker } from '../../support/worker.ts';

const shared = { limits: { shared: ['model'] }, max_workers: 10, batch_size: 500 };
const cost = (report: Row, usd: number, tokens = 0): Row => ({
  ...report,
  usage: { cost_usd: usd, input_tokens: tokens, output_tokens: 0 },
});
const isSpent = (engine: Engine, stage = 'one') =>
  engine.value<boolean>('select millrace.is_spent(s) from millrace.stages s where s.name = $1', [stage]);
const sweep = (engine: Engine) => engine.sql.query('select millrace.sweep()');

async function budget(engine: Engine, spending: Row, stages = ['one']): Promise<void> {
  const limits = JSON.stringify({ spending: { per_seconds: 3600, ...spending } });
  await engine.sql.query(`select millrace.define_limit('model', $1)`, [limits]);
  await engine.pipeline(stages.map((name) => ({ name, ...shared })));
}

/** Lets a stage do one attempt of this cost, by which its average is known. */
async function learnAverage(engine: Engine, worker: Worker, usd: number, tokens = 0): Promise<void> {
  const [item] = await worker.take(10);
  await worker.complete([cost(completed(item as Claimed), usd, tokens)]);
  await sweep(engine);
}

test('a stage of which nobody knows what it costs has one in flight, until it has named a price', async ({
  engine,
}) => {
  await budget(engine, { usd: 5 });
  await engine.queued('one', 20);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take(10);
  expect(batch).toHaveLength(1);
  expect(await worker.claim(10)).toMatchObject({ status: 'empty', wait_ms: 1000 });
  await worker.complete(batch.map((item) => completed(item)));
  await sweep(engine);
  const [next, ...others] = await worker.take(10);
  expect(others).toEqual([]);
  await worker.complete([cost(completed(next as Claimed), 0.2)]);
  await sweep(engine);
  // Two attempts came to 0.2 dollars, so that the 4.8 that are left pay for 48.
  expect(await worker.take(100)).toHaveLength(18);
});

test('a stage that says what to expect fills its share of a budget at once, until its average is known', async ({
  engine,
}) => {
  const limits = JSON.stringify({ spending: { per_seconds: 3600, usd: 1 } });
  await engine.sql.query(`select millrace.define_limit('model', $1)`, [limits]);
  await engine.pipeline([{ name: 'one', ...shared, limits: { shared: ['model'], expected_usd: 0.05 } }]);
  await engine.queued('one', 60);
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take(50);
  expect(batch).toHaveLength(20);
  expect(await worker.claim(10)).toMatchObject({ status: 'empty' });
  await worker.complete(batch.map((item) => cost(completed(item), 0.02)));
  await sweep(engine);
  // The average of 0.02 counts now: the 0.6 that are left pay for thirty.
  expect(await worker.take(50)).toHaveLength(30);
});

test('a thousand that are ready to be called cannot overspend a budget', async ({ engine }) => {
  await budget(engine, { usd: 10 });
  await engine.queued('one', 1200);
  const workers = [await Worker.of(engine, 'one'), await Worker.of(engine, 'one'), await Worker.of(engine, 'one')];
  await learnAverage(engine, workers[0] as Worker, 0.01);
  await engine.sql.query(`update millrace.settings set value = '99999999' where name = 'batch_bytes'`);
  const batches: Claimed[][] = [];
  for (const worker of workers) batches.push(await worker.take(500));
  expect(batches.map((batch) => batch.length)).toEqual([500, 499, 0]);
  expect(await isSpent(engine)).toBe(false);
  for (const [at, batch] of batches.entries()) {
    await workers[at]?.complete(batch.map((item) => cost(completed(item), 0.01)));
  }
  expect(await isSpent(engine)).toBe(true);
  const [row] = await engine.rows('select spent_usd, spent_for from millrace.shared_limit_state');
  expect(Number(row?.spent_usd)).toBe(10);
  expect(row?.spent_for).toEqual(['flow.one']);
  expect(await workers[0]?.take(500)).toEqual([]);
});

test('of two workers at the last of a budget, one gets what it pays for, and the other nothing', async ({ engine }) => {
  await budget(engine, { usd: 1 });
  await engine.queued('one', 30);
  const [first, second] = [await Worker.of(engine, 'one'), await Worker.of(engine, 'one')];
  await learnAverage(engine, first, 0.1);
  await second.claim(0);
  await first.client.query('begin');
  expect(await first.take(7)).toHaveLength(7);
  const late = begin(second.take(7));
  await untilBlocked(engine, second.client);
  await first.client.query('commit');
  expect(await late).toHaveLength(2);
  expect(await first.take(7)).toEqual([]);
});

test('of workers of two stages at the last of their budget, the second waits and gets what is left', async ({
  engine,
}) => {
  await budget(engine, { usd: 1 }, ['one', 'two']);
  await engine.queued('one', 30);
  await engine.queued('two', 30);
  const [one, two] = [await Worker.of(engine, 'one'), await Worker.of(engine, 'two')];
  await learnAverage(engine, one, 0.1);
  await learnAverage(engine, two, 0.1);
  await one.client.query('begin');
  expect(await one.take(7)).toHaveLength(7);
  const late = begin(two.take(7));
  await untilBlocked(engine, two.client);
  await one.client.query('commit');
  expect(await late).toHaveLength(1);
  expect(await one.take(7)).toEqual([]);
});

test('an attempt whose result ends the run under a name is paid for too', async ({ engine }) => {
  await engine.sql.query(`select millrace.define_limit('model', '{"spending": {"usd": 1, "per_seconds": 3600}}')`);
  await engine.pipeline([{ name: 'one', ends: [{ name: 'rejected', when: '$.result.ok == false' }], ...shared }]);
  await engine.queued('one', 3);
  const worker = await Worker.of(engine, 'one');
  const [item] = await worker.take(1);
  await worker.complete([cost(completed(item as Claimed, { ok: false }), 1)]);
  expect(await isSpent(engine)).toBe(true);
});

test('stages share a budget, each by its own average', async ({ engine }) => {
  await budget(engine, { usd: 10 }, ['one', 'two']);
  await engine.queued('one', 50);
  await engine.queued('two', 50);
  const [one, two] = [await Worker.of(engine, 'one'), await Worker.of(engine, 'two')];
  await learnAverage(engine, one, 2);
  await learnAverage(engine, two, 1);
  expect(await one.take(2)).toHaveLength(2);
  // 3 are spent, 4 are bound by what is in flight at the other stage.
  expect(await two.take(10)).toHaveLength(3);
  expect(await one.take(10)).toEqual([]);
});

test('tokens are bounded as dollars are, and the lesser of both counts', async ({ engine }) => {
  await budget(engine, { usd: 100, tokens: 1000 });
  await engine.queued('one', 50);
  const worker = await Worker.of(engine, 'one');
  await learnAverage(engine, worker, 1, 100);
  expect(await worker.take(50)).toHaveLength(9);
});

test('where attempts name tokens and no price, dollars bound nothing, and do not hold the stage up', async ({
  engine,
}) => {
  await budget(engine, { usd: 1, tokens: 1000 });
  await engine.queued('one', 50);
  const worker = await Worker.of(engine, 'one');
  await learnAverage(engine, worker, 0, 100);
  expect(await worker.take(50)).toHaveLength(9);
});

test('failed attempts are paid for too', async ({ engine }) => {
  await budget(engine, { usd: 1 });
  await engine.queued('one', 5);
  const worker = await Worker.of(engine, 'one');
  const [item] = await worker.take(10);
  await worker.complete([cost(failed(item as Claimed, { permanent: true }), 1)]);
  expect(await isSpent(engine)).toBe(true);
  expect(await worker.take(10)).toEqual([]);
});

test('with the next window there is a budget again, and what is settled in it counts there', async ({ engine }) => {
  await engine.configureWakeUps();
  await budget(engine, { usd: 1 });
  await engine.queued('one', 50);
  const worker = await Worker.of(engine, 'one');
  await learnAverage(engine, worker, 0.5);
  const [item] = await worker.take(10);
  expect(item).toBeDefined();
  await engine.advance('1 hour');
  // Half a dollar is still in flight.
  expect(await worker.take(10)).toHaveLength(1);
  await worker.complete([cost(completed(item as Claimed), 0.5)]);
  expect(await worker.take(10)).toEqual([]);
  await worker.leave();
  await engine.advance('1 hour');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 1 });
  expect(await engine.rows('select from millrace.limit_uses')).toEqual([]);
});

test('the sweep adds up what was used, and loses nothing', async ({ engine }) => {
  await budget(engine, { usd: 100 });
  await engine.queued('one', 30);
  const worker = await Worker.of(engine, 'one');
  await learnAverage(engine, worker, 1);
  for (const _ of [1, 2, 3]) {
    const [item] = await worker.take(1);
    await worker.complete([cost(completed(item as Claimed), 2)]);
    await sweep(engine);
  }
  expect(await engine.rows('select kind, used::float, summed from millrace.limit_uses')).toEqual([
    { kind: 'usd', used: 7, summed: true },
  ]);
});

test('a budget that pays for less than one attempt is spent before it begins', async ({ engine }) => {
  await budget(engine, { usd: 3 });
  await engine.queued('one', 5);
  const worker = await Worker.of(engine, 'one');
  await learnAverage(engine, worker, 2);
  expect(await isSpent(engine)).toBe(true);
  await engine.advance('1 hour');
  expect(await isSpent(engine)).toBe(false);
  await engine.sql.query(`select millrace.define_limit('model', '{"spending": {"usd": 1.9, "per_seconds": 3600}}')`);
  expect(await isSpent(engine)).toBe(true);
  expect(await worker.take()).toEqual([]);
});

test('a stage without limits, or with its own alone, is never spent', async ({ engine }) => {
  await engine.pipeline([...chain(['one']), { name: 'two', limits: { max_in_flight: 1 } }]);
  expect(await isSpent(engine)).toBe(false);
  expect(await isSpent(engine, 'two')).toBe(false);
});

test('a throttle with a shorter window forgets nothing of the one that was declared', async ({ engine }) => {
  await budget(engine, { usd: 5, per_seconds: 86_400 });
  await engine.queued('one', 20);
  const worker = await Worker.of(engine, 'one');
  await learnAverage(engine, worker, 4);
  await engine.advance('2 hours');
  await engine.sql.query(
    `select millrace.throttle_limit('model', '{"spending": {"usd": 9, "per_seconds": 3600}}',
       millrace.now() + interval '1 hour', 'it is dear today')`,
  );
  const spent = () => engine.value('select spent_usd::float8 from millrace.shared_limit_state');
  await sweep(engine);
  expect(await spent()).toBe(0);
  await learnAverage(engine, worker, 0.5);
  expect(await spent()).toBe(0.5);
  await engine.sql.query(`select millrace.unthrottle_limit('model')`);
  expect(await spent()).toBe(4.5);
  await sweep(engine);
  expect(await spent()).toBe(4.5);
  expect(await worker.take(10)).toEqual([]);
});

test('spending before the clock was set back counts in its own window, and in no other', async ({ engine }) => {
  await budget(engine, { usd: 5 });
  await engine.queued('one', 20);
  const worker = await Worker.of(engine, 'one');
  await engine.advance('400 days');
  await learnAverage(engine, worker, 5);
  expect(await isSpent(engine)).toBe(true);
  await engine.advance('-400 days');
  expect(await isSpent(engine)).toBe(false);
  await learnAverage(engine, worker, 4);
  await sweep(engine);
  await engine.advance('1 hour');
  await sweep(engine);
  expect(await engine.value('select spent_usd::int from millrace.shared_limit_state')).toBe(0);
  await engine.advance('400 days');
  expect(await engine.value('select spent_usd::int from millrace.shared_limit_state')).toBe(0);
  await engine.advance('-1 hour');
  expect(await engine.value('select spent_usd::int from millrace.shared_limit_state')).toBe(5);
});
