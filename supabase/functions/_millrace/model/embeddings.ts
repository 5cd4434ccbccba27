import OpenAI from 'openai';
import { z } from 'zod';
import { MisconfiguredError, storableText } from '../errors.ts';
import { authToken, httpUrl, price, readSettings } from '../settings.ts';
import type { HandlerContext } from '../stage/stage.ts';
import { traceHeaders } from '../trace.ts';
import { addUsage } from './attempt-usage.ts';
import { modelCall } from './model-call.ts';
import { modelClient } from './model-client.ts';
import { bodyOf, modelError } from './model-errors.ts';
import { ownSignal } from './own-signal.ts';
import { countOf, usageOfTokens } from './token-usage.ts';

/** Where the model for embeddings is and what it costs. */
export const embeddingSettings = z.object({
  LLM_URL: httpUrl.describe('set the base URL of an OpenAI-compatible API, such as https://api.openai.com/v1'),
  LLM_AUTH_TOKEN: authToken.optional(),
  LLM_EMBEDDING_MODEL: z
    .string()
    .describe('set the name of an embedding model that the API at LLM_URL offers, such as text-embedding-3-small'),
  LLM_PRICE_EMBEDDING: price('a million tokens', '0.02')
    .optional()
    .describe('set US dollars for a million tokens that are embedded, or remove it'),
});

/**
 * The texts as vectors, in their order, by the model LLM_EMBEDDING_MODEL at LLM_URL; texts that mean alike have vectors with a
 * high cosineSimilarity(). Reports what it used up. Throws a StageError as askModel() does.
 *
 * `dimensions`: how long the vectors are, of a model that can shorten them; left out, as long as it makes them.
 *
 * @example
 * ```ts
 * const [wanted = [], given = []] = await embedTexts(['clocks and watches', entity.body], context);
 * const isWanted = cosineSimilarity(wanted, given) > 0.3;
 * ```
 */
export async function embedTexts(
  texts: readonly string[],
  context: Pick<HandlerContext, 'env' | 'signal' | 'traceId' | 'submission' | 'reportUsage'>,
  { dimensions }: { dimensions?: number } = {},
): Promise<number[][]> {
  const settings = readSettings(embeddingSettings, context.env);
  const { signal, done } = ownSignal(context.signal);
  try {
    const asking = modelClient({ url: settings.LLM_URL, token: settings.LLM_AUTH_TOKEN }).embeddings.create(
      { model: settings.LLM_EMBEDDING_MODEL, input: texts.map(storableText), dimensions },
      { signal, headers: traceHeaders(context) },
    );
    const answer = await bodyOf(asking);
    const vectors = vectorsOf(answer?.data, texts.length);
    const tokens = countOf(answer.usage?.prompt_tokens);
    const { LLM_PRICE_EMBEDDING: priced } = settings;
    const reported = { input: tokens, cached: 0, cacheWrite: 0, output: 0 };
    const output = priced === undefined ? undefined : 0;
    const usage = usageOfTokens(answer.model, reported, { settings: { input: priced, output } });
    addUsage(context, { ...usage, call: modelCall('embeddings', settings.LLM_URL) });
    const other = dimensions && vectors.find(({ length }) => length !== dimensions);
    if (other) throw otherLength(other.length, dimensions);
    return vectors;
  } catch (error) {
    throw error instanceof OpenAI.NotFoundError ? unknownModel(error) : modelError(error);
  } finally {
    done();
  }
}

/**
 * How alike two vectors are: 1 for the same direction, 0 for nothing in common. Throws where their lengths differ.
 *
 * @example
 * ```ts
 * const alike = cosineSimilarity([1, 0], [0.6, 0.8]);
 * ```
 */
export function cosineSimilarity(one: readonly number[], other: readonly number[]): number {
  if (one.length !== other.length)
    throw new Error(`vectors of ${one.length} and ${other.length} numbers were compared`);
  const dot = (a: readonly number[], b: readonly number[]) =>
    a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
  const lengths = Math.sqrt(dot(one, one) * dot(other, other));
  return lengths === 0 ? 0 : dot(one, other) / lengths;
}

const embeddingList = z.array(z.object({ index: z.int(), embedding: z.array(z.number()).min(1) }));

function vectorsOf(data: unknown, count: number): number[][] {
  const parsed = embeddingList.safeParse(data);
  if (!parsed.success || parsed.data.length !== count) {
    throw new MisconfiguredError(
      'LLM_URL answers, but not as OpenAI’s embeddings do: set the base URL of an API that offers POST /embeddings.',
    );
  }
  return parsed.data.sort((one, other) => one.index - other.index).map(({ embedding }) => embedding);
}

function otherLength(length: number, dimensions: number): MisconfiguredError {
  return new MisconfiguredError(
    `The embedding model makes vectors of ${length} numbers, and not of ${dimensions}: set LLM_EMBEDDING_MODEL to one that can.`,
  );
}

function unknownModel({ message }: Error): MisconfiguredError {
  return new MisconfiguredError('The embedding model was not found: correct LLM_URL or LLM_EMBEDDING_MODEL.', message);
}
