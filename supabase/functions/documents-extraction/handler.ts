import { z } from 'zod';
import {
  extractDocument,
  findSource,
  placeOf,
  type SourceDocument,
  sourceDocument,
} from '../_documents/extract-document.ts';
import { storeText } from '../_documents/stored-text.ts';
import { tidyText } from '../_documents/tidy-text.ts';
import { documents } from '../_pipelines/documents.ts';
import { type ExtractionResult, extractionResult } from '../_pipelines/documents-results.ts';
import { PermanentError } from '../_shared/errors.ts';
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
  const found = await extractDocument(document, context.env);
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
  const read = isOcrJob(job) ? pageText(job) : spokenText(job, context);
  const { env, entityId } = context;
  const { mediaType, sourceBytes } = await findSource(entityId, env);
  return {
    ...(await storeText(entityId, read.text, env)),
    ...read.about,
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

function pageText(job: unknown) {
  const text = tidyText(pageOfJob(job).text);
  if (text === '') {
    throw new PermanentError('no_text', 'The OCR service found no text in the picture: upload a sharper one.');
  }
  return { text, about: { by: 'ocr' as const, pages: 1, duration_seconds: null } };
}

function spokenText(job: unknown, context: FinishContext) {
  const { text, durationSeconds } = transcriptOfJob(job, context);
  const about = { by: 'transcription' as const, pages: null, duration_seconds: durationSeconds };
  return { text: tidyText(text), about };
}
