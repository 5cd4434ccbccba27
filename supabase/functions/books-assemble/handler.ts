import { z } from 'zod';
import { makeDocument, toMarkdown } from '../_books/book-document.ts';
import { BUCKET } from '../_books/book-file.ts';
import { readBook } from '../_books/read-book.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { books } from '../_pipelines/books.ts';
import { assembleResult, metadataResult, reviewResult, structureResult } from '../_pipelines/books-results.ts';
import { uploadFile } from '../_services/storage-files.ts';

const encoder = new TextEncoder();

const input = z.object({
  entity: z.object({ id: z.string(), account_id: z.string(), title: z.string() }),
  needs: z.object({
    metadata: metadataResult.nullable(),
    structure: structureResult,
    // Nobody was asked, or nobody answered.
    review: reviewResult.nullable(),
  }),
});

/** Writes the book as one document into Storage, beside its file. Says where it lies; a retry replaces it. */
export async function assembleBook(
  { entity, needs: { metadata, structure, review } }: z.output<typeof input>,
  { env }: HandlerContext,
): Promise<z.input<typeof assembleResult>> {
  const pages = await readBook(entity.id, env);
  const keep = review?.decision.keep ?? 'all';
  const outline = structure.outline.filter(({ sources }) => keep === 'all' || sources.includes(keep));
  const document = makeDocument(pages, {
    title: metadata?.title ?? entity.title,
    metadata,
    outline_reviewed: review !== null,
    outline,
  });
  const path = `${entity.account_id}/${entity.id}.json`;
  const markdownPath = `${entity.account_id}/${entity.id}.md`;
  const markdown = encoder.encode(toMarkdown(document));
  const bytes = encoder.encode(JSON.stringify(document));
  await uploadFile({ bucket: BUCKET, path: markdownPath }, markdown, 'text/markdown', env);
  await uploadFile({ bucket: BUCKET, path }, bytes, 'application/json', env);
  return {
    bucket: BUCKET,
    path,
    markdown_path: markdownPath,
    bytes: bytes.length,
    pages: pages.length,
    missing_pages: document.pages.filter(({ read }) => !read).map(({ number }) => number),
    sections: outline.length,
  };
}

export const assemble = defineStage({
  pipeline: books,
  stage: 'assemble',
  input,
  output: assembleResult,
  handler: assembleBook,
});
