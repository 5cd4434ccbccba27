import { joinedScripts } from './pdf-letters.ts';
import type { PdfPiece } from './pdf-pieces.ts';
import { hasRightToLeft, readingOrder } from './reading-order.ts';

/** A line of a page's text layer. Lengths are in points, from the page's top left corner. */
export interface PdfLine {
  text: string;
  /** Size of the letters that most of the line is set in. */
  size: number;
  x: number;
  /** Of the base line. */
  y: number;
  /** Whether gaps part it into cells, as in a table. */
  isRow?: true;
}

interface OpenLine {
  x: number;
  y: number;
  size: number;
  direction: [number, number];
  start: [number, number];
  pieces: PlacedPiece[];
}

interface PlacedPiece {
  text: string;
  x: number;
  width: number;
  size: number;
}

// Shares of the letters' size.
const sameLine = 0.5;
const wordGap = 0.15;
const cellGap = 1.5;
// How much wider than the usual distance of two lines parts paragraphs.
const paragraphGap = 1.3;
// Of two directions that are the same but for how exactly they are written: the cosine of 2°.
const nearlyOne = 0.9994;

/**
 * Joins the pieces of a page's text into lines, in the order they come in. Lines of a page that is written sideways are placed as
 * if it were turned, and so are single lines that run another way than the page.
 */
export function readLines(pieces: readonly PdfPiece[]): PdfLine[] {
  const main = mainDirection(pieces);
  const lines: PdfLine[] = [];
  let line: OpenLine | null = null;
  const close = () => {
    const text = line ? lineText(line.pieces).replace(/\s+/g, ' ').trim() : '';
    if (line && text) {
      const [x, y] = isSame(line.direction, main) ? [line.x, line.y] : turned(...line.start, main);
      const row = hasCells(line.pieces) ? { isRow: true as const } : {};
      lines.push({ text, size: mainSize(line.pieces), x: round(x), y: round(y), ...row });
    }
    line = null;
  };
  for (const { text, direction, size, width, ...place } of pieces) {
    // A blank is told by the gap it fills, whether or not the file has one there.
    if (text.trim() === '' && text !== '') continue;
    const [x, y] = turned(place.x, place.y, direction);
    const goesOn =
      line && isSame(line.direction, direction) && Math.abs(y - line.y) <= Math.max(size, line.size) * sameLine;
    if (text === '') {
      if (goesOn) widen(line?.pieces.at(-1), x, width);
      continue;
    }
    if (!goesOn) close();
    line ??= { x, y, size, direction, start: [place.x, place.y], pieces: [] };
    line.pieces.push({ text, x, width, size });
  }
  close();
  return lines;
}

/** A line's pieces from left to right. A mark stays with the letter that it was painted after, where marks are `attached`. */
function inPlace(pieces: readonly PlacedPiece[], attached: boolean): PlacedPiece[] {
  let x = 0;
  const placed = pieces.map((piece) => {
    if (!(attached && /^\p{M}/u.test(piece.text))) x = piece.x;
    return { piece, x };
  });
  return placed.sort((one, other) => one.x - other.x).map(({ piece }) => piece);
}

/** Adds to a piece the place of glyphs whose text the piece has already. */
function widen(piece: PlacedPiece | undefined, x: number, width: number): void {
  if (!piece) return;
  const end = Math.max(piece.x + piece.width, x + width);
  piece.x = Math.min(piece.x, x);
  piece.width = end - piece.x;
}

/** The text of a line's pieces, with blanks where gaps are. */
function lineText(pieces: readonly PlacedPiece[]): string {
  const isBackwards = pieces.some(({ text }) => hasRightToLeft(text));
  // Signs of another font are painted before the line that they end, or behind it.
  const isJoined = pieces.some(({ text }) => joinedScripts.test(text));
  const ordered = isBackwards || isJoined ? inPlace(pieces, isJoined) : pieces;
  let text = '';
  let end = Number.NEGATIVE_INFINITY;
  for (const piece of ordered) {
    const isMark = /^\p{M}/u.test(piece.text);
    if (text !== '' && piece.x - end > piece.size * wordGap && !isMark) text += ' ';
    text += piece.text;
    end = isMark ? Math.max(end, piece.x + piece.width) : piece.x + piece.width;
  }
  return isBackwards ? readingOrder(text) : text;
}

/** Whether a gap is wider than any between words. */
function hasCells(pieces: readonly PlacedPiece[]): boolean {
  const gaps = pieces.slice(1).map((piece, index) => {
    const last = pieces[index] as PlacedPiece;
    return (piece.x - last.x - last.width) / piece.size;
  });
  return gaps.some((gap) => gap > cellGap);
}

/** Where a place lies when the page is turned until the writing goes to the right. */
function turned(x: number, y: number, [along, down]: [number, number]): [number, number] {
  return [x * along + y * down, y * along - x * down];
}

function isSame([x, y]: [number, number], [otherX, otherY]: [number, number]): boolean {
  return x * otherX + y * otherY > nearlyOne;
}

/** Where most of the page's letters go. */
function mainDirection(pieces: readonly PdfPiece[]): [number, number] {
  const counts = new Map<string, { direction: [number, number]; letters: number }>();
  for (const { direction, text } of pieces) {
    const key = direction.map((part) => Math.round(part * 10)).join();
    const { letters } = counts.get(key) ?? { letters: 0 };
    counts.set(key, { direction, letters: letters + text.length });
  }
  let most: { direction: [number, number]; letters: number } = { direction: [1, 0], letters: 0 };
  for (const count of counts.values()) if (count.letters > most.letters) most = count;
  return most.direction;
}

/** The lines as text, with an empty line where one stands further from the last than lines usually do. */
export function joinLines(lines: readonly PdfLine[]): string {
  // In sizes of the letters, since notes are set closer than the text above them.
  const gaps = lines.slice(1).map((line, index) => {
    const last = lines[index] as PdfLine;
    return (line.y - last.y) / Math.max(line.size, last.size);
  });
  const usual = lowerQuartile(gaps.filter((gap) => gap > 0));
  return lines
    .map(({ text }, index) => {
      const gap = gaps[index - 1];
      if (gap === undefined) return text;
      const stands = gap > usual * paragraphGap || gap < 0;
      return stands ? `\n\n${text}` : `\n${text}`;
    })
    .join('');
}

function mainSize(pieces: readonly PlacedPiece[]): number {
  const lettersBySize = new Map<number, number>();
  for (const { size, text } of pieces) {
    lettersBySize.set(round(size), (lettersBySize.get(round(size)) ?? 0) + text.trim().length);
  }
  return [...lettersBySize].reduce((best, entry) => (entry[1] > best[1] ? entry : best))[0];
}

// Gaps are never narrower than usual, and on a page of headings most of them are wider.
function lowerQuartile(values: number[]): number {
  const sorted = values.sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 4)] ?? 0;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
