import type { NumberRun } from '../_pipelines/books-results.ts';
import type { ContentsEntry } from '../_pipelines/toc-results.ts';
import { pagesOf } from './number-runs.ts';
import type { PageRow } from './page-rows.ts';
import { PageTitles } from './page-titles.ts';
import { readPrintedNumber } from './printed-number.ts';
import { titleKeys } from './titles.ts';

/** An entry of the contents with the page that it leads to; null where nothing tells which. */
export interface PlacedEntry extends ContentsEntry {
  page: number | null;
  /** Whether its title stands on that page. */
  found: boolean;
}

/** The pages of the printed contents. A title on one of them proves nothing. */
export interface ContentsPages {
  first_page: number;
  last_page: number;
}

const namedPart = /^(?:part|book|teil|partie)\s/i;
// Pages to try around the one that a number leads to, since page numbers may be misread by one.
const nearby = [0, 1, -1, 2, -2];

/**
 * Finds the page of each entry of a table of contents: the one that has both the printed number and the title, since numbers
 * that start over stand on several pages; else the page of that number; and for an entry without a number the first page
 * after the previous entry's that has the title on a line of its own.
 */
export function placeEntries(
  entries: readonly ContentsEntry[],
  pages: readonly PageRow[],
  runs: readonly NumberRun[],
  contents: ContentsPages,
): PlacedEntry[] {
  const titles = new PageTitles(pages);
  const lastOfBook = pages.at(-1)?.number ?? 0;
  const isContents = (page: number) => page >= contents.first_page && page <= contents.last_page;
  // Where the text begins on the last page of the contents, its title stands there twice.
  const stands = (page: number, key: string, title: string) =>
    titles.count(page, key) > 0 || (!isContents(page) && titles.hasAlike(page, key, title));
  let after = 1;

  const byNumber = (expected: readonly number[], key: string, title: string): number | undefined => {
    const inOrder = [...expected.filter((page) => page >= after), ...expected.filter((page) => page < after)];
    const close = inOrder.flatMap((page) => nearby.map((distance) => page + distance));
    return close.find((page) => titles.count(page, key) > 0) ?? inOrder.find((page) => stands(page, key, title));
  };
  const byTitle = (key: string): number | undefined => {
    for (let page = Math.max(after, 1); page <= lastOfBook; page++) {
      if (titles.count(page, key) >= (isContents(page) ? 2 : 1)) return page;
    }
    return undefined;
  };

  const placed = entries.map((entry) => {
    const keys = titleKeys(entry.title);
    const number = readPrintedNumber(entry.printed_page);
    const expected = number ? pagesOf(number, runs) : [];
    const places = keys.map((key) => (expected.length > 0 ? byNumber(expected, key, entry.title) : byTitle(key)));
    const found = places.find((place) => place !== undefined);
    const page = found ?? expected.find((candidate) => candidate >= after) ?? expected[0] ?? null;
    if (found !== undefined) after = Math.max(after, found);
    return { ...entry, page, found: found !== undefined };
  });
  return withParts(placed);
}

/** Gives a part without a page of its own the page of its first chapter. */
function withParts(placed: readonly PlacedEntry[]): PlacedEntry[] {
  let next: PlacedEntry | undefined;
  return placed
    .toReversed()
    .map((entry) => {
      const isBare = entry.page === null && entry.printed_page === '' && namedPart.test(entry.title);
      next = isBare && next ? { ...entry, page: next.page, found: next.found } : entry;
      return next;
    })
    .toReversed();
}
