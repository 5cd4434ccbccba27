// Five stages that do nothing but say when their handler started.
import { z } from 'zod';
import {
  definePipeline,
  defineStage,
  type Stage,
  type StageInput,
} from '../../../../supabase/functions/_millrace/mod.ts';

const names = ['one', 'two', 'three', 'four', 'five'] as const;

const stages = names.map((name, index): [string, StageInput] => [
  name,
  {
    kind: 'function',
    function: `bench-${name}`,
    needs: names.slice(Math.max(0, index - 1), index),
    batchSize: 50,
    maxWorkers: 4,
    leaseSeconds: 60,
    timeoutSeconds: 30,
    retry: { maxAttempts: 1, backoff: { kind: 'list', seconds: [1] } },
  },
]);

export const hop = definePipeline({
  name: 'bench_hop',
  entity: { table: 'public.bench_hop', key: 'id', projection: 'columns' },
  stages: Object.fromEntries(stages),
});

/** The stage's code. Its output is the time its handler started, in epoch milliseconds. */
export function noOp(name: (typeof names)[number]): Stage {
  return defineStage({
    pipeline: hop,
    stage: name,
    input: z.object({}),
    output: z.object({ started: z.number() }),
    handler: () => ({ started: performance.timeOrigin + performance.now() }),
  });
}
