import { z } from 'zod';
import { chunkIds, draftChunks } from '../_documents/chunk-rows.ts';
import { splitPart } from '../_documents/split-text.ts';
import { loadText } from '../_documents/stored-text.ts';
import { defineStage, type HandedBack, type HandlerContext, handBack, stepsOf } from '../_millrace/mod.ts';
import { documents } from '../_pipelines/documents.ts';
import { type ChunkingResult, chunkingResult, textLocation } from '../_pipelines/documents-results.ts';

const input = z.object({ entity: z.object({ id: z.string() }), needs: z.object({ extraction: textLocation }) });

/** A part whose chunks an attempt has drafted: where the next part begins, and the chunks and tokens so far. */
const step = z.object({ attempt: z.int(), next: z.int(), chunks: z.int(), tokens: z.int() });
const nothing = { next: 0, chunks: 0, tokens: 0 };

/**
 * Cuts a document's text into chunks and drafts them, a long one part by part in a call each; they take effect when the attempt
 * completes. Throws a StageError.
 */
export async function chunkDocument(
  { entity, needs: { extraction } }: z.output<typeof input>,
  context: HandlerContext,
): Promise<ChunkingResult | HandedBack> {
  const { attempt, env, signal } = context;
  const { done, record } = await stepsOf('chunks', step, context);
  // A retry drafts all of it anew, since drafts are their attempt's own.
  const before = done.findLast((one) => one.attempt === attempt) ?? nothing;
  const ids: string[] = [];
  if (before.chunks > 0) {
    for await (const id of chunkIds(entity.id, env, signal, attempt)) {
      // A call that was cut off may have drafted some of this part.
      if (ids.length < before.chunks) ids.push(id);
    }
  }
  const text = await loadText(extraction, env);
  const { chunks, next } = splitPart(entity.id, text, { at: before.next, ids });
  const drafted = await draftChunks(attempt, entity.id, chunks, env, signal);
  const sums = { chunks: before.chunks + drafted.chunks, tokens: before.tokens + drafted.tokens };
  if (next === null) return { ...drafted, ...sums };
  await record({ attempt, next, ...sums });
  return handBack();
}

export const chunking = defineStage({
  pipeline: documents,
  stage: 'chunking',
  input,
  output: chunkingResult,
  handler: chunkDocument,
});
