import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { askService } from '../../supabase/functions/_shared/external-services.ts';
import { OCR_SERVICE, pageOfJob, submitPage } from '../../supabase/functions/_shared/ocr-client.ts';
import { answerCallback } from '../../supabase/functions/job-complete/handler.ts';
import { type Reply, refusedUrl, startServer } from './support/http-server.ts';
import { jobEngine } from './support/job-engine.ts';
import { samples } from './support/leads-samples.ts';

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
  return submitPage({
    env: { OCR_URL: url, OCR_AUTH_TOKEN: token },
    documentUrl: 'https://storage.test/book.pdf?token=t',
    page: 3,
    callbackUrl: 'https://api.test/job-complete',
    idempotencyKey: 'attempt-5',
    metadata,
    signal: AbortSignal.timeout(5_000),
  });
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
      callback_url: 'https://api.test/job-complete',
      metadata: { ...metadata, service: 'ocr' },
    });
  });

  test.each<[Reply, object]>([
    [{ status: 401 }, { code: 'misconfigured', permanent: false, message: expect.stringContaining('OCR_AUTH_TOKEN') }],
    [{ status: 404 }, { code: 'misconfigured', permanent: false, message: expect.stringContaining('OCR_URL') }],
    [{ status: 409 }, { code: 'idempotency_key_reused', permanent: true }],
    [
      { status: 429, headers: { 'retry-after': '30' } },
      { code: 'rate_limited', permanent: false, retryAfterMs: 30_000 },
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
    ['running', { json: { job_id: 'j', status: 'running' } }, { state: 'unfinished' }],
    ['unknown', { status: 404 }, { state: 'lost' }],
    ['completed', { json: { job_id: 'j', status: 'completed', result: read } }, { state: 'finished' }],
  ])('is found by polling: %s', async (_, reply, state) => {
    const server = await startServer(() => reply);
    const asked = askService(OCR_SERVICE, 'j/1', { OCR_URL: server.url }, AbortSignal.timeout(5_000));
    expect(await asked).toMatchObject(state);
    expect(server.received[0]?.path).toBe('/jobs/j%2F1');
  });

  test('is recorded for the service that its callback names', async () => {
    const { rpc, resumed } = jobEngine();
    const data = {
      job_id: 'job_9',
      status: 'completed',
      result: samples.scrape,
      metadata: { ...metadata, service: 'ocr' },
    };
    expect((await callBack({ type: 'job.completed', data }, rpc)).status).toBe(200);
    expect(resumed[0]?.[0]).toMatchObject({ ...metadata, service: 'ocr', job_id: 'job_9', outcome: 'completed' });
  });

  test('is refused for a service nobody knows', async () => {
    const { rpc } = jobEngine();
    const data = { job_id: 'job_9', status: 'completed', metadata: { ...metadata, service: 'ocrr' } };
    const answer = await callBack({ type: 'job.completed', data }, rpc);
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain('metadata.service');
  });
});

function callBack(payload: unknown, rpc: ReturnType<typeof jobEngine>['rpc']): Promise<Response> {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const body = JSON.stringify(payload);
  const now = new Date();
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('msg_1', now, body),
  };
  const env = { SUPABASE_URL: 'http://127.0.0.1:9', SUPABASE_SERVICE_ROLE_KEY: 'k', WEBHOOK_SECRET: secret };
  const answer = answerCallback(
    env,
    () => {},
    () => rpc,
  );
  return answer(new Request('http://api.test/functions/v1/job-complete', { method: 'POST', headers, body }));
}
