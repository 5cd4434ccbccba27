import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { dataApi } from '../engine/data-api.ts';
import { readPlatform } from '../engine/platform.ts';
import { storable } from '../engine/storable.ts';
import { MisconfiguredError, messageOf } from '../errors.ts';
import { createLog } from '../log.ts';
import type { FinishContext } from '../stage/stage.ts';
import { parseForm, strictForm } from './answer-form.ts';
import type { Provider } from './model-settings.ts';
import type { Prompt } from './prompt.ts';

const table = 'model_answers';
const dayMs = 86_400_000;
const mostDays = 36_500;
/** Codes of PostgREST and Postgres for a table or column that is missing or may not be read. */
const lacksTable = ['PGRST205', '42P01', '42501', '42703', 'PGRST204'];

/** Whose former answers a question may get, and for how many days its own answer is kept. */
export interface AnswerCache {
  days: number;
  /** The id of the row's tenant, who alone gets the answer. Null where all rows belong to one owner. */
  tenant: string | null;
}

type Context = Pick<FinishContext, 'env' | 'signal'>;

/**
 * Throws a MisconfiguredError where a question's cache names no tenant or no days, before the answer is paid for. A tenant that is
 * undefined would otherwise share the answers of all rows.
 *
 * @internal
 */
export function checkCache({ days, tenant }: { days: unknown; tenant: unknown }): void {
  if (tenant !== null && (typeof tenant !== 'string' || tenant === '')) {
    const kind = tenant === '' ? 'empty' : typeof tenant;
    throw new MisconfiguredError(
      `The tenant of a question's cache is ${kind}: give the tenant's id as a text, or null where all rows belong to one owner.`,
    );
  }
  if (typeof days === 'number' && days > 0 && days <= mostDays) return;
  throw new MisconfiguredError(
    `The days of a question's cache are ${days}: give a number above 0, at most ${mostDays}.`,
  );
}

/**
 * The key of a question: two are the same if tenant, model, instructions, schema and input are.
 *
 * @internal
 */
export function questionKey(
  question: { name: string; schema: z.ZodObject; prompt: Prompt; input: string },
  { url, model }: Provider,
  { tenant }: AnswerCache,
): string {
  const { name, schema, prompt, input } = question;
  const parts = [tenant, url, model, prompt.instructions, name, strictForm(schema), input];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/**
 * Looks for the former answer to a question. Where the database does not answer, that is logged and the model is asked. Throws a
 * MisconfiguredError where the table is missing.
 *
 * @internal
 */
export async function findAnswer<S extends z.ZodObject>(
  key: string,
  schema: S,
  context: Context,
): Promise<z.output<S> | undefined> {
  const kept = await reach(context, async (client) => {
    const row = client.from(table).select('answer, expires_at').eq('key', key);
    return row.abortSignal(context.signal).maybeSingle();
  });
  const { answer, expires_at: until } = (kept ?? {}) as { answer?: unknown; expires_at?: string };
  if (until === undefined || Date.parse(until) <= Date.now()) return undefined;
  return parseForm(schema, answer).data;
}

/**
 * Keeps an answer that the schema has taken, for so many days. Each error is logged: the answer is paid for, and a retry would pay again.
 *
 * @internal
 */
export async function keepAnswer(key: string, days: number, answer: unknown, context: Context): Promise<void> {
  const expires_at = new Date(Date.now() + days * dayMs).toISOString();
  const row = storable({ key, answer, expires_at });
  try {
    await reach(context, async (client) => client.from(table).upsert(row).abortSignal(context.signal));
  } catch (error) {
    if (!(error instanceof MisconfiguredError)) throw error;
    createLog({}).warn('an answer is not kept', { error: messageOf(error) });
  }
}

/** Calls the table of answers; undefined where the database does not answer. */
async function reach(
  context: Context,
  call: (
    client: ReturnType<typeof dataApi>,
  ) => Promise<{ data: unknown; error: { code?: string; message: string } | null }>,
): Promise<unknown> {
  let said: { code?: string; message: string } | null;
  try {
    const { data, error } = await call(dataApi(readPlatform(context.env)));
    if (!error) return data;
    said = error;
  } catch (error) {
    said = { message: messageOf(error) };
  }
  context.signal.throwIfAborted();
  if (lacksTable.includes(said.code ?? '')) throw withoutTable(said.message);
  createLog({}).warn('the table of former answers fails', { error: said.message });
  return undefined;
}

function withoutTable(said: string): MisconfiguredError {
  const message =
    `The cache of answers needs the table public.${table}: create it by the migration in docs/model-stages.md, or remove cache ` +
    'from the question.';
  return new MisconfiguredError(message, said);
}
