// Documents that tests read: PDFs with a text layer, scans, and what is wrong with them.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { PDFDocument, type PDFPage, StandardFonts } from '@cantoo/pdf-lib';
import { type Canvas, createCanvas, GlobalFonts } from '@napi-rs/canvas';

const font = createRequire(import.meta.url).resolve('@fontsource/tinos/files/tinos-latin-400-normal.woff');
GlobalFonts.register(readFileSync(font), 'Printed');

/** A5, in points. */
export const pageSize: [number, number] = [420, 595];

export interface Row {
  text: string;
  /** In points, from the top left corner of the page to the base line. */
  x: number;
  y: number;
  size: number;
}

/** A PDF of blank pages of which `draw` makes what it likes. */
export async function makePdf(pages: number, draw: (pages: PDFPage[], pdf: PDFDocument) => Promise<void> | void) {
  const pdf = await PDFDocument.create();
  const made = Array.from({ length: pages }, () => pdf.addPage(pageSize));
  await draw(made, pdf);
  return pdf.save();
}

/** A PDF with a text layer, in a font that is not part of the file. */
export function textPdf(...pages: Row[][]): Promise<Uint8Array> {
  return makePdf(pages.length, async (made, pdf) => {
    const times = await pdf.embedFont(StandardFonts.TimesRoman);
    for (const [index, rows] of pages.entries()) {
      for (const { text, x, y, size } of rows) {
        made[index]?.drawText(text, { x, y: pageSize[1] - y, size, font: times });
      }
    }
  });
}

/** A picture of a page, in pixels of `scale` to the point. */
export function pictureOf(rows: Row[], scale = 2): Canvas {
  const canvas = createCanvas(pageSize[0] * scale, pageSize[1] * scale);
  const context = canvas.getContext('2d');
  context.fillStyle = 'white';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(scale, scale);
  context.fillStyle = 'black';
  for (const { text, x, y, size } of rows) {
    context.font = `${size}px Printed`;
    context.fillText(text, x, y);
  }
  return canvas;
}

/** A PDF of pages that are images only. */
export function scannedPdf(...pages: Row[][]): Promise<Uint8Array> {
  return makePdf(pages.length, async (made, pdf) => {
    for (const [index, rows] of pages.entries()) {
      const image = await pdf.embedPng(await pictureOf(rows).encode('png'));
      made[index]?.drawImage(image, { x: 0, y: 0, width: pageSize[0], height: pageSize[1] });
    }
  });
}

/** A PDF that asks for a password. */
export async function lockedPdf(): Promise<Uint8Array> {
  const pdf = await PDFDocument.create();
  pdf.addPage(pageSize);
  pdf.encrypt({ userPassword: 'open sesame', ownerPassword: 'mine', permissions: {} });
  return pdf.save();
}

/** The first bytes of a PNG image that says it is of that size. */
export function pngHeader(width: number, height: number): Buffer {
  const header = Buffer.alloc(33);
  Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').copy(header);
  header.writeUInt32BE(width, 16);
  header.writeUInt32BE(height, 20);
  header.set([8, 0, 0, 0, 0], 24);
  return header;
}
