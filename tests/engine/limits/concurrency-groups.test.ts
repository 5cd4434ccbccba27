// Concurrency per key with fair turns: the queue of a stage sorted into groups.
import { expect } from 'vitest';
import { type Definition, type Engine, type Row, test } from '../../support/engine.ts';
import { jobEnd, openTransaction } from '../../support/sessions.ts';
import { type Claimed, completed, failed, released, resume, Worker, waiting } from '../../support/worker.ts';

const perKey = (limit: number, more: Row = {}) => ({ concurrency: { column: 'key', limit }, ...more });

async function has_groups(engine: Engine, limits: Row | undefined, options: Row = {}): Promise<Definition> {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  return engine.pipeline([{ name: 'only', limits, max_workers: 20, ...options }]);
}

/** Inserts an entity for each key, and queues them in one statement. */
async function queueKeys(engine: Engine, ...keys: (string | null)[]): Promise<string[]> {
  const rows = await engine.rows<{ id: string }>(
    `insert into public.items (key, only_status) select k, 'queued' from unnest($1::text[]) k returning id`,
    [keys],
  );
  return rows.map((row) => row.id);
}

const repeat = (key: string, count: number): string[] => Array.from({ length: count }, () => key);
const keysOf = (batch: Claimed[]) => batch.map((item) => item.entity.key as string).sort();
const count = (batch: Claimed[], key: string) => keysOf(batch).filter((k) => k === key).length;

test('no more of a key are in work than its limit, across workers, and others go on', async ({ engine }) => {
  await has_groups(engine, perKey(2));
  await queueKeys(engine, ...repeat('a', 5), ...repeat('b', 3));
  const [one, two] = [await Worker.of(engine, 'only'), await Worker.of(engine, 'only')];
  expect(keysOf(await one.take(3))).toHaveLength(3);
  await two.take(50);
  const busy = await engine.rows(
    `select i.key, count(*)::int from millrace.attempts a join millrace.runs r on r.id = a.run_id
     join public.items i on i.id::text = r.entity_id where a.state = 'started' group by i.key order by i.key`,
  );
  expect(busy).toEqual([
    { key: 'a', count: 2 },
    { key: 'b', count: 2 },
  ]);
  expect(await one.claim()).toMatchObject({ status: 'empty', wait_ms: 1000 });
});

test.for([
  ['completed', completed],
  ['failed', failed],
  ['released', released],
] as const)('a %s attempt frees its key for the same call', async ([, report], { engine }) => {
  await has_groups(engine, perKey(1), { retry: { max_attempts: 1 } });
  await queueKeys(engine, 'a', 'a', 'b');
  const worker = await Worker.of(engine, 'only');
  const batch = await worker.take(50);
  expect(keysOf(batch)).toEqual(['a', 'b']);
  const item = batch.find((b) => b.entity.key === 'a') as Claimed;
  const answer = await worker.complete([report(item)], 50);
  expect(keysOf(answer.batch)).toEqual(['a']);
});

test('a cancelled run, a lost lease and an ended job free their key', async ({ engine }) => {
  await has_groups(engine, perKey(1), {
    kind: 'external',
    completion: { callback: true, deadline_seconds: 3600 },
    retry: { max_attempts: 1 },
  });
  await queueKeys(engine, ...repeat('a', 5));
  const worker = await Worker.of(engine, 'only');
  await engine.sql.query('select millrace.cancel($1)', [(await worker.takeOne()).run]);
  const job = await worker.takeOne();
  await worker.report(waiting(job, 'job-1'));
  expect(await worker.take()).toEqual([]);
  await worker.leave();
  expect((await resume(engine, [jobEnd(job, 'job-1')])).wake).toMatchObject([{ stage: 'only' }]);
  const lost = await Worker.of(engine, 'only');
  await lost.takeOne();
  await engine.advance('61 seconds');
  await engine.sql.query('select millrace.sweep()');
  expect(await (await Worker.of(engine, 'only')).take()).toHaveLength(1);
});

test('a key that is freed while a claim still finds it full goes on with the next', async ({ engine }) => {
  await has_groups(engine, perKey(1));
  await queueKeys(engine, 'a', 'a');
  const taken = await (await Worker.of(engine, 'only')).takeOne();
  const finding = await Worker.of(engine, 'only');
  await finding.client.query('begin');
  expect(await finding.take()).toEqual([]);
  await engine.sql.query('select millrace.cancel($1)', [taken.run]);
  await engine.sweepAll();
  await finding.client.query('commit');
  await engine.expectSound();
  expect(await finding.take()).toHaveLength(1);
});

test('keys take turns: a small one waits for no more than a round, however long a big one is', async ({ engine }) => {
  await has_groups(engine, perKey(1000));
  await queueKeys(engine, ...repeat('big', 1000));
  const worker = await Worker.of(engine, 'only');
  expect(count(await worker.take(10), 'big')).toBe(10);
  await queueKeys(engine, 'x', 'y', 'x', 'y', 'z');
  const next = await worker.take(8);
  expect(keysOf(next)).toEqual(['big', 'big', 'big', 'x', 'x', 'y', 'y', 'z']);
  await queueKeys(engine, ...repeat('x', 20), ...repeat('y', 20));
  for (let round = 0; round < 5; round++) {
    const batch = await worker.take(3);
    expect(keysOf(batch)).toEqual(['big', 'x', 'y']);
  }
});

test('with more keys than a batch holds, each is served once before any is served twice', async ({ engine }) => {
  await has_groups(engine, perKey(1000));
  const keys = Array.from({ length: 25 }, (_, number) => `key-${number}`);
  await queueKeys(engine, ...keys, ...keys, ...keys);
  const worker = await Worker.of(engine, 'only');
  for (let round = 0; round < 3; round++) {
    const served: string[] = [];
    for (let part = 0; part < 5; part++) served.push(...keysOf(await worker.take(5)));
    expect(new Set(served).size).toBe(25);
  }
  expect(await worker.claim()).toMatchObject({ status: 'empty', wait_ms: null });
});

test('a key behind thousands that cannot go on is served, and its stage is woken until then', async ({ engine }) => {
  await has_groups(engine, perKey(1000));
  await queueKeys(engine, ...Array.from({ length: 6000 }, (_, number) => `key-${number}`), 'last');
  await engine.sql.query(
    `update millrace.attempts set queue_at = queue_at + interval '1 hour' where concurrency_group <> '0last'`,
  );
  const ready = () => engine.value(`select millrace.has_ready_work(id) from millrace.stages where name = 'only'`);
  expect(await ready()).toBe(true);
  expect(keysOf(await (await Worker.of(engine, 'only')).take(5))).toEqual(['last']);
  expect(await ready()).toBe(false);
});

test('rows of a key that somebody holds keep none behind them from a claim', async ({ engine }) => {
  await has_groups(engine, perKey(1));
  const ids = await queueKeys(engine, ...repeat('a', 60));
  const person = await openTransaction(engine);
  await person.query(
    `select from millrace.attempts a join millrace.runs r on r.id = a.run_id
     where r.entity_id = any ($1) for update of a`,
    [ids.slice(0, 59)],
  );
  expect(await (await Worker.of(engine, 'only')).take(5)).toMatchObject([{ entity_id: ids[59] }]);
});

test('the rest of a round goes to another key each time', async ({ engine }) => {
  await has_groups(engine, perKey(1000));
  await queueKeys(engine, ...repeat('a', 9), ...repeat('b', 9), ...repeat('c', 9));
  const worker = await Worker.of(engine, 'only');
  const served: Claimed[] = [];
  for (let claim = 0; claim < 3; claim++) served.push(...(await worker.take(4)));
  expect(['a', 'b', 'c'].map((key) => count(served, key))).toEqual([4, 4, 4]);
});

test('within a key the oldest goes first', async ({ engine }) => {
  await has_groups(engine, perKey(1));
  const ids = [...(await queueKeys(engine, 'a')), ...(await queueKeys(engine, 'a')), ...(await queueKeys(engine, 'a'))];
  const worker = await Worker.of(engine, 'only');
  const served: string[] = [];
  let batch = await worker.take();
  while (batch[0]) {
    served.push(batch[0].entity_id);
    batch = (await worker.complete([completed(batch[0])], 10)).batch;
  }
  expect(served).toEqual(ids);
});

test('rows without a key are one key', async ({ engine }) => {
  await has_groups(engine, perKey(1));
  await queueKeys(engine, null, null, '');
  expect(await (await Worker.of(engine, 'only')).take()).toHaveLength(1);
});

test('the host of a URL is the key, whatever else it says', async ({ engine }) => {
  await has_groups(engine, { concurrency: { column: 'key', part: 'host', limit: 1 } });
  const same = [
    'https://Example.com/a',
    'http://example.com:8080/b?c=http://other.org',
    'HTTPS://me:s3@cret@EXAMPLE.com#x',
    ' http://example.com. ',
  ];
  const others = ['https://www.example.com/', 'http://[::1]:80/', 'no address', 'mailto:me@example.com', 'http://'];
  await queueKeys(engine, ...same, ...others);
  await (await Worker.of(engine, 'only')).take(50);
  const keys = await engine.rows<{ key: string }>('select key from millrace.in_flight order by key collate "C"');
  expect(keys.map(({ key }) => key)).toEqual([
    '[::1]',
    'example.com',
    'http://',
    'mailto:me@example.com',
    'no address',
    'www.example.com',
  ]);
});

test('a value too long for an index is a key all the same', async ({ engine }) => {
  await has_groups(engine, perKey(1));
  await queueKeys(engine, 'é'.repeat(20_000), `${'é'.repeat(20_000)}!`, 'é'.repeat(20_000));
  expect(await (await Worker.of(engine, 'only')).take()).toHaveLength(2);
});

test('a retry in backoff waits in its group and holds up nobody', async ({ engine }) => {
  await has_groups(engine, perKey(1), { retry: { max_attempts: 3, backoff: { kind: 'list', seconds: [30] } } });
  const [first, second] = await queueKeys(engine, 'a', 'a');
  const worker = await Worker.of(engine, 'only');
  const answer = await worker.complete([failed(await worker.takeOne())], 10);
  expect(answer.batch).toMatchObject([{ entity_id: second }]);
  expect(await worker.complete(answer.batch.map((item) => completed(item)))).toMatchObject({ status: 'empty' });
  expect(await worker.claim()).toMatchObject({ status: 'empty', wait_ms: null });
  expect(await worker.leave()).toMatchObject({ left: true });
  await engine.advance('29 seconds');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 0 });
  await engine.configureWakeUps();
  await engine.advance('1 second');
  expect(await engine.value('select millrace.sweep()')).toMatchObject({ woken: 1 });
  expect(await (await Worker.of(engine, 'only')).take()).toMatchObject([{ entity_id: first, retry_count: 1 }]);
});

test('a stage that starts over, and a run that is retried, wait in their groups again', async ({ engine }) => {
  await has_groups(engine, perKey(1), { retry: { max_attempts: 1 } });
  const [id] = await queueKeys(engine, 'a');
  const worker = await Worker.of(engine, 'only');
  await worker.takeOne();
  await engine.sql.query(`update public.items set only_status = 'queued' where id = $1`, [id]);
  const again = await worker.takeOne();
  await worker.report(failed(again));
  await engine.sql.query('select millrace.retry($1)', [again.run]);
  await worker.takeOne();
  expect(await engine.attempts(id)).toEqual(['only 1 cancelled superseded', 'only 2 failed', 'only 3 started']);
});

test('a stage that is given groups sorts what is queued and in work already, and counts it', async ({ engine }) => {
  const definition = await has_groups(
    engine,
    { max_in_flight: 100 },
    { retry: { backoff: { kind: 'list', seconds: [0] } } },
  );
  await queueKeys(engine, 'a', 'a', 'b');
  const worker = await Worker.of(engine, 'only');
  const item = await worker.takeOne();
  definition.stages = [{ ...definition.stages[0], name: 'only', limits: perKey(1) }];
  await engine.define(definition);
  expect(keysOf(await worker.take())).toEqual(['b']);
  await worker.report(failed(item));
  expect(keysOf(await worker.take())).toEqual(['a']);
  expect(
    await engine.value('select concurrency_group from millrace.attempts where parent_id = $1', [item.attempt]),
  ).toBe('0a');
});

test('an attempt that was queued by a transaction without the groups is found by the sweep', async ({ engine }) => {
  await has_groups(engine, perKey(1));
  await queueKeys(engine, 'a');
  await engine.sql.query('update millrace.attempts set concurrency_group = null');
  expect(await (await Worker.of(engine, 'only')).take()).toEqual([]);
  await engine.sql.query('select millrace.sweep()');
  expect(await (await Worker.of(engine, 'only')).take()).toHaveLength(1);
});

test('a limit that is raised applies to the next claim', async ({ engine }) => {
  const definition = await has_groups(engine, perKey(1));
  await queueKeys(engine, ...repeat('a', 5));
  const worker = await Worker.of(engine, 'only');
  await worker.take();
  expect(await worker.take()).toEqual([]);
  definition.stages = [{ name: 'only', limits: perKey(3) }];
  await engine.define(definition);
  expect(await worker.take()).toHaveLength(2);
});

test('limits that are taken away hold nothing back, and may come back', async ({ engine }) => {
  const definition = await has_groups(engine, perKey(1));
  await queueKeys(engine, ...repeat('a', 4));
  const worker = await Worker.of(engine, 'only');
  await worker.take();
  await worker.take();
  definition.stages = [{ name: 'only' }];
  await engine.define(definition);
  expect(await worker.take(2)).toHaveLength(2);
  await queueKeys(engine, 'b');
  definition.stages = [{ name: 'only', limits: perKey(1) }];
  await engine.define(definition);
  expect(keysOf(await worker.take())).toEqual(['b']);
});

test('a limit for each key that is added counts what is started and what waits, under its key', async ({ engine }) => {
  const job = { kind: 'external', completion: { callback: true } };
  const definition = await has_groups(engine, undefined, job);
  await queueKeys(engine, 'a', 'b', 'a', 'b', 'c');
  const worker = await Worker.of(engine, 'only');
  const [started, waits] = (await worker.take(2)) as [Claimed, Claimed];
  await worker.report(waiting(waits, 'job-1'));
  definition.stages = [{ name: 'only', ...job, limits: perKey(1) }];
  await engine.define(definition);
  expect(keysOf(await worker.take())).toEqual(['c']);
  await resume(engine, [jobEnd(waits, 'job-1')]);
  expect(keysOf(await worker.take())).toEqual(['b']);
  await worker.report(completed(started));
  expect(keysOf(await worker.take())).toEqual(['a']);
});

test('a stage that goes on without its keys, or by another column, sorts its queue anew', async ({ engine }) => {
  const definition = await has_groups(engine, perKey(1));
  await engine.sql.query('alter table public.items add column other text');
  await queueKeys(engine, 'a', 'a', 'a', 'b');
  await engine.sql.query(`update public.items set other = id % 2`);
  const worker = await Worker.of(engine, 'only');
  expect(keysOf(await worker.take(2))).toEqual(['a', 'b']);
  expect(await worker.take()).toEqual([]);
  definition.stages = [{ name: 'only' }];
  await engine.define(definition);
  await engine.expectSound();
  expect(await worker.take(1)).toHaveLength(1);
  definition.stages = [{ name: 'only', limits: { concurrency: { column: 'other', limit: 2 } } }];
  await engine.define(definition);
  const keys = await engine.rows('select key, count(*)::int from millrace.in_flight group by key order by key');
  expect(keys).toEqual([
    { key: '0', count: 2 },
    { key: '1', count: 1 },
  ]);
  expect(await worker.take()).toHaveLength(1);
});

test('a column that changes later does not move what is queued', async ({ engine }) => {
  await has_groups(engine, perKey(1));
  const [, second] = await queueKeys(engine, 'a', 'a');
  await engine.sql.query(`update public.items set key = 'b' where id = $1`, [second]);
  expect(await (await Worker.of(engine, 'only')).take()).toHaveLength(1);
});

test('a column that is gone makes no write of the user fail, and is reported', async ({ engine }) => {
  await has_groups(engine, perKey(2));
  await engine.sql.query('alter table public.items rename column key to other');
  await engine.queued('only', 3);
  expect(await engine.rows(`select code, detail from millrace.log where code = 'column_unreadable'`)).toEqual([
    { code: 'column_unreadable', detail: { column: 'key' } },
  ]);
  await engine.define({
    pipeline: 'flow',
    entity: { table: 'public.items', key: 'id' },
    stages: [{ name: 'only', limits: { concurrency: { column: 'other', limit: 2 } } }],
  });
  expect(await (await Worker.of(engine, 'only')).take()).toHaveLength(2);
});

test('an attempt that must be alone is taken alone, once its host is idle and its key free', async ({ engine }) => {
  await has_groups(engine, perKey(1), { retry: { backoff: { kind: 'list', seconds: [0] } } });
  await queueKeys(engine, 'a');
  await (await Worker.of(engine, 'only')).takeOne();
  await engine.advance('61 seconds');
  await engine.sql.query('select millrace.sweep()');
  const worker = await Worker.of(engine, 'only');
  const [isolated] = await worker.take();
  expect(isolated).toMatchObject({ isolated: true, retry_count: 1 });
  await queueKeys(engine, 'a', 'b');
  expect(await worker.take()).toEqual([]);
  const answer = await worker.complete([completed(isolated as Claimed)], 10);
  expect(keysOf(answer.batch)).toEqual(['a', 'b']);
});

test('all limits together: none is exceeded', async ({ engine }) => {
  await has_groups(engine, perKey(2, { max_in_flight: 5, rate: { count: 4, per_seconds: 1 } }));
  await queueKeys(engine, ...repeat('a', 10), ...repeat('b', 10), ...repeat('c', 10));
  const worker = await Worker.of(engine, 'only');
  const first = await worker.take(50);
  expect(first).toHaveLength(4);
  await engine.advance('10 seconds');
  const second = await worker.take(50);
  expect(second).toHaveLength(1);
  for (const key of ['a', 'b', 'c']) expect(count([...first, ...second], key)).toBeLessThanOrEqual(2);
  expect(await worker.claim()).toMatchObject({ status: 'empty', wait_ms: null });
});

test('a stage after a skipped one is sorted into its group at once', async ({ engine }) => {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  await engine.pipeline([{ name: 'only' }, { name: 'next', needs: ['only'], limits: perKey(1) }]);
  const [id] = await queueKeys(engine, 'a');
  await engine.sql.query(`select millrace.skip($1, 'only')`, [(await engine.run(id)).id]);
  expect(await (await Worker.of(engine, 'next')).take()).toHaveLength(1);
});

test('a claim that goes from one full key to the next ends soon, also where somebody holds what has room', async ({
  engine,
}) => {
  await has_groups(engine, perKey(1));
  const names = Array.from({ length: 1_300 }, (_, number) => `key ${number + 1_000}`);
  await queueKeys(engine, ...names, ...names);
  const person = await openTransaction(engine);
  await person.query(`select from millrace.attempts where concurrency_group = '0key 1700' for update`);
  const busy = await Worker.of(engine, 'only');
  expect([...(await busy.take(1_000)), ...(await busy.take(1_000))]).toHaveLength(1_299);
  // Each look takes a third of a second.
  await engine.sql.query(`
    create sequence public.looks;
    grant usage on sequence public.looks to public;
    alter function millrace.groups_behind(int, text, int) rename to groups_at_once;
    create function millrace.groups_behind(p_stage_id int, p_after text, p_most int) returns text[] language plpgsql as $$
    begin
      perform nextval('public.looks');
      return millrace.groups_at_once(p_stage_id, p_after, p_most);
    end $$;
    create or replace function millrace.now() returns timestamptz language sql volatile set search_path = '' as
    $$ select c.at + l.last_value * interval '333 milliseconds' from public.test_clock c, public.looks l $$`);
  const worker = await Worker.of(engine, 'only');
  expect(await worker.claim(50)).toMatchObject({ status: 'empty', wait_ms: 1000 });
  expect(await engine.value<number>('select last_value::int from public.looks')).toBeLessThan(10);
  await person.query('commit');
  expect(keysOf(await worker.take(50))).toEqual(['key 1700']);
});

test('an isolated attempt wakes no worker while its key is full', async ({ engine }) => {
  await has_groups(engine, perKey(1), { kind: 'external', completion: { callback: true, deadline_seconds: 86_400 } });
  await queueKeys(engine, 'a', 'a');
  const worker = await Worker.of(engine, 'only');
  const job = await worker.takeOne();
  await worker.report(waiting(job, 'job-1'));
  await worker.leave();
  await engine.sql.query(`update millrace.attempts set isolated = true where state = 'queued'`);
  await engine.advance('1 minute');
  await engine.sweepAll();
  expect(await engine.rows(`select from millrace.wake_ups where woken_at = millrace.now()`)).toEqual([]);
  expect((await resume(engine, [jobEnd(job, 'job-1')])).wake).toMatchObject([{ stage: 'only' }]);
});
