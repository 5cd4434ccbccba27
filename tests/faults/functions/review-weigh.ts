import { z } from 'zod';
import { defineAgent } from '../../../supabase/functions/_millrace/agents/agent.ts';
import { defineTool } from '../../../supabase/functions/_millrace/agents/agent-tools.ts';
import { serveStage } from '../../../supabase/functions/_millrace/mod.ts';
import { review } from './pattern-pipelines.ts';
import { tellWitness } from './witnessed-step.ts';

const weigh = defineTool({
  name: 'weigh',
  description: 'Weighs one side.',
  parameters: z.object({ side: z.string() }),
  async run({ side }, { env, idempotencyKey, signal }) {
    await tellWitness(env, `weigh/${side}`, idempotencyKey, signal);
    return `${side} weighs 5`;
  },
});

serveStage(
  defineAgent({
    pipeline: review,
    stage: 'weigh',
    input: z.object({ entity: z.object({ id: z.number() }) }),
    output: z.object({ total: z.number() }),
    prompt: { label: 'weigh-1', instructions: 'Weigh both sides and add them up.' },
    ask: ({ entity }) => `Review ${entity.id}.`,
    tools: () => [weigh],
  }),
);
