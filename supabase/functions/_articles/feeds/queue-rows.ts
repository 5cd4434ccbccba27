import { z } from 'zod';
import type { Env } from '../../_millrace/mod.ts';
import { projectClient, projectError } from '../../_services/project-client.ts';

/** Returns the addresses that the queue lacks, each page once. Throws a StageError. */
export async function unknownUrls(urls: string[], env: Env, signal: AbortSignal): Promise<string[]> {
  if (urls.length === 0) return [];
  const { data, error, status } = await projectClient(env)
    .rows.rpc('unknown_urls', { p_urls: urls })
    .abortSignal(signal);
  signal.throwIfAborted();
  if (error) throw projectError(status, error, 'Comparing the addresses with the queue');
  return z.array(z.string()).parse(data);
}

/** Makes a source due by its interval from now on, and says what is wrong. Throws a StageError. */
export async function postponeSource(id: string, message: string, env: Env, signal: AbortSignal): Promise<void> {
  const { error, status } = await projectClient(env)
    .rows.rpc('postpone_source', { p_source_id: id, p_error: message })
    .abortSignal(signal);
  signal.throwIfAborted();
  if (error) throw projectError(status, error, 'Putting the source off');
}
