// Quotas: what one tenant may start and spend in a window. A run that exceeds them waits and is not lost, and nobody else waits for it.
import { expect } from 'vitest';
import { compiled } from '../../support/definitions.ts';
import { defineFamily, numbers, spawnAll, startFolders } from '../../support/engine/children.ts';
import { planRows } from '../../support/engine/plan-rows.ts';
import { chain, type Definition, type Engine, each, type Row, test } from '../../support/engine.ts';
import { openTransaction } from '../../support/sessions.ts';
import { type Claimed, completed, failed, released, Worker } from '../../support/worker.ts';

const hourly = (count: number) => ({ column: 'key', starts: { count, per_seconds: 3600 } });
const daily = (usd: number) => ({ column: 'key', spending: { usd, per_seconds: 86_400 } });

/** Defines `flow` (one → two unless given otherwise) over items that have a tenant, with a quota. */
async function bounded(engine: Engine, quota: Row | undefined, stages = chain(['one', 'two'])): Promise<Definition> {
  await engine.sql.query('create table public.items (id bigserial primary key, label text, key text)');
  const workers = stages.map((stage) => ({ max_workers: 50, ...stage }));
  const definition = { ...(await engine.pipeline(workers)), quota };
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
async function work(
  engine: Engine,
  stage: string,
  usd?: number,
  end: (item: Claimed) => Row = completed,
): Promise<string[]> {
  const worker = await Worker.of(engine, stage);
  const items = await worker.take(1000);
  const usage = usd === undefined ? {} : { usage: { cost_usd: usd } };
  await worker.complete(items.map((item) => ({ ...end(item), ...usage })));
  return items.map((item) => item.entity.key as string);
}

const repeat = (key: string, count: number): string[] => Array.from({ length: count }, () => key);
const count = (items: Claimed[], key: string) => items.filter((item) => item.entity.key === key).length;
const held = (engine: Engine) =>
  engine.rows('select pipeline, key, kind, used::float8, allowed::float8, quota_blocked::int from millrace.quotas');

test('a run beyond its tenant’s quota waits, says so, and begins with the next windows', async ({ engine }) => {
  await bounded(engine, hourly(3));
  const ids = await queueKeys(engine, ...repeat('a', 8), 'b');
  const first = await takeAll(engine);
  expect([count(first, 'a'), count(first, 'b')]).toEqual([3, 1]);
  const waits = await engine.item(ids[5]);
  expect(waits).toMatchObject({ one_status: 'queued', one_retry_count: 0, one_started_at: null });
  expect(waits.one_error).toBe('held back until 2026-11-02 10:00:00 UTC: the quota of 3 starts in 01:00:00 is used up');
  expect(await held(engine)).toMatchObject([
    { pipeline: 'flow', key: 'a', kind: 'starts', used: 3, allowed: 3, quota_blocked: 5 },
    { key: 'b', used: 1, quota_blocked: 0 },
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
  await engine.sql.query('select millrace.sweep()');
  expect(await held(engine)).toEqual([]);
});

test('a start is charged when it begins, once: not for each time that it is queued, released or retried', async ({
  engine,
}) => {
  await bounded(engine, hourly(2), chain(['one', 'two'], { retry: { max_attempts: 5 } }));
  const [id] = await queueKeys(engine, 'a');
  for (let again = 0; again < 5; again++) {
    await engine.sql.query(`update public.items set one_status = 'pending' where id = $1`, [id]).catch(() => {});
    await engine.sql.query(`select millrace.start('flow', $1, p_restart => true)`, [id]);
  }
  const used = () => engine.value('select sum(used)::int from millrace.limit_uses');
  expect(await used()).toBe(null);
  await work(engine, 'one', undefined, released);
  await work(engine, 'one', undefined, failed);
  await engine.advance('5 minutes');
  await work(engine, 'one');
  await work(engine, 'two');
  expect(await used()).toBe(1);
  await engine.sql.query(`update public.items set two_status = 'queued' where id = $1`, [id]);
  await work(engine, 'two');
  expect(await used()).toBe(2);
  await engine.sql.query(`update public.items set two_status = 'queued' where id = $1`, [id]);
  expect(await takeAll(engine, 'two')).toEqual([]);
  expect(await engine.item(id)).toMatchObject({ two_status: 'queued', two_error: expect.stringMatching(/2 starts/) });
  // Rows that are deleted take nothing of it with them.
  await engine.sql.query('delete from public.items where id = $1', [id]);
  await queueKeys(engine, 'a');
  expect(await takeAll(engine)).toEqual([]);
});

test('a verb of an operator is no start', async ({ engine }) => {
  await bounded(engine, hourly(1), chain(['one'], { retry: { max_attempts: 1 } }));
  const [id] = await queueKeys(engine, 'a');
  await work(engine, 'one', undefined, failed);
  const { id: run } = await engine.run(id);
  await engine.sql.query('select millrace.retry($1)', [run]);
  expect(await work(engine, 'one', undefined, failed)).toEqual(['a']);
  await engine.sql.query('select millrace.retry(run_id) from millrace.dead_letters where can_retry');
  expect(await work(engine, 'one')).toEqual(['a']);
  await engine.sql.query('select millrace.reset($1)', [run]);
  expect(await work(engine, 'one')).toEqual(['a']);
  await engine.queue('one', [id as string]);
  expect(await takeAll(engine)).toEqual([]);
});

test('a start with several first stages is charged once, and waits with all of them', async ({ engine }) => {
  await bounded(engine, hourly(1), [{ name: 'one' }, { name: 'beside' }, { name: 'last', needs: ['one', 'beside'] }]);
  await engine.sql.query(`insert into public.items (key) values ('a'), ('a')`);
  await engine.sql.query(`select millrace.start('flow', id::text) from public.items`);
  expect(await takeAll(engine, 'beside')).toHaveLength(1);
  expect(await takeAll(engine, 'one')).toHaveLength(1);
  await engine.advance('1 hour');
  expect(await takeAll(engine, 'one')).toHaveLength(1);
  expect(await takeAll(engine, 'beside')).toHaveLength(1);
});

test('rows without a tenant share one quota', async ({ engine }) => {
  await bounded(engine, hourly(2));
  await queueKeys(engine, null, null, null, 'a');
  const taken = await takeAll(engine);
  expect(taken.map((item) => item.entity.key)).toEqual([null, null, 'a']);
});

test('spending that is used up holds back next stages, retries and operators’ retries; what is in work goes on', async ({
  engine,
}) => {
  await bounded(engine, daily(1), chain(['one', 'two'], { retry: { max_attempts: 2 } }));
  const ids = await queueKeys(engine, ...repeat('a', 4), 'b');
  const worker = await Worker.of(engine, 'one');
  const batch = await worker.take(5);
  const [first, second, third, fourth] = batch as [Claimed, Claimed, Claimed, Claimed];
  const usage = { cost_usd: 0.5 };
  await worker.complete([
    { ...completed(first), usage },
    // A failed attempt costs too.
    { ...failed(second), usage },
    completed(batch[4] as Claimed),
  ]);
  await engine.advance('1 hour');
  expect((await takeAll(engine, 'two')).map((item) => item.entity.key)).toEqual(['b']);
  expect(await takeAll(engine, 'one')).toEqual([]);
  expect(await engine.item(ids[0])).toMatchObject({ two_status: 'queued', two_error: expect.stringMatching(/^held/) });
  expect(await engine.item(ids[1])).toMatchObject({ one_status: 'queued', one_retry_count: 1 });
  expect((await engine.item(ids[1])).one_error).toBe(
    'held back until 2026-11-03 00:00:00 UTC: the quota of 1 US dollars in 1 day is used up',
  );
  await worker.complete([{ ...completed(third), usage }, { ...failed(fourth, { permanent: true }) }]);
  await engine.sql.query('select millrace.retry($1)', [fourth.run]);
  expect(await takeAll(engine, 'one')).toEqual([]);
  expect(await takeAll(engine, 'two')).toEqual([]);
  expect(await held(engine)).toMatchObject([{ key: 'a', kind: 'spending', used: 1.5, allowed: 1, quota_blocked: 4 }]);
  await engine.advance('14 hours');
  expect(await takeAll(engine, 'one')).toHaveLength(2);
  expect(await takeAll(engine, 'two')).toHaveLength(2);
});

test('a run that its tenant’s spending holds back is looked at again with each window', async ({ engine }) => {
  await bounded(engine, daily(1), chain(['one']));
  await queueKeys(engine, ...repeat('a', 3));
  for (let day = 0; day < 3; day++) {
    const worker = await Worker.of(engine, 'one');
    const [item] = await worker.take(1);
    await worker.complete([{ ...completed(item as Claimed), usage: { cost_usd: 2 } }]);
    expect(await takeAll(engine)).toEqual([]);
    await worker.leave();
    await engine.advance('24 hours');
  }
  expect(await engine.value(`select count(*)::int from public.items where one_status = 'completed'`)).toBe(3);
});

test('children count against their parent’s tenant and wait with it, also when a person starts them', async ({
  engine,
}) => {
  await defineFamily(engine, { files: chain(['scan', 'blend'], { max_workers: 50 }) });
  await engine.sql.query(`select millrace.attach('files')`);
  await engine.sql.query(`alter table public.folders add column key text`);
  const folder = {
    pipeline: 'folder',
    entity: { table: 'public.folders', key: 'id', projection: 'columns' },
    stages: [
      { name: 'split', kind: 'map', child: { pipeline: 'files', insert: 'public.insert_files' } },
      { name: 'publish', needs: ['split'] },
    ],
  };
  await engine.define({
    ...folder,
    quota: { column: 'key', starts: { count: 3, per_seconds: 60 }, spending: { usd: 1, per_seconds: 60 } },
  });
  const [red, blue] = await startFolders(engine, 2);
  await engine.sql.query(`update public.folders set key = case id when $1 then 'red' else 'blue' end`, [red]);
  for (const id of [red, blue]) await engine.sql.query(`select millrace.start('folder', $1, p_restart => true)`, [id]);
  for (const _ of [red, blue]) await spawnAll(engine, numbers(1, 4));
  const worker = await Worker.of(engine, 'scan', 'files');
  const items = await worker.take(100);
  expect(items).toHaveLength(8);
  const reds = items.filter(({ entity }) => entity.folder === red);
  await worker.complete([
    ...reds.map((item) => ({ ...completed(item), usage: { cost_usd: 0.3 } })),
    ...items.filter((item) => !reds.includes(item)).map((item) => completed(item)),
  ]);
  const blended = await takeAll(engine, 'blend', 'files');
  expect(blended.map(({ entity }) => entity.folder)).toEqual(Array.from({ length: 4 }, () => blue));
  expect(await held(engine)).toMatchObject([{ key: 'red', kind: 'spending', quota_blocked: 4 }, {}, {}]);
  await engine.advance('1 minute');
  const again = await Worker.of(engine, 'blend', 'files');
  const rest = await again.take(100);
  expect(rest).toHaveLength(4);
  await again.complete(rest.map((item) => completed(item)));
  // A tenant that starts a child by itself pays for that too.
  const files = rest.map(({ entity_id }) => entity_id);
  await engine.sql.query(`update public.items set blend_status = 'queued' where id = any ($1)`, [files]);
  expect(await takeAll(engine, 'blend', 'files')).toHaveLength(3);
});

test('a neighbour’s one row waits for few claims behind thousands that are held back', async ({ engine }) => {
  await bounded(engine, hourly(3), chain(['one'], { batch_size: 10 }));
  await queueKeys(engine, ...repeat('a', 2000), 'b');
  const worker = await Worker.of(engine, 'one');
  const taken: string[] = [];
  for (let claims = 0; claims < 7; claims++) {
    for (const item of await worker.take(10)) taken.push(item.entity.key as string);
  }
  expect(taken).toEqual(['a', 'a', 'a', 'b']);
  // Each of them is put back about once, since they are spread over the windows to come.
  await engine.advance('1 hour');
  expect(await takeAll(engine, 'one', 'flow', 10)).toHaveLength(3);
  await engine.advance('1 hour');
  expect(await takeAll(engine, 'one', 'flow', 10)).toHaveLength(3);
});

test('two workers never take more than the quota, and neither waits for the other', async ({ engine }) => {
  await bounded(engine, hourly(3), chain(['one']));
  await queueKeys(engine, ...repeat('a', 5));
  const two = await Worker.of(engine, 'one');
  await two.take(0);
  const charging = await openTransaction(engine);
  const one = await Worker.of(engine, 'one');
  await one.take(0);
  const first = await charging.query(`select public.millrace_claim('flow', 'one', $1, $2, 2, 2) as answer`, [
    one.id,
    one.host,
  ]);
  expect(first.rows[0].answer.batch).toHaveLength(2);
  const [late] = await queueKeys(engine, 'b');
  const { batch } = await two.claim(10);
  expect(
    batch.map((item: Claimed) => item.entity_id),
    'of another tenant alone',
  ).toEqual([late]);
  await charging.query('commit');
  await engine.advance('1 second');
  const rest = (await takeAll(engine)).filter((item) => item.entity.key === 'a');
  expect(rest).toHaveLength(1);
  expect(await engine.value('select sum(used)::int from millrace.limit_uses')).toBe(4);
});

test('a run that was put back while another claim charged its tenant no longer says so once it is in work', async ({
  engine,
}) => {
  await bounded(engine, hourly(1));
  const [, id] = await queueKeys(engine, 'a', 'a');
  expect(await takeAll(engine)).toHaveLength(1);
  expect((await engine.item(id)).one_error).toContain('is used up');
  await engine.advance('1 hour');
  const charging = await openTransaction(engine);
  await charging.query(
    `select pg_advisory_xact_lock(hashtext('millrace.quota'), hashtext(id || ':a')) from millrace.limits where pipeline_id is not null`,
  );
  const worker = await Worker.of(engine, 'one');
  expect(await worker.take()).toEqual([]);
  await charging.query('rollback');
  await engine.advance('1 second');
  expect(await worker.take()).toHaveLength(1);
  expect(await engine.item(id)).toMatchObject({ one_status: 'started', one_error: null });
});

test('a user’s write waits for no claim that is charging its tenant, nor the claim for the user', async ({
  engine,
}) => {
  await bounded(engine, hourly(1), chain(['one']));
  const [first, second] = await queueKeys(engine, 'a', 'a');
  const charging = await openTransaction(engine);
  const claimed = await charging.query(
    `select public.millrace_claim('flow', 'one', gen_random_uuid(), gen_random_uuid(), 1, 1) as answer`,
  );
  expect(claimed.rows[0].answer.batch).toHaveLength(1);
  const [third] = await queueKeys(engine, 'a');
  const writing = await openTransaction(engine);
  await writing.query(`update public.items set label = 'mine' where id = $1`, [third]);
  await charging.query('commit');
  expect(await takeAll(engine)).toEqual([]);
  await writing.query('commit');
  expect(await each([first, second, third] as string[], async (id) => (await engine.item(id)).one_status)).toEqual([
    'started',
    'queued',
    'queued',
  ]);
});

for (const [stage, free] of [
  ['one', 0],
  // The attempts that stage one has queued there are part of the row's own start.
  ['two', 1],
] as const) {
  test(`a row that is started over at stage ${stage} again and again uses up its tenant’s quota`, async ({
    engine,
  }) => {
    await bounded(engine, hourly(4));
    const [id] = await queueKeys(engine, 'a');
    await work(engine, 'one');
    const worker = await Worker.of(engine, stage);
    let taken = 0;
    for (let time = 0; time < 10; time++) {
      await engine.queue(stage, [id as string]);
      taken += (await worker.take(10)).length;
    }
    expect(taken).toBe(3 + free);
    expect(await held(engine)).toMatchObject([{ key: 'a', kind: 'starts', used: 4, allowed: 4, quota_blocked: 1 }]);
  });
}

test('a claim beside a definition of the quota holds nothing back by the former one', async ({ engine }) => {
  const definition = await bounded(engine, hourly(1));
  await queueKeys(engine, ...repeat('a', 3));
  expect(await takeAll(engine)).toHaveLength(1);
  await queueKeys(engine, ...repeat('a', 2));
  const defining = await openTransaction(engine);
  await defining.query('select millrace.define($1)', [compiled({ ...definition, quota: hourly(9) })]);
  expect(await (await Worker.of(engine, 'one')).take(9)).toEqual([]);
  await defining.query('commit');
  await engine.advance('1 second');
  expect(await takeAll(engine)).toHaveLength(4);
});

test('a limit that is raised lets go what was held back, one that is dropped everything', async ({ engine }) => {
  const definition = await bounded(engine, hourly(1));
  const ids = await queueKeys(engine, ...repeat('a', 6));
  expect(await takeAll(engine)).toHaveLength(1);
  await engine.define({ ...definition, quota: hourly(3) });
  expect(await takeAll(engine)).toHaveLength(2);
  expect((await engine.item(ids[5])).one_error).toMatch(/quota of 3 starts/);
  await engine.define({ ...definition, quota: hourly(3) });
  await engine.sql.query('select millrace.sweep()');
  expect(await takeAll(engine), 'nothing was changed').toEqual([]);
  await engine.define({ ...definition, quota: undefined });
  await engine.sql.query('select millrace.sweep()');
  expect(await takeAll(engine)).toHaveLength(3);
  await engine.define({ ...definition, quota: daily(1) });
  await queueKeys(engine, 'a');
  expect(await takeAll(engine)).toHaveLength(1);
});

test('a run that a quota holds back frees its slots, and its group sleeps until it is due', async ({ engine }) => {
  const limits = { max_in_flight: 4, concurrency: { column: 'key', limit: 3 } };
  await bounded(engine, hourly(1), chain(['one'], { limits }));
  await queueKeys(engine, ...repeat('a', 6), 'b', 'c');
  const taken = await takeAll(engine, 'one', 'flow', 4);
  expect(taken.map((item) => item.entity.key).sort()).toEqual(['a', 'b', 'c']);
  expect(await engine.value('select count(*)::int from millrace.in_flight')).toBe(3);
  await engine.advance('1 hour');
  expect(await takeAll(engine, 'one', 'flow', 4)).toHaveLength(1);
});

test('an attempt that must be alone is held back like any other, and leaves its host free', async ({ engine }) => {
  await bounded(engine, daily(1), chain(['one']));
  const ids = await queueKeys(engine, 'a', 'b');
  await engine.sql.query(
    `update millrace.attempts set isolated = true where id = (select min(id) from millrace.attempts)`,
  );
  await engine.sql.query(
    `insert into millrace.limit_uses (limit_id, key, kind, during, used)
     select l.id, 'a', 'spending', millrace.window_of(l.limits -> 'spending'), 2
     from millrace.limits l join millrace.pipelines p on p.id = l.pipeline_id where p.name = 'flow'`,
  );
  expect((await takeAll(engine)).map((item) => item.entity_id)).toEqual([ids[1]]);
});

test('a column that is gone makes no write of a user fail', async ({ engine }) => {
  await bounded(engine, hourly(2), chain(['one']));
  await engine.sql.query('alter table public.items rename key to tenant');
  await engine.queued('one', 3);
  await engine.sql.query(`select millrace.attach('flow')`);
  expect(await takeAll(engine)).toHaveLength(2);
  expect(await engine.value(`select message from millrace.log where code = 'column_unreadable'`)).toMatch(
    /so that it counts as empty/,
  );
});

test('however much a tenant starts, the sweep leaves one row of it, and none once the window is over', async ({
  engine,
}) => {
  await bounded(engine, { ...hourly(100), ...daily(100) }, chain(['one']));
  for (let n = 0; n < 5; n++) {
    await queueKeys(engine, 'a', 'b');
    await work(engine, 'one', 0.5);
    if (n > 2) await engine.sql.query('select millrace.sweep()');
  }
  const uses = 'select key, kind, used::float8, summed from millrace.limit_uses order by key, kind';
  const of = (key: string) => [
    { key, kind: 'spending', used: 2.5, summed: true },
    { key, kind: 'starts', used: 5, summed: true },
  ];
  expect(await engine.rows(uses)).toEqual([...of('a'), ...of('b')]);
  await engine.advance('24 hours');
  await engine.sql.query('select millrace.sweep()');
  expect(await engine.rows(uses)).toEqual([]);
});

test('two sweeps at once lose nothing and count nothing twice', async ({ engine }) => {
  await bounded(engine, hourly(100), chain(['one']));
  await queueKeys(engine, ...repeat('a', 3));
  await work(engine, 'one');
  const sweeping = await openTransaction(engine);
  await sweeping.query('select millrace.sum_uses(100)');
  await queueKeys(engine, 'a');
  await work(engine, 'one');
  await engine.sql.query('select millrace.sum_uses(100)');
  await sweeping.query('commit');
  expect(await engine.value('select sum(used)::int from millrace.limit_uses')).toBe(4);
});

test('neither a start nor a claim reads more, however much is held back', async ({ engine }) => {
  await bounded(engine, { ...hourly(10), ...daily(100) }, chain(['one']));
  const insert = `insert into public.items (key, one_status) select $1, 'queued' from generate_series(1, $2)`;
  const claim = `select public.millrace_claim('flow', 'one', gen_random_uuid(), gen_random_uuid(), 1, 10)`;
  const read = (statement: string, values: unknown[] = []) => planRows(engine.database.superUrl, statement, values);
  const few = await read(insert, ['a', 100]);
  await takeAll(engine);
  const before = await read(insert, ['b', 10]).then(() => read(claim));
  expect(await read(insert, ['a', 2000])).toBeLessThan(25 * few);
  await takeAll(engine);
  expect(await engine.value('select sum(quota_blocked)::int from millrace.quotas')).toBe(2090);
  await engine.sql.query('select millrace.sweep()');
  await engine.sql.query(insert, ['c', 10]);
  expect(await read(claim)).toBeLessThan(1.5 * before);
});

const starts = { count: 1, per_seconds: 60 };
test.for<[string, unknown, RegExp]>([
  ['a quota that is a number', 5, /quota is 5, but must be an object of column, and starts or spending or both/],
  ['a quota of nothing', { column: 'key' }, /quota is \{"column":"key"\}, but must be/],
  ['an unknown part', { column: 'key', starts, jobs: 1 }, /quota has the unknown option jobs/],
  ['no column', { starts }, /quota\.column is missing, but must be a column of the entity's table/],
  ['an unknown column', { column: 'account', starts }, /quota\.column is "account", which is no column of/],
  ['starts that are a number', { column: 'key', starts: 3 }, /quota\.starts is 3, but must be an object of count and/],
  [
    'an unknown part of starts',
    { column: 'key', starts: { ...starts, burst: 1 } },
    /quota\.starts has the unknown option burst/,
  ],
  [
    'no start',
    { column: 'key', starts: { ...starts, count: 0 } },
    /starts\.count is 0, but must be a whole number from 1/,
  ],
  ['half a start', { column: 'key', starts: { ...starts, count: 1.5 } }, /starts\.count is 1\.5, but must be a whole/],
  ['no window', { column: 'key', starts: { count: 1 } }, /starts\.per_seconds is missing, but must be a whole number/],
  ['a negative window', { column: 'key', starts: { ...starts, per_seconds: -1 } }, /per_seconds is -1, but must be/],
  ['a window of months', { column: 'key', starts: { ...starts, per_seconds: 1e7 } }, /from 1 to 2678400/],
  [
    'no dollar',
    { column: 'key', spending: { usd: 0, per_seconds: 60 } },
    /usd is 0, but must be a number from 0\.01 to/,
  ],
])('a definition with %s is refused', async ([, quota, message], { engine }) => {
  const definition = await bounded(engine, undefined);
  const refused = await engine.refusedDefinition({ ...definition, quota });
  expect(refused).toMatchObject({ code: 'MR001', message: expect.stringMatching(message) });
  expect(refused.hint).toMatch(/leave|Name the column|Correct it/);
});

test('the held-back runs of one tenant take nothing of a stage’s rate from the others', async ({ engine }) => {
  const limits = { rate: { count: 1, per_seconds: 60, burst: 10 } };
  await bounded(engine, hourly(2), [{ name: 'one', limits }]);
  await queueKeys(engine, ...repeat('a', 40), ...repeat('b', 2), ...repeat('c', 2), ...repeat('d', 2));
  const taken = await takeAll(engine, 'one', 'flow', 10);
  expect(['a', 'b', 'c', 'd'].map((key) => count(taken, key))).toEqual([2, 2, 2, 2]);
  const own = `select (millrace.room_in(l, '')).room from millrace.limits l join millrace.stages s on s.id = l.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id where p.name = 'flow'`;
  expect(await engine.value(own)).toBe(2);
});
