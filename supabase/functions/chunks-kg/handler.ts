import { z } from 'zod';
import { readFacts, tidyFacts } from '../_documents/read-facts.ts';
import { defineStage } from '../_millrace/mod.ts';
import { finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { chunks } from '../_pipelines/chunks.ts';
import { kgResult } from '../_pipelines/chunks-results.ts';

const readAnswer = finishAnswer(kgResult);

export const kg = defineStage({
  pipeline: chunks,
  stage: 'kg',
  input: z.object({ entity: z.object({ text: z.string(), heading: z.string().nullable() }) }),
  output: kgResult,
  handler: ({ entity }, context) => readFacts(entity, context),
  services: [model],
  finish: async (job, context) => tidyFacts(await readAnswer(job, context)),
  settings: [modelSettings],
});
