import { z } from 'zod';
import { defineStage, type PipelineDefinition, serveStage } from '../../../supabase/functions/_millrace/mod.ts';

/** Serves a stage that pays the toll for its row, and whose result is the receipt. */
export function servePaidWork(pipeline: PipelineDefinition, stage: string): void {
  serveStage(
    defineStage({
      pipeline,
      stage,
      input: z.object({ entity: z.object({ id: z.number() }) }),
      output: z.object({ stage: z.string(), key: z.string(), receipt: z.string() }),
      async handler({ entity }, { env, idempotencyKey, signal }) {
        const answer = await fetch(`${env.TOLL_URL}/${stage}/${entity.id}`, {
          method: 'POST',
          headers: { 'idempotency-key': idempotencyKey },
          signal,
        });
        if (!answer.ok) throw new Error(`the toll answered ${answer.status}: ${await answer.text()}`);
        const { receipt } = z.object({ receipt: z.string() }).parse(await answer.json());
        return { stage, key: idempotencyKey, receipt };
      },
    }),
  );
}
