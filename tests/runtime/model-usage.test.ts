import { describe, expect, test } from 'vitest';
import { addUsage } from '../../supabase/functions/_millrace/model/attempt-usage.ts';
import { modelCall } from '../../supabase/functions/_millrace/model/model-call.ts';
import { costOf, priceOf, publishedPrices } from '../../supabase/functions/_millrace/model/model-prices.ts';
import { countOf, usageOfTokens } from '../../supabase/functions/_millrace/model/token-usage.ts';
import { withUsage } from '../../supabase/functions/_millrace/model/with-usage.ts';
import { makeContext } from '../support/context.ts';

const tokens = { input: 1_000, cached: 400, cacheWrite: 100, output: 100 };
const table = {
  date: '2026-11-01',
  models: { mine: { input: 2, cached: 0.5, cacheWrite: 4, output: 10, batch: 0.5 } },
};
const cost = (500 * 2 + 400 * 0.5 + 100 * 4 + 100 * 10) / 1_000_000;

describe('a price', () => {
  test('counts input, what the cache held, what went into it, and output, each at its own', () => {
    expect(usageOfTokens('mine', tokens, { table })).toEqual({
      ...{ model: 'mine', input_tokens: 1_000, cached_input_tokens: 400, cache_write_tokens: 100, output_tokens: 100 },
      ...{ cost_usd: cost, priced_at: '2026-11-01' },
    });
    expect(usageOfTokens('mine', tokens, { table, isBatch: true })).toMatchObject({ cost_usd: cost / 2, batch: true });
  });

  test('of a model that nobody priced is unknown and said to be, never 0', () => {
    const usage = usageOfTokens('nobody-knows', tokens);
    expect(usage).toMatchObject({ cost_usd: null, unpriced: true });
    expect(usage).not.toHaveProperty('priced_at');
  });

  test('of settings counts before the project’s, and that before the published one', () => {
    const own = { date: '2026-11-02', models: { 'gpt-6-luna': { input: 7, output: 0 } } };
    const plain = { input: 1_000_000, cached: 0, cacheWrite: 0, output: 0 };
    expect(usageOfTokens('gpt-6-luna', plain)).toMatchObject({ cost_usd: 0.2, priced_at: publishedPrices.date });
    expect(usageOfTokens('gpt-6-luna', plain, { table: own })).toMatchObject({ cost_usd: 7, priced_at: '2026-11-02' });
    const settings = { input: 3, output: 0 };
    expect(usageOfTokens('gpt-6-luna', plain, { table: own, settings })).toMatchObject({ cost_usd: 3 });
  });

  test('is that of a name without its day, and dearer for a long question', () => {
    expect(priceOf('gpt-6-sol-2026-09-22', [publishedPrices])).toEqual(priceOf('gpt-6-sol', [publishedPrices]));
    expect(priceOf('claude-haiku-4-5-20251001', [publishedPrices])).not.toBeNull();
    const long = { input: 1, output: 1, long: { above: 10, input: 2, output: 3 } };
    const asked = (input: number) => costOf({ input, cached: 0, cacheWrite: 0, output: 10 }, long) * 1_000_000;
    expect([asked(10), asked(11)]).toEqual([20, 52]);
  });

  test('of a reseller’s name, of part of a name or of a word of JavaScript is unknown', () => {
    for (const name of ['openai/gpt-6-sol', 'gpt-6', 'gpt-6-sol-mini', 'GPT-6-sol-2026-9-2', 'constructor', '']) {
      expect(priceOf(name, [publishedPrices]), name).toBeNull();
    }
  });

  test('never lowers the cost where a service counts the cache beside the input', () => {
    const beside = { input: 100, cached: 400, cacheWrite: 0, output: 0 };
    expect(usageOfTokens('mine', beside, { table })).toMatchObject({ cost_usd: (400 * 0.5) / 1_000_000 });
  });

  test.each([-1, '5', 1e15, Number.NaN, Number.POSITIVE_INFINITY, null, undefined])('counts no %j tokens', (count) => {
    expect(countOf(count)).toBeNull();
  });

  test.each(Object.entries(publishedPrices.models))('%s: the cache is cheaper, writing into it dearer', (_, price) => {
    expect(price.cached).toBeLessThan(price.input);
    expect(price.cacheWrite).toBeGreaterThan(price.input);
    expect(price.output).toBeGreaterThan(price.input);
  });
});

describe('the answer of any client', () => {
  const counted = { model: 'mine', input_tokens: 1_000, cached_input_tokens: 400, output_tokens: 100 };

  test.each<[string, object]>([
    [
      'openai, Responses',
      {
        model: 'mine',
        usage: { input_tokens: 1_000, input_tokens_details: { cached_tokens: 400 }, output_tokens: 100 },
      },
    ],
    [
      'openai, chat completions',
      {
        model: 'mine',
        usage: { prompt_tokens: 1_000, prompt_tokens_details: { cached_tokens: 400 }, completion_tokens: 100 },
      },
    ],
    [
      'Anthropic',
      {
        model: 'mine',
        usage: {
          ...{ input_tokens: 600, cache_read_input_tokens: 400, cache_creation_input_tokens: null },
          output_tokens: 100,
        },
      },
    ],
    [
      'generateText()',
      {
        response: { modelId: 'mine' },
        usage: { inputTokens: 1, outputTokens: 1 },
        totalUsage: { inputTokens: 1_000, inputTokenDetails: { cacheReadTokens: 400 }, outputTokens: 100 },
      },
    ],
    [
      'a LanguageModel',
      {
        response: { modelId: 'mine' },
        usage: { inputTokens: { total: 1_000, noCache: 600, cacheRead: 400 }, outputTokens: { total: 100, text: 100 } },
      },
    ],
  ])('%s: tokens and cached tokens are read, and the answer comes back', (_, answer) => {
    const { context, usages } = makeContext({});
    expect(withUsage(answer, context, { prices: table })).toBe(answer);
    expect(usages).toMatchObject([{ ...counted, cost_usd: (600 * 2 + 400 * 0.5 + 100 * 10) / 1_000_000 }]);
  });

  test('adds up within an attempt', () => {
    const { context, usages } = makeContext({});
    const answer = { model: 'mine', usage: { input_tokens: 1_000_000, output_tokens: 0 } };
    for (const _ of [1, 2]) withUsage(answer, context, { prices: table });
    expect(usages.at(-1)).toMatchObject({ model: 'mine', input_tokens: 2_000_000, cost_usd: 4 });
    withUsage({ ...answer, model: 'other' }, context, { prices: table });
    expect(usages.at(-1)).toMatchObject({
      model: 'mine, other',
      input_tokens: 3_000_000,
      cost_usd: null,
      unpriced: true,
    });
    expect(usages.at(-1)).not.toHaveProperty('priced_at');
    withUsage(answer, { ...context }, { prices: table });
    expect(usages.at(-1)).toMatchObject({ model: 'mine, other', input_tokens: 4_000_000 });
  });

  test('of a batch of Anthropic’s costs the part that a batch costs', () => {
    const { context, usages } = makeContext({});
    const usage = { input_tokens: 1_000_000, output_tokens: 0, service_tier: 'batch' };
    withUsage({ model: 'mine', usage }, context, { prices: table });
    expect(usages).toMatchObject([{ cost_usd: 1, batch: true }]);
  });

  test('with a model and a response of another kind is counted all the same', () => {
    const { context, usages } = makeContext({});
    const answer = { model: { id: 7 }, response: 'text', usage: { input_tokens: 1_000_000, output_tokens: 0 } };
    withUsage(answer, context, { model: 'mine', prices: table });
    expect(usages).toMatchObject([{ model: 'mine', cost_usd: 2 }]);
  });

  test.each([
    ...[null, 'text', {}, { usage: { input_tokens: 'many' } }, { usage: { input_tokens: -1, output_tokens: 1 } }],
    { usage: { input_tokens: 1e15, output_tokens: 1 } },
  ])('%j names no tokens, which is said', (answer) => {
    const { context, usages } = makeContext({});
    withUsage(answer, context, { model: 'mine' });
    expect(usages).toMatchObject([{ model: 'mine', input_tokens: null, cost_usd: null, unreported: true }]);
  });
});

describe('the call that usage names', () => {
  test.each([
    ['https://api.openai.com/v1', 'chat openai'],
    ['https://mine.openai.azure.com/openai/v1', 'chat azure.ai.openai'],
    ['https://api.anthropic.com', 'chat anthropic'],
    ['https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1', 'chat aws.bedrock'],
    ['https://europe-west4-aiplatform.googleapis.com/v1/x', 'chat gcp.vertex_ai'],
    ['https://api.openai.com.example.org/v1', 'chat'],
    ['http://127.0.0.1:11434/v1', 'chat'],
  ])('has the provider of an address that tells one: %s', (url, call) => {
    expect(modelCall('chat', url)).toBe(call);
  });

  test('is what a client’s answer says that it is, and stays unknown beside an answer that says nothing', () => {
    const { context, usages } = makeContext({});
    const usage = { prompt_tokens: 9, completion_tokens: 0 };
    withUsage({ object: 'chat.completion', model: 'mine', usage }, context);
    withUsage({ object: 'list', model: 'mine', usage }, context);
    withUsage({ model: 'mine', usage }, context);
    expect(usages.map(({ call }) => call)).toEqual(['chat', 'chat, embeddings', undefined]);
  });

  test('is that of the model where a former answer stands beside it', () => {
    const { context, usages } = makeContext({});
    const free = { model: 'm', input_tokens: 0, output_tokens: 0, cost_usd: 0, cached: true };
    const asked = { model: 'm', input_tokens: 1, output_tokens: 1, cost_usd: 1, call: 'chat openai' };
    for (const usage of [free, asked, free]) addUsage(context, usage);
    expect(usages.map(({ call }) => call)).toEqual([undefined, 'chat openai', 'chat openai']);
  });
});
