// Makes a page look as if it came from a scanner: a grey image, a little askew, with specks.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createCanvas, GlobalFonts } from '@napi-rs/canvas';
import { type Page, pageSize } from './page-maker.ts';
import { randomNumbers } from './random-numbers.ts';
import type { Face } from './type-lines.ts';

const dotsPerInch = 140;
const scale = dotsPerInch / 72;

// Tinos has the widths of Times, so that lines end where they end in the PDF's own text.
const files: Record<Face, string> = { roman: '400-normal', bold: '700-normal', italic: '400-italic' };
const require = createRequire(import.meta.url);
for (const [face, file] of Object.entries(files)) {
  GlobalFonts.register(
    readFileSync(require.resolve(`@fontsource/tinos/files/tinos-latin-${file}.woff`)),
    `scan-${face}`,
  );
}

/** Resolves to a JPEG of the whole page; the same for the same page and `seed`. */
export function scanPage(page: Page, seed: number): Promise<Buffer> {
  const random = randomNumbers(seed);
  const [width, height] = [Math.round(pageSize.width * scale), Math.round(pageSize.height * scale)];
  const canvas = createCanvas(width, height);
  const context = canvas.getContext('2d');
  context.fillStyle = 'rgb(246,246,246)';
  context.fillRect(0, 0, width, height);

  context.translate(width / 2, height / 2);
  context.rotate((random() - 0.5) * 0.012);
  context.scale(scale, scale);
  context.translate(-pageSize.width / 2, -pageSize.height / 2);
  context.fillStyle = 'rgb(38,38,38)';
  for (const { text, x, y, size, face } of page.pieces) {
    context.font = `${size}px scan-${face}`;
    context.fillText(text, x, y);
  }
  if (page.noteRule !== undefined) context.fillRect(64, page.noteRule, 60, 0.5);
  for (let speck = 0; speck < 120; speck += 1) {
    context.fillStyle = `rgba(60,60,60,${0.1 + random() * 0.4})`;
    const size = 0.2 + random() * 0.5;
    context.fillRect(random() * pageSize.width, random() * pageSize.height, size, size);
  }
  return canvas.encode('jpeg', 60);
}
