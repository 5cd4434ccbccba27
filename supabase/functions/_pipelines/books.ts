import { z } from 'zod';
import { definePipeline } from '../_millrace/mod.ts';
import { modelWork, ownWork } from './stage-defaults.ts';

/** A person's decision about an uncertain outline: which entries to keep. */
export const reviewDecision = z.strictObject({
  keep: z.enum(['all', 'contents', 'headings']).describe('all entries, only printed contents, or only headings'),
  note: z.string().max(1000).optional(),
});

/**
 * Of whose text each of these stages is made: the first pages of the file. Its threshold waits for these very pages, and its code reads
 * no others, so that neither misses what came late.
 */
export const firstPages = { metadata: 20, toc: 20 };

const blended = { map: 'split', stage: 'blend' };
const allLabelled = [{ map: 'split', stage: 'label', all: true as const }];

/** From a book's file to one document with its structure. After a change run `npm run pipelines:sync`. */
export const books = definePipeline({
  name: 'books',
  entity: { table: 'public.books', key: 'id', projection: 'columns', startableBy: ['authenticated'] },
  // Pages count too that a person starts by themselves, and what pages and contents spend.
  quota: {
    column: 'account_id',
    starts: { count: 1_000, perSeconds: 3600 },
    spending: { usd: 100, perSeconds: 24 * 3600 },
  },
  stages: {
    split: {
      ...ownWork,
      kind: 'map',
      function: 'books-split',
      child: { pipeline: 'pages', insert: 'public.insert_pages' },
      // A book with a page that nobody can read is a book all the same; the stages after it say how many may be missing.
      fanIn: { failedChildren: 'ignore' },
      // A book is in work until its pages are read: so a shelf of one account leaves room at their stages for others.
      limits: { concurrency: { column: 'account_id', limit: 5 } },
    },
    // Title page and imprint are among the first pages. A book need have neither, nor a table of contents.
    metadata: {
      ...modelWork,
      function: 'books-metadata',
      after: [{ ...blended, consecutive: firstPages.metadata }],
      onFailure: 'continue',
    },
    toc: {
      kind: 'pipeline',
      child: { pipeline: 'toc' },
      after: [{ ...blended, consecutive: firstPages.toc }],
      onFailure: 'continue',
    },
    page_numbers: { ...ownWork, function: 'books-page-numbers', after: allLabelled },
    headings: { ...ownWork, function: 'books-headings', after: allLabelled },
    structure: {
      ...ownWork,
      function: 'books-structure',
      needs: ['metadata', 'toc', 'page_numbers', 'headings'],
    },
    review: {
      kind: 'manual',
      needs: ['structure'],
      // One entry of twenty may be wrong; the witnesses see most of what is, and not all.
      when: '$.needs.structure.confidence < 0.97',
      decision: { schema: reviewDecision, deadlineSeconds: 7 * 24 * 3600 },
      // Nobody came: the document says that its outline was not reviewed.
      onFailure: 'continue',
    },
    assemble: { ...ownWork, function: 'books-assemble', needs: ['split', 'metadata', 'structure', 'review'] },
  },
});
