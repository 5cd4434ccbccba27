import { describe, expect, test } from 'vitest';
import type { Usage } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import { callbackUrlFault } from '../../supabase/functions/_millrace/jobs/callback-url.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import {
  submitTranscription,
  transcribeNow,
  transcription,
  transcriptOfJob,
} from '../../supabase/functions/_services/transcription.ts';
import { makeContext } from '../support/context.ts';
import { transcriptionOf } from '../support/examples/transcription.ts';
import { type Reply, refusedUrl, startServer } from '../support/http-server.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const metadata = {
  pipeline: 'documents',
  stage: 'extraction',
  submission: 5,
  trace_id: '3f0c1c9e-5a6b-4c1d-9b0a-7d3f2e1a0b4c',
  entity_id: '7',
};
const audioUrl = 'https://storage.test/talk.mp3?token=t';
const request = { submissionKey: 'trace-5', signal: AbortSignal.timeout(20_000) };
const envFor = (url: string, more: Env = {}): Env => ({
  DEEPGRAM_URL: url,
  DEEPGRAM_API_KEY: 'key',
  WEBHOOK_SECRET: `${secret} whsec_${Buffer.alloc(32, 8).toString('base64')}`,
  ...more,
});
const submit = (url: string, more?: Env) => {
  const { pipeline, stage, submission, trace_id: traceId, entity_id: entityId } = metadata;
  const callbackUrl = 'https://api.test/functions/v1/millrace/callback';
  const origin = { pipeline, stage, submission, traceId, entityId, callbackUrl };
  return submitTranscription(audioUrl, makeContext(envFor(url, more), { ...request, ...origin }).context);
};
const refusal = (err_code: string, err_msg: string) => ({ err_code, err_msg, request_id: 'request-1' });

describe('a recording is submitted', () => {
  test('with the key, what is wanted of the transcript, and a signed URL that finds the attempt again', async () => {
    const server = await startServer(() => ({ json: { request_id: 'request-1' } }));
    expect(await submit(server.url)).toBe('request-1');
    const [received] = server.received;
    expect(received).toMatchObject({ method: 'POST', headers: { authorization: 'Token key' } });
    expect(received?.headers['content-type']).toBe('application/json');
    expect(JSON.parse(received?.body ?? '')).toEqual({ url: audioUrl });
    const url = new URL(received?.path ?? '', server.url);
    expect(url.pathname).toBe('/v1/listen');
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      model: 'nova-3',
      smart_format: 'true',
      paragraphs: 'true',
      detect_language: 'true',
      extra: 'idempotency_key:trace-5',
    });
    const callback = new URL(url.searchParams.get('callback') ?? '');
    expect(callback.href).toMatch(/^https:\/\/api\.test\/functions\/v1\/millrace\/callback\?/);
    expect(Object.fromEntries(callback.searchParams)).toMatchObject({
      ...metadata,
      submission: '5',
      service: 'transcription',
    });
    expect(callbackUrlFault(callback, [secret])).toBeNull();
  });

  test.each<[Reply, object]>([
    [
      { status: 401, json: refusal('INVALID_AUTH', 'Invalid credentials.') },
      { code: 'misconfigured', permanent: false, message: expect.stringContaining('DEEPGRAM_API_KEY') },
    ],
    [
      { status: 403, json: refusal('INSUFFICIENT_PERMISSIONS', 'no access to the requested model') },
      { code: 'misconfigured', permanent: false, message: expect.stringContaining('DEEPGRAM_MODEL') },
    ],
    [{ status: 404 }, { code: 'misconfigured', message: expect.stringContaining('DEEPGRAM_URL') }],
    [
      { status: 402, json: refusal('ASR_PAYMENT_REQUIRED', 'no credits') },
      { code: 'payment_required', permanent: false, message: expect.stringContaining('balance') },
    ],
    [
      {
        status: 400,
        json: refusal('Bad Request', 'Bad Request: failed to process audio: corrupt or unsupported data'),
      },
      { code: 'unreadable_audio', permanent: true, message: expect.stringContaining('corrupt or unsupported data') },
    ],
    [
      { status: 400, json: refusal('Bad Request', 'Bad Request: No such model/language/tier combination found.') },
      { code: 'misconfigured', permanent: false, message: expect.stringContaining('DEEPGRAM_MODEL') },
    ],
    [
      { status: 400, json: refusal('REMOTE_CONTENT_ERROR', 'nothing at http://kong:8000/sign/a.mp3?token=secret') },
      {
        code: 'source_unreachable',
        permanent: false,
        message: expect.not.stringContaining('token'),
        detail: expect.stringContaining('token=secret'),
      },
    ],
    [
      { status: 422, json: refusal('ASR_UNPROCESSABLE_ENTITY', 'cut off') },
      { code: 'incomplete_audio', permanent: false },
    ],
    [{ status: 413 }, { code: 'request_rejected', permanent: true }],
    [
      { status: 429, headers: { 'retry-after': '30' }, json: refusal('TOO_MANY_REQUESTS', 'later') },
      { code: 'rate_limited', permanent: false, retryAfterMs: 30_000, detail: 'TOO_MANY_REQUESTS: later' },
    ],
    [{ status: 504 }, { code: 'server_error', permanent: false }],
    [{ json: {} }, { code: 'server_error', permanent: false }],
  ])('and the answer %j says whether to try again', async (reply, error) => {
    const server = await startServer(() => reply);
    await expect(submit(server.url)).rejects.toMatchObject(error);
  });

  test('again when the service cannot be reached, or has no key', async () => {
    const url = await refusedUrl();
    await expect(submit(url)).rejects.toMatchObject({ code: 'transcription_unreachable', permanent: false });
    await expect(submit(url, { DEEPGRAM_API_KEY: '' })).rejects.toThrow(/DEEPGRAM_API_KEY is not set: set a key/);
    await expect(submit(url, { WEBHOOK_SECRET: '' })).rejects.toThrow(/WEBHOOK_SECRET is not set/);
  });
});

describe('a transcription', () => {
  const read = (job: unknown, env: Env = {}) => {
    const usages: Usage[] = [];
    const context = { env: envFor('http://d.test', env), reportUsage: (usage: Usage) => usages.push(usage) };
    return { usages, transcript: () => transcriptOfJob(job, context) };
  };

  test('gives its paragraphs with their times, its length and language, without what Postgres cannot store', () => {
    const { transcript } = read(transcriptionOf(['The ferry\u0000 leaves at seven.', 'It is on time.']));
    expect(transcript()).toEqual({
      text: 'The ferry\ufffd leaves at seven.\n\nIt is on time.',
      paragraphs: [
        { text: 'The ferry\ufffd leaves at seven.', startSeconds: 0, endSeconds: 2 },
        { text: 'It is on time.', startSeconds: 2, endSeconds: 4 },
      ],
      durationSeconds: 4,
      language: 'en',
    });
  });

  test('without paragraphs, as of a language without spaces, is one', () => {
    const alternatives = [{ transcript: '船は七時に出ます。', confidence: 0.9, words: [] }];
    const { transcript } = read(transcriptionOf(['', ''], { channel: { alternatives, detected_language: undefined } }));
    expect(transcript()).toEqual({
      text: '船は七時に出ます。',
      paragraphs: [{ text: '船は七時に出ます。', startSeconds: 0, endSeconds: 4 }],
      durationSeconds: 4,
      language: null,
    });
  });

  test('costs by the minute, where the price is known', () => {
    const job = transcriptionOf(['One.'], { metadata: { duration: 90 } });
    const usage = { model: 'general-nova-3', input_tokens: null, output_tokens: null, audio_seconds: 90 };
    const priced = read(job, { DEEPGRAM_PRICE_MINUTE: '0.004' });
    priced.transcript();
    expect(priced.usages).toEqual([{ ...usage, cost_usd: 0.006 }]);
    const unpriced = read(job);
    unpriced.transcript();
    expect(unpriced.usages).toEqual([{ ...usage, cost_usd: null }]);
  });

  test.each([
    transcriptionOf([]),
    transcriptionOf(['']),
    transcriptionOf(['  ', '']),
    { ...transcriptionOf([]), results: { channels: [] } },
  ])('of silence is no text, which nothing can change, and is paid for', (job) => {
    const { transcript, usages } = read(job);
    expect(transcript).toThrow(expect.objectContaining({ code: 'no_speech', permanent: true }));
    expect(usages).toHaveLength(1);
  });

  test('of silence says what the service itself warns of', () => {
    const { transcript } = read(
      transcriptionOf([], { metadata: { warnings: [{ message: 'The left ear is deaf.' }] } }),
    );
    expect(transcript).toThrow(/No speech was found in 0 seconds of sound\. The left ear is deaf\./);
  });

  test.each([
    [{}, /wrong at metadata/],
    ['text', /wrong at the top/],
    [{ ...transcriptionOf(['x']), results: { channels: 'x' } }, /wrong at results\.channels/],
    [transcriptionOf(['x'], { metadata: { duration: 'long' } }), /wrong at metadata\.duration/],
    [transcriptionOf(['x'], { channel: { alternatives: [{}] } }), /alternatives\.0\.transcript/],
  ])('of another form is refused with the place of the fault: %j', (job, message) => {
    const { transcript } = read(job);
    expect(transcript).toThrow(expect.objectContaining({ code: 'invalid_output', permanent: true }));
    expect(transcript).toThrow(message);
  });

  test('that failed in the end throws why', () => {
    const { transcript } = read(refusal('Bad Request', 'failed to process audio'));
    expect(transcript).toThrow(expect.objectContaining({ code: 'unreadable_audio', permanent: true }));
  });
});

describe('a recording that is waited for', () => {
  test('is submitted without a callback, and its transcription is read', async () => {
    const server = await startServer(() => ({ json: transcriptionOf(['The ferry leaves at seven.']) }));
    const usages: Usage[] = [];
    const reportUsage = (usage: Usage) => usages.push(usage);
    const transcript = await transcribeNow(audioUrl, { ...request, env: envFor(server.url), reportUsage });
    expect(transcript.text).toBe('The ferry leaves at seven.');
    expect(usages).toHaveLength(1);
    expect(server.received[0]?.path).not.toContain('callback');
  });

  test('is given up with the stage', async () => {
    const server = await startServer(() => null);
    const controller = new AbortController();
    const asked = transcribeNow(audioUrl, {
      ...request,
      signal: controller.signal,
      env: envFor(server.url),
      reportUsage: () => {},
    });
    controller.abort(new Error('the stage is over'));
    await expect(asked).rejects.toThrow('the stage is over');
  });
});

test('nobody can ask after a transcription', () => {
  expect(transcription).not.toHaveProperty('poll');
});
