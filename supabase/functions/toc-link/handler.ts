import { z } from 'zod';
import { entriesAgreement } from '../_books/contents-agreement.ts';
import { bodiesOf } from '../_books/contents-body.ts';
import { contentsRange } from '../_books/contents-range.ts';
import { runsOf } from '../_books/page-numbers.ts';
import { readPages } from '../_books/page-rows.ts';
import { placeEntries } from '../_books/place-entries.ts';
import { printedEntries } from '../_books/printed-entries.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { toc } from '../_pipelines/toc.ts';
import { extractResult, findResult, type LinkResult, linkResult } from '../_pipelines/toc-results.ts';

const input = z.object({
  entity: z.object({ id: z.string() }),
  needs: z.object({ find: findResult, extract: extractResult }),
});

/**
 * Leads the entries of a table of contents to pages, by their titles and the numbers printed on those that have been read so
 * far. The stage structure of the book, which comes when all pages are done, has the last word. What does not stand on
 * the pages of the contents is left out.
 */
export async function linkEntries(
  { entity, needs: { find, extract } }: z.output<typeof input>,
  { env }: HandlerContext,
): Promise<LinkResult> {
  const pages = await readPages(entity.id, env);
  const runs = runsOf(pages);
  const bodies = bodiesOf(pages, runs);
  const range = contentsRange(find, bodies);
  const entries = printedEntries(extract.entries, pages, range);
  const placed = placeEntries(entries, pages, runs, range);
  return {
    first_page: range.first_page,
    last_page: range.last_page,
    // What was invented counts against the rest, though it is left out.
    agreement: range.agreement * entriesAgreement(extract.entries, bodies, range),
    entries: placed.map(({ found: _, ...entry }) => entry),
  };
}

export const link = defineStage({ pipeline: toc, stage: 'link', input, output: linkResult, handler: linkEntries });
