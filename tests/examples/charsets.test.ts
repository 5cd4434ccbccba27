import { createMultibyteEncoder } from '@exodus/bytes/multi-byte.js';
import { createSinglebyteEncoder } from '@exodus/bytes/single-byte.js';
import { describe, expect, test } from 'vitest';
import { isHtml } from '../../supabase/functions/_documents/html-text.ts';
import { sniffDocument } from '../../supabase/functions/_services/pdf/pdf.ts';
import { decodeText } from '../../supabase/functions/_services/text/decode-text.ts';

const texts: Record<string, string[]> = {
  shift_jis: ['契約書はこちらです。ご確認をお願いします。'],
  'euc-jp': ['株式会社の売上高は前年度に比べて増加した。'],
  'iso-2022-jp': ['契約書はこちらです。'],
  gb18030: ['你好合同', '本合同由甲乙双方签订，自签字之日起生效。'],
  big5: ['本合約由甲乙雙方簽訂，自簽字之日起生效。'],
  'euc-kr': ['계약서는 여기에 있습니다. 확인 부탁드립니다.'],
  'koi8-r': ['Привет, мир', 'Договор заключён между сторонами.'],
  'koi8-u': ['Договір набирає чинності з дня його підписання, її умови є вичерпними.'],
  ibm866: ['Договор заключён между сторонами.'],
  'iso-8859-5': ['Договор вступает в силу с момента подписания.'],
  'windows-1250': ['Zażółć gęślą jaźń', 'Příliš žluťoučký kůň úpěl ďábelské ódy.', 'Árvíztűrő tükörfúrógép'],
  'windows-1251': ['Привет, мир', 'Москва — столица России.'],
  'windows-1252': ['Glück', 'It’s the customer’s “own” word, he said — and left.', 'L’été à la plage, 50 €'],
  'windows-1253': ['Η σύμβαση συνάπτεται μεταξύ των μερών.'],
  'windows-1254': ['Sözleşme taraflar arasında imzalanmıştır ve yürürlüğe girmiştir.'],
  'windows-1255': ['החוזה נחתם בין הצדדים ונכנס לתוקף ביום החתימה.'],
  'windows-1256': ['تم توقيع العقد بين الطرفين ويدخل حيز التنفيذ.'],
  'windows-1257': ['Sutartis sudaryta tarp šalių ir įsigalioja nuo pasirašymo.'],
  'windows-874': ['สัญญานี้ทำขึ้นระหว่างคู่สัญญาทั้งสองฝ่าย'],
};
const isWide = (charset: string) => /jis|euc|2022|gb|big/.test(charset);
const encode = (text: string, charset: string): Uint8Array =>
  (isWide(charset) ? createMultibyteEncoder(charset) : createSinglebyteEncoder(charset))(text);
const utf8 = (text: string) => new TextEncoder().encode(text);
const utf16 = (text: string) => new Uint8Array(Buffer.from(text, 'utf16le'));
const cases = Object.entries(texts).flatMap(([charset, given]) => given.map((text) => [charset, text] as const));

describe('a text without a declaration', () => {
  test.each(cases)('in %s is read by its bytes and marked as guessed: %s', (charset, text) => {
    for (const lines of [text, `# Notes\n\n${text}\n\n${'plain words '.repeat(900)}`]) {
      const read = decodeText(encode(lines, charset));
      expect(read).toMatchObject({ text: lines, guessed: true, lost: 0 });
    }
    const html = `<html><head><title>x</title></head><p class="note">${text}</p></html>`;
    expect(decodeText(encode(html, charset), { kind: 'html' }).text).toBe(html);
    expect(isHtml(encode(html, charset))).toBe(true);
  });

  test('is UTF-8 where its bytes allow it, and no guess, a damaged byte aside', () => {
    expect(decodeText(utf8('Příliv'))).toEqual({ text: 'Příliv', charset: 'utf-8', guessed: false, lost: 0 });
    const damaged = new Uint8Array([...utf8('Příliš žluťoučký kůň'), 0xc5]);
    expect(decodeText(damaged)).toMatchObject({ text: 'Příliš žluťoučký kůň\ufffd', charset: 'utf-8', lost: 1 });
  });

  test('may be UTF-16 without a mark, whichever byte comes first', async () => {
    const text = 'The ferry leaves\nПаром в 7';
    for (const [charset, bytes] of [
      ['utf-16le', utf16(text)],
      ['utf-16be', utf16(text).map((_, at, all) => all[at ^ 1] as number)],
    ] as const) {
      expect(decodeText(bytes)).toEqual({ text, charset, guessed: true, lost: 0 });
      expect(await sniffDocument(bytes)).toBe('text');
    }
    expect(await sniffDocument(new Uint8Array([1, 0, 2, 0, 3, 0, 255, 255]))).toBe('unknown');
  });
});

test('Chinese and Japanese in UTF-16 without a mark are told by a single line end, or by the header', () => {
  const text = `${'塔の時計を修理する職人を募集しています。'.repeat(40)}\n次の行です。`;
  const swapped = (bytes: Uint8Array) => bytes.map((_, at, all) => all[at ^ 1] as number);
  expect(decodeText(utf16(text))).toEqual({ text, charset: 'utf-16le', guessed: true, lost: 0 });
  expect(decodeText(swapped(utf16(text)))).toEqual({ text, charset: 'utf-16be', guessed: true, lost: 0 });
  const contentType = 'text/html; charset=utf-16';
  expect(decodeText(utf16('時計'), { contentType })).toMatchObject({ text: '時計', guessed: false });
  expect(decodeText(swapped(utf16('a clock')), { contentType })).toMatchObject({ text: 'a clock', guessed: true });
  expect(decodeText(utf8(`a \0 in ${'a longer text '.repeat(20)}`))).toMatchObject({ charset: 'utf-8' });
});

test.each([
  '塔の時計を修理する職人を募集しています。',
  '本合同由甲乙双方签订，自签字之日起生效。',
  '一、二、三。',
  '东京大学',
])('Chinese and Japanese without a line end are told by their letters: %s', (text) => {
  const swapped = utf16(text).map((_, at, all) => all[at ^ 1] as number);
  expect(decodeText(utf16(text))).toEqual({ text, charset: 'utf-16le', guessed: true, lost: 0 });
  expect(decodeText(swapped)).toEqual({ text, charset: 'utf-16be', guessed: true, lost: 0 });
  for (const charset of ['shift_jis', 'gb18030', 'big5', 'euc-jp']) {
    let bytes: Uint8Array;
    try {
      bytes = encode(text.repeat(3), charset);
    } catch {
      continue;
    }
    expect(decodeText(bytes).charset, charset).not.toMatch(/utf-16/);
  }
});

describe('a text with a declaration', () => {
  const page = (charset: string, text: string) => `<meta charset="${charset}"><p>${text}`;
  const koi = texts['koi8-r']?.[1] ?? '';

  test('is read as its mark, its header, or itself says, in this order', () => {
    const read = (bytes: Uint8Array, contentType = '') => {
      const { charset, guessed } = decodeText(bytes, { contentType, kind: 'html' });
      return [charset, guessed];
    };
    expect(read(utf8(`\ufeff${page('koi8-r', koi)}`), 'text/html; charset=big5')).toEqual(['utf-8', false]);
    expect(read(encode(page('windows-1251', koi), 'koi8-r'), 'text/html; charset="KOI8-R"')).toEqual(['koi8-r', false]);
    expect(read(encode(page('koi8-r', koi), 'koi8-r'), 'text/html; charset=nonsense')).toEqual(['koi8-r', false]);
    expect(read(encode(`<!--${' '.repeat(3000)}-->${page('koi8-r', koi)}`, 'koi8-r'))).toEqual(['koi8-r', false]);
    expect(
      decodeText(encode(`<?xml version="1.0" encoding="koi8-r"?><a>${koi}</a>`, 'koi8-r'), { kind: 'xml' }).text,
    ).toContain(koi);
  });

  test.each([
    ['a header that says UTF-8', encode(page('koi8-r', koi), 'koi8-r'), 'text/html; charset=utf-8', 'koi8-r'],
    ['a page that says UTF-8', encode(page('utf-8', koi), 'koi8-r'), '', 'koi8-r'],
    ['a server that says Latin-1 of UTF-8', utf8(koi), 'text/html; charset=iso-8859-1', 'utf-8'],
  ])('gets a second look where it does not fit: %s', (_, bytes, contentType, charset) => {
    expect(decodeText(bytes, { contentType, kind: 'html' })).toMatchObject({ charset, guessed: true, lost: 0 });
  });

  test('keeps its charset where a byte of it is damaged, and counts what is lost', () => {
    const bytes = encode(page('shift_jis', texts.shift_jis?.[0] ?? ''), 'shift_jis');
    const read = decodeText(new Uint8Array([...bytes, 0x82]), { kind: 'html' });
    expect(read).toMatchObject({ charset: 'shift_jis', guessed: false, lost: 1 });
  });
});
