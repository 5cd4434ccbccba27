import { definePipeline } from '../_shared/define-pipeline.ts';
import { modelWork, ownWork } from './stage-defaults.ts';

/** The old way: what `documents` does in three phases, in one call. After a change run `npm run pipelines:sync`. */
export const documentMonolith = definePipeline({
  name: 'document_monolith',
  entity: { table: 'public.document', key: 'id', projection: 'columns', metadata: 'metadata' },
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
