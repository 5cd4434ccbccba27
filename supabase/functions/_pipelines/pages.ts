import { definePipeline } from '../_millrace/mod.ts';
import { completion, modelWork, ownWork } from './stage-defaults.ts';

/** From a page of a book's file to its text, and what is what on it. After a change run `npm run pipelines:sync`. */
export const pages = definePipeline({
  name: 'pages',
  entity: { table: 'public.pages', key: 'id', projection: 'columns', startableBy: ['authenticated'] },
  stages: {
    // A worker opens its book's file once. A page that needs no OCR is done in the call. Batches are small, so that the
    // first pages' scans come first to the OCR service: the book's first thresholds wait for them. Books take turns: pages
    // of a scanned book that wait for the service hold up no other book's, most of which need none.
    ocr: {
      ...ownWork,
      kind: 'external',
      function: 'pages-ocr',
      batchSize: 10,
      maxWorkers: 2,
      completion: { ...completion, deadlineSeconds: 1800 },
      limits: { maxInFlight: 400, concurrency: { column: 'book_id', limit: 50 } },
    },
    blend: { ...ownWork, function: 'pages-blend', needs: ['ocr'], batchSize: 20, maxWorkers: 2 },
    label: { ...modelWork, function: 'pages-label', needs: ['blend'] },
  },
});
