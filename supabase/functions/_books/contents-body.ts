import { excerpt } from '../_millrace/mod.ts';
import type { NumberRun } from '../_pipelines/books-results.ts';
import type { PageLine } from '../_pipelines/pages-results.ts';
import { isContentsTitle, readContentsLine } from './contents-lines.ts';
import { labelOf } from './number-runs.ts';
import { aroundNumber, edgesOf } from './page-numbers.ts';
import type { PageRow } from './page-rows.ts';
import { printNumber, readPrintedNumber } from './printed-number.ts';

/** The lines of a page of contents without running head and page number. */
export interface BodyPage {
  page: number;
  lines: PageLine[];
}

// A line that recurs at the edge of so many pages is a running head or foot, not text.
const fewestRepetitions = 3;
/** A line that has nothing but these before a number goes on with the title before it. */
const leaders = /^[\s.…·•_‥⋅⋯・．]{3,}/u;
// How far letters of one line may stand apart in height, as a share of their size.
const sameLine = 0.6;

/**
 * The lines of the pages as far as these have been read, without what is printed around the text: a line at a page's edge that
 * has the page's own number, or comes again at the edge of other pages. `runs` tells the numbers. A number that stands
 * on a line of its own goes to the title beside or before it.
 */
export function bodiesOf(pages: readonly PageRow[], runs: readonly NumberRun[]): BodyPage[] {
  const repeated = countEdges(pages);
  return pages.map(({ number: page, blend_result: blend, label_result: label }) => {
    const lines = blend?.lines ?? [];
    const own = labelOf(page, runs);
    const edges = new Set(edgesOf(lines));
    const isFurniture = (line: PageLine) => {
      const { text } = line;
      if (!edges.has(line) || isContentsTitle(text)) return false;
      const times = (key: string) => repeated.get(edgeKey(key)) ?? 0;
      const around = aroundNumber(text).filter(({ printed }) => printNumber(printed) === own);
      // The head "1. Introduction 5" of page 5 looks like an entry.
      if (around.some(({ rest }) => rest !== '' && (rest === label?.running_head || times(rest) > 1))) return true;
      if (readContentsLine(text)) return false;
      if (text === label?.running_head || text === label?.page_label) return true;
      if (times(text) >= fewestRepetitions) return true;
      return around.some(({ rest }) => rest === '' || isContentsTitle(rest));
    };
    return { page, lines: joinNumbers(lines.filter((line) => !isFurniture(line))) };
  });
}

/** Counts on how many pages each text stands at an edge, with a number beside it or without. */
function countEdges(pages: readonly PageRow[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { blend_result: blend } of pages) {
    const keys = edgesOf(blend?.lines ?? [])
      .flatMap(({ text }) => [text, ...aroundNumber(text).map(({ rest }) => rest)])
      .map(edgeKey);
    for (const key of new Set(keys)) if (key !== '') counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

function edgeKey(text: string): string {
  return excerpt(text, 200)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '');
}

/** Joins each number that stands alone, perhaps behind dots, to its title: the text on the same height, else the line before. */
function joinNumbers(lines: readonly PageLine[]): PageLine[] {
  const isNumber = lines.map(({ text }) => readPrintedNumber(text.replace(leaders, '')) !== null);
  if (!isNumber.includes(true)) return [...lines];
  const titles = lines.map((line, at) => ({ line, at, numbers: [] as string[] })).filter(({ at }) => !isNumber[at]);
  const byHeight = [...titles].filter(({ line }) => line.y !== null).sort((a, b) => (a.line.y ?? 0) - (b.line.y ?? 0));
  const byPlace = new Map(titles.map((title) => [title.at, title]));
  const columns = columnsOf(isNumber);
  lines.forEach((line, at) => {
    if (!isNumber[at]) return;
    const beside = besideOf(line, byHeight);
    const before = columns.get(at) ?? at - 1;
    const title = beside ?? byPlace.get(before);
    if (title && (beside || leaders.test(line.text) || !/\d$/.test(title.line.text))) title.numbers.push(line.text);
  });
  return titles.map(({ line, numbers }) =>
    numbers.length === 1 ? { ...line, text: `${line.text} ${numbers[0]}` } : line,
  );
}

function besideOf<T extends { line: PageLine }>({ y, size }: PageLine, byHeight: readonly T[]): T | undefined {
  if (y === null || size === null) return undefined;
  let low = 0;
  let high = byHeight.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((byHeight[middle]?.line.y ?? 0) < y - size * sameLine) low = middle + 1;
    else high = middle;
  }
  const found = byHeight[low];
  return found && (found.line.y ?? 0) <= y + size * sameLine ? found : undefined;
}

/** Pairs titles with as many numbers that follow them: two columns that were read one after the other. */
function columnsOf(isNumber: readonly boolean[]): Map<number, number> {
  const places = new Map<number, number>();
  for (let at = 0; at < isNumber.length; ) {
    let end = at;
    while (end < isNumber.length && isNumber[end]) end++;
    const count = end - at;
    const above = isNumber.slice(Math.max(0, at - count), at);
    if (count > 1 && above.length === count && !above.includes(true)) {
      for (let index = 0; index < count; index++) places.set(at + index, at - count + index);
    }
    at = Math.max(end, at + 1);
  }
  return places;
}
