import { z } from 'zod';
import {
  defineStage,
  type HandlerContext,
  type PipelineDefinition,
  type Stage,
} from '../../../supabase/functions/_millrace/mod.ts';
import { defineBatchStage } from '../../../supabase/functions/_millrace/stage/batch-stage.ts';

const input = z.object({ entity: z.object({ id: z.number() }) });
const output = z.object({ stage: z.string(), key: z.string(), receipt: z.string() });

/** A stage that pays the toll for its row, and whose result is the receipt. */
export const paidWork = (pipeline: PipelineDefinition, stage: string): Stage =>
  defineStage({ pipeline, stage, input, output, handler: ({ entity }, context) => pay(stage, entity.id, context) });

/** The same for many rows in one call, of which each has its own outcome. */
export const paidBatch = (pipeline: PipelineDefinition, stage: string, maxRows: number): Stage =>
  defineBatchStage({
    pipeline,
    stage,
    maxRows,
    input,
    output,
    handler: async (rows) => {
      const paid = rows.map((row) => pay(stage, row.input.entity.id, row.context));
      return (await Promise.allSettled(paid)).map((one) => (one.status === 'fulfilled' ? one.value : one.reason));
    },
  });

async function pay(stage: string, id: number, { env, idempotencyKey, signal }: HandlerContext) {
  const answer = await fetch(`${env.TOLL_URL}/${stage}/${id}`, {
    method: 'POST',
    headers: { 'idempotency-key': idempotencyKey },
    signal,
  });
  if (!answer.ok) throw new Error(`the toll answered ${answer.status}: ${await answer.text()}`);
  const { receipt } = z.object({ receipt: z.string() }).parse(await answer.json());
  return { stage, key: idempotencyKey, receipt };
}
