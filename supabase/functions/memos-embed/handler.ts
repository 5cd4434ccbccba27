import { createHash } from 'node:crypto';
import { z } from 'zod';
import { keepPassages, lackingPassages, type Passage } from '../_embeddings/passage-rows.ts';
import { splitBody } from '../_embeddings/split-body.ts';
import { RetriableError, readSettings } from '../_millrace/mod.ts';
import { embeddingSettings, embedTexts } from '../_millrace/model/embeddings.ts';
import { type BatchContext, type BatchRow, defineBatchStage } from '../_millrace/stage/batch-stage.ts';
import { memos } from '../_pipelines/memos.ts';

/** As long as the column passages.embedding has it. */
const dimensions = 1536;
/** So many texts go in a request: a model takes some 300,000 tokens at once. */
const textsAtOnce = 100;

const input = z.object({ entity: z.object({ id: z.string(), revision: z.int(), body: z.string() }) });
/** The digests of the passages that the memo has at this revision. */
const output = z.object({ revision: z.int(), passages: z.array(z.string()) });
type Row = BatchRow<z.output<typeof input>>;

/**
 * Asks the model for the vectors of all passages of many memos that have none yet, a hundred in a request. What was written stays,
 * so a retry buys nothing twice. Throws a StageError.
 */
export async function embedMemos(rows: readonly Row[], context: BatchContext) {
  const { env, signal } = context;
  const { LLM_EMBEDDING_MODEL: model } = readSettings(embeddingSettings, env);
  const passages = rows.map(({ input: { entity } }) => passagesOf(entity, model));
  const lacking = await lackingPassages(passages.flat(), env, signal);
  const refused = new Set<string>();
  for (let from = 0; from < lacking.length; from += textsAtOnce) {
    const some = lacking.slice(from, from + textsAtOnce);
    const vectors = await embedTexts(
      some.map(({ text }) => text),
      context,
      { dimensions },
    );
    const embedded = some.map((passage, at) => ({ ...passage, embedding: vectors[at] ?? [] }));
    const kept = await keepPassages(embedded, env, signal);
    for (const { memo_id } of some) if (!kept.has(memo_id)) refused.add(memo_id);
  }
  return rows.map(({ input: { entity } }, at) =>
    refused.has(entity.id)
      ? new RetriableError('memo_changed', 'The memo was changed meanwhile: its new body is embedded next.')
      : { revision: entity.revision, passages: (passages[at] ?? []).map(({ digest }) => digest) },
  );
}

function passagesOf({ id, revision, body }: Row['input']['entity'], model: string): Passage[] {
  return splitBody(body).map((text) => ({ memo_id: id, revision, digest: digestOf(model, text), text }));
}

const digestOf = (model: string, text: string) =>
  createHash('sha256')
    .update(JSON.stringify([model, dimensions, text]))
    .digest('hex')
    .slice(0, 32);

export const embedStage = defineBatchStage({
  pipeline: memos,
  stage: 'embed',
  maxRows: 50,
  input,
  output,
  handler: embedMemos,
  settings: [embeddingSettings],
});
