import { z } from 'zod';
import { definePipeline, type PipelineDefinition } from '../define/define-pipeline.ts';
import { defineStage, type Stage } from '../stage/stage.ts';
import { batchJobs, beginBatch, begun, finishBatch } from './begin-batch.ts';
import { distributeBatch, distributed } from './distribute-batch.ts';

const retry = {
  maxAttempts: 100,
  backoff: { kind: 'exponential' as const, baseSeconds: 30, factor: 2, capSeconds: 1800, jitter: 0.2 },
};
const stage = { batchSize: 1, maxWorkers: 2, leaseSeconds: 60, timeoutSeconds: 55, retry };

/**
 * The pipeline that carries the batches of models at batch prices: `begin` uploads and begins a batch and waits for it, and
 * `distribute` gives each row its answer. Its rows are written by the stages that use `atBatchPrice()`.
 */
export const modelBatches = definePipeline({
  name: 'model_batches',
  entity: { table: 'public.model_batches', key: 'id', projection: 'none', due: 'closes_at' },
  stages: {
    begin: {
      ...stage,
      kind: 'external',
      function: 'model-batches-begin',
      // Providers end a batch within 24 hours.
      completion: { callback: false, pollSeconds: 300, deadlineSeconds: 180_000 },
    },
    distribute: { ...stage, kind: 'function', function: 'model-batches-distribute', needs: ['begin'] },
  },
});

const entity = z.object({ id: z.number() });

/**
 * The stage that begins batches, of `pipeline` where a project has its own definition of it.
 *
 * @example
 * ```ts
 * serveStage(beginBatches());
 * ```
 */
export function beginBatches(pipeline: PipelineDefinition = modelBatches): Stage {
  return defineStage({
    pipeline,
    stage: 'begin',
    input: z.object({ entity }),
    output: begun,
    handler: (input, context) => beginBatch(input.entity.id, context),
    services: [batchJobs],
    finish: finishBatch,
  });
}

/**
 * The stage that gives the rows of a batch their answers.
 *
 * @example
 * ```ts
 * serveStage(distributeBatches());
 * ```
 */
export function distributeBatches(pipeline: PipelineDefinition = modelBatches): Stage {
  return defineStage({
    pipeline,
    stage: 'distribute',
    input: z.object({ entity, needs: z.object({ begin: begun }) }),
    output: distributed,
    handler: (input, context) => distributeBatch(input.entity.id, input.needs.begin, context),
  });
}
