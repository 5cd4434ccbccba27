import { definePipeline } from '../_millrace/mod.ts';
import { modelWork, ownWork } from './stage-defaults.ts';

/** The contents may go on to pages that are still with the OCR service. */
const untilRead = {
  maxAttempts: 30,
  backoff: { kind: 'exponential' as const, baseSeconds: 2, factor: 2, capSeconds: 60, jitter: 0.2 },
};

/**
 * Reads the table of contents that is printed in a book, and the outline that its file may have. A child of `books`, over the same row; it keeps no columns
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
      // Debug: what it looked at is kept, in millrace.agent_log.
      agent: { maxTurns: 12, maxTokens: 200_000, maxSeconds: 600, debug: true },
    },
    extract: {
      ...modelWork,
      function: 'toc-extract',
      needs: ['find'],
      when: '$.needs.find.first_contents_page > 0',
      otherwise: 'skip_dependents',
      retry: { ...modelWork.retry, byCode: { ...modelWork.retry.byCode, pages_not_read: untilRead } },
    },
    // The other witness, where a file has one. The printed contents do without.
    outline: { ...ownWork, function: 'toc-outline', onFailure: 'continue' },
    link: { ...ownWork, function: 'toc-link', needs: ['find', 'extract'] },
  },
});
