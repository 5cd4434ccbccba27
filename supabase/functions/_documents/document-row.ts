import type { z } from 'zod';
import { type Env, PermanentError } from '../_millrace/mod.ts';
import { projectClient, projectError } from '../_services/project-client.ts';

/**
 * Reads `columns` of a document's row. Throws the PermanentError `no_such_document` for a deleted document, or
 * another StageError.
 *
 * @param columns the `select` of the Data API.
 * @param shape the form of the row.
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
