import { z } from 'zod';
import { draftChunks, dropDrafts } from '../_documents/chunk-rows.ts';
import { extractDocument, type SourceDocument, sourceDocument } from '../_documents/extract-document.ts';
import { readFacts } from '../_documents/read-facts.ts';
import { type Chunk, splitText } from '../_documents/split-text.ts';
import { storeText } from '../_documents/stored-text.ts';
import { defineStage, type HandlerContext, Waiting } from '../_millrace/mod.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { documentMonolith } from '../_pipelines/document-monolith.ts';
import { type MonolithResult, monolithResult } from '../_pipelines/document-monolith-results.ts';
import type { ExtractionResult, TextLocation } from '../_pipelines/documents-results.ts';
import { readInCall } from './read-in-call.ts';
import { summedUsage } from './sum-usage.ts';
import { timeWatch } from './time-left.ts';

/** How many chunks the model is asked about at a time. */
const atOnce = 4;

const input = z.object({ entity: sourceDocument });

/**
 * Reads a document's file, cuts its text and finds its facts, all in this call: whatever goes wrong at the end is paid for
 * from the beginning again. Throws a StageError; a RetriableError `timeout` when the call's time does not suffice.
 */
export async function processDocument(
  { entity }: z.output<typeof input>,
  given: HandlerContext,
): Promise<MonolithResult> {
  // Nobody would finish the attempt if an answer came later.
  const env = { ...given.env, LLM_MODE: 'inline' };
  const context = { ...given, env, reportUsage: summedUsage(given.reportUsage) };
  const checkTime = timeWatch(context);
  const { text, ...source } = await readDocument(entity, context, checkTime);
  const location = await storeText(entity.id, text, env);
  const chunks = splitText(entity.id, text);
  // A recording may be understood otherwise when the platform ended the function and the attempt is claimed again.
  await dropDrafts(context.attempt, entity.id, env, context.signal);
  const drafted = await draftChunks(context.attempt, entity.id, chunks, env, context.signal);
  return {
    ...source,
    ...location,
    ...drafted,
    facts: await readAllFacts(chunks, context, checkTime),
  };
}

/** A document's text with the other results of the extraction. */
async function readDocument(
  document: SourceDocument,
  context: HandlerContext,
  checkTime: (progress: string) => void,
): Promise<Omit<ExtractionResult, keyof TextLocation> & { text: string }> {
  const { mediaType: media_type, sourceBytes: source_bytes, ...read } = await extractDocument(document, context);
  checkTime('The file had just been fetched');
  if (!('external' in read)) return { media_type, source_bytes, duration_seconds: null, ...read };
  return { media_type, source_bytes, ...(await readInCall(read.external, document, context, checkTime)) };
}

/** The facts of all chunks, in their order, a few chunks at a time. */
async function readAllFacts(
  chunks: readonly Chunk[],
  context: HandlerContext,
  checkTime: (progress: string) => void,
): Promise<MonolithResult['facts']> {
  const facts: MonolithResult['facts'] = [];
  const left = chunks.entries();
  // The first failed chunk fails the attempt: the questions about the other chunks need not be paid for.
  const failed = new AbortController();
  const signal = AbortSignal.any([context.signal, failed.signal]);
  const readSome = async () => {
    for (const [index, chunk] of left) {
      if (failed.signal.aborted) return;
      checkTime(`The model had been asked about ${index} of ${chunks.length} chunks`);
      // Each question is one of its own, also to a service that knows questions again by this key.
      const submissionKey = `${context.submissionKey}-${chunk.id}`;
      const read = await readFacts(chunk, { ...context, signal, submissionKey });
      if (read instanceof Waiting) throw new Error('The model answers later, though it was to answer in the call.');
      facts[index] = { chunk_id: chunk.id, ...read };
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, readSome));
  } catch (error) {
    failed.abort(error);
    throw error;
  }
  return facts;
}

export const monolith = defineStage({
  pipeline: documentMonolith,
  stage: 'monolith',
  input,
  output: monolithResult,
  handler: processDocument,
  settings: [modelSettings],
});
