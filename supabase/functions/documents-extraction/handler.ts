import { z } from 'zod';
import {
  extractDocument,
  findSource,
  placeOf,
  type SourceDocument,
  sourceDocument,
} from '../_documents/extract-document.ts';
import { pictureText, spokenText } from '../_documents/read-elsewhere.ts';
import { locateText, storeText } from '../_documents/stored-text.ts';
import { documents } from '../_pipelines/documents.ts';
import { type ExtractionResult, extractionResult } from '../_pipelines/documents-results.ts';
import { jobOrigin } from '../_shared/job-client.ts';
import { OCR_SERVICE, pageOfJob, submitPage } from '../_shared/ocr-client.ts';
import { defineStage, type FinishContext, type HandlerContext, type Waiting, waiting } from '../_shared/stage.ts';
import { signedUrl } from '../_shared/storage-files.ts';
import { submitTranscription, TRANSCRIPTION_SERVICE, transcriptOfJob } from '../_shared/transcription-client.ts';

// As long as the stage waits for a job.
const urlSeconds = 3600;

const input = z.object({ entity: sourceDocument });

/**
 * Reads a document's text and stores it. Sound and pictures go to a service, whose job finishes the attempt. Run again, it
 * writes the same text to the same place.
 */
export async function extract(
  { entity: document }: z.output<typeof input>,
  context: HandlerContext,
): Promise<ExtractionResult | Waiting> {
  const found = await extractDocument(document, context);
  if ('external' in found) return submit(document, found.external, context);
  return {
    ...(await storeText(document.id, found.text, context.env)),
    by: found.by,
    media_type: found.mediaType,
    source_bytes: found.sourceBytes,
    pages: found.pages,
    duration_seconds: null,
  };
}

/** Stores the text that the job of either service has read. Throws what the job failed of, or a StageError. */
export async function finishExtraction(job: unknown, context: FinishContext): Promise<ExtractionResult> {
  const { text, ...read } = isOcrJob(job) ? pictureText(pageOfJob(job)) : spokenText(transcriptOfJob(job, context));
  const { env, entityId } = context;
  const { mediaType, sourceBytes, isExtracted } = await findSource(entityId, context);
  // A job that ends twice, or after a later run: the text that the chunks were cut from stays, and the engine says the rest.
  const location = isExtracted ? await locateText(entityId, text) : await storeText(entityId, text, env);
  return {
    ...location,
    ...read,
    media_type: mediaType,
    source_bytes: sourceBytes,
  };
}

// Each service's settings are asked for where a file needs it: texts can be read without either.
export const extraction = defineStage({
  pipeline: documents,
  stage: 'extraction',
  input,
  output: extractionResult,
  handler: extract,
  finish: finishExtraction,
});

async function submit(
  document: SourceDocument,
  service: 'transcription' | 'ocr',
  context: HandlerContext,
): Promise<Waiting> {
  const { env, callbackUrl, idempotencyKey, signal } = context;
  const url = await signedUrl(placeOf(document), env, urlSeconds);
  const request = { env, callbackUrl, idempotencyKey, metadata: jobOrigin(context), signal };
  if (service === 'ocr') {
    return waiting({ service: OCR_SERVICE, jobId: await submitPage({ ...request, documentUrl: url, page: 1 }) });
  }
  return waiting({ service: TRANSCRIPTION_SERVICE, jobId: await submitTranscription({ ...request, audioUrl: url }) });
}

/** The OCR service's jobs have an id and a status; a transcription is an answer alone. */
function isOcrJob(job: unknown): boolean {
  return z.object({ job_id: z.string(), status: z.string() }).safeParse(job).success;
}
