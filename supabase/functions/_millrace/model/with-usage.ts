import { z } from 'zod';
import type { HandlerContext } from '../stage/stage.ts';
import { addUsage } from './attempt-usage.ts';
import type { PriceTable } from './model-prices.ts';
import { type Prompt, promptVersion } from './prompt.ts';
import { type AnswerUsage, mostTokens, type ReportedTokens, usageOfTokens } from './token-usage.ts';

const count = z.number().min(0).max(mostTokens).nullish();
/** The counts of tokens as clients give them: each names those that it has. */
const details = z.object({ cached_tokens: count, cache_write_tokens: count }).nullish();
const clientUsage = z.object({
  // openai's Responses, and Anthropic, whose input leaves the cache out.
  input_tokens: count,
  output_tokens: count,
  input_tokens_details: details,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  // Anthropic, of the answers of a batch.
  service_tier: z.unknown().optional(),
  // Chat completions.
  prompt_tokens: count,
  completion_tokens: count,
  prompt_tokens_details: details,
  // The AI SDK's functions, and its LanguageModel itself.
  inputTokens: z.union([count, z.object({ total: count, cacheRead: count, cacheWrite: count })]),
  outputTokens: z.union([count, z.object({ total: count })]),
  cachedInputTokens: count,
  inputTokenDetails: z.object({ cacheReadTokens: count, cacheWriteTokens: count }).nullish(),
});
type ClientUsage = z.output<typeof clientUsage>;
/** Kinds of calls, by what openai's and Anthropic's answers say that they are. */
const kinds: Record<string, string> = {
  response: 'chat',
  'chat.completion': 'chat',
  message: 'chat',
  list: 'embeddings',
};
const result = z.object({
  object: z.string().optional().catch(undefined),
  type: z.string().optional().catch(undefined),
  model: z.string().nullish().catch(null),
  response: z.object({ modelId: z.string().nullish() }).nullish().catch(null),
  usage: clientUsage.nullish().catch(null),
  totalUsage: clientUsage.nullish().catch(null),
});

/**
 * Reports what the answer of any client used up, and returns that answer: of openai, of Anthropic's SDK, of the AI SDK's
 * generateText() or of its LanguageModel. Several answers of one attempt add up. An answer that names no tokens is marked as
 * unreported, and a model without a known price as unpriced.
 *
 * `model`: the model's name, where the answer does not say it.
 * `prices`: the project's own, which count before the published ones.
 *
 * @example
 * ```ts
 * const client = { create: async () => ({ model: 'gpt-6-luna', usage: { input_tokens: 90, output_tokens: 12 } }) };
 *
 * const readNote = async (context: HandlerContext) => withUsage(await client.create(), context);
 * ```
 */
export function withUsage<Result>(
  answer: Result,
  context: Pick<HandlerContext, 'reportUsage'>,
  { model, prompt, prices }: { model?: string; prompt?: Prompt; prices?: PriceTable } = {},
): Result {
  const usage = usageOfAnswer(answer, { model, prices });
  addUsage(context, { ...usage, ...(prompt && { prompt: promptVersion(prompt) }) });
  return answer;
}

/**
 * Returns what the answer of any client used up, with its cost.
 *
 * @internal
 */
export function usageOfAnswer(
  answer: unknown,
  { model, prices }: { model?: string | undefined; prices?: PriceTable | undefined },
): AnswerUsage {
  const read = result.safeParse(answer).data;
  const name = model ?? read?.model ?? read?.response?.modelId ?? 'unknown';
  const given = read?.totalUsage ?? read?.usage ?? null;
  const isBatch = read?.usage?.service_tier === 'batch';
  const call = kinds[read?.object ?? read?.type ?? ''];
  return { ...usageOfTokens(name, tokensOf(given), { table: prices, isBatch }), ...(call && { call }) };
}

function tokensOf(given: ClientUsage | null): ReportedTokens {
  const { inputTokens: input, outputTokens: output } = given ?? {};
  if (input != null || output != null) {
    const inner = typeof input === 'object' ? input : null;
    return {
      input: (inner ? inner.total : (input as number | null)) ?? null,
      cached: inner?.cacheRead ?? given?.inputTokenDetails?.cacheReadTokens ?? given?.cachedInputTokens ?? 0,
      cacheWrite: inner?.cacheWrite ?? given?.inputTokenDetails?.cacheWriteTokens ?? 0,
      output: (typeof output === 'object' ? output?.total : output) ?? null,
    };
  }
  const [read, written] = [given?.cache_read_input_tokens ?? 0, given?.cache_creation_input_tokens ?? 0];
  const inside = given?.input_tokens_details ?? given?.prompt_tokens_details;
  const all = given?.input_tokens ?? given?.prompt_tokens ?? null;
  return {
    input: all === null ? null : all + read + written,
    cached: read + (inside?.cached_tokens ?? 0),
    cacheWrite: written + (inside?.cache_write_tokens ?? 0),
    output: given?.output_tokens ?? given?.completion_tokens ?? null,
  };
}
