import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type Chunk, keepChunks, lackingChunks } from '../_embeddings/chunk-rows.ts';
import { splitBody } from '../_embeddings/split-body.ts';
import { RetriableError, readSettings } from '../_millrace/mod.ts';
import { embeddingSettings, embedTexts } from '../_millrace/model/embeddings.ts';
import { type BatchContext, type BatchRow, defineBatchStage } from '../_millrace/stage/batch-stage.ts';
import { memos } from '../_pipelines/memos.ts';

/** As long as the column memo_chunks.embedding has it. */
const dimensions = 1536;
/** So many texts go in a request. */
const textsAtOnce = 100;
/** A model takes some 300,000 tokens at once, and a token is a byte at least. */
const bytesAtOnce = 300_000;

const input = z.object({ entity: z.object({ id: z.string(), revision: z.int(), body: z.string() }) });
/** The digests of the chunks that the memo has at this revision. */
const output = z.object({ revision: z.int(), chunks: z.array(z.string()) });
type Row = BatchRow<z.output<typeof input>>;

/**
 * Asks the model for the vectors of all chunks of many memos that have none yet, up to a hundred in a request. Vectors that are
 * written stay, so a retry buys nothing twice. Throws a StageError.
 */
export async function embedMemos(rows: readonly Row[], context: BatchContext) {
  const { env, signal } = context;
  const { LLM_EMBEDDING_MODEL: model } = readSettings(embeddingSettings, env);
  const chunks = rows.map(({ input: { entity } }) => chunksOf(entity, model));
  const lacking = await lackingChunks(chunks.flat(), env, signal);
  const refused = new Set<string>();
  for (const some of requestsOf(lacking)) {
    const vectors = await embedTexts(
      some.map(({ text }) => text),
      context,
      { dimensions },
    );
    const embedded = some.map((chunk, at) => ({ ...chunk, embedding: vectors[at] ?? [] }));
    const kept = await keepChunks(embedded, env, signal);
    for (const { memo_id } of some) if (!kept.has(memo_id)) refused.add(memo_id);
  }
  return rows.map(({ input: { entity } }, at) =>
    refused.has(entity.id)
      ? new RetriableError('memo_changed', 'The memo was changed meanwhile: its new body is embedded next.')
      : { revision: entity.revision, chunks: (chunks[at] ?? []).map(({ digest }) => digest) },
  );
}

/** The chunks by requests. */
function requestsOf(chunks: Chunk[]): Chunk[][] {
  const requests: Chunk[][] = [];
  let bytes = Infinity;
  for (const chunk of chunks) {
    const { length } = new TextEncoder().encode(chunk.text);
    bytes += length;
    if (bytes > bytesAtOnce || requests.at(-1)?.length === textsAtOnce) {
      requests.push([]);
      bytes = length;
    }
    requests.at(-1)?.push(chunk);
  }
  return requests;
}

function chunksOf({ id, revision, body }: Row['input']['entity'], model: string): Chunk[] {
  return splitBody(body).map((text) => ({ memo_id: id, revision, digest: digestOf(model, text), model, text }));
}

const digestOf = (model: string, text: string) =>
  createHash('sha256')
    .update(JSON.stringify([model, dimensions, text]))
    .digest('base64url');

export const embedStage = defineBatchStage({
  pipeline: memos,
  stage: 'embed',
  maxRows: 50,
  input,
  output,
  handler: embedMemos,
  settings: [embeddingSettings],
});
