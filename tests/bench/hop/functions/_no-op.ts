// Five stages that do nothing but say when their handler started.
import { z } from 'zod';
import {
  definePipeline,
  defineStage,
  type Stage,
  type StageInput,
} from '../../../../supabase/functions/_millrace/mod.ts';

const names = ['one', 'two', 'three', 'four', 'five'] as const;

const stageOf = (name: string, index: number, batchSize: number): StageInput => ({
  kind: 'function',
  function: `bench-${name}`,
  needs: names.slice(Math.max(0, index - 1), index),
  batchSize,
  maxWorkers: 4,
  leaseSeconds: 60,
  timeoutSeconds: 30,
  retry: { maxAttempts: 1, backoff: { kind: 'list', seconds: [1] } },
});

/** The five stages in turn, under the name of their pipeline, which is that of its table too. */
export const noOps = (pipeline: string, batchSize: number) =>
  definePipeline({
    name: pipeline,
    entity: { table: `public.${pipeline}`, key: 'id', projection: 'columns' },
    stages: Object.fromEntries(names.map((name, index) => [name, stageOf(name, index, batchSize)])),
  });

/** The stage's code. Its output is the time its handler started, in epoch milliseconds. */
export function noOp(name: (typeof names)[number]): Stage {
  return defineStage({
    // The engine's definition says how many rows a worker takes.
    pipeline: noOps('bench_hop', 50),
    stage: name,
    input: z.object({}),
    output: z.object({ started: z.number() }),
    handler: () => ({ started: performance.timeOrigin + performance.now() }),
  });
}
