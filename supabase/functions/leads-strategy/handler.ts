import { z } from 'zod';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { quoteResult } from '../_millrace/model/prompt.ts';
import { leads } from '../_pipelines/leads.ts';
import { intelResult, strategyResult } from '../_pipelines/leads-results.ts';
import { prompt } from './prompt.ts';

const input = z.object({ needs: z.object({ intel: intelResult }) });

/** Plans how to approach the company. */
export function planApproach({ needs }: z.output<typeof input>, context: HandlerContext) {
  const question = quoteResult('company_notes', needs.intel);
  return askModel({ name: 'outreach_strategy', schema: strategyResult, prompt, input: question }, context);
}

export const strategy = defineStage({
  pipeline: leads,
  stage: 'strategy',
  input,
  output: strategyResult,
  handler: planApproach,
  services: [model],
  finish: finishAnswer(strategyResult),
  settings: [modelSettings],
});
