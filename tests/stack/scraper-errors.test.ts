import { Hono } from 'hono';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Sites, startSites } from '../../local/demo/samples/sites/server.ts';
import { listen, type Service } from '../../local/services/http/listen.ts';
import { startScraper } from '../../local/services/scraper/server.ts';
import { closedPort, scrape } from './running.ts';

let sites: Sites;
let scraper: Service;

beforeAll(async () => {
  sites = await startSites();
  const limits = { pageMs: 3000, pageBytes: 100_000 };
  scraper = await startScraper({ env: { SCRAPER_ALLOW_HOSTS: '127.0.0.1,malformed.example' }, limits, resolve });
});
afterAll(async () => {
  await Promise.all([scraper.stop(), sites.stop()]);
});

async function resolve(hostname: string): Promise<never> {
  const code = hostname === 'busy.example' ? 'EAI_AGAIN' : 'ENOTFOUND';
  throw Object.assign(new Error(`getaddrinfo ${code} ${hostname}`), { code });
}

test.each([
  ['401', { code: 'forbidden', permanent: true }],
  ['403', { code: 'forbidden', permanent: true }],
  ['404', { code: 'not_found', permanent: true }],
  ['410', { code: 'not_found', permanent: true }],
  ['418', { code: 'http_error', permanent: true }],
  ['429', { code: 'rate_limited', permanent: false, retry_after_ms: 7000 }],
  ['500', { code: 'server_error', permanent: false }],
  ['503', { code: 'server_error', permanent: false }],
  ['slow', { code: 'timeout', permanent: false }],
  ['broken', { code: 'connection_lost', permanent: false }],
  ['empty', { code: 'no_content', permanent: true }],
  ['image', { code: 'unsupported_type', permanent: true }],
  ['redirect-loop', { code: 'too_many_redirects', permanent: true }],
  ['redirect-private', { code: 'blocked_address', permanent: true }],
  ['redirect-file', { code: 'invalid_url', permanent: true }],
])('the fault page %s fails as %o', async (fault, expected) => {
  const view = await scrape(scraper.url, { url: `${sites.url}/faults/${fault}` });
  expect(view.status).toBe('failed');
  expect(view.error).toMatchObject(expected);
  expect(view.result).toBeUndefined();
});

test('a start page above the size limit fails for good, and the message names the limit', async () => {
  const view = await scrape(scraper.url, { url: `${sites.url}/faults/huge` });
  expect(view.error).toMatchObject({ code: 'too_large', permanent: true });
  expect(view.error?.message).toContain('100000 bytes');
});

test('a page that grows beyond the limit only when unpacked fails too', async () => {
  const app = new Hono();
  const { gzipSync } = await import('node:zlib');
  const packed = new Uint8Array(gzipSync(`<p>${'word '.repeat(100_000)}</p>`));
  app.get('/packed', (c) => c.body(packed, 200, { 'content-type': 'text/html', 'content-encoding': 'gzip' }));
  const site = await listen(app.fetch);
  const view = await scrape(scraper.url, { url: `${site.url}/packed` });
  await site.stop();
  expect(packed.byteLength).toBeLessThan(100_000);
  expect(view.error).toMatchObject({ code: 'too_large', permanent: true });
});

test('a name that does not exist fails for good, one that cannot be looked up just now does not', async () => {
  const unknown = await scrape(scraper.url, { url: 'http://nobody.example/' });
  expect(unknown.error).toMatchObject({ code: 'dns_not_found', permanent: true });
  const busy = await scrape(scraper.url, { url: 'http://busy.example/' });
  expect(busy.error).toMatchObject({ code: 'dns_unavailable', permanent: false });
});

test('a refused connection fails for good', async () => {
  const view = await scrape(scraper.url, { url: `http://127.0.0.1:${await closedPort()}/` });
  expect(view.error).toMatchObject({ code: 'connection_refused', permanent: true });
});

test('a job ends at its time limit with the pages it has', async () => {
  const app = new Hono();
  app.get('/', (c) => c.html('<p>The first page.</p><a href="/stuck">on</a>'));
  app.get('/stuck', () => new Promise<Response>(() => {}));
  const site = await listen(app.fetch);
  const hasty = await startScraper({ env: { SCRAPER_ALLOW_HOSTS: '127.0.0.1' }, limits: { jobMs: 300 } });
  const view = await scrape(hasty.url, { url: site.url });
  await Promise.all([hasty.stop(), site.stop()]);
  expect(view.status).toBe('completed');
  expect(view.result?.pages.map((page) => page.markdown)).toEqual(['The first page.\n\non']);
});

test('a robots.txt that cannot be had just now makes the job wait for another try', async () => {
  const app = new Hono();
  app.get('/robots.txt', (c) => c.text('down', 503));
  app.get('/', (c) => c.html('<p>The first page.</p>'));
  const site = await listen(app.fetch);
  const view = await scrape(scraper.url, { url: site.url });
  await site.stop();
  expect(view.error).toMatchObject({ code: 'server_error', permanent: false });
});

test('a page built to be slow to parse fails for good, and the next page is read all the same', async () => {
  const app = new Hono();
  app.get('/tangled', (c) => c.html(`<html><body>${'<div>'.repeat(300_000)}x`));
  app.get('/large', (c) => c.html('<p>A plain page.</p>'.repeat(200)));
  const site = await listen(app.fetch);
  const hasty = await startScraper({ env: { SCRAPER_ALLOW_HOSTS: '127.0.0.1' }, limits: { readMs: 3000 } });
  const tangled = await scrape(hasty.url, { url: `${site.url}/tangled` });
  const large = await scrape(hasty.url, { url: `${site.url}/large` });
  await Promise.all([hasty.stop(), site.stop()]);
  expect(tangled.error).toMatchObject({ code: 'no_content', permanent: true });
  expect(tangled.error?.message).toContain('too tangled');
  expect(large.result?.pages[0]?.markdown.match(/A plain page\./g)).toHaveLength(200);
});
