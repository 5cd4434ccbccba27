import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { askModel, finishAnswer } from '../../supabase/functions/_millrace/model/model.ts';
import { promptVersion } from '../../supabase/functions/_millrace/model/prompt.ts';
import { makeContext } from '../support/context.ts';
import { startServer } from '../support/http-server.ts';
import { modelResponse, startModelServer } from '../support/runtime/model-server.ts';

const schema = z.object({ answer: z.string().max(20) });
const prompt = { label: 'test-1', instructions: 'Answer briefly.' };
const question = { name: 'short_answer', schema, prompt, input: 'What is it?', cache: { days: 30, tenant: 'a' } };
const clock = { answer: 'a clock' };

/** A Data API with the table of answers. `fault` is the error that it answers with. */
async function startCache() {
  const kept = new Map<string, { answer: unknown; expires_at: string }>();
  const state: { fault?: object; refusesWrites?: boolean } = {};
  const server = await startServer(({ method, path, body }) => {
    if (state.fault) return { status: 404, json: state.fault };
    if (method === 'POST') {
      if (state.refusesWrites) return { status: 403, json: { code: '42501', message: 'permission denied' } };
      const { key, ...row } = JSON.parse(body);
      kept.set(key, row);
      return { status: 201, bytes: Buffer.from('') };
    }
    const key = new URL(path, 'http://test').searchParams.get('key')?.replace('eq.', '') ?? '';
    const row = kept.get(key);
    return { json: row ? [row] : [] };
  });
  return { kept, state, env: { SUPABASE_URL: server.url, SUPABASE_SECRET_KEY: 'sb_secret_test' } };
}

async function startBoth(answer: unknown = clock) {
  const model = await startModelServer(() => ({ json: modelResponse(answer) }));
  const cache = await startCache();
  return { model, cache, env: { ...model.env, ...cache.env } };
}

describe('a question with a cache', () => {
  test('gets the former answer, which costs nothing and says so', async () => {
    const { model, cache, env } = await startBoth();
    const priced = { ...env, LLM_PRICE_INPUT: '2', LLM_PRICE_OUTPUT: '10' };
    const attempts = [makeContext(priced), makeContext(priced)];
    for (const { context } of attempts) expect(await askModel(question, context)).toEqual(clock);
    const usages = attempts.flatMap((attempt) => attempt.usages);
    expect(model.received).toHaveLength(1);
    const [row] = cache.kept.values();
    expect(row?.answer).toEqual(clock);
    const days = (Date.parse(row?.expires_at ?? '') - Date.now()) / 86_400_000;
    expect(Math.round(days)).toBe(30);
    expect(usages[0]).toMatchObject({ cost_usd: 0.003 });
    expect(usages[1]).toEqual({
      ...{ model: 'test-model', prompt: promptVersion(prompt) },
      ...{ input_tokens: 0, output_tokens: 0, cost_usd: 0, cached: true },
    });
  });

  test('is another one by its text, instruction, form, model or tenant, and a retry asks anew', async () => {
    const { model, env } = await startBoth();
    const { context } = makeContext(env);
    const questions = [
      question,
      { ...question, input: 'What else?' },
      { ...question, prompt: { ...prompt, instructions: 'Answer.' } },
      { ...question, schema: z.object({ answer: z.string().max(30) }) },
      { ...question, cache: { days: 30, tenant: 'b' } },
      { ...question, cache: { days: 30, tenant: null } },
    ];
    for (const asked of questions) await askModel(asked, context);
    await askModel(question, makeContext({ ...env, LLM_MODEL: 'other' }).context);
    expect(model.received).toHaveLength(7);
    for (const asked of questions) await askModel(asked, context);
    expect(model.received).toHaveLength(7);
    await askModel(question, makeContext(env, { retryCount: 1 }).context);
    expect(model.received).toHaveLength(8);
  });

  test('keeps no answer that the schema refuses', async () => {
    const { cache, env } = await startBoth({ answer: 'far too long for the schema' });
    const { context } = makeContext(env);
    await expect(askModel(question, context)).rejects.toMatchObject({ code: 'invalid_output' });
    expect(cache.kept.size).toBe(0);
  });

  test('gives no answer that the schema refuses, or whose days are over', async () => {
    const { model, cache, env } = await startBoth();
    const { context } = makeContext(env);
    await askModel(question, context);
    for (const [key, row] of cache.kept) cache.kept.set(key, { ...row, answer: { answer: 7 } });
    await askModel(question, context);
    for (const [key, row] of cache.kept) cache.kept.set(key, { ...row, expires_at: '2020-01-01T00:00:00Z' });
    await askModel(question, context);
    expect(model.received).toHaveLength(3);
  });

  test('is asked all the same where the database does not answer', async () => {
    const { env } = await startBoth();
    const { context } = makeContext({ ...env, SUPABASE_URL: 'http://127.0.0.1:9' });
    expect(await askModel(question, context)).toEqual(clock);
  });

  test.each([0, 1])('asks nothing without its table, and says how it is made: retry %i', async (retryCount) => {
    const { model, cache, env } = await startBoth();
    cache.state.fault = { code: 'PGRST205', message: 'Could not find the table', details: null, hint: null };
    await expect(askModel(question, makeContext(env, { retryCount }).context)).rejects.toMatchObject({
      code: 'misconfigured',
      message: expect.stringContaining('needs the table public.model_answers'),
    });
    expect(model.received).toHaveLength(0);
  });

  test('returns the answer where the table takes none, since a retry would pay again', async () => {
    const { model, cache, env } = await startBoth();
    cache.state.refusesWrites = true;
    expect(await askModel(question, makeContext(env).context)).toEqual(clock);
    expect(model.received).toHaveLength(1);
  });

  test.each([
    [{ days: 30, tenant: undefined }, "tenant of a question's cache is undefined"],
    [{ days: 30, tenant: '' }, "tenant of a question's cache is empty"],
    [{ days: 30, tenant: 7 }, "tenant of a question's cache is number"],
    [{ days: Number.NaN, tenant: null }, "days of a question's cache are NaN"],
    [{ days: 0, tenant: null }, "days of a question's cache are 0"],
    [{ days: 1e9, tenant: null }, 'at most 36500'],
  ])('asks nothing with the cache %j', async (faulty, said) => {
    const { model, env } = await startBoth();
    const asked = askModel({ ...question, cache: faulty as never }, makeContext(env).context);
    await expect(asked).rejects.toMatchObject({ code: 'misconfigured', message: expect.stringContaining(said) });
    expect(model.received).toHaveLength(0);
  });

  test('keeps a background answer when it is finished, for the same tenant', async () => {
    const model = await startModelServer(() => ({ json: modelResponse(null, { status: 'queued' }) }));
    const cache = await startCache();
    const { context, usages } = makeContext({ ...model.env, ...cache.env, LLM_MODE: 'background' });
    expect(await askModel(question, context)).toMatchObject({ service: 'llm' });
    const [{ metadata }] = model.asked();
    expect(await finishAnswer(schema)(modelResponse(clock, { metadata }), context)).toEqual(clock);
    expect(await askModel(question, context)).toEqual(clock);
    expect(usages.at(-1)).not.toHaveProperty('cached');
    const { context: other, usages: free } = makeContext({ ...model.env, ...cache.env });
    expect(await askModel(question, other)).toEqual(clock);
    expect(free).toMatchObject([{ cost_usd: 0, cached: true }]);
    expect(model.received).toHaveLength(1);
  });
});
