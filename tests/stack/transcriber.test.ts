import { Hono } from 'hono';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { listen, type Service } from '../../local/services/http/listen.ts';
import { startTranscriber } from '../../local/services/transcriber/server.ts';
import { transcriptOfJob } from '../../supabase/functions/_services/transcription.ts';
import { mp3Of, wavOf } from '../support/examples/recordings.ts';
import { until } from '../support/until.ts';
import { post } from './running.ts';

const spoken = 'The ferry leaves at seven. Is it on time? “Yes.”\n\nIt is — Möwe is her name…\nAnd she is late!';
const auth = { authorization: 'Token the-key' };
const files = new Map<string, Buffer>([
  ['talk.wav', wavOf(3, spoken)],
  ['old.wav', wavOf(1, 'Die Möwe fährt.', 'latin1')],
  ['song.mp3', mp3Of(2, 'La la la.', 'Recorded on a Monday.')],
  ['silent.wav', wavOf(2)],
  ['empty.wav', wavOf(0, spoken)],
  ['cut.wav', wavOf(3, spoken).subarray(0, 60)],
  ['nothing.wav', Buffer.alloc(0)],
  ['page.wav', Buffer.from('<!doctype html><p>The ferry leaves at seven.</p>')],
  ['large.wav', wavOf(80)],
]);
const received: { url: string; body: string; headers: Record<string, string> }[] = [];
let answerStatuses: number[] = [];
let host: Service;
let transcriber: Service;

beforeAll(async () => {
  const app = new Hono();
  app.post('/callback', async (c) => {
    received.push({ url: c.req.url, body: await c.req.text(), headers: c.req.header() });
    return c.body(null, (answerStatuses.shift() ?? 200) as 200);
  });
  app.get('/:name', (c) => {
    const file = files.get(c.req.param('name'));
    return file ? c.body(new Uint8Array(file)) : c.notFound();
  });
  host = await listen(app.fetch);
  transcriber = await startTranscriber({
    env: { DEEPGRAM_API_KEY: 'the-key', DEEPGRAM_ALLOW_HOSTS: new URL(host.url).host },
    maxBytes: 1024 * 1024,
    callbackDelaysMs: [10, 20],
  });
});
afterAll(async () => {
  await Promise.all([host.stop(), transcriber.stop()]);
});
afterEach(() => {
  received.length = 0;
  answerStatuses = [];
});

const everything = 'smart_format=true&paragraphs=true&detect_language=true';
const hear = (file: string, query = everything) =>
  post(`${transcriber.url}/v1/listen?${query}`, { url: `${host.url}/${file}` }, auth);
const read = (job: unknown) => transcriptOfJob(job, { env: { DEEPGRAM_API_KEY: 'k' }, reportUsage: () => {} });

describe('a file is transcribed by what its own metadata says', () => {
  test('in its paragraphs, with times over its whole length', async () => {
    const { status, json } = await hear('talk.wav');
    expect(status).toBe(200);
    expect(read(json)).toEqual({
      text: 'The ferry leaves at seven. Is it on time? “Yes.”\n\nIt is — Möwe is her name… And she is late!',
      paragraphs: [
        { text: 'The ferry leaves at seven. Is it on time? “Yes.”', startSeconds: 0, endSeconds: 1.429 },
        { text: 'It is — Möwe is her name… And she is late!', startSeconds: 1.429, endSeconds: 3 },
      ],
      durationSeconds: 3,
      language: null,
    });
    const [alternative] = json.results.channels[0].alternatives;
    const [first, second] = alternative.paragraphs.paragraphs;
    expect(first.sentences.map(({ text }: { text: string }) => text)).toEqual([
      'The ferry leaves at seven.',
      'Is it on time?',
      '“Yes.”',
    ]);
    expect(first).toMatchObject({ num_words: 10, start: 0, end: second.start });
    expect(second.end).toBe(3);
    expect(alternative.words[0]).toMatchObject({ word: 'the', punctuated_word: 'The', start: 0, confidence: 1 });
    expect(alternative.words[9]).toMatchObject({ word: 'yes', punctuated_word: '“Yes.”', end: second.start });
    expect(json.metadata).not.toHaveProperty('warnings');
  });

  test('without what was not asked for', async () => {
    const { json } = await hear('talk.wav', 'model=nova-3');
    const [alternative] = json.results.channels[0].alternatives;
    expect(alternative.transcript).toMatch(/^the ferry leaves at seven is it on time yes it is/);
    expect(alternative).not.toHaveProperty('paragraphs');
    expect(alternative.words[0]).not.toHaveProperty('punctuated_word');
    expect(json.metadata).not.toHaveProperty('extra');
  });

  test('written in an old code', async () => {
    expect(read((await hear('old.wav')).json).text).toBe('Die Möwe fährt.');
  });

  test('by its lyrics rather than its comment, with its language', async () => {
    const { json } = await hear('song.mp3');
    expect(read(json)).toMatchObject({ text: 'La la la.', language: 'en', durationSeconds: expect.closeTo(2, 1) });
    expect((await hear('song.mp3', 'model=nova-3')).json.results.channels[0]).not.toHaveProperty('detected_language');
  });

  test('sent as the body of the request itself', async () => {
    const body = new Uint8Array(wavOf(1, 'Hello.'));
    const headers = { ...auth, 'content-type': 'audio/wav' };
    const answer = await fetch(`${transcriber.url}/v1/listen?${everything}`, { method: 'POST', headers, body });
    expect(read(await answer.json()).text).toBe('Hello.');
  });
});

test('a file without a transcript is silence, which says what this is and how to get the real service', async () => {
  const { status, json } = await hear('silent.wav');
  expect(status).toBe(200);
  expect(json.metadata.duration).toBe(2);
  expect(() => read(json)).toThrow(expect.objectContaining({ code: 'no_speech', permanent: true }));
  expect(() => read(json)).toThrow(/local stand-in cannot hear.*DEEPGRAM_URL=.*DEEPGRAM_API_KEY/);
});

describe('a request is refused in the form of the API', () => {
  test.each([
    ['empty.wav', 'Bad Request', /corrupt or unsupported/],
    ['cut.wav', 'Bad Request', /corrupt or unsupported/],
    ['nothing.wav', 'Bad Request', /corrupt or unsupported/],
    ['page.wav', 'Bad Request', /corrupt or unsupported/],
    ['missing.wav', 'REMOTE_CONTENT_ERROR', /status 404/],
    ['large.wav', 'REMOTE_CONTENT_ERROR', /larger than the limit of 1048576 bytes/],
  ])('for %s: %s', async (file, code, message) => {
    const { status, json } = await hear(file);
    expect(status).toBe(400);
    expect(json).toEqual({ err_code: code, err_msg: expect.stringMatching(message), request_id: expect.any(String) });
  });

  test('for a file on a private address, unless its host is allowed', async () => {
    const { status, json } = await post(`${transcriber.url}/v1/listen`, { url: `${transcriber.url}/a.wav` }, auth);
    expect(status).toBe(400);
    expect(json.err_msg).toContain('DEEPGRAM_ALLOW_HOSTS');
  });

  test('without the signature of the URL, which is a secret', async () => {
    expect((await hear('missing.wav?token=very-secret')).json.err_msg).not.toContain('very-secret');
  });

  test.each([
    ['without a key', {}],
    ['with another key', { authorization: 'Token other' }],
    ['with the key as another kind of token', { authorization: 'Bearer the-key' }],
  ])('%s: 401', async (_, headers) => {
    const { status, json } = await post(`${transcriber.url}/v1/listen`, { url: `${host.url}/talk.wav` }, headers);
    expect(status).toBe(401);
    expect(json.err_code).toBe('INVALID_AUTH');
  });

  test.each(['callback=ftp://a.test/', 'callback=here', 'extra=alone', 'extra=:x'])('for %s', async (query) => {
    expect(await hear('talk.wav', query)).toMatchObject({ status: 400, json: { err_code: 'Bad Request' } });
  });

  test('for a body that is too large', async () => {
    // A connection of its own: it closes the connection, on which the next request might be under way.
    const small = await startTranscriber({ env: {}, maxBytes: 1000 });
    const headers = { 'content-type': 'audio/wav' };
    const body = new Uint8Array(wavOf(1));
    const answer = await fetch(`${small.url}/v1/listen`, { method: 'POST', headers, body });
    expect(answer.status).toBe(413);
    await small.stop();
  });

  test('on any other path', async () => {
    expect((await post(`${transcriber.url}/v1/speak`, {}, auth)).status).toBe(404);
  });
});

describe('with a callback', () => {
  const callback = () => `&callback=${encodeURIComponent(`${host.url}/callback?entity_id=7&signature=a-b_c`)}`;

  test('the request is answered with its id, and the transcription goes to the URL as it was given', async () => {
    const { status, json } = await hear('talk.wav', `${everything}${callback()}&extra=idempotency_key:trace-5`);
    expect(status).toBe(200);
    expect(json).toEqual({ request_id: expect.any(String) });
    const { url, body, headers } = await until(() => received[0], 20_000);
    expect(url).toBe(`${host.url}/callback?entity_id=7&signature=a-b_c`);
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'dg-token': expect.stringMatching(/./) });
    expect(headers['dg-token']).not.toContain('the-key');
    const transcription = JSON.parse(body);
    expect(transcription.metadata).toMatchObject({
      request_id: json.request_id,
      extra: { idempotency_key: 'trace-5' },
    });
    expect(read(transcription).text).toContain('The ferry leaves at seven.');
  });

  test('a file that is no sound is refused at once', async () => {
    expect((await hear('page.wav', callback())).status).toBe(400);
    expect(received).toEqual([]);
  });

  test('a callback is sent again until it is taken', async () => {
    answerStatuses = [503, 500, 200];
    await hear('talk.wav', `${everything}${callback()}`);
    await until(() => received[2], 20_000);
    expect(new Set(received.map(({ body }) => body)).size).toBe(1);
  });
});
