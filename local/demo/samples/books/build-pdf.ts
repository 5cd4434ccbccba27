// The sample book as a PDF. Some pages are images, as from a scanner, and some of these lie over a poor text layer.
import { PDFDocument, type PDFFont, type PDFPage, TextRenderingMode } from '@cantoo/pdf-lib';
import { misread } from './misread.ts';
import { pageSize } from './page-maker.ts';
import { type SamplePage, sampleBook } from './sample-book.ts';
import { scanPage } from './scan-page.ts';
import { type Face, standardFonts } from './type-lines.ts';

type Fonts = Record<Face, PDFFont>;

const printed = new Date('2026-01-01T00:00:00Z');

/** Builds the PDF in about a second. Its bytes are the same each time. */
export async function buildSampleBook(): Promise<Uint8Array> {
  const document = await PDFDocument.create({ updateMetadata: false });
  document.setTitle(sampleBook.title);
  document.setAuthor(sampleBook.author);
  document.setCreationDate(printed);
  document.setModificationDate(printed);
  const fonts: Fonts = {
    roman: await document.embedFont(standardFonts.roman),
    bold: await document.embedFont(standardFonts.bold),
    italic: await document.embedFont(standardFonts.italic),
  };
  for (const page of sampleBook.pages) {
    const sheet = document.addPage([pageSize.width, pageSize.height]);
    if (page.kind !== 'scan') drawText(sheet, page, fonts);
    if (page.kind !== 'text') {
      const image = await document.embedJpg(await scanPage(page, page.number));
      sheet.drawImage(image, { x: 0, y: 0, ...pageSize });
    }
  }
  return document.save();
}

/** Draws a page's text. The text layer below an image is not painted, and has mistakes. */
function drawText(sheet: PDFPage, page: SamplePage, fonts: Fonts): void {
  const hidden = page.kind === 'both';
  page.pieces.forEach(({ text, x, y, size, face }, index) => {
    sheet.drawText(hidden ? misread(text, page.number * 1000 + index) : text, {
      x,
      y: pageSize.height - y,
      size,
      font: fonts[face],
      renderMode: hidden ? TextRenderingMode.Invisible : TextRenderingMode.Fill,
    });
  });
  if (page.noteRule !== undefined) {
    const y = pageSize.height - page.noteRule;
    sheet.drawLine({ start: { x: 64, y }, end: { x: 124, y }, thickness: 0.5 });
  }
}
