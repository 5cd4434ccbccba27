// Limits under sessions that race: never exceeded, nobody waits who should not, nothing is forgotten.

import type pg from 'pg';
import { expect } from 'vitest';
import { compiled } from '../../support/definitions.ts';
import { type Engine, type Row, test } from '../../support/engine.ts';
import { begin, jobEnd, openTransaction, untilBlocked } from '../../support/sessions.ts';
import { type Claimed, completed, resume, Worker, waiting } from '../../support/worker.ts';

async function keyed(engine: Engine, limits: Row, options: Row = {}): Promise<void> {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  await engine.pipeline([{ name: 'only', limits, max_workers: 20, ...options }]);
}

const insert = `insert into public.items (key, only_status) select k, 'queued' from unnest($1::text[]) k`;
const perKey = (limit: number) => ({ concurrency: { column: 'key', limit } });
const external = { kind: 'external', completion: { callback: true } };

test('workers that claim at the same time exceed no limit', async ({ engine }) => {
  await keyed(engine, { ...perKey(2), max_in_flight: 7, rate: { count: 30, per_seconds: 60 } });
  const keys = ['a', 'b', 'c', 'd', 'e'];
  await engine.sql.query(insert, [Array.from({ length: 100 }, (_, number) => keys[number % keys.length])]);
  const workers = await Promise.all(Array.from({ length: 8 }, () => Worker.of(engine, 'only')));
  let taken = 0;
  for (let round = 0; round < 8; round++) {
    const batches = await Promise.all(workers.map((worker) => worker.take(3)));
    const busy = await engine.rows<{ key: string; count: number }>(
      `select i.key, count(*)::int from millrace.attempts a join millrace.runs r on r.id = a.run_id
       join public.items i on i.id::text = r.entity_id where a.state = 'started' group by i.key`,
    );
    expect(Math.max(0, ...busy.map((row) => row.count))).toBeLessThanOrEqual(2);
    expect(busy.reduce((sum, row) => sum + row.count, 0)).toBeLessThanOrEqual(7);
    taken += batches.flat().length;
    await Promise.all(workers.map((worker, at) => worker.complete((batches[at] ?? []).map((item) => completed(item)))));
  }
  expect(taken).toBe(30);
});

/** Two workers that have signed on, for which they would take turns. */
async function signedOn(engine: Engine): Promise<[Worker, Worker]> {
  const workers: [Worker, Worker] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  for (const worker of workers) await worker.claim(0);
  return workers;
}

test('a worker that records results never waits for another claim: it is told to come again', async ({ engine }) => {
  await keyed(engine, { max_in_flight: 5 });
  await engine.sql.query(insert, [['a', 'b', 'c']]);
  const [holder, saver] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  const item = await saver.takeOne();
  await holder.client.query('begin');
  await holder.takeOne();
  expect(await saver.complete([completed(item)], 10)).toMatchObject({
    status: 'empty',
    wait_ms: 50,
    items: [{ verdict: 'accepted' }],
  });
  await holder.client.query('rollback');
});

test('a claim waits for another, and sees what it took', async ({ engine }) => {
  await keyed(engine, { max_in_flight: 2 });
  await engine.sql.query(insert, [['a', 'b', 'c']]);
  const [first, second] = await signedOn(engine);
  await first.client.query('begin');
  await first.takeOne();
  const claim = begin(second.take(10));
  await untilBlocked(engine, second.client);
  await first.client.query('commit');
  expect(await claim).toHaveLength(1);
});

test('a claim gives up waiting for one that hangs, and its session’s timeout is as it was', async ({ engine }) => {
  await keyed(engine, { max_in_flight: 2 });
  await engine.sql.query(insert, [['a', 'b']]);
  const [first, second] = await signedOn(engine);
  await first.client.query('begin');
  await first.takeOne();
  await second.client.query('begin');
  const timeout = async () => (await second.client.query('show lock_timeout')).rows;
  const before = await timeout();
  expect(await second.claim()).toMatchObject({ status: 'empty', wait_ms: 50 });
  expect(await timeout()).toEqual(before);
  await second.client.query('commit');
  await first.client.query('commit');
});

test('a transaction that queues waits neither for a claim nor for another that queues the same key', async ({
  engine,
}) => {
  await keyed(engine, perKey(5));
  await engine.sql.query(insert, [['a', 'b']]);
  const worker = await Worker.of(engine, 'only');
  await worker.client.query('begin');
  await worker.take();
  const [one, two] = [await openTransaction(engine), await openTransaction(engine)];
  for (const user of [one, two]) {
    await user.query(`set local lock_timeout = '1ms'`);
    await user.query(insert, [['a', 'b', 'c']]);
  }
  for (const session of [worker.client, one, two]) await session.query('commit');
  expect(await worker.take(50)).toHaveLength(6);
});

test('an attempt that is committed while a claim finds its group empty is found by the next claim', async ({
  engine,
}) => {
  await keyed(engine, perKey(5));
  await engine.sql.query(insert, [['a']]);
  const user = await openTransaction(engine);
  await user.query(insert, [['a']]);
  const worker = await Worker.of(engine, 'only');
  await worker.client.query('begin');
  expect(await worker.take()).toHaveLength(1);
  await user.query('commit');
  await worker.client.query('commit');
  expect(await worker.take()).toHaveLength(1);
});

test('a slot that is freed while a claim finds its key full is found by the next', async ({ engine }) => {
  await keyed(engine, perKey(1), external);
  await engine.sql.query(insert, [['a', 'a']]);
  const worker = await Worker.of(engine, 'only');
  const job = await worker.takeOne();
  await worker.report(waiting(job, 'job-1'));
  await engine.sql.query(insert, [['a']]);
  await worker.client.query('begin');
  expect(await worker.take()).toEqual([]);
  await resume(engine, [jobEnd(job, 'job-1')]);
  await worker.client.query('commit');
  expect(await worker.take()).toHaveLength(1);
});

test('a slot that a report frees before anything is queued behind it is found, though a claim came between', async ({
  engine,
}) => {
  await keyed(engine, perKey(1));
  const [reporting, claiming] = await signedOn(engine);
  await engine.sql.query(insert, [['a']]);
  const item = await reporting.takeOne();
  await reporting.client.query('begin');
  await reporting.complete([completed(item)], 0);
  await engine.sql.query(insert, [['a']]);
  expect(await claiming.take()).toEqual([]);
  await reporting.client.query('commit');
  await engine.expectSound();
  expect(await claiming.take()).toHaveLength(1);
});

/** Pages that a claim of ten touches, in a transaction that is rolled back. */
async function pagesOfClaim(engine: Engine): Promise<number> {
  const { client, id, host } = await Worker.of(engine, 'only');
  return pagesOf(client, `select public.millrace_claim('flow', 'only', '${id}', '${host}', 1, 10)`);
}

/** Pages that a call touches, in a transaction that is rolled back. */
async function pagesOf(client: pg.Client, call: string): Promise<number> {
  let pages = 0;
  // The first run fills the session's caches.
  for (let run = 0; run < 2; run++) {
    await client.query('begin');
    const { rows } = await client.query(`explain (analyze, buffers, format json) ${call}`);
    const [{ Plan: plan }] = rows[0]['QUERY PLAN'];
    pages = plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
    await client.query('rollback');
  }
  return pages;
}

const backlogs: [string, (size: number) => string[], Row][] = [
  ['one key', (size) => Array.from({ length: size }, () => 'a'), {}],
  ['a key each', (size) => Array.from({ length: size }, (_, number) => `key-${number}`), {}],
  ['keys at their limit', (size) => Array.from({ length: size }, (_, number) => `key-${number % 100}`), { full: true }],
];

test.for(backlogs)('a claim does not cost more the more is queued: %s', async ([, keysOf, { full }], { engine }) => {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  await engine.pipeline([{ name: 'only', limits: perKey(full ? 1 : 1000), max_workers: 20 }]);
  const pages: number[] = [];
  for (const size of [500, 20_000]) {
    await engine.sql.query(insert, [keysOf(size)]);
    const worker = await Worker.of(engine, 'only');
    const batches: Claimed[][] = [];
    // Until all keys are full where they are to be.
    for (let claim = 0; claim < 3; claim++) batches.push(await worker.take(full ? 150 : 5));
    await engine.sql.query('vacuum analyze millrace.attempts');
    pages.push(await pagesOfClaim(engine));
  }
  expect(pages[1]).toBeLessThan((pages[0] as number) * 1.5);
});

/** Has a stage with keys: one row of each is queued, and all that was queued before, jobs of it, waits. */
async function queuedBehindJobs(engine: Engine, keys: number, limits: Row, options: Row = {}): Promise<void> {
  await engine.pipeline([{ name: 'only', limits, max_workers: 20, ...options }]);
  const names = Array.from({ length: keys * 2 }, (_, number) => `key-${number % keys}`);
  await engine.sql.query(insert, [names]);
  await engine.sql.query(
    `update millrace.attempts
     set state = 'waiting', queue_at = null, service = 'scraper', job_id = id::text,
       deadline_at = millrace.now() + interval '1 hour'
     where id in (select a.id from millrace.attempts a where a.state = 'queued' order by a.id desc offset $1)`,
    [keys],
  );
  await engine.sql.query('vacuum analyze millrace.attempts');
}

test('a claim does not cost more the more of other keys waits at its stage', async ({ engine }) => {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  const pages: number[] = [];
  for (const keys of [100, 6_000]) {
    await queuedBehindJobs(engine, keys, perKey(100));
    pages.push(await pagesOfClaim(engine));
  }
  expect(pages[1]).toBeLessThan((pages[0] as number) * 1.5);
});

test('the end of a job costs the same, however much waits beside it, while a worker lives', async ({ engine }) => {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  const pages: number[] = [];
  for (const jobs of [100, 6_000]) {
    await queuedBehindJobs(engine, jobs, { max_in_flight: 10_000 }, external);
    const worker = await Worker.of(engine, 'only');
    const job = await worker.takeOne();
    await worker.report(waiting(job, `job-${jobs}`));
    const end = JSON.stringify([jobEnd(job, `job-${jobs}`)]);
    pages.push(await pagesOf(worker.client, `select public.millrace_resume('${end}')`));
  }
  expect(pages[1]).toBeLessThan((pages[0] as number) * 1.5);
});

test('a claim asks each of thousands of full keys once, and takes of the one that is not', async ({ engine }) => {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  await queuedBehindJobs(engine, 400, perKey(1));
  const few = await pagesOfClaim(engine);
  await queuedBehindJobs(engine, 4_000, perKey(1));
  expect(await pagesOfClaim(engine)).toBeLessThan(few * 15);
  await engine.sql.query(insert, [['last']]);
  expect(await (await Worker.of(engine, 'only')).take()).toMatchObject([{ entity: { key: 'last' } }]);
});

test('a definition that takes a limit away waits for a claim under way, which can show what it took', async ({
  engine,
}) => {
  await keyed(engine, perKey(1));
  await engine.sql.query(insert, [['a', 'b']]);
  await (await Worker.of(engine, 'only')).takeOne();
  const claim = await openTransaction(engine);
  await claim.query(`select millrace.enter_limits(id, true) from millrace.stages where name = 'only'`);
  const other = await engine.database.connect();
  const without = { pipeline: 'flow', entity: { table: 'public.items' }, stages: [{ name: 'only' }] };
  const defining = begin(other.query('select millrace.define($1)', [compiled(without)]));
  await untilBlocked(engine, other);
  await claim.query(`update public.items set label = 'shown'`);
  await claim.query('commit');
  await defining;
});
