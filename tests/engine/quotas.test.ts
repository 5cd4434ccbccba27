// Quotas: what one tenant may start and spend in a window. What exceeds them waits and is not lost, and nobody else waits for it.
import { expect } from 'vitest';
import { defineFamily, numbers, spawnAll, startAtlases } from '../support/children.ts';
import { chain, type Definition, type Engine, each, type Row, test } from '../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../support/sessions.ts';
import { type Claimed, completed, failed, released, Worker } from '../support/worker.ts';

const hourly = (count: number) => ({ column: 'key', starts: { count, per_seconds: 3600 } });
const daily = (usd: number) => ({ column: 'key', spending: { usd, per_seconds: 86_400 } });

/** Defines `flow` (one → two unless given otherwise) over items that have a tenant, with a quota. */
async function bounded(engine: Engine, quota: Row | undefined, stages = chain(['one', 'two'])): Promise<Definition> {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  const definition = { ...(await engine.pipeline(stages)), quota };
  await engine.define(definition);
  return definition;
}

/** Inserts an item for each key, and queues them in one statement. */
async function queueKeys(engine: Engine, ...keys: (string | null)[]): Promise<string[]> {
  const statement = `insert into public.items (key, one_status) select k, 'queued' from unnest($1::text[]) k returning id`;
  return (await engine.rows<{ id: string }>(statement, [keys])).map((row) => row.id);
}

/** Claims until there is nothing to claim, as a worker does that is told to ask again. */
async function takeAll(engine: Engine, stage = 'one', pipeline = 'flow', limit = 1000): Promise<Claimed[]> {
  const worker = await Worker.of(engine, stage, pipeline);
  const taken: Claimed[] = [];
  for (let round = 0; round < 50; round++) {
    const answer = await worker.claim(limit);
    taken.push(...answer.batch);
    if (answer.status === 'empty' && (answer as Row & typeof answer).wait_ms !== 0) return taken;
  }
  throw new Error('the worker was told to ask again and again');
}

/** Takes what may be taken and ends it, each attempt at this price; resolves to the tenants it was of. */
async function work(engine: Engine, stage: string, usd?: number, end: (item: Claimed) => Row = completed): Promise<string[]> {
  const worker = await Worker.of(engine, stage);
  const items = await worker.take(1000);
  const usage = usd === undefined ? {} : { usage: { cost_usd: usd } };
  await worker.complete(items.map((item) => ({ ...end(item), ...usage })));
  return items.map((item) => item.entity.key as string);
}

const repeat = (key: string, count: number): string[] => Array.from({ length: count }, () => key);
const count = (items: Claimed[], key: string) => items.filter((item) => item.entity.key === key).length;
const held = (engine: Engine) =>
  engine.rows('select pipeline, key, kind, used::float8, allowed::float8, held::int from pipeline.quotas');

test('what a tenant starts beyond its quota waits, says so, and begins with the next windows', async ({ engine }) => {
  await bounded(engine, hourly(3));
  const ids = await queueKeys(engine, ...repeat('a', 8), 'b');
  const first = await takeAll(engine);
  expect([count(first, 'a'), count(first, 'b')]).toEqual([3, 1]);
  const waits = await engine.item(ids[5]);
  expect(waits).toMatchObject({ one_status: 'queued', one_retry_count: 0, one_started_at: null });
  expect(waits.one_error).toBe('held back until 2026-11-02 10:00:00 UTC: the quota of 3 starts in 1 hours is used up');
  expect(await held(engine)).toMatchObject([
    { pipeline: 'flow', key: 'a', kind: 'starts', used: 3, allowed: 3, held: 5 },
    { key: 'b', used: 1, held: 0 },
  ]);
  await engine.advance('59 minutes');
  expect(await takeAll(engine)).toEqual([]);
  await engine.advance('1 minute');
  const second = await takeAll(engine);
  expect(second.map((item) => item.entity_id)).toEqual(ids.slice(3, 6));
  expect(await engine.item(ids[5])).toMatchObject({ one_status: 'started', one_error: null });
  await engine.advance('1 hour');
  expect((await takeAll(engine)).map((item) => item.entity_id)).toEqual(ids.slice(6, 8));
  await engine.advance('1 hour');
  await engine.sql.query('select pipeline.sweep()');
  expect(await held(engine)).toEqual([]);
});
