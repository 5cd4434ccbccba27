import { z } from 'zod';
import { chunkIds } from '../_documents/chunk-rows.ts';
import { defineMap, type HandlerContext } from '../_millrace/mod.ts';
import { documents } from '../_pipelines/documents.ts';

const input = z.object({ entity: z.object({ id: z.string() }) });

/** The document's chunks, in order, one item each. Throws a StageError. */
export async function* listChunks(
  { entity }: z.output<typeof input>,
  { env, signal }: HandlerContext,
): AsyncGenerator<{ key: string }> {
  for await (const key of chunkIds(entity.id, env, signal)) yield { key };
}

export const kgIngest = defineMap({
  pipeline: documents,
  stage: 'kg_ingest',
  input,
  item: z.object({ key: z.string() }),
  items: listChunks,
});
