import { z } from 'zod';
import { titleKey } from '../_books/contents-lines.ts';
import { joinOutline } from '../_books/outline.ts';
import { books } from '../_pipelines/books.ts';
import {
  headingsResult,
  metadataResult,
  pageNumbersResult,
  structureResult,
  tocResult,
} from '../_pipelines/books-results.ts';
import { defineStage } from '../_shared/stage.ts';

const input = z.object({
  needs: z.object({
    // Both may have failed: the book goes on without.
    metadata: metadataResult.nullable(),
    toc: tocResult.nullable(),
    page_numbers: pageNumbersResult,
    headings: headingsResult,
  }),
});

/** Joins table of contents, headings and page numbers into the book's outline. */
export function joinStructure({ needs }: z.output<typeof input>): z.input<typeof structureResult> {
  const { runs } = needs.page_numbers;
  const title = needs.metadata && titleKey(needs.metadata.title);
  // On a title page the title is set as large as a heading.
  const headings = needs.headings.headings.filter(({ text }) => titleKey(text) !== title);
  return { ...joinOutline(needs.toc?.link ?? null, headings, runs), runs };
}

export const structure = defineStage({
  pipeline: books,
  stage: 'structure',
  input,
  output: structureResult,
  handler: joinStructure,
});
