import { Hono } from 'hono';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { listen, type Service } from '../../local/services/http/listen.ts';
import { startModel } from '../../local/services/model/server.ts';
import { until } from '../support/until.ts';
import { post } from './running.ts';

const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`;
const events: { body: string; headers: Record<string, string> }[] = [];
let answerStatuses: number[] = [];
const env: Record<string, string | undefined> = { LLM_AUTH_TOKEN: 'key', WEBHOOK_SECRET: secret };
let receiver: Service;
let model: Service;
let client: OpenAI;

beforeAll(async () => {
  const app = new Hono().post('/events', async (c) => {
    events.push({ body: await c.req.text(), headers: c.req.header() });
    return c.body(null, (answerStatuses.shift() ?? 204) as 204);
  });
  receiver = await listen(app.fetch);
  model = await startModel({ env, delayMs: 30, callbackDelaysMs: [10, 20] });
  client = clientOf(model);
});
afterAll(async () => {
  await Promise.all([receiver.stop(), model.stop()]);
});
beforeEach(() => {
  events.length = 0;
  answerStatuses = [];
  env.LLM_CALLBACK_URL = undefined;
});

function clientOf(service: Service, apiKey = 'key'): OpenAI {
  return new OpenAI({ baseURL: `${service.url}/v1`, apiKey, maxRetries: 0, webhookSecret: secret });
}

const ferry = `<page>
# Island ferry
The ferry to the lighthouse island leaves at nine and carries forty passengers.
Tickets cost 12 for adults and are sold on the pier.
Dogs travel free on the upper deck.
</page>`;
const ferryFacts = z.object({
  prices: z.string().max(200).describe('What tickets cost'),
  dogs: z.string().describe('Rule for dogs'),
  adult_ticket: z.number().describe('What tickets cost for adults'),
});
const ferryAnswer = {
  prices: 'Tickets cost 12 for adults and are sold on the pier.',
  dogs: 'Dogs travel free on the upper deck.',
  adult_ticket: 12,
};

describe('responses', () => {
  test('a schema is filled from the material and not from the instructions', async () => {
    const response = await client.responses.parse({
      model: 'any',
      instructions: 'Say what tickets cost and the rule for dogs. Dogs are the most important.',
      input: ferry,
      text: { format: zodTextFormat(ferryFacts, 'ferry_facts') },
      metadata: { ref: '7' },
    });
    expect(response.output_parsed).toEqual(ferryAnswer);
    expect(response).toMatchObject({ object: 'response', status: 'completed', model: 'any', metadata: { ref: '7' } });
    expect(response.output_text).toBe(JSON.stringify(ferryAnswer));
    const { input_tokens = 0, output_tokens = 0, total_tokens } = response.usage ?? {};
    expect(input_tokens).toBeGreaterThan(50);
    expect(output_tokens).toBeGreaterThan(20);
    expect(total_tokens).toBe(input_tokens + output_tokens);
  });

  test('of a list of choices those are picked that the material mentions, and one at least', async () => {
    const choose = async (values: [string, ...string[]]) => {
      const schema = z.object({ subjects: z.array(z.enum(values)).max(5) });
      const text = { format: zodTextFormat(schema, 'subjects') };
      return (await client.responses.parse({ model: 'any', input: ferry, text })).output_parsed?.subjects;
    };
    expect(await choose(['trains', 'dogs', 'tickets', 'weather'])).toEqual(['dogs', 'tickets']);
    expect(await choose(['trains', 'weather'])).toEqual(['trains']);
  });

  test('a draft that has the form of the answer is handed back, and no other', async () => {
    const draft = { ...ferryAnswer, dogs: 'Dogs are not let on board.' };
    const ask = async (given: object) => {
      const input = `<draft>\n${JSON.stringify(given)}\n</draft>\n\n${ferry}`;
      const text = { format: zodTextFormat(ferryFacts, 'ferry_facts') };
      return (await client.responses.parse({ model: 'any', instructions: 'Correct the draft.', input, text }))
        .output_parsed;
    };
    expect(await ask(draft)).toEqual(draft);
    expect(await ask({ ...draft, adult_ticket: 'twelve' })).toMatchObject({ adult_ticket: 12 });
    expect(await ask({ ...draft, boats: 2 })).not.toHaveProperty('boats');
  });

  test('the same prompt gets the same answer', async () => {
    const ask = async () => (await client.responses.create({ model: 'any', input: ferry })).output_text;
    expect(await ask()).toBe(await ask());
  });

  test('without a schema the answer is text from the material', async () => {
    const input = [{ role: 'user' as const, content: `May dogs travel?\n\n${ferry}` }];
    const response = await client.responses.create({ model: 'any', input });
    expect(response.output_text).toContain('Dogs travel free on the upper deck.');
  });

  test('a response can be fetched again, unless it was not to be stored', async () => {
    const kept = await client.responses.create({ model: 'any', input: ferry });
    expect((await client.responses.retrieve(kept.id)).output_text).toBe(kept.output_text);
    const gone = await client.responses.create({ model: 'any', input: ferry, store: false });
    await expect(client.responses.retrieve(gone.id)).rejects.toMatchObject({ status: 404 });
  });

  test('a response can go on from an earlier one', async () => {
    const first = await client.responses.create({ model: 'any', input: ferry });
    const next = await client.responses.create({ model: 'any', input: 'Dogs?', previous_response_id: first.id });
    expect(next.output_text).toContain('Dogs travel free');
  });

  test('an answer longer than max_output_tokens is cut and marked incomplete', async () => {
    const response = await client.responses.create({ model: 'any', input: ferry, max_output_tokens: 16 });
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    expect(response.output_text.length).toBeLessThanOrEqual(64);
  });
});

describe('chat completions', () => {
  test('a schema is filled', async () => {
    const completion = await client.chat.completions.parse({
      model: 'any',
      messages: [
        { role: 'system', content: 'Read the page.' },
        { role: 'user', content: ferry },
      ],
      response_format: zodResponseFormat(ferryFacts, 'ferry_facts'),
    });
    expect(completion.choices[0]?.message.parsed).toEqual(ferryAnswer);
    expect(completion.choices[0]?.finish_reason).toBe('stop');
    expect(completion.usage?.prompt_tokens).toBeGreaterThan(50);
  });
});

describe('background responses', () => {
  const question = { model: 'any', input: ferry, background: true, metadata: { ref: '8' } };

  test('are queued, then completed, and keep their metadata', async () => {
    const queued = await client.responses.create(question);
    expect(queued).toMatchObject({ status: 'queued', output: [], metadata: { ref: '8' } });
    const done = await until(async () => {
      const now = await client.responses.retrieve(queued.id);
      return now.status === 'completed' ? now : undefined;
    }, 20_000);
    expect(done.output_text).not.toBe('');
    expect(done.metadata).toEqual({ ref: '8' });
  });

  test('are announced by an event that the official SDK verifies; its URL may be set late', async () => {
    const queued = await client.responses.create(question);
    env.LLM_CALLBACK_URL = `${receiver.url}/events`;
    const { body, headers } = await until(() => events[0], 20_000);
    const event = await client.webhooks.unwrap(body, headers);
    expect(event).toMatchObject({ object: 'event', type: 'response.completed', data: { id: queued.id } });
    expect(event.id).toBe(headers['webhook-id']);
    await expect(client.webhooks.unwrap(body.replace('completed', 'failed'), headers)).rejects.toThrow();
  });

  test('are announced again under the same id when the receiver refuses', async () => {
    env.LLM_CALLBACK_URL = `${receiver.url}/events`;
    answerStatuses = [503, 500];
    await client.responses.create(question);
    await until(() => events[2], 20_000);
    expect(new Set(events.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  test('are made once for one idempotency key', async () => {
    const options = { headers: { 'Idempotency-Key': 'k1' } };
    const first = await client.responses.create(question, options);
    const second = await client.responses.create(question, options);
    const other = await client.responses.create(question, { headers: { 'Idempotency-Key': 'k2' } });
    expect(second.id).toBe(first.id);
    expect(other.id).not.toBe(first.id);
  });

  test('are refused for a key that came with another request', async () => {
    const options = { headers: { 'Idempotency-Key': 'k3' } };
    await client.responses.create(question, options);
    const other = client.responses.create({ ...question, metadata: { ref: '9' } }, options);
    await expect(other).rejects.toMatchObject({ status: 409, code: 'idempotency_key_reused' });
  });

  test('can be cancelled while they run, and then stay cancelled', async () => {
    const slow = await startModel({ env: { ...env, LLM_CALLBACK_URL: `${receiver.url}/events` }, delayMs: 60_000 });
    const ai = clientOf(slow);
    const queued = await ai.responses.create(question);
    expect((await ai.responses.cancel(queued.id)).status).toBe('cancelled');
    expect((await ai.responses.cancel(queued.id)).status).toBe('cancelled');
    const { body } = await until(() => events[0], 20_000);
    expect(JSON.parse(body).type).toBe('response.cancelled');
    await slow.stop();
    const finished = await client.responses.create({ model: 'any', input: ferry });
    await expect(client.responses.cancel(finished.id)).rejects.toMatchObject({ status: 400 });
  });
});

describe('refusals', () => {
  test('a wrong key gets 401', async () => {
    await expect(clientOf(model, 'wrong').models.list()).rejects.toMatchObject({
      status: 401,
      code: 'invalid_api_key',
    });
    expect((await client.models.list()).data).toHaveLength(1);
  });

  test.each([
    ['no model', { input: 'x' }, 'model', 'missing'],
    ['no input', { model: 'any' }, 'input', 'missing'],
    ['an input that is a number', { model: 'any', input: 5 }, 'input', 'the number 5'],
    ['streaming', { model: 'any', input: 'x', stream: true }, 'stream', 'not offered'],
    [
      'another kind of tool',
      { model: 'any', input: 'x', tools: [{ type: 'web_search' }] },
      'tools[0].type',
      'function',
    ],
    ['background without store', { model: 'any', input: 'x', background: true, store: false }, 'store', 'background'],
    [
      'a choice of no tool',
      { model: 'any', input: 'x', tool_choice: { type: 'function', name: 'f' } },
      'tool_choice',
      'f',
    ],
  ])('%s is refused in the shape of OpenAI, with the field and what it is', async (_what, body, param, part) => {
    const { status, json } = await post(`${model.url}/v1/responses`, body, { authorization: 'Bearer key' });
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ type: 'invalid_request_error', param });
    expect(json.error.message).toContain(part);
  });

  test('a strict schema with optional or open objects is refused, as the real API does', async () => {
    const ask = (schema: Record<string, unknown>) =>
      client.responses.create({
        model: 'any',
        input: 'x',
        text: { format: { type: 'json_schema', name: 'n', schema, strict: true } },
      });
    const inner = { type: 'object', properties: { b: { type: 'string' } }, required: [], additionalProperties: false };
    const open = { type: 'object', properties: {}, required: [] };
    const optional = { ...open, properties: { a: inner }, required: ['a'], additionalProperties: false };
    await expect(ask(open)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('additionalProperties'),
    });
    await expect(ask(optional)).rejects.toMatchObject({
      status: 400,
      message: expect.stringMatching(/ a: .*"b" is missing/),
    });
  });
});
