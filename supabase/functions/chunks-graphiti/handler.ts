import { z } from 'zod';
import { postEpisode } from '../_documents/graphiti-client.ts';
import { chunks } from '../_pipelines/chunks.ts';
import { type GraphitiResult, graphitiResult } from '../_pipelines/chunks-results.ts';
import { PermanentError } from '../_shared/errors.ts';
import { projectClient, projectError } from '../_shared/project-client.ts';
import { type Env, readSettings } from '../_shared/settings.ts';
import { defineStage, type HandlerContext } from '../_shared/stage.ts';

const input = z.object({
  entity: z.object({
    id: z.string(),
    document_id: z.string(),
    ordinal: z.int(),
    text: z.string(),
    heading: z.string().nullable(),
    graphiti_posted_at: z.string().nullable(),
  }),
});

const document = z.object({
  clerk_org_id: z.string(),
  created_at: z.string(),
  source_path: z.string(),
  source_name: z.string().nullable(),
});

/** Hands a chunk to the Graphiti server where one is set up, into its organisation's graph, once. Throws a StageError. */
export async function postChunk(
  { entity }: z.output<typeof input>,
  { env, signal }: HandlerContext,
): Promise<GraphitiResult> {
  if (!readSettings('graphiti', env).GRAPHITI_URL) return { posted: false };
  if (entity.graphiti_posted_at !== null) return { posted: true };
  const source = await readDocument(entity.document_id, env, signal);
  const place = entity.heading ? ` (${entity.heading})` : '';
  const posted = await postEpisode(
    {
      groupId: source.clerk_org_id,
      name: `chunk ${entity.id}`,
      content: entity.text,
      timestamp: source.created_at,
      sourceDescription: `${source.source_name ?? source.source_path}, part ${entity.ordinal}${place}`,
    },
    env,
    signal,
  );
  return { posted };
}

async function readDocument(id: string, env: Env, signal: AbortSignal): Promise<z.output<typeof document>> {
  const { data, error, status } = await projectClient(env)
    .rows.from('document')
    .select('clerk_org_id, created_at, source_path, source_name:metadata->>source_name')
    .eq('id', id)
    .abortSignal(signal);
  signal.throwIfAborted();
  if (error) throw projectError(status, error, `Reading document ${id}`);
  const found = z.array(document).parse(data)[0];
  if (!found) throw new PermanentError('document_missing', `Document ${id} has been deleted.`);
  return found;
}

export const graphiti = defineStage({
  pipeline: chunks,
  stage: 'graphiti',
  input,
  output: graphitiResult,
  handler: postChunk,
  settings: ['graphiti'],
});
