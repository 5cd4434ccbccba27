import { z } from 'zod';
import {
  extractInCalls,
  findSource,
  placeOf,
  type SourceDocument,
  sourceDocument,
} from '../_documents/extract-document.ts';
import { dropParts } from '../_documents/pdf-parts.ts';
import { pictureText, spokenText } from '../_documents/read-elsewhere.ts';
import { locateText, storeText } from '../_documents/stored-text.ts';
import {
  defineStage,
  type FinishContext,
  HandedBack,
  type HandlerContext,
  type Waiting,
  waiting,
} from '../_millrace/mod.ts';
import { documents } from '../_pipelines/documents.ts';
import { type ExtractionResult, extractionResult } from '../_pipelines/documents-results.ts';
import { ocrService, pageOfJob, submitPage } from '../_services/ocr.ts';
import { signedUrl } from '../_services/storage-files.ts';
import { submitTranscription, transcription, transcriptOfJob } from '../_services/transcription.ts';

// As long as the stage waits for a job.
const urlSeconds = 3600;

const input = z.object({ entity: sourceDocument });

/**
 * Reads a document's text and stores it. Sound and pictures go to a service, whose job finishes the attempt. A long
 * text takes several calls. Run again, it writes the same text to the same place.
 */
export async function extract(
  { entity: document }: z.output<typeof input>,
  context: HandlerContext,
): Promise<ExtractionResult | Waiting | HandedBack> {
  const found = await extractInCalls(document, context);
  if (found instanceof HandedBack) return found;
  if ('external' in found) return submit(document, found.external, context);
  const location = await storeText(document.id, found.text, context.env);
  if (found.hasParts) await dropParts(document.id, context);
  return {
    ...location,
    by: found.by,
    media_type: found.mediaType,
    source_bytes: found.sourceBytes,
    pages: found.pages,
    duration_seconds: null,
    ...(found.partly_read && { partly_read: found.partly_read }),
    ...(found.doubts && { doubts: found.doubts }),
    ...(found.guessed_charset && { guessed_charset: found.guessed_charset }),
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
  services: [ocrService, transcription],
  finish: finishExtraction,
});

async function submit(
  document: SourceDocument,
  service: 'transcription' | 'ocr',
  context: HandlerContext,
): Promise<Waiting> {
  const url = await signedUrl(placeOf(document), context.env, urlSeconds);
  if (service === 'transcription') return waiting(transcription, await submitTranscription(url, context));
  return waiting(ocrService, await submitPage({ documentUrl: url, page: 1 }, context, context.submissionKey));
}

/** The OCR service's jobs have an id and a status; a transcription is an answer alone. */
function isOcrJob(job: unknown): boolean {
  return z.object({ job_id: z.string(), status: z.string() }).safeParse(job).success;
}
