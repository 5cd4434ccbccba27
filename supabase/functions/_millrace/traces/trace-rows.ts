// The answers of the functions of traces.sql.
import '../zod-settings.ts';
import { z } from 'zod';

/** Microseconds since 1970. */
const micros = z.number();

const attempt = z.object({
  attempt: z.number(),
  stage: z.string(),
  number: z.number(),
  state: z.string(),
  /** Whether its stage was started over. */
  superseded: z.boolean(),
  isolated: z.boolean(),
  retry_of: z.number().nullable(),
  created: micros,
  started: micros.nullable(),
  finished: micros.nullable(),
  job_started: micros.nullable(),
  service: z.string().nullable(),
  job: z.string().nullable(),
  code: z.string().nullable(),
  message: z.string().nullable(),
  usage: z.record(z.string(), z.unknown()).nullable(),
  children: z.array(z.object({ run: z.number(), trace: z.string() })),
});

/** A run that has ended, with all that its spans say. */
const endedRun = z.object({
  run: z.number(),
  trace: z.string(),
  entity: z.string(),
  status: z.string(),
  ended_as: z.string().nullable(),
  code: z.string().nullable(),
  created: micros,
  finished: micros,
  /** The time of `finished`, as the database writes it. */
  ended_at: z.string(),
  /** The traceparent of the request that wrote the row, where the row's metadata has it. */
  writer: z.string().nullable(),
  parent: z.object({ run: z.number(), trace: z.string(), attempt: z.number() }).nullable(),
  attempts: z.array(attempt),
});

const cursor = z.object({ at: z.string(), run: z.number() });

/** The next runs of one pipeline; null where nothing is due. */
export const takenTraces = z
  .object({ pipeline: z.string(), from: cursor, to: cursor, runs: z.array(endedRun) })
  .nullable();

export type TracedAttempt = z.output<typeof attempt>;
export type EndedRun = z.output<typeof endedRun>;
export type TakenTraces = NonNullable<z.output<typeof takenTraces>>;
