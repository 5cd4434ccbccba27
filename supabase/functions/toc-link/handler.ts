import { z } from 'zod';
import { titleKey } from '../_books/contents-lines.ts';
import { findRuns, pageOf } from '../_books/number-runs.ts';
import { type PageRow, readPages } from '../_books/page-rows.ts';
import { readPrintedNumber } from '../_books/printed-number.ts';
import { toc } from '../_pipelines/toc.ts';
import { extractResult, findResult, type LinkResult, linkResult } from '../_pipelines/toc-results.ts';
import { defineStage, type HandlerContext } from '../_shared/stage.ts';

const input = z.object({
  entity: z.object({ id: z.string() }),
  needs: z.object({ find: findResult, extract: extractResult }),
});

/**
 * Leads the entries of a table of contents to pages, by the numbers printed on those that have been read so far. The
 * stage structure of the book, which comes when all pages are done, has the last word. What does not stand on the pages
 * of the contents is left out.
 */
export async function linkEntries(
  { entity, needs: { find, extract } }: z.output<typeof input>,
  { env }: HandlerContext,
): Promise<LinkResult> {
  const { first_contents_page: first_page, last_contents_page: last_page } = find;
  const pages = await readPages(entity.id, env);
  const runs = findRuns(pages.flatMap(numberOn));
  const printed = pages.filter(({ number }) => number >= first_page && number <= last_page);
  const contents = titleKey(printed.map(({ blend_result: page }) => page?.text ?? '').join(' '));
  const entries = extract.entries
    .filter(({ title }) => titleKey(title) !== '' && contents.includes(titleKey(title)))
    .map((entry) => {
      const number = readPrintedNumber(entry.printed_page);
      return { ...entry, page: number ? pageOf(number, runs) : null };
    });
  return { first_page, last_page, entries };
}

export const link = defineStage({ pipeline: toc, stage: 'link', input, output: linkResult, handler: linkEntries });

/** The number printed on a page: as it was labelled, or else what stands at its end or beginning. */
function numberOn({ number: page, blend_result: blend, label_result: label }: PageRow) {
  const lines = blend?.lines ?? [];
  const texts = label ? [label.page_label] : [lines.at(-1)?.text, lines[0]?.text];
  const printed = texts.map((text) => (text ? readPrintedNumber(text) : null)).find((found) => found !== null);
  return printed ? [{ page, printed }] : [];
}
