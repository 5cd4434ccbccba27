import { z } from 'zod';
import { siteHookSettings, tellSite } from '../_articles/site-hook.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { siteNotices } from '../_pipelines/site-notices.ts';
import { projectClient, projectError } from '../_services/project-client.ts';

const input = z.object({
  entity: z.object({ id: z.string(), publication_id: z.string(), slug: z.string(), type: z.string() }),
});
const output = z.object({ told: z.boolean() });
const removed = 'publication.removed';

/**
 * Tells the site of a publication as it stands now. The notice's id goes with it, so that a site which hears of it twice can tell.
 * Of one that was removed its id and slug are told. Throws a StageError.
 */
export async function tell(
  { entity }: z.output<typeof input>,
  context: HandlerContext,
): Promise<z.input<typeof output>> {
  const { env, signal } = context;
  const { id, publication_id, slug, type } = entity;
  if (type === removed) return { told: await tellSite({ id, type, data: { id: publication_id, slug } }, context) };
  const { data, error, status } = await projectClient(env)
    .rows.from('publication')
    .select('id, slug, title, summary, tags, thumbnail_url, url, published_at, updated_at')
    .eq('id', publication_id)
    .abortSignal(signal)
    .maybeSingle();
  signal.throwIfAborted();
  if (error) throw projectError(status, error, `Reading publication ${publication_id}`);
  return { told: data !== null && (await tellSite({ id, type, data }, context)) };
}

export const tellStage = defineStage({
  pipeline: siteNotices,
  stage: 'tell',
  input,
  output,
  handler: tell,
  settings: [siteHookSettings],
});
