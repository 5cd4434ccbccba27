import { z } from 'zod';
import {
  defineStage,
  type Env,
  type PipelineDefinition,
  serveStage,
} from '../../../supabase/functions/_millrace/mod.ts';

/** Tells the test what is being done; it answers when it likes. */
export async function tellWitness(env: Env, what: string, idempotencyKey: string, signal: AbortSignal): Promise<void> {
  const headers = { 'idempotency-key': idempotencyKey };
  const answer = await fetch(`${env.WITNESS_URL}/${what}`, { method: 'POST', headers, signal });
  await answer.body?.cancel();
}

/** Serves a stage that tells the test of its entity, and nothing else. */
export function serveWitnessedStep(pipeline: PipelineDefinition, stage: string): void {
  serveStage(
    defineStage({
      pipeline,
      stage,
      input: z.object({ entity: z.object({ id: z.number() }) }),
      output: z.object({ done: z.number() }),
      async handler({ entity }, { env, idempotencyKey, signal }) {
        await tellWitness(env, `${stage}/${entity.id}`, idempotencyKey, signal);
        return { done: entity.id };
      },
    }),
  );
}
