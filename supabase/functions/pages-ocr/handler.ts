import { z } from 'zod';
import { bookFileUrl } from '../_books/book-file.ts';
import { defineStage, type HandlerContext, type Waiting, waiting } from '../_millrace/mod.ts';
import { pages } from '../_pipelines/pages.ts';
import { ocrResult, type Reading } from '../_pipelines/pages-results.ts';
import { ocrService, pageOfJob, submitPage } from '../_services/ocr.ts';

const urlSeconds = 3600;

const input = z.object({ entity: z.object({ book_id: z.string(), number: z.int().positive() }) });

/** Sends a page's picture to the OCR service, whose job finishes the attempt. The service fetches the file itself. */
export async function sendPage(
  { entity: { book_id: bookId, number } }: z.output<typeof input>,
  context: HandlerContext,
): Promise<Waiting> {
  const documentUrl = await bookFileUrl(bookId, context.env, urlSeconds);
  return waiting(ocrService, await submitPage({ documentUrl, page: number }, context, context.submissionKey));
}

/** Turns the OCR service's finished job into a reading. Throws what the job failed of. */
export function readingOfJob(job: unknown): Reading {
  const { confidence, lines } = pageOfJob(job);
  return {
    by: 'ocr',
    confidence,
    lines: lines.map(({ text, bbox: [left, top, , bottom] }) => ({
      text,
      size: round(bottom - top),
      x: round(left),
      y: round(bottom),
    })),
  };
}

// A project without an OCR service reads books with good text layers all the same: only a scan needs its settings.
export const ocr = defineStage({
  pipeline: pages,
  stage: 'ocr',
  input,
  output: ocrResult,
  handler: sendPage,
  services: [ocrService],
  finish: readingOfJob,
});

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
