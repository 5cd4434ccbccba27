import { z } from 'zod';
import { draftChunks } from '../_documents/chunk-rows.ts';
import { splitText } from '../_documents/split-text.ts';
import { loadText } from '../_documents/stored-text.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { documents } from '../_pipelines/documents.ts';
import { type ChunkingResult, chunkingResult, textLocation } from '../_pipelines/documents-results.ts';

const input = z.object({ entity: z.object({ id: z.string() }), needs: z.object({ extraction: textLocation }) });

/** Cuts a document's text into chunks and drafts them; they take effect when the attempt completes. Throws a StageError. */
export async function chunkDocument(
  { entity, needs: { extraction } }: z.output<typeof input>,
  { attempt, env, signal }: HandlerContext,
): Promise<ChunkingResult> {
  const chunks = splitText(entity.id, await loadText(extraction, env));
  return draftChunks(attempt, entity.id, chunks, env, signal);
}

export const chunking = defineStage({
  pipeline: documents,
  stage: 'chunking',
  input,
  output: chunkingResult,
  handler: chunkDocument,
});
