import { createRequire } from 'node:module';
import path from 'node:path';
import { createWorker, OEM, PSM, type Worker } from 'tesseract.js';
import type { PageText } from './page-text.ts';
import { type GreyPage, resolution } from './render-page.ts';

const dataPackage = createRequire(import.meta.url).resolve('@tesseract.js-data/eng/package.json');
const settings = {
  langPath: path.join(path.dirname(dataPackage), '4.0.0_best_int'),
  gzip: true,
  // Nothing is fetched, and nothing is written.
  cacheMethod: 'none',
  // A rejected call says it all; without this tesseract.js ends the process instead.
  errorHandler: () => {},
};

let starting: Promise<Worker> | undefined;

/** Reads the text on a page's picture. The first call loads the language, which takes half a second. */
export async function readImage({ pgm, scale }: GreyPage): Promise<Pick<PageText, 'text' | 'confidence' | 'lines'>> {
  starting ??= startTesseract();
  const tesseract = await starting;
  const { data } = await tesseract.recognize(pgm, {}, { text: true, blocks: true });
  const toPage = (pixels: number) => Math.round((pixels / scale) * 10) / 10;
  const lines = (data.blocks ?? [])
    .flatMap(({ paragraphs }) => paragraphs.flatMap((paragraph) => paragraph.lines))
    .map(({ text, confidence, bbox: { x0, y0, x1, y1 } }) => ({
      text: text.trim(),
      confidence: toShare(confidence),
      bbox: [toPage(x0), toPage(y0), toPage(x1), toPage(y1)] as [number, number, number, number],
    }))
    .filter(({ text }) => text !== '');
  return { text: data.text.trim(), confidence: lines.length > 0 ? toShare(data.confidence) : 0, lines };
}

async function startTesseract(): Promise<Worker> {
  const tesseract = await createWorker('eng', OEM.LSTM_ONLY, settings);
  // Its own default takes the page for one block, which loses headings.
  await tesseract.setParameters({ tessedit_pageseg_mode: PSM.AUTO, user_defined_dpi: String(resolution) });
  return tesseract;
}

function toShare(percent: number): number {
  return Math.round(percent) / 100;
}
