import { z } from 'zod';
import { withBookFile } from '../_books/book-file.ts';
import { defineMap, type HandlerContext } from '../_millrace/mod.ts';
import { books } from '../_pipelines/books.ts';

const input = z.object({ entity: z.object({ id: z.string() }) });

/** The pages of the book's file, one item each. Throws a PermanentError that says what is wrong with the file. */
export async function listPages(
  { entity }: z.output<typeof input>,
  { env }: HandlerContext,
): Promise<{ key: number; of: number }[]> {
  const count = await withBookFile(entity.id, env, async ({ pageCount }) => pageCount);
  return Array.from({ length: count }, (_, index) => ({ key: index + 1, of: count }));
}

export const split = defineMap({
  pipeline: books,
  stage: 'split',
  input,
  item: z.object({ key: z.int(), of: z.int() }),
  items: listPages,
});
