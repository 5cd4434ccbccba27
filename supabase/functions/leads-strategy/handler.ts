import { z } from 'zod';
import { leads } from '../_pipelines/leads.ts';
import { intelResult, strategyResult } from '../_pipelines/leads-results.ts';
import { askModel, finishAnswer, model } from '../_shared/model.ts';
import { modelSettings } from '../_shared/model-settings.ts';
import { quoteResult } from '../_shared/prompt.ts';
import { defineStage, type HandlerContext } from '../_shared/stage.ts';
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
