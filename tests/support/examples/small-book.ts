// A book of eight pages for tests: one of them a scan, one a scan over a text layer with wrong letters.
import { type PDFFont, type PDFPage, StandardFonts, TextRenderingMode } from '@cantoo/pdf-lib';
import { misread } from '../../../local/demo/samples/books/misread.ts';
import { makePdf, pageSize, pictureOf, type Row } from './documents.ts';

const paragraphs = [
  `A small bell speaks at once and is soon forgotten. It hangs beside an api, and whoever wants to come in pulls
   the cord and waits. What it says is short, and nobody listens to the end of it.`,
  `The metal is tin and copper, and the more tin there is in it the brighter it sounds. Too much makes it brittle,
   and a brittle bell breaks on a cold morning when it is struck in a hurry.`,
  `Whoever casts a bell turns the mould with a board cut to its shape. The inside is made first, of clay and straw,
   and the outside is lowered over it with a rope and a good deal of patience.`,
  `When the mould is dry the metal is poured, and then nothing may be done for three days. It is said that founders
   are the only people in the village who sleep well in that time.`,
];
const title = 'A Short Book of Bells';
const chapters = ['The Small Bell', 'The Large Bell', 'The Rope'];

export const smallBook = {
  title,
  scan: 4,
  bothReadings: 5,
  pages: 8,
  /** The outline that comes of it: titles with their pages. */
  outline: [
    ['1 The Small Bell', 3],
    ['2 The Large Bell', 5],
    ['3 The Rope', 7],
    ['A worn strand', 8],
  ] as [string, number][],
};

let made: Promise<Uint8Array> | undefined;

/** The PDF, made once. */
export function smallBookPdf(): Promise<Uint8Array> {
  made ??= makeBook();
  return made;
}

function makeBook(): Promise<Uint8Array> {
  return makePdf(smallBook.pages, async (pages, pdf) => {
    const font = await pdf.embedFont(StandardFonts.TimesRoman);
    for (const [index, page] of pages.entries()) {
      const number = index + 1;
      const rows = pageRows(number);
      const scanned = number === smallBook.scan || number === smallBook.bothReadings;
      if (number === smallBook.bothReadings) {
        const wrong = rows.map((row, at) => ({ ...row, text: misread(row.text, at) }));
        drawRows(page, wrong, font, TextRenderingMode.Invisible);
      }
      if (!scanned) drawRows(page, rows, font, TextRenderingMode.Fill);
      else {
        const image = await pdf.embedPng(await pictureOf(rows, 3).encode('png'));
        page.drawImage(image, { x: 0, y: 0, width: pageSize[0], height: pageSize[1] });
      }
    }
  });
}

/** The number that is printed on a page, from 1. */
export function pageRows(number: number): Row[] {
  if (number === 1) {
    return [
      { text: title, x: 90, y: 180, size: 24 },
      { text: 'For Those Who Pull', x: 130, y: 220, size: 14 },
      { text: 'Ada Waker', x: 160, y: 300, size: 13 },
      { text: 'Tower Press', x: 160, y: 520, size: 11.5 },
    ];
  }
  if (number === 2) {
    const entries = chapters.map((name, index) => `${index + 1} ${name} ${'. '.repeat(30)}${index * 2 + 1}`);
    return [
      { text: 'Contents', x: 60, y: 140, size: 19 },
      ...entries.map((text, index) => ({ text, x: 60, y: 190 + index * 22, size: 11.5 })),
      { text: 'ii', x: 206, y: 560, size: 10 },
    ];
  }
  const label = number - 2;
  const opens = label % 2 === 1;
  const chapter = chapters[Math.floor((label - 1) / 2)] ?? '';
  const top: Row[] = opens
    ? [
        { text: `Chapter ${Math.ceil(label / 2)}`, x: 60, y: 110, size: 11.5 },
        { text: chapter, x: 60, y: 142, size: 19 },
      ]
    : [{ text: chapter, x: 160, y: 46, size: 9.5 }];
  const first = opens ? 210 : 80;
  const rows = linesOf(label).map((text, index) => ({ text, x: 60, y: first + index * 17, size: 11.5 }));
  if (number === 8) {
    rows.splice(4);
    rows.push({ text: 'A worn strand', x: 60, y: first + 4 * 17 + 8, size: 13 });
    const rest = linesOf(label + 1).map((text, index) => ({
      text,
      x: 60,
      y: first + 5 * 17 + 12 + index * 17,
      size: 11.5,
    }));
    rows.push(...rest);
  }
  return [...top, ...rows, { text: String(label), x: 206, y: 560, size: 10 }];
}

function linesOf(seed: number): string[] {
  const text = [0, 1, 2].map((step) => paragraphs[(seed + step) % paragraphs.length]).join(' ');
  return (text.replace(/\s+/g, ' ').match(/.{1,58}(?:\s|$)/g) ?? []).map((line) => line.trim());
}

function drawRows(page: PDFPage, rows: Row[], font: PDFFont, renderMode: TextRenderingMode): void {
  for (const { text, x, y, size } of rows) page.drawText(text, { x, y: pageSize[1] - y, size, font, renderMode });
}
