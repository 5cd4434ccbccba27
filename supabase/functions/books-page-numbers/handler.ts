import { z } from 'zod';
import { explainedShare, findRuns } from '../_books/number-runs.ts';
import { numbersOnPages } from '../_books/page-numbers.ts';
import { readBook } from '../_books/read-book.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { books } from '../_pipelines/books.ts';
import { pageNumbersResult } from '../_pipelines/books-results.ts';

const input = z.object({ entity: z.object({ id: z.string() }) });

/** Finds the pattern by which a book's pages are numbered, mistakes of reading notwithstanding. */
export async function findPattern({ entity }: z.output<typeof input>, { env }: HandlerContext) {
  const pages = await readBook(entity.id, env);
  const numbered = numbersOnPages(pages);
  const runs = findRuns(numbered);
  return { runs, explained: Math.round(explainedShare(numbered, runs) * 1000) / 1000 };
}

export const pageNumbers = defineStage({
  pipeline: books,
  stage: 'page_numbers',
  input,
  output: pageNumbersResult,
  handler: findPattern,
});
