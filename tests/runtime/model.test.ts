import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkStrict } from '../../local/services/model/answer-schema.ts';
import { defineTool } from '../../supabase/functions/_millrace/agents/agent-tools.ts';
import { classify } from '../../supabase/functions/_millrace/errors.ts';
import { embedTexts } from '../../supabase/functions/_millrace/model/embeddings.ts';
import { askModel, finishAnswer, model } from '../../supabase/functions/_millrace/model/model.ts';
import { promptVersion } from '../../supabase/functions/_millrace/model/prompt.ts';
import { waiting } from '../../supabase/functions/_millrace/stage/stage.ts';
import { makeContext } from '../support/context.ts';
import { refusedUrl, startServer } from '../support/http-server.ts';
import { modelResponse, startModelServer } from '../support/runtime/model-server.ts';

const schema = z.object({ answer: z.string().max(20) });
const prompt = { label: 'test-1', instructions: 'Answer briefly.' };
const question = { name: 'short_answer', schema, prompt, input: 'What is it?' };
const signal = new AbortController().signal;

async function failureOf(promise: Promise<unknown>) {
  return classify(
    await promise.then(
      () => expect.fail('no error was thrown'),
      (error: unknown) => error,
    ),
  );
}

describe('what a provider gives no tokens for is marked, since its cost is unknown and not nothing', () => {
  const prices = { LLM_PRICE_INPUT: '2', LLM_PRICE_OUTPUT: '10' };

  test.each([
    [null, null, null],
    [undefined, null, null],
    [{}, null, null],
    [{ input_tokens: 5, output_tokens: null }, 5, null],
    [{ input_tokens: '5', output_tokens: 7 }, null, 7],
  ])('an answer whose usage is %j', async (usage, input_tokens, output_tokens) => {
    const server = await startModelServer(() => ({ json: modelResponse({ answer: 'a clock' }, { usage }) }));
    const { context, usages } = makeContext({ ...server.env, ...prices });
    expect(await askModel(question, context)).toEqual({ answer: 'a clock' });
    expect(usages).toMatchObject([{ input_tokens, output_tokens, cost_usd: null, unreported: true }]);
  });

  test.each([undefined, { prompt_tokens: 9 }])('embeddings whose usage is %j', async (usage) => {
    const embedding = Buffer.from(new Float32Array([1, 0]).buffer).toString('base64');
    const json = { object: 'list', model: 'e', data: [{ object: 'embedding', index: 0, embedding }], usage };
    const server = await startModelServer(() => ({ json }));
    const { context, usages } = makeContext({ ...server.env, LLM_EMBEDDING_MODEL: 'e', LLM_PRICE_EMBEDDING: '1' });
    expect(await embedTexts(['clocks'], context)).toHaveLength(1);
    expect(usages[0]?.call).toBe('embeddings');
    const told = { input_tokens: 9, cost_usd: 0.000009 };
    expect(usages[0]).toMatchObject(usage ? told : { input_tokens: null, cost_usd: null, unreported: true });
    expect(usages[0]).not.toMatchObject(usage ? { unreported: true } : told);
  });
});

test('vectors of another length than is asked for are a fault of the settings, and what they cost is told', async () => {
  const embedding = Buffer.from(new Float32Array([1, 0]).buffer).toString('base64');
  const json = { model: 'e', data: [{ index: 0, embedding }], usage: { prompt_tokens: 9 } };
  const server = await startModelServer(() => ({ json }));
  const { context, usages } = makeContext({ ...server.env, LLM_EMBEDDING_MODEL: 'e' });
  expect(await failureOf(embedTexts(['clocks'], context, { dimensions: 3 }))).toMatchObject({
    code: 'misconfigured',
    message: 'The embedding model makes vectors of 2 numbers, and not of 3: set LLM_EMBEDDING_MODEL to one that can.',
  });
  expect(usages).toMatchObject([{ input_tokens: 9 }]);
});

describe('answered in the call', () => {
  test('the answer is parsed by the schema, which is sent along', async () => {
    const server = await startModelServer(() => ({ json: modelResponse({ answer: 'a clock' }) }));
    const { context } = makeContext(server.env);
    expect(await askModel(question, context)).toEqual({ answer: 'a clock' });
    expect(server.received[0]).toMatchObject({ method: 'POST', path: '/v1/responses' });
    expect(server.received[0]?.headers.authorization).toBe('Bearer token');
    expect(server.asked()[0]).toMatchObject({
      model: 'test-model',
      instructions: 'Answer briefly.',
      input: 'What is it?',
      background: false,
      text: { format: { type: 'json_schema', strict: true, name: 'short_answer', schema: { required: ['answer'] } } },
      metadata: { pipeline: 'leads', stage: 'intel', submission: '11', trace_id: 'trace', entity_id: '1' },
    });
  });

  test('tokens, cost and the version of the prompt are reported', async () => {
    const server = await startModelServer(() => ({ json: modelResponse({ answer: 'a clock' }) }));
    const { context, usages } = makeContext({ ...server.env, LLM_PRICE_INPUT: '2', LLM_PRICE_OUTPUT: '10' });
    await askModel(question, context);
    expect(usages).toEqual([
      {
        model: 'test-model-2026',
        prompt: promptVersion(prompt),
        call: 'chat',
        input_tokens: 1_000,
        output_tokens: 100,
        cost_usd: 0.003,
      },
    ]);
  });

  test('all questions of an attempt count, a failed one too', async () => {
    const answers = [{ answer: 'a clock' }, { answer: 'a lamp' }, { answer: 7 }];
    const server = await startModelServer(() => ({ json: modelResponse(answers.shift()) }));
    const { context, usages } = makeContext({ ...server.env, LLM_PRICE_INPUT: '2', LLM_PRICE_OUTPUT: '10' });
    await askModel(question, context);
    const second = { ...prompt, label: 'second-1' };
    await askModel({ ...question, prompt: second }, context);
    await failureOf(askModel(question, context));
    expect(usages.at(-1)).toMatchObject({
      ...{ model: 'test-model-2026', prompt: `${promptVersion(prompt)}, ${promptVersion(second)}` },
      ...{ input_tokens: 3_000, output_tokens: 300, cost_usd: expect.closeTo(0.009) },
    });
  });

  test('nothing is left on the handler’s signal when a question has ended, answered or not', async () => {
    const replies = [{ json: modelResponse({ answer: 'a clock' }) }, { status: 500, json: {} }];
    const server = await startModelServer(() => replies.shift() ?? null);
    const { context } = makeContext(server.env);
    await askModel(question, context);
    await expect(askModel(question, context)).rejects.toMatchObject({ code: 'server_error' });
    expect(getEventListeners(context.signal, 'abort')).toEqual([]);
  });

  test('a question ends with the handler’s signal, with one that is aborted already too', async () => {
    const controller = new AbortController();
    const server = await startModelServer(() => {
      controller.abort(new Error('stopped'));
      return { json: modelResponse({ answer: 'a clock' }) };
    });
    const { context } = makeContext(server.env, { signal: controller.signal });
    for (const _ of [1, 2]) await expect(askModel(question, context)).rejects.toThrow(/abort/i);
    expect(server.received).toHaveLength(1);
  });

  test('without prices the cost is unknown, not zero', async () => {
    const server = await startModelServer(() => ({ json: modelResponse({ answer: 'a clock' }) }));
    const { context, usages } = makeContext(server.env);
    await askModel(question, context);
    expect(usages[0]?.cost_usd).toBeNull();
  });

  test.each([{ answer: 7 }, { answer: 'x'.repeat(21) }, 'no json'])(
    'an answer not of the schema is asked for again, and was paid for: %j',
    async (answer) => {
      const server = await startModelServer(() => ({ json: modelResponse(answer) }));
      const { context, usages } = makeContext(server.env);
      const failure = await failureOf(askModel(question, context));
      expect(failure).toMatchObject({ code: 'invalid_output', permanent: false });
      expect(failure.message).toMatch(/output(\.answer)?: .*found: /);
      expect(usages).toHaveLength(1);
    },
  );

  test.each([
    ['a NUL', '{"answer":"a \\u0000 clock"}'],
    ['half a surrogate pair', '{"answer":"a \\ud83d clock"}'],
  ])('an answer with %s, which cannot be kept, is asked for again', async (_, answer) => {
    const server = await startModelServer(() => ({ json: modelResponse(answer) }));
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure).toMatchObject({ code: 'invalid_output', permanent: false });
    expect(failure.message).toContain('output.answer holds a NUL character');
  });

  test('no half of a surrogate pair and no NUL leaves in a request', async () => {
    const server = await startModelServer(() => ({ json: modelResponse({ answer: 'a clock' }) }));
    await askModel({ ...question, input: 'Half \ud83d of it\u0000' }, makeContext(server.env).context);
    expect(server.asked()[0].input).toBe('Half \ufffd of it\ufffd');
  });

  test('an answer that ends without a word is asked for again, with its own code', async () => {
    const server = await startModelServer(() => ({ json: modelResponse('', { output: [], usage: null }) }));
    const { context, usages } = makeContext({ ...server.env, LLM_PRICE_INPUT: '2', LLM_PRICE_OUTPUT: '10' });
    expect(await failureOf(askModel(question, context))).toMatchObject({ code: 'empty_answer', permanent: false });
    expect(usages).toMatchObject([{ input_tokens: null, output_tokens: null, cost_usd: null, unreported: true }]);
  });

  test('an answer that was cut off is asked for again with room for twice as much', async () => {
    const cut = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
    const server = await startModelServer(() => ({ json: modelResponse('{"ans', cut) }));
    for (const retryCount of [0, 1, 2, 7]) {
      const { context } = makeContext(server.env, { retryCount });
      const failure = await failureOf(askModel({ ...question, maxOutputTokens: 100 }, context));
      expect(failure).toMatchObject({ code: 'incomplete_output', permanent: false });
    }
    expect(server.asked().map((asked) => asked.max_output_tokens)).toEqual([100, 200, 400, 400]);
  });

  test('a refusal is permanent', async () => {
    const output = [{ type: 'message', id: 'm', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }];
    const server = await startModelServer(() => ({ json: modelResponse('', { output }) }));
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure).toMatchObject({ code: 'model_refused', permanent: true });
  });
});

describe('the form of an answer', () => {
  const loose = z.object({
    note: z.string().optional(),
    kind: z.enum(['a', 'b']).default('a'),
    link: z.url().nullish(),
    count: z.string().transform(Number),
    what: z.union([z.string(), z.object({ name: z.string().optional() })]),
    parts: z.array(z.discriminatedUnion('is', [z.object({ is: z.literal('x') }), z.object({ is: z.literal('y') })])),
  });

  test('is asked for as the strict form has it, and read back as the schema has it', async () => {
    const answer = { note: null, kind: null, link: null, count: '7', what: { name: null }, parts: [{ is: 'x' }] };
    const server = await startModelServer(() => ({ json: modelResponse(answer) }));
    const read = await askModel({ ...question, schema: loose }, makeContext(server.env).context);
    expect(read).toEqual({ kind: 'a', link: null, count: 7, what: {}, parts: [{ is: 'x' }] });
    const { schema: sent } = server.asked()[0].text.format;
    expect(() => checkStrict(sent, 'schema')).not.toThrow();
    expect(sent.required).toEqual(Object.keys(loose.shape));
    expect(sent.properties.note).toEqual({ anyOf: [{ type: 'string' }, { type: 'null' }] });
    expect(sent.properties.count).toEqual({ type: 'string' });
  });

  test('a null where the schema wants something is a wrong answer all the same', async () => {
    const server = await startModelServer(() => ({ json: modelResponse({ answer: null }) }));
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure.message).toContain('expected string, received null (found: null)');
  });

  test.each([
    ['meta.tags', 'z.record()', z.object({ meta: z.object({ tags: z.record(z.string(), z.number()) }) })],
    ['days[].on', 'z.date()', z.object({ days: z.array(z.object({ on: z.date() })) })],
    ['pair', 'z.tuple()', z.object({ pair: z.tuple([z.string(), z.string()]).optional() })],
    ['any', 'z.unknown()', z.object({ any: z.unknown() })],
    ['open', 'takes fields beside', z.object({ open: z.union([z.string(), z.looseObject({})]) })],
    ['ids', 'z.set()', z.object({ ids: z.set(z.string()) })],
  ])('a stage whose answer has the field %s (%s) does not load', async (field, kind, refused) => {
    expect(() => finishAnswer(refused)).toThrow(`the field ${field} `);
    expect(() => finishAnswer(refused)).toThrow(kind);
    const tool = { name: 'look', description: 'Looks.', parameters: refused, run: () => null };
    expect(() => defineTool(tool)).toThrow(`the field ${field} `);
    const server = await startModelServer(() => null);
    const failure = await failureOf(askModel({ ...question, schema: refused }, makeContext(server.env).context));
    expect(failure).toMatchObject({ code: 'misconfigured', message: expect.stringContaining(`the field ${field} `) });
    expect(server.received).toHaveLength(0);
  });
});

describe('errors of the API', () => {
  test.each([
    [400, 'model_rejected_request', true],
    [401, 'misconfigured', false],
    [404, 'misconfigured', false],
    [429, 'rate_limited', false],
    [500, 'server_error', false],
    [503, 'server_error', false],
  ])('%i is %s, permanent: %s, and is not asked twice', async (status, code, permanent) => {
    const server = await startModelServer(() => ({
      status,
      headers: { 'retry-after': '3' },
      json: { error: { message: 'because', type: 'x', param: null, code: null } },
    }));
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure).toMatchObject({ code, permanent });
    if (status === 429) expect(failure.retry_after_ms).toBe(3_000);
    expect(server.received).toHaveLength(1);
  });

  test.each([
    ['no list of outputs', { json: modelResponse('', { output: null }) }],
    ['an output without content', { json: modelResponse('', { output: [{ type: 'message', content: null }] }) }],
    ['no JSON', { bytes: Buffer.from('{"object": '), headers: { 'content-type': 'application/json' } }],
  ])('an answer with %s is a wrong answer, which is asked for again', async (_, reply) => {
    const server = await startModelServer(() => reply as never);
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure).toMatchObject({
      code: 'invalid_output',
      permanent: false,
      message: 'The model answered in no form of its API.',
    });
  });

  test('an answer whose connection breaks is an outage, and no wrong answer', async () => {
    const server = await startServer(() => ({
      headers: { 'content-length': '900', connection: 'close' },
      bytes: Buffer.from('{"object": '),
    }));
    const env = { LLM_URL: server.url, LLM_MODEL: 'm' };
    expect(await failureOf(askModel(question, makeContext(env).context))).toMatchObject({ code: 'model_unreachable' });
  });

  test('a TypeError of the project’s own is no fault of the model', async () => {
    const embedding = Buffer.from(new Float32Array([1, 0]).buffer).toString('base64');
    const server = await startModelServer(() => ({ json: { model: 'e', data: [{ index: 0, embedding }] } }));
    const reportUsage = () => {
      throw new TypeError('a bug');
    };
    const { context } = makeContext({ ...server.env, LLM_EMBEDDING_MODEL: 'e' }, { reportUsage });
    expect((await failureOf(embedTexts(['clocks'], context))).code).toBe('unexpected_error');
  });

  const refusing = (status: number, error: object) => ({
    status,
    json: { error: { message: 'because', type: 'x', ...error } },
  });

  test.each([
    [{ code: 'content_filter' }, 'content_filtered', true],
    [{ code: 'context_length_exceeded', param: 'input' }, 'question_too_long', true],
    [{ code: 'unsupported_parameter', param: 'instructions' }, 'parameter_refused', true],
    [{ code: 'unsupported_parameter', param: 'text.format' }, 'model_rejected_request', true],
  ])('%o is %s', async (error, code, permanent) => {
    const server = await startModelServer(() => refusing(400, error));
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure).toMatchObject({ code, permanent });
    expect(server.received).toHaveLength(1);
  });

  test('a parameter that a model refuses is left out at once, and from then on', async () => {
    const errors = [
      { code: 'unsupported_parameter', param: 'metadata' },
      { code: null, param: null, message: 'Unrecognized request argument supplied: store' },
      {
        code: null,
        param: null,
        message: "Unsupported parameter: 'max_output_tokens' is not supported with this model.",
      },
    ];
    const server = await startModelServer(() => {
      const error = errors.shift();
      return error ? refusing(400, error) : { json: modelResponse({ answer: 'a clock' }) };
    });
    const bounded = { ...question, maxOutputTokens: 100 };
    for (const _ of [1, 2])
      expect(await askModel(bounded, makeContext(server.env).context)).toEqual({ answer: 'a clock' });
    const names = ['metadata', 'store', 'max_output_tokens'];
    const sent = server.asked().map((asked) => names.filter((name) => name in asked));
    expect(sent).toEqual([names, names.slice(1), names.slice(2), [], []]);
  });

  test('a model that does not work in the background is a setting to correct', async () => {
    const server = await startModelServer(() => refusing(400, { code: 'unsupported_parameter', param: 'background' }));
    const { context } = makeContext({ ...server.env, LLM_MODE: 'background' });
    const failure = await failureOf(askModel(question, context));
    expect(failure).toMatchObject({
      code: 'misconfigured',
      message: expect.stringContaining('set LLM_MODE to inline'),
    });
  });

  test.each([
    [429, { code: 'insufficient_quota', type: 'insufficient_quota' }],
    [429, { code: null, type: 'insufficient_quota' }],
    [403, { code: 'billing_hard_limit_reached', type: 'x' }],
    [402, { code: null, type: 'x' }],
  ])('an account whose money is out (%i, %o) is misconfigured, and no rate limit', async (status, error) => {
    const server = await startModelServer(() => ({
      status,
      json: { error: { message: 'because', param: null, ...error } },
    }));
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure).toMatchObject({
      code: 'misconfigured',
      permanent: false,
      message: "The model account's money is out: add credit, or raise its limit.",
    });
  });

  test('another request under the same key is permanent', async () => {
    const error = { message: 'used before', type: 'x', param: null, code: 'idempotency_key_reused' };
    const server = await startModelServer(() => ({ status: 409, json: { error } }));
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure).toMatchObject({ code: 'idempotency_key_reused', permanent: true });
    expect(failure.detail).toContain('used before');
  });

  test('a model that cannot be reached is an outage, not a fault of the lead', async () => {
    const env = { LLM_URL: await refusedUrl(), LLM_MODEL: 'm' };
    const failure = await failureOf(askModel(question, makeContext(env).context));
    expect(failure).toMatchObject({ code: 'model_unreachable', permanent: false });
  });

  test('a server of another protocol is a wrong LLM_URL', async () => {
    const server = await startModelServer(() => ({ json: { object: 'chat.completion', choices: [] } }));
    const { context } = makeContext(server.env);
    expect(await failureOf(askModel(question, context))).toMatchObject({
      code: 'misconfigured',
      message: expect.stringMatching(/LLM_URL answers.*POST \/responses/),
    });
  });

  test('an unset LLM_URL is named', async () => {
    const failure = await failureOf(askModel(question, makeContext({ LLM_MODEL: 'm' }).context));
    expect(failure).toMatchObject({ code: 'misconfigured', permanent: false });
    expect(failure.message).toContain('LLM_URL is not set');
  });
});

describe('answered in the background', () => {
  test('the attempt waits for the response, which a repeat of the submission does not buy twice', async () => {
    const server = await startModelServer(() => ({ json: modelResponse('', { status: 'queued', output: [] }) }));
    const { context } = makeContext({ ...server.env, LLM_MODE: 'background' });
    expect(await askModel(question, context)).toEqual(waiting({ name: 'llm' }, 'resp_1'));
    await askModel(question, context);
    expect(server.asked()[0]).toMatchObject({ background: true, store: true });
    const keys = server.received.map((request) => request.headers['idempotency-key']);
    expect(keys).toEqual(['trace-11', 'trace-11']);
  });

  test('the finished response becomes the output, with usage and the prompt it was asked with', async () => {
    const finished = modelResponse({ answer: 'a clock' }, { metadata: { prompt: 'test-1@abc' } });
    const server = await startModelServer(() => ({ json: finished }));
    const asked = await model.poll?.('resp_1', { env: server.env, signal });
    expect(server.received[0]).toMatchObject({ method: 'GET', path: '/v1/responses/resp_1' });
    expect(asked).toMatchObject({ state: 'finished', job: { id: 'resp_1' } });
    const { context, usages } = makeContext(server.env);
    expect(await finishAnswer(schema)((asked as { job: unknown }).job, context)).toEqual({ answer: 'a clock' });
    expect(usages[0]).toMatchObject({ prompt: 'test-1@abc', input_tokens: 1_000 });
  });

  test.each([
    [{ status: 'failed', error: { code: 'server_error', message: 'in org-7' } }, 'server_error', false],
    [{ status: 'failed', error: { code: 'rate_limit_exceeded', message: 'in org-7' } }, 'rate_limited', false],
    [{ status: 'failed', error: { code: 'invalid_prompt', message: 'in org-7' } }, 'model_rejected_request', true],
    [{ status: 'cancelled' }, 'job_cancelled', false],
    [{ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }, 'incomplete_output', false],
    [{ status: 'incomplete', incomplete_details: { reason: 'content_filter' } }, 'content_filtered', true],
  ])('%j is %s, permanent: %s', (changes, code, permanent) => {
    const { context } = makeContext({ LLM_URL: 'http://m', LLM_MODEL: 'm' });
    const finish = async () => finishAnswer(schema)(modelResponse('', changes), context);
    const message = expect.not.stringContaining('org-7');
    return expect(failureOf(finish())).resolves.toMatchObject({ code, message, permanent });
  });

  test('a response the API does not know is told apart from an API that does not answer', async () => {
    const unknown = await startModelServer(() => ({ status: 404, json: { error: { message: 'no such response' } } }));
    expect(await model.poll?.('resp_9', { env: unknown.env, signal })).toEqual({ state: 'lost' });
    const down = await startModelServer(() => ({ status: 503 }));
    const asked = async () => model.poll?.('resp_9', { env: down.env, signal });
    expect(await failureOf(asked())).toMatchObject({ code: 'server_error' });
  });
});

describe('prompts', () => {
  test('the version shows an edit that nobody labelled', () => {
    const edited = { ...prompt, instructions: 'Answer at length.' };
    expect(promptVersion(prompt)).toMatch(/^test-1@[0-9a-f]{8}$/);
    expect(promptVersion(edited)).not.toBe(promptVersion(prompt));
  });
});
