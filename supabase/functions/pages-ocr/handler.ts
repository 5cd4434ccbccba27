import { z } from 'zod';
import { bookFileUrl, withBookFile } from '../_books/book-file.ts';
import { defineStage, type HandlerContext, type Waiting, waiting } from '../_millrace/mod.ts';
import { pages } from '../_pipelines/pages.ts';
import { ocrResult, type Reading } from '../_pipelines/pages-results.ts';
import { ocrService, pageOfJob, submitPage } from '../_services/ocr.ts';

// A scan's text layer is somebody's earlier reading: it is believed only when next to nothing in it looks misread.
const goodLayer = 0.98;
// A text layer without a scan is the book's own, and still may be in a font that nobody can read.
const readableLayer = 0.6;
const urlSeconds = 3600;

const input = z.object({ entity: z.object({ book_id: z.string(), number: z.int().positive() }) });

/** Reads a page's text where the file has it; otherwise its picture goes to the OCR service, whose job finishes the attempt. */
export function readPage(
  { entity: { book_id: bookId, number } }: z.output<typeof input>,
  context: HandlerContext,
): Promise<Reading | Waiting> {
  const { env } = context;
  return withBookFile(bookId, env, async (file) => {
    const { reading, hasPicture, coveredByImage } = await file.page(number);
    if (!hasPicture || reading.confidence >= (coveredByImage ? goodLayer : readableLayer)) return reading;
    const documentUrl = await bookFileUrl(file.path, env, urlSeconds);
    return waiting(ocrService, await submitPage({ documentUrl, page: number }, context, context.submissionKey));
  });
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

// Without an OCR service set up, books with good text layers are read all the same: only a scan needs its settings.
export const ocr = defineStage({
  pipeline: pages,
  stage: 'ocr',
  input,
  output: ocrResult,
  handler: readPage,
  services: [ocrService],
  finish: readingOfJob,
});

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
