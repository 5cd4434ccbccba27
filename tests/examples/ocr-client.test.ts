import { describe, expect, test } from 'vitest';
import { ocrService, pageOfJob, submitPage } from '../../supabase/functions/_services/ocr.ts';
import { type Reply, refusedUrl, startServer } from '../support/http-server.ts';

const metadata = {
  pipeline: 'leads',
  stage: 'scrape',
  submission: 5,
  trace_id: '3f0c1c9e-5a6b-4c1d-9b0a-7d3f2e1a0b4c',
  entity_id: '1',
};
const read = {
  page: 3,
  width: 420,
  height: 595,
  text: 'The ferry',
  confidence: 0.94,
  lines: [{ text: 'The ferry', confidence: 0.94, bbox: [60, 70, 110, 82] }],
};

function submit(url: string | undefined, token?: string) {
  const { pipeline, stage, submission, trace_id: traceId, entity_id: entityId } = metadata;
  const context = {
    ...{ pipeline, stage, submission, traceId, entityId },
    env: { OCR_URL: url, OCR_AUTH_TOKEN: token },
    callbackUrl: 'https://api.test/functions/v1/millrace/callback',
    signal: AbortSignal.timeout(5_000),
  };
  return submitPage({ documentUrl: 'https://storage.test/book.pdf?token=t', page: 3 }, context, 'attempt-5');
}

describe('a page is submitted', () => {
  test('under its idempotency key and token, with what finds the attempt again', async () => {
    const server = await startServer(() => ({ status: 202, json: { job_id: 'job_9', status: 'queued' } }));
    expect(await submit(server.url, 'secret')).toBe('job_9');
    const [request] = server.received;
    expect(request).toMatchObject({ method: 'POST', path: '/jobs' });
    expect(request?.headers).toMatchObject({ 'idempotency-key': 'attempt-5', authorization: 'Bearer secret' });
    expect(JSON.parse(request?.body ?? '')).toEqual({
      document_url: 'https://storage.test/book.pdf?token=t',
      page: 3,
      callback_url: 'https://api.test/functions/v1/millrace/callback',
      metadata: { ...metadata, service: 'ocr' },
    });
  });

  test.each<[Reply, object]>([
    [{ status: 401 }, { code: 'misconfigured', permanent: false, message: expect.stringContaining('OCR_AUTH_TOKEN') }],
    [{ status: 404 }, { code: 'misconfigured', permanent: false, message: expect.stringContaining('OCR_URL') }],
    [{ status: 409 }, { code: 'idempotency_key_reused', permanent: true }],
    [
      { status: 429, headers: { 'retry-after': '30' }, json: { error: { code: 'busy', message: 'six a minute' } } },
      { code: 'rate_limited', permanent: false, retryAfterMs: 30_000, detail: 'six a minute' },
    ],
    [{ status: 503 }, { code: 'server_error', permanent: false }],
    [
      { status: 400, json: { error: { code: 'invalid_url', message: 'no' } } },
      { code: 'invalid_url', permanent: true },
    ],
    [
      { status: 202, json: {} },
      { code: 'server_error', permanent: false },
    ],
  ])('and the answer %j says whether to try again', async (reply, error) => {
    const server = await startServer(() => reply);
    await expect(submit(server.url)).rejects.toMatchObject(error);
  });

  test('again when the service cannot be reached, or its URL is not set', async () => {
    await expect(submit(await refusedUrl())).rejects.toMatchObject({ code: 'ocr_unreachable', permanent: false });
    await expect(submit(undefined)).rejects.toThrow(/OCR_URL is not set: set the base URL/);
  });
});

describe('a finished job', () => {
  test('gives what was read, without what Postgres cannot store', () => {
    const job = { job_id: 'j', status: 'completed', result: { ...read, text: 'The\u0000 ferry' } };
    expect(pageOfJob(job)).toEqual({ ...read, text: 'The\ufffd ferry' });
  });

  test('of a blank page is empty text and no failure', () => {
    const result = { ...read, text: '', confidence: 0, lines: [] };
    expect(pageOfJob({ job_id: 'j', status: 'completed', result })).toMatchObject({ text: '', lines: [] });
  });

  test('that failed throws its own error, to be tried again or not as it says', () => {
    const failed = (error: unknown) => () => pageOfJob({ job_id: 'j', status: 'failed', error });
    const locked = { code: 'encrypted_document', message: 'asks for a password', permanent: true };
    expect(failed(locked)).toThrow(expect.objectContaining(locked));
    const late = { code: 'timeout', message: 'late', permanent: false, retry_after_ms: 500 };
    expect(failed(late)).toThrow(expect.objectContaining({ code: 'timeout', permanent: false, retryAfterMs: 500 }));
    expect(failed(null)).toThrow(expect.objectContaining({ code: 'ocr_failed', permanent: false }));
  });

  test.each([
    [{ ...read, confidence: 94 }, /result\.confidence/],
    [{ ...read, lines: [{ text: 'x', confidence: 1, bbox: [1, 2] }] }, /result\.lines\.0\.bbox/],
    [undefined, /result/],
  ])('of another form is refused with the place of the fault', (result, message) => {
    expect(() => pageOfJob({ job_id: 'j', status: 'completed', result })).toThrow(message);
  });
});

describe('the end of a job', () => {
  test.each<[string, Reply, object]>([
    ['running', { json: { job_id: 'j', status: 'running' } }, { state: 'running' }],
    ['queued', { json: { job_id: 'j', status: 'queued' } }, { state: 'queued' }],
    ['unknown', { status: 404 }, { state: 'lost' }],
    ['completed', { json: { job_id: 'j', status: 'completed', result: read } }, { state: 'finished' }],
  ])('is found by polling: %s', async (_, reply, state) => {
    const server = await startServer(() => reply);
    const asked = ocrService.poll('j/1', { env: { OCR_URL: server.url }, signal: AbortSignal.timeout(5_000) });
    expect(await asked).toMatchObject(state);
    expect(server.received[0]?.path).toBe('/jobs/j%2F1');
  });
});
