// How articles enter: the code at which each begins, how it entered first, and copies that are known again.
import { describe, expect } from 'vitest';
import type { Row } from '../support/engine.ts';
import { complete, curatorClaims, test } from '../support/examples/articles.ts';
import { articlesInOrder } from '../support/examples/define-articles.ts';
import { untilBlocked } from '../support/sessions.ts';
import { failed, Worker } from '../support/worker.ts';

const url = 'https://looms.test/news/1';
const content = 'A loom is a device that weaves cloth from yarn, and this is a long text about it.';
const { summary, tags, thumbnail_url } = complete;

const entries: [what: string, brought: Row, code: number][] = [
  ['a discovered URL', { url }, 100],
  ['a discovered URL with its text', { url, content }, 100],
  ['a URL by hand', { url, entry_type: 'manual' }, 110],
  ['a URL with what is blank', { url, entry_type: 'manual', content: ' ', summary: '', tags: [] }, 110],
  ['an imported URL', { url, entry_type: 'import' }, 110],
  ['a text by hand', { content, entry_type: 'manual' }, 200],
  ['a text with tags by hand', { content, tags, entry_type: 'manual' }, 200],
  ['an imported text', { content, entry_type: 'import' }, 120],
  ['a summary by hand', { summary, url, entry_type: 'manual' }, 220],
  ['a text with its summary by hand', { content, summary, entry_type: 'manual' }, 220],
  ['a summary with tags', { summary, tags, entry_type: 'manual' }, 230],
  ['a summary with an image', { summary, thumbnail_url, entry_type: 'import' }, 220],
  ['all that a review needs', { summary, tags, thumbnail_url, entry_type: 'manual' }, 300],
  ['all that a review needs, imported', { summary, tags, thumbnail_url, entry_type: 'import' }, 300],
];

describe('without a code an article begins by what it brings', () => {
  test.for(entries)('%s', async ([, brought, code], { articles }) => {
    const row = await articles.insert(brought);
    const [first] = await articles.history(row.id);
    expect(first).toMatchObject({ from_status: null, to_status: code });
    expect(row.entered_as).toBe(brought.entry_type ?? 'discovered');
  });
});

test('the first step that is not given follows the order of the stages', async ({ articles, engine }) => {
  await engine.define(articlesInOrder(['thumbnail', 'summarize', 'tag']));
  expect((await articles.insert({ summary, entry_type: 'manual' })).status_code).toBe(230);
});

test.for<[what: string, brought: Row, message: RegExp, hint: RegExp]>([
  ['nothing', { entry_type: 'manual', title: 'A title' }, /has no url/, /url.*content or a summary/],
  ['a discovered text', { content }, /discovered\) has no url/, /enter it as "manual" or "import"/],
  [
    '300 without a summary',
    { url, entry_type: 'manual', tags, status_code: 300 },
    /^300 needs summary, tags, thumbnail_url: .* lacks summary, thumbnail_url$/,
    /begins at 110/,
  ],
  ['520 by hand', { url, status_code: 520 }, /520 by hand/, /Leave status_code out/],
  ['an entry as retry', { url, entry_type: 'retry' }, /entry_type is "retry"/, /"manual", "import" or "discovered"/],
])('%s is refused with the remedy', async ([, brought, message, hint], { articles, engine }) => {
  const refusal = await articles.insert(brought).catch((error) => error);
  expect(refusal).toMatchObject({ code: 'MR005' });
  expect(refusal.message).toMatch(message);
  expect(refusal.hint).toMatch(hint);
  expect(await engine.value('select count(*)::int from public.ingestion_queue')).toBe(0);
});

test('how an article entered first never changes, and what failed is a retry once it begins again', async ({
  articles,
  engine,
}) => {
  const id = await articles.reviewed(310, 540);
  expect(await engine.refusal(`update public.ingestion_queue set entered_as = 'import'`)).toMatchObject({
    code: 'MR005',
    message: expect.stringContaining('was changed from manual to import'),
  });
  await articles.move(id, 300);
  expect(await articles.row(id)).toMatchObject({ entry_type: 'retry', entered_as: 'manual' });
});

test('two thousand are inserted with one known URL: that one is a duplicate of the first', async ({
  articles,
  engine,
}) => {
  const first = await articles.insert({ url: 'https://www.looms.test/page/77/?utm_source=mail&b=2&a=1#top' });
  await engine.sql.query(
    `insert into public.ingestion_queue (url)
     select 'http://looms.test/page/' || n || '?a=1&b=2' from generate_series(1, 2000) n`,
  );
  expect(
    await engine.rows(
      'select status_code, count(*)::int, array_agg(distinct duplicate_of) as of from public.ingestion_queue group by 1 order by 1',
    ),
  ).toEqual([
    { status_code: 110, count: 2000, of: [null] },
    { status_code: 520, count: 1, of: [first.id] },
  ]);
});

test('one URL twice in a statement, or a text of another, is a duplicate, and a copy of a copy names the original', async ({
  articles,
  engine,
}) => {
  await engine.sql.query(`insert into public.ingestion_queue (url) values ('${url}'), ('${url}')`);
  const [first, second] = await engine.rows('select id, duplicate_of from public.ingestion_queue order by status_code');
  expect(second?.duplicate_of).toBe(first?.id);
  const text = await articles.insert({ content, url: 'https://a.test/1', entry_type: 'manual' });
  const copy = await articles.insert({ content: content.toUpperCase(), url: 'https://a.test/2', entry_type: 'import' });
  expect(copy).toMatchObject({ status_code: 520, duplicate_of: text.id });
  expect(await articles.insert({ url: 'https://a.test/2' })).toMatchObject({ status_code: 520, duplicate_of: text.id });
});

test('a known URL is free again once its article is deleted', async ({ articles, engine }) => {
  const { id } = await articles.insert({ url });
  await engine.sql.query('delete from public.ingestion_queue where id = $1', [id]);
  expect(await articles.insert({ url })).toMatchObject({ duplicate_of: null });
});

test('an article whose page has no text is entered anew by hand, with its text', async ({ articles, engine }) => {
  const { id } = await articles.insert({ url });
  const worker = await Worker.of(engine, 'fetch', 'articles');
  await worker.report(failed(await worker.takeOne(), { code: 'no_content', message: 'no text', permanent: true }));
  expect(await articles.row(id)).toMatchObject({ status_code: 500 });
  const curator = await engine.database.connect('authenticated', curatorClaims('rick'));
  expect((await curator.query('delete from public.ingestion_queue where id = $1', [id])).rowCount).toBe(1);
  const byHand = { url, title: 'Looms', content, entry_type: 'manual' };
  expect(await articles.insert(byHand, curator)).toMatchObject({ status_code: 200, duplicate_of: null });
});

test('of two sessions that insert one URL, the second waits and becomes the duplicate', async ({
  articles,
  engine,
}) => {
  const other = await engine.database.connect();
  await engine.sql.query('begin');
  const first = await articles.insert({ url });
  const second = articles.insert({ url }, other);
  await untilBlocked(engine, other);
  await engine.sql.query('commit');
  expect(await second).toMatchObject({ status_code: 520, duplicate_of: first.id });
});

test('an article that waits for its text holds no URL meanwhile', async ({ articles, engine }) => {
  const [first, other] = [await engine.database.connect(), await engine.database.connect()];
  await first.query('begin');
  await articles.insert({ title: 'Looms', content, entry_type: 'manual' }, first);
  const waiting = articles.insert({ url, content, entry_type: 'manual' }, other);
  await untilBlocked(engine, other);
  await engine.sql.query(`set lock_timeout = '2s'`);
  expect(await articles.insert({ url })).toMatchObject({ duplicate_of: null });
  await first.query('commit');
  expect(await waiting).toMatchObject({ status_code: 520 });
});

test('articles go on entering once the column of before is dropped', async ({ articles, engine }) => {
  await engine.sql.query(
    `alter table public.ingestion_queue drop column status cascade; select millrace.attach('articles')`,
  );
  expect(await articles.insert({ url, entry_type: 'manual' })).toMatchObject({ status_code: 110 });
  expect(await articles.insert({ url: `${url}/2` })).toMatchObject({ status_code: 100 });
});

test('a text without a URL is not fetched: 110 is refused with the remedy, and what that names is open', async ({
  articles,
  engine,
}) => {
  const { id } = await articles.insert({ content, entry_type: 'manual' });
  const curator = await engine.database.connect('authenticated', curatorClaims('rick'));
  const copy = await articles.insert({ content, entry_type: 'manual' }, curator);
  await articles.finish('summarize', { summary });
  const move = (code: number, of: string) =>
    `update public.ingestion_queue set status_code = ${code} where id = '${of}'`;
  for (const one of [id, copy.id]) {
    expect(await engine.refusal(move(110, one), [], curator)).toEqual({
      code: 'MR005',
      message: `article ${one} has no url that could be fetched`,
      hint: 'Write the code of a later step, such as 120 or 210: only what has a url is fetched.',
    });
  }
  await curator.query(move(210, id));
  await curator.query(move(120, copy.id));
  expect([(await articles.row(id)).status_code, (await articles.row(copy.id)).status_code]).toEqual([210, 120]);
});

describe('articles that turn out alike when they are fetched', () => {
  const fetched = (id: string, page: string, text: string): [string, string[]] => [
    'update public.ingestion_queue set canonical_url = $2, content = $3 where id = $1',
    [id, page, text],
  ];
  const claim = 'select public.claim_articles($1) as id';

  test('the second with the same canonical URL or text names the first', async ({ articles, engine }) => {
    const ids = [];
    for (const n of [1, 2, 3]) ids.push((await articles.insert({ url: `https://looms.test/${n}` })).id);
    const [one, two, three] = ids as [string, string, string];
    await engine.rows(...fetched(one, 'https://looms.test/story', content));
    expect(await engine.rows(claim, [[one]])).toEqual([]);
    await engine.rows(...fetched(two, 'https://looms.test/story', 'Another text'));
    await engine.rows(...fetched(three, 'https://looms.test/3', content));
    expect(await engine.rows(claim, [[two, three]])).toHaveLength(2);
    expect([(await articles.row(two)).duplicate_of, (await articles.row(three)).duplicate_of]).toEqual([one, one]);
    expect((await articles.row(one)).text_fingerprint).toMatch(/^text:/);
    // Called again, as by a stage that is retried.
    expect(await engine.rows(claim, [[one]])).toEqual([]);
  });

  test('two that finish together do not become copies of each other', async ({ articles, engine }) => {
    const one = (await articles.insert({ url: 'https://looms.test/1' })).id;
    const two = (await articles.insert({ url: 'https://looms.test/2' })).id;
    const other = await engine.database.connect();
    await engine.sql.query('begin');
    await other.query('begin');
    await engine.rows(...fetched(one, 'https://looms.test/2', ''));
    await other.query(...fetched(two, 'https://looms.test/1', ''));
    expect(await engine.rows(claim, [[one]])).toEqual([{ id: one }]);
    const late = other.query(claim, [[two]]);
    await untilBlocked(engine, other);
    await engine.sql.query('commit');
    expect((await late).rows).toEqual([]);
    await other.query('commit');
    expect([(await articles.row(one)).duplicate_of, (await articles.row(two)).duplicate_of]).toEqual([two, null]);
  });

  test('and neither do two of one batch', async ({ articles, engine }) => {
    const one = (await articles.insert({ url: 'https://looms.test/1' })).id;
    const two = (await articles.insert({ url: 'https://looms.test/2' })).id;
    await engine.rows(...fetched(one, 'https://looms.test/2', ''));
    await engine.rows(...fetched(two, 'https://looms.test/1', ''));
    expect(await engine.rows(claim, [[one, two]])).toHaveLength(1);
  });

  test('an article that a person has found to be no copy is none any more', async ({ articles, engine }) => {
    await articles.insert({ url, content });
    const { id } = await articles.insert({ url: `${url}?page=2`, content });
    await articles.move(id, 120);
    expect(await articles.row(id)).toMatchObject({ duplicate_of: null, no_duplicate: true, entry_type: 'retry' });
    expect(await engine.rows(claim, [[id]])).toEqual([]);
  });
});

test('an address of an image or a page that is no web address is refused', async ({ engine }) => {
  for (const column of ['url', 'thumbnail_url']) {
    const values = column === 'url' ? `'javascript:alert(1)', null` : `null, ' javascript:alert(1)'`;
    expect(
      await engine.refusal(
        `insert into public.ingestion_queue (entry_type, content, url, thumbnail_url) values ('manual', 'x', ${values})`,
      ),
    ).toMatchObject({ code: '23514' });
  }
});
