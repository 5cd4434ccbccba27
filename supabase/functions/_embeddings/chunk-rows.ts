import { z } from 'zod';
import type { Env } from '../_millrace/mod.ts';
import { projectClient, projectError } from '../_services/project-client.ts';

/** A piece of a memo's body. */
export interface Chunk {
  memo_id: string;
  revision: number;
  /** A hash of the model and the text. */
  digest: string;
  model: string;
  text: string;
}

const keys = z.array(z.object({ memo_id: z.string(), digest: z.string() }));

/** Resolves to the chunks that have no vector yet. Throws a StageError. */
export async function lackingChunks(chunks: Chunk[], env: Env, signal: AbortSignal): Promise<Chunk[]> {
  const asked = chunks.map(({ memo_id, digest }) => ({ memo_id, digest }));
  const keyOf = ({ memo_id, digest }: { memo_id: string; digest: string }) => `${memo_id} ${digest}`;
  const lacking = new Set(keys.parse(await call('lacking_chunks', asked, env, signal)).map(keyOf));
  return chunks.filter((chunk) => lacking.has(keyOf(chunk)));
}

/**
 * Writes chunks with their vectors; they take effect when the memo's run completes. Resolves to the memos that took theirs: the
 * others have changed, or are being changed. Throws a StageError.
 */
export async function keepChunks(
  chunks: (Chunk & { embedding: number[] })[],
  env: Env,
  signal: AbortSignal,
): Promise<Set<string>> {
  return new Set(z.array(z.string()).parse(await call('keep_chunks', chunks, env, signal)));
}

async function call(name: string, items: object[], env: Env, signal: AbortSignal): Promise<unknown> {
  const { data, error, status } = await projectClient(env).rows.rpc(name, { p_items: items }).abortSignal(signal);
  signal.throwIfAborted();
  if (error) throw projectError(status, error, `The chunks (${name})`);
  return data;
}
