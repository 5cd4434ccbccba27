// The table of sources: what polls write with their completion, and who may write what.
import { randomUUID } from 'node:crypto';
import { describe, expect } from 'vitest';
import type { PollResult } from '../../supabase/functions/_pipelines/sources-results.ts';
import { type Engine, type Row, projectTest as test } from '../support/engine.ts';
import { begin, openTransaction, untilBlocked } from '../support/sessions.ts';
import { completed, failed, Worker } from '../support/worker.ts';

const addSource = (engine: Engine, address = `https://site.test/${randomUUID()}`) =>
  engine.value<string>('insert into public.source (address) values ($1) returning id', [address]);

async function source(engine: Engine, id: string): Promise<Row> {
  const [row] = await engine.rows('select * from public.source where id = $1', [id]);
  return row as Row;
}

const queue = (engine: Engine) =>
  engine.rows('select url, title, status_code, entry_type, source_id from public.ingestion_queue order by url');

const state = {
  kind: 'rss',
  etag: '"v1"',
  last_modified: null,
  cursor: { since: null, unread: [], problem: null, pass: null },
};
const found = (...paths: string[]) =>
  paths.map((path) => ({ url: `https://site.test/${path}`, title: `About ${path}`, published_at: null }));

/** The entries that a poll gives: nothing new, unless something is said. */
const result = (given: Partial<PollResult> = {}): PollResult => ({
  urls: [],
  more: false,
  error: null,
  wait_seconds: null,
  state,
  ...given,
});

const apply = (engine: Engine, results: Record<string, PollResult>, client = engine.sql) =>
  client.query('select public.apply_polls($1)', [
    JSON.stringify(
      Object.entries(results).map(([entity_id, given]) => ({ attempt: 1, run: 1, entity_id, result: given })),
    ),
  ]);

const minutesTo = async (engine: Engine, at: unknown) =>
  ((at as Date).getTime() - (await engine.now()).getTime()) / 60_000;

describe('a poll that is done', () => {
  test('brings its articles into the queue at 100, and the source on to its next poll', async ({ engine }) => {
    const id = await addSource(engine);
    await apply(engine, { [id]: result({ urls: found('a', 'b') }) });
    expect(await queue(engine)).toEqual(
      ['a', 'b'].map((path) => ({
        url: `https://site.test/${path}`,
        title: `About ${path}`,
        status_code: 110,
        entry_type: 'discovered',
        source_id: id,
      })),
    );
    // From 100 on the pipeline takes over.
    expect(
      await engine.rows(`select distinct to_status, changed_by from public.status_history where from_status is null`),
    ).toEqual([{ to_status: 100, changed_by: 'agent:poll' }]);
    const row = await source(engine, id);
    expect(row).toMatchObject({
      kind: 'rss',
      etag: '"v1"',
      found: 2,
      last_error: null,
      last_polled_at: await engine.now(),
    });
    expect(await minutesTo(engine, row.next_poll_at)).toBe(60);
  });

  test('leaves out what the queue has, under whatever spelling, and counts what it brought', async ({ engine }) => {
    await engine.sql.query(
      `insert into public.ingestion_queue (url, entry_type) values ('http://www.site.test/a/', 'manual')`,
    );
    const [one, other] = [await addSource(engine), await addSource(engine)];
    await apply(engine, { [one]: result({ urls: found('a', 'b') }), [other]: result({ urls: found('b?', 'c') }) });
    expect((await queue(engine)).map(({ url }) => url)).toHaveLength(3);
    expect(await engine.value('select sum(found)::int from public.source')).toBe(2);
    expect(await engine.rows('select from public.ingestion_queue where status_code = 520')).toEqual([]);
  });

  test('that has found nothing new writes nothing into the queue, and keeps what the source knows', async ({
    engine,
  }) => {
    const id = await addSource(engine);
    await apply(engine, { [id]: result({ urls: found('a') }) });
    await apply(engine, { [id]: result({ state: null }) });
    expect(await source(engine, id)).toMatchObject({ kind: 'rss', etag: '"v1"', found: 1, last_error: null });
    expect(await queue(engine)).toHaveLength(1);
  });

  test('and has left off goes on a minute later; one that the site sends away waits as long as it asks', async ({
    engine,
  }) => {
    const [on, away, long] = [await addSource(engine), await addSource(engine), await addSource(engine)];
    await apply(engine, {
      [on]: result({ more: true }),
      [away]: result({ more: true, wait_seconds: 120 }),
      [long]: result({ state: null, wait_seconds: 7200, error: { code: 'rate_limited', message: 'Wait.' } }),
    });
    const waits: number[] = [];
    for (const id of [on, away, long]) waits.push(await minutesTo(engine, (await source(engine, id)).next_poll_at));
    expect(waits).toEqual([1, 2, 120]);
  });

  test('and has failed says why on its source, which is due again by its interval; others go on', async ({
    engine,
  }) => {
    const [good, bad] = [await addSource(engine), await addSource(engine)];
    await engine.sql.query(`update public.source set every = '10 minutes' where id = $1`, [bad]);
    await apply(engine, { [bad]: result() });
    await apply(engine, {
      [good]: result({ urls: found('a') }),
      [bad]: result({ state: null, error: { code: 'no_feed', message: 'The address gives a web page.' } }),
    });
    const row = await source(engine, bad);
    expect(row).toMatchObject({ last_error: 'The address gives a web page.', kind: 'rss', etag: '"v1"' });
    expect(await minutesTo(engine, row.next_poll_at)).toBe(10);
    expect(await source(engine, good)).toMatchObject({ last_error: null, found: 1 });
    await apply(engine, { [bad]: result({ state: null }) });
    expect(await source(engine, bad)).toMatchObject({ last_error: null });
  });
});

test('two polls that find the same page at once bring it once, and neither as a duplicate', async ({ engine }) => {
  const [one, other] = [await addSource(engine), await addSource(engine)];
  const first = await openTransaction(engine);
  await apply(engine, { [one]: result({ urls: found('a', 'b') }) }, first);
  const second = await engine.database.connect();
  const waiting = begin(apply(engine, { [other]: result({ urls: found('b', 'c') }) }, second));
  await untilBlocked(engine, second);
  await first.query('commit');
  await waiting;
  expect((await queue(engine)).map(({ url, status_code }) => [url, status_code])).toEqual(
    ['a', 'b', 'c'].map((path) => [`https://site.test/${path}`, 110]),
  );
});

test('a link that a poll found is in no queue when its completion does not commit', async ({ engine }) => {
  const id = await addSource(engine);
  const client = await openTransaction(engine);
  await apply(engine, { [id]: result({ urls: found('a') }) }, client);
  await client.query('rollback');
  expect([await queue(engine), (await source(engine, id)).found]).toEqual([[], 0]);
});

test('the stage poll writes both with its completion, once', async ({ engine }) => {
  const id = await addSource(engine);
  await engine.value('select millrace.start($1, $2)', ['sources', id]);
  const worker = await Worker.of(engine, 'poll', 'sources');
  const item = await worker.takeOne();
  expect(item.entity).toMatchObject({ id, address: expect.stringContaining('site.test') });
  expect(await worker.report(completed(item, result({ urls: found('a') })))).toEqual(['accepted']);
  expect(await worker.report(completed(item, result({ urls: found('b') })))).toEqual(['duplicate']);
  expect((await queue(engine)).map(({ url }) => url)).toEqual(['https://site.test/a']);
  expect(await source(engine, id)).toMatchObject({ found: 1 });
});

describe('the sweep starts polls', () => {
  const polls = async (engine: Engine) => {
    await engine.sql.query('select millrace.sweep()');
    return (
      await engine.rows<{ id: string }>(`select entity_id as id from millrace.runs where status = 'running' order by 1`)
    ).map(({ id }) => id);
  };

  test('of sources that are due, each by its own interval, and of none that is switched off', async ({ engine }) => {
    const [hourly, daily, off] = [await addSource(engine), await addSource(engine), await addSource(engine)];
    await engine.sql.query(`update public.source set every = '1 day' where id = $1`, [daily]);
    await engine.sql.query('update public.source set enabled = false where id = $1', [off]);
    expect(await polls(engine)).toEqual([hourly, daily].sort());
    expect(await polls(engine), 'once at a time').toHaveLength(2);
    const worker = await Worker.of(engine, 'poll', 'sources');
    await worker.report(...(await worker.take()).map((item) => completed(item, result())));
    expect(await polls(engine)).toEqual([]);
    await engine.advance('61 minutes');
    expect(await polls(engine)).toEqual([hourly]);
  });

  test('and one that has failed for good is due again by its interval, however it failed', async ({ engine }) => {
    const id = await addSource(engine);
    await polls(engine);
    const worker = await Worker.of(engine, 'poll', 'sources');
    // As its second attempt does before it begins.
    await engine.sql.query(`select public.postpone_source($1, 'Cut off.')`, [id]);
    await worker.report(...(await worker.take()).map((item) => failed(item, { permanent: true })));
    await engine.advance('5 minutes');
    expect(await polls(engine)).toEqual([]);
    await engine.advance('1 hour');
    expect(await polls(engine)).toEqual([id]);
  });

  test('by an index', async ({ engine }) => {
    const check = `select ok from millrace.doctor() where what like 'due rows of pipeline sources%'`;
    expect(await engine.rows(check)).toEqual([{ ok: true }]);
  });
});

test('unknown_urls names what no article has, each page once, and keeps their spelling', async ({ engine }) => {
  await engine.sql.query(`insert into public.ingestion_queue (url) values ('https://site.test/a')`);
  const client = await engine.database.connect('service_role');
  const asked = [
    'https://site.test/a/',
    'https://site.test/b',
    'http://www.site.test/b?utm_source=x',
    'https://site.test/c',
  ];
  const { rows } = await client.query('select public.unknown_urls($1) as urls', [asked]);
  expect(rows[0].urls.toSorted()).toEqual(['https://site.test/b', 'https://site.test/c']);
  expect((await client.query(`select public.unknown_urls('{}') as urls`)).rows).toEqual([{ urls: [] }]);
});

describe('a source that is written', () => {
  test('is due at once when it is new', async ({ engine }) => {
    const id = await addSource(engine);
    expect(await source(engine, id)).toMatchObject({ next_poll_at: await engine.now(), kind: null, found: 0 });
  });

  test('is not due while it is switched off, not even when a poll ends; switched on, at once', async ({ engine }) => {
    const id = await addSource(engine);
    await engine.sql.query('update public.source set enabled = false where id = $1', [id]);
    await apply(engine, { [id]: result() });
    await engine.sql.query(`select public.postpone_source($1, 'Cut off.')`, [id]);
    expect(await source(engine, id)).toMatchObject({ next_poll_at: null, last_error: null });
    await engine.sql.query('update public.source set enabled = true where id = $1', [id]);
    expect(await source(engine, id)).toMatchObject({ next_poll_at: await engine.now() });
  });

  test('forgets what its old address has said when it gets a new one', async ({ engine }) => {
    const id = await addSource(engine);
    await apply(engine, { [id]: result({ urls: found('a'), error: { code: 'no_links', message: 'One.' } }) });
    await engine.sql.query(`update public.source set address = 'https://other.test/' where id = $1`, [id]);
    expect(await source(engine, id)).toMatchObject({
      kind: null,
      etag: null,
      cursor: null,
      last_error: null,
      found: 1,
      next_poll_at: await engine.now(),
    });
  });

  test('is put off by its interval when its poll was cut off', async ({ engine }) => {
    const id = await addSource(engine);
    await engine.sql.query(`select public.postpone_source($1, 'Polling it was cut off.')`, [id]);
    const row = await source(engine, id);
    expect([row.last_error, await minutesTo(engine, row.next_poll_at)]).toEqual(['Polling it was cut off.', 60]);
  });

  test('within bounds', async ({ engine }) => {
    const id = await addSource(engine);
    for (const [given, constraint] of [
      [`every = '10 seconds'`, 'source_every_bounds'],
      [`every = '2 months'`, 'source_every_bounds'],
      [`kind = 'opml'`, 'source_kind_known'],
      [`address = ''`, 'source_address_length'],
    ]) {
      const refusal = await engine.refusal(`update public.source set ${given} where id = $1`, [id]);
      expect({ given, ...refusal }).toMatchObject({
        code: '23514',
        message: expect.stringContaining(`"${constraint}"`),
      });
    }
  });

  test('can be deleted; its articles stay', async ({ engine }) => {
    const id = await addSource(engine);
    await apply(engine, { [id]: result({ urls: found('a') }) });
    await engine.sql.query('delete from public.source where id = $1', [id]);
    expect(await queue(engine)).toMatchObject([{ source_id: null, status_code: 110 }]);
  });
});

describe('rights', () => {
  const curator = { sub: randomUUID(), app_metadata: { role: 'curator' } };

  test('curators add, change and remove sources; nobody else sees one', async ({ engine }) => {
    const client = await engine.database.connect('authenticated', curator);
    await client.query(`insert into public.source (address, every) values ('https://site.test/f', '1 day')`);
    await client.query(`update public.source set enabled = false, name = 'Site'`);
    expect((await client.query('select name, next_poll_at from public.source')).rows).toEqual([
      { name: 'Site', next_poll_at: null },
    ]);
    const other = await engine.database.connect('authenticated', { sub: randomUUID() });
    expect((await other.query('select from public.source')).rows).toEqual([]);
    expect(
      await engine.refusal(`insert into public.source (address) values ('https://a.test')`, [], other),
    ).toMatchObject({ code: '42501' });
    expect((await client.query('delete from public.source')).rowCount).toBe(1);
  });

  test('nobody who comes with a token writes what polls write, or calls their functions', async ({ engine }) => {
    await addSource(engine);
    const client = await engine.database.connect('authenticated', curator);
    const anon = await engine.database.connect('anon');
    for (const statement of [
      'update public.source set found = 9',
      `update public.source set cursor = '{}'`,
      `select public.apply_polls('[]')`,
      `select public.unknown_urls('{}')`,
      `select public.postpone_source(null, '')`,
    ]) {
      expect({ statement, ...(await engine.refusal(statement, [], client)) }).toMatchObject({
        statement,
        code: '42501',
      });
    }
    expect(await engine.refusal('select from public.source', [], anon)).toMatchObject({ code: '42501' });
  });
});
