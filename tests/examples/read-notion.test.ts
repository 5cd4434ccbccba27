import { afterAll, beforeAll, expect, test } from 'vitest';
import { notionId } from '../../supabase/functions/_services/notion/find-data-source.ts';
import { notionClient } from '../../supabase/functions/_services/notion/notion-client.ts';
import { notionSettings } from '../../supabase/functions/_services/notion/notion-settings.ts';
import { pageLinks } from '../../supabase/functions/_services/notion/page-links.ts';
import { type NotionCursor, readDataSource } from '../../supabase/functions/_services/notion/read-data-source.ts';
import type { SourceLink } from '../../supabase/functions/_services/text-links.ts';
import { serveSources } from '../support/examples/source-files.ts';

let sources: Awaited<ReturnType<typeof serveSources>>;
beforeAll(async () => {
  sources = await serveSources({ most: 250 });
});
afterAll(() => sources?.stop());

/** How long a stand-in takes is the machine's: what bounds a read has tests of its own. */
const unbounded = new AbortController().signal;
const id = 'ab'.repeat(16);
const address = `https://www.notion.so/acme/Jobs-${id}?v=${'cd'.repeat(16)}`;
const page = (n: number, more: object = {}) => ({
  id: n.toString(16).padStart(32, '0'),
  created_time: new Date(Date.UTC(2026, 9, 1) + n * 60_000).toISOString(),
  properties: { Link: `https://example.com/${n}` },
  ...more,
});
const write = (pages: object[], more: object = {}) => sources.write(`${id}.json`, { pages, ...more });
const start = new Date('2026-11-01T08:00:00Z');

const client = (NOTION_TOKEN = 'secret') =>
  notionClient(notionSettings.parse({ NOTION_TOKEN, NOTION_API_URL: sources.notion.url }), unbounded, 3_600_000);

async function readAll(begun: NotionCursor | null = null, column: string | null = 'Link', from = address, now = start) {
  const links: SourceLink[] = [];
  let cursor = begun;
  for (let more = true; more; ) {
    const read = await readDataSource(client(), { address: from, column, cursor }, () => now);
    links.push(...read.links);
    ({ cursor, more } = read);
  }
  return { links, cursor: cursor as NotionCursor };
}
const urls = (links: SourceLink[]) => new Set(links.map(({ url }) => url));

test('all pages are read, past the number that one query lists', async () => {
  write(Array.from({ length: 600 }, (_, n) => page(n)));
  const { links, cursor } = await readAll();
  expect(urls(links).size).toBe(600);
  expect(cursor).toMatchObject({ by: 'last_edited_time', mark: null, began: null });
  expect(links[0]?.place).toBe(`https://www.notion.so/${page(0).id}`);
});

test('later only what was edited since is read, and a little of what was before', async () => {
  const pages = Array.from({ length: 200 }, (_, n) => page(n));
  write(pages);
  const { cursor } = await readAll();
  const edited = { last_edited_time: '2026-11-01T09:00:00.000Z', properties: { Link: 'https://example.com/edited' } };
  const overlapping = {
    last_edited_time: '2026-11-01T07:58:00.000Z',
    properties: { Link: 'https://example.com/just-before' },
  };
  write([...pages.slice(2), page(0, edited), page(1, overlapping)]);
  sources.asked.length = 0;
  const later = await readAll(cursor, 'Link', address, new Date('2026-11-01T12:00:00Z'));
  expect(urls(later.links)).toEqual(new Set(['https://example.com/just-before', 'https://example.com/edited']));
  expect(sources.asked).toHaveLength(1);
});

test('a mark that Notion no longer knows begins its window anew', async () => {
  write(Array.from({ length: 150 }, (_, n) => page(n)));
  const { cursor } = await readDataSource(client(), { address, column: 'Link', cursor: null }, () => start);
  const lost = { ...cursor, mark: 'f'.repeat(32) };
  expect(await readDataSource(client(), { address, column: 'Link', cursor: lost }, () => start)).toMatchObject({
    links: [],
    more: true,
  });
  expect(urls((await readAll(lost)).links).size).toBe(150);
});

test('links are found in properties of all kinds, unless one is named', async () => {
  const rich = (plain_text: string, href: string | null) => ({ type: 'text', plain_text, href });
  const properties = {
    Name: { type: 'title', title: [rich('Engineer ', null), rich('here', 'https://example.com/title')] },
    Notes: { type: 'rich_text', rich_text: [rich('or https://example.com/text.', null)] },
    Link: { type: 'url', url: 'https://example.com/url' },
    Built: { type: 'formula', formula: { type: 'string', string: 'https://example.com/formula' } },
    Files: { type: 'files', files: [{ type: 'external', name: 'x', external: { url: 'https://example.com/file' } }] },
    Count: { type: 'number', number: 3 },
  };
  write([page(0, { properties })]);
  expect([...urls((await readAll(null, null)).links)].map((url) => url.replace('https://example.com/', ''))).toEqual([
    ...['title', 'text', 'url', 'formula', 'file'],
  ]);
  expect(urls((await readAll(null, 'Link')).links)).toEqual(new Set(['https://example.com/url']));
  await expect(readAll(null, 'URL')).rejects.toMatchObject({
    code: 'no_column',
    message: expect.stringContaining('it has Name, Notes, Link'),
  });
});

test('a text in the named property that is no link is taken as it is', async () => {
  write([
    page(0, { properties: { Link: { type: 'rich_text', rich_text: [{ plain_text: 'example.com/7', href: null }] } } }),
  ]);
  expect(urls((await readAll()).links)).toEqual(new Set(['example.com/7']));
});

test('a database leads to its data source', async () => {
  const database = 'ef'.repeat(16);
  write([page(0)]);
  sources.write(`${database}.json`, { name: 'Jobs', database: id, pages: [] });
  expect(urls((await readAll(null, 'Link', `https://www.notion.so/${database}`)).links).size).toBe(1);
  expect(urls((await readAll(null, 'Link', `collection://${id}`)).links).size).toBe(1);
});

test('an id is found in whatever form Notion writes it', () => {
  const dashed = 'abababab-abab-abab-abab-abababababab';
  for (const form of [
    id,
    dashed,
    `collection://${dashed}`,
    address,
    `https://www.notion.so/acme/${'12'.repeat(16)}-${id}`,
  ]) {
    expect(notionId(form)).toBe(id);
  }
  expect(notionId('https://example.com/jobs')).toBeNull();
});

test.each([
  ['what is no address', 'https://example.com/jobs', 'invalid_address'],
  ['what is not there', `https://www.notion.so/${'1'.repeat(32)}`, 'not_found'],
])('%s is refused with what to do', async (_, from, code) => {
  await expect(readAll(null, 'Link', from)).rejects.toMatchObject({ code, permanent: true });
});

test('a page that is not shared any more says so', async () => {
  write([], { shared: false });
  await expect(readAll()).rejects.toMatchObject({ code: 'not_found', message: expect.stringContaining('Connections') });
});

test('more pages of one moment than a query lists are told, not left out', async () => {
  const created_time = '2026-10-05T10:00:00.000Z';
  write(Array.from({ length: 300 }, (_, n) => page(n, { created_time })));
  await expect(readAll()).rejects.toMatchObject({ code: 'too_many_at_once', permanent: true });
});

test('a token that is refused is a setting to mend', async () => {
  write([page(0)]);
  const read = readDataSource(client('old'), { address, column: null, cursor: null }, () => start);
  await expect(read).rejects.toMatchObject({ code: 'misconfigured', message: expect.stringContaining('NOTION_TOKEN') });
});

test.each([429, 529, 503])('Notion’s own trouble %s is tried again, after the time it asks for', async (status) => {
  write([page(0)]);
  sources.failNext({ status, headers: { 'retry-after': '9' } });
  await expect(readAll()).rejects.toMatchObject({ permanent: false, retryAfterMs: 9000 });
});

test('pages that are edited while a pass is read hide no others', async () => {
  const minute = (n: number) => new Date(Date.UTC(2026, 10, 1, 9) + n * 60_000).toISOString();
  const pages = Array.from({ length: 300 }, (_, n) => page(n, { last_edited_time: minute(Math.floor(n / 10)) }));
  write(pages);
  let cursor: NotionCursor = { ...(await firstCursor()), from: minute(-60) };
  const seen = new Set<string>();
  const now = new Date(minute(60));
  for (let reads = 0, more = true; more; reads++) {
    const read = await readDataSource(client(), { address, column: 'Link', cursor }, () => now);
    for (const { url } of read.links) seen.add(url);
    ({ cursor, more } = read);
    // The page that would be next is edited, and moves to the end.
    if (reads === 0) Object.assign(pages[100] as object, { last_edited_time: minute(61) });
    write(pages);
  }
  expect(seen.size).toBe(300);
});

test('more pages of one minute than a read brings are all read, also while some are edited', async () => {
  const at = '2026-11-01T09:00:00.000Z';
  const pages = Array.from({ length: 240 }, (_, n) => page(n, { last_edited_time: at }));
  write(pages);
  let cursor: NotionCursor = { ...(await firstCursor()), from: '2026-11-01T08:00:00.000Z' };
  const seen = new Set<string>();
  for (let reads = 0, more = true; more; reads++) {
    const read = await readDataSource(client(), { address, column: 'Link', cursor }, () => new Date(at));
    for (const { url } of read.links) seen.add(url);
    ({ cursor, more } = read);
    if (reads === 2) Object.assign(pages[100] as object, { last_edited_time: '2026-11-01T09:01:00.000Z' });
    write(pages);
    expect(reads).toBeLessThan(20);
  }
  expect(seen.size).toBe(240);
});

/** Where a pass over edited pages begins. */
async function firstCursor(): Promise<NotionCursor> {
  const { cursor } = await readAll();
  return { ...cursor, by: 'last_edited_time' };
}

test.each([
  [`https://www.notion.so/acme/Team-2024-${id}`, id],
  [`https://www.notion.so/Cafe-${id}?pvs=4`, id],
  [`https://www.notion.so/acme/${'ef'.repeat(16)}/${id}/`, id],
  [`https://www.notion.so/${id}/view`, id],
])('the id is found after a title that ends in digits or a to f: %s', (given, found) => {
  expect(notionId(given)).toBe(found);
});

test('texts beside a link keep apart, rollups are looked through, and a full stop makes no second link', () => {
  const text = (plain_text: string, href: string | null = null) => ({ plain_text, href });
  const rich = (...rich_text: object[]) => ({ type: 'rich_text', rich_text });
  const properties = {
    Text: rich(
      text('https://example.com/a'),
      text('here', 'https://example.com/b'),
      text('https://example.'),
      text('com/c'),
    ),
    Stop: rich(text('Look: '), text('https://example.com/d.', 'https://example.com/d.')),
    Up: {
      type: 'rollup',
      rollup: {
        type: 'array',
        array: [{ type: 'url', url: 'https://example.com/e' }, rich(text('https://example.com/f'))],
      },
    },
    Sum: { type: 'rollup', rollup: { type: 'number', number: 3 } },
  };
  const found = pageLinks({ properties, url: 'https://www.notion.so/p' } as never, null);
  expect(found.map(({ url }) => url.replace('https://example.com/', '')).sort()).toEqual([...'abcdef']);
});
