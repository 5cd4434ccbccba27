import type { z } from 'zod';
import { type Env, PermanentError } from '../_millrace/mod.ts';
import { projectClient, projectError } from '../_services/project-client.ts';

/**
 * What a document's row has in `columns`, which the Data API reads as its `select`, in the form of `shape`. Throws the
 * PermanentError `no_such_document` for one that has been deleted, or another StageError.
 */
export async function documentRow<S extends z.ZodType>(
  documentId: string,
  columns: string,
  shape: S,
  env: Env,
  signal: AbortSignal,
): Promise<z.output<S>> {
  const { data, error, status } = await projectClient(env)
    .rows.from('document')
    .select(columns)
    .eq('id', documentId)
    .abortSignal(signal)
    .maybeSingle();
  signal.throwIfAborted();
  if (error) throw projectError(status, error, `Reading document ${documentId}`);
  if (!data) throw new PermanentError('no_such_document', `There is no document ${documentId} any more.`);
  return shape.parse(data);
}
