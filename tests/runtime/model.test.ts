import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { classify } from '../../supabase/functions/_millrace/errors.ts';
import { askModel, finishAnswer, model } from '../../supabase/functions/_millrace/model/model.ts';
import { promptVersion } from '../../supabase/functions/_millrace/model/prompt.ts';
import { waiting } from '../../supabase/functions/_millrace/stage/stage.ts';
import { makeContext } from '../support/context.ts';
import { refusedUrl } from '../support/http-server.ts';
import { modelResponse, startModelServer } from '../support/model-server.ts';

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
        input_tokens: 1_000,
        output_tokens: 100,
        cost_usd: 0.003,
      },
    ]);
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

  test('a refusal is permanent', async () => {
    const output = [{ type: 'message', id: 'm', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }];
    const server = await startModelServer(() => ({ json: modelResponse('', { output }) }));
    const failure = await failureOf(askModel(question, makeContext(server.env).context));
    expect(failure).toMatchObject({ code: 'model_refused', permanent: true });
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
    expect(finishAnswer(schema)((asked as { job: unknown }).job, context)).toEqual({ answer: 'a clock' });
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
