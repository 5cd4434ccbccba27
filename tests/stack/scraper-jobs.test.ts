import { Hono } from 'hono';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { listen, type Service } from '../../local/services/http/listen.ts';
import { startScraper } from '../../local/services/scraper/server.ts';
import { until } from '../support/until.ts';
import { post, scrape } from './running.ts';

const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;
const token = 'the-token';
const auth = { authorization: `Bearer ${token}` };
const received: { body: string; headers: Record<string, string> }[] = [];
let answerStatuses: number[] = [];
let site: Service;
let scraper: Service;
let open: Service;

beforeAll(async () => {
  const app = new Hono();
  app.get('/', (c) => c.html('<p>The page.</p>'));
  app.post('/callback', async (c) => {
    received.push({ body: await c.req.text(), headers: c.req.header() });
    return c.body(null, (answerStatuses.shift() ?? 200) as 200);
  });
  site = await listen(app.fetch);
  const env = { SCRAPER_ALLOW_HOSTS: '127.0.0.1', WEBHOOK_SECRET: secret };
  const callbackDelaysMs = [10, 20];
  scraper = await startScraper({ env: { ...env, SCRAPER_AUTH_TOKEN: token }, callbackDelaysMs });
  open = await startScraper({ env, callbackDelaysMs });
});
afterAll(async () => {
  await Promise.all([site.stop(), scraper.stop(), open.stop()]);
});
afterEach(() => {
  received.length = 0;
  answerStatuses = [];
});

describe('callbacks', () => {
  test('a finished job is reported once, signed, with its result and metadata', async () => {
    const body = { url: site.url, callback_url: `${site.url}/callback`, metadata: { ref: 'r1' } };
    const view = await scrape(open.url, body);
    const { body: text, headers } = await until(() => received[0], 20_000);
    expect(new Webhook(secret).verify(text, headers)).toMatchObject({
      type: 'job.completed',
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      data: { job_id: view.job_id, status: 'completed', result: view.result, metadata: { ref: 'r1' } },
    });
    expect(() => new Webhook(secret).verify(text.replace('r1', 'r2'), headers)).toThrow();
  });

  test('a failed job is reported with its error', async () => {
    await scrape(open.url, { url: `${site.url}/none`, callback_url: `${site.url}/callback` });
    const { body } = await until(() => received[0], 20_000);
    expect(JSON.parse(body)).toMatchObject({
      type: 'job.failed',
      data: { status: 'failed', error: { code: 'not_found', permanent: true } },
    });
  });

  test('a refused callback is sent again under the same id with a valid signature, then given up', async () => {
    answerStatuses = [503, 500];
    await scrape(open.url, { url: site.url, callback_url: `${site.url}/callback` });
    await until(() => received[2], 20_000);
    expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    for (const { body, headers } of received) expect(() => new Webhook(secret).verify(body, headers)).not.toThrow();

    received.length = 0;
    answerStatuses = [500, 500, 500, 500];
    await scrape(open.url, { url: site.url, callback_url: `${site.url}/callback` });
    await until(() => received[2], 20_000);
    // A later job's callback comes in after every try of the earlier one would have.
    answerStatuses = [];
    await scrape(open.url, { url: site.url, callback_url: `${site.url}/callback` });
    await until(() => received[3], 20_000);
    expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(2);
  });

  test('while secrets rotate a callback bears the signature of each', async () => {
    const older = Buffer.from('an older secret, in use still').toString('base64');
    const rotating = await startScraper({
      env: { SCRAPER_ALLOW_HOSTS: '127.0.0.1', WEBHOOK_SECRET: `${secret} ${older}` },
    });
    await scrape(rotating.url, { url: site.url, callback_url: `${site.url}/callback` });
    const { body, headers } = await until(() => received[0], 20_000);
    await rotating.stop();
    for (const key of [secret, older]) expect(() => new Webhook(key).verify(body, headers)).not.toThrow();
  });

  test('a callback is refused where there is no secret to sign it with', async () => {
    const unsigned = await startScraper({ env: {} });
    const { status, json } = await post(`${unsigned.url}/jobs`, { url: site.url, callback_url: site.url });
    await unsigned.stop();
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ field: 'callback_url', message: expect.stringContaining('WEBHOOK_SECRET') });
  });
});

describe('submissions', () => {
  test('the same idempotency key gives the same job', async () => {
    const headers = { ...auth, 'idempotency-key': '41' };
    const first = await post(`${scraper.url}/jobs`, { url: site.url }, headers);
    const second = await post(`${scraper.url}/jobs`, { url: site.url }, headers);
    const other = await post(`${scraper.url}/jobs`, { url: site.url }, { ...auth, 'idempotency-key': '42' });
    expect(first).toMatchObject({ status: 202, json: { status: 'queued' } });
    expect(second).toMatchObject({ status: 200, json: { job_id: first.json.job_id } });
    expect(other.json.job_id).not.toBe(first.json.job_id);
  });

  test('another body under the same idempotency key is refused, and buys nothing', async () => {
    const headers = { 'idempotency-key': 'reused' };
    const body = { url: site.url, metadata: { ref: 1 } };
    const first = await post(`${open.url}/jobs`, body, headers);
    const changes = [{ url: `${site.url}/other` }, { metadata: { ref: 2 } }, { callback_url: `${site.url}/callback` }];
    for (const change of changes) {
      const { status, json } = await post(`${open.url}/jobs`, { ...body, ...change }, headers);
      expect(status).toBe(409);
      expect(json.error).toMatchObject({
        code: 'idempotency_key_reused',
        message: expect.stringContaining('another key'),
      });
    }
    expect((await post(`${open.url}/jobs`, body, headers)).json.job_id).toBe(first.json.job_id);
  });

  test('the token is asked for where it is set', async () => {
    for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: token }]) {
      const { status, json } = await post(`${scraper.url}/jobs`, { url: site.url }, headers as Record<string, string>);
      expect(status).toBe(401);
      expect(json.error.code).toBe('unauthorized');
    }
    expect((await fetch(`${scraper.url}/jobs/x`)).status).toBe(401);
    expect((await fetch(`${scraper.url}/jobs/x`, { headers: auth })).status).toBe(404);
  });

  test.each([
    ['nothing', '', 'body', 'missing'],
    ['broken JSON', '{', 'body', 'missing'],
    ['an array', [], 'body', 'an array'],
    ['no url', {}, 'url', 'missing'],
    ['a number for a url', { url: 5 }, 'url', 'the number 5'],
    ['a url that is none', { url: 'example' }, 'url', 'the string "example"'],
    ['a url of another scheme', { url: 'ftp://example.com/' }, 'url', 'http or https'],
    ['too many pages', { url: 'https://example.com/', max_pages: 21 }, 'max_pages', 'the number 21'],
    ['no whole number of pages', { url: 'https://example.com/', max_pages: 1.5 }, 'max_pages', 'from 1 to 20'],
    ['metadata that is no object', { url: 'https://example.com/', metadata: 'x' }, 'metadata', 'the string "x"'],
    ['an unknown field', { url: 'https://example.com/', maxPages: 3 }, 'maxPages', 'leave it out'],
  ])('%s is refused by a message that names the field, what it is and the remedy', async (_what, body, field, part) => {
    const { status, json } = await post(`${open.url}/jobs`, body);
    expect(status).toBe(400);
    expect(json.error.field).toBe(field);
    expect(json.error.message).toContain(part);
  });

  test('a secret that cannot sign stops the start', async () => {
    await expect(startScraper({ env: { WEBHOOK_SECRET: 'not base64!' } })).rejects.toThrow(/WEBHOOK_SECRET/);
  });
});
