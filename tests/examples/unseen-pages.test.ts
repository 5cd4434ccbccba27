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
    ['within a part of a second', refresh('.5; url=/next'), '/next'],
    ['as its base has it', `<base href="/other/">${refresh('0; url=next')}`, '/other/next'],
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

  test('in UTF-16 too', () => {
    const body = Buffer.from(`\ufeff${refresh('0; url=/next')}`, 'utf16le');
    expect(leadsTo({ ...fetched(''), body })?.pathname).toBe('/next');
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
    ['script_shell', 'Loading, please wait…'],
    ['script_shell', 'JavaScript appears to be disabled in your browser.'],
    ['script_shell', 'Por favor, ative o JavaScript para continuar.'],
    ['script_shell', 'Włącz JavaScript, aby korzystać z tej strony.'],
    ['script_shell', '자바스크립트를 활성화해 주세요.'],
    ['cookie_wall', '이 웹사이트는 쿠키를 사용합니다. 계속하면 쿠키 사용에 동의하는 것입니다.'],
    ['cookie_wall', 'Мы используем файлы cookie. Продолжая, вы соглашаетесь на их использование.'],
    ['cookie_wall', 'Tento web používá soubory cookie. Kliknutím na „Přijmout vše“ souhlasíte s jejich použitím.'],
    ['cookie_wall', 'Bu web sitesi çerezleri kullanır. Devam ederek çerez kullanımını kabul etmiş olursunuz.'],
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
    '# Junior developer\n\nRequirements: JavaScript, HTML and CSS.',
    'Active JavaScript community. Join us.',
    'Kenntnisse in JavaScript sind erforderlich.',
    '现代汉语中的曲奇饼干使用黄油，请接受我们的邀请。',
  ])('is not one with a text: %.50s', (markdown) => {
    expect(lacksContent(markdown)).toBeNull();
  });
});

describe('a posting that is gone says so in the languages of the boards', () => {
  const gone: Record<string, string[]> = {
    english: [
      'This job is no longer available.',
      'The position you are looking for is no longer open',
      'No longer accepting applications',
      'Sorry! This vacancy has already been filled.',
      'This listing has expired',
    ],
    german: [
      'Diese Stelle ist leider nicht mehr verfügbar.',
      'Die Stellenanzeige wurde bereits besetzt oder deaktiviert.',
      'Dieses Stellenangebot ist abgelaufen.',
    ],
    french: [
      'Cette offre n’est plus disponible.',
      "L'annonce que vous cherchez n'existe plus",
      'Ce poste a été pourvu.',
      'Désolé, cette offre a expiré.',
    ],
    spanish: [
      'Esta oferta ya no está disponible.',
      'La vacante ha sido cubierta.',
      'El anuncio que buscas ya no existe',
      'Esta oferta ha caducado.',
    ],
    portuguese: [
      'Esta vaga não está mais disponível.',
      'A oferta já não se encontra disponível.',
      'Esta vaga foi encerrada.',
      'O anúncio expirou.',
    ],
    italian: ['Questa offerta non è più disponibile.', 'L’annuncio è scaduto.', 'La posizione è stata chiusa.'],
    dutch: [
      'Deze vacature is niet meer beschikbaar.',
      'De vacature is inmiddels vervuld.',
      'Deze pagina bestaat niet meer',
    ],
    polish: ['Ta oferta pracy nie jest już dostępna.', 'Ogłoszenie wygasło.', 'Oferta została zakończona.'],
    swedish: ['Annonsen är inte längre tillgänglig.', 'Tjänsten har tillsatts.', 'Jobbet finns tyvärr inte kvar.'],
    danish: ['Jobbet er ikke længere tilgængeligt.', 'Stillingen er besat.', 'Annoncen findes ikke længere'],
    turkish: ['Bu ilan artık yayında değil.', 'İlan yayından kaldırılmıştır.', 'Bu pozisyon kapanmıştır.'],
    japanese: [
      'この求人は募集を終了しました。',
      'お探しの求人情報の掲載は終了しています',
      'この募集は締め切りました。',
    ],
    chinese: ['该职位已关闭', '您查看的职位已经下线。', '此職缺已關閉', '该职位不存在'],
    korean: ['채용이 마감되었습니다.', '마감된 공고입니다', '해당 공고가 삭제되었습니다.'],
  };
  /** Of a living page: a condition, another thing that is gone, or the same words in another sense. */
  const there: Record<string, string[]> = {
    english: [
      'We take the form down as soon as the position has been filled.',
      'Write to us if the job is no longer available to you in March.',
      'Our shop is closed on Sundays.',
      'The old loom is no longer available in blue.',
      'This role is filled with small joys.',
    ],
    german: [
      'Die Anzeige bleibt online, bis die Stelle besetzt ist.',
      'Sobald die Stelle ist besetzt worden, melden wir uns.',
      'Der Laden ist sonntags geschlossen.',
    ],
    french: ['Nous retirons l’annonce dès que le poste a été pourvu.', 'Le magasin est fermé le dimanche.'],
    spanish: ['Retiramos el anuncio cuando el puesto ha sido cubierto.', 'La tienda está cerrada los domingos.'],
    portuguese: ['Avisamos assim que a vaga foi preenchida.', 'A loja está fechada aos domingos.'],
    italian: ['Ti scriviamo se l’annuncio non è più disponibile.', 'Il negozio è chiuso la domenica.'],
    dutch: ['Wij laten het weten zodra de vacature is vervuld.', 'De winkel is gesloten op zondag.'],
    polish: ['Napiszemy, gdy oferta nie jest już aktualna.', 'Sklep jest zamknięty w niedziele.'],
    swedish: ['Vi hör av oss när tjänsten har tillsatts.', 'Butiken är stängd på söndagar.'],
    danish: ['Vi giver besked, når stillingen er besat.', 'Butikken er lukket om søndagen.'],
    turkish: ['İlan artık yayında değilse bize yazın.', 'Mağaza pazar günleri kapalıdır.'],
    japanese: ['募集が終了しましたら、ご連絡します。', '店は日曜日に休みます。'],
    chinese: ['如果职位已关闭，我们会通知您。', '我们招聘有经验的钟表匠。'],
    korean: ['공고가 마감되면 알려 드립니다.', '시계공을 모집합니다.'],
  };
  const each = (texts: Record<string, string[]>) =>
    Object.entries(texts).flatMap(([of, all]) => all.map((text) => [of, text]));
  const around = (text: string) => fetched(`<h1>Acme</h1><p>${text}</p><a href="/">Jobs</a>`);

  test.each(each(gone))('%s: %s', (_, text) => {
    expect(() => refuseOtherPages(url, around(text as string))).toThrow(/is gone/);
  });

  test.each(each(there))('and a living page of %s is a page: %s', (_, text) => {
    expect(() => refuseOtherPages(url, around(text as string))).not.toThrow();
  });

  test('a long page that has such a sentence is a page, in each language', () => {
    for (const [of, [text]] of Object.entries(gone)) {
      const page = `${'The weaver minds his loom and many threads run over it. '.repeat(40)}<p>${text}</p>`;
      expect(() => refuseOtherPages(url, fetched(page)), of).not.toThrow();
    }
  });
});

describe('words are counted in scripts without blanks', () => {
  const chinese = '我们正在寻找一位有经验的钟表匠，负责修理塔钟和古董钟表。'.repeat(40);
  const thai = 'เรากำลังมองหาช่างซ่อมนาฬิกาที่มีประสบการณ์'.repeat(40);

  test.each([chinese, thai])('a long page that has a captcha in its form is a page: %.20s', (text) => {
    const html = `<p>${text}</p><form><div class="g-recaptcha"></div></form>`;
    expect(() => refuseOtherPages(url, fetched(html))).not.toThrow();
  });

  test.each([
    '请完成安全验证后继续访问',
    '私はロボットではありません',
    '로봇이 아닙니다',
    'Подтвердите, что вы не робот',
  ])('a short page that asks for nothing but that is one: %s', (text) => {
    expect(() => refuseOtherPages(url, fetched(`<p>${text}</p>`))).toThrow(/captcha/);
    expect(() => refuseOtherPages(url, fetched(`<p>${chinese}</p><p>${text}</p>`))).not.toThrow();
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
