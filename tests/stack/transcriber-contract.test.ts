import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { wavOf } from '../support/examples/recordings.ts';
import { startTranscriberTarget, type TranscriberTarget } from './transcriber-target.ts';

let target: TranscriberTarget;
beforeAll(async () => {
  target = await startTranscriberTarget();
});
afterAll(() => target.stop());

async function listenTo(body: Buffer | string, type: string, query = '', key = target.key) {
  const headers = { authorization: `Token ${key}`, 'content-type': type };
  const response = await fetch(`${target.url}/v1/listen?model=nova-3${query}`, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : new Uint8Array(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: each test states what it expects of the answer.
  return { status: response.status, json: (await response.json()) as any };
}
const refusal = { err_code: expect.any(String), err_msg: expect.any(String), request_id: expect.any(String) };

test('silence is a transcription without words', async () => {
  const wav = wavOf(2);
  const { status, json } = await listenTo(wav, 'audio/wav', '&smart_format=true&extra=ref:a:b');
  expect(status).toBe(200);
  expect(json.metadata).toMatchObject({
    request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    sha256: createHash('sha256').update(wav).digest('hex'),
    created: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    duration: expect.closeTo(2, 1),
    channels: 1,
    models: [expect.any(String)],
    extra: { ref: 'a:b' },
  });
  const info = { name: expect.any(String), version: expect.any(String), arch: expect.any(String) };
  expect(json.metadata.model_info).toMatchObject({ [json.metadata.models[0]]: info });
  expect(json.results.channels).toHaveLength(1);
  expect(json.results.channels[0].alternatives[0]).toMatchObject({
    transcript: '',
    confidence: expect.any(Number),
    words: [],
  });
});

test('another key is refused with 401', async () => {
  const { status, json } = await listenTo(wavOf(1), 'audio/wav', '', 'no-key');
  expect(status).toBe(401);
  expect(json).toMatchObject({ ...refusal, err_code: 'INVALID_AUTH' });
});

test.each([
  ['what is no sound', 'This is no sound.', 'audio/wav'],
  ['sound called JSON', wavOf(1), 'application/json'],
  ['JSON without a URL', '{"uri": "https://example.com/a.wav"}', 'application/json'],
])('%s is refused with 400 and the reason', async (_, body, type) => {
  const { status, json } = await listenTo(body, type);
  expect(status).toBe(400);
  expect(json).toMatchObject(refusal);
});
