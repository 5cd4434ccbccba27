import { z } from 'zod';
import { type Env, MisconfiguredError } from '../_millrace/mod.ts';
import { projectClient, projectError } from '../_services/project-client.ts';

const topic = z.object({ id: z.string(), name: z.string(), description: z.string().nullable() });
export type Topic = z.output<typeof topic>;

const tag = z.object({ name: z.string(), description: z.string().nullable() });
export type Tag = z.output<typeof tag>;

interface Reading {
  env: Env;
  signal: AbortSignal;
}

/** As many as one question can name. */
const mostRows = 200;

/**
 * The topics that articles should be about. Throws a MisconfiguredError where no row has one, or another StageError.
 */
export async function readTopics(reading: Reading): Promise<Topic[]> {
  return readRows('topic', 'id, name, description', topic, 'nothing says what articles should be about', reading);
}

/** The tags that there are. Throws a MisconfiguredError where there is none, or another StageError. */
export async function readTags(reading: Reading): Promise<Tag[]> {
  return readRows('tag', 'name, description', tag, 'there is no tag to choose from', reading);
}

async function readRows<S extends z.ZodType>(
  table: string,
  columns: string,
  shape: S,
  lack: string,
  { env, signal }: Reading,
): Promise<z.output<S>[]> {
  const { data, error, status } = await projectClient(env)
    .rows.from(table)
    .select(columns)
    .order('name')
    .limit(mostRows + 1)
    .abortSignal(signal);
  signal.throwIfAborted();
  if (error) throw projectError(status, error, `Reading the rows of ${table}`);
  const rows = z.array(shape).parse(data);
  if (rows.length > mostRows) {
    throw new MisconfiguredError(
      `The table ${table} has more than ${mostRows} rows, too many for one question: delete some.`,
    );
  }
  if (rows.length > 0) return rows;
  throw new MisconfiguredError(
    `The table ${table} is empty, so that ${lack}: insert rows with a name and a description.`,
  );
}
