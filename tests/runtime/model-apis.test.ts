import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { checkMessagesSchema } from '../../local/services/model/messages-schema.ts';
import { startModel } from '../../local/services/model/server.ts';
import { keepCheckpoints } from '../../packages/test/kept-turns.ts';
import { defineAgent } from '../../supabase/functions/_millrace/agents/agent.ts';
import { classify } from '../../supabase/functions/_millrace/errors.ts';
import { fromChat, toChat } from '../../supabase/functions/_millrace/model/chat-form.ts';
import { toMessages } from '../../supabase/functions/_millrace/model/messages-form.ts';
import { askModel, finishAnswer, modelService } from '../../supabase/functions/_millrace/model/model.ts';
import { makeContext } from '../support/context.ts';
import { type ReceivedRequest, type Reply, startServer } from '../support/http-server.ts';
import { lookTool } from '../support/runtime/agent-model.ts';
import { testPipeline } from '../support/runtime/make-drain.ts';

const schema = z.object({ answer: z.string().max(20), parts: z.array(z.int().min(1)).min(2).optional() });
const prompt = { label: 'test-1', instructions: 'Answer briefly.' };
const question = { name: 'short_answer', schema, prompt, input: 'What is it?' };
const given = { answer: 'a clock', parts: null };
const clock = { answer: 'a clock' };
const spoken = JSON.stringify(given);

/** Recorded answers of the two APIs, as their references show them. */
const recorded = {
  chat: (changes: object = {}, choice: object = {}) => ({
    id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
    object: 'chat.completion',
    created: 1741569952,
    model: 'served-model',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: spoken, refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: 'stop',
        ...choice,
      },
    ],
    usage: {
      prompt_tokens: 1_000,
      completion_tokens: 100,
      total_tokens: 1_100,
      prompt_tokens_details: { cached_tokens: 400, audio_tokens: 0 },
    },
    ...changes,
  }),
  messages: (changes: object = {}) => ({
    id: 'msg_013Zva2CMHLNnXjNJJKqJ2EF',
    type: 'message',
    role: 'assistant',
    model: 'served-model',
    content: [
      { type: 'thinking', thinking: 'Hm.', signature: 'EqQBCg' },
      { type: 'text', text: spoken, citations: null },
    ],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: 500,
      cache_creation_input_tokens: 100,
      cache_read_input_tokens: 400,
      output_tokens: 100,
      service_tier: 'standard',
    },
    ...changes,
  }),
};
type Api = 'responses' | keyof typeof recorded;

async function serve(api: Api, reply: (request: ReceivedRequest) => Reply | null) {
  const server = await startServer(reply);
  const env = { LLM_URL: server.url, LLM_API: api, LLM_AUTH_TOKEN: 'token', LLM_MODEL: 'a-model' };
  return { ...server, env, asked: () => server.received.map(({ body }) => JSON.parse(body)) };
}

async function failureOf(promise: Promise<unknown>) {
  return classify(
    await promise.then(
      () => expect.fail('no error was thrown'),
      (error: unknown) => error,
    ),
  );
}

test.each(['responses', 'chat', 'messages'] as const)(
  'a model asked by %s gets no key at another host',
  async (api) => {
    const other = await startServer(() => ({ json: {} }));
    const server = await serve(api, () => ({ status: 307, headers: { location: other.url }, json: {} }));
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure.message).toBe('LLM_URL leads elsewhere (307): set it to the address that answers.');
    expect(other.received).toHaveLength(0);
  },
);

describe('a question by chat completions', () => {
  test('carries instructions, schema and bound, and nothing that other servers may not know', async () => {
    const server = await serve('chat', () => ({ json: recorded.chat() }));
    const { context, usages } = makeContext({ ...server.env, LLM_PRICE_INPUT: '2', LLM_PRICE_OUTPUT: '10' });
    expect(await askModel({ ...question, maxOutputTokens: 50 }, context)).toEqual(clock);
    expect(server.received[0]).toMatchObject({ method: 'POST', path: '/v1/chat/completions' });
    expect(server.received[0]?.headers.authorization).toBe('Bearer token');
    const [{ response_format: format, ...rest }] = server.asked();
    expect(rest).toEqual({
      model: 'a-model',
      messages: [
        { role: 'system', content: 'Answer briefly.' },
        { role: 'user', content: 'What is it?' },
      ],
      max_completion_tokens: 50,
    });
    expect(format).toMatchObject({
      type: 'json_schema',
      json_schema: { name: 'short_answer', strict: true, schema: { required: ['answer', 'parts'] } },
    });
    expect(usages).toMatchObject([
      { model: 'served-model', input_tokens: 1_000, cached_input_tokens: 400, output_tokens: 100, cost_usd: 0.003 },
    ]);
  });

  test('may be answered without counts, which is said', async () => {
    const server = await serve('chat', () => ({ json: recorded.chat({ usage: undefined }) }));
    const { context, usages } = makeContext(server.env);
    await askModel(question, context);
    expect(usages).toMatchObject([{ input_tokens: null, output_tokens: null, cost_usd: null, unreported: true }]);
  });

  test('goes without a parameter that a server refuses, from then on', async () => {
    const error = { message: "Unsupported parameter: 'max_completion_tokens'", type: 'x', param: null, code: null };
    const replies: Reply[] = [{ status: 400, json: { error } }];
    const server = await serve('chat', () => replies.shift() ?? { json: recorded.chat() });
    const { context } = makeContext({ ...server.env, LLM_MODEL: 'old' });
    for (const _ of [1, 2]) await askModel({ ...question, maxOutputTokens: 50 }, context);
    expect(server.asked().map((asked) => 'max_completion_tokens' in asked)).toEqual([true, false, false]);
  });

  test.each([
    ['length', {}, 'incomplete_output', false],
    ['content_filter', {}, 'content_filtered', true],
    ['stop', { content: null, refusal: 'No.' }, 'model_refused', true],
    ['stop', { content: '' }, 'empty_answer', false],
    ['stop', { content: '{"answer":7}' }, 'invalid_output', false],
    ['stop', { content: null }, 'empty_answer', false],
    ['stop', { content: [{ type: 'thinking', thinking: [] }, null] }, 'empty_answer', false],
    ['tool_calls', { content: null, tool_calls: [null] }, 'empty_answer', false],
  ])('that ends by %s with %j is %s', async (reason, message, code, permanent) => {
    const choice = { finish_reason: reason, message: { role: 'assistant', content: spoken, ...message } };
    const server = await serve('chat', () => ({ json: recorded.chat({}, choice) }));
    const { context, usages } = makeContext(server.env);
    expect(await failureOf(askModel(question, context))).toMatchObject({ code, permanent });
    expect(usages).toHaveLength(1);
  });
});

describe('a server of chat completions', () => {
  test('may send its text as parts, and its calls without a type', async () => {
    const content = [
      { type: 'thinking', thinking: [] },
      { type: 'text', text: spoken },
    ];
    const server = await serve('chat', () => ({
      json: recorded.chat({}, { message: { role: 'assistant', content } }),
    }));
    expect(await askModel(question, makeContext(server.env).context)).toEqual(clock);
    const called = { id: 'call_1', function: { name: 'look', arguments: '{}' } };
    const message = { role: 'assistant', content: null, tool_calls: [called] };
    expect(fromChat(recorded.chat({}, { message }) as never).output).toMatchObject([
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
    ]);
  });

  test.each([
    ['This model does not support response format `json_schema`.', 'response_format'],
    ['This response_format type is unavailable now', null],
  ])('that takes no schema is told so with the remedy: %s', async (message, param) => {
    const error = { message, type: 'invalid_request_error', param, code: null };
    const server = await serve('chat', () => ({ status: 400, json: { error } }));
    expect(await failureOf(askModel(question, makeContext(server.env).context))).toMatchObject({
      code: 'model_rejected_request',
      permanent: true,
      message: 'The model takes no schema for its answer (structured outputs): set LLM_MODEL to one that does.',
    });
  });
});

test('outputs of tools come before the text of the same message, in whichever order they were said', () => {
  const input = [
    { role: 'user', content: 'Look.' },
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
    { role: 'user', content: 'Go on.' },
    { type: 'function_call_output', call_id: 'call_1', output: 'a lamp' },
  ];
  const said = { model: 'm', input } as never;
  expect(
    toMessages(said)
      .messages.at(-1)
      ?.content.map(({ type }) => type),
  ).toEqual(['tool_result', 'text']);
  expect(toChat(said).messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
});

describe('a question by Anthropic’s Messages', () => {
  test('asks to cache the instructions, and bounds of the schema go into descriptions', async () => {
    const server = await serve('messages', () => ({ json: recorded.messages() }));
    const { context, usages } = makeContext({ ...server.env, LLM_PRICE_INPUT: '2', LLM_PRICE_OUTPUT: '10' });
    expect(await askModel(question, context)).toEqual(clock);
    expect(server.received[0]).toMatchObject({ method: 'POST', path: '/v1/messages' });
    expect(server.received[0]?.headers).toMatchObject({ 'x-api-key': 'token', 'anthropic-version': '2023-06-01' });
    const [{ output_config: output, ...rest }] = server.asked();
    expect(rest).toEqual({
      model: 'a-model',
      max_tokens: 16_000,
      system: [{ type: 'text', text: 'Answer briefly.', cache_control: { type: 'ephemeral' } }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }] }],
    });
    const { schema: sent } = output.format;
    expect(() => checkMessagesSchema(sent, 'schema')).not.toThrow();
    expect(sent.properties.answer).toEqual({ type: 'string', description: '{maxLength: 20}' });
    expect(usages).toMatchObject([
      { input_tokens: 1_000, cached_input_tokens: 400, cache_write_tokens: 100, output_tokens: 100, cost_usd: 0.003 },
    ]);
  });

  test('may be answered in several blocks of text, and without counts', async () => {
    const content = [spoken.slice(0, 8), spoken.slice(8)].map((text) => ({ type: 'text', text }));
    const server = await serve('messages', () => ({ json: recorded.messages({ content, usage: null }) }));
    const { context, usages } = makeContext(server.env);
    expect(await askModel(question, context)).toEqual(clock);
    expect(usages).toMatchObject([{ input_tokens: null, cost_usd: null, unreported: true }]);
  });

  test('that is asked again has more room', async () => {
    const server = await serve('messages', () => ({ json: recorded.messages({ stop_reason: 'max_tokens' }) }));
    for (const retryCount of [0, 1, 2, 7]) {
      const failure = await failureOf(askModel(question, makeContext(server.env, { retryCount }).context));
      expect(failure).toMatchObject({ code: 'incomplete_output', permanent: false });
    }
    expect(server.asked().map((asked) => asked.max_tokens)).toEqual([16_000, 32_000, 64_000, 64_000]);
  });

  test.each([
    [{ stop_reason: 'refusal', content: [] }, 'model_refused', true],
    [{ stop_reason: 'model_context_window_exceeded' }, 'question_too_long', true],
    [{ content: [] }, 'empty_answer', false],
    [{ stop_reason: 'pause_turn', content: [{ type: 'text', text: '{"ans' }] }, 'invalid_output', false],
    [
      { stop_reason: 'tool_use', content: [{ type: 'tool_use', id: 't', name: 'n', input: {} }] },
      'empty_answer',
      false,
    ],
  ])('that ends with %j is %s', async (changes, code, permanent) => {
    const server = await serve('messages', () => ({ json: recorded.messages(changes) }));
    expect(await failureOf(askModel(question, makeContext(server.env).context))).toMatchObject({ code, permanent });
  });
});

describe('an error is sorted alike, whichever API says it', () => {
  const anthropic = (type: string, message = 'because', details: object | null = null) => ({
    type: 'error',
    error: { type, message, details },
    request_id: 'req_1',
  });
  const openai = (message: string, code: string | null = null) => ({
    error: { message, type: 'x', param: null, code },
  });

  test.each<[Api, number, object, string, boolean]>([
    ['messages', 400, anthropic('invalid_request_error'), 'model_rejected_request', true],
    [
      'messages',
      400,
      anthropic('invalid_request_error', 'prompt is too long: 9 tokens > 8'),
      'question_too_long',
      true,
    ],
    ['messages', 400, anthropic('invalid_request_error', 'Your credit balance is too low'), 'misconfigured', false],
    [
      'messages',
      400,
      anthropic('invalid_request_error', 'output_config: Extra inputs are not permitted'),
      'model_rejected_request',
      true,
    ],
    ['messages', 401, anthropic('authentication_error', 'invalid x-api-key'), 'misconfigured', false],
    ['messages', 402, anthropic('billing_error'), 'misconfigured', false],
    ['messages', 404, anthropic('not_found_error', 'model: a-model'), 'misconfigured', false],
    ['messages', 413, anthropic('request_too_large'), 'question_too_long', true],
    ['messages', 429, anthropic('rate_limit_error'), 'rate_limited', false],
    [
      'messages',
      429,
      anthropic('rate_limit_error', 'x', { error_code: 'enforced_spend_limit_reached' }),
      'misconfigured',
      false,
    ],
    ['messages', 500, anthropic('api_error'), 'server_error', false],
    ['messages', 529, anthropic('api_error'), 'overloaded', false],
    ['chat', 529, openai('busy'), 'overloaded', false],
    ['messages', 500, anthropic('overloaded_error'), 'overloaded', false],
    ['chat', 503, { error: { message: 'busy', type: 'overloaded_error' } }, 'overloaded', false],
    ['messages', 200, anthropic('overloaded_error'), 'overloaded', false],
    ['messages', 200, anthropic('rate_limit_error'), 'rate_limited', false],
    ['messages', 307, {}, 'misconfigured', false],
    ['responses', 200, { error: { code: 'insufficient_quota', message: 'x' } }, 'misconfigured', false],
    ['responses', 200, { error: { code: 'rate_limit_exceeded', message: 'x' } }, 'rate_limited', false],
    ['chat', 400, openai("This model's maximum context length is 4096 tokens."), 'question_too_long', true],
    ['chat', 400, openai('too long', 'context_length_exceeded'), 'question_too_long', true],
    ['chat', 401, openai('Incorrect API key provided', 'invalid_api_key'), 'misconfigured', false],
    ['chat', 429, openai('slow down', 'rate_limit_exceeded'), 'rate_limited', false],
    ['chat', 503, openai('down'), 'server_error', false],
    ['chat', 200, { error: { code: 429, message: 'the server behind is busy' } }, 'rate_limited', false],
    ['chat', 200, { object: 'response' }, 'misconfigured', false],
    ['messages', 200, { object: 'response' }, 'misconfigured', false],
  ])('%s, %i, %j is %s', async (api, status, json, code, permanent) => {
    const server = await serve(api, () => ({ status, headers: { 'retry-after': '3' }, json }));
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure).toMatchObject({ code, permanent });
    const limits = ['rate_limited', 'overloaded', 'server_error'].includes(code);
    const { message } = (json as { error?: { message: string } }).error ?? {};
    if (limits) expect(failure.detail, 'for operators, in its own words').toContain(message);
    if (status === 429 && code === 'rate_limited') expect(failure.retry_after_ms).toBe(3_000);
    if (status === 529) expect(failure.retry_after_ms).toBe(3_000);
    expect(server.received).toHaveLength(1);
  });

  test.each<Api>(['chat', 'messages'])('%s that cannot be reached is an outage', async (api) => {
    const env = { LLM_URL: 'http://127.0.0.1:9', LLM_API: api, LLM_MODEL: 'm' };
    const failure = await failureOf(askModel(question, makeContext(env).context));
    expect(failure).toMatchObject({ code: 'model_unreachable', permanent: false });
  });

  test.each<Api>(['chat', 'messages'])('%s answers in the call alone', async (api) => {
    const server = await serve(api, () => null);
    const { context } = makeContext({ ...server.env, LLM_MODE: 'background' });
    const failure = await failureOf(askModel(question, context));
    expect(failure).toMatchObject({
      code: 'misconfigured',
      message: expect.stringContaining('set LLM_MODE to inline'),
    });
    expect(server.received).toHaveLength(0);
  });
});

describe('a model of its own settings', () => {
  const judge = modelService({
    name: 'judge',
    prices: { date: '2026-11-01', models: { 'served-model': { input: 1, cached: 0, output: 0 } } },
  });

  test('is asked at its own address, priced by the project’s table, and named in errors', async () => {
    const replies: Reply[] = [{ json: recorded.messages() }, { status: 401, json: {} }];
    const { url } = await serve('messages', () => replies.shift() ?? null);
    const { context, usages } = makeContext({ JUDGE_URL: url, JUDGE_API: 'messages', JUDGE_MODEL: 'm' });
    expect(await askModel({ ...question, model: judge }, context)).toEqual(clock);
    expect(usages).toMatchObject([{ cost_usd: 0.0006, priced_at: '2026-11-01' }]);
    const failure = await failureOf(askModel({ ...question, model: judge }, context));
    expect(failure).toMatchObject({ code: 'misconfigured', message: expect.stringContaining('JUDGE_AUTH_TOKEN') });
    const unset = await failureOf(askModel({ ...question, model: judge }, makeContext({}).context));
    expect(unset.message).toContain('JUDGE_URL is not set');
  });

  test('finishes its background answers by its own prices', async () => {
    const job = {
      model: 'served-model',
      status: 'completed',
      output: [],
      usage: { input_tokens: 5, output_tokens: 1 },
    };
    const { context, usages } = makeContext({ JUDGE_URL: 'http://m', JUDGE_MODEL: 'm' });
    await expect(finishAnswer(schema, judge)(job, context)).rejects.toMatchObject({ code: 'empty_answer' });
    expect(usages).toMatchObject([{ cost_usd: 0.000005 }]);
  });
});

describe.each<Api>(['chat', 'messages'])('an agent by %s', (api) => {
  test('takes turns with its tools against the stand-in, and resumes behind the last one', async () => {
    const service = await startModel({ env: { LLM_AUTH_TOKEN: 'token' } });
    try {
      const env = { LLM_URL: service.url, LLM_API: api, LLM_AUTH_TOKEN: 'token', LLM_MODEL: 'a-model' };
      const { tool, looked } = lookTool((page) => ({ note: `Page ${page} says that the lamp is lit.` }));
      const agent = defineAgent({
        pipeline: testPipeline,
        stage: 'work',
        input: z.object({ entity: z.object({ id: z.number() }) }),
        output: z.object({ note: z.string() }),
        prompt,
        ask: ({ entity }) => `Look at page ${entity.id} and note what it says of the lamp.`,
        tools: () => [tool],
      });
      const checkpoints = keepCheckpoints();
      const run = () => agent.handler({ entity: { id: 7 } }, makeContext(env, { checkpoints }).context);
      const first = await run();
      expect(first).toMatchObject({ note: expect.stringContaining('lamp') });
      expect(looked).toEqual([7]);
      expect(await run(), 'all turns are there: nothing is asked again').toEqual(first);
      expect(looked).toEqual([7]);
    } finally {
      await service.stop();
    }
  });
});
