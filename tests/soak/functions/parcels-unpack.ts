import { z } from 'zod';
import { defineMap, serveStage } from '../../../supabase/functions/_millrace/mod.ts';
import { parcels } from './parcel-pipelines.ts';

/** Two labels for each parcel. */
serveStage(
  defineMap({
    pipeline: parcels,
    stage: 'unpack',
    input: z.object({ entity: z.object({ id: z.number() }) }),
    item: z.object({ key: z.number() }),
    items: () => [{ key: 1 }, { key: 2 }],
  }),
);
