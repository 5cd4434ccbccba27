// Small pipelines, one or two for each pattern, whose functions tests kill.
import { definePipeline } from '../../../supabase/functions/_millrace/mod.ts';

const worked = {
  batchSize: 10,
  maxWorkers: 1,
  leaseSeconds: 60,
  timeoutSeconds: 30,
  // An attempt that is tried again is tried at once.
  retry: { maxAttempts: 3, backoff: { kind: 'list' as const, seconds: [0] } },
};
const step = { ...worked, kind: 'function' as const };
const entity = (table: string) => ({ table: `public.${table}`, key: 'id', projection: 'columns' as const });

/** The children of albums: half of them are the work of one function, half of another. */
export const tracks = definePipeline({
  name: 'tracks',
  entity: entity('tracks'),
  stages: {
    left: { ...step, function: 'tracks-left', when: '$.entity.side == "left"' },
    right: { ...step, function: 'tracks-right', when: '$.entity.side == "right"' },
  },
});

export const album = definePipeline({
  name: 'album',
  entity: entity('albums'),
  stages: {
    split: {
      ...worked,
      kind: 'map',
      function: 'album-split',
      child: { pipeline: 'tracks', insert: 'public.insert_tracks' },
    },
    publish: { ...step, function: 'album-publish', needs: ['split'] },
  },
});

export const mastering = definePipeline({
  name: 'mastering',
  entity: entity('releases'),
  stages: { mix: { ...step, function: 'mastering-mix' } },
});

export const release = definePipeline({
  name: 'release',
  entity: entity('releases'),
  stages: {
    master: { kind: 'pipeline', child: { pipeline: 'mastering' } },
    announce: { ...step, function: 'release-announce', needs: ['master'] },
  },
});

export const review = definePipeline({
  name: 'review',
  entity: entity('reviews'),
  stages: { weigh: { ...worked, kind: 'agent', function: 'review-weigh' } },
});

/** A parent of leads, whose first stage is an external job. */
export const campaign = definePipeline({
  name: 'campaign',
  entity: entity('campaigns'),
  stages: { send: { ...worked, kind: 'map', function: 'campaign-send', child: { pipeline: 'leads' } } },
});

/** In the order in which they are defined: children first. */
export const patternPipelines = [tracks, album, mastering, release, review, campaign];
