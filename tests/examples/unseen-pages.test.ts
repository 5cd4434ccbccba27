// Pages of every kind that sites really have, each with what must become of it.
import { createSinglebyteEncoder } from '@exodus/bytes/single-byte.js';
import { describe, expect, test } from 'vitest';
import type { Fetched } from '../../local/services/http/fetch-url.ts';
import { JobError, toJobError } from '../../local/services/http/job-error.ts';
import { refuseOtherPages } from '../../local/services/scraper/page-faults.ts';
import { leadsTo, readOnward } from '../../local/services/scraper/page-onward.ts';
import { readPage } from '../../local/services/scraper/read-page.ts';
import { hasFewWords } from '../../supabase/functions/_services/text/count-words.ts';
import { lacksContent } from '../../supabase/functions/_services/text/page-content.ts';

const url = new URL('https://site.test/dir/page');
const fetched = (html: string | Buffer, contentType = 'text/html; charset=utf-8'): Fetched => ({
  url,
  status: 200,
  contentType,
  body: Buffer.from(html as string),
});

describe('an exception is called what it is', () => {
  const caused = (code: string) => new TypeError('fetch failed', { cause: Object.assign(new Error('no'), { code }) });
  test.each([
    ['a reader that stumbles', new TypeError('Cannot read properties of null'), 'unexpected_error', true],
    ['a text that was thrown', 'no', 'unexpected_error', true],
    ['a code that no network has', caused('ERR_ASSERTION'), 'unexpected_error', true],
    ['a reset', caused('ECONNRESET'), 'connection_lost', false],
    ['a socket that closed', caused('UND_ERR_SOCKET'), 'connection_lost', false],
    ['a packed body that ends early', caused('Z_BUF_ERROR'), 'connection_lost', false],
    ['a body that is not packed as it says', caused('Z_DATA_ERROR'), 'damaged_content', true],
    ['a server that speaks no HTTP', caused('HPE_INVALID_CONSTANT'), 'http_error', true],
    ['a job that was ended', new DOMException('stopped', 'AbortError'), 'connection_lost', false],
  ])('%s', (_, error, code, permanent) => {
    expect(toJobError(error, url)).toMatchObject({ code, permanent });
    if (code === 'unexpected_error') expect(toJobError(error, url).message).toContain(String(error).slice(-4));
  });

  test('a page on which a parser fails has a code of its own, and its name', () => {
    const broken = { ...fetched('<p>x</p>'), body: { subarray: null } as unknown as Buffer };
    expect(() => readPage(broken)).toThrow(JobError);
    expect(() => readPage(broken)).toThrow(/the page cannot be read \(TypeError: /);
  });

  test.each(['<frameset><frame src="a"></frameset>', '', '<!doctype html>', '<svg><title>x</title></svg>'])(
    'a page without a body is read: %s',
    (html) => {
      expect(readPage(fetched(`<html><head><title>T</title></head>${html}</html>`)).title).toBe('T');
    },
  );
});

describe('a page in a charset that nobody declares', () => {
  const words = 'Мастер починил часы на ратуше, и теперь они снова бьют каждый час.';
  const page = `<html><head><title>Часы</title></head><body><p>${words}</p></body></html>`;
  const windows1251 = Buffer.from(createSinglebyteEncoder('windows-1251')(page));
  test.each([
    ['no name', windows1251, 'text/html', ['Its charset windows-1251 was guessed.']],
    ['a wrong header', windows1251, 'text/html; charset=utf-8', ['Its charset windows-1251 was guessed.']],
    ['a right header', windows1251, 'text/html; charset=windows-1251', []],
    ['a header that denies UTF-8', Buffer.from(page), 'text/html; charset=iso-8859-1', []],
    ['UTF-16 without a mark', Buffer.from(page, 'utf16le'), 'text/html', ['Its charset utf-16le was guessed.']],
  ])('is read as it was written, with %s, and any doubt is told', (_, body, type, doubts) => {
    const { markdown, doubts: told } = readPage({ url, contentType: type, body });
    expect({ markdown, told }).toEqual({ markdown: words, told: doubts });
  });

  test('and one with damaged letters says how many', () => {
    const body = Buffer.concat([Buffer.from(page.slice(0, -14)), Buffer.from([0xff, 0x20, 0xff])]);
    expect(readPage({ url, contentType: 'text/html', body }).doubts).toEqual([
      'It has 2 characters that cannot be read in its charset utf-8.',
    ]);
  });
});

describe('a page leads on', () => {
  const refresh = (content: string) => `<html><head><meta http-equiv="Refresh" content="${content}"></head>`;
  test.each([
    ['at once', refresh('0; URL=/next'), '/next'],
    ['with a quoted address', refresh("3;url='next#part'"), '/dir/next'],
    ['with no word before the address', refresh('0, https://other.test/'), 'https://other.test/'],
    ['to its canonical address, beside a title', '<title>Moved</title><link rel="canonical" href="/new">', '/new'],
    ['to itself, which is no other page', refresh('5; url=/dir/page#top'), null],
    ['by a script address', refresh('0; url=javascript:go()'), null],
    ['only to be shown anew', refresh('10'), null],
    ['after minutes', refresh('300; url=/next'), null],
    ['where no script runs', `<noscript>${refresh('0; url=/no-script')}</noscript>`, null],
    ['in a comment', `<!-- ${refresh('0; url=/next')} --><p>Text</p>`, null],
    ['canonical beside a text', '<link rel="canonical" href="/new"><p>Text</p>', null],
    ['canonical beside a picture', '<link rel="canonical" href="/new"><img src="a.png">', null],
  ])('%s', (_, html, next) => {
    expect(leadsTo(fetched(html))?.href ?? null).toBe(next && new URL(next, url).href);
  });

  test('a text is never followed', () => {
    expect(leadsTo(fetched(refresh('0; url=/next'), 'text/plain'))).toBeNull();
  });

  test('a frameset names its frames, and what stands for browsers without frames is none', () => {
    const html =
      '<title>Firm</title><frameset cols="1,3"><frame src="nav.htm"><frameset><frame src="/main.htm"></frameset></frameset>' +
      '<noframes><body>Get a newer browser. <a href="x">x</a></body></noframes>';
    expect(readOnward(html)).toMatchObject({ frames: ['nav.htm', '/main.htm'], title: 'Firm', hasText: false });
  });
});

describe('a page without a text of its own', () => {
  test.each([
    ['heading', '# Welcome to Miller & Sons'],
    ['heading', '# Miller\n\n## Fine clocks'],
    ['script_shell', 'You need to enable JavaScript to run this app.'],
    ['script_shell', '# App\n\nLoading...'],
    ['script_shell', 'Bitte aktivieren Sie JavaScript, um diese Seite anzuzeigen.'],
    [
      'cookie_wall',
      'We use cookies and similar technologies. By clicking Accept all you consent to our use of cookies.',
    ],
    [
      'cookie_wall',
      '## Ihre Privatsphäre\n\nWir verwenden Cookies und ähnliche Technologien. Mit „Alle akzeptieren“ stimmen Sie zu.\n\n' +
        'Einstellungen\n\nNur notwendige Cookies\n\nAlle akzeptieren',
    ],
    ['cookie_wall', '当サイトはクッキーを使用しています。続行すると、クッキーの使用に同意したことになります。'],
  ])('%s: %s', (kind, markdown) => {
    expect(lacksContent(markdown)).toBe(kind);
  });

  test.each([
    '# Welcome\n\nWe mend clocks.',
    '# Bakery\n\nOur cookies are baked by hand, with butter. We accept orders by telephone until noon.',
    `We use cookies to count visits; accept them or not.\n\n# Clocks\n\n${'We have mended tower clocks since 1894. '.repeat(8)}`,
    '# How to enable JavaScript\n\n'.padEnd(
      600,
      'Open the settings of your browser and look for the section on content. ',
    ),
    '现代汉语中的曲奇饼干使用黄油，请接受我们的邀请。',
  ])('is not one with a text: %.50s', (markdown) => {
    expect(lacksContent(markdown)).toBeNull();
  });
});

describe('words are counted in scripts without blanks', () => {
  const chinese = '我们正在寻找一位有经验的钟表匠，负责修理塔钟和古董钟表。'.repeat(40);
  const thai = 'เรากำลังมองหาช่างซ่อมนาฬิกาที่มีประสบการณ์'.repeat(40);

  test.each([chinese, thai])('a long page that has a captcha in its form is a page: %.20s', (text) => {
    const html = `<p>${text}</p><form><div class="g-recaptcha"></div></form>`;
    expect(() => refuseOtherPages(url, fetched(html))).not.toThrow();
  });

  test('a long page that speaks of another that was removed is a page', () => {
    const html = `<p>${chinese}</p><p>“This job is no longer available”</p>`;
    expect(() => refuseOtherPages(url, fetched(html))).not.toThrow();
  });

  test('a short one is still what it says', () => {
    expect(() => refuseOtherPages(url, fetched('<p>请稍候</p><div class="g-recaptcha"></div>'))).toThrow(/captcha/);
    expect(() => refuseOtherPages(url, fetched('<p>抱歉</p><p>This job is no longer available.</p>'))).toThrow(
      /is gone/,
    );
  });

  test('at the bound', () => {
    expect(hasFewWords('word '.repeat(250), 250)).toBe(true);
    expect(hasFewWords('word '.repeat(251), 250)).toBe(false);
    expect(hasFewWords('x'.repeat(20_000), 250)).toBe(false);
  });
});
