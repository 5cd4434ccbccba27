import { definePipeline } from '../_millrace/mod.ts';
import { ownWork } from './stage-defaults.ts';

/** From feeds and sitemaps to articles in the queue. After a change run `npm run pipelines:sync`. */
export const sources = definePipeline({
  name: 'sources',
  entity: { table: 'public.source', key: 'id', projection: 'none', due: 'next_poll_at' },
  stages: {
    poll: {
      ...ownWork,
      function: 'sources-poll',
      leaseSeconds: 90,
      timeoutSeconds: 45,
      apply: 'public.apply_polls',
      // A site with many feeds is not asked for all of them at once.
      limits: { concurrency: { column: 'address', part: 'host', limit: 2 } },
    },
  },
});
