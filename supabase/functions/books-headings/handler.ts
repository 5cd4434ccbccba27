import { z } from 'zod';
import { findHeadings } from '../_books/heading-pattern.ts';
import { readBook } from '../_books/read-book.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { books } from '../_pipelines/books.ts';
import { headingsResult } from '../_pipelines/books-results.ts';

const input = z.object({ entity: z.object({ id: z.string() }) });

/** Finds a book's headings and their levels, by what all of its pages have in common. */
export async function findHeadingPattern({ entity }: z.output<typeof input>, { env }: HandlerContext) {
  return { headings: findHeadings(await readBook(entity.id, env)) };
}

export const headings = defineStage({
  pipeline: books,
  stage: 'headings',
  input,
  output: headingsResult,
  handler: findHeadingPattern,
});
