// A process that works at the stage `begin` of the pipeline model_batches.
import process from 'node:process';
import { beginBatches, modelBatches } from '../../../supabase/functions/_millrace/batches/model-batches.ts';
import { definePipeline } from '../../../supabase/functions/_millrace/define/define-pipeline.ts';
import { serveWorker } from '../../../supabase/functions/_millrace/serve-worker.ts';

const { name, entity, stages } = modelBatches.input;
/** The pipeline, with `begin` on a worker of one's own. */
export const onWorker = definePipeline({
  name,
  entity,
  stages: { ...stages, begin: { ...stages.begin, host: 'worker' } } as typeof stages,
}) as typeof modelBatches;

if (process.env.LLM_URL) await serveWorker([beginBatches(onWorker)]);
