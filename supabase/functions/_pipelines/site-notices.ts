import { definePipeline } from '../_millrace/mod.ts';
import { ownWork } from './stage-defaults.ts';

/**
 * Tells the site of what has been published, once that stands: a row of `site_notice` each, which goes when the site has heard of
 * it. A site that is away for some hours holds up no article. After a change run `npm run pipelines:sync`.
 */
export const siteNotices = definePipeline({
  name: 'site_notices',
  entity: { table: 'public.site_notice', key: 'id', projection: 'none' },
  stages: {
    tell: {
      ...ownWork,
      function: 'site-notices-tell',
      batchSize: 5,
      apply: 'public.site_notice_told',
      retry: {
        maxAttempts: 30,
        backoff: { kind: 'exponential', baseSeconds: 5, factor: 2, capSeconds: 1800, jitter: 0.2 },
      },
    },
  },
});
