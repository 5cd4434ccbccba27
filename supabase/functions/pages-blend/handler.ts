import { z } from 'zod';
import { blendReadings } from '../_books/blend-readings.ts';
import { withBookFile } from '../_books/book-file.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { pages } from '../_pipelines/pages.ts';
import { type BlendResult, blendResult, ocrResult } from '../_pipelines/pages-results.ts';

const input = z.object({
  entity: z.object({ book_id: z.string(), number: z.int().positive() }),
  needs: z.object({ ocr: ocrResult }),
});

/** Makes one text of a page: what was read on its image is compared with the text layer that the file may have below it. */
export async function blendPage(
  { entity, needs: { ocr } }: z.output<typeof input>,
  { env }: HandlerContext,
): Promise<BlendResult> {
  if (ocr.by !== 'ocr') return blendReadings([ocr]);
  const layer = await withBookFile(entity.book_id, env, (file) => file.page(entity.number));
  return blendReadings([ocr, layer.reading]);
}

export const blend = defineStage({ pipeline: pages, stage: 'blend', input, output: blendResult, handler: blendPage });
