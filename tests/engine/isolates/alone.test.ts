// A function that ends without a word had many rows in work, and one of them may be why. Each runs alone next, but nothing else
// waits for that: hosts at work go on with what may share them.

import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { remedyOf } from '../../../cli/operate/help-lines.ts';
import { type Engine, test } from '../../support/engine.ts';
import { begin, untilBlocked } from '../../support/sessions.ts';
import { type Claimed, completed, Worker } from '../../support/worker.ts';

const atOnce = { backoff: { kind: 'list', seconds: [0] }, max_attempts: 3 };

const idsOf = (batch: Claimed[]) => batch.map((item) => item.entity_id);
const done = (batch: Claimed[]) => batch.map((item) => completed(item));
const on = (engine: Engine, host: string) => Worker.of(engine, 'only', 'flow', host);

/** Lets the leases of dead workers expire. */
async function expire(engine: Engine): Promise<void> {
  await engine.advance('61 seconds');
  await engine.sql.query('select millrace.sweep()');
}

/** Rows whose function ended without a word while it held all of them. */
async function lost(engine: Engine, count: number): Promise<string[]> {
  await engine.pipeline([{ name: 'only', max_workers: 99, batch_size: 50, retry: atOnce }]);
  const ids = await engine.queued('only', count);
  await (await Worker.of(engine, 'only')).take(count);
  await expire(engine);
  return ids;
}

test('a lost attempt runs alone when nothing else is queued, and its worker takes nothing beside it', async ({
  engine,
}) => {
  await lost(engine, 2);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(10);
  expect(batch).toMatchObject([{ isolated: true, retry_count: 1 }]);
  await engine.queued('only', 5);
  expect(await worker.take(10)).toEqual([]);
  const { batch: next } = await worker.complete(done(batch), 10);
  expect(next.map((item) => item.isolated)).toEqual(Array(5).fill(false));
});

test('forty rows that wait to run alone keep no other row waiting', async ({ engine }) => {
  await lost(engine, 40);
  const fresh = await engine.queued('only', 25);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(10);
  expect(idsOf(batch)).toEqual(fresh.slice(0, 10));
  const { batch: next } = await worker.complete(done(batch), 10);
  expect(idsOf(next)).toEqual(fresh.slice(10, 20));
});

test('a worker that has left, and so is in a retired isolate, runs them one by one beside its successor', async ({
  engine,
}) => {
  const ids = await lost(engine, 2);
  const fresh = await engine.queued('only', 12);
  const [retired, successor] = [await on(engine, randomUUID()), await on(engine, randomUUID())];
  const batch = await retired.take(2);
  await retired.leave(true);
  expect((await retired.claim(10)).batch).toEqual([]);
  await retired.complete(done(batch), 0);
  const first = await retired.take(10);
  expect(idsOf(first)).toEqual([ids[0]]);
  expect(idsOf(await successor.take(10))).toEqual(fresh.slice(2));
  const { batch: second } = await retired.complete(done(first), 10);
  expect(idsOf(second)).toEqual([ids[1]]);
  expect((await retired.complete(done(second), 10)).batch).toEqual([]);
});

test('an attempt that was lost alone is the first of the next idle host, and of no retired one', async ({ engine }) => {
  const ids = await lost(engine, 1);
  await (await Worker.of(engine, 'only')).take(1);
  await expire(engine);
  const fresh = await engine.queued('only', 4);
  const retired = await Worker.of(engine, 'only');
  await retired.claim(0);
  await retired.leave(true);
  expect(await retired.take(10)).toEqual([]);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(10);
  expect(idsOf(batch)).toEqual(ids);
  expect(idsOf((await worker.complete(done(batch), 10)).batch)).toEqual(fresh);
});

test('of forty rows in one function, the one that ends it fails as resource_limit, the others after one more try', async ({
  engine,
}) => {
  await engine.pipeline([{ name: 'only', max_workers: 99, batch_size: 50, retry: atOnce }]);
  const ids = await engine.queued('only', 40);
  const tries = new Map<string, number>();
  let most = 0;
  for (;;) {
    const worker = await Worker.of(engine, 'only');
    let batch = await worker.take(40);
    while (batch.length > 0) {
      most = Math.max(most, batch.length);
      for (const id of idsOf(batch)) tries.set(id, (tries.get(id) ?? 0) + 1);
      if (idsOf(batch).includes(ids[17] ?? '')) break;
      ({ batch } = await worker.complete(done(batch), 40));
    }
    if (batch.length === 0) break;
    await expire(engine);
  }
  expect(await engine.rows('select entity_id, error_code from millrace.dead_letters')).toEqual([
    { entity_id: ids[17], error_code: 'resource_limit' },
  ]);
  expect(ids.filter((id) => id !== ids[17]).map((id) => tries.get(id))).toEqual(Array(39).fill(2));
  expect(most).toBe(40);
});

test('a row that is lost in an isolate that others had worn is not blamed for it', async ({ engine }) => {
  const ids = await lost(engine, 1);
  await engine.pipeline([{ name: 'only', max_workers: 99, batch_size: 50, retry: { ...atOnce, max_attempts: 4 } }]);
  await (await Worker.of(engine, 'only')).take(1);
  await expire(engine);
  await engine.sql.query(`update millrace.attempts set queue_at = queue_at + interval '1 hour' where lost_alone`);
  await engine.queued('only', 5);
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(5);
  await engine.sql.query(`update millrace.attempts set queue_at = queue_at - interval '1 hour' where lost_alone`);
  expect(idsOf((await worker.complete(done(batch), 5)).batch)).toEqual(ids);
  await expire(engine);
  const codes = `select error ->> 'code' as code from millrace.attempts where error is not null order by id`;
  expect((await engine.rows(codes)).map(({ code }) => code)).toEqual(['lost_lease', 'lost_lease', 'lost_lease']);
  await (await Worker.of(engine, 'only')).take(1);
  await expire(engine);
  expect((await engine.rows(codes)).at(-1)).toEqual({ code: 'resource_limit' });
  expect(remedyOf('lost_lease')?.remedy, 'what stands beside it').toContain('CPU or memory: give the stage a smaller');
});

test('an attempt that has waited a minute to run alone is the first of the next idle host', async ({ engine }) => {
  const ids = await lost(engine, 1);
  const fresh = await engine.queued('only', 5);
  expect(idsOf(await (await Worker.of(engine, 'only')).take(1))).toEqual(fresh.slice(0, 1));
  await engine.advance('61 seconds');
  expect(idsOf(await (await Worker.of(engine, 'only')).take(10))).toEqual(ids);
});

test('an isolated attempt waits until its host is idle, and another host may take it', async ({ engine }) => {
  await engine.pipeline([{ name: 'only', max_workers: 9, retry: atOnce }]);
  const host = randomUUID();
  const [busy, beside] = [await on(engine, host), await on(engine, host)];
  await engine.queued('only', 1);
  await (await Worker.of(engine, 'only')).take(1);
  await engine.advance('61 seconds');
  await engine.queued('only', 1);
  const batch = await busy.take(1);
  await engine.sql.query('select millrace.sweep()');
  expect(await beside.take(10)).toEqual([]);
  expect(await beside.leave()).toMatchObject({ left: true });
  await busy.complete(done(batch));
  expect(await busy.leave()).toMatchObject({ left: false });
  expect(await busy.take(10)).toMatchObject([{ isolated: true }]);
});

test('while a host runs what must be alone, its other workers take nothing and may leave', async ({ engine }) => {
  await lost(engine, 1);
  const host = randomUUID();
  const [one, two] = [await on(engine, host), await on(engine, host)];
  expect(await one.take(10)).toMatchObject([{ isolated: true }]);
  await engine.queued('only', 3);
  expect(await two.take(10)).toEqual([]);
  expect(await two.leave()).toMatchObject({ left: true });
  expect(await (await Worker.of(engine, 'only')).take(10)).toHaveLength(3);
});

test('two workers of one host that claim at once never run something beside what must be alone', async ({ engine }) => {
  await lost(engine, 1);
  const host = randomUUID();
  const [one, two] = [await on(engine, host), await on(engine, host)];
  await one.claim(0);
  await two.claim(0);
  await one.client.query('begin');
  expect(await one.take(1)).toMatchObject([{ isolated: true }]);
  await engine.queued('only', 3);
  const beside = begin(two.take(10));
  await Promise.race([beside, untilBlocked(engine, two.client)]);
  await one.client.query('commit');
  expect(await beside).toEqual([]);
});
