import { z } from 'zod';
import { defineMap, serveStage } from '../../../supabase/functions/_millrace/mod.ts';
import { campaign } from './pattern-pipelines.ts';

serveStage(
  defineMap({
    pipeline: campaign,
    stage: 'send',
    input: z.object({ entity: z.object({ leads: z.array(z.string()) }) }),
    item: z.object({ key: z.string() }),
    items: ({ entity }) => entity.leads.map((key) => ({ key })),
  }),
);
