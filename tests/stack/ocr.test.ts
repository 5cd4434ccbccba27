import { existsSync } from 'node:fs';
import { Hono } from 'hono';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JobView } from '../../local/services/http/jobs.ts';
import { listen, type Service } from '../../local/services/http/listen.ts';
import type { PageText } from '../../local/services/ocr/page-text.ts';
import { startOcr } from '../../local/services/ocr/server.ts';
import { lockedPdf, pageSize, pictureOf, pngHeader, scannedPdf, textPdf } from '../support/examples/documents.ts';
import { until } from '../support/until.ts';
import { post } from './running.ts';

const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;
const rows = [
  { text: 'Chapter One', x: 60, y: 90, size: 22 },
  { text: 'The ferry leaves at seven.', x: 60, y: 130, size: 12 },
];
const files = new Map<string, Uint8Array | Buffer>();
const received: { body: string; headers: Record<string, string> }[] = [];
let host: Service;
let ocr: Service;

beforeAll(async () => {
  const app = new Hono();
  app.post('/callback', async (c) => {
    received.push({ body: await c.req.text(), headers: c.req.header() });
    return c.body(null, 200);
  });
  app.get('/busy', (c) => c.body(null, 429, { 'retry-after': '7' }));
  app.get('/:name', (c) => {
    const file = files.get(c.req.param('name'));
    return file ? c.body(new Uint8Array(file)) : c.notFound();
  });
  host = await listen(app.fetch);
  const env = { OCR_ALLOW_HOSTS: new URL(host.url).host, WEBHOOK_SECRET: secret, OCR_AUTH_TOKEN: 'token' };
  ocr = await startOcr({ env, limits: { documentBytes: 1024 * 1024 } });

  files.set('scan.pdf', await scannedPdf([], rows));
  files.set('plain.pdf', await textPdf(rows));
  files.set('photo.jpg', await pictureOf(rows).encode('jpeg', 70));
  files.set('locked.pdf', await lockedPdf());
  files.set('cut.pdf', (await textPdf(rows)).slice(0, 200));
  files.set('cut.png', (await pictureOf(rows).encode('png')).subarray(0, 60));
  files.set('page.html', Buffer.from('<p>The ferry leaves at seven.</p>'));
  files.set('poster.png', pngHeader(30_000, 30_000));
  files.set('large.pdf', Buffer.alloc(1024 * 1024 + 1, '%PDF-1.7 '));
  // The first page waits for a reader to start, which takes its time on a busy machine.
  await read('scan.pdf', 1, {}, 50);
});
afterAll(async () => {
  await Promise.all([host.stop(), ocr.stop()]);
});

const auth = { authorization: 'Bearer token' };

async function read(file: string, page = 1, more: object = {}, seconds = 20): Promise<JobView<PageText>> {
  const body = { document_url: `${host.url}/${file}`, page, ...more };
  const { json } = await post(`${ocr.url}/jobs`, body, auth);
  const ask = async () => {
    const answer = await fetch(`${ocr.url}/jobs/${json.job_id}`, { headers: auth });
    const view = (await answer.json()) as JobView<PageText>;
    return view.status === 'completed' || view.status === 'failed' ? view : undefined;
  };
  return until(ask, seconds * 1000);
}

describe('a page is read', () => {
  test('that is an image only, with the place of each line in points', async () => {
    const { result, error } = await read('scan.pdf', 2);
    expect(error).toBeUndefined();
    expect(result?.text).toBe('Chapter One\n\nThe ferry leaves at seven.');
    expect(result).toMatchObject({ page: 2, width: pageSize[0], height: pageSize[1] });
    expect(result?.confidence).toBeGreaterThan(0.8);
    expect(result?.lines.map(({ text }) => text)).toEqual(rows.map(({ text }) => text));
    for (const [index, { bbox, confidence }] of (result?.lines ?? []).entries()) {
      const { x, y, size } = rows[index] as (typeof rows)[number];
      expect(confidence).toBeGreaterThan(0.8);
      expect(Math.abs(bbox[0] - x)).toBeLessThan(4);
      expect(bbox[1]).toBeGreaterThan(y - size);
      expect(bbox[3]).toBeLessThan(y + size / 2);
    }
  });

  test('whose letters are drawn in a font that the PDF does not bring', async () => {
    const { result } = await read('plain.pdf');
    expect(result?.text).toBe('Chapter One\n\nThe ferry leaves at seven.');
  });

  test('that is a photograph, with places in its pixels', async () => {
    const { result } = await read('photo.jpg');
    expect(result?.text).toContain('The ferry leaves at seven.');
    expect(result).toMatchObject({ width: pageSize[0] * 2, height: pageSize[1] * 2 });
    expect(Math.abs((result?.lines[0]?.bbox[0] ?? 0) - 120)).toBeLessThan(8);
  });

  test('that is blank, as empty text and no failure', async () => {
    const { result } = await read('scan.pdf', 1);
    expect(result).toMatchObject({ page: 1, text: '', confidence: 0, lines: [] });
  });

  test('without a trace on the disk', async () => {
    await read('photo.jpg');
    expect(existsSync('eng.traineddata')).toBe(false);
  });
});

test.each([
  ['missing.pdf', 1, { code: 'not_found', permanent: true }],
  ['busy', 1, { code: 'rate_limited', permanent: false, retry_after_ms: 7000 }],
  ['page.html', 1, { code: 'unsupported_type', permanent: true }],
  ['cut.pdf', 1, { code: 'damaged_document', permanent: true }],
  ['cut.png', 1, { code: 'damaged_document', permanent: true }],
  ['locked.pdf', 1, { code: 'encrypted_document', permanent: true }],
  ['plain.pdf', 2, { code: 'no_such_page', permanent: true }],
  ['photo.jpg', 2, { code: 'no_such_page', permanent: true }],
  ['large.pdf', 1, { code: 'too_large', permanent: true }],
  ['poster.png', 1, { code: 'too_large', permanent: true }],
])('%s, page %i, fails as %o', async (file, page, expected) => {
  const view = await read(file, page);
  expect(view.error).toMatchObject(expected);
  expect(view.result).toBeUndefined();
});

test('a document on a private address is refused unless its host is allowed', async () => {
  const { json } = await post(`${ocr.url}/jobs`, { document_url: `${ocr.url}/x.pdf`, page: 1 }, auth);
  const view = await until(async () => {
    const job = (await (await fetch(`${ocr.url}/jobs/${json.job_id}`, { headers: auth })).json()) as JobView<PageText>;
    return job.error && job;
  }, 20_000);
  expect(view.error).toMatchObject({ code: 'blocked_address', permanent: true });
  expect(view.error?.message).toContain('OCR_ALLOW_HOSTS');
});

test('the signature of a URL is told to nobody', async () => {
  const { error } = await read('missing.pdf?token=very-secret');
  expect(error?.message).toContain('/missing.pdf: ');
  expect(error?.message).not.toContain('very-secret');
});

test('a page that takes too long fails for now, and its reader does not go on', async () => {
  const slow = await startOcr({ env: { OCR_ALLOW_HOSTS: '127.0.0.1' }, limits: { readMs: 1 } });
  const { json } = await post(`${slow.url}/jobs`, { document_url: `${host.url}/scan.pdf`, page: 2 });
  const view = await until(async () => {
    const job = (await (await fetch(`${slow.url}/jobs/${json.job_id}`)).json()) as JobView<PageText>;
    return job.error && job;
  }, 20_000);
  await slow.stop();
  expect(view.error).toMatchObject({ code: 'timeout', permanent: false });
});

test('the end of a job is reported once, signed, with its result and metadata', async () => {
  const view = await read('scan.pdf', 1, { callback_url: `${host.url}/callback`, metadata: { ref: 'r1' } });
  const { body, headers } = await until(() => received[0], 20_000);
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({
    type: 'job.completed',
    data: { job_id: view.job_id, status: 'completed', result: view.result, metadata: { ref: 'r1' } },
  });
  expect(received).toHaveLength(1);
});

describe('submissions', () => {
  const submit = (body: unknown, key: string) => post(`${ocr.url}/jobs`, body, { ...auth, 'idempotency-key': key });

  test('the same idempotency key gives the same job, though the URL is signed anew', async () => {
    const signed = (token: string, page = 1) => ({ document_url: `${host.url}/scan.pdf?token=${token}`, page });
    const first = await submit(signed('a'), '1');
    expect(first).toMatchObject({ status: 202, json: { status: 'queued' } });
    expect(await submit(signed('b'), '1')).toMatchObject({ status: 200, json: { job_id: first.json.job_id } });
    expect((await submit(signed('a', 2), '1')).json.error.code).toBe('idempotency_key_reused');
  });

  test('the token is asked for', async () => {
    const { status, json } = await post(`${ocr.url}/jobs`, {}, { authorization: 'Bearer wrong' });
    expect(status).toBe(401);
    expect(json.error.message).toContain('OCR_AUTH_TOKEN');
  });

  const url = 'https://example.com/book.pdf';
  test.each([
    ['nothing', undefined, 'body', 'document_url'],
    ['no document', { page: 1 }, 'document_url', 'missing'],
    ['a path', { document_url: 'book.pdf', page: 1 }, 'document_url', 'the string "book.pdf"'],
    ['no page', { document_url: url }, 'page', 'missing; send the number of a page, from 1'],
    ['page 0', { document_url: url, page: 0 }, 'page', 'the number 0'],
    ['half a page', { document_url: url, page: 1.5 }, 'page', 'the number 1.5'],
    ['another language', { document_url: url, page: 1, languages: ['deu'] }, 'languages.0', 'at least one of: eng'],
    ['no language', { document_url: url, page: 1, languages: [] }, 'languages', 'at least one of: eng'],
    ['an unknown field', { document_url: url, page: 1, dpi: 300 }, 'dpi', 'leave it out'],
  ])('%s is refused by a message that names the field, what it is and the remedy', async (_what, body, field, part) => {
    const { status, json } = await post(`${ocr.url}/jobs`, body ?? '', auth);
    expect(status).toBe(400);
    expect(json.error.field).toBe(field);
    expect(json.error.message).toContain(part);
  });
});
