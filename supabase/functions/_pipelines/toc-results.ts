import { z } from 'zod';

// The result of each stage of `toc`. The question to the model includes each description, which says what to write
// there.

/** More pages than any table of contents has. */
const mostContentsPages = 100;

/** The agent's answer, hence without transformations. Pages are counted by their place in the file, from 1. */
export const findResult = z
  .object({
    first_contents_page: z.int().min(0).max(100_000).describe('0 when there is none'),
    last_contents_page: z.int().min(0).max(100_000).describe('0 when there is none'),
  })
  // A contradictory answer goes back to the model.
  .refine(({ first_contents_page: first, last_contents_page: last }) => (first === 0) === (last === 0), {
    error: 'first_contents_page and last_contents_page must both be 0 or both be pages',
    path: ['last_contents_page'],
  })
  .refine(({ first_contents_page: first, last_contents_page: last }) => first <= last, {
    error: 'last_contents_page must not come before first_contents_page',
    path: ['last_contents_page'],
  })
  .refine(({ first_contents_page: first, last_contents_page: last }) => last - first < mostContentsPages, {
    error: `no table of contents has more than ${mostContentsPages} pages`,
    path: ['last_contents_page'],
  });

export type FindResult = z.output<typeof findResult>;

export const contentsEntry = z.object({
  title: z.string().min(1).max(300).describe('The title, without dots and page number'),
  level: z.int().min(1).max(6).describe('1 for chapters and what stands beside them, 2 for their sections, and so on'),
  printed_page: z.string().max(20).describe('The page number as it is printed; empty when there is none'),
});
export type ContentsEntry = z.output<typeof contentsEntry>;

export const extractResult = z.object({
  entries: z.array(contentsEntry).max(2000).describe('All entries of the table of contents, in its order'),
});

export const linkResult = z.object({
  first_page: z.int(),
  last_page: z.int(),
  /** From 0 to 1: how far the pages, the entries, and what the lines say by their form agree. */
  agreement: z.number().min(0).max(1),
  entries: z.array(
    contentsEntry.extend({
      /** The place in the file; null where it is not known yet. */
      page: z.int().positive().nullable(),
    }),
  ),
});
export type LinkResult = z.output<typeof linkResult>;

/** The outline that the file itself brings along, which nobody need have made with care. */
export const fileOutline = z.object({
  entries: z.array(
    z.object({
      title: z.string(),
      level: z.int(),
      /** The place in the file; null where it leads nowhere. */
      page: z.int().nullable(),
    }),
  ),
});
export type FileOutline = z.output<typeof fileOutline>;
