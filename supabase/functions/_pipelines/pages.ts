import { definePipeline } from '../_millrace/mod.ts';
import { completion, modelWork, ownWork } from './stage-defaults.ts';

/** From a page of a book's file to its text, and what is what on it. After a change run `npm run pipelines:sync`. */
export const pages = definePipeline({
  name: 'pages',
  entity: { table: 'public.pages', key: 'id', projection: 'columns', startableBy: ['authenticated'] },
  stages: {
    // Reads the file alone, so no page with a good text layer waits for the OCR service. Pages come in the order of their
    // books, and a worker opens a file once for many of them: turns would open one for each page.
    text_layer: { ...ownWork, function: 'pages-text-layer', batchSize: 10, maxWorkers: 2 },
    // Books take turns, with at most 50 pages each at the service: a scanned book delays another by one round.
    ocr: {
      ...ownWork,
      kind: 'external',
      function: 'pages-ocr',
      needs: ['text_layer'],
      when: '$.needs.text_layer.needs_ocr == true',
      // A batch is small, so that a book's first pages come first to the service: the book's first thresholds wait for them.
      batchSize: 10,
      maxWorkers: 2,
      completion: { ...completion, deadlineSeconds: 1800 },
      limits: { maxInFlight: 400, concurrency: { column: 'book_id', limit: 50 } },
    },
    blend: {
      ...ownWork,
      function: 'pages-blend',
      needs: ['text_layer', 'ocr'],
      batchSize: 20,
      maxWorkers: 2,
    },
    label: { ...modelWork, function: 'pages-label', needs: ['blend'] },
  },
});
