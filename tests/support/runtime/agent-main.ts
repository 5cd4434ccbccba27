// A process that works at the stage `work` of the pipeline `flow` by an agent of the AI SDK, whose tool asks GATE_URL for leave to end.
import process from 'node:process';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs, tool } from 'ai';
import { z } from 'zod';
import { recordTurns } from '../../../supabase/functions/_millrace/agents/record-turns.ts';
import { definePipeline } from '../../../supabase/functions/_millrace/define/define-pipeline.ts';
import { serveWorker } from '../../../supabase/functions/_millrace/serve-worker.ts';
import { defineStage } from '../../../supabase/functions/_millrace/stage/stage.ts';

const { GATE_URL = '', MODEL_URL = '' } = process.env;

const flow = definePipeline({
  name: 'flow',
  entity: { table: 'public.items', key: 'id', projection: 'columns' },
  stages: { work: { kind: 'agent', function: 'flow-work', host: 'worker', batchSize: 1, maxWorkers: 1 } },
});

const work = defineStage({
  pipeline: flow,
  stage: 'work',
  input: z.object({ entity: z.object({ id: z.number() }) }),
  output: z.object({ said: z.string() }),
  handler: async ({ entity }, context) => {
    const look = tool({
      description: 'Looks at a page',
      inputSchema: z.object({ page: z.number() }),
      execute: async ({ page }) => {
        await fetch(`${GATE_URL}/gate/${entity.id}-${page}`, { signal: context.signal });
        return { page, on: 'the lamp is lit' };
      },
    });
    const client = createOpenAICompatible({ name: 'test', baseURL: MODEL_URL })('a-model');
    const recorded = await recordTurns({ model: client, tools: { look } }, context);
    const { text } = await generateText({ ...recorded, prompt: `Look at ${entity.id}.`, stopWhen: stepCountIs(9) });
    return { said: text };
  },
});

await serveWorker([work]);
