import type { NumberRun } from '../_pipelines/books-results.ts';
import { type PrintedNumber, printNumber } from './printed-number.ts';

/** A page's place and a number printed there. A page may come with several, of which one at most is its own. */
export interface NumberedPage {
  page: number;
  printed: PrintedNumber;
}

// A shorter run is a misreading, unless nothing else explains its pages.
const shortestRun = 2;
// Numbers that are no page numbers may fit here and there, but not over many pages without a gap.
const longestGap = 12;

/**
 * Finds the stretches of a book in which place and printed number advance together. Takes the page numbers that were read,
 * including misread ones, in the order of their places.
 */
export function findRuns(pages: readonly NumberedPage[]): NumberRun[] {
  const groups = groupByOffset(pages).sort((a, b) => b.pages - a.pages || a.first_page - b.first_page);
  const runs: NumberRun[] = [];
  for (const { pages: count, ...run } of groups) {
    if (count < shortestRun && groups.length > 1) continue;
    // The longer run is believed where two overlap.
    if (runs.every((other) => run.last_page < other.first_page || run.first_page > other.last_page)) runs.push(run);
  }
  return joinRuns(runs.sort((a, b) => a.first_page - b.first_page));
}

/** Reckons the share of the numbered pages whose number is the one that these runs predict. */
export function explainedShare(pages: readonly NumberedPage[], runs: readonly NumberRun[]): number {
  const numbered = new Set(pages.map(({ page }) => page));
  if (numbered.size === 0) return 0;
  const explained = pages.filter(({ page, printed }) => labelOf(page, runs) === printNumber(printed));
  return new Set(explained.map(({ page }) => page)).size / numbered.size;
}

/** Finds the page with that printed number, by the runs or, beyond their ends, by carrying the last one on; null where neither helps. */
export function pageOf(number: PrintedNumber, runs: readonly NumberRun[]): number | null {
  return pagesOf(number, runs)[0] ?? null;
}

/** Finds all pages with that printed number, in order: several where the book's numbers start over. */
export function pagesOf({ style, value, prefix }: PrintedNumber, runs: readonly NumberRun[]): number[] {
  const fitting = runs.filter((run) => run.style === style && run.prefix === prefix);
  const inside = fitting
    .map((run) => ({ run, page: value + run.offset }))
    .filter(({ run, page }) => page >= run.first_page && page <= run.last_page)
    .map(({ page }) => page);
  if (inside.length > 0) return inside;
  const near = value + (fitting.at(-1)?.offset ?? Number.NEGATIVE_INFINITY);
  return near > 0 ? [near] : [];
}

/** Says which number a page has or, where none is printed, would have; null outside of all runs. */
export function labelOf(page: number, runs: readonly NumberRun[]): string | null {
  const run = runs.find((candidate) => page >= candidate.first_page && page <= candidate.last_page);
  return run ? printNumber({ style: run.style, value: page - run.offset, prefix: run.prefix }) : null;
}

type Group = NumberRun & { pages: number };

function groupByOffset(pages: readonly NumberedPage[]): Group[] {
  const open = new Map<string, Group>();
  const groups: Group[] = [];
  for (const { page, printed } of pages) {
    const offset = page - printed.value;
    const { style, prefix } = printed;
    const key = `${style} ${prefix ?? ''} ${offset}`;
    const group = open.get(key);
    if (group?.last_page === page) continue;
    if (group && page - group.last_page <= longestGap) {
      group.last_page = page;
      group.pages++;
    } else {
      const begun: Group = { style, first_page: page, last_page: page, offset, pages: 1, ...(prefix && { prefix }) };
      open.set(key, begun);
      groups.push(begun);
    }
  }
  return groups;
}

/** Joins runs that only pages without a number separate. */
function joinRuns(runs: readonly NumberRun[]): NumberRun[] {
  const joined: NumberRun[] = [];
  for (const run of runs) {
    const last = joined.at(-1);
    if (last && last.style === run.style && last.prefix === run.prefix && last.offset === run.offset)
      last.last_page = run.last_page;
    else joined.push({ ...run });
  }
  return joined;
}
