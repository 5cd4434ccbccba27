// The changes that a signed-in user who is no curator may do to everybody else's articles: nothing.
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect } from 'vitest';
import type { Row } from '../support/engine.ts';
import { type Articles, test as base, complete, curatorClaims } from '../support/examples/articles.ts';
import { completed, Worker } from '../support/worker.ts';

const test = base.extend<{ user: pg.Client; other: pg.Client; curator: pg.Client }>({
  user: async ({ engine, articles: _ }, use) => {
    await use(await engine.database.connect('authenticated', { sub: randomUUID() }));
  },
  other: async ({ engine, articles: _ }, use) => {
    await use(await engine.database.connect('authenticated', { sub: randomUUID() }));
  },
  curator: async ({ engine, articles: _ }, use) => {
    await use(await engine.database.connect('authenticated', curatorClaims('rick')));
  },
});

const url = 'https://looms.test/news/1';
const content = 'A loom is a device that weaves cloth from yarn, and this is a long text about it.';
const manual = { entry_type: 'manual' };
const fresh = { is_copy: false, duplicate_of: null };

/** Completes the fetch of the articles that are queued there, each with the content given for its address. */
async function fetched(articles: Articles, found: (url: string) => Row): Promise<void> {
  const worker = await Worker.of(articles.engine, 'fetch', 'articles');
  const batch = await worker.take(50);
  await worker.report(...batch.map((item) => completed(item, { title: 'Looms', ...found(item.entity.url as string) })));
  await worker.leave();
}

test('an article that a user adds makes no copy of anybody else’s, whatever its address and text', async ({
  articles,
  user,
  other,
  curator,
}) => {
  const junk = await articles.insert({ url, content, ...manual }, user);
  expect(junk).toMatchObject({ let_in: false, ...fresh });
  expect(await articles.insert({ url }, articles.engine.sql)).toMatchObject({ status_code: 100, ...fresh });
  expect(await articles.insert({ url: `${url}/2`, content, ...manual }, other)).toMatchObject(fresh);
  expect(await articles.insert({ content, ...manual }, curator)).toMatchObject({ let_in: true, ...fresh });
});

test('and so it is with what is found at the address', async ({ articles, user }) => {
  const [junk, own] = [
    await articles.insert({ url, ...manual }, user),
    await articles.insert({ url: 'https://looms.test/story' }),
  ];
  await fetched(articles, () => ({ content, canonical_url: 'https://looms.test/story' }));
  expect(await articles.row(own.id)).toMatchObject({ status_code: 120, ...fresh });
  // The one that is let in is known to the other, which is not told of it.
  expect(await articles.row(junk.id)).toMatchObject({ is_copy: true, duplicate_of: null });
});

test('an article that a user adds twice, or that is known, is a copy: it names the user’s own article, and none of others', async ({
  articles,
  user,
  other,
}) => {
  const first = await articles.insert({ url, ...manual }, user);
  expect(await articles.insert({ url, ...manual }, user)).toMatchObject({ status_code: 520, duplicate_of: first.id });
  await articles.insert({ url: `${url}/feed` });
  for (const client of [user, other]) {
    const copy = await articles.insert({ url: `${url}/feed`, ...manual }, client);
    expect(copy).toMatchObject({ status_code: 520, is_copy: true, duplicate_of: null });
  }
});

test('once a curator approves it, its address and text are known to all that come later', async ({
  articles,
  user,
  other,
  curator,
}) => {
  const { id } = await articles.insert({ ...complete, url, content }, user);
  const move = (code: number) =>
    curator.query('update public.ingestion_queue set status_code = $2 where id = $1', [id, code]);
  await move(310);
  expect(await articles.insert({ url: `${url}?utm_source=x` })).toMatchObject(fresh);
  await articles.engine.sql.query('delete from public.ingestion_queue where id <> $1', [id]);
  await move(330);
  expect(await articles.row(id)).toMatchObject({ let_in: true });
  expect(await articles.insert({ url })).toMatchObject({ status_code: 520, duplicate_of: id });
  expect(await articles.insert({ content, ...manual }, other)).toMatchObject({ status_code: 520, duplicate_of: null });
});

test('a copy that a curator lets go on is none any more', async ({ articles, user, curator }) => {
  await articles.insert({ url });
  const { id } = await articles.insert({ url, ...manual }, user);
  await curator.query('update public.ingestion_queue set status_code = 110 where id = $1', [id]);
  expect(await articles.row(id)).toMatchObject({ status_code: 110, no_duplicate: true, ...fresh });
  await fetched(articles, (found) => ({ content: `${content} `.repeat(2), canonical_url: found }));
  expect((await articles.row(id)).is_copy).toBe(false);
});

const long = (bytes: number) => 'é'.repeat(bytes / 2);
test.for<[field: string, most: number, value: (bytes: number) => unknown]>([
  ['url', 2048, (bytes) => `https://looms.test/${'a'.repeat(bytes - 19)}`],
  ['thumbnail_url', 2048, (bytes) => `https://looms.test/${'a'.repeat(bytes - 19)}`],
  ['image_url', 2048, long],
  ['title', 1000, long],
  ['summary', 8000, long],
  ['author', 1000, long],
  ['language', 1000, long],
  ['content', 1_000_000, long],
  ['tags', 4000, (bytes) => [long(bytes - 2)]],
])('%s has at most %i bytes, and the refusal says so', async ([field, most, value], { articles, user }) => {
  const article = { url, content, ...manual };
  await expect(articles.insert({ ...article, [field]: value(most + 2) }, user)).rejects.toMatchObject({
    code: '23514',
    message: `${field} of an article has ${most + 2} bytes`,
    hint: `Shorten it: ${field} may have ${most} bytes of UTF-8 at most.`,
    detail: undefined,
  });
  await articles.insert({ ...article, [field]: value(most) }, user);
});

test('an edit is held to the same bounds, and a text of 15 MB is refused in a few words', async ({
  articles,
  engine,
  user,
}) => {
  const id = await articles.reviewed(310, 320);
  const edit = `update public.ingestion_queue set title = repeat('x', 6000000) where id = '${id}'`;
  expect((await engine.refusal(edit)).message).toBe('title of an article has 6000000 bytes');
  const refusal = await articles.insert({ content: 'x'.repeat(15_000_000), ...manual }, user).catch((error) => error);
  expect(JSON.stringify(refusal).length).toBeLessThan(2000);
  expect(refusal.hint).toContain('1000000 bytes');
});

test('of two thousand articles that a user adds at once a hundred begin, and nobody else’s wait for them', async ({
  engine,
  user,
  articles,
}) => {
  await user.query(
    `insert into public.ingestion_queue (entry_type, content) select 'manual', 'Text ' || n from generate_series(1, 2000) n`,
  );
  await articles.insert({ content: 'By somebody else', ...manual });
  await engine.sql.query(
    `insert into public.ingestion_queue (entry_type, content) select 'import', 'Found ' || n from generate_series(1, 150) n`,
  );
  // However many are in work at once.
  await engine.sql.query('update millrace.stages set concurrency = null');
  const taken = async (stage: string) => {
    const worker = await Worker.of(engine, stage, 'articles');
    const ids: string[] = [];
    for (let claims = 0; claims < 60; claims++) ids.push(...(await worker.take(50)).map((item) => item.entity_id));
    return engine.value<number>(
      'select count(*)::int from public.ingestion_queue where id = any ($1::uuid[]) and added_by is not null',
      [ids],
    );
  };
  expect(await taken('summarize')).toBe(100);
  expect(await taken('score')).toBe(0);
  const others = `select count(*)::int from public.ingestion_queue where added_by is null and status_code in (121, 211)`;
  expect(await engine.value(others)).toBe(151);
});
