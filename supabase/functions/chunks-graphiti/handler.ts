import { z } from 'zod';
import { documentRow } from '../_documents/document-row.ts';
import { defineStage, type HandlerContext, readSettings } from '../_millrace/mod.ts';
import { chunks } from '../_pipelines/chunks.ts';
import { type GraphitiResult, graphitiResult } from '../_pipelines/chunks-results.ts';
import { graphitiSettings, postEpisode } from '../_services/graphiti.ts';

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

const columns = 'clerk_org_id, created_at, source_path, source_name:metadata->>source_name';
const document = z.object({
  clerk_org_id: z.string(),
  created_at: z.string(),
  source_path: z.string(),
  source_name: z.string().nullable(),
});

/** Hands a chunk to the Graphiti server where one is set up, into its organisation's graph, once. Throws a StageError. */
export async function postChunk({ entity }: z.output<typeof input>, context: HandlerContext): Promise<GraphitiResult> {
  const { env, signal } = context;
  if (!readSettings(graphitiSettings, env).GRAPHITI_URL) return { posted: false };
  if (entity.graphiti_posted_at !== null) return { posted: true };
  const source = await documentRow(entity.document_id, columns, document, env, signal);
  const place = entity.heading ? ` (${entity.heading})` : '';
  const posted = await postEpisode(
    {
      groupId: source.clerk_org_id,
      name: `chunk ${entity.id}`,
      content: entity.text,
      timestamp: source.created_at,
      sourceDescription: `${source.source_name ?? source.source_path}, part ${entity.ordinal}${place}`,
    },
    context,
  );
  return { posted };
}

export const graphiti = defineStage({
  pipeline: chunks,
  stage: 'graphiti',
  input,
  output: graphitiResult,
  handler: postChunk,
  settings: [graphitiSettings],
});
