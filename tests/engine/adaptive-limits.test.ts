// A shared limit that learns: halved for all when a service asks for patience, and creeping back by the clock.
import { expect } from 'vitest';
import { chain, type Engine, type Row } from '../support/engine.ts';
import { test } from '../support/shared-limits.ts';
import { type Claimed, completed, failed, Worker } from '../support/worker.ts';

const shared = { limits: { shared: ['scrapes'] }, max_workers: 10, retry: { max_attempts: 9 } };
const state = async (engine: Engine) => (await engine.rows('select * from millrace.shared_limit_state'))[0] as Row;
const rate = async (engine: Engine) => ((await state(engine)).today as { rate: { count: number } }).rate.count;
const refused = (item: Claimed | undefined, seconds?: number, code = 'rate_limited') =>
  failed(item as Claimed, { code, ...(seconds !== undefined && { retry_after_ms: seconds * 1000 }) });

/** Stages of two pipelines under one adaptive limit of 60 a minute, each with plenty to do. */
async function scrapes(engine: Engine, limits: Row = {}): Promise<[Worker, Worker]> {
  await engine.sql.query(`select millrace.define_limit('scrapes', $1)`, [
    JSON.stringify({ rate: { count: 60, per_seconds: 60 }, adaptive: true, ...limits }),
  ]);
  await engine.pipeline(chain(['one'], shared));
  await engine.pipeline(chain(['uno'], shared), {}, 'other');
  await engine.queued('one', 200);
  await engine.queued('uno', 200);
  return [await Worker.of(engine, 'one'), await Worker.of(engine, 'uno', 'other')];
}

test('one refusal halves the rate for all stages at once, and nothing is taken until its time is over', async ({
  engine,
}) => {
  const [one, uno] = await scrapes(engine);
  const [item] = await one.take(20);
  await one.complete([refused(item, 30)]);
  expect(await uno.claim(10)).toMatchObject({ status: 'empty', wait_ms: 30_000 });
  expect(await state(engine)).toMatchObject({
    today: { rate: { count: 30, per_seconds: 60 } },
    learned_share: '0.500',
    learned_from: 'flow.one: rate_limited',
    learned_since: await engine.now(),
  });
  await engine.advance('29 seconds');
  expect(await uno.take(10)).toEqual([]);
  await engine.advance('1 second');
  // One finds out how the service is by then; the others follow by the halved rate.
  expect(await uno.take(10)).toHaveLength(1);
  expect(await one.claim(10)).toMatchObject({ status: 'empty', wait_ms: 2000 });
  await engine.advance('20 seconds');
  expect(await one.take(50)).toHaveLength(10);
});

test('the rate creeps back by a tenth a minute, and what was learned is forgotten then', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const [item] = await one.take(1);
  await one.complete([refused(item, 60)], 1);
  expect(await rate(engine)).toBe(30);
  await engine.advance('1 minute');
  expect(await rate(engine)).toBe(30);
  await engine.advance('59 seconds');
  expect(await rate(engine)).toBe(30);
  await engine.advance('1 second');
  expect(await rate(engine)).toBe(36);
  await engine.advance('3 minutes');
  expect(await rate(engine)).toBe(54);
  expect(await one.take(100)).toHaveLength(54);
  await engine.advance('1 minute');
  expect(await rate(engine)).toBe(60);
  await engine.sql.query('select millrace.sweep()');
  expect(await state(engine)).toMatchObject({ learned_share: null, learned_from: null, learned_since: null });
  expect(await engine.value('select (bucket).lowered_at from millrace.limits where name is not null')).toBeNull();
});

test('refusals of calls that were under way together halve it once, and later ones again', async ({ engine }) => {
  const [one, uno] = await scrapes(engine);
  const batch = await one.take(9);
  const other = await uno.take(9);
  await one.complete([refused(batch[0]), refused(batch[1])]);
  await engine.advance('9 seconds');
  await uno.complete([refused(other[0])], 1);
  expect(await rate(engine)).toBe(30);
  await engine.advance('1 second');
  await uno.complete([refused(other[1])], 1);
  expect(await rate(engine)).toBe(15);
  await engine.advance('10 seconds');
  await one.complete([refused(batch[2], 120)], 1);
  expect(await rate(engine)).toBe(7.5);
  await engine.advance('1 minute');
  // Its time to wait is not over, and neither does it halve again.
  await one.complete([refused(batch[3])], 1);
  expect(await rate(engine)).toBe(7.5);
  expect(Number((await state(engine)).learned_share)).toBe(0.125);
});

test('refusals that halve nothing more do not keep the rest of the rate back', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const batch = await one.take(20);
  await one.complete([refused(batch.pop())]);
  let taken = 0;
  for (let second = 0; second < 8; second += 1) {
    taken += (await one.complete([refused(batch.pop())], 10)).batch.length;
    await engine.advance('1 second');
  }
  // The one token that is left, and half a token a second.
  expect(taken).toBe(4);
});

test('a server that names a time to wait is a refusal too; any other failure is none', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const batch = await one.take(4);
  await one.complete([refused(batch[0], undefined, 'server_error')], 1);
  expect(await rate(engine)).toBe(60);
  await one.complete([completed(batch[1] as Claimed)], 1);
  expect(await rate(engine)).toBe(60);
  await one.complete([refused(batch[2], 5, 'server_error')], 1);
  expect(await state(engine)).toMatchObject({
    learned_from: 'flow.one: server_error',
    refused_until: expect.any(Date),
  });
  expect(await rate(engine)).toBe(30);
});

test('a refusal that no claim comes for is read by the sweep', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const [item] = await one.take(1);
  await one.complete([refused(item, 3600)]);
  expect(await rate(engine)).toBe(60);
  await engine.sql.query('select millrace.sweep()');
  expect(await rate(engine)).toBe(30);
  expect(await engine.rows('select from millrace.limit_refusals')).toEqual([]);
});

test('a limit that does not learn keeps its rate', async ({ engine }) => {
  const [one] = await scrapes(engine, { adaptive: false });
  const [item] = await one.take(1);
  await one.complete([refused(item, 60)], 1);
  expect(await rate(engine)).toBe(60);
  expect(await engine.rows('select from millrace.limit_refusals')).toEqual([]);
});

test('who ends attempts waits for no claim under the limit', async ({ engine }) => {
  const [one, uno] = await scrapes(engine);
  const [item] = await one.take(1);
  await uno.client.query('begin');
  expect(await uno.take(1)).toHaveLength(1);
  expect((await one.complete([refused(item, 60)])).items).toMatchObject([{ verdict: 'accepted' }]);
  await uno.client.query('commit');
  expect(await uno.take(1)).toEqual([]);
});

test('what it learned holds over a new definition while it goes on learning', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const [item] = await one.take(1);
  await one.complete([refused(item, 10)], 1);
  const define = (limits: Row) =>
    engine.sql.query(`select millrace.define_limit('scrapes', $1)`, [JSON.stringify(limits)]);
  await define({ rate: { count: 100, per_seconds: 60 }, adaptive: true });
  expect(await rate(engine)).toBe(50);
  await define({ rate: { count: 100, per_seconds: 60 } });
  expect(await rate(engine)).toBe(100);
  expect(await one.take(10)).toHaveLength(1);
});

test('the doctor tells of a rate that was learned, and it is no fault', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const [item] = await one.take(1);
  await one.complete([refused(item, 60)], 1);
  expect(await engine.rows(`select ok, detail from millrace.doctor() where what like 'shared limit%'`)).toEqual([
    {
      ok: true,
      detail:
        'it learned 0.500 of its rate from flow.one: rate_limited since 2026-11-02 09:00:00, and takes nothing until ' +
        "2026-11-02 09:01:00: select millrace.unthrottle_limit('scrapes') asks again at once",
    },
  ]);
});

test('a rate of one a day that is halved again and again names a time to wait', async ({ engine }) => {
  const [one] = await scrapes(engine, { rate: { count: 1, per_seconds: 86_400, burst: 20 } });
  const batch = await one.take(8);
  for (const item of batch) {
    await one.complete([refused(item, 1)]);
    await engine.sql.query('select millrace.sweep()');
    await engine.advance('11 seconds');
  }
  expect(await state(engine), 'a hundredth is left').toMatchObject({ learned_share: '0.010' });
  expect(await one.take(1)).toHaveLength(1);
  expect(await one.claim(1)).toMatchObject({ status: 'empty', wait_ms: 86_400_000 });
});

test('a clock that is set back by years heeds a service for as long as it asked', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const [item] = await one.take(2);
  await one.complete([refused(item, 60)]);
  await engine.sql.query('select millrace.sweep()');
  await engine.advance('-800 days');
  await engine.sql.query('update millrace.attempts set queue_at = millrace.now() where queue_at > millrace.now()');
  await engine.sql.query('select millrace.sweep()');
  expect(await one.claim(10)).toMatchObject({ status: 'empty', wait_ms: 60_000 });
  await engine.advance('1 minute');
  expect(await one.take(10)).toHaveLength(1);
  await engine.advance('5 minutes');
  expect(await rate(engine)).toBe(60);
});
