import { z } from 'zod';
import { rangeAgreement } from '../_books/contents-agreement.ts';
import { bodiesOf } from '../_books/contents-body.ts';
import { contentsByLook } from '../_books/link-contents.ts';
import { joinOutline } from '../_books/outline.ts';
import { readBook } from '../_books/read-book.ts';
import { titleKey } from '../_books/titles.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { books } from '../_pipelines/books.ts';
import {
  headingsResult,
  metadataResult,
  pageNumbersResult,
  structureResult,
  tocResult,
} from '../_pipelines/books-results.ts';

const input = z.object({
  entity: z.object({ id: z.string() }),
  needs: z.object({
    // Both may have failed: the book goes on without.
    metadata: metadataResult.nullable(),
    toc: tocResult.nullable(),
    page_numbers: pageNumbersResult,
    headings: headingsResult,
  }),
});

/** Joins table of contents, headings and page numbers into the book's outline, and says how far it can be believed. */
export async function joinStructure(
  { entity, needs }: z.output<typeof input>,
  { env }: HandlerContext,
): Promise<z.input<typeof structureResult>> {
  const { runs } = needs.page_numbers;
  const title = needs.metadata && titleKey(needs.metadata.title);
  // On a title page the title is set as large as a heading.
  const headings = needs.headings.headings.filter(({ text }) => titleKey(text) !== title);
  const pages = await readBook(entity.id, env);
  const found = needs.toc?.link;
  const link = found && found.entries.length > 0 ? found : contentsByLook(pages, runs);
  // All pages are there now: the contents may go on beyond those that were there when they were read.
  const agreement = link ? Math.min(link.agreement, rangeAgreement(link, bodiesOf(pages, runs))) : 0;
  const evidence = { agreement, file: needs.toc?.outline?.entries ?? [] };
  return { ...joinOutline(link, headings, runs, pages, evidence), runs };
}

export const structure = defineStage({
  pipeline: books,
  stage: 'structure',
  input,
  output: structureResult,
  handler: joinStructure,
});
