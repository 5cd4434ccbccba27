import type { NumberRun } from '../_pipelines/books-results.ts';
import { type PrintedNumber, printNumber } from './printed-number.ts';

/** A page's place and a number printed there. A page may come with several, of which one at most is its own. */
export interface NumberedPage {
  page: number;
  printed: PrintedNumber;
}

// Fewer pages than these are a mistake of reading, unless nothing else explains them.
const shortestRun = 2;
// Numbers of other things fit together here and there, but not over many pages without a gap.
const longestGap = 12;

/**
 * The stretches of a book in which place and printed number go on side by side, from the page numbers that were read,
 * wrong ones among them. `pages` in the order of their places.
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

/** The share of the numbered pages that lie in these runs with a number they should have. */
export function explainedShare(pages: readonly NumberedPage[], runs: readonly NumberRun[]): number {
  const numbered = new Set(pages.map(({ page }) => page));
  if (numbered.size === 0) return 0;
  const explained = pages.filter(({ page, printed }) => labelOf(page, runs) === printNumber(printed));
  return new Set(explained.map(({ page }) => page)).size / numbered.size;
}

/** The page with that number printed on it, as far as the runs tell or, beyond their ends, suggest; null where not. */
export function pageOf(number: PrintedNumber, runs: readonly NumberRun[]): number | null {
  return pagesOf(number, runs)[0] ?? null;
}

/** The same where the numbers of a book begin anew: all pages with that number printed on them, in order. */
export function pagesOf({ style, value }: PrintedNumber, runs: readonly NumberRun[]): number[] {
  const fitting = runs.filter((run) => run.style === style);
  const inside = fitting
    .map((run) => ({ run, page: value + run.offset }))
    .filter(({ run, page }) => page >= run.first_page && page <= run.last_page)
    .map(({ page }) => page);
  if (inside.length > 0) return inside;
  const near = value + (fitting.at(-1)?.offset ?? Number.NEGATIVE_INFINITY);
  return near > 0 ? [near] : [];
}

/** The number printed on a page, or that would be if it were printed; null outside of all runs. */
export function labelOf(page: number, runs: readonly NumberRun[]): string | null {
  const run = runs.find((candidate) => page >= candidate.first_page && page <= candidate.last_page);
  return run ? printNumber({ style: run.style, value: page - run.offset }) : null;
}

type Group = NumberRun & { pages: number };

function groupByOffset(pages: readonly NumberedPage[]): Group[] {
  const open = new Map<string, Group>();
  const groups: Group[] = [];
  for (const { page, printed } of pages) {
    const offset = page - printed.value;
    const key = `${printed.style} ${offset}`;
    const group = open.get(key);
    if (group?.last_page === page) continue;
    if (group && page - group.last_page <= longestGap) {
      group.last_page = page;
      group.pages++;
    } else {
      const begun: Group = { style: printed.style, first_page: page, last_page: page, offset, pages: 1 };
      open.set(key, begun);
      groups.push(begun);
    }
  }
  return groups;
}

/** Runs that only pages without any number part are one. */
function joinRuns(runs: readonly NumberRun[]): NumberRun[] {
  const joined: NumberRun[] = [];
  for (const run of runs) {
    const last = joined.at(-1);
    if (last && last.style === run.style && last.offset === run.offset) last.last_page = run.last_page;
    else joined.push({ ...run });
  }
  return joined;
}
