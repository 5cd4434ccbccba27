import { z } from 'zod';
import { withBookFile } from '../_books/book-file.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { pages } from '../_pipelines/pages.ts';
import { textLayerResult } from '../_pipelines/pages-results.ts';

// A scan's text layer is somebody's earlier reading: it is believed only when next to nothing in it looks misread.
const goodLayer = 0.98;
// A text layer without a scan is the book's own, and still may be in a font that nobody can read.
const readableLayer = 0.6;

const input = z.object({ entity: z.object({ book_id: z.string(), number: z.int().positive() }) });

/** Reads the text that the file has of a page, and says whether the OCR service must read its picture too. */
export function readTextLayer(
  { entity: { book_id: bookId, number } }: z.output<typeof input>,
  { env }: HandlerContext,
): Promise<z.output<typeof textLayerResult>> {
  return withBookFile(bookId, env, async (file) => {
    const { reading, hasPicture, coveredByImage } = await file.page(number);
    const enough = coveredByImage ? goodLayer : readableLayer;
    return { ...reading, needs_ocr: hasPicture && reading.confidence < enough };
  });
}

export const textLayer = defineStage({
  pipeline: pages,
  stage: 'text_layer',
  input,
  output: textLayerResult,
  handler: readTextLayer,
});
