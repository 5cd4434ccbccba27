import type { Usage } from '../engine/engine-contract.ts';
import { costOf, type PriceTable, priceOf, publishedPrices } from './model-prices.ts';

/** Which tokens an answer says it used up; null where it does not say. */
export interface ReportedTokens {
  input: number | null;
  /** Of the input, those read from the provider's cache. */
  cached: number;
  /** Of the input, those written into the provider's cache. */
  cacheWrite: number;
  output: number | null;
}

/** The usage of one answer of a model, as an attempt keeps it. */
export type AnswerUsage = Pick<Usage, 'model' | 'input_tokens' | 'output_tokens' | 'cost_usd'> & Partial<Usage>;

/** Prices that count before the published ones: those of settings, then those of the project's table. */
export interface OwnPrices {
  settings?: { input?: number | undefined; cached?: number | undefined; output?: number | undefined } | undefined;
  table?: PriceTable | undefined;
  /** Whether the answer came from a provider's batch, at the part of the price that a batch costs. */
  isBatch?: boolean | undefined;
}

/**
 * Returns the usage of an answer with its cost. Tokens that were not reported are null, never 0, and marked `unreported`. A model
 * without a known price has the cost null, marked `unpriced`. `priced_at` is the day of the price table.
 *
 * @internal
 */
export function usageOfTokens(model: string, tokens: ReportedTokens, own: OwnPrices = {}): AnswerUsage {
  const { input, cached, cacheWrite, output } = tokens;
  const usage: AnswerUsage = {
    model,
    input_tokens: input,
    output_tokens: output,
    cost_usd: null,
    ...(cached > 0 && { cached_input_tokens: cached }),
    ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }),
    ...(own.isBatch && { batch: true }),
  };
  if (input === null || output === null) return { ...usage, unreported: true };
  const found = settingsPrice(own) ?? priceOf(model, [...(own.table ? [own.table] : []), publishedPrices]);
  const share = own.isBatch ? found?.price.batch : 1;
  if (!found || share === undefined) return { ...usage, unpriced: true };
  const cost = costOf({ input, cached, cacheWrite, output }, found.price, share);
  return { ...usage, cost_usd: cost, ...(found.date && { priced_at: found.date }) };
}

/** Returns the price that settings name. Settings know no batch price: both providers ask half. */
function settingsPrice({ settings }: OwnPrices) {
  const { input, cached, output } = settings ?? {};
  if (input === undefined || output === undefined) return null;
  return { price: { input, output, cached: cached ?? input, batch: 0.5 }, date: '' };
}

/**
 * The most tokens of one answer that are believed: no published model reads or writes more.
 *
 * @internal
 */
export const mostTokens = 10_000_000;

/**
 * Reads a number of tokens. Some services leave their counts out, or send them as text or as -1: null. A count that no model
 * reaches is null, too: its cost would use up budgets and quotas.
 *
 * @internal
 */
export function countOf(tokens: unknown): number | null {
  return typeof tokens === 'number' && tokens >= 0 && tokens <= mostTokens ? tokens : null;
}
