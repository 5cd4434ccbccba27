import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listen, type Service } from '../../local/services/http/listen.ts';
import { startScraper } from '../../local/services/scraper/server.ts';
import { scrape } from './running.ts';

let scraper: Service;
let site: Service;
let html = '';

const text = '<article><h1>Lock gates</h1><p>The old lock gates were replaced after sixty years of use.</p></article>';

beforeAll(async () => {
  const app = new Hono();
  app.get('/plain.txt', (c) => c.text('A plain text.'));
  app.get('*', (c) => c.html(html));
  site = await listen(app.fetch);
  scraper = await startScraper({ env: { SCRAPER_ALLOW_HOSTS: '127.0.0.1' } });
});
afterAll(async () => {
  await Promise.all([scraper.stop(), site.stop()]);
});

async function metadataOf(head: string, { body = text, path = '/news/1?from=feed', root = '<html>' } = {}) {
  html = `<!doctype html>${root}<head><title>Lock gates</title>${head}</head><body>${body}</body></html>`;
  const { result, error } = await scrape(scraper.url, { url: `${site.url}${path}`, max_pages: 1 });
  expect(error).toBeUndefined();
  if (!result?.pages[0]) throw new Error('no page was read');
  const { url, title, markdown, ...metadata } = result.pages[0];
  return metadata;
}
const jsonLd = (value: unknown) => `<script type="application/ld+json">${JSON.stringify(value)}</script>`;
const nothing = { canonical_url: null, image_url: null, author: null, published_at: null, language: null };

describe('what a page says of itself', () => {
  test('in its head is given with absolute addresses, a moment in UTC and a language tag', async () => {
    const metadata = await metadataOf(
      `<link rel="canonical" href="/news/1"><meta property="og:image" content="gates.jpg">
       <meta name="author" content="By  Ines Holm"><meta property="article:published_time" content="2026-03-01T10:30:00+01:00">`,
      { root: '<html lang="en_gb">' },
    );
    expect(metadata).toEqual({
      canonical_url: `${site.url}/news/1`,
      image_url: `${site.url}/news/gates.jpg`,
      author: 'Ines Holm',
      published_at: '2026-03-01T09:30:00.000Z',
      language: 'en-GB',
    });
  });

  test.each([
    ['alone', (article: object) => article],
    ['in a list', (article: object) => [{ '@type': 'WebSite' }, article]],
    ['in a graph', (article: object) => ({ '@graph': [{ '@type': 'Person', name: 'X' }, article] })],
  ])('in structured data %s is found', async (_, wrap) => {
    const article = {
      '@type': ['NewsArticle'],
      image: [{ '@type': 'ImageObject', url: 'https://img.example/gates.jpg' }],
      author: [{ name: 'Ines Holm' }, { name: 'Per Ask' }],
      datePublished: '2026-03-01',
      inLanguage: 'da',
    };
    expect(await metadataOf(jsonLd(wrap(article)))).toEqual({
      canonical_url: null,
      image_url: 'https://img.example/gates.jpg',
      author: 'Ines Holm, Per Ask',
      published_at: '2026-03-01T00:00:00.000Z',
      language: 'da',
    });
  });

  test('in its text is found where the head is silent', async () => {
    const body = text.replace(
      '</h1>',
      '</h1><p class="byline">By Ines Holm</p><time datetime="2026-03-01T09:30">1 March</time>',
    );
    expect(await metadataOf('', { body })).toMatchObject({
      published_at: '2026-03-01T09:30:00.000Z',
      author: 'Ines Holm',
    });
  });

  test('counts only where it can be used', async () => {
    const head = `<link rel="canonical" href="javascript:alert(1)"><meta property="og:image" content="data:image/png;base64,AA">
      <meta name="author" content="https://profiles.example/ines"><meta name="date" content="last Tuesday">${'<script type="application/ld+json">{oops</script>'}`;
    expect(await metadataOf(head, { root: '<html lang="no such language">' })).toEqual(nothing);
  });

  test('is not that the site’s start page stands for every page', async () => {
    expect(await metadataOf('<link rel="canonical" href="/">')).toEqual(nothing);
    const start = await metadataOf('<link rel="canonical" href="/">', { path: '/' });
    expect(start.canonical_url).toBe(`${site.url}/`);
  });

  test('follows the address that its links are relative to', async () => {
    const head =
      '<base href="https://cdn.example/a/"><link rel="canonical" href="b"><meta name="twitter:image" content="c.png">';
    expect(await metadataOf(head)).toMatchObject({
      canonical_url: 'https://cdn.example/a/b',
      image_url: 'https://cdn.example/a/c.png',
    });
  });

  test('is nothing on a page that says nothing, and in a plain text', async () => {
    expect(await metadataOf('')).toEqual(nothing);
    const { result } = await scrape(scraper.url, { url: `${site.url}/plain.txt` });
    expect(result?.pages[0]).toEqual({
      url: `${site.url}/plain.txt`,
      title: 'A plain text.',
      markdown: 'A plain text.',
      ...nothing,
    });
  });

  test('is read of a large page too, in a thread of its own', async () => {
    const body = `<article><h1>Lock gates</h1>${'<p>The old lock gates were replaced.</p>'.repeat(300)}</article>`;
    expect(await metadataOf('<meta name="author" content="Ines Holm">', { body })).toMatchObject({
      author: 'Ines Holm',
    });
  });
});
