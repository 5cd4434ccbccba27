// A process that works at the stage `work` of the pipeline `flow`, whose handler asks GATE_URL for leave to end.
import process from 'node:process';
import { z } from 'zod';
import { definePipeline } from '../../../supabase/functions/_millrace/define/define-pipeline.ts';
import { serveWorker } from '../../../supabase/functions/_millrace/serve-worker.ts';
import { defineStage } from '../../../supabase/functions/_millrace/stage/stage.ts';

const { GATE_URL = '', BATCH_SIZE = '2' } = process.env;

const flow = definePipeline({
  name: 'flow',
  entity: { table: 'public.items', key: 'id', projection: 'columns' },
  stages: {
    work: { kind: 'function', function: 'flow-work', host: 'worker', batchSize: Number(BATCH_SIZE), maxWorkers: 1 },
  },
});

const work = defineStage({
  pipeline: flow,
  stage: 'work',
  input: z.object({ entity: z.object({ id: z.number() }) }),
  output: z.object({ by: z.number() }),
  handler: async ({ entity }, { signal }) => {
    const answer = await fetch(`${GATE_URL}/gate/${entity.id}`, { signal });
    await answer.text();
    return { by: process.pid };
  },
});

await serveWorker([work], { release: 'r7' });
