import { z } from 'zod';
import { defineMap, serveStage } from '../../../supabase/functions/_millrace/mod.ts';
import { album } from './pattern-pipelines.ts';

const sideOf = (number: number): 'left' | 'right' => (number % 2 === 1 ? 'left' : 'right');

serveStage(
  defineMap({
    pipeline: album,
    stage: 'split',
    input: z.object({ entity: z.object({ size: z.number() }) }),
    item: z.object({ key: z.number(), side: z.enum(['left', 'right']) }),
    items: ({ entity }) => Array.from({ length: entity.size }, (_, n) => ({ key: n + 1, side: sideOf(n + 1) })),
    chunkSize: 2,
  }),
);
