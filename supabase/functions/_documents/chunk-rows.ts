import { z } from 'zod';
import type { Env } from '../_millrace/mod.ts';
import type { ChunkingResult } from '../_pipelines/documents-results.ts';
import { projectClient, projectError } from '../_services/project-client.ts';
import type { Chunk } from './split-text.ts';

/** So many rows go in a request; the Data API cuts answers off at a thousand. */
const rowsAtOnce = 500;

/**
 * Writes what an attempt has cut to `chunk_draft`: it becomes the document's chunks when the attempt completes. Rows that are
 * there already stay, so that a repetition changes nothing. Returns what the stage stores of them; throws a StageError.
 */
export async function draftChunks(
  attempt: number,
  documentId: string,
  chunks: readonly Chunk[],
  env: Env,
  signal: AbortSignal,
): Promise<ChunkingResult> {
  const { rows } = projectClient(env);
  for (let from = 0; from < chunks.length; from += rowsAtOnce) {
    const drafts = chunks
      .slice(from, from + rowsAtOnce)
      .map((chunk) => ({ attempt_id: attempt, document_id: documentId, ...chunk }));
    const { error, status } = await rows
      .from('chunk_draft')
      .upsert(drafts, { onConflict: 'attempt_id,document_id,id', ignoreDuplicates: true })
      .abortSignal(signal);
    signal.throwIfAborted();
    if (error) throw projectError(status, error, `Drafting the chunks of document ${documentId}`);
  }
  return {
    chunks: chunks.length,
    tokens: chunks.reduce((sum, { tokens }) => sum + tokens, 0),
    output_location: `chunk?document_id=eq.${documentId}`,
  };
}

/**
 * Deletes what an earlier claim of the attempt has drafted: needed where the attempt may find another text each time.
 * Throws a StageError.
 */
export async function dropDrafts(attempt: number, documentId: string, env: Env, signal: AbortSignal): Promise<void> {
  const { error, status } = await projectClient(env)
    .rows.from('chunk_draft')
    .delete()
    .eq('attempt_id', attempt)
    .eq('document_id', documentId)
    .abortSignal(signal);
  signal.throwIfAborted();
  if (error) throw projectError(status, error, `Dropping drafts of document ${documentId}`);
}

const place = z.object({ id: z.string(), ordinal: z.int() });

/**
 * The ids of a document's chunks, or of what an attempt has drafted of them, in order, read as they are asked for. Throws a
 * StageError.
 */
export async function* chunkIds(
  documentId: string,
  env: Env,
  signal: AbortSignal,
  attempt?: number,
): AsyncGenerator<string> {
  const { rows } = projectClient(env);
  for (let after = 0; ; ) {
    const { data, error, status } = await rows
      .from(attempt === undefined ? 'chunk' : 'chunk_draft')
      .select('id, ordinal')
      .match({ document_id: documentId, ...(attempt !== undefined && { attempt_id: attempt }) })
      .gt('ordinal', after)
      .order('ordinal')
      .limit(rowsAtOnce)
      .abortSignal(signal);
    signal.throwIfAborted();
    if (error) throw projectError(status, error, `Reading the chunks of document ${documentId}`);
    const page = z.array(place).parse(data);
    for (const { id } of page) yield id;
    const last = page.at(-1);
    if (!last || page.length < rowsAtOnce) return;
    after = last.ordinal;
  }
}
