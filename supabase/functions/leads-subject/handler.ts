import { z } from 'zod';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { quoteResult } from '../_millrace/model/prompt.ts';
import { leads } from '../_pipelines/leads.ts';
import { strategyResult, subjectResult } from '../_pipelines/leads-results.ts';
import { prompt } from './prompt.ts';

const input = z.object({ needs: z.object({ strategy: strategyResult }) });

/** Writes subject lines to choose from. */
export function writeSubjects({ needs }: z.output<typeof input>, context: HandlerContext) {
  const question = quoteResult('plan', needs.strategy);
  return askModel({ name: 'subject_lines', schema: subjectResult, prompt, input: question }, context);
}

export const subject = defineStage({
  pipeline: leads,
  stage: 'subject',
  input,
  output: subjectResult,
  handler: writeSubjects,
  services: [model],
  finish: finishAnswer(subjectResult),
  settings: [modelSettings],
});
