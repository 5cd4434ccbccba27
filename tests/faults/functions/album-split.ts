import { z } from 'zod';
import { defineMap } from '../../../supabase/functions/_shared/map-stage.ts';
import { serveStage } from '../../../supabase/functions/_shared/serve-stage.ts';
import { album } from './pattern-pipelines.ts';

const sides = ['right', 'left'] as const;

serveStage(
  defineMap({
    pipeline: album,
    stage: 'split',
    input: z.object({ entity: z.object({ size: z.number() }) }),
    item: z.object({ key: z.number(), side: z.enum(sides) }),
    items: ({ entity }) => Array.from({ length: entity.size }, (_, n) => ({ key: n + 1, side: sides[(n + 1) % 2] })),
    chunkSize: 2,
  }),
);
