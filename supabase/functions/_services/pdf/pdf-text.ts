import { PermanentError } from '../../_millrace/mod.ts';
import { bodyText } from '../text/markdown-blocks.ts';
import { openPdf } from './pdf.ts';
import { type LostText, pdfDoubts } from './pdf-doubts.ts';
import { withoutFurniture } from './pdf-furniture.ts';
import { joinLines, type PdfLine } from './pdf-lines.ts';

/** As for a book: fetching and opening a file takes twice its size beside 60 MB, and a function has 256 MB. */
export const MAX_PDF_BYTES = 50 * 1024 * 1024;
/**
 * Measured: 0.6 s of CPU with all that the function loads, and 0.65 ms more for each page and for each 1000
 * characters. A PDF at both limits takes 0.9 to 1.0 s, and a function is retired after one second.
 */
export const MAX_PDF_PAGES = 200;
export const MAX_PDF_CHARACTERS = 300_000;
/** A page that is drawn rather than written may take as long as fifty others. */
const PART_MS = 500;

// Letters that are so much larger than most are a heading's, unless there are too many of them.
const headingSize = 1.15;
const longestHeading = 160;
const mostPagesNamed = 100;
// Of a file's letters: with more it has no text that is worth keeping.
const mostUnread = 0.5;
// Letters from À to ÿ in a line, and their share of all of its letters.
const fewestStrange = 6;
const mostStrange = 0.5;
const mostLevels = 4;
// A line that is so nearly as long as the page's longest was ended by the margin, and not by the author.
const fullLine = 0.8;
// Lines of one heading stand closer than this, in sizes of its letters.
const headingLeading = 1.7;

export interface PdfText {
  text: string;
  pages: number;
  partly_read?: LostText;
  /** The same in sentences. */
  doubts?: string[];
}

/** Pages of a PDF that were read in one call, and what they lack. */
export interface PdfPart {
  /** The first page and the last one, from 1. */
  from: number;
  to: number;
  pageCount: number;
  /** Of their lines. */
  characters: number;
  pages: PdfLine[][];
  lost: LostText;
}

/**
 * Reads the pages from `from` on, as far as one call bears: MAX_PDF_PAGES, MAX_PDF_CHARACTERS, and PART_MS where pages take long,
 * as drawings do. Throws a PermanentError.
 */
export async function readPdfPart(bytes: Uint8Array, from: number, partMs = PART_MS): Promise<PdfPart> {
  const pdf = await openPdf(bytes);
  try {
    const { pageCount } = pdf;
    const part: PdfPart = { from, to: from - 1, pageCount, characters: 0, pages: [], lost: nothingLost() };
    const began = performance.now();
    const mayGoOn = () =>
      part.to < Math.min(pageCount, from - 1 + MAX_PDF_PAGES) &&
      part.characters < MAX_PDF_CHARACTERS &&
      performance.now() - began < partMs;
    do {
      const number = part.to + 1;
      const { lines, letters, unread, ...read } = await pdf.pageLines(number);
      const doubtful = read.doubtful + strangeLetters(lines);
      const isPicture = lines.length === 0 && unread === 0 && !(await pdf.isBlank(number));
      part.to = number;
      part.pages.push(lines);
      part.characters += lines.reduce((sum, { text }) => sum + text.length, 0);
      addLost(part.lost, {
        letters,
        unread_letters: unread,
        doubtful_letters: doubtful,
        pages: unread + doubtful > 0 ? [number] : [],
        picture_pages: isPicture ? [number] : [],
      });
    } while (mayGoOn());
    return part;
  } finally {
    await pdf.close();
  }
}

/**
 * Counts the letters of lines that are mostly of À to ÿ, as no language writes them: a font of Thai or Russian without names for its
 * glyphs is read so.
 */
function strangeLetters(lines: readonly PdfLine[]): number {
  let strange = 0;
  for (const { text } of lines) {
    // A letter that stands alone is a sign, as of diameters (Ø 12) and of ångströms.
    const high = text.match(/(?<=\p{L})[À-ÖØ-öø-ÿ]|[À-ÖØ-öø-ÿ](?=\p{L})/gu)?.length ?? 0;
    if (high >= fewestStrange && high > (text.match(/\p{L}/gu)?.length ?? 0) * mostStrange) strange += high;
  }
  return strange;
}

/**
 * The text of parts that follow one another, whose pages are parted by \f, and what it lacks, where it lacks anything. Headings are
 * told by their letters' size. Throws a PermanentError where there is no text that is worth keeping.
 */
export function partsText(parts: readonly PdfPart[]): PdfText {
  const lost = nothingLost();
  for (const part of parts) addLost(lost, part.lost);
  const pages = parts.flatMap((part) => part.pages);
  const [{ pageCount }] = parts as [PdfPart];
  if (lost.unread_letters > lost.letters * mostUnread) throw unreadable(lost);
  if (pages.every((lines) => lines.length === 0)) throw withoutText(lost);
  if (pages.length < pageCount) lost.missing_pages = { from: pages.length + 1, to: pageCount };
  const isPart =
    lost.unread_letters > 0 || lost.doubtful_letters || lost.picture_pages.length > 0 || lost.missing_pages;
  const partly = isPart ? { partly_read: lost, doubts: pdfDoubts(lost) } : {};
  return { text: linesText(pages), pages: pageCount, ...partly };
}

/** The text of a PDF that is read in one call. Throws a PermanentError, too_many_pages or file_too_large for one that takes more. */
export async function readPdfText(bytes: Uint8Array): Promise<PdfText> {
  const part = await readPdfPart(bytes, 1, Infinity);
  if (part.to === part.pageCount) return partsText([part]);
  if (part.to === MAX_PDF_PAGES) throw tooManyPages(part.pageCount);
  throw tooMuchText(part.to);
}

function nothingLost(): LostText {
  return { unread_letters: 0, letters: 0, pages: [], picture_pages: [] };
}

function addLost(sum: LostText, more: LostText): void {
  sum.letters += more.letters;
  sum.unread_letters += more.unread_letters;
  const doubtful = (sum.doubtful_letters ?? 0) + (more.doubtful_letters ?? 0);
  if (doubtful > 0) sum.doubtful_letters = doubtful;
  sum.pages = [...sum.pages, ...more.pages].slice(0, mostPagesNamed);
  sum.picture_pages = [...sum.picture_pages, ...more.picture_pages].slice(0, mostPagesNamed);
}

/** The text of pages by their lines, without what is printed around it. */
export function linesText(pages: readonly PdfLine[][]): string {
  const usual = usualSize(pages.flat());
  const body = withoutFurniture(pages, usual * headingSize);
  // Running heads, footers and page numbers may be all that the pages have.
  const read = body.some((lines) => lines.length > 0) ? body : pages;
  const levels = headingLevels(read.flat(), usual);
  return read.map((lines) => pageText(lines, levels)).join('\f');
}

function withoutText(lost: LostText): PermanentError {
  return lost.picture_pages.length > 0
    ? new PermanentError('no_text_layer', 'The PDF has pictures of pages and no text.')
    : new PermanentError('no_text', 'The pages of the PDF are blank, without text or pictures: upload another.');
}

function unreadable({ unread_letters, letters }: LostText): PermanentError {
  return new PermanentError(
    'unreadable_text',
    `The PDF’s fonts do not tell ${unread_letters} of ${Math.max(letters, unread_letters)} letters: print it as PDF anew, or upload its pages as PNG or JPEG.`,
  );
}

function tooManyPages(count: number): PermanentError {
  return new PermanentError(
    'too_many_pages',
    `The PDF has ${count} pages, and at most ${MAX_PDF_PAGES} can be read in one call: split it.`,
  );
}

function tooMuchText(page: number): PermanentError {
  return new PermanentError(
    'file_too_large',
    `The PDF has more than ${MAX_PDF_CHARACTERS} characters by page ${page}, the most that can be read in one call: split it before that page.`,
  );
}

/** The size of most letters. */
function usualSize(lines: readonly PdfLine[]): number {
  const lettersBySize = new Map<number, number>();
  for (const { size, text } of lines) {
    lettersBySize.set(roundSize(size), (lettersBySize.get(roundSize(size)) ?? 0) + text.length);
  }
  return [...lettersBySize].reduce((best, entry) => (entry[1] > best[1] ? entry : best), [0, 0])[0] ?? 0;
}

/** Which size of letters is which level of headings, the largest the first. */
function headingLevels(lines: readonly PdfLine[], usual: number): Map<number, number> {
  const sizes = new Set(
    lines.filter(({ size, text }) => size >= usual * headingSize && isHeading(text)).map(({ size }) => roundSize(size)),
  );
  const sorted = [...sizes].sort((one, other) => other - one);
  return new Map(sorted.map((size, index) => [size, Math.min(index + 1, mostLevels)]));
}

function pageText(lines: readonly PdfLine[], levels: Map<number, number>): string {
  const marked: PdfLine[] = [];
  let heading: PdfLine | undefined;
  let headingLevel: number | undefined;
  for (const line of lines) {
    const level = isHeading(line.text) ? levels.get(roundSize(line.size)) : undefined;
    const isNext = heading && level === headingLevel && line.y - heading.y < line.size * headingLeading;
    if (level && heading && isNext && heading.text.length + line.text.length < longestHeading) {
      heading = { ...line, text: `${heading.text} ${line.text}` };
      marked[marked.length - 1] = heading;
    } else {
      heading = level ? { ...line, text: `${'#'.repeat(level)} ${line.text}` } : undefined;
      headingLevel = level;
      // A comment in a program looks like a heading of Markdown.
      marked.push(heading ?? { ...line, text: bodyText(line.text) });
    }
  }
  const text = joinLines(marked).replace(/\n{0,2}^(#{1,4} .*)$\n{0,2}/gm, '\n\n$1\n\n');
  const longest = lines.reduce((most, line) => Math.max(most, line.text.length), 0);
  const rows = new Set(lines.filter(({ isRow }) => isRow).map((line) => bodyText(line.text)));
  return text
    .trim()
    .split('\n\n')
    .map((paragraph) => unwrap(paragraph.split('\n'), longest, rows))
    .join('\n\n');
}

/** A paragraph's lines as one, so that no name is torn apart, but for rows and those that end before the margin. */
function unwrap(lines: readonly string[], longest: number, rows: ReadonlySet<string>): string {
  return lines.reduce((paragraph, line, index) => {
    const last = lines[index - 1] ?? '';
    const word = /^\S*/.exec(line)?.[0] ?? '';
    if (
      rows.has(last) ||
      rows.has(line) ||
      last.length + word.length < longest * fullLine ||
      /^(?:[•▪◦–*-]|\d+[.)])\s/.test(line)
    )
      return `${paragraph}\n${line}`;
    return /\p{L}[-\u00ad]$/u.test(last) ? `${paragraph}${line}` : `${paragraph} ${line}`;
  });
}

function isHeading(text: string): boolean {
  return text.length <= longestHeading && /\p{L}{2}/u.test(text);
}

function roundSize(size: number): number {
  return Math.round(size * 2) / 2;
}
