// A service that asks for patience pauses the shared rates of its stage until the time that it named.
import { expect } from 'vitest';
import { test } from '../../support/engine/shared-limits.ts';
import { chain, type Engine, type Row } from '../../support/engine.ts';
import { type Claimed, failed, Worker } from '../../support/worker.ts';

const shared = { limits: { shared: ['scrapes'] }, max_workers: 10, retry: { max_attempts: 9 } };
const state = async (engine: Engine) => (await engine.rows('select * from millrace.shared_limit_state'))[0] as Row;
const refused = (item: Claimed | undefined, seconds?: number, code = 'rate_limited') =>
  failed(item as Claimed, { code, ...(seconds !== undefined && { retry_after_ms: seconds * 1000 }) });

/** Stages of two pipelines under one limit of 60 a minute, each with plenty to do. */
async function scrapes(engine: Engine): Promise<[Worker, Worker]> {
  await engine.sql.query(`select millrace.define_limit('scrapes', '{"rate": {"count": 60, "per_seconds": 60}}')`);
  await engine.pipeline(chain(['one'], shared));
  await engine.pipeline(chain(['uno'], shared), {}, 'other');
  await engine.queued('one', 200);
  await engine.queued('uno', 200);
  return [await Worker.of(engine, 'one'), await Worker.of(engine, 'uno', 'other')];
}

test('one refusal holds all stages back until its time is over', async ({ engine }) => {
  const [one, uno] = await scrapes(engine);
  const batch = await one.take(20);
  await one.complete([refused(batch[0], 30), refused(batch[1], 10)]);
  expect(await uno.claim(10)).toMatchObject({ status: 'empty', wait_ms: 30_000 });
  expect(await state(engine)).toMatchObject({
    today: { rate: { count: 60, per_seconds: 60 } },
    paused_until: new Date((await engine.now()).getTime() + 30_000),
  });
  await engine.advance('29 seconds');
  expect(await uno.take(10)).toEqual([]);
  await engine.advance('1 second');
  expect(await uno.take(10)).toHaveLength(10);
  await engine.sql.query('select millrace.sweep()');
  expect(await state(engine)).toMatchObject({ paused_until: null });
  await engine.advance('10 minutes');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.rows('select from millrace.limit_uses')).toEqual([]);
});

test('short pauses, one soon after the other, are one that grows until somebody hears of it', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const began = await engine.now();
  const raised = () =>
    engine.rows(`select stage from millrace.alerts where kind = 'refused' and resolved_at is null order by 1`);
  for (let minute = 0; minute < 12; minute += 2) {
    await one.complete([refused(await one.takeOne(), 90)]);
    expect(await engine.rows('select since from millrace.limit_pauses')).toEqual([{ since: began }]);
    await engine.sql.query('select millrace.sweep()');
    expect(await raised()).toEqual(minute < 10 ? [] : [{ stage: 'one' }, { stage: 'uno' }]);
    await engine.advance('1 minute 59 seconds');
    await engine.sql.query('select millrace.sweep()');
    await engine.advance('1 second');
  }
  await engine.advance('20 minutes');
  await engine.sql.query('select millrace.sweep()');
  await one.complete([refused(await one.takeOne(), 90)]);
  expect(await engine.rows('select since from millrace.limit_pauses')).toEqual([{ since: await engine.now() }]);
});

test('only a refusal that names a time is one', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const batch = await one.take(3);
  await one.complete([refused(batch[0]), refused(batch[1], 30, 'server_error')]);
  expect(await state(engine)).toMatchObject({ paused_until: null });
  expect(await one.take(10)).toHaveLength(10);
  await one.complete([refused(batch[2], 86_400 * 30)]);
  expect((await state(engine)).paused_until, 'a day at most').toEqual(
    new Date((await engine.now()).getTime() + 86_400_000),
  );
});

test('a call that ends attempts waits for no claim under the limit', async ({ engine }) => {
  const [one, uno] = await scrapes(engine);
  const [item] = await one.take(1);
  await uno.client.query('begin');
  expect(await uno.take(1)).toHaveLength(1);
  expect((await one.complete([refused(item, 60)])).items).toMatchObject([{ verdict: 'accepted' }]);
  await uno.client.query('commit');
  expect(await uno.take(1)).toEqual([]);
});

test('the doctor tells of a pause, which is no fault for ten minutes', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const batch = await one.take(2);
  await one.complete([refused(batch[0], 60)]);
  const finding = () => engine.rows(`select ok, detail from millrace.doctor() where what like 'shared limit%'`);
  const says = (until: string) =>
    `it takes nothing until ${until}: a service asked for patience: ` +
    `select millrace.unthrottle_limit('scrapes') asks again at once`;
  expect(await finding()).toEqual([{ ok: true, detail: says('2026-11-02 09:01:00') }]);
  await one.complete([refused(batch[1], 3600)]);
  expect(await finding()).toEqual([{ ok: false, detail: says('2026-11-02 10:00:00') }]);
  await engine.sql.query(`select millrace.unthrottle_limit('scrapes')`);
  expect(await finding()).toEqual([{ ok: true, detail: 'as declared' }]);
  expect(await one.take(5)).toHaveLength(5);
});

test('a clock that is set back ends a pause, and fills what is left of a rate', async ({ engine }) => {
  const [one] = await scrapes(engine);
  const batch = await one.take(60);
  await one.complete([refused(batch[0], 60)]);
  await engine.advance('-20 hours');
  await engine.sql.query('update millrace.attempts set queue_at = millrace.now() where queue_at > millrace.now()');
  expect(await one.take(100)).toHaveLength(60);
});
