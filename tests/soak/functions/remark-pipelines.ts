// A pipeline of the soak's own whose two stages ask models at batch prices, one of OpenAI's form and one of Anthropic's. Each answer
// is a receipt of the stand-in (batch-provider.ts), which is booked like the work that parcels pay for.
import { z } from 'zod';
import { atBatchPrice } from '../../../supabase/functions/_millrace/batches/batch-price.ts';
import { definePipeline, defineStage, type Stage } from '../../../supabase/functions/_millrace/mod.ts';
import { askModel, finishAnswer, modelService } from '../../../supabase/functions/_millrace/model/model.ts';

const work = {
  kind: 'function' as const,
  batchSize: 40,
  maxWorkers: 2,
  leaseSeconds: 60,
  timeoutSeconds: 20,
  retry: {
    maxAttempts: 8,
    backoff: { kind: 'exponential' as const, baseSeconds: 1, factor: 2, capSeconds: 30, jitter: 0.2 },
  },
  completion: { callback: true, pollSeconds: null, deadlineSeconds: 400_000 },
  apply: 'public.book_work',
};

export const remarks = definePipeline({
  name: 'remarks',
  entity: { table: 'public.remarks', key: 'id', projection: 'columns' },
  retention: { days: 1 },
  stages: {
    judge: { ...work, function: 'remarks-judge' },
    reply: { ...work, function: 'remarks-reply', needs: ['judge'] },
  },
});

/** The batch prices of each stage: the rest of a judge's batch is asked directly, that of a reply's joins another batch. */
const models = {
  judge: atBatchPrice(modelService({ name: 'judge' }), {
    within: '1h',
    gatherSeconds: 20,
    maxRows: 25,
    fallback: 'direct',
  }),
  reply: atBatchPrice(modelService({ name: 'reply' }), { within: '2h', gatherSeconds: 30, maxRows: 40 }),
};

const answer = z.object({ stage: z.string(), key: z.string(), receipt: z.string() });
const prompt = { label: 'remarks-1', instructions: 'Give a receipt.' };

/** The stage that asks for a receipt under its idempotency key. */
export function remarkStage(stage: keyof typeof models): Stage {
  const cheap = models[stage];
  return defineStage({
    pipeline: remarks,
    stage,
    input: z.object({ entity: z.object({ id: z.number(), body: z.string() }) }),
    output: answer,
    handler: ({ entity: { id, body } }, context) => {
      const input = JSON.stringify({ stage, id, key: context.idempotencyKey, body });
      return askModel({ name: 'receipt', schema: answer, prompt, input, model: cheap }, context);
    },
    services: [cheap],
    finish: finishAnswer(answer, cheap),
    settings: [cheap.settings],
  });
}
