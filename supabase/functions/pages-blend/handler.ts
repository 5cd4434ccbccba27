import { z } from 'zod';
import { blendReadings } from '../_books/blend-readings.ts';
import { defineStage } from '../_millrace/mod.ts';
import { pages } from '../_pipelines/pages.ts';
import { type BlendResult, blendResult, ocrResult, textLayerResult } from '../_pipelines/pages-results.ts';

const input = z.object({
  needs: z.union([
    z.object({ text_layer: textLayerResult, ocr: ocrResult.nullable() }),
    // A run that began at ocr, or before there was a stage text_layer, has no text layer.
    z.object({ ocr: ocrResult }),
  ]),
});

/** Makes one text of a page: what was read on its image is compared with the text layer that the file may have below it. */
export async function blendPage({ needs }: z.output<typeof input>): Promise<BlendResult> {
  if (!('text_layer' in needs)) return blendReadings([needs.ocr]);
  const { text_layer: layer, ocr } = needs;
  return blendReadings(ocr ? [ocr, layer] : [layer]);
}

export const blend = defineStage({ pipeline: pages, stage: 'blend', input, output: blendResult, handler: blendPage });
