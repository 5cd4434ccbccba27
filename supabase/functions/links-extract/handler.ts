import { z } from 'zod';
import { extracted, jobAnswer, saysAll } from '../_links/job-answer.ts';
import { readStaged, type Staged } from '../_links/staged-rows.ts';
import { defineStage, type FinishContext, type HandlerContext, PermanentError, Waiting } from '../_millrace/mod.ts';
import { askModel, finishAnswer, model } from '../_millrace/model/model.ts';
import { modelSettings } from '../_millrace/model/model-settings.ts';
import { quote } from '../_millrace/model/prompt.ts';
import { links } from '../_pipelines/links.ts';
import { type ExtractResult, extractResult, kindOfLink } from '../_pipelines/links-results.ts';
import { projectClient, projectError } from '../_services/project-client.ts';
import { prompt } from './prompt.ts';

const longestRead = 24_000;
const maxOutputTokens = 2_000;
const readAnswer = finishAnswer(jobAnswer);

const input = z.object({ entity: z.object({ classification: kindOfLink }) });

/** Makes a job and its company of what a page says; the model is asked for what it does not state as data. Throws a StageError. */
export async function extractJob(
  { entity }: z.output<typeof input>,
  context: HandlerContext,
): Promise<ExtractResult | Waiting> {
  const staged = await readStaged(entity.classification, context);
  if (saysAll(staged)) return extracted(staged, null);
  // Boards show one job at several addresses.
  const cache = { days: 30, tenant: null };
  const question = { name: 'job', schema: jobAnswer, prompt, input: materialOf(staged), maxOutputTokens, cache };
  const answer = await askModel(question, context);
  return answer instanceof Waiting ? answer : extracted(staged, answer);
}

/** The job and company that a response of the model makes. Throws a StageError. */
export async function finishExtract(job: unknown, context: FinishContext): Promise<ExtractResult> {
  const answer = await readAnswer(job, context);
  return extracted(await readStaged(await kindOf(context), context), answer);
}

export const extract = defineStage({
  pipeline: links,
  stage: 'extract',
  input,
  output: extractResult,
  handler: extractJob,
  services: [model],
  finish: finishExtract,
  settings: [modelSettings],
});

function materialOf({ job, post }: Staged): string {
  const parts = job
    ? [job.title, job.company, job.location, job.salary, job.description]
    : [post.author && `By ${post.author}`, post.text];
  return quote('page', parts.filter(Boolean).join('\n\n'), longestRead);
}

async function kindOf({ entityId, env, signal }: FinishContext): Promise<'job' | 'post'> {
  const { data, error, status } = await projectClient(env)
    .rows.from('linkedin_links')
    .select('classification')
    .eq('id', entityId)
    .abortSignal(signal)
    .maybeSingle();
  signal.throwIfAborted();
  if (error) throw projectError(status, error, `Reading link ${entityId}`);
  const kind = kindOfLink.safeParse(data?.classification);
  if (kind.success) return kind.data;
  throw new PermanentError(
    'unknown_kind',
    'The link is no longer a job or a post: set classification, and status to new.',
  );
}
