import { definePipeline } from '../_millrace/mod.ts';
import { modelWork, ownWork } from './stage-defaults.ts';

/** Quota of an organisation; `documents` and `document_monolith` each count on their own. */
export const documentQuota = {
  column: 'clerk_org_id',
  starts: { count: 2_000, perSeconds: 3600 },
  spending: { usd: 50, perSeconds: 24 * 3600 },
};

/** The old way: what `documents` does in three phases, in one call. After a change run `npm run pipelines:sync`. */
export const documentMonolith = definePipeline({
  name: 'document_monolith',
  entity: { table: 'public.document', key: 'id', projection: 'columns', metadata: 'metadata' },
  quota: documentQuota,
  stages: {
    monolith: {
      ...ownWork,
      function: 'document-monolith',
      timeoutSeconds: 55,
      retry: modelWork.retry,
      apply: 'public.apply_document',
      resultLimitBytes: 10_000_000,
    },
  },
});
