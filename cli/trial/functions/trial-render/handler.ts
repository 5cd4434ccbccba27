import { z } from 'zod';
import { defineStage, type HandlerContext, jobService, waiting } from '../../../../supabase/functions/_millrace/mod.ts';
import { trial } from '../_pipelines/trial.ts';

/** The trial's own function, by the settings TRIAL_SERVICE_URL and TRIAL_SERVICE_AUTH_TOKEN. */
const service = jobService({ name: 'trial-service' });

const input = z.object({ needs: z.object({ read: z.object({ text: z.string() }) }) });
const output = z.object({ rendered: z.string() });

/** Hands the text over to the service, which calls back. */
export async function renderText({ needs }: z.output<typeof input>, context: HandlerContext) {
  return waiting(service, await service.submit({ text: needs.read.text }, context, context.submissionKey));
}

export const render = defineStage({
  pipeline: trial,
  stage: 'render',
  input,
  output,
  handler: renderText,
  services: [service],
  finish: (job) => output.parse(service.resultOf(job)),
  settings: [service.settings],
});
