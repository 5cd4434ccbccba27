// A line of the wait: rows through a stage whose handler waits, on a stack of their own with the platform's limits.

import path from 'node:path';
import type pg from 'pg';
import type { Stack } from '../../../local/platform/stack.ts';
import { compiled, definitionOf } from '../../support/definitions.ts';
import { onAStack } from '../on-a-stack.ts';
import type { Values } from '../results.ts';
import { watchStack } from '../stack-usage.ts';
import { everyWorkerHasLeft, nothingRuns, until } from '../until.ts';
import { type Calls, startCalls, waitOf } from './call-service.ts';
import { columns, outcomeOf } from './columns.ts';
import { waiting } from './functions/_wait.ts';
import { makespan } from './ideal.ts';

export interface WaitLine {
  rows: number;
  batch: number;
  workers: number;
  /** The CPU that each handler burns, in milliseconds. */
  cpuMs: number;
  /** A row whose handler never ends. */
  poisonous?: number;
}

const functionName = 'bench-wait';

/** Measures one line. Of one with a poisonous row, all but what is said of that row is measured of the others. */
export async function measure(line: WaitLine): Promise<Values> {
  const calls = await startCalls();
  const functionsDir = path.join(import.meta.dirname, 'functions');
  try {
    return await onAStack({ functionsDir, services: false, env: { BENCH_CALLS_URL: calls.url } }, async (...on) => {
      await prepare(...on, line);
      return measureOn(...on, line, calls);
    });
  } finally {
    await calls.stop();
  }
}

async function prepare(stack: Stack, client: pg.Client, line: WaitLine): Promise<void> {
  const { rows, batch, workers, cpuMs, poisonous = null } = line;
  await client.query(`
    create table public.bench_wait (
      id bigint primary key, wait_ms int not null, cpu_ms float8 not null, burns_for_ever boolean not null default false,
      call_status text not null default 'pending', call_job_id text, call_result jsonb, call_error text,
      call_retry_count int not null default 0, call_started_at timestamptz, call_completed_at timestamptz
    ) with (fillfactor = 50)`);
  await client.query('select millrace.define($1)', [compiled(definitionOf(waiting(batch, workers)))]);
  // A row in advance fills the caches of Deno, the Data API and the database; its function takes no other.
  await client.query(`insert into public.bench_wait (id, wait_ms, cpu_ms, call_status) values (0, 0, 0, 'queued')`);
  await until(client, 'the first row is through', nothingRuns);
  await until(client, 'every worker has left', everyWorkerHasLeft);
  stack.functions.retire(functionName);
  await client.query(
    `insert into public.bench_wait (id, wait_ms, cpu_ms, burns_for_ever)
     select number, ms, $2, number is not distinct from $3 from unnest($1::int[]) with ordinality as waits(ms, number)`,
    [Array.from({ length: rows }, (_, index) => waitOf(index + 1)), cpuMs, poisonous],
  );
  await client.query('vacuum analyze public.bench_wait');
}

async function measureOn(stack: Stack, client: pg.Client, line: WaitLine, calls: Calls): Promise<Values> {
  calls.reset();
  const watch = watchStack(stack, [functionName]);
  const { rows } = await client.query<{ at: Date }>('select clock_timestamp() as at');
  const began = (rows[0] as { at: Date }).at;
  await client.query(`update public.bench_wait set call_status = 'queued' where id > 0`);
  await until(client, 'every row is through', nothingRuns, { patienceMs: 1_800_000, everyMs: 100 });
  const used = watch.end();
  const { poisonous } = line;
  const except = poisonous === undefined ? [] : [poisonous];
  const outcome = await outcomeOf(client, { pipeline: 'bench_wait', began, except });
  const others = Array.from({ length: line.rows }, (_, index) => index + 1).filter((row) => row !== poisonous);
  const values = columns({
    ...outcome,
    ideal: makespan([others.map(waitOf)], line.batch * line.workers) / 1000,
    rows: others.length,
    bought: others.reduce((sum, row) => sum + (calls.ofRow.get(row) ?? 0), 0),
    transitions: line.rows,
    calls,
    used,
  });
  if (poisonous === undefined) return values;
  return { ...values, 'poisonous row': await fateOf(client, poisonous, began, calls) };
}

/** How the row that never ends did end. */
async function fateOf(client: pg.Client, row: number, began: Date, calls: Calls): Promise<string> {
  const { rows } = await client.query<{ fate: string }>(
    `select format('%s after %s s, %s attempts: %s', r.status, round(extract(epoch from r.finished_at - $2)), count(*),
       string_agg(coalesce(a.error ->> 'code', a.state::text), ', ' order by a.id)) as fate
     from millrace.runs r join millrace.attempts a on a.run_id = r.id
     where r.entity_id = $1 group by r.id`,
    [String(row), began],
  );
  return `${rows[0]?.fate}; ${calls.ofRow.get(row) ?? 0} calls`;
}
