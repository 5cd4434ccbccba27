import { z } from 'zod';
import { bodiesOf } from '../_books/contents-body.ts';
import { linkContents } from '../_books/link-contents.ts';
import { runsOf } from '../_books/page-numbers.ts';
import { readPages } from '../_books/page-rows.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { toc } from '../_pipelines/toc.ts';
import { extractResult, findResult, type LinkResult, linkResult } from '../_pipelines/toc-results.ts';

const input = z.object({
  entity: z.object({ id: z.string() }),
  needs: z.object({ find: findResult, extract: extractResult }),
});

/**
 * Leads the entries of a table of contents to pages, by their titles and by the numbers printed on the pages read so
 * far. Drops entries that are not printed on the pages of the contents. The book's stage structure, which comes when
 * all pages are done, has the last word.
 */
export async function linkEntries(
  { entity, needs: { find, extract } }: z.output<typeof input>,
  { env }: HandlerContext,
): Promise<LinkResult> {
  const pages = await readPages(entity.id, env);
  const runs = runsOf(pages);
  return linkContents(find, extract.entries, { pages, runs, bodies: bodiesOf(pages, runs) });
}

export const link = defineStage({ pipeline: toc, stage: 'link', input, output: linkResult, handler: linkEntries });
