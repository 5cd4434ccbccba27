import { z } from 'zod';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { quoteResult } from '../_millrace/model/prompt.ts';
import { leads } from '../_pipelines/leads.ts';
import { messagingResult, strategyResult, subjectResult } from '../_pipelines/leads-results.ts';
import { prompt } from './prompt.ts';

const input = z.object({ needs: z.object({ strategy: strategyResult, subject: subjectResult }) });

/** Writes the message. */
export function writeMessage({ needs }: z.output<typeof input>, context: HandlerContext) {
  const question = `${quoteResult('plan', needs.strategy)}\n\n${quoteResult('subject_lines', needs.subject)}`;
  return askModel({ name: 'outreach_message', schema: messagingResult, prompt, input: question }, context);
}

export const messaging = defineStage({
  pipeline: leads,
  stage: 'messaging',
  input,
  output: messagingResult,
  handler: writeMessage,
  services: [model],
  finish: finishAnswer(messagingResult),
  settings: [modelSettings],
});
