import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cleanUrl, webAddress } from '../../supabase/functions/_articles/clean-url.ts';

describe('an address is cleaned', () => {
  test.each([
    ['tracking', 'https://a.test/x?utm_source=feed&id=7&fbclid=1&UTM_Medium=rss', 'https://a.test/x?id=7'],
    ['a query of nothing else', 'https://a.test/x?gclid=1', 'https://a.test/x'],
    ['an empty query', 'https://a.test/x?&&', 'https://a.test/x'],
    ['a fragment', 'https://a.test/x#part', 'https://a.test/x'],
    ['the usual port', 'http://a.test:80/x', 'http://a.test/x'],
    ['the spelling of the host', ' HTTPS://WWW.A.Test./x ', 'https://www.a.test/x'],
    ['an international host', 'https://zürich.test/ä', 'https://xn--zrich-kva.test/%C3%A4'],
  ])('of %s', (_, text, cleaned) => {
    expect(cleanUrl(text)).toBe(cleaned);
  });

  test.each([
    'https://a.test/x/?b=2&a=1&ref=home',
    'https://a.test/x??',
    'http://a.test:8080/x',
    'https://a.test/x?q=a%20b+c&q=d',
  ])('and keeps what tells the page: %s', (url) => {
    expect(cleanUrl(url)).toBe(url);
  });

  test('once and for all', () => {
    const urls = fc.webUrl({ withQueryParameters: true, withFragments: true });
    fc.assert(
      fc.property(urls, (url) => {
        expect(cleanUrl(cleanUrl(url))).toBe(cleanUrl(url));
      }),
    );
  });
});

const refused = [
  '',
  'clocks',
  'ftp://a.test/x',
  'javascript:alert(1)',
  'https://u:p@a.test/',
  'https://./',
  'https://',
];

test.each([...refused, `https://a.test/${'x'.repeat(2100)}`])(
  'what cannot be fetched is no web address: %.40s',
  (text) => {
    expect(webAddress(text)).toBeNull();
  },
);

test('a web address is cleaned', () => {
  expect(webAddress(' https://a.test/x?utm_id=1 ')).toBe('https://a.test/x');
});
