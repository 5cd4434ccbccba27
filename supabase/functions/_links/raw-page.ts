import { z } from 'zod';
import { type HandlerContext, PermanentError } from '../_millrace/mod.ts';
import { projectClient, projectError } from '../_services/project-client.ts';
import { charsetDoubts } from '../_services/text/charset-doubts.ts';
import { fromBytea } from './base64.ts';
import { decodePage } from './decode-page.ts';
import type { RawPage } from './read-job.ts';

const tags = z.record(z.string(), z.string());
const rawRow = z.object({
  raw_html: z.string().nullable(),
  raw_json: z.object({
    json_ld: z.array(z.unknown()),
    broken: z.number(),
    open_graph: tags,
    meta: tags,
    title: z.string(),
    language: z.string().nullable(),
  }),
  notes: z.object({ final_url: z.string(), content_type: z.string() }),
});

/** The page of a link as it was fetched. Throws the PermanentError `raw_missing` where it was not, or has been pruned. */
export async function readRawPage(
  table: 'linkedin_jobs_raw' | 'linkedin_posts_raw',
  { entityId, env, signal }: HandlerContext,
): Promise<RawPage> {
  const { data, error, status } = await projectClient(env)
    .rows.from(table)
    .select('raw_html, raw_json, notes')
    .eq('link_id', entityId)
    .abortSignal(signal)
    .maybeSingle();
  signal.throwIfAborted();
  if (error) throw projectError(status, error, `Reading the page of link ${entityId}`);
  const row = rawRow.safeParse(data);
  if (!row.success || row.data.raw_html === null) {
    throw new PermanentError('raw_missing', 'The page is not here any more: write queued to fetch it anew.');
  }
  const { raw_html, raw_json, notes } = row.data;
  const decoded = decodePage(fromBytea(raw_html), notes.content_type);
  return { html: decoded.text, parts: raw_json, url: notes.final_url, doubts: charsetDoubts(decoded) };
}
