import { z } from 'zod';

// What each stage of `toc` stores. A description is part of the question to the model: it says what to write there.

/** The agent's answer, hence without transformations. Pages are counted by their place in the file, from 1. */
export const findResult = z.object({
  first_contents_page: z.int().min(0).max(100_000).describe('0 when there is none'),
  last_contents_page: z.int().min(0).max(100_000).describe('0 when there is none'),
});

export const contentsEntry = z.object({
  title: z.string().min(1).max(300).describe('The title, without dots and page number'),
  level: z.int().min(1).max(6).describe('1 for chapters and what stands beside them, 2 for their sections, and so on'),
  printed_page: z.string().max(20).describe('The page number as it is printed; empty when there is none'),
});
export type ContentsEntry = z.output<typeof contentsEntry>;

export const extractResult = z.object({
  entries: z.array(contentsEntry).max(1000).describe('All entries of the table of contents, in its order'),
});

export const linkResult = z.object({
  first_page: z.int(),
  last_page: z.int(),
  entries: z.array(
    contentsEntry.extend({
      /** The place in the file; null where it is not known yet. */
      page: z.int().positive().nullable(),
    }),
  ),
});
export type LinkResult = z.output<typeof linkResult>;
