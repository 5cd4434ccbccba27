// One line of the wait: rows through a stage whose handler waits, on a stack of their own with the platform's limits.
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Stack, startStack } from '../../../local/platform/stack.ts';
import type { Values } from '../results.ts';
import { watchStack } from '../stack-usage.ts';
import { type Calls, startCalls } from './call-service.ts';
import { waiting } from './functions/_wait.ts';
import { listSchedule } from './ideal.ts';

export interface WaitLine {
  rows: number;
  batch: number;
  workers: number;
  /** What each handler burns, in milliseconds. */
  cpuMs: number;
  /** Whether the handler of one row never ends. */
  poison: boolean;
}

const functionName = 'bench-wait';
const patienceMs = 900_000;

/** From one to three seconds, the same for a row in every round, and spread evenly over the rows. */
export const waitOf = (row: number) => 1_000 + ((row * 1_237) % 2_000);

/** Measures one line. */
export async function measure(line: WaitLine): Promise<Values> {
  const calls = await startCalls();
  const stack = await startStack({
    functionsDir: path.join(import.meta.dirname, 'functions'),
    services: false,
    env: { BENCH_CALLS_URL: calls.url },
  });
  const client = new pg.Client({ connectionString: stack.dbUrl });
  try {
    await client.connect();
    await prepare(client, stack, line);
    calls.reset();
    const watch = watchStack(stack, [functionName]);
    const poisonous = line.poison ? line.rows / 2 : 0;
    const began = await start(client, poisonous);
    await until(client, `select not exists (select from millrace.runs where status = 'running') as met`);
    return await report(client, line, { calls, used: watch.end(), began, poisonous });
  } catch (error) {
    const said = stack.functions.logs(functionName).slice(-5).join('\n');
    throw new Error(`${error instanceof Error ? error.message : error}\nThe function wrote:\n${said}`);
  } finally {
    await client.end();
    await stack.stop();
    await calls.stop();
  }
}

async function prepare(client: pg.Client, stack: Stack, { rows, batch, workers, cpuMs }: WaitLine): Promise<void> {
  await client.query(`
    create table public.bench_wait (
      id bigint primary key, wait_ms int not null, cpu_ms float8 not null, burns_for_ever boolean not null default false,
      call_status text not null default 'pending', call_job_id text, call_result jsonb, call_error text,
      call_retry_count int not null default 0, call_started_at timestamptz, call_completed_at timestamptz
    ) with (fillfactor = 50)`);
  await client.query('select millrace.define($1)', [JSON.stringify(waiting(batch, workers).toJson())]);
  // One row in advance fills the caches of Deno, the Data API and the database; its function takes no other.
  await client.query(`insert into public.bench_wait (id, wait_ms, cpu_ms, call_status) values (0, 0, 0, 'queued')`);
  await until(client, `select call_status = 'completed' as met from public.bench_wait where id = 0`);
  await until(client, 'select not exists (select from millrace.workers where left_at is null) as met');
  stack.functions.retire(functionName);
  await client.query(
    `insert into public.bench_wait (id, wait_ms, cpu_ms)
     select n, w, $2 from unnest($1::int[]) with ordinality as given(w, n)`,
    [Array.from({ length: rows }, (_, index) => waitOf(index + 1)), cpuMs],
  );
  await client.query('vacuum analyze public.bench_wait');
}

/** Queues all rows by one update; resolves to its time. */
async function start(client: pg.Client, poisonous: number): Promise<Date> {
  await client.query('update public.bench_wait set burns_for_ever = true where id = $1', [poisonous]);
  const { rows } = await client.query<{ now: Date }>('select clock_timestamp() as now');
  await client.query(`update public.bench_wait set call_status = 'queued' where id > 0`);
  return (rows[0] as { now: Date }).now;
}

interface Seen {
  calls: Calls;
  used: ReturnType<ReturnType<typeof watchStack>['end']>;
  began: Date;
  poisonous: number;
}

async function report(client: pg.Client, line: WaitLine, { calls, used, began, poisonous }: Seen): Promise<Values> {
  const { rows } = await client.query<{ seconds: number; completed: number; isolated: number }>(
    `select extract(epoch from max(r.finished_at) - $1)::float8 as seconds,
       count(*) filter (where r.status = 'completed')::int as completed,
       count(*) filter (where exists (select from millrace.attempts a where a.run_id = r.id and a.isolated))::int as isolated
     from millrace.runs r where r.entity_id not in ('0', $2)`,
    [began, String(poisonous || 0)],
  );
  const { seconds, completed, isolated } = rows[0] as { seconds: number; completed: number; isolated: number };
  const others = Array.from({ length: line.rows }, (_, index) => index + 1).filter((row) => row !== poisonous);
  const ideal = listSchedule(others.map(waitOf), line.batch * line.workers) / 1000;
  return {
    'ratio to ideal': seconds / ideal,
    seconds,
    ideal,
    rows: others.length,
    completed,
    'calls bought': others.reduce((sum, row) => sum + (calls.ofRow.get(row) ?? 0), 0),
    isolated,
    'at once, most': calls.most(),
    'at once, mean': calls.waited() / seconds,
    invocations: used.requests.functions,
    isolates: used.isolates,
    'API calls a row': used.requests.api / line.rows,
    'Postgres ms a row': used.cpuMs.Postgres / line.rows,
    'PostgREST ms a row': used.cpuMs.PostgREST / line.rows,
    'Deno ms a row': used.cpuMs.Deno / line.rows,
    ...(line.poison && { 'poisonous row': await fateOf(client, poisonous, began, calls) }),
  };
}

/** How the row that never ends did end. */
async function fateOf(client: pg.Client, row: number, began: Date, calls: Calls): Promise<string> {
  const { rows } = await client.query<{ status: string; seconds: number; attempts: number; codes: string }>(
    `select r.status, extract(epoch from r.finished_at - $2)::float8 as seconds, count(*)::int as attempts,
       string_agg(a.error ->> 'code', ', ' order by a.id) as codes
     from millrace.runs r join millrace.attempts a on a.run_id = r.id where r.entity_id = $1 group by r.id`,
    [String(row), began],
  );
  const fate = rows[0] as { status: string; seconds: number; attempts: number; codes: string };
  return `${fate.status} after ${Math.round(fate.seconds)} s, ${calls.ofRow.get(row) ?? 0} calls, ${fate.attempts} attempts: ${fate.codes}`;
}

async function until(client: pg.Client, statement: string): Promise<void> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const { rows } = await client.query<{ met: boolean }>(statement);
    if (rows[0]?.met) return;
    if (Date.now() > deadline) throw new Error(`Not within ${patienceMs / 1000} s: ${statement}`);
    await delay(100);
  }
}
