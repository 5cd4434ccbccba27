import type { LookupAddress } from 'node:dns';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isPublicAddress, readAllowedHosts } from '../../local/services/http/guarded-agent.ts';
import { listen, type Service } from '../../local/services/http/listen.ts';
import { startScraper } from '../../local/services/scraper/server.ts';
import { scrape } from './running.ts';

let inside: Service;
let open: Service;
let scraper: Service;
let insidePort: string;
const reached: string[] = [];
const answers = new Map<string, LookupAddress[]>();

beforeAll(async () => {
  const secret = new Hono().all('*', (c) => {
    reached.push(c.req.path);
    return c.html('<p>The inner page.</p>');
  });
  inside = await listen(secret.fetch);
  insidePort = new URL(inside.url).port;
  const app = new Hono();
  app.get('/to', (c) => c.redirect(c.req.query('url') ?? ''));
  app.get('/', (c) => c.html('<p>The outer page.</p><a href="/to?url=http://inner.example/">on</a>'));
  open = await listen(app.fetch);
  const openHost = new URL(open.url).host;
  scraper = await startScraper({
    env: { SCRAPER_ALLOW_HOSTS: `${openHost}, shop.example` },
    resolve: async (hostname) => answers.get(hostname) ?? [],
  });
});
afterAll(async () => {
  await Promise.all([inside.stop(), open.stop(), scraper.stop()]);
});

async function expectBlocked(url: string): Promise<void> {
  reached.length = 0;
  const view = await scrape(scraper.url, { url });
  expect(view.error).toMatchObject({ code: 'blocked_address', permanent: true });
  expect(view.error?.message).toContain('SCRAPER_ALLOW_HOSTS');
  expect(reached).toEqual([]);
}

describe('private addresses are refused', () => {
  test.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '0.0.0.0',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::7f00:1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '[fe80::1]',
    '[fd00::1]',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '169.254.169.254',
  ])('written as %s', async (host) => {
    await expectBlocked(`http://${host}:${insidePort}/`);
  });

  test('behind a host name', async () => {
    answers.set('inner.example', [{ address: '127.0.0.1', family: 4 }]);
    await expectBlocked(`http://inner.example:${insidePort}/`);
  });

  test('behind an IPv6 address that stands for an IPv4 one', async () => {
    answers.set('inner.example', [{ address: '::ffff:127.0.0.1', family: 6 }]);
    await expectBlocked(`http://inner.example:${insidePort}/`);
  });

  test.each([
    ['an address', () => inside.url],
    ['a host name', () => `http://inner.example:${insidePort}/`],
  ])('after a redirect to %s', async (_what, target) => {
    answers.set('inner.example', [{ address: '127.0.0.1', family: 4 }]);
    await expectBlocked(`${open.url}/to?url=${encodeURIComponent(target())}`);
  });

  test('on the one answer that is connected to: a name is not looked up again after it was judged', async () => {
    let lookups = 0;
    const resolve = async () => [{ address: lookups++ === 0 ? '127.0.0.1' : '93.184.216.34', family: 4 }];
    const strict = await startScraper({ env: {}, resolve });
    const view = await scrape(strict.url, { url: `http://moving.example:${insidePort}/` });
    await strict.stop();
    expect(view.error).toMatchObject({ code: 'blocked_address' });
    expect(lookups).toBe(1);
  });

  test('while an allowed name may live on one, and an allowed port does not open its neighbours', async () => {
    answers.set('shop.example', [{ address: '127.0.0.1', family: 4 }]);
    const view = await scrape(scraper.url, { url: `http://shop.example:${insidePort}/` });
    expect(view.result?.pages[0]?.markdown).toContain('The inner page.');
    await expectBlocked(inside.url);
  });

  test('by what kind of address it is, and public ones are let through', () => {
    expect(['93.184.216.34', '::ffff:8.8.8.8', '2606:4700::1'].map(isPublicAddress)).toEqual([true, true, true]);
    expect(['::1', '198.18.0.1', '224.0.0.1', '255.255.255.255', 'fec0::1'].some(isPublicAddress)).toBe(false);
  });
});

test('SCRAPER_ALLOW_HOSTS takes hosts and host:port, and refuses what is neither', () => {
  expect([...readAllowedHosts('HOSTS', { HOSTS: ' Shop.example, 127.0.0.1:80,[::1]:8080, ::1 ' }).hosts]).toEqual([
    'shop.example',
    '127.0.0.1:80',
    '::1:8080',
    '::1',
  ]);
  expect(() => readAllowedHosts('HOSTS', { HOSTS: 'http://shop.example/' })).toThrow(
    /HOSTS .*http:\/\/shop\.example\/.*host:port/,
  );
});
