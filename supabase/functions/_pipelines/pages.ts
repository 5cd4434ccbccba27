import { definePipeline } from '../_shared/define-pipeline.ts';
import { completion, modelWork, ownWork } from './book-stages.ts';

/** From a page of a book's file to its text, and what is what on it. After a change run `npm run pipelines:sync`. */
export const pages = definePipeline({
  name: 'pages',
  entity: { table: 'public.pages', key: 'id', projection: 'columns' },
  stages: {
    // A batch opens its book's file once. A page that needs no OCR is done in the call.
    ocr: { ...ownWork, kind: 'external', function: 'pages-ocr', batchSize: 20, maxWorkers: 2, completion },
    blend: { ...ownWork, function: 'pages-blend', needs: ['ocr'], batchSize: 20, maxWorkers: 2 },
    label: { ...modelWork, function: 'pages-label', needs: ['blend'], batchSize: 10 },
  },
});
