import { z } from 'zod';
import { leads } from '../_pipelines/leads.ts';
import { strategyResult, subjectResult } from '../_pipelines/leads-results.ts';
import { askModel, finishAnswer, model } from '../_shared/model.ts';
import { modelSettings } from '../_shared/model-settings.ts';
import { quoteResult } from '../_shared/prompt.ts';
import { defineStage, type HandlerContext } from '../_shared/stage.ts';
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
