import { z } from 'zod';
import { defineStage, type HandlerContext } from '../../../../supabase/functions/_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../../../../supabase/functions/_millrace/model/model.ts';
import { modelSettings } from '../../../../supabase/functions/_millrace/model/model-settings.ts';
import { quote } from '../../../../supabase/functions/_millrace/model/prompt.ts';
import { trial } from '../_pipelines/trial.ts';

const input = z.object({ needs: z.object({ render: z.object({ rendered: z.string() }) }) });
const output = z.object({ verdict: z.string() });
const prompt = { label: 'judge-1', instructions: 'Say in one word how the text is.' };

/** Asks the trial's own model. */
export function judgeText({ needs }: z.output<typeof input>, context: HandlerContext) {
  const question = quote('text', needs.render.rendered, 1000);
  return askModel({ name: 'verdict', schema: output, prompt, input: question }, context);
}

export const judge = defineStage({
  pipeline: trial,
  stage: 'judge',
  input,
  output,
  handler: judgeText,
  services: [model],
  finish: finishAnswer(output),
  settings: [modelSettings],
});
