import { z } from 'zod';
import { dataApi } from '../engine/data-api.ts';
import { readPlatform } from '../engine/platform.ts';
import { storable } from '../engine/storable.ts';
import { MisconfiguredError, messageOf, UnavailableError } from '../errors.ts';
import type { Env } from '../settings.ts';

/** Errors of a table or function that is not there or may not be used: PostgREST's, and Postgres's. */
const lacksTables = ['PGRST202', 'PGRST205', '42P01', '42883', '42501'];

/** A batch, as public.model_batches keeps it. */
export const batchRow = z.object({
  id: z.number(),
  key: z.string(),
  pipeline: z.string(),
  stage: z.string(),
  /** The service for which its rows wait. */
  service: z.string(),
  /** The beginning of the names of the model's settings, such as LLM. */
  settings: z.string(),
  api: z.enum(['responses', 'chat', 'messages']),
  url: z.string(),
  model: z.string(),
  prices: z.unknown(),
  /** Counts how often the batch began, once more after each file that was refused. */
  round: z.number(),
  begun_at: z.string().nullable(),
  /** How many questions were sent. */
  sent: z.number().nullable(),
  job_id: z.string().nullable(),
  status: z.string(),
  ended_at: z.string().nullable(),
  /** Whether its rows should wait no longer. */
  is_over: z.boolean(),
});
export type BatchRow = z.output<typeof batchRow>;

/** Why a question has no answer, with the API's own words where it gave some. */
export const lineFault = z.object({
  status: z.number().nullable(),
  code: z.string().nullable(),
  type: z.string().nullable(),
  message: z.string(),
});
export type LineFault = z.output<typeof lineFault>;

/** The answer to one question: the API's body, or the fault. */
export const lineAnswer = z.union([z.object({ body: z.unknown(), fault: z.null() }), z.object({ fault: lineFault })]);
export type LineAnswer = z.output<typeof lineAnswer>;

/** Calls a function of model-batches.sql. Throws a MisconfiguredError where they are missing. */
export async function callBatches<S extends z.ZodType>(
  { env, signal }: { env: Env; signal: AbortSignal },
  schema: S,
  name: string,
  args: { p_job?: object; p_items?: readonly unknown[] },
): Promise<z.output<S>> {
  let said: { code?: string; message: string; hint?: string | null } | null;
  try {
    const { data, error } = await dataApi(readPlatform(env)).rpc(name, storable(args)).abortSignal(signal);
    if (!error) return schema.parse(data);
    said = error;
  } catch (error) {
    if (error instanceof z.ZodError || error instanceof MisconfiguredError) throw error;
    said = { message: messageOf(error) };
  }
  signal.throwIfAborted();
  // A refusal of model_batch_gather() with its remedy.
  if (said.code === 'MR002') throw new MisconfiguredError(`${said.message}. ${said.hint ?? ''}`);
  if (!lacksTables.includes(said.code ?? '')) {
    throw new UnavailableError(
      'batches_unavailable',
      'The rows of model batches cannot be read or written now.',
      5_000,
      said.message,
    );
  }
  const message =
    'Batch prices need the tables public.model_batches and public.model_batch_lines: write a migration ' +
    'from _millrace/batches/model-batches.sql, and push it.';
  throw new MisconfiguredError(message, said.message);
}
