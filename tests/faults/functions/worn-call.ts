// A stage that waits for a service and needs so much CPU of its own that its isolates are worn out one after the other.
import { z } from 'zod';
import { definePipeline, defineStage, serveStage } from '../../../supabase/functions/_millrace/mod.ts';

export const worn = definePipeline({
  name: 'worn',
  entity: { table: 'public.worn', key: 'id', projection: 'none' },
  stages: { call: { kind: 'function', function: 'worn-call', concurrency: 20, timeoutSeconds: 20 } },
});

/** Burns by the clock: on a busy machine it is less, so there is enough for several isolates anyway. */
function burn(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

export const call = defineStage({
  pipeline: worn,
  stage: 'call',
  input: z.object({ entity: z.object({ id: z.number() }) }),
  output: z.object({ called: z.boolean() }),
  async handler({ entity }, { env, signal }) {
    burn(14);
    const answer = await fetch(`${env.WORN_SERVICE_URL}/${entity.id}`, { signal });
    await answer.body?.cancel();
    burn(14);
    return { called: true };
  },
});

serveStage(call);
