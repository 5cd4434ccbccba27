import { z } from 'zod';
import { defineStage, errorFromStatus, type HandlerContext } from '../../../../supabase/functions/_millrace/mod.ts';
import { trial } from '../_pipelines/trial.ts';

const input = z.object({ entity: z.object({ burns: z.boolean() }) });
const output = z.object({ text: z.string() });

/** Reads the trial's page. A row that burns uses up its function in its first attempt. */
export async function readPage({ entity }: z.output<typeof input>, { env, signal, retryCount }: HandlerContext) {
  if (entity.burns && retryCount === 0) for (;;);
  const answer = await fetch(`${env.TRIAL_SERVICE_URL}/page`, { signal });
  if (!answer.ok) throw errorFromStatus(answer.status, answer.headers, 'The page');
  return { text: await answer.text() };
}

export const read = defineStage({ pipeline: trial, stage: 'read', input, output, handler: readPage });
