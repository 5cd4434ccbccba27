/** US dollars for a million tokens of one model. */
export interface ModelPrice {
  input: number;
  /** Input that the provider reads from its cache of prompts; without it, input's price. */
  cached?: number;
  /** Input that the provider writes into its cache of prompts; without it, input's price. */
  cacheWrite?: number;
  output: number;
  /** The part of these prices that a batch costs; without it, the model has no batch price. */
  batch?: number;
  /** A question of more input tokens costs so many times as much, for its input and for its output. */
  long?: { above: number; input: number; output: number };
}

/** Prices by the names of models, as they were on one day. */
export interface PriceTable {
  /** The day, such as 2026-11-29. */
  date: string;
  models: Readonly<Record<string, ModelPrice>>;
}

const openai = { batch: 0.5, long: { above: 272_000, input: 2, output: 1.5 } };
const anthropic = { batch: 0.5 };

/**
 * The providers' own prices, as their pages had them on that day: developers.openai.com/api/docs/pricing and
 * platform.claude.com/docs/en/about-claude/pricing. A model that is not here costs what the project says, or is unpriced.
 */
export const publishedPrices: PriceTable = {
  date: '2026-11-18',
  models: {
    'gpt-6.1-terra': { input: 1, cached: 0.05, cacheWrite: 1.25, output: 5, ...openai },
    'gpt-6.1-sol': { input: 2, cached: 0.1, cacheWrite: 2.5, output: 10, ...openai },
    'gpt-6-astra': { input: 10, cached: 1, cacheWrite: 12.5, output: 50, ...openai },
    'gpt-6-sol': { input: 2, cached: 0.2, cacheWrite: 2.5, output: 10, ...openai },
    'gpt-6-luna': { input: 0.1, cached: 0.01, cacheWrite: 0.125, output: 0.5, ...openai },
    'claude-fable-5-1': { input: 10, cached: 0.25, cacheWrite: 12.5, output: 50, ...anthropic },
    'claude-opus-5-5': { input: 4, cached: 0.2, cacheWrite: 5, output: 20, ...anthropic },
    'claude-opus-5': { input: 5, cached: 0.5, cacheWrite: 6.25, output: 25, ...anthropic },
    'claude-sonnet-5-5': { input: 2, cached: 0.1, cacheWrite: 2.5, output: 10, ...anthropic },
    'claude-haiku-5-5': {
      ...{ input: 0.1, cached: 0.01, cacheWrite: 0.125, output: 0.5 },
      ...{ ...anthropic, long: { above: 100_000, input: 5, output: 5 } },
    },
    'claude-haiku-4-5': { input: 1, cached: 0.1, cacheWrite: 1.25, output: 5, ...anthropic },
  },
};

/** The tokens of one answer. `input` counts all input, with what was read from the cache and written into it. */
export interface TokenCounts {
  input: number;
  cached: number;
  cacheWrite: number;
  output: number;
}

/**
 * Finds the price of a model, and the day it is of: the first table that has the model wins. A name with a day behind it, such as
 * gpt-6-sol-2026-09-22, is also looked for without that day.
 *
 * @internal
 */
export function priceOf(model: string, tables: readonly PriceTable[]): { price: ModelPrice; date: string } | null {
  // An answer may name no model.
  for (const name of [model, `${model}`.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, '')]) {
    for (const { models, date } of tables) {
      const price = Object.hasOwn(models, name) ? models[name] : undefined;
      if (price) return { price, date };
    }
  }
  return null;
}

/**
 * Returns what so many tokens cost in US dollars. Some services count the cache beside the input: no part of the cost is negative.
 *
 * @internal
 */
export function costOf(tokens: TokenCounts, price: ModelPrice, share = 1): number {
  const { input, cached, cacheWrite, output } = tokens;
  const isLong = price.long !== undefined && input > price.long.above;
  const [inputTimes, outputTimes] = isLong && price.long ? [price.long.input, price.long.output] : [1, 1];
  const read = Math.max(0, input - cached - cacheWrite) * price.input;
  const kept = cached * (price.cached ?? price.input) + cacheWrite * (price.cacheWrite ?? price.input);
  return (((read + kept) * inputTimes + output * price.output * outputTimes) * share) / 1_000_000;
}
