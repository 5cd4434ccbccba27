import type { NumberRun } from '../_pipelines/books-results.ts';
import type { PageLine } from '../_pipelines/pages-results.ts';
import { findRuns, type NumberedPage } from './number-runs.ts';
import type { PageRow } from './page-rows.ts';
import { type PrintedNumber, readPrintedNumber } from './printed-number.ts';

/** So many lines at the top and at the bottom may hold the page's number. */
const edgeLines = 2;
const longestEdge = 160;

/**
 * Collects the numbers that may be page numbers: those labelled so, and those in the first or last lines, alone or beside
 * words, as in "98 Chapter 9. Oil" and "21 / 57". Most are something else; only page numbers rise from page to page.
 */
export function numbersOnPages(pages: readonly PageRow[]): NumberedPage[] {
  return pages.flatMap(({ number: page, blend_result: blend, label_result: label }) => {
    const edges = edgesOf(blend?.lines ?? []).map(({ text }) => text);
    const labelled = label?.page_label ? [readPrintedNumber(label.page_label)] : [];
    const found = [...labelled, ...edges.flatMap(numbersAtEnds)].filter((number) => number !== null);
    return found.map((printed) => ({ page, printed }));
  });
}

/** Picks the lowest and the highest lines of a page, in whatever order its lines were read. */
export function edgesOf(lines: readonly PageLine[]): PageLine[] {
  const known = lines.every(({ y }) => y !== null);
  const sorted = known ? [...lines].sort((a, b) => (a.y ?? 0) - (b.y ?? 0)) : lines;
  return [...sorted.slice(edgeLines).slice(-edgeLines), ...sorted.slice(0, edgeLines)];
}

/** Finds the pattern by which the pages read so far are numbered. */
export function runsOf(pages: readonly PageRow[]): NumberRun[] {
  return findRuns(numbersOnPages(pages));
}

/** Lists each way to read a line as a number with words beside it; nothing for a line without a number at either end. */
export function aroundNumber(text: string): { printed: PrintedNumber; rest: string }[] {
  if (text.length > longestEdge) return [];
  const whole = readPrintedNumber(text);
  if (whole) return [{ printed: whole, rest: '' }];
  const words = text.trim().split(/\s+/);
  const ways = [words.length > 3 ? 3 : 0, 1].flatMap((count) =>
    count === 0
      ? []
      : [
          { number: words.slice(-count).join(' '), rest: words.slice(0, -count).join(' ') },
          { number: words.slice(0, count).join(' '), rest: words.slice(count).join(' ') },
        ],
  );
  return ways.flatMap(({ number, rest }) => {
    const printed = readPrintedNumber(number);
    return printed ? [{ printed, rest }] : [];
  });
}

function numbersAtEnds(text: string): PrintedNumber[] {
  return aroundNumber(text).map(({ printed }) => printed);
}
