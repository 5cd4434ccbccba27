// The sample news site: what its feeds name, and what is wrong with it on purpose.
import { imageSize } from 'image-size';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readArticles } from '../../local/demo/samples/news/read-articles.ts';
import { tags, topics } from '../../local/demo/samples/news/seeds.ts';
import { startNews } from '../../local/demo/samples/news/server.ts';
import { feedPaths, unlisted } from '../../local/demo/samples/news/site-feeds.ts';
import type { Service } from '../../local/services/http/listen.ts';
import { type Poll, pollSource } from '../../supabase/functions/_articles/feeds/poll-source.ts';
import { systemResolve } from '../../supabase/functions/_millrace/public-hosts.ts';

let news: Service;
beforeAll(async () => {
  news = await startNews();
});
afterAll(() => news.stop());

const get = (path: string, headers = {}) => fetch(news.url + path, { headers, redirect: 'manual' });
const text = async (path: string) => (await get(path)).text();

function poll(path: string, limits = {}): Promise<Poll> {
  const source = { address: news.url + path, etag: null, last_modified: null, cursor: null };
  const allowed = new Set([new URL(news.url).host]);
  return pollSource(source, {
    access: { allowed, resolve: systemResolve, signal: new AbortController().signal, timeoutMs: 10_000 },
    limits: { newUrls: 100, entries: 1000, bytes: 1_000_000, documents: 10, ms: 10_000, ...limits },
    unknown: async (urls) => urls,
    now: () => new Date(),
  });
}
const found = ({ urls }: Poll) => urls.map(({ url }) => url.replace(news.url, '')).sort();

describe('feeds and sitemaps', () => {
  test.each([
    ['/feed.xml', 'rss', 12],
    ['/atom.xml', 'atom', 7],
    ['/rdf.xml', 'rdf', 5],
    ['/sitemap.xml', 'sitemap_index', 18],
  ])('%s is of kind %s', async (path, kind, count) => {
    const read = await poll(path);
    expect(read).toMatchObject({ state: { kind }, problem: null, more: false });
    expect(read.urls).toHaveLength(count);
  });

  test('together they name every article but one, and each page that goes wrong', async () => {
    const articles = await readArticles();
    expect(articles).toHaveLength(20);
    const named = new Set((await Promise.all(feedPaths.map((path) => poll(path)))).flatMap(found));
    const missing = articles.filter(({ slug }) => !named.has(`/2026/${slug}`) && !named.has(`/go/${slug}`));
    expect(missing.map(({ slug }) => slug)).toEqual([unlisted]);
    for (const path of ['gone', 'withdrawn', 'gallery']) expect(named).toContain(`/2026/${path}`);
    expect(named).toContain('/reports/gardens-in-figures.pdf');
  });

  test('answer 304 to whoever has them', async () => {
    for (const path of feedPaths) {
      const etag = (await get(path)).headers.get('etag') ?? '';
      expect({ path, status: (await get(path, { 'if-none-match': etag })).status }).toEqual({ path, status: 304 });
    }
  });

  test.each([
    ['/broken/page', 'no_feed'],
    ['/broken/unlinked.xml', 'no_links'],
    ['/broken/huge.xml', 'feed_too_large'],
    ['/broken/busy.xml', 'rate_limited'],
    ['/broken/none.xml', 'not_found'],
  ])('%s fails as %s', async (path, code) => {
    await expect(poll(path)).rejects.toMatchObject({ code });
  });

  test('/broken/cut.xml breaks off', async () => {
    expect(await poll('/broken/cut.xml')).toMatchObject({ problem: { code: 'feed_cut_off' }, urls: { length: 1 } });
  });
});

describe('pages', () => {
  test('a link over a counter leads to the article', async () => {
    const answer = await get('/go/bicycle-kitchen');
    expect([answer.status, answer.headers.get('location')]).toEqual([301, '/2026/bicycle-kitchen?utm_source=counter']);
  });

  test('of two addresses of one article, one names the other; a copy does not', async () => {
    const canonical = (page: string) => /<link rel="canonical" href="([^"]*)"/.exec(page)?.[1]?.replace(news.url, '');
    expect(canonical(await text('/print/balcony-beans'))).toBe('/2026/balcony-beans');
    expect(canonical(await text('/2026/repair-cafe-hundred'))).toBe('/2026/repair-cafe-hundred');
    expect(canonical(await text('/partner/repair-cafe-hundred'))).toBeUndefined();
  });

  test('some are gone, one has nothing to read, one is a PDF', async () => {
    expect([(await get('/2026/gone')).status, (await get('/2026/withdrawn')).status]).toEqual([404, 410]);
    expect((await text('/2026/gallery')).replace(/<script>.*?<\/script>|<[^>]*>/gs, '').trim()).toBe('');
    const pdf = await get('/reports/gardens-in-figures.pdf');
    expect([pdf.headers.get('content-type'), (await pdf.text()).slice(0, 5)]).toEqual(['application/pdf', '%PDF-']);
  });
});

describe('pictures', () => {
  const bytes = async (name: string) => new Uint8Array(await (await get(`/images/${name}`)).arrayBuffer());

  test('those of articles are JPEGs of usual size', async () => {
    const names = (await readArticles()).flatMap(({ image }) => image ?? []);
    const traps = ['panorama.jpg', 'emblem.svg', 'not-a-picture.jpg', 'lost.jpg'];
    expect(names).toEqual(expect.arrayContaining(traps));
    for (const name of names.filter((one) => !traps.includes(one))) {
      expect({ name, ...imageSize(await bytes(name)) }).toMatchObject({ name, type: 'jpg', width: 1200, height: 800 });
    }
  });

  test('others are too large by their header, no JPEG, lying or lost', async () => {
    expect(imageSize(await bytes('panorama.jpg'))).toMatchObject({ type: 'jpg', width: 12_000, height: 9_000 });
    expect(imageSize(await bytes('emblem.svg'))).toMatchObject({ type: 'svg' });
    expect((await get('/images/not-a-picture.jpg')).headers.get('content-type')).toBe('image/jpeg');
    expect(() => imageSize(new TextEncoder().encode('<html>'))).toThrow();
    expect((await get('/images/lost.jpg')).status).toBe(404);
  });
});

test('topics and tags have names of their own', () => {
  for (const rows of [topics, tags]) expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
});
