import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Service } from '../../local/services/http/listen.ts';
import { startModel } from '../../local/services/model/server.ts';
import { post } from './running.ts';

let model: Service;
let client: OpenAI;

beforeAll(async () => {
  model = await startModel({ env: { LLM_AUTH_TOKEN: 'key' } });
  client = new OpenAI({ baseURL: `${model.url}/v1`, apiKey: 'key', maxRetries: 0 });
});
afterAll(() => model.stop());

const canal = 'Canal locks, lock gates and the boats that pass through them';
const gates = 'The old lock gates were replaced, and boats pass the canal again after a year.';
const bakery = 'A bakery bought a second oven and bakes rye bread at night.';

async function vectorsOf(input: string[], options: Partial<OpenAI.EmbeddingCreateParams> = {}) {
  const { data } = await client.embeddings.create({ model: 'any', input, ...options });
  expect(data.map(({ index }) => index)).toEqual(input.map((_, index) => index));
  return data.map(({ embedding }) => embedding);
}
const dot = (one: number[] = [], other: number[] = []) =>
  one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0);
const headers = { authorization: 'Bearer key' };

describe('embeddings', () => {
  test('are nearer for texts that share words than for others, and of length 1', async () => {
    const [topic, near, far] = await vectorsOf([canal, gates, bakery]);
    expect(dot(topic, topic)).toBeCloseTo(1, 5);
    expect(dot(topic, near)).toBeGreaterThan(0.3);
    expect(dot(topic, far)).toBeLessThan(0.15);
  });

  test('are the same for the same text, for whoever asks and however they are sent', async () => {
    const [asBase64] = await vectorsOf([gates]);
    const [asFloats] = await vectorsOf([gates], { encoding_format: 'float' });
    expect(asBase64).toHaveLength(3072);
    asFloats?.forEach((value, at) => {
      expect(asBase64?.[at]).toBeCloseTo(value, 6);
    });
  });

  test('are as long as is asked for', async () => {
    const [vector] = await vectorsOf([gates], { dimensions: 64 });
    expect(vector).toHaveLength(64);
    expect(dot(vector, vector)).toBeCloseTo(1, 5);
  });

  test('of a text without words are a vector all the same', async () => {
    const [dashes, dots] = await vectorsOf(['---', '…']);
    expect(dot(dashes, dashes)).toBeCloseTo(1, 5);
    expect(dot(dashes, dots)).toBeLessThan(0.9);
  });

  test('count the tokens of all texts', async () => {
    const { usage, object, model: named } = await client.embeddings.create({ model: 'small', input: [canal, gates] });
    expect({ object, named }).toEqual({ object: 'list', named: 'small' });
    expect(usage.prompt_tokens).toBe(Math.ceil(canal.length / 4) + Math.ceil(gates.length / 4));
    expect(usage.total_tokens).toBe(usage.prompt_tokens);
  });

  test.each([
    ['an empty text', { input: '' }, 'input'],
    ['no text', { input: [] }, 'input'],
    ['tokens', { input: [1, 2, 3] }, 'input'],
    ['another code', { input: 'a', encoding_format: 'int8' }, 'encoding_format'],
    ['no length', { input: 'a', dimensions: 0 }, 'dimensions'],
    ['no model', { input: 'a', model: undefined }, 'model'],
  ])('are refused for %s, naming the field', async (_, body, param) => {
    const { status, json } = await post(`${model.url}/v1/embeddings`, { model: 'any', ...body }, headers);
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ param, type: 'invalid_request_error' });
    expect(json.error.message).toContain(`'${param}' is`);
  });

  test('are given to nobody without the key', async () => {
    expect((await post(`${model.url}/v1/embeddings`, { model: 'any', input: 'a' })).status).toBe(401);
  });
});
