import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Sites, startSites } from '../../local/demo/samples/sites/server.ts';
import { listen, type Service } from '../../local/services/http/listen.ts';
import { startScraper } from '../../local/services/scraper/server.ts';
import { scrape } from './running.ts';

let sites: Sites;
let scraper: Service;
let site: Service;
const asked: string[] = [];

beforeAll(async () => {
  sites = await startSites();
  scraper = await startScraper({ env: { SCRAPER_ALLOW_HOSTS: '127.0.0.1' }, limits: { pageBytes: 20_000 } });
  const app = new Hono();
  app.use(async (c, next) => {
    asked.push(c.req.path);
    await next();
  });
  const html = (body: string) => `<html><head><title>T</title></head><body>${body}</body></html>`;
  app.get('/many/:n', (c) => {
    const n = Number(c.req.param('n'));
    return c.html(html(`<p>Page number ${n}.</p><a href="/many/${n + 1}#part">next</a><a href="/many/${n}/">same</a>`));
  });
  app.get('/many/:n/', (c) => c.html(html(`<p>Page number ${c.req.param('n')}.</p>`)));
  app.get('/mixed', (c) =>
    c.html(
      html('<p>Start.</p><a href="/dead">x</a><a href="/big">x</a><a href="/film.mp4">x</a><a href="/good">x</a>'),
    ),
  );
  app.get('/big', (c) => c.html(html('word '.repeat(10_000))));
  app.get('/good', (c) => c.html(html('<p>A good page.</p>')));
  app.get('/text', (c) => c.text('Opening hours\nFrom nine to five.'));
  app.get('/agent', (c) => c.text(`seen as ${c.req.header('user-agent')}`));
  app.get('/marks', (c) =>
    c.html(
      html('<h2>Kinds</h2><p>Nul &#0; and \u0001 half &#xD800; end.</p><ul><li>one</li></ul><script>bad()</script>'),
    ),
  );
  app.get(
    '/bom',
    () => new Response(Buffer.from('\ufeff<p>Zürich</p>', 'utf16le'), { headers: { 'content-type': 'text/html' } }),
  );
  app.get('/utf8', () => new Response(Buffer.from('<p>Zürich</p>'), { headers: { 'content-type': 'text/html' } }));
  app.get('/frames', (c) =>
    c.html(
      '<title>Firm</title><frameset><frame src="/framed/nav.htm"><frame src="/framed/main.htm"><frame src="/dead"></frameset>',
    ),
  );
  const based = '<base href="/framed/"><frameset><frame src="main.htm"></frameset>';
  app.get('/wide-frames', () => {
    const headers = { 'content-type': 'text/html' };
    return new Response(Buffer.from(`\ufeff${based}`, 'utf16le'), { headers });
  });
  app.get('/framed/nav.htm', (c) => c.html(html('<a href="more.htm">More</a>')));
  app.get('/framed/main.htm', (c) => c.html(html('<h1>Clocks</h1><p>We mend tower clocks.</p>')));
  app.get('/framed/more.htm', (c) => c.html(html('<p>Since 1894.</p>')));
  app.get('/lost-frames', (c) => c.html('<frameset><frame src="/dead"></frameset>'));
  const refresh = (to: string) => `<meta http-equiv="refresh" content="0; url=${to}">`;
  app.get('/hop/:n', (c) => {
    const n = Number(c.req.param('n'));
    return c.html(n === 0 ? html('<p>Here it is.</p>') : refresh(`/hop/${n - 1}`));
  });
  app.get('/inside', (c) => c.html(refresh('http://127.0.0.2:8081/')));
  app.get('/heading', (c) => c.html(html('<h1>Welcome</h1><a href="/good"></a>')));
  site = await listen(app.fetch);
});
afterAll(async () => {
  await Promise.all([scraper.stop(), sites.stop(), site.stop()]);
});

function siteUrl(name: string): string {
  return sites.hosts.find((host) => host.name === name)?.url ?? '';
}

function pageUrls(view: Awaited<ReturnType<typeof scrape>>): string[] {
  return view.result?.pages.map((page) => new URL(page.url).pathname) ?? [];
}

describe('pages of a site', () => {
  test('the start page and the pages it links to are read as markdown with their titles', async () => {
    const view = await scrape(scraper.url, { url: siteUrl('lift-service'), metadata: { ref: 7 } });
    expect(view).toMatchObject({ status: 'completed', metadata: { ref: 7 } });
    expect(pageUrls(view)).toEqual(['/', '/maintenance', '/modernisation']);
    const maintenance = view.result?.pages[1];
    expect(maintenance?.title).toContain('Maintenance contracts');
    expect(maintenance?.markdown).toMatch(/^-\s+Quarterly or monthly visits$/m);
    expect(maintenance?.markdown).not.toContain('cookies');
  });

  test('every sample site is read to its last allowed page', async () => {
    expect(sites.hosts.length).toBeGreaterThanOrEqual(6);
    for (const host of sites.hosts) {
      const view = await scrape(scraper.url, { url: host.url });
      expect(view.result?.pages.length, host.name).toBeGreaterThanOrEqual(3);
    }
  });

  test('a redirect is followed and the page goes by the address it was found at', async () => {
    expect(pageUrls(await scrape(scraper.url, { url: siteUrl('joinery') }))).toEqual([
      '/home',
      '/workshop',
      '/customers',
    ]);
  });

  test('robots.txt keeps the scraper out of a part of a site', async () => {
    const url = siteUrl('cold-transport');
    expect(pageUrls(await scrape(scraper.url, { url }))).toEqual(['/', '/fleet', '/quality']);
    const refused = await scrape(scraper.url, { url: `${url}/internal` });
    expect(refused.error).toMatchObject({ code: 'robots_disallowed', permanent: true });
  });

  test('five pages are read unless the job says otherwise, and none twice', async () => {
    const byDefault = await scrape(scraper.url, { url: `${site.url}/many/1` });
    expect(pageUrls(byDefault)).toEqual(['/many/1', '/many/2', '/many/3', '/many/4', '/many/5']);
    expect(pageUrls(await scrape(scraper.url, { url: `${site.url}/many/1`, max_pages: 2 }))).toHaveLength(2);
  });

  test('a further page that is dead or too large is left out, and a film is not even asked for', async () => {
    expect(pageUrls(await scrape(scraper.url, { url: `${site.url}/mixed` }))).toEqual(['/mixed', '/good']);
    expect(asked).toContain('/dead');
    expect(asked).not.toContain('/film.mp4');
  });

  test('a page that is left out is named, with its code', async () => {
    const { result } = await scrape(scraper.url, { url: `${site.url}/mixed` });
    expect(result).toMatchObject({
      left_out: [
        { url: `${site.url}/dead`, code: 'not_found' },
        { url: `${site.url}/big`, code: 'too_large' },
      ],
    });
    expect((await scrape(scraper.url, { url: `${site.url}/good` })).result).not.toHaveProperty('left_out');
  });

  test('the frames of a frameset are read as one page, and a lost one is named in its text', async () => {
    const pages = (await scrape(scraper.url, { url: `${site.url}/frames` })).result?.pages ?? [];
    expect(pages.map(({ url }) => new URL(url).pathname)).toEqual(['/frames', '/framed/more.htm']);
    expect(pages[0]).toMatchObject({ title: 'Firm', markdown: expect.stringContaining('We mend tower clocks.') });
    expect(pages[0]?.markdown).toMatch(/A frame of this page could not be read: .*\/dead.* status 404/);
    const wide = await scrape(scraper.url, { url: `${site.url}/wide-frames` });
    expect(wide.result?.pages[0]).toMatchObject({ markdown: expect.stringContaining('We mend tower clocks.') });
    const lost = await scrape(scraper.url, { url: `${site.url}/lost-frames` });
    expect(lost.error).toMatchObject({ code: 'not_found', permanent: true });
  });

  test('a refresh counts as a redirect: five are followed, a sixth is not, and none leads inside', async () => {
    expect(pageUrls(await scrape(scraper.url, { url: `${site.url}/hop/5` }))).toEqual(['/hop/0']);
    expect((await scrape(scraper.url, { url: `${site.url}/hop/6` })).error).toMatchObject({
      code: 'too_many_redirects',
    });
    expect((await scrape(scraper.url, { url: `${site.url}/inside` })).error).toMatchObject({ code: 'blocked_address' });
  });

  test('a page of only a heading has no content, and no other page is taken in its place', async () => {
    const alone = await scrape(scraper.url, { url: `${site.url}/heading`, max_pages: 1 });
    expect(alone.error).toMatchObject({ code: 'no_content', message: expect.stringContaining('only a heading') });
    expect(pageUrls(await scrape(scraper.url, { url: `${site.url}/heading` }))).toEqual(['/good']);
  });

  test('plain text is taken as it is', async () => {
    const view = await scrape(scraper.url, { url: `${site.url}/text` });
    expect(view.result?.pages[0]).toMatchObject({
      title: 'Opening hours',
      markdown: 'Opening hours\nFrom nine to five.',
    });
  });

  test('the scraper gives its own name', async () => {
    const view = await scrape(scraper.url, { url: `${site.url}/agent` });
    expect(view.result?.pages[0]?.markdown).toMatch(/^seen as MillraceScraper/);
  });

  test('no text is handed on that a database cannot store', async () => {
    const markdown = (await scrape(scraper.url, { url: `${site.url}/marks` })).result?.pages[0]?.markdown ?? '';
    expect(markdown).toContain('## Kinds');
    expect(markdown).not.toContain('bad()');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not occur.
    expect(markdown).not.toMatch(/[\u0000-\u0008]/);
    expect(Buffer.from(markdown).toString()).toBe(markdown);
  });
});

describe('charsets', () => {
  test.each([
    ['the header', () => `${sites.url}/faults/charset`, 'Le café coûte 3 £ à Mölln.'],
    ['a meta tag', () => `${siteUrl('joinery')}/home`, '60 m². A café table'],
    ['a byte order mark', () => `${site.url}/bom`, 'Zürich'],
    ['no word about it, but valid UTF-8', () => `${site.url}/utf8`, 'Zürich'],
  ])('is taken from %s', async (_from, url, expected) => {
    const view = await scrape(scraper.url, { url: url(), max_pages: 1 });
    expect(view.result?.pages[0]?.markdown).toContain(expected);
  });
});
