import { z } from 'zod';
import { type FinishContext, PermanentError } from '../_millrace/mod.ts';
import { jobExtras } from '../_pipelines/links-results.ts';
import { projectClient, projectError } from '../_services/project-client.ts';

const said = z.string().nullable();
const stagedJob = z.object({
  title: said,
  company: said,
  location: said,
  description: said,
  salary: said,
  extras: jobExtras,
});
const stagedPost = z.object({ author: said, text: z.string() });

/** The content of a link's page, as the stages understood it. */
export type StagedJob = z.output<typeof stagedJob>;
export type Staged = { job: StagedJob; post?: undefined } | { post: z.output<typeof stagedPost>; job?: undefined };

/** Reads what was understood of a link's page. Throws the PermanentError `stage_missing` where nothing was, or it is pruned. */
export async function readStaged(
  classification: 'job' | 'post',
  { entityId, env, signal }: Pick<FinishContext, 'entityId' | 'env' | 'signal'>,
): Promise<Staged> {
  const { data, error, status } = await projectClient(env)
    .rows.from(classification === 'job' ? 'linkedin_jobs_stage' : 'linkedin_posts_stage')
    .select()
    .eq('link_id', entityId)
    .abortSignal(signal)
    .maybeSingle();
  signal.throwIfAborted();
  if (error) throw projectError(status, error, `Reading what the page of link ${entityId} says`);
  if (data === null) {
    throw new PermanentError('stage_missing', 'What its page says is not here any more: write scraped.');
  }
  return classification === 'job' ? { job: stagedJob.parse(data) } : { post: stagedPost.parse(data) };
}
