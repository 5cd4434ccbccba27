import type { PostgrestClient } from '@supabase/postgrest-js';
import { StorageClient } from '@supabase/storage-js';
import { dataApi, keyHeaders } from '../_millrace/engine/data-api.ts';
import { readPlatform } from '../_millrace/engine/platform.ts';
import { type Env, errorFromStatus, MisconfiguredError, PermanentError, UnavailableError } from '../_millrace/mod.ts';

/**
 * The project's rows and its Storage, with the rights of its secret key. Throws a MisconfiguredError without one.
 *
 * @example
 * ```ts
 * const { rows } = projectClient(context.env);
 * const { data, error, status } = await rows.from('orders').select('id').eq('id', entity.id);
 * if (error) throw projectError(status, error, 'The order');
 * ```
 */
export function projectClient(env: Env): { rows: PostgrestClient; storage: StorageClient } {
  const platform = readPlatform(env);
  const storage = new StorageClient(`${platform.url}/storage/v1`, keyHeaders(platform.secretKey));
  return { rows: dataApi(platform), storage };
}

/**
 * The status that a failed call of Storage means: its answer's own status is 400 for nearly everything.
 *
 * @example
 * ```ts
 * const { error } = await projectClient(env).storage.from('orders').info('7.pdf');
 * if (error) throw projectError(storageStatus(error), error, 'The order');
 * ```
 */
export function storageStatus(error: { status?: number; statusCode?: string }): number {
  return Number(error.statusCode) || error.status || 0;
}

/**
 * A StageError for a failed call. A failure that may pass is an UnavailableError: with it, a finish function keeps
 * the job that it was to finish.
 *
 * @param status HTTP status; 0 where no answer came.
 * @param what names the requested thing.
 *
 * @example
 * ```ts
 * const { error, status } = await projectClient(env).rows.from('orders').select('id');
 * if (error) throw projectError(status, error, 'The list of orders');
 * ```
 */
export function projectError(status: number, error: { message: string }, what: string): Error {
  const said = `${what}: ${error.message}`;
  if (status === 401 || status === 403) return new MisconfiguredError('The project refused its secret key.', said);
  if (status === 0)
    return new UnavailableError('project_unreachable', 'The project cannot be reached.', undefined, said);
  const { code, message, permanent } = errorFromStatus(status, new Headers(), what);
  return permanent
    ? new PermanentError(code, message, undefined, said)
    : new UnavailableError(code, message, undefined, said);
}
