// One page as it was sent: what the scraper brings, and what it says where a site sends something else.
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import type { Service } from '../../local/services/http/listen.ts';
import { HostSpacing } from '../../local/services/scraper/host-spacing.ts';
import { startScraper } from '../../local/services/scraper/server.ts';
import { startTestSite, type TestSite } from '../support/examples/test-site.ts';
import { post, scrape } from './running.ts';

let site: TestSite;
let scraper: Service;
beforeAll(async () => {
  site = await startTestSite();
  scraper = await startScraper({ env: { SCRAPER_ALLOW_HOSTS: new URL(site.url).host } });
});
afterAll(async () => {
  await scraper?.stop();
  await site?.stop();
});

/** Serves this and asks for it; resolves to the page or the error. */
async function bring(status: number, headers: Record<string, string>, body: string | Buffer, more: object = {}) {
  const url = site.add((_, response) => {
    response.writeHead(status, { 'content-type': 'text/html', ...headers });
    response.end(body);
  });
  const { result, error } = await scrape(scraper.url, { url, mode: 'page', ...more });
  return { page: (result as unknown as { page: Record<string, unknown> } | null | undefined)?.page, error };
}

test('a page comes as its bytes, with status and type, whatever its charset', async () => {
  const bytes = Buffer.from('<p>Färber</p>', 'latin1');
  const { page } = await bring(200, { 'content-type': 'text/html; charset=iso-8859-1' }, bytes);
  expect(page).toMatchObject({ status: 200, content_type: 'text/html; charset=iso-8859-1', bytes: bytes.length });
  expect(gunzipSync(Buffer.from(page?.body as string, 'base64'))).toEqual(bytes);
});

test('a redirect is followed, and the page says where it was found', async () => {
  const target = site.add(['Here it is']);
  const { page } = await bring(302, { location: target }, '');
  expect(page).toMatchObject({ url: target });
});

test('the site hears the user agent and the viewport that are asked for', async () => {
  let heard: Record<string, unknown> = {};
  const url = site.add((request, response) => {
    heard = request.headers;
    response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Here</p>');
  });
  const asked = { user_agent: 'Links/1.0', viewport: { width: 1200, height: 700 }, spacing_ms: { min: 0, max: 1 } };
  await scrape(scraper.url, { url, mode: 'page', ...asked });
  expect(heard).toMatchObject({ 'user-agent': 'Links/1.0', 'sec-ch-viewport-width': '1200' });
});

test('a frameset comes as one page with the bodies of its frames, whose links are absolute', async () => {
  const frame = site.add((_, response) =>
    response
      .writeHead(200, { 'content-type': 'text/html; charset=windows-1252' })
      .end(Buffer.from('<body class=x><p>Färber gesucht</p><a href="../apply">Apply</a></body>', 'latin1')),
  );
  const { page } = await bring(200, {}, `<title>Jobs</title><frameset><frame src="${frame}"></frameset>`);
  const html = gunzipSync(Buffer.from(page?.body as string, 'base64')).toString();
  expect(page).toMatchObject({ content_type: 'text/html; charset=utf-8' });
  expect(html).toMatch(/<title>Jobs<\/title>.*<p>Färber gesucht<\/p><a href="http:\/\/127\.0\.0\.1:\d+\/apply">/s);
});

test.each([
  ['rate_limited', 999, {}, ''],
  ['rate_limited', 429, { 'retry-after': '7' }, ''],
  ['captcha', 200, {}, '<title>Just a moment...</title>'],
  ['captcha', 200, {}, '<p>Please wait</p><div class="g-recaptcha"></div>'],
  ['captcha', 403, { 'cf-mitigated': 'challenge' }, ''],
  ['removed', 200, {}, '<p>This job is no longer available.</p>'],
  ['removed', 302, { location: '/' }, ''],
  ['unsupported_type', 200, { 'content-type': 'application/pdf' }, '%PDF-1.7'],
  ['no_content', 200, {}, ' \n'],
  ['not_found', 404, {}, ''],
])('what is no page is said by its code: %s of %i', async (code, status, headers, body) => {
  site.add(['The front page'], '/');
  const { error } = await bring(status, headers as Record<string, string>, body);
  expect(error).toMatchObject({ code });
});

test('a page of 20 MB is too large', async () => {
  const { error } = await bring(200, {}, Buffer.alloc(20 * 1024 * 1024, 'a'));
  expect(error).toMatchObject({ code: 'too_large', permanent: true });
});

test('a long page that speaks of captchas and of jobs that are gone is a page', async () => {
  const words = 'The loom stands in the hall and many threads run over it to the weaver. '.repeat(40);
  const { page } = await bring(
    200,
    {},
    `<p>${words} That job is no longer available.</p><div class="g-recaptcha"></div>`,
  );
  expect(page).toMatchObject({ status: 200 });
});

test.each([
  [{ mode: 'all' }, 'mode'],
  [{ viewport: { width: 0, height: 1 } }, 'viewport.width'],
  [{ spacing_ms: { min: -1, max: 1 } }, 'spacing_ms.min'],
  [{ user_agent: 'a\nb' }, 'user_agent'],
])('a wrong field is named: %j', async (fields, field) => {
  const { status, json } = await post(`${scraper.url}/jobs`, { url: site.url, ...fields });
  expect([status, json.error.field]).toEqual([400, field]);
});

test.each([199, 200])(
  'pages of one host are kept 200 ms apart, those of others are not: after %i ms',
  async (later) => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const spacing = new HostSpacing();
    // A caller that would have to wait gets an answer instead.
    const turn = (host: string) => spacing.turn(host, { min: 200, max: 200 }, AbortSignal.abort('has to wait'));
    await turn('a.test');
    await turn('b.test');
    vi.setSystemTime(Date.now() + later);
    const second = await turn('a.test').then(
      () => 'goes on',
      (error: Error) => error.cause,
    );
    expect(second).toBe(later < 200 ? 'has to wait' : 'goes on');
  },
);
