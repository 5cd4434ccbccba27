import type { Usage } from '../engine/engine-contract.ts';

type Report = (usage: Usage) => void;

/** The sums reported so far. Each attempt has a report function of its own. */
const reported = new WeakMap<Report, Usage>();

/**
 * Reports the usage of an answer, added to that of the attempt's earlier answers: `reportUsage` itself keeps its last call alone.
 *
 * @internal
 */
export function addUsage(context: { reportUsage: Report }, usage: Usage): void {
  const before = reported.get(context.reportUsage);
  const sum = before ? added(before, usage) : usage;
  reported.set(context.reportUsage, sum);
  context.reportUsage(sum);
}

/** Adds two usages. The sum of a known and an unknown cost is unknown. */
function added(one: Usage, other: Usage): Usage {
  const { cached: _, batch: __, call: ___, priced_at, ...flags } = { ...one, ...other };
  const cost = plus(one.cost_usd, other.cost_usd);
  const read = (one.cached_input_tokens ?? 0) + (other.cached_input_tokens ?? 0);
  const written = (one.cache_write_tokens ?? 0) + (other.cache_write_tokens ?? 0);
  // A former answer has no call, and a client's may have one that it does not name.
  const call = one.cached
    ? other.call
    : other.cached
      ? one.call
      : one.call && other.call && listed(one.call, other.call);
  const prompt = listed(one.prompt, other.prompt);
  return {
    ...flags,
    model: listed(one.model, other.model) ?? other.model,
    ...(prompt && { prompt }),
    ...(call && { call }),
    input_tokens: plus(one.input_tokens, other.input_tokens),
    output_tokens: plus(one.output_tokens, other.output_tokens),
    cost_usd: cost,
    ...(read > 0 && { cached_input_tokens: read }),
    ...(written > 0 && { cache_write_tokens: written }),
    ...(priced_at && cost !== null && { priced_at }),
    ...(one.batch && other.batch && { batch: true }),
    ...(one.cached && other.cached && { cached: true }),
  };
}

const plus = (one: number | null, other: number | null) => (one === null || other === null ? null : one + other);

/** Joins two lists of names, each name once. */
function listed(one: string | undefined, other: string | undefined): string | undefined {
  const names = [one, other].flatMap((name) => name?.split(', ') ?? []);
  return [...new Set(names)].join(', ') || undefined;
}
