// The pipeline of a trial: a stage that reads a page, one that waits for a job, one that asks a model.
import { definePipeline } from '../../../../supabase/functions/_millrace/mod.ts';

export const trial = definePipeline({
  name: 'trial',
  entity: { table: 'public.trial_rows', key: 'id', projection: 'columns' },
  stages: {
    read: {
      kind: 'function',
      function: 'trial-read',
      concurrency: 50,
      // A function that a limit ends says nothing: the shorter the lease, the shorter the trial.
      leaseSeconds: 15,
      timeoutSeconds: 10,
      retry: { maxAttempts: 3, backoff: { kind: 'list', seconds: [1] } },
    },
    render: {
      kind: 'external',
      function: 'trial-render',
      concurrency: 50,
      leaseSeconds: 60,
      timeoutSeconds: 30,
      needs: ['read'],
      completion: { callback: true, pollSeconds: 10, deadlineSeconds: 300 },
    },
    judge: {
      kind: 'function',
      function: 'trial-judge',
      concurrency: 50,
      leaseSeconds: 60,
      timeoutSeconds: 30,
      needs: ['render'],
    },
  },
});
