import { definePipeline } from '../_millrace/mod.ts';
import { ownWork, throughOutages } from './stage-defaults.ts';

/**
 * From the body of a memo to its chunks and their vectors. A memo whose body changes is due; one that changes again
 * meanwhile stays due. After a change run `npm run pipelines:sync`.
 */
export const memos = definePipeline({
  name: 'memos',
  entity: { table: 'public.memos', key: 'id', projection: 'none', due: 'embed_at' },
  stages: {
    embed: {
      ...throughOutages(ownWork),
      function: 'memos-embed',
      // The memos of one call.
      batchSize: 50,
      maxWorkers: 2,
      leaseSeconds: 90,
      timeoutSeconds: 60,
      apply: 'public.apply_memo_chunks',
    },
  },
});
