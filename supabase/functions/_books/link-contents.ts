import type { NumberRun } from '../_pipelines/books-results.ts';
import type { ContentsEntry, FindResult, LinkResult } from '../_pipelines/toc-results.ts';
import { entriesAgreement } from './contents-agreement.ts';
import { type BodyPage, bodiesOf } from './contents-body.ts';
import { findContents, mainContents } from './contents-pages.ts';
import { contentsRange } from './contents-range.ts';
import type { PageRow } from './page-rows.ts';
import { placeEntries } from './place-entries.ts';
import { printedEntries } from './printed-entries.ts';
import { readContents } from './read-contents.ts';

/** A book's pages: all of them, or those that have been read so far. */
export interface ReadPages {
  pages: readonly PageRow[];
  runs: readonly NumberRun[];
  bodies: readonly BodyPage[];
}

/**
 * Leads the entries of a table of contents to pages. Drops entries that are not printed on the pages of the contents.
 */
export function linkContents(
  find: FindResult,
  given: readonly ContentsEntry[],
  { pages, runs, bodies }: ReadPages,
): LinkResult {
  const range = contentsRange(find, bodies);
  const placed = placeEntries(printedEntries(given, pages, range), pages, runs, range);
  return {
    first_page: range.first_page,
    last_page: range.last_page,
    // Entries that the model invented are dropped, but lower the agreement.
    agreement: range.agreement * entriesAgreement(given, bodies, range),
    entries: placed.map(({ found: _, ...entry }) => entry),
  };
}

/**
 * Reads the contents of a book by their look alone, once all of its pages are there: contents that stand behind the first pages were
 * not there yet when the agent looked. Null where none stand under a title, or their lines leave doubts.
 */
export function contentsByLook(pages: readonly PageRow[], runs: readonly NumberRun[]): LinkResult | null {
  const bodies = bodiesOf(pages, runs);
  const main = mainContents(findContents(bodies));
  if (!main?.titled) return null;
  const find = { first_contents_page: main.first_page, last_contents_page: main.last_page };
  const { first_page: first, last_page: last } = contentsRange(find, bodies);
  const { entries, sure } = readContents(bodies.filter(({ page }) => page >= first && page <= last));
  return sure ? linkContents(find, entries, { pages, runs, bodies }) : null;
}
