import { definePipeline } from '../_shared/define-pipeline.ts';
import { modelWork, ownWork } from './stage-defaults.ts';

/**
 * Reads the table of contents that is printed in a book. A child of `books`, over the same row; it keeps no columns
 * there. After a change run `npm run pipelines:sync`.
 */
export const toc = definePipeline({
  name: 'toc',
  entity: { table: 'public.books', key: 'id', projection: 'none' },
  stages: {
    find: {
      kind: 'agent',
      function: 'toc-find',
      batchSize: 4,
      maxWorkers: 2,
      leaseSeconds: 60,
      timeoutSeconds: 40,
      retry: modelWork.retry,
      // Debug: what it looked at is kept, in pipeline.agent_log.
      agent: { maxTurns: 12, maxTokens: 200_000, maxSeconds: 600, debug: true },
    },
    extract: {
      ...modelWork,
      function: 'toc-extract',
      needs: ['find'],
      when: '$.needs.find.first_contents_page > 0',
      otherwise: 'skip_dependents',
    },
    link: { ...ownWork, function: 'toc-link', needs: ['find', 'extract'] },
  },
});
