// The entries that one feed or sitemap gives, read as it arrives.
import { createSinglebyteEncoder } from '@exodus/bytes/single-byte.js';
import { gzipSync } from 'fflate';
import { describe, expect, test } from 'vitest';
import { MAX_FEED_BYTES } from '../../supabase/functions/_articles/feeds/feed-text.ts';
import { type ReadFeed, readFeed } from '../../supabase/functions/_articles/feeds/read-feed.ts';

/** Reads a feed that arrives in pieces of `size` bytes. */
async function read(content: string | Uint8Array, { type = '', size = 7, from = 0, most = 1000 } = {}) {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(pieces) {
      if (at >= bytes.length) return pieces.close();
      pieces.enqueue(bytes.subarray(at, at + size));
      at += size;
    },
  });
  const feed = { url: 'https://site.test/feeds/all.xml', etag: null, lastModified: null, contentType: type, body };
  return readFeed(feed, from, most);
}

/** The entries that were read, without places. */
const plain = ({ entries }: ReadFeed) => entries.map(({ url, title, at }) => ({ url, title, at }));
/** The links of what was read. */
const links = ({ entries }: ReadFeed) => entries.map(({ url }) => url.replace('https://site.test', ''));

const rss = (items: string, head = '') => `<?xml version="1.0"?>
  <rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>All</title><link>https://site.test/</link>
  <image><title>Logo</title><link>https://site.test/logo</link></image>${head}${items}</channel></rss>`;
const item = (path: string, more = '') =>
  `<item><title>About ${path}</title><link>https://site.test/${path}</link>${more}</item>`;

describe('each kind is known by its outermost element, and gives links, titles and dates', () => {
  test('RSS 2', async () => {
    const feed = await read(
      rss(`${item('a', '<pubDate>Tue, 03 Mar 2026 08:00:00 +0100</pubDate><media:title xmlns:media="m">No</media:title>')}
        <item><title><![CDATA[Nuts & bolts <b>now</b>]]></title><guid>https://site.test/b</guid></item>
        <item><title>c &amp; d</title><link/><atom:link href="/c"/><atom:link rel="replies" href="/no"/></item>`),
    );
    expect(feed).toMatchObject({ kind: 'rss', whole: true, problem: null });
    expect(plain(feed)).toEqual([
      { url: 'https://site.test/a', title: 'About a', at: '2026-03-03T07:00:00.000Z' },
      { url: 'https://site.test/b', title: 'Nuts & bolts <b>now</b>', at: null },
      { url: 'https://site.test/c', title: 'c & d', at: null },
    ]);
  });

  test('RDF, whose items stand beside their channel', async () => {
    const feed =
      await read(`<rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/" xmlns:dc="d"><channel><link>https://site.test/</link>
      <items><rdf:Seq><rdf:li resource="https://site.test/a"/></rdf:Seq></items></channel>
      <item rdf:about="https://site.test/a"><title>A</title><link>https://site.test/a</link><dc:date>2026-03-03</dc:date></item></rdf:RDF>`);
    expect(feed).toMatchObject({ kind: 'rdf', problem: null });
    expect(plain(feed)).toEqual([{ url: 'https://site.test/a', title: 'A', at: '2026-03-03T00:00:00.000Z' }]);
  });

  test.each(['', 'a:'])('Atom with the prefix "%s", its links relative to xml:base', async (p) => {
    const feed =
      await read(`<${p}feed xmlns:a="http://www.w3.org/2005/Atom" xml:base="/news/"><${p}title>All</${p}title>
      <${p}link href="https://site.test/"/><${p}entry><${p}title type="html">One</${p}title>
      <${p}link rel="edit" href="edit"/><${p}link rel="alternate" type="text/html" href="one"/>
      <${p}source><${p}title>Other</${p}title></${p}source><${p}published>2026-03-03T08:00:00Z</${p}published>
      <${p}updated>2026-03-09T08:00:00Z</${p}updated></${p}entry></${p}feed>`);
    expect(feed).toMatchObject({ kind: 'atom', problem: null });
    expect(plain(feed)).toEqual([{ url: 'https://site.test/news/one', title: 'One', at: '2026-03-03T08:00:00.000Z' }]);
  });

  test('a sitemap, with news and images', async () => {
    const feed =
      await read(`<urlset xmlns="s" xmlns:image="i" xmlns:news="n"><url><image:image><image:loc>https://site.test/a.jpg</image:loc>
      </image:image><loc> https://site.test/a?x=1&amp;y=2 </loc><news:news><news:publication_date>2026-03-03</news:publication_date>
      <news:title>A</news:title></news:news></url><url><loc>https://site.test/b</loc><lastmod>2026-02-01</lastmod></url></urlset>`);
    expect(feed).toMatchObject({ kind: 'sitemap', problem: null });
    expect(plain(feed)).toEqual([
      { url: 'https://site.test/a?x=1&y=2', title: 'A', at: '2026-03-03T00:00:00.000Z' },
      { url: 'https://site.test/b', title: null, at: '2026-02-01T00:00:00.000Z' },
    ]);
  });

  test('an index of sitemaps', async () => {
    const feed = await read(
      '<sitemapindex><sitemap><loc>https://site.test/1.xml.gz</loc></sitemap><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>',
    );
    expect(feed.kind).toBe('sitemap_index');
    expect(links(feed)).toEqual(['/1.xml.gz', '/2.xml']);
  });
});

describe('what is packed or encoded is read as what it is', () => {
  test('gzip, by its first bytes and not by its name', async () => {
    const packed = gzipSync(new TextEncoder().encode(rss(item('a') + item('b'))));
    expect(links(await read(packed))).toEqual(['/a', '/b']);
  });

  const halves = () => {
    const text = rss(item('a') + item('b'));
    return [text.slice(0, 300), text.slice(300)].map((half) => gzipSync(new TextEncoder().encode(half)));
  };
  test.each([
    ['of two members', () => Buffer.concat(halves())],
    ['with a tail', () => Buffer.concat([...halves(), Buffer.from('<!-- cached at 12:00 -->')])],
    ['padded with NULs', () => Buffer.concat([...halves(), Buffer.alloc(600)])],
    ['by its name alone', () => Buffer.from(rss(item('a') + item('b')))],
  ])('gzip %s, however it arrives', async (_, packed) => {
    for (const size of [1, 7, 100_000]) {
      const feed = await read(new Uint8Array(packed()), { size, type: 'application/gzip' });
      expect(links(feed)).toEqual(['/a', '/b']);
      expect(feed.problem).toBeNull();
    }
  });

  test('gzip that is damaged', async () => {
    const packed = gzipSync(new TextEncoder().encode(rss(item('a').repeat(50))));
    packed.fill(0xff, 20, 60);
    await expect(read(packed)).rejects.toMatchObject({
      code: 'damaged_feed',
      permanent: true,
      message: expect.stringContaining('cannot be unpacked'),
    });
  });

  const title = '<item><title>Mölln</title><link>https://site.test/a</link></item>';
  test.each([
    ['its declaration', Buffer.from(rss(title).replace('"1.0"', '"1.0" encoding="ISO-8859-1"'), 'latin1'), ''],
    ['its header', Buffer.from(rss(title), 'latin1'), 'text/xml; charset=iso-8859-1'],
    ['its byte order mark', Buffer.from(`\ufeff${rss(title)}`, 'utf16le'), 'text/xml; charset=utf-8'],
    ['nothing but UTF-8', Buffer.from(rss(title)), 'text/xml; charset=nonsense'],
    ['UTF-8 that its header denies', Buffer.from(rss(title)), 'text/xml; charset=iso-8859-1'],
    ['UTF-16 without a mark', Buffer.from(rss(title), 'utf16le'), 'text/xml'],
  ])('text, by %s', async (_, bytes, type) => {
    expect((await read(new Uint8Array(bytes), { type })).entries[0]?.title).toBe('Mölln');
  });
});

describe('what names no charset is read by its bytes, and says so', () => {
  const russian = 'Мэрия обещает починить часы на ратуше до конца года';
  const text = rss(`<item><title>${russian}</title><link>https://site.test/a</link></item>`).replace(
    ' version="1.0"',
    '',
  );
  test.each(['koi8-r', 'windows-1251'])('in %s, late in the feed and in small pieces', async (charset) => {
    const ascii = item('x').repeat(90);
    const bytes = createSinglebyteEncoder(charset)(text.replace('<item>', `${ascii}<item>`));
    for (const size of [64, 100_000]) {
      const feed = await read(bytes, { size });
      expect(feed.entries.at(-1)?.title).toBe(russian);
      expect(feed.problem).toMatchObject({ code: 'charset_guessed', message: expect.stringContaining(charset) });
    }
  });

  test('a charset that is named well leaves no doubt', async () => {
    const bytes = createSinglebyteEncoder('windows-1251')(text);
    const feed = await read(bytes, { type: 'text/xml; charset=windows-1251' });
    expect(feed).toMatchObject({ entries: [{ title: russian }], problem: null });
  });
});

describe('other forms of feeds', () => {
  test('JSON Feed, with and without links, from a place on', async () => {
    const items = [
      { id: '1', url: 'https://site.test/a', title: 'A &amp; B', date_published: '2026-03-03T08:00:00+01:00' },
      { id: 'https://site.test/b', content_text: 'No title' },
      { id: 3, external_url: 'https://other.test/c', date_modified: '2026-03-04T00:00:00Z' },
      { id: '4', title: 'No link' },
      { id: '5', attachments: [{ url: '/e.mp3', mime_type: 'audio/mpeg' }] },
      'no item',
    ];
    const content = JSON.stringify({ version: 'https://jsonfeed.org/version/1.1', title: 'All', items });
    const feed = await read(content, { type: 'application/feed+json' });
    expect(feed).toMatchObject({
      kind: 'json',
      whole: true,
      problem: { message: expect.stringContaining('2 of its 6') },
    });
    expect(plain(feed)).toEqual([
      { url: 'https://site.test/a', title: 'A & B', at: '2026-03-03T07:00:00.000Z' },
      { url: 'https://site.test/b', title: null, at: null },
      { url: 'https://other.test/c', title: null, at: '2026-03-04T00:00:00.000Z' },
      { url: 'https://site.test/e.mp3', title: null, at: null },
    ]);
    const begun = await read(content, { most: 1 });
    expect(begun).toMatchObject({ whole: false, entries: [{ url: 'https://site.test/a' }] });
    expect(links(await read(content, { from: begun.entries[0]?.end, most: 1 }))).toEqual(['/b']);
    await expect(read(content.slice(0, -20))).rejects.toMatchObject({ code: 'damaged_feed' });
  });

  test('a text sitemap, an address a line, from a place on', async () => {
    const text = '\ufeffhttps://site.test/1\r\n\nhttps://site.test/ü\nno address\nhttps://site.test/3';
    const feed = await read(text, { type: 'text/plain' });
    expect(feed).toMatchObject({ kind: 'sitemap', problem: { message: expect.stringContaining('1 of its 4') } });
    expect(links(feed)).toEqual(['/1', '/%C3%BC', '/3']);
    for (const size of [1, 7, 1000]) {
      const begun = await read(text, { most: 1, size });
      expect(links(await read(text, { from: begun.entries[0]?.end, size }))).toEqual(['/%C3%BC', '/3']);
    }
  });

  test('a podcast’s items without a link, and Atom’s whose id is one', async () => {
    const enclosure = '<enclosure url="https://cdn.test/1.mp3" length="1" type="audio/mpeg"/>';
    const guid = '<guid isPermaLink="false">1</guid>';
    expect(links(await read(rss(`<item><title>One</title>${guid}${enclosure}</item>${item('a', enclosure)}`)))).toEqual(
      ['https://cdn.test/1.mp3', '/a'],
    );
    const atom = '<feed><entry><id>https://site.test/b</id></entry><entry><id>tag:site.test,2026:c</id></entry></feed>';
    expect(await read(atom)).toMatchObject({
      entries: [{ url: 'https://site.test/b' }],
      problem: { code: 'no_links' },
    });
  });

  test.each([
    ['in CDATA', '<title><![CDATA[It&#8217;s R&amp;D &#x2013; now]]></title>', 'It’s R&D – now'],
    ['escaped twice', '<title>It&amp;#8217;s R&amp;amp;D</title>', 'It’s R&D'],
    [
      'in Atom’s HTML',
      '<title type="html">Nuts &amp;amp; &lt;b&gt;bolts&lt;/b&gt; 1 &amp;lt; 2</title>',
      'Nuts & bolts 1 < 2',
    ],
    ['in Atom’s XHTML', '<title type="xhtml"><div>Nuts &amp; <b>bolts</b></div></title>', 'Nuts & bolts'],
    ['that are none', '<title>Q&amp;A: a &lt; b &amp;c=1</title>', 'Q&A: a < b &c=1'],
  ])('entities in titles %s', async (_, title, plainTitle) => {
    const feed = title.includes('type=') ? `<feed><entry>${title}<link href="/a"/></entry></feed>` : '';
    const { entries } = await read(feed || rss(`<item>${title}<link>/a</link></item>`));
    expect(entries[0]?.title).toBe(plainTitle);
  });
});

describe('what is no feed is refused with what to do', () => {
  test.each([
    [
      'a web page',
      '<!doctype html><html><head><meta charset="utf-8"><title>Home</title></head><body><p>Hi</body>',
      /a web page, no feed .* enter the feed’s own address/,
    ],
    [
      'a page that names its feed',
      '<html><head><link rel="alternate" type="application/rss+xml" href="/rss.xml"></head>',
      /The page names its feed: enter https:\/\/site\.test\/rss\.xml\./,
    ],
    ['another kind of XML', '<opml version="2.0"><body/></opml>', /<opml>, no feed/],
    ['another kind of JSON', '{"version": "1", "items": []}', /JSON, no feed/],
    ['a text', 'Nothing to see', /no XML, no feed/],
    ['nothing', '', /nothing, no feed/],
  ])('%s', async (_, content, message) => {
    await expect(read(content)).rejects.toMatchObject({
      code: 'no_feed',
      permanent: true,
      message: expect.stringMatching(message),
    });
  });

  test('a web page as large as a site likes, of which little is read', async () => {
    let pulled = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(pieces) {
        pulled++;
        pieces.enqueue(
          new TextEncoder().encode(pulled === 1 ? '<html><head></head><body>' : '<p>And on. '.repeat(500)),
        );
      },
    });
    const feed = { url: 'https://site.test/', etag: null, lastModified: null, contentType: 'text/html', body };
    await expect(readFeed(feed, 0, 10)).rejects.toMatchObject({ code: 'no_feed' });
    expect(pulled).toBeLessThan(5);
  });

  test.each([
    ['as it is', (text: Uint8Array) => text],
    ['packed into little', (text: Uint8Array) => gzipSync(text)],
  ])('a feed of 20 MB, %s', async (_, packed) => {
    const text = new TextEncoder().encode(
      rss(`<item><description>${'x'.repeat(MAX_FEED_BYTES + 5_000_000)}</description></item>`),
    );
    await expect(read(packed(text), { size: 65_536 })).rejects.toMatchObject({
      code: 'feed_too_large',
      permanent: true,
      message: expect.stringMatching(/more than the 15 MB .* enter a smaller one/),
    });
  });

  test('elements in one another without end', async () => {
    await expect(read(rss(`<item>${'<a>'.repeat(200)}`), { size: 4096 })).rejects.toMatchObject({
      code: 'damaged_feed',
    });
  });

  test('items none of which has a link', async () => {
    const unlinked =
      '<item><title>T</title><guid isPermaLink="false">https://site.test/7</guid></item><item><link>mailto:a@b.test</link></item>';
    await expect(read(rss(unlinked))).rejects.toMatchObject({
      code: 'no_links',
      message: expect.stringContaining('None of its 2 items'),
    });
  });
});

describe('what can be used is used, and its fault is told', () => {
  test('some items without a link', async () => {
    const feed = await read(rss(`${item('a')}<item><title>No link</title></item>${item('b')}`));
    expect(links(feed)).toEqual(['/a', '/b']);
    expect(feed.problem).toMatchObject({ code: 'no_links', message: '1 of its 3 items has no link and was left out.' });
  });

  test('a feed that breaks off in the midst of a link', async () => {
    const whole = rss(item('a') + item('b') + item('longer-than-others'));
    const feed = await read(whole.slice(0, whole.indexOf('than-others')));
    expect(links(feed)).toEqual(['/a', '/b']);
    expect(feed.problem).toMatchObject({ code: 'feed_cut_off', message: expect.stringContaining('after 2 items') });
  });

  test('a feed without an item is well', async () => {
    expect(await read(rss(''))).toMatchObject({ kind: 'rss', entries: [], problem: null });
  });
});

describe('a long one is read in parts', () => {
  const many = (count: number) =>
    `<urlset>${Array.from({ length: count }, (_, n) => `<url><loc>https://site.test/${n}</loc></url>`).join('')}</urlset>`;

  /** The links of each part, of at most `most` entries, each read from where the one before has ended. */
  async function partsOf(content: string | Uint8Array, most: number, size?: number): Promise<string[]> {
    const parts: string[] = [];
    for (let from = 0, whole = false; !whole; ) {
      const feed = await read(content, { from, most, size });
      expect(feed.problem).toBeNull();
      parts.push(links(feed).join(' '));
      from = feed.entries.at(-1)?.end ?? from;
      ({ whole } = feed);
    }
    return parts;
  }

  test('each entry comes once, and nothing counts as cut off', async () => {
    expect(await partsOf(many(10), 4)).toEqual(['/0 /1 /2 /3', '/4 /5 /6 /7', '/8 /9']);
  });

  test('whatever stands around the items, however it arrives, packed or not', async () => {
    const feed = rss(
      `${item('a')}<!-- <item> -->\n${item('b', '<description><![CDATA[</item><item>]]></description>')}<ttl>5</ttl>${item('ü')}`,
      '<textInput><link>https://site.test/search</link></textInput>',
    );
    const atom = `<feed xml:base="/x/"><title>All</title>${['<link href="a"/>', '<link href="b"/>'].map((link) => `<entry>${link}</entry>`).join('\n')}</feed>`;
    for (const size of [1, 7, 64, 100_000]) {
      expect(await partsOf(feed, 1, size)).toEqual(['/a', '/b', '/%C3%BC']);
      expect(await partsOf(gzipSync(new TextEncoder().encode(feed)), 2, size)).toEqual(['/a /b', '/%C3%BC']);
      expect(await partsOf(atom, 1, size)).toEqual(['/x/a', '/x/b']);
    }
  });

  test('a part without a link is no reason to give up the rest', async () => {
    const { entries } = await read(rss(item('a')), { most: 1 });
    const feed = await read(rss(`${item('a')}<item><title>T</title></item>`), { from: entries[0]?.end });
    expect(feed).toMatchObject({ entries: [], whole: true, problem: { code: 'no_links' } });
  });

  test('a feed that has become shorter meanwhile comes to an end', async () => {
    expect(await read(rss(item('a')), { from: 10_000 })).toMatchObject({ entries: [], whole: true });
  });

  test('a feed that ends where a part ends is whole', async () => {
    expect(await partsOf(many(8), 4)).toEqual(['/0 /1 /2 /3', '/4 /5 /6 /7']);
  });

  test('the rest after a part is not fetched', async () => {
    let cancelled = false;
    const body = new ReadableStream<Uint8Array>({
      start: (pieces) => pieces.enqueue(new TextEncoder().encode(many(5000).slice(0, -9))),
      cancel: () => {
        cancelled = true;
      },
    });
    const feed = { url: 'https://site.test/s.xml', etag: null, lastModified: null, contentType: '', body };
    expect((await readFeed(feed, 0, 3)).entries).toHaveLength(3);
    expect(cancelled).toBe(true);
  });
});
