import type { Response as ModelResponse } from 'openai/resources/responses/responses';
import type { z } from 'zod';
import type { ModelTurn } from '../engine/engine-contract.ts';
import { PermanentError, RetriableError, type StageError } from '../errors.ts';
import { parseJson } from '../parse-json.ts';
import { invalidOutput, storageFault } from '../stage/validate-result.ts';
import { parseForm } from './answer-form.ts';
import { modelCall } from './model-call.ts';
import { failedResponse } from './model-errors.ts';
import type { PriceTable } from './model-prices.ts';
import type { Provider } from './model-settings.ts';
import { countOf, usageOfTokens } from './token-usage.ts';

/**
 * Returns whether a response is still being made.
 *
 * @internal
 */
export function isUnfinished(response: ModelResponse): boolean {
  return response.status === 'queued' || response.status === 'in_progress';
}

/**
 * Why a response that has ended cannot be used, or null when it can.
 *
 * @internal
 */
export function responseFault(response: ModelResponse, prefix?: string): StageError | null {
  if (response.status === 'cancelled') return new RetriableError('job_cancelled', 'The response was cancelled.');
  if (response.status === 'failed') {
    return failedResponse(response.error ?? { code: 'unknown', message: 'no reason given' }, prefix);
  }
  if (response.status === 'incomplete') {
    const reason = response.incomplete_details?.reason ?? 'unknown';
    if (reason === 'content_filter') return new PermanentError('content_filtered', 'The answer was filtered.');
    return new RetriableError('incomplete_output', `The answer was cut off: ${reason}`);
  }
  return null;
}

/**
 * The answer of a response that has ended, in the form of `schema`. Throws as askModel() does.
 *
 * @internal
 */
export function readAnswer<S extends z.ZodObject>(response: ModelResponse, schema: S, prefix?: string): z.output<S> {
  const ended = responseFault(response, prefix);
  if (ended) throw ended;
  const refusal = partsOf(response).find((part) => part.type === 'refusal');
  if (refusal) throw new PermanentError('model_refused', `The model declined to answer: ${refusal.refusal}`);
  if (textOf(response).trim() === '') throw new RetriableError('empty_answer', 'The model ended without an answer.');
  const value = answerValue(response);
  const fault = storageFault(value, 'output');
  if (fault) throw new RetriableError('invalid_output', `The model's answer cannot be kept: ${fault}`);
  const parsed = parseForm(schema, value);
  if (!parsed.success) throw invalidOutput(parsed.error, value, { retriable: true });
  return parsed.data;
}

/**
 * The answer of a response as JSON, before any schema has seen it.
 *
 * @internal
 */
export function answerValue(response: ModelResponse): unknown {
  return parseJson(textOf(response));
}

function textOf(response: ModelResponse): string {
  return partsOf(response)
    .map((part) => (part.type === 'output_text' ? part.text : ''))
    .join('');
}

function partsOf(response: ModelResponse) {
  // Some services send null for an empty list.
  return (response.output ?? []).flatMap((item) => (item.type === 'message' ? (item.content ?? []) : []));
}

/**
 * Returns the usage of a response, with its cost in US dollars where a price of its model is known.
 *
 * @internal
 */
export function usageOf(
  response: ModelResponse,
  prompt: string,
  { prices, url }: Pick<Provider, 'prices'> & { url?: string },
  table?: PriceTable | undefined,
): ModelTurn['usage'] {
  const { input_tokens, output_tokens, input_tokens_details: details } = response.usage ?? {};
  const tokens = {
    input: countOf(input_tokens),
    output: countOf(output_tokens),
    cached: countOf(details?.cached_tokens) ?? 0,
    cacheWrite: countOf(details?.cache_write_tokens) ?? 0,
  };
  const isBatch = response.metadata?.price === 'batch';
  const { model, ...usage } = usageOfTokens(response.model, tokens, { settings: prices, table, isBatch });
  return { model, prompt, ...(url && { call: modelCall('chat', url) }), ...usage } as ModelTurn['usage'];
}
