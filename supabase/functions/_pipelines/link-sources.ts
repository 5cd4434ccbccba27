import { definePipeline } from '../_millrace/mod.ts';
import { ownWork } from './stage-defaults.ts';

/** From sheets and Notion to links in `linkedin_links`. After a change run `npm run pipelines:sync`. */
export const linkSources = definePipeline({
  name: 'link_sources',
  entity: { table: 'public.link_sources', key: 'id', projection: 'none', due: 'next_poll_at' },
  stages: {
    poll: {
      ...ownWork,
      function: 'link-sources-poll',
      leaseSeconds: 90,
      timeoutSeconds: 45,
      apply: 'public.apply_link_polls',
      // Both services count requests by the minute.
      limits: { maxInFlight: 2 },
    },
  },
});
