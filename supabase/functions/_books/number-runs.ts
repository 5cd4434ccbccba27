import type { NumberRun } from '../_pipelines/books-results.ts';
import { type PrintedNumber, printNumber } from './printed-number.ts';

/** A page's place and the number printed there. */
export interface NumberedPage {
  page: number;
  printed: PrintedNumber;
}

// Fewer pages than these are a mistake of reading, unless nothing else explains them.
const shortestRun = 2;

/**
 * The stretches of a book in which place and printed number go on side by side, from the page numbers that were read,
 * wrong ones among them. `pages` in the order of their places.
 */
export function findRuns(pages: readonly NumberedPage[]): NumberRun[] {
  const byOffset = new Map<string, NumberedPage[]>();
  for (const page of pages) {
    const key = `${page.printed.style} ${page.page - page.printed.value}`;
    byOffset.set(key, [...(byOffset.get(key) ?? []), page]);
  }
  const groups = [...byOffset.values()].sort((a, b) => b.length - a.length || (a[0]?.page ?? 0) - (b[0]?.page ?? 0));
  const runs: NumberRun[] = [];
  for (const group of groups) {
    const [first, last] = [group[0], group.at(-1)];
    if (!first || !last || (group.length < shortestRun && groups.length > 1)) continue;
    const { style, value } = first.printed;
    const run = { style, first_page: first.page, last_page: last.page, offset: first.page - value };
    // The longer run is believed where two overlap.
    if (runs.every((other) => run.last_page < other.first_page || run.first_page > other.last_page)) runs.push(run);
  }
  return runs.sort((a, b) => a.first_page - b.first_page);
}

/** The share of the numbered pages that lie in these runs with the number they should have. */
export function explainedShare(pages: readonly NumberedPage[], runs: readonly NumberRun[]): number {
  if (pages.length === 0) return 0;
  const explained = pages.filter(({ page, printed }) => labelOf(page, runs) === printNumber(printed));
  return explained.length / pages.length;
}

/** The page with that number printed on it, as far as the runs tell or, beyond their ends, suggest; null where not. */
export function pageOf({ style, value }: PrintedNumber, runs: readonly NumberRun[]): number | null {
  const fitting = runs.filter((run) => run.style === style);
  const inside = fitting.find((run) => value + run.offset >= run.first_page && value + run.offset <= run.last_page);
  const near = inside ?? fitting.at(-1);
  const page = near ? value + near.offset : 0;
  return page > 0 ? page : null;
}

/** The number printed on a page, or that would be if it were printed; null outside of all runs. */
export function labelOf(page: number, runs: readonly NumberRun[]): string | null {
  const run = runs.find((candidate) => page >= candidate.first_page && page <= candidate.last_page);
  return run ? printNumber({ style: run.style, value: page - run.offset }) : null;
}
