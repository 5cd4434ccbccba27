import { z } from 'zod';
import { withBookFile } from '../_books/book-file.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { toc } from '../_pipelines/toc.ts';
import { fileOutline } from '../_pipelines/toc-results.ts';

const input = z.object({ entity: z.object({ id: z.string() }) });

/** Reads the outline that the book's file brings along. Throws a PermanentError that says what is wrong with the file. */
export async function readFileOutline({ entity }: z.output<typeof input>, { env }: HandlerContext) {
  return { entries: await withBookFile(entity.id, env, (file) => file.outline()) };
}

export const outline = defineStage({
  pipeline: toc,
  stage: 'outline',
  input,
  output: fileOutline,
  handler: readFileOutline,
});
