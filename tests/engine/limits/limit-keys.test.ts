// A shared limit with a rate for each key: what one host refuses holds back that host alone.
import { expect } from 'vitest';
import { told } from '../../support/engine/alerts.ts';
import { journal, signIn } from '../../support/engine/operators.ts';
import { test } from '../../support/engine/shared-limits.ts';
import { chain, type Engine, type Row } from '../../support/engine.ts';
import { type Claimed, failed, Worker } from '../../support/worker.ts';

const day = 86_400;
const concurrency = { column: 'url', part: 'host', limit: 50 };
const limits = { shared: ['scrapes'], concurrency };
const perHost = { rate: { count: 100, per_seconds: 60 }, key_rate: { count: 6, per_seconds: 60 } };
const define = (engine: Engine, limit: Row) =>
  engine.sql.query(`select millrace.define_limit('scrapes', $1)`, [JSON.stringify(limit)]);
const hostOf = ({ entity }: Claimed) => new URL(entity.url as string).host;
const hosts = (batch: Claimed[]) => {
  const counted: Record<string, number> = {};
  for (const item of batch) counted[hostOf(item)] = (counted[hostOf(item)] ?? 0) + 1;
  return counted;
};
const refused = (item: Claimed | undefined, seconds: number) =>
  failed(item as Claimed, { code: 'rate_limited', retry_after_ms: seconds * 1000 });
const finding = async (engine: Engine) =>
  (await engine.rows(`select ok, detail from millrace.doctor() where what like 'shared limit%'`))[0] as Row;

/** Two stages under one limit, and so many links of each host at the first. */
async function scrapes(engine: Engine, links: Record<string, number>, limit: Row = perHost): Promise<Worker> {
  await define(engine, limit);
  await engine.sql.query('create table public.items (id bigserial primary key, label text, url text)');
  const shared = { limits, max_workers: 10, retry: { max_attempts: 9, backoff: { kind: 'list', seconds: [1] } } };
  await engine.pipeline([{ name: 'jobs', ...shared }]);
  await engine.pipeline([{ name: 'posts', ...shared }], {}, 'other');
  await queue(engine, 'jobs', links);
  return Worker.of(engine, 'jobs');
}

async function queue(engine: Engine, stage: string, links: Record<string, number>): Promise<void> {
  for (const [host, count] of Object.entries(links)) {
    await engine.sql.query(
      `insert into public.items (url, ${stage}_status) select 'https://' || $1 || '/' || n, 'queued'
       from generate_series(1, $2::int) n`,
      [host, count],
    );
  }
}

test('a host that refuses for a day stops its own links, at every stage, and nobody else’s', async ({ engine }) => {
  const jobs = await scrapes(engine, { 'slow.test': 3, 'fast.test': 3 });
  const batch = await jobs.take(2);
  const slow = batch.find((item) => hostOf(item) === 'slow.test');
  await jobs.complete([refused(slow, day)]);
  await queue(engine, 'posts', { 'slow.test': 2, 'fast.test': 2 });
  const posts = await Worker.of(engine, 'posts', 'other');
  expect(hosts(await posts.take(10))).toEqual({ 'fast.test': 2 });
  expect(hosts(await jobs.take(10))).toEqual({ 'fast.test': 2 });
  await engine.advance('23 hours');
  expect(await jobs.take(10)).toEqual([]);
  await engine.advance('1 hour');
  expect(hosts(await jobs.take(10))).toEqual({ 'slow.test': 3 });
});

test('no host begins faster than its rate, over all its stages', async ({ engine }) => {
  const jobs = await scrapes(engine, { 'a.test': 9, 'b.test': 2 });
  await queue(engine, 'posts', { 'a.test': 9 });
  const posts = await Worker.of(engine, 'posts', 'other');
  expect(hosts(await jobs.take(50))).toEqual({ 'a.test': 6, 'b.test': 2 });
  // Also where some of the host are in work: the worker need not ask again before there is room.
  expect(await jobs.claim(50)).toMatchObject({ status: 'empty', wait_ms: 10_000 });
  expect(await posts.claim(50)).toMatchObject({ status: 'empty', batch: [], wait_ms: 10_000 });
  await engine.advance('20 seconds');
  expect(hosts(await posts.take(1))).toEqual({ 'a.test': 1 });
  expect(hosts(await jobs.take(50))).toEqual({ 'a.test': 1 });
  expect(await jobs.take(50)).toEqual([]);
});

test('workers that claim at once never begin more of a host than its rate says', async ({ engine }) => {
  const first = await scrapes(engine, { 'a.test': 40, 'b.test': 40 });
  const workers = [first, ...(await Promise.all([1, 2, 3].map(() => Worker.of(engine, 'jobs'))))];
  const begun: Record<string, number> = {};
  for (let minute = 1; minute <= 3; minute++) {
    for (let round = 0; round < 4; round++) {
      const batches = await Promise.all(workers.map((worker) => worker.take(5)));
      for (const [host, count] of Object.entries(hosts(batches.flat()))) begun[host] = (begun[host] ?? 0) + count;
    }
    expect(begun).toEqual({ 'a.test': 6 * minute, 'b.test': 6 * minute });
    await engine.advance('1 minute');
  }
});

test('an attempt for which a batch has no room is given back to its host’s rate', async ({ engine }) => {
  await engine.sql.query(`update millrace.settings set value = '10000' where name = 'batch_bytes'`);
  const jobs = await scrapes(engine, {});
  await engine.sql.query(
    `insert into public.items (url, label, jobs_status)
     select 'https://a.test/' || n, repeat('x', 4000), 'queued' from generate_series(1, 6) n`,
  );
  const taken: number[] = [];
  for (let claim = 0; claim < 6; claim++) taken.push((await jobs.take(6)).length);
  expect(taken.reduce((sum, count) => sum + count)).toBe(6);
  expect(taken[0]).toBeLessThan(6);
});

test('a key with its whole rate has no row', async ({ engine }) => {
  const jobs = await scrapes(engine, { 'a.test': 50 });
  await jobs.take(6);
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.rows('select key from millrace.buckets order by key')).toEqual([{ key: '' }, { key: '0a.test' }]);
  await engine.advance('1 minute');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.rows('select from millrace.buckets')).toEqual([]);
  expect(await jobs.take(50)).toHaveLength(6);
});

test('the doctor and an alert say which host refuses, since when and until when', async ({ engine }) => {
  const jobs = await scrapes(engine, { 'slow.test': 3 });
  await jobs.complete([refused((await jobs.take(1))[0], 60)]);
  await engine.sql.query('select millrace.sweep()');
  expect(await finding(engine)).toMatchObject({ ok: true, detail: expect.stringContaining('slow.test') });
  await engine.advance('1 minute');
  await jobs.complete([refused((await jobs.take(1))[0], day)]);
  await engine.sql.query('select millrace.sweep()');
  const said = 'slow.test takes nothing until 2026-11-03 09:01:00: a service asked for patience';
  expect(await finding(engine)).toEqual({
    ok: false,
    detail: `${said}: select millrace.unthrottle_limit('scrapes') asks again at once`,
  });
  await engine.advance('1 minute');
  await engine.sql.query('select millrace.sweep()');
  expect(await told(engine, 'refused')).toMatchObject(
    ['jobs of flow', 'posts of other'].map((place) => ({
      stage: place.split(' ')[0],
      message: `services hold ${place} back for 1 day 1 minute, above 10 minutes: limit scrapes: ${said}`,
      playbook: 'docs/playbooks/throttle.md',
    })),
  );
  await engine.sql.query(`select millrace.unthrottle_limit('scrapes')`);
  for (let minute = 0; minute < 7; minute++) {
    await engine.advance('1 minute');
    await engine.sql.query('select millrace.sweep()');
  }
  expect(await engine.rows(`select from millrace.alerts where rule = 'refused' and resolved_at is null`)).toEqual([]);
  expect(await finding(engine)).toEqual({ ok: true, detail: 'as declared' });
});

test('one verb ends all pauses, and is told where there is none', async ({ engine }) => {
  const jobs = await scrapes(engine, { 'a.test': 4, 'b.test': 4 });
  await jobs.complete((await jobs.take(2)).map((item) => refused(item, day)));
  expect(await jobs.take(12)).toEqual([]);
  const ann = await signIn(engine, 'ann', {});
  await ann.act('unthrottle', { limit: 'scrapes' });
  expect(hosts(await jobs.take(12))).toEqual({ 'a.test': 3, 'b.test': 3 });
  expect(await journal(engine)).toMatchObject([{ verb: 'unthrottle', subject: 'ann', outcome: { limit: 'scrapes' } }]);
  expect(await engine.refusal(`select millrace.unthrottle_limit('scrapes')`)).toMatchObject({
    code: 'MR004',
    message: 'shared limit scrapes has no throttle, and no service has paused it',
  });
});

test('a key rate at a stage without keys is refused, whichever is defined first', async ({ engine }) => {
  await define(engine, { key_rate: { count: 1, per_seconds: 1 } });
  const without = chain(['one'], { limits: { shared: ['scrapes'] } });
  await expect(engine.pipeline(without)).rejects.toMatchObject({
    code: 'MR001',
    message: 'shared limit scrapes: limits.key_rate needs a key, but flow.one has no limits.concurrency',
  });
  await define(engine, { rate: { count: 1, per_seconds: 1 } });
  await engine.pipeline(without);
  await expect(define(engine, { key_rate: { count: 1, per_seconds: 1 } })).rejects.toMatchObject({
    code: 'MR001',
    message: 'shared limit scrapes: limits.key_rate needs a key, but flow.one has no limits.concurrency',
  });
});

test('a limit of keys that is defined anew holds at once, and nothing stays asleep', async ({ engine }) => {
  const jobs = await scrapes(engine, { 'a.test': 9 }, { key_rate: { count: 1, per_seconds: 3600 } });
  expect(await jobs.take(9)).toHaveLength(1);
  expect(await jobs.take(9)).toEqual([]);
  await define(engine, { rate: { count: 100, per_seconds: 1 } });
  expect(await jobs.take(9)).toHaveLength(8);
});
