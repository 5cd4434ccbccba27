// A poll against real HTTP: what is asked for, what is refused, and how a pass goes on over several polls.
import { gzipSync } from 'fflate';
import { describe, expect, test } from 'vitest';
import { described, failureOf } from '../../supabase/functions/_articles/feeds/feed-failure.ts';
import { MAX_SITEMAPS, MAX_UNREAD, type Pass, readCursor } from '../../supabase/functions/_articles/feeds/pass.ts';
import { type Poll, pollSource } from '../../supabase/functions/_articles/feeds/poll-source.ts';
import type { Poller } from '../../supabase/functions/_articles/feeds/turn.ts';
import { PermanentError, UnavailableError } from '../../supabase/functions/_millrace/errors.ts';
import { follow, startSite } from '../support/examples/follow-feeds.ts';
import { type Reply, refusedUrl, startServer } from '../support/http-server.ts';

const urlset = (urls: string[]) => `<urlset>${urls.map((url) => `<url><loc>${url}</loc></url>`).join('')}</urlset>`;
const sitemapIndex = (entries: string[]) =>
  `<sitemapindex>${entries.map((entry) => `<sitemap>${entry}</sitemap>`).join('')}</sitemapindex>`;
const loc = (url: string, date = '') => `<loc>${url}</loc>${date && `<lastmod>${date}</lastmod>`}`;
const page = (path: string | number) => `https://site.test/${path}`;
const pages = (count: number, name = '') => Array.from({ length: count }, (_, n) => page(`${name}${n}`));

const found = ({ urls }: Poll) => urls.map(({ url }) => url.replace('https://site.test/', ''));

describe('a source that has not changed', () => {
  test.each([
    ['by its ETag', { etag: '"v1"' }, 'if-none-match', '"v1"'],
    [
      'by its date',
      { 'last-modified': 'Tue, 03 Mar 2026 08:00:00 GMT' },
      'if-modified-since',
      'Tue, 03 Mar 2026 08:00:00 GMT',
    ],
  ])('costs one request, %s, and changes nothing', async (_, headers, condition, value) => {
    const site = await startSite({
      '/feed': (asked) =>
        asked.get(condition) === value ? { status: 304 } : { headers, bytes: Buffer.from(urlset(pages(2))) },
    });
    const source = follow(`${site.url}/feed`);
    expect(found(await source.poll())).toEqual(['0', '1']);
    site.asked();
    expect(await source.poll()).toEqual({ urls: [], more: false, problem: null, waitMs: null, state: null });
    expect(site.asked()).toEqual(['/feed']);
  });

  test('has its problem still, and is not read again for it', async () => {
    const item = '<item><title>No link</title></item>';
    const text = `<rss><channel>${item}<item><link>${page('a')}</link></item></channel></rss>`;
    const site = await startSite({
      '/feed': (asked) =>
        asked.get('if-none-match') === '"v1"'
          ? { status: 304 }
          : { headers: { etag: '"v1"' }, bytes: Buffer.from(text) },
    });
    const source = follow(`${site.url}/feed`);
    const problem = { code: 'no_links', message: expect.stringContaining('1 of its 2 items has no link') };
    expect(await source.poll()).toMatchObject({ problem, state: { etag: '"v1"' } });
    expect(await source.poll()).toEqual({ urls: [], more: false, problem, waitMs: null, state: null });
    site.files['/feed'] = { headers: { etag: '"v2"' }, bytes: Buffer.from(urlset(pages(1))) };
    expect(await source.poll()).toMatchObject({ problem: null, state: { etag: '"v2"' } });
    site.files['/feed'] = { status: 304 };
    expect(await source.poll()).toMatchObject({ problem: null });
  });

  test.each([429, 503, 404])('is asked under the same condition after it has answered %i', async (status) => {
    const site = await startSite({ '/feed': { headers: { etag: '"v1"' }, bytes: Buffer.from(urlset(pages(2))) } });
    const source = follow(`${site.url}/feed`);
    await source.poll();
    const whole = site.files['/feed'];
    site.files['/feed'] = { status };
    await expect(source.poll()).rejects.toThrow(`${status}`);
    site.files['/feed'] = whole as Reply;
    await source.poll();
    expect(site.received.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '"v1"', '"v1"']);
  });

  test('but broke off is read again', async () => {
    const site = await startSite({
      '/feed': { headers: { etag: '"v1"' }, bytes: Buffer.from(urlset(pages(2)).slice(0, -9)) },
    });
    const source = follow(`${site.url}/feed`);
    expect((await source.poll()).problem).toMatchObject({ code: 'feed_cut_off' });
    await source.poll();
    expect(site.received[1]?.headers['if-none-match']).toBeUndefined();
  });
});

test('addresses are cleaned, and a page is taken once', async () => {
  const twice = [
    page('a?utm_source=feed#top'),
    page('a'),
    'HTTPS://SITE.TEST:443/b?id=7&fbclid=x',
    'https://a:b@site.test/c',
  ];
  const site = await startSite({ '/feed': urlset(twice.map((url) => url.replaceAll('&', '&amp;'))) });
  expect(found(await follow(`${site.url}/feed`).poll())).toEqual(['a', 'b?id=7']);
});

describe('where the address leads', () => {
  test('over redirects to the feed, whose links are relative to where it was found', async () => {
    const site = await startSite({
      '/old': { status: 301, headers: { location: '/feeds/new' } },
      '/feeds/new': '<feed><entry><link href="../one"/></entry></feed>',
    });
    const [one] = (await follow(`${site.url}/old`).poll()).urls;
    expect(one?.url).toBe(`${site.url}/one`);
  });

  test.each([
    ['in a circle', 'too_many_redirects', '/loop', /more than 5 times/],
    ['to no web address', 'invalid_url', 'file:///etc/hosts', /no web address/],
    [
      'to a private address',
      'blocked_address',
      'http://169.254.169.254/latest',
      /169\.254\.169\.254 is not on the public internet: .* FEED_ALLOW_HOSTS/,
    ],
  ])('%s, and is refused', async (_, code, location, message) => {
    const site = await startSite({ '/loop': { status: 302, headers: { location } } });
    await expect(follow(`${site.url}/loop`).poll()).rejects.toMatchObject({
      code,
      permanent: true,
      message: expect.stringMatching(message),
    });
  });

  test.each(['127.0.0.1', '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]', '10.0.0.1', '192.168.1.1'])(
    'to this machine or its network, written %s, and nobody is asked',
    async (host) => {
      const site = await startSite({ '/feed': urlset([]) });
      const address = `http://${host}:${new URL(site.url).port}/feed`;
      await expect(follow(address).poll({ allow: 'other.test' })).rejects.toMatchObject({ code: 'blocked_address' });
      expect(site.asked()).toEqual([]);
    },
  );

  test('to a name whose address is private, if only one of several', async () => {
    const resolve = async () => [
      { address: '93.184.216.34', family: 4 },
      { address: '10.0.0.7', family: 4 },
    ];
    await expect(follow('http://inner.test/feed').poll({ allow: 'other.test', resolve })).rejects.toMatchObject({
      code: 'blocked_address',
      // A person who reads the row need not know what the network looks like inside.
      message: expect.not.stringContaining('10.0.0.7'),
      detail: expect.stringContaining('10.0.0.7'),
    });
  });

  test.each(['site.test/feed', 'ftp://site.test/feed', 'http://me:secret@site.test/feed', ''])(
    '%j is refused',
    async (address) => {
      const poll = pollSource({ address, etag: null, last_modified: null, cursor: null }, null as unknown as Poller);
      await expect(poll).rejects.toMatchObject({ code: 'invalid_url', message: expect.not.stringContaining('secret') });
    },
  );
});

describe('a site that answers with an error says what to do', () => {
  test.each([
    [404, 'not_found', true, /answered 404: correct the address, or switch the source off\./],
    [410, 'not_found', true, /answered 410/],
    [403, 'forbidden', true, /ask the site’s owner/],
    [418, 'request_rejected', true, /open the address in a browser/],
    [503, 'server_error', false, /it is asked again/],
  ])('%i', async (status, code, permanent, message) => {
    const site = await startSite({ '/feed': { status, bytes: Buffer.from('Feeds moved to /rss') } });
    await expect(follow(`${site.url}/feed`).poll()).rejects.toMatchObject({
      code,
      permanent,
      detail: 'Feeds moved to /rss',
      message: expect.stringMatching(message),
    });
  });

  test('429, which says how long to wait', async () => {
    const site = await startSite({ '/feed': { status: 429, headers: { 'retry-after': '90' } } });
    await expect(follow(`${site.url}/feed`).poll()).rejects.toMatchObject({
      code: 'rate_limited',
      permanent: false,
      retryAfterMs: 90_000,
      message: expect.stringContaining('a longer interval'),
    });
  });

  test('a host that is not there', async () => {
    const poll = follow('http://no-such-host.invalid/feed').poll({ allow: 'other.test' });
    await expect(poll).rejects.toMatchObject({
      code: 'dns_not_found',
      permanent: true,
      message: expect.stringContaining('no host no-such-host.invalid'),
    });
  });

  test('a port on which nobody listens', async () => {
    await expect(follow(await refusedUrl()).poll()).rejects.toMatchObject({ code: 'connection_refused' });
  });

  test('a site that never answers', async () => {
    const site = await startServer(() => null);
    await expect(follow(`${site.url}/feed`).poll({ timeoutMs: 50 })).rejects.toMatchObject({
      code: 'timeout',
      permanent: false,
      message: expect.stringContaining('took too long'),
    });
  });

  test('20 MB, which are announced and not fetched', async () => {
    const site = await startSite({
      '/feed': { headers: { 'content-length': '20971520' }, bytes: Buffer.from('<rss>') },
    });
    await expect(follow(`${site.url}/feed`).poll()).rejects.toMatchObject({ code: 'feed_too_large' });
  });
});

describe('a pass over more than one poll', () => {
  test('takes a bounded number of new addresses a poll, and each once', async () => {
    const site = await startSite({ '/s': { headers: { etag: '"v1"' }, bytes: Buffer.from(urlset(pages(25))) } });
    const source = follow(`${site.url}/s`);
    source.queue.add(page(3));
    const polls: string[][] = [];
    for (let more = true; more; ) {
      const poll = await source.poll({ limits: { newUrls: 10 } });
      ({ more } = poll);
      polls.push(found(poll));
      // Until all is read, the site must not say that nothing has changed.
      expect(source.source.etag).toBe(more ? null : '"v1"');
    }
    expect(polls.map(({ length }) => length)).toEqual([10, 10, 4]);
    expect(source.queue.size).toBe(25);
  });

  test('looks at a bounded number of entries, known ones too', async () => {
    const site = await startSite({ '/s': urlset(pages(25)) });
    const source = follow(`${site.url}/s`);
    for (const url of pages(24)) source.queue.add(url);
    const limits = { entries: 10 };
    expect(await source.poll({ limits })).toMatchObject({ urls: [], more: true });
    expect(await source.poll({ limits })).toMatchObject({ urls: [], more: true });
    const last = await source.poll({ limits });
    expect([found(last), last.more]).toEqual([['24'], false]);
  });

  test('takes no more than a result may have', async () => {
    const item = (path: string) => `<item><title>${'ü'.repeat(300)}</title><link>${page(path)}</link></item>`;
    const site = await startSite({ '/s': `<rss><channel>${['a', 'b', 'c'].map(item).join('')}</channel></rss>` });
    const source = follow(`${site.url}/s`);
    const first = await source.poll({ limits: { bytes: 1500 } });
    expect([found(first), first.more]).toEqual([['a', 'b'], true]);
    expect(new TextEncoder().encode(JSON.stringify(first.urls)).length).toBeLessThan(3000);
    expect(found(await source.poll())).toEqual(['c']);
  });

  test('reads an index, its sitemaps and those that are packed', async () => {
    const site = await startSite({});
    site.files['/index'] = sitemapIndex([loc(`${site.url}/1`), loc(`${site.url}/2.gz`), loc(`${site.url}/3`)]);
    site.files['/1'] = urlset(pages(2, 'a'));
    site.files['/2.gz'] = Buffer.from(gzipSync(new TextEncoder().encode(urlset(pages(2, 'b')))));
    site.files['/3'] = urlset(pages(2, 'c'));
    const source = follow(`${site.url}/index`);
    const first = await source.poll({ limits: { documents: 3 } });
    expect([found(first), first.more, source.source]).toMatchObject([
      ['a0', 'a1', 'b0', 'b1'],
      true,
      { kind: 'sitemap_index' },
    ]);
    const second = await source.poll({ limits: { documents: 3 } });
    expect([found(second), second.more]).toEqual([['c0', 'c1'], false]);
    expect(site.asked()).toEqual(['/index', '/1', '/2.gz', '/3']);
  });

  test('begins no other sitemap after so long', async () => {
    const site = await startSite({});
    site.files['/index'] = sitemapIndex([loc(`${site.url}/1`)]);
    const poll = await follow(`${site.url}/index`).poll({ limits: { ms: -1 } });
    expect([poll.more, site.asked()]).toEqual([true, ['/index']]);
  });

  test('indexes that name one another come to an end', async () => {
    const site = await startSite({});
    site.files['/a'] = sitemapIndex([loc(`${site.url}/a`), loc(`${site.url}/b`)]);
    site.files['/b'] = sitemapIndex([loc(`${site.url}/a`), loc(`${site.url}/b`), loc(`${site.url}/s`)]);
    site.files['/s'] = urlset(pages(1));
    const poll = await follow(`${site.url}/a`).poll();
    expect([found(poll), poll.more, poll.problem]).toEqual([['0'], false, null]);
    expect(site.asked()).toEqual(['/a', '/b', '/s']);
  });

  test('indexes that name ever new ones come to an end', async () => {
    const site = await startServer(({ path }) => ({
      bytes: Buffer.from(sitemapIndex([loc(`${site.url}${path}x`), loc(`${site.url}${path}y`)])),
    }));
    const source = follow(`${site.url}/`);
    await source.poll({ limits: { documents: 3 } });
    const { pass } = readCursor(source.source.cursor);
    expect(pass).toMatchObject({ next: 3, documents: { length: 7 } });
    // As it stands some hundred polls later.
    const behind = Array.from({ length: MAX_SITEMAPS - 5 }, (_, n) => `${site.url}/${n}`);
    const { documents } = pass as Pass;
    Object.assign(pass as Pass, { documents: [...behind, ...documents.slice(3)], next: behind.length });
    source.source.cursor = { since: null, pass };
    site.received.length = 0;
    const last = await source.poll();
    expect(last).toMatchObject({ more: false, problem: { code: 'too_many_sitemaps' } });
    expect(last.problem?.message).toMatch(/more than 1000 sitemaps.* enter some as sources of their own/);
    expect(site.received).toHaveLength(5);
  });

  test('goes on without a sitemap that cannot be read, and says which', async () => {
    const site = await startSite({});
    site.files['/index'] = sitemapIndex([loc(`${site.url}/gone`), loc('http://10.0.0.1/s'), loc(`${site.url}/s`)]);
    site.files['/s'] = urlset(pages(1));
    const poll = await follow(`${site.url}/index`).poll();
    expect(found(poll)).toEqual(['0']);
    expect(poll.problem).toMatchObject({ code: 'not_found', message: expect.stringContaining(`(${site.url}/gone)`) });
  });

  test('takes a sitemap that stumbles a reader for that sitemap’s fault, counts such, and reads them alone again', async () => {
    const wrong = { headers: { 'content-encoding': 'gzip' }, bytes: Buffer.from(urlset(pages(2))) };
    const site = await startSite({
      '/good.xml': urlset(pages(1, 'good')),
      '/bad.xml': wrong,
      '/gone.xml': { status: 404 },
    });
    const children = ['bad', 'good', 'gone'].map((name) => loc(`${site.url}/${name}.xml`, '2026-03-01'));
    site.files['/index.xml'] = sitemapIndex(children);
    const source = follow(`${site.url}/index.xml`);
    const poll = await source.poll();
    expect(found(poll)).toEqual(['good0']);
    expect(poll.problem).toEqual({
      code: 'damaged_feed',
      message: expect.stringMatching(
        /packed \(Content-Encoding\), and it is not.*bad\.xml.* 1 had something wrong too/s,
      ),
    });
    site.asked();
    await source.poll();
    expect(site.asked()).toEqual(['/index.xml', '/bad.xml', '/gone.xml']);
  });

  test('an unforeseen error is the source’s fault, and a refusal of the project is not', async () => {
    const site = await startSite({ '/feed': urlset(pages(1)) });
    const source = follow(`${site.url}/feed`);
    const refused = new UnavailableError('project_unreachable', 'The project cannot be reached.');
    await expect(source.poll({ unknown: () => Promise.reject(refused) })).rejects.toBe(refused);
    expect(failureOf(new TypeError('no reader for this'), site.url)).toMatchObject({
      code: 'unreadable_feed',
      permanent: true,
      message: expect.stringContaining('no reader for this'),
    });
    for (const said of ['unexpected end of file', 'error reading a body from connection']) {
      const error = new TypeError('terminated', { cause: new Error(said) });
      expect(failureOf(error, site.url), said).toMatchObject({ code: 'connection_lost', permanent: false });
    }
    expect(failureOf(new Error('unexpected end of file'), site.url)).toMatchObject({ code: 'connection_lost' });
    expect(described(new PermanentError('no_feed', 'gives <r\u0000s>'), site.url).message).not.toContain('\u0000');
  });

  test('leaves a site alone that asks for it, and then goes on', async () => {
    const site = await startSite({});
    site.files['/index'] = sitemapIndex([loc(`${site.url}/1`), loc(`${site.url}/2`)]);
    site.files['/1'] = { status: 429, headers: { 'retry-after': '40' } };
    site.files['/2'] = urlset(pages(1));
    const source = follow(`${site.url}/index`);
    expect(await source.poll()).toMatchObject({
      urls: [],
      more: true,
      waitMs: 40_000,
      problem: { code: 'rate_limited' },
    });
    expect(site.asked()).toEqual(['/index', '/1']);
    site.files['/1'] = urlset([]);
    expect(await source.poll()).toMatchObject({ more: false, waitMs: null, problem: null });
    expect(site.asked()).toEqual(['/1', '/2']);
  });
});

describe('a feed of several pages', () => {
  const forms: [string, (items: string[], next: string) => string][] = [
    [
      'next_url of a JSON Feed',
      (items, next_url) =>
        JSON.stringify({ version: 'https://jsonfeed.org/version/1.1', next_url, items: items.map((url) => ({ url })) }),
    ],
    [
      'rel="next" of Atom',
      (items, next) =>
        `<feed xmlns="http://www.w3.org/2005/Atom">${next && `<link rel="next" href="${next}"/>`}${items
          .map((url) => `<entry><link rel="next" href="/no"/><link href="${url}"/></entry>`)
          .join('')}</feed>`,
    ],
    [
      'rel="next" of RSS',
      (items, next) =>
        `<rss xmlns:atom="http://www.w3.org/2005/Atom"><channel><link>/</link>${next && `<atom:link rel="next" href="${next}"/>`}${items
          .map((url) => `<item><link>${url}</link></item>`)
          .join('')}</channel></rss>`,
    ],
  ];

  test.each(forms)('is read to its last one within the bounds of polls: %s', async (_, write) => {
    const site = await startSite({
      '/1': write([page('a'), page('b')], '/2'),
      '/2': write([page('c'), page('d')], '/3'),
      '/3': write([page('e')], ''),
    });
    const source = follow(`${site.url}/1`);
    const first = await source.poll({ limits: { documents: 2, newUrls: 3 } });
    expect([found(first), first.more]).toEqual([['a', 'b', 'c'], true]);
    const second = await source.poll({ limits: { documents: 2 } });
    expect([found(second), second.more, second.problem]).toEqual([['d', 'e'], false, null]);
    expect(site.asked()).toEqual(['/1', '/2', '/2', '/3']);
  });

  test.each(forms)('is later read as far as something is new: %s', async (_, write) => {
    const site = await startSite({
      '/1': write([page('a')], '/2'),
      '/2': write([page('b')], '/3'),
      '/3': write([page('c')], ''),
    });
    const source = follow(`${site.url}/1`);
    expect(found(await source.poll())).toEqual(['a', 'b', 'c']);
    site.asked();
    expect(found(await source.poll())).toEqual([]);
    expect(site.asked()).toEqual(['/1']);
    Object.assign(site.files, { '/1': write([page('d')], '/2'), '/2': write([page('e'), page('a')], '/3') });
    expect(found(await source.poll())).toEqual(['d', 'e']);
    expect(site.asked()).toEqual(['/1', '/2', '/3']);
  });

  const [[, json]] = forms as [(typeof forms)[number]];

  test('one page that cannot be read is named, and reached again by the next pass', async () => {
    const site = await startSite({
      '/1': { headers: { etag: '"v1"' }, bytes: Buffer.from(json([page('a')], '/2')) },
      '/2': { status: 500 },
    });
    const source = follow(`${site.url}/1`);
    expect(await source.poll()).toMatchObject({
      more: false,
      problem: { code: 'server_error', message: expect.stringContaining(`${site.url}/2`) },
    });
    site.files['/2'] = json([page('b')], '');
    const next = await source.poll();
    expect([found(next), next.problem]).toEqual([['b'], null]);
  });

  test.each([
    ['itself', '/1', ['/1']],
    ['no web address', 'mailto:a@b.test', ['/1']],
    ['ever new pages without items', '/2?n=1', ['/1', '/2?n=1']],
  ])('comes to an end where its next page is %s', async (_, next, asked) => {
    const site = await startSite({ '/1': json([page('a')], next), '/2?n=1': json([], '/2?n=2') });
    const poll = await follow(`${site.url}/1`).poll();
    expect([found(poll), poll.more, poll.problem]).toEqual([['a'], false, null]);
    expect(site.asked()).toEqual(asked);
  });

  test('of ever new pages 1,000 are read, and the source says so', async () => {
    const site = await startServer(({ path }) => ({ bytes: Buffer.from(json([page(path)], `${path}x`)) }));
    const source = follow(`${site.url}/`);
    await source.poll({ limits: { documents: 1 } });
    const { pass } = readCursor(source.source.cursor);
    const behind = Array.from({ length: MAX_SITEMAPS - 1 }, (_, n) => `${site.url}/${n}`);
    Object.assign(pass as Pass, { documents: [...behind, `${site.url}/x`], next: behind.length });
    source.source.cursor = { since: null, pass };
    expect(await source.poll()).toMatchObject({ more: false, problem: { code: 'too_many_feed_pages' } });
  });
});

describe('the next pass over an index', () => {
  const march = new Date('2026-03-10T12:00:00Z');
  const april = new Date('2026-04-10T12:00:00Z');

  test('reads only sitemaps that have changed since, by the index’s dates', async () => {
    const site = await startSite({ '/old': urlset(pages(1, 'old')), '/new': urlset(pages(1, 'new')) });
    const index = (date: string) => sitemapIndex([loc(`${site.url}/old`, '2026-01-01'), loc(`${site.url}/new`, date)]);
    site.files['/index'] = index('2026-03-01');
    const source = follow(`${site.url}/index`);
    await source.poll({ now: march });
    expect(site.asked()).toEqual(['/index', '/old', '/new']);
    site.files['/index'] = index('2026-04-01');
    await source.poll({ now: april });
    expect(site.asked()).toEqual(['/index', '/new']);
  });

  test('a sitemap that the index dates by a day may have changed at any hour of that day, in any time zone', async () => {
    const site = await startSite({ '/s': urlset(pages(1)) });
    site.files['/index'] = sitemapIndex([loc(`${site.url}/s`, '2026-03-10')]);
    const source = follow(`${site.url}/index`);
    await source.poll({ now: march });
    site.asked();
    await source.poll({ now: april });
    expect(site.asked()).toEqual(['/index', '/s']);
  });

  test('asks each sitemap of an index without dates whether it has changed, whatever the index’s own ETag', async () => {
    const site = await startSite({ '/s': urlset(pages(1)) });
    site.files['/index'] = { headers: { etag: '"v1"' }, bytes: Buffer.from(sitemapIndex([loc(`${site.url}/s`)])) };
    const source = follow(`${site.url}/index`);
    await source.poll({ now: march });
    site.files['/s'] = { status: 304 };
    site.received.length = 0;
    expect(await source.poll({ now: april })).toMatchObject({ urls: [], more: false, problem: null });
    expect(site.received[0]?.headers['if-none-match']).toBeUndefined();
    expect(site.received[1]?.headers['if-modified-since']).toBe('Tue, 10 Mar 2026 11:00:00 GMT');
  });

  test('reads again what could not be read', async () => {
    const site = await startSite({});
    site.files['/index'] = sitemapIndex([loc(`${site.url}/s`, '2026-01-01')]);
    const source = follow(`${site.url}/index`);
    expect((await source.poll({ now: march })).problem).not.toBeNull();
    site.files['/s'] = urlset(pages(1));
    expect(found(await source.poll({ now: april }))).toEqual(['0']);
  });

  test('reads again that alone, under no condition, until it can be read', async () => {
    const site = await startSite({ '/a': urlset(pages(1, 'a')) });
    const entries = ['/a', '/s'].map((path) => loc(`${site.url}${path}`, '2026-01-01'));
    site.files['/index'] = { headers: { etag: '"v1"' }, bytes: Buffer.from(sitemapIndex(entries)) };
    const source = follow(`${site.url}/index`);
    await source.poll({ now: march });
    for (const now of [march, april]) {
      site.received.length = 0;
      expect((await source.poll({ now })).problem).toMatchObject({ code: 'not_found' });
      expect(site.asked()).toEqual(['/index', '/s']);
    }
    site.files['/s'] = { headers: { etag: '"s"' }, bytes: Buffer.from(urlset(pages(1))) };
    site.received.length = 0;
    expect(found(await source.poll({ now: april }))).toEqual(['0']);
    expect(site.received.map(({ headers }) => headers['if-modified-since'])).toEqual([undefined, undefined]);
    site.received.length = 0;
    await source.poll({ now: april });
    expect(site.received.map(({ path, headers }) => [path, headers['if-none-match']])).toEqual([['/index', '"v1"']]);
  });

  test('a poll takes the pages of a sitemap that an index names and that could not be read before, however old', async () => {
    const site = await startSite({ '/s': urlset(pages(1)) });
    site.files['/index'] = sitemapIndex([loc(`${site.url}/inner`, '2026-01-01')]);
    const source = follow(`${site.url}/index`);
    expect((await source.poll({ now: march })).problem).not.toBeNull();
    site.files['/inner'] = sitemapIndex([loc(`${site.url}/s`, '2026-01-01')]);
    site.received.length = 0;
    expect(found(await source.poll({ now: april }))).toEqual(['0']);
    expect(site.received.at(-1)?.headers['if-modified-since']).toBeUndefined();
  });

  test('reads all once more where too many could not be read', async () => {
    const site = await startSite({});
    const paths = Array.from({ length: MAX_UNREAD + 1 }, (_, n) => `/${n}`);
    site.files['/index'] = sitemapIndex(paths.map((path) => loc(`${site.url}${path}`, '2026-01-01')));
    const source = follow(`${site.url}/index`);
    await source.poll({ now: march, limits: { documents: 1000 } });
    expect(readCursor(source.source.cursor)).toMatchObject({ since: null, unread: [] });
    for (const path of paths) site.files[path] = urlset([page(path.slice(1))]);
    expect(found(await source.poll({ now: april, limits: { documents: 1000 } }))).toHaveLength(paths.length);
  });
});

test('a cursor that nobody can read counts for none', async () => {
  const site = await startSite({ '/s': urlset(pages(1)) });
  const source = follow(`${site.url}/s`);
  source.source.cursor = { pass: { next: 'soon' } };
  expect(found(await source.poll())).toEqual(['0']);
});
