// Sets a manual on pages in some set-up: its contents, its headings, and what is printed around the text.
import { PDFDocument, PDFHexString, PDFName, PDFNumber, type PDFRef, StandardFonts } from '@cantoo/pdf-lib';
import { createCanvas, GlobalFonts } from '@napi-rs/canvas';
import { breakLines, widthOf } from '../../../local/demo/samples/books/type-lines.ts';
import { pageSize } from './documents.ts';
import { numbersOfSections, sections, textOf } from './manual-text.ts';

export interface Piece {
  text: string;
  x: number;
  y: number;
  size: number;
  bold?: boolean;
}

/** An entry as it is printed in the contents. */
export interface ManualEntry {
  level: number;
  title: string;
  label: string;
}

/** The habits of a program that makes manuals. Lengths are in points. */
export interface SetUp {
  name: string;
  /** A section's title with its number, in the contents and over its text. */
  title(numbers: number[], title: string): { listed: string; heading: string[] };
  /** Titles between the chapters in the contents, by the number of the chapter that follows; printed over no text. */
  parts?: Record<number, string>;
  /** The titles that are listed before the first chapter, and have a page of the front matter. */
  preface?: string;
  headingSizes: number[];
  chaptersOpenPages: boolean;
  /** Whether the first pages are numbered i, ii and so on, and the text anew from 1. */
  romanFront: boolean;
  /** The number of the text's first page, where it is not 1. */
  firstNumber?: number;
  /** How many chapters it has; all where it is left out. */
  chapters?: number;
  /** The deepest level that is listed; all where it is left out. */
  depth?: number;
  /** Whether contents and text share a page. */
  runsOn?: boolean;
  /** The contents' lines, from `y` of the first; null begins a new page. */
  contents: {
    heading: Piece;
    list(entry: ManualEntry, y: number): Piece[];
    leading: number;
    last: number;
    numbersLast?: boolean;
  };
  /** A list that follows the contents on a page of its own. */
  figures?: { heading: string; captions: string[] };
  around(page: { label: string; front: boolean; chapter: number; title: string; opens: boolean }): Piece[];
  withOutline?: boolean;
  scanned?: boolean;
}

export interface Manual {
  bytes: Uint8Array;
  /** The titles that the contents list; pages are counted by their place, from 1. */
  entries: { title: string; printed_page: string; page: number }[];
  contents: { first: number; last: number };
}

export const left = 50;
export const right = 370;
const size = 10.5;
const leading = 14;
const top = 80;
const bottom = 520;
const romans = ['i', 'ii', 'iii', 'iv', 'v', 'vi', 'vii', 'viii', 'ix', 'x', 'xi', 'xii'];

interface Page {
  pieces: Piece[];
  opens: boolean;
  chapter: number;
}

interface Placed {
  at: number;
  section: number;
}

/** Sets the manual. The first page is its title's, then come the contents, the preface and the text. */
export async function setManual(setUp: SetUp): Promise<Manual> {
  const used = sections.slice(0, chapters[setUp.chapters ?? chapters.length]);
  const listed = used.map(({ title, level }, at) => ({ level, ...setUp.title(numbers[at] ?? [], title) }));
  const { pages: body, placed } = setBody(setUp, listed);
  const contentsPages = setUp.runsOn
    ? 0
    : setContents(
        setUp,
        entriesOf(setUp, listed, () => '0'),
      ).length;
  const figures = setUp.figures ? 1 : 0;
  const preface = setUp.preface ? 1 : 0;
  const frontPages = setUp.runsOn ? 0 : 1 + contentsPages + figures + preface;
  const labelOf = (at: number) => `${at + (setUp.firstNumber ?? 1) + (setUp.romanFront ? 0 : frontPages)}`;
  const labels = new Map(placed.map(({ at, section }) => [section, labelOf(at)]));
  const prefaceLabel = romans[frontPages - 1] ?? '';
  const entries = entriesOf(setUp, listed, (section) => (section < 0 ? prefaceLabel : (labels.get(section) ?? '')));
  const contents = setContents(setUp, entries);
  const front = setUp.runsOn ? [] : [titlePage(), ...contents, ...figuresPage(setUp), ...prefacePage(setUp)];
  if (setUp.runsOn) body[0]?.pieces.unshift(...(contents[0]?.pieces ?? []));
  const pages = [...front, ...body];
  pages.forEach((page, at) => {
    const isFront = at < front.length;
    const label = isFront && setUp.romanFront ? (romans[at] ?? '') : labelOf(at - front.length);
    const chapter = listed[chapters[page.chapter] ?? 0]?.heading.at(-1) ?? '';
    if (at === 0 && !setUp.runsOn) return;
    page.pieces.push(
      ...setUp.around({ label, front: isFront, chapter: page.chapter + 1, title: chapter, opens: page.opens }),
    );
  });
  const places = new Map(placed.map(({ at, section }) => [section, at + front.length + 1]));
  return {
    bytes: await drawManual(setUp, pages, listed, places),
    entries: entries.map(({ title, label, section }, at) => {
      // A part begins with the chapter below it.
      const begins = section ?? entries[at + 1]?.section ?? 0;
      return { title, printed_page: label, page: begins < 0 ? front.length : (places.get(begins) ?? 0) };
    }),
    contents: setUp.runsOn ? { first: 1, last: 1 } : { first: 2, last: 1 + contentsPages },
  };
}

const numbers = numbersOfSections();
const chapters = sections.flatMap(({ level }, at) => (level === 1 ? [at] : []));

type Listed = { level: number; listed: string; heading: string[] }[];

function entriesOf(setUp: SetUp, listed: Listed, label: (section: number) => string) {
  const preface = setUp.preface
    ? [{ level: 1, title: setUp.preface, label: label(-1), section: -1 as number | null }]
    : [];
  return [
    ...preface,
    ...listed.flatMap(({ level, listed: title }, section) => {
      if (level > (setUp.depth ?? level)) return [];
      const part = setUp.parts?.[chapters.indexOf(section) + 1];
      const entry = { level, title, label: label(section), section: section as number | null };
      return part ? [{ level: 1, title: part, label: '', section: null as number | null }, entry] : [entry];
    }),
  ];
}

function linesOf(setUp: SetUp, entry: ManualEntry): number {
  return new Set(setUp.contents.list(entry, 0).map(({ y }) => y)).size;
}

function setContents(setUp: SetUp, entries: ManualEntry[]): Page[] {
  const { heading, list, leading: step, last } = setUp.contents;
  const pages: Page[] = [{ pieces: [heading], opens: true, chapter: 0 }];
  let y = heading.y + 30;
  for (const entry of entries) {
    const height = linesOf(setUp, entry) * step;
    if (y + height - step > last) {
      pages.push({ pieces: [], opens: false, chapter: 0 });
      y = top;
    }
    pages.at(-1)?.pieces.push(...list(entry, y));
    y += height;
  }
  if (setUp.contents.numbersLast) for (const page of pages) page.pieces = numbersLast(page.pieces);
  return pages;
}

/** As a program writes them that sets one column after the other. */
function numbersLast(pieces: readonly Piece[]): Piece[] {
  const isNumber = ({ text }: Piece) => /^\d+$/.test(text);
  return [...pieces.filter((piece) => !isNumber(piece)), ...pieces.filter(isNumber)];
}

function titlePage(): Page {
  return { pieces: [{ text: 'The Hand Press', x: left, y: 200, size: 24, bold: true }], opens: true, chapter: 0 };
}

function figuresPage({ figures }: SetUp): Page[] {
  if (!figures) return [];
  const captions = figures.captions.map((text, at) => ({
    text: `${text} ${'. '.repeat(24)}${at + 2}`,
    x: left,
    y: 130 + at * 15,
    size,
  }));
  return [
    { pieces: [{ text: figures.heading, x: left, y: 96, size: 16, bold: true }, ...captions], opens: true, chapter: 0 },
  ];
}

function prefacePage({ preface }: SetUp): Page[] {
  return preface
    ? [
        {
          pieces: [{ text: preface, x: left, y: 96, size: 16, bold: true }, ...paragraph(0, 130).pieces],
          opens: true,
          chapter: 0,
        },
      ]
    : [];
}

/** The text, section after section. */
function setBody(setUp: SetUp, listed: Listed): { pages: Page[]; placed: Placed[] } {
  const pages: Page[] = [];
  const placed: Placed[] = [];
  let chapter = -1;
  let y = Number.POSITIVE_INFINITY;
  listed.forEach(({ level, heading }, section) => {
    if (level === 1) chapter++;
    const opens = level === 1 && setUp.chaptersOpenPages;
    const height = heading.length * 24 + 4 * leading;
    if (opens || y + height > bottom || pages.length === 0) {
      pages.push({ pieces: [], opens, chapter });
      y = setUp.runsOn && pages.length === 1 ? 390 : top;
    }
    const page = pages.at(-1) as Page;
    for (const text of heading) {
      const large = setUp.headingSizes[level - 1] ?? size;
      page.pieces.push({ text, x: left, y, size: large, bold: true });
      y += large * 1.4;
    }
    placed.push({ at: pages.length - 1, section });
    const set = paragraph(section, y + 4);
    page.pieces.push(...set.pieces);
    y = set.end + 10;
  });
  return { pages, placed };
}

function paragraph(section: number, y: number): { pieces: Piece[]; end: number } {
  const words = textOf(section)
    .split(' ')
    .map((text) => ({ text, bold: false }));
  const lines = breakLines(words, { left, width: right - left, size, indent: 0 });
  const pieces = lines.flatMap((line, row) =>
    line.pieces.map(({ text, x }) => ({ text, x, y: y + row * leading, size })),
  );
  return { pieces, end: y + lines.length * leading };
}

interface Line {
  dots: string;
  indent: number;
  bold?: boolean;
}

/** An entry of the contents: its title, in two lines if need be, what leads to the number, and the number at the right. */
export function leaderLine(
  { title, label }: ManualEntry,
  y: number,
  { dots, indent, bold = false }: Line,
  step: number,
): Piece[] {
  const face = bold ? 'bold' : 'roman';
  const words = title.split(' ').map((text) => ({ text, bold }));
  const lines = breakLines(words, { left: left + indent, width: right - left - indent - 50, size, indent: 0 });
  const texts = lines.map((line) => line.words.map(({ text }) => text).join(' '));
  const last = texts.at(-1) ?? '';
  const room = right - left - indent - widthOf(last, size, face) - widthOf(label, size, face) - 8;
  const leaders = dots === '' ? '' : dots.repeat(Math.max(0, Math.floor(room / widthOf(dots, size, 'roman'))));
  const rows = texts.map((text, row) => ({
    text: row === texts.length - 1 && leaders ? `${text} ${leaders}` : text,
    x: left + indent + (row === 0 ? 0 : 8),
    y: y + row * step,
    size,
    bold,
  }));
  const number = { text: label, x: right - widthOf(label, size, face), y: y + (texts.length - 1) * step, size, bold };
  return label === '' ? rows : [...rows, number];
}

async function drawManual(
  setUp: SetUp,
  pages: Page[],
  listed: Listed,
  places: Map<number, number>,
): Promise<Uint8Array> {
  const pdf = await PDFDocument.create({ updateMetadata: false });
  const roman = await pdf.embedFont(StandardFonts.TimesRoman);
  const bold = await pdf.embedFont(StandardFonts.TimesRomanBold);
  for (const { pieces } of pages) {
    const file = pdf.addPage(pageSize);
    if (setUp.scanned) {
      const image = await pdf.embedPng(await photograph(pieces));
      file.drawImage(image, { x: 0, y: 0, width: pageSize[0], height: pageSize[1] });
    } else {
      for (const { text, x, y, size: of, bold: heavy } of pieces) {
        file.drawText(text, { x, y: pageSize[1] - y, size: of, font: heavy ? bold : roman });
      }
    }
  }
  if (setUp.withOutline) addOutline(pdf, listed, places);
  return pdf.save();
}

/** An outline of one level after the other, which leads to pages. */
function addOutline(pdf: PDFDocument, listed: Listed, places: Map<number, number>): void {
  const { context } = pdf;
  const root = context.nextRef();
  const refs = listed.map(() => context.nextRef());
  const parentOf = (at: number) =>
    listed.findLastIndex(({ level }, other) => other < at && level < (listed[at]?.level ?? 0));
  const childrenOf = (parent: number) => listed.flatMap((_, at) => (parentOf(at) === parent ? [at] : []));
  const link = (parent: number): Record<string, PDFRef | PDFNumber> => {
    const children = childrenOf(parent);
    const [first, last] = [refs[children[0] ?? -1], refs[children.at(-1) ?? -1]];
    return first && last ? { First: first, Last: last, Count: PDFNumber.of(children.length) } : {};
  };
  listed.forEach(({ heading }, at) => {
    const siblings = childrenOf(parentOf(at));
    const [before, after] = [
      refs[siblings[siblings.indexOf(at) - 1] ?? -1],
      refs[siblings[siblings.indexOf(at) + 1] ?? -1],
    ];
    const page = pdf.getPage((places.get(at) ?? 1) - 1).ref;
    const entry = context.obj({
      Title: PDFHexString.fromText(heading.at(-1) ?? ''),
      Parent: refs[parentOf(at)] ?? root,
      Dest: [page, PDFName.of('Fit')],
      ...(before ? { Prev: before } : {}),
      ...(after ? { Next: after } : {}),
      ...link(at),
    });
    context.assign(refs[at] as PDFRef, entry);
  });
  context.assign(root, context.obj({ Type: PDFName.of('Outlines'), ...link(-1) }));
  pdf.catalog.set(PDFName.of('Outlines'), root);
}

async function photograph(pieces: Piece[]): Promise<Buffer> {
  const scale = 3;
  const canvas = createCanvas(pageSize[0] * scale, pageSize[1] * scale);
  const context = canvas.getContext('2d');
  context.fillStyle = 'rgb(247,246,243)';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(scale, scale);
  context.fillStyle = 'rgb(36,36,36)';
  for (const { text, x, y, size: of, bold } of pieces) {
    context.font = `${of}px ${bold && GlobalFonts.has('scan-bold') ? 'scan-bold' : 'Printed'}`;
    context.fillText(text, x, y);
  }
  return canvas.encode('png');
}
