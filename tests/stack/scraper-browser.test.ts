// The scraper's contract, kept by the one that reads pages as they are sent and by the one that runs them in Chromium.
import type { IncomingHttpHeaders } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Service } from '../../local/services/http/listen.ts';
import { startScraper } from '../../local/services/scraper/server.ts';
import packageFile from '../../package.json' with { type: 'json' };
import { startTestSite, type TestSite } from '../support/examples/test-site.ts';
import { chromiumPath } from '../support/stack/chromium.ts';
import { scrape } from './running.ts';

const limits = { pageMs: 5_000, pageBytes: 100_000, rawBytes: 100_000 };
const sentence = 'The loom stands in the hall and many threads run over it to the weaver.';
let site: TestSite;
let inside: TestSite;
const reached: string[] = [];
const scrapers: Record<string, Service> = {};

beforeAll(async () => {
  site = await startTestSite();
  inside = await startTestSite();
  inside.add((request, response) => {
    reached.push(String(request.url));
    response.writeHead(200, { 'access-control-allow-origin': '*' }).end('secret');
  }, '/');
  const env = { SCRAPER_ALLOW_HOSTS: new URL(site.url).host };
  const browser = { SCRAPER_BROWSER: 'unsandboxed', CHROMIUM_PATH: chromiumPath() };
  scrapers.plain = await startScraper({ env, limits });
  scrapers.browser = await startScraper({ env: { ...env, ...browser }, limits });
}, 120_000);
afterAll(async () => {
  await Promise.all([...Object.values(scrapers), site, inside].map((service) => service?.stop()));
});

/** Serves HTML at a path of its own; returns its URL. */
function serve(html: string, headers: Record<string, string> = {}, status = 200): string {
  return site.add((_, response) => {
    response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(html);
  });
}

function data(text: string, headers: Record<string, string> = {}): string {
  return serve(text, { 'content-type': 'text/plain', ...headers });
}

async function ask(scraper: string, url: string, more: object = {}) {
  const { result, error } = await scrape(scrapers[scraper]?.url ?? '', { url, max_pages: 1, ...more });
  const page = (result as unknown as { page?: { url: string; content_type: string; body: string } } | undefined)?.page;
  const html = page && gunzipSync(Buffer.from(page.body, 'base64')).toString();
  return { text: result?.pages?.[0]?.markdown, found: result?.pages?.[0], page, html, error };
}

const writes = (expression: string) => `<p id="p"></p><script>${expression}</script>`;
const write = (value: string) => `document.getElementById("p").textContent = ${value}`;

describe.each(['plain', 'browser'])('the %s scraper', (kind) => {
  test('reads the text of a page that needs no script', async () => {
    expect(await ask(kind, serve(`<p>${sentence}</p>`))).toMatchObject({ text: sentence });
  });

  test('follows a redirect, and says where the page was found', async () => {
    const target = serve(`<p>${sentence}</p>`);
    const { page, html } = await ask(kind, serve('', { location: target }, 302), { mode: 'page' });
    expect(page).toMatchObject({ url: target, status: 200, content_type: expect.stringContaining('text/html') });
    expect(html).toContain(sentence);
  });

  test.each([
    ['no_content', () => serve(' \n')],
    ['no_content', () => serve('<div id="root"></div><script src="/gone.js"></script>')],
    ['not_found', () => serve('', {}, 404)],
    ['rate_limited', () => serve('', {}, 429)],
    ['unsupported_type', () => serve('%PDF-1.7', { 'content-type': 'application/pdf' })],
    ['blocked_address', () => `${inside.url}/`],
    ['blocked_address', () => serve('', { location: `${inside.url}/` }, 302)],
    ['too_large', () => serve(`<p>${'word '.repeat(30_000)}</p>`)],
    ['timeout', () => site.add(() => {})],
  ])('fails as %s', async (code, url) => {
    reached.length = 0;
    expect((await ask(kind, url())).error).toMatchObject({ code });
    expect(reached).toEqual([]);
  });

  test('tells the site the user agent and the viewport that are asked for', async () => {
    let heard: IncomingHttpHeaders = {};
    const url = site.add((request, response) => {
      heard = request.headers;
      const shown = write('navigator.userAgent + " " + innerWidth + "x" + innerHeight');
      response.writeHead(200, { 'content-type': 'text/html' }).end(writes(shown));
    });
    const asked = { user_agent: 'Links/1.0', viewport: { width: 1200, height: 700 } };
    const { html } = await ask(kind, url, { mode: 'page', ...asked });
    expect(heard).toMatchObject({ 'user-agent': 'Links/1.0', 'sec-ch-viewport-width': '1200' });
    expect(html?.includes('<p id="p">Links/1.0 1200x700</p>')).toBe(kind === 'browser');
  });

  test('marks a text whose charset is guessed', async () => {
    const body = Buffer.from('<p>Мы ищем ткача, который знает старые станки и любит работу с нитью.</p>', 'utf8');
    const koi8 = Buffer.from(new TextDecoder('utf-8').decode(body).replace(/[а-яА-Я]/g, koi8Of), 'latin1');
    const url = site.add((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(koi8));
    const { found } = await ask(kind, url);
    expect(found?.markdown).toContain('который знает старые станки');
    expect(found?.doubts?.join()).toMatch(/koi8-r was guessed/);
  });
});

/** A Russian letter's byte in KOI8-R, as the character of that number. */
function koi8Of(letter: string): string {
  const order = 'юабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ';
  return String.fromCharCode(0xc0 + order.indexOf(letter));
}

describe('a page whose text is made by a script', () => {
  test('has none for the scraper without a browser', async () => {
    const { error } = await ask('plain', serve(writes(write(JSON.stringify(sentence)))));
    expect(error).toMatchObject({ code: 'no_content' });
  });

  test.each([
    ['at once', () => writes(write(JSON.stringify(sentence)))],
    ['of what it asks for', () => writes(`fetch("${data(sentence)}").then(r => r.text()).then(t => ${write('t')})`)],
    [
      'instead of what it said while it loaded',
      () => {
        const later = `setTimeout(() => { ${write(JSON.stringify(sentence))} }, 900)`;
        return `<p id="p">Loading…</p><script>${later}</script>`;
      },
    ],
  ])('is read when it is written %s', async (_how, html) => {
    expect(await ask('browser', serve(html()))).toMatchObject({ text: sentence });
  });

  test('is read where the script leads, which counts as a redirect', async () => {
    const target = serve(`<p>${sentence}</p>`);
    const found = await ask('browser', serve(writes(`location.href = "${target}"`)));
    expect(found).toMatchObject({ text: sentence, found: { url: target } });
    for (let n = 0; n < 9; n++) {
      const html = writes(`location.href = "/turn/${n + 1}"`);
      site.add((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(html), `/turn/${n}`);
    }
    expect((await ask('browser', `${site.url}/turn/0`)).error).toMatchObject({ code: 'too_many_redirects' });
  });

  test('reaches no private address, by whichever way it asks', async () => {
    reached.length = 0;
    const to = JSON.stringify(`${inside.url}/`);
    const asks = [
      `fetch(${to}).then(r => r.text(), () => "refused")`,
      `fetch(${JSON.stringify(serve('', { location: `${inside.url}/` }, 302))}).then(r => r.text(), () => "refused")`,
      `new Promise(r => { const s = new WebSocket(${to.replace('http', 'ws')}); s.onopen = () => r("open"); s.onerror = () => r("refused") })`,
      `new Promise(r => { const s = document.createElement("script"); s.src = ${to}; s.onload = () => r("open"); s.onerror = () => r("refused"); document.head.append(s) })`,
    ];
    const page = `Promise.all([${asks.join(',')}]).then(all => ${write('"The page was " + all.join(" and ")')})`;
    const { text } = await ask('browser', serve(writes(page)));
    expect(text).toBe('The page was refused and refused and refused and refused');
    const frame = `<p>${sentence}</p><iframe src=${to}></iframe>`;
    expect(await ask('browser', serve(frame))).toMatchObject({ text: sentence });
    expect((await ask('browser', serve(writes(`location.href = ${to}`)))).error).toMatchObject({
      code: 'blocked_address',
    });
    expect(reached).toEqual([]);
  });

  test.each([
    ['timeout', () => writes('for (;;);')],
    ['too_large', () => writes(write('"word ".repeat(100_000)'))],
    ['too_large', () => writes(`fetch("${data('x'.repeat(600_000))}").then(r => r.text())`)],
    ['no_content', () => writes('document.body.textContent = "Please enable JavaScript to run this app."')],
  ])('fails as %s', async (code, html) => {
    expect((await ask('browser', serve(html()))).error).toMatchObject({ code });
  });

  test('goes without what its site’s robots.txt keeps from readers', async () => {
    site.add((_, response) => response.end('User-agent: *\nDisallow: /kept/'), '/robots.txt');
    site.add((_, response) => response.end('kept'), '/kept/text');
    const page = `fetch("/kept/text").then(r => r.text(), () => "nothing").then(t => ${write('"There is " + t + " here."')})`;
    expect(await ask('browser', serve(writes(page)))).toMatchObject({ text: 'There is nothing here.' });
  });
});

describe('what SCRAPER_BROWSER needs is named', () => {
  test('a value that it may have', async () => {
    await expect(startScraper({ env: { SCRAPER_BROWSER: 'maybe' } })).rejects.toThrow(
      'SCRAPER_BROWSER is "maybe": write 1 to read pages in Chromium, or remove it',
    );
  });

  test('Chromium, with the command that installs it', async () => {
    const env = { SCRAPER_BROWSER: 'unsandboxed', PATH: '/nowhere' };
    await expect(startScraper({ env })).rejects.toThrow(
      /this machine has none: run "apt-get .* or name .* CHROMIUM_PATH/,
    );
  });

  test('playwright-core, with the command that installs the version of the tests', async () => {
    vi.resetModules();
    vi.doMock('playwright-core', () => {
      throw new Error('Cannot find package');
    });
    const { PageBrowser } = await import('../../local/services/scraper/page-browser.ts');
    const version = packageFile.devDependencies['playwright-core'];
    await expect(PageBrowser.start('unsandboxed', {})).rejects.toThrow(
      `run npm install --save-dev --save-exact playwright-core@${version}`,
    );
    vi.doUnmock('playwright-core');
  });
});
