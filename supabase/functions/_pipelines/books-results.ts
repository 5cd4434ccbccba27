import { z } from 'zod';
import { fileOutline, linkResult } from './toc-results.ts';

// The result of each stage of `books`. Pages are counted by their place in the file, from 1.

export const metadataResult = z.object({
  title: z.string().min(1),
  subtitle: z.string().nullable(),
  author: z.string().nullable(),
  publisher: z.string().nullable(),
  year: z.int().nullable(),
  language: z.string(),
});

/** The result of the stage toc: the results of the child's last stages. */
export const tocResult = z.object({ link: linkResult.nullable(), outline: fileOutline.nullable() });

const numberRun = z.object({
  style: z.enum(['roman', 'arabic']),
  first_page: z.int(),
  last_page: z.int(),
  /** The place in the file, less the number printed there. */
  offset: z.int(),
  /** The part before the number where each chapter counts its own pages, such as "2-". */
  prefix: z.string().optional(),
});
export type NumberRun = z.output<typeof numberRun>;

export const pageNumbersResult = z.object({
  /** Stretches in which place and printed number go on side by side. */
  runs: z.array(numberRun),
  /** The share of pages with a printed number that these explain. */
  explained: z.number().min(0).max(1),
});

export const headingsResult = z.object({
  headings: z
    .array(
      z.object({
        page: z.int(),
        level: z.int(),
        text: z.string(),
        /** Size of its letters, against the page's usual ones; null where nobody knows. */
        scale: z.number().nullable(),
      }),
    )
    .max(5000),
});
export type FoundHeading = z.output<typeof headingsResult>['headings'][number];

const outlineEntry = z.object({
  title: z.string(),
  level: z.int(),
  page: z.int(),
  /** The number printed on that page; null when there is none. */
  label: z.string().nullable(),
  sources: z.array(z.enum(['contents', 'headings'])).min(1),
});
export type OutlineEntry = z.output<typeof outlineEntry>;

export const structureResult = z.object({
  outline: z.array(outlineEntry),
  /** Entries of the printed contents of which no page was found. */
  unplaced: z.array(z.string()),
  /** Headings that the contents do not list and that head no section, as far as can be seen; at most 500. */
  left_out: z.array(z.string()).default([]),
  /** From 0 to 1: the least that any witness says of the printed contents; at most 0.5 without these. */
  confidence: z.number().min(0).max(1),
  /** The numbers printed on the pages: see page_numbers. */
  runs: z.array(numberRun),
});

/** The result of the stage review, once a person has decided. */
export const reviewResult = z.object({
  decision: z.object({ keep: z.enum(['all', 'contents', 'headings']), note: z.string().optional() }),
});

export const assembleResult = z.object({
  bucket: z.literal('books'),
  /** The document as JSON, and the same for people. */
  path: z.string(),
  markdown_path: z.string(),
  bytes: z.int(),
  pages: z.int(),
  missing_pages: z.array(z.int()),
  sections: z.int(),
});
