// The helpers that tests of two or more sessions share: open transactions, sessions that wait for one another, a graph that joins.
import type pg from 'pg';
import type { Engine, Row, StageDefinition } from './engine.ts';
import { until } from './until.ts';
import type { Claimed } from './worker.ts';

/** first → (left, right) → last, all with the given options. */
export function diamond(options: Row = {}): StageDefinition[] {
  return [
    { name: 'first', ...options },
    { name: 'left', needs: ['first'], ...options },
    { name: 'right', needs: ['first'], ...options },
    { name: 'last', needs: ['left', 'right'], ...options },
  ];
}

/** Resolves once `client` waits for a lock that another session holds. Throws when it does not. */
export async function untilBlocked(engine: Engine, client: pg.Client): Promise<void> {
  const { processID } = client as unknown as { processID: number };
  await until(() => engine.value<boolean>('select cardinality(pg_blocking_pids($1)) > 0', [processID]));
}

/** A session as postgres in which a transaction is open already. */
export async function openTransaction(engine: Engine, isolation = 'read committed'): Promise<pg.Client> {
  const client = await engine.database.connect();
  await client.query(`begin isolation level ${isolation}`);
  return client;
}

/** Starts a call and lets the test go on, without an unhandled rejection should it fail before it is awaited. */
export function begin<T>(call: Promise<T>): Promise<T> {
  call.catch(() => {});
  return call;
}

/** The stages that have been woken so far, as `pipeline.stage`, by name: wake-ups of one statement have no order. */
export async function wokenStages(engine: Engine): Promise<string[]> {
  return (await engine.wakes()).map(({ body }) => `${body.pipeline}.${body.stage}`).sort();
}

/** The report of an external job's end, as the callback and the poller send it. */
export function jobEnd(item: Pick<Claimed, 'submission'>, jobId: string, end: Row = {}): Row {
  return { submission: item.submission, service: 'scraper', job_id: jobId, outcome: 'completed', result: {}, ...end };
}
