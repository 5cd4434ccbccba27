import { PDFDocument } from '@cantoo/pdf-lib';
import { pageSize } from '../books/page-maker.ts';
import { standardFonts } from '../books/type-lines.ts';
import type { Block } from './read-blocks.ts';
import { setPages } from './set-pages.ts';

const made = new Date('2026-01-01T00:00:00Z');

/** Resolves to a PDF with a text layer, some pages long; the same bytes each time. */
export async function buildSamplePdf(title: string, blocks: Block[]): Promise<Uint8Array> {
  const document = await PDFDocument.create({ updateMetadata: false });
  document.setTitle(title);
  document.setCreationDate(made);
  document.setModificationDate(made);
  const fonts = {
    roman: await document.embedFont(standardFonts.roman),
    bold: await document.embedFont(standardFonts.bold),
    italic: await document.embedFont(standardFonts.italic),
  };
  for (const pieces of setPages(blocks)) {
    const sheet = document.addPage([pageSize.width, pageSize.height]);
    for (const { text, x, y, size, face } of pieces) {
      sheet.drawText(text, { x, y: pageSize.height - y, size, font: fonts[face] });
    }
  }
  return document.save();
}
