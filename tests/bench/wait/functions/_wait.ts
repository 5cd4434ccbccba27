// A stage that waits for a service, as most stages do, and burns as much CPU as its row says.
import { z } from 'zod';
import { definePipeline, defineStage } from '../../../../supabase/functions/_millrace/mod.ts';

/** The pipeline of one line of the benchmark. */
export const waiting = (batchSize: number, maxWorkers: number) =>
  definePipeline({
    name: 'bench_wait',
    entity: { table: 'public.bench_wait', key: 'id', projection: 'columns' },
    stages: {
      call: {
        kind: 'function',
        function: 'bench-wait',
        batchSize,
        maxWorkers,
        leaseSeconds: 60,
        timeoutSeconds: 30,
        retry: { maxAttempts: 3, backoff: { kind: 'list', seconds: [1] } },
      },
    },
  });

const row = z.object({ id: z.number(), wait_ms: z.number(), cpu_ms: z.number(), burns_for_ever: z.boolean() });

/** The stage's code: half of the CPU, the call of the service, the other half, which may have no end. */
export const call = defineStage({
  // The engine's definition says how many rows a worker takes.
  pipeline: waiting(10, 4),
  stage: 'call',
  input: z.object({ entity: row }),
  output: z.object({ waited: z.number() }),
  async handler({ entity }, { env, signal }) {
    burn(entity.cpu_ms / 2);
    const url = `${env.BENCH_CALLS_URL}/call?row=${entity.id}&ms=${entity.wait_ms}`;
    const answer = await fetch(url, { method: 'POST', signal });
    await answer.body?.cancel();
    burn(entity.burns_for_ever ? Infinity : entity.cpu_ms / 2);
    return { waited: entity.wait_ms };
  },
});

function burn(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
