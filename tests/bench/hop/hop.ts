// How long the way from one stage to the next takes through the whole stack: functions in Deno, the Data API, the
// wake-ups. Then the same with every wake-up left to pg_net, which is what a chain of triggers would do.

import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startStack } from '../../../local/platform/stack.ts';
import { compiled, definitionOf } from '../../support/definitions.ts';
import { stageNames } from '../engine.ts';
import { createEntityTable } from '../engines/millrace.ts';
import { percentile, type Result, round } from '../results.ts';
import { everyWorkerHasLeft, until } from '../until.ts';
import { noOps } from './functions/_no-op.ts';

const warmUps = 5;
const measured = { millrace: 30, pgNet: 6 };
// pg_net sleeps a second after each batch. On an idle system a user's update does not fall into that second.
const idleMs = 1_200;

// Every wake-up goes to pg_net in the transaction that has the work, and the worker is told of none.
const wakeByPgNet = `
create or replace function millrace.wake_list(p_stage_ids int[]) returns jsonb
language plpgsql set search_path = ''
as $$
begin
  perform millrace.post(s.function_name, jsonb_build_object('stage', s.name)) from millrace.stages s where s.id = any (p_stage_ids);
  return '[]';
end
$$`;

interface Times {
  /** From the user's update to the first handler, in milliseconds. */
  first: number[];
  /** From a stage's completion to the next stage's handler. */
  hops: number[];
}

/** Measures hops of warm functions on an idle stack, one entity at a time. */
export async function hop(progress: (message: string) => void): Promise<Result[]> {
  const stack = await startStack({
    functionsDir: path.join(import.meta.dirname, 'functions'),
    services: false,
    // The platform retires a process after a second of CPU; the next one's start is no hop of a warm function.
    limits: { cpuSoftMs: 60_000, cpuHardMs: 120_000 },
    progress: (message) => progress(`hop: ${message}`),
  });
  const client = new pg.Client({ connectionString: stack.dbUrl });
  try {
    await client.connect();
    await createEntityTable(client, 'bench_hop', 'columns');
    await client.query('select millrace.define($1)', [compiled(definitionOf(noOps('bench_hop', 50)))]);
    const millrace = await measure(client, warmUps, measured.millrace);
    progress(`hop: millrace, median ${round(percentile(millrace.hops, 50))} ms; now by pg_net alone`);
    await client.query(wakeByPgNet);
    const pgNet = await measure(client, 1, measured.pgNet);
    return [...report('millrace', millrace), ...report('pg_net', pgNet)];
  } catch (error) {
    const said = stageNames.flatMap((stage) => stack.functions.logs(`bench-${stage}`).slice(-3));
    throw new Error(`${error instanceof Error ? error.message : error}\nThe functions wrote:\n${said.join('\n')}`);
  } finally {
    await client.end();
    await stack.stop();
  }
}

function report(engine: string, { first, hops }: Times): Result[] {
  const lines = { 'hop to the next stage': hops, 'hop from update to first stage': first };
  return Object.entries(lines).flatMap(([work, times]) =>
    [50, 95].map((share) => ({
      work,
      engine,
      variant: `p${share}`,
      value: round(percentile(times, share)),
      unit: 'ms',
    })),
  );
}

async function measure(client: pg.Client, unmeasured: number, entities: number): Promise<Times> {
  const times: Times = { first: [], hops: [] };
  for (let number = 1; number <= unmeasured + entities; number += 1) {
    const { first, hops } = await execution(client);
    if (number <= unmeasured) continue;
    times.first.push(first);
    times.hops.push(...hops);
  }
  return times;
}

/** One entity through all stages. */
async function execution(client: pg.Client): Promise<{ first: number; hops: number[] }> {
  const inserted = await client.query<{ id: string }>(
    `insert into public.bench_hop (id, label) select coalesce(max(id), 0) + 1, 'one' from public.bench_hop returning id`,
  );
  const id = inserted.rows[0]?.id;
  // A worker that is still about to leave would take the work without a wake-up.
  await until(client, 'every worker has left', everyWorkerHasLeft);
  await delay(idleMs);
  const updated = performance.timeOrigin + performance.now();
  await client.query(`update public.bench_hop set one_status = 'queued' where id = $1`, [id]);
  const through = `select five_status = 'completed' as met from public.bench_hop where id = $1`;
  await until(client, 'the entity is through', through, { values: [id] });
  const { rows } = await client.query<{ started: number; finished: number }>(
    `select (a.output ->> 'started')::float8 as started, extract(epoch from a.finished_at)::float8 * 1000 as finished
     from millrace.runs r join millrace.attempts a on a.run_id = r.id
     join millrace.pipelines p on p.id = r.pipeline_id
     where p.name = 'bench_hop' and r.entity_id = $1 order by a.id`,
    [id],
  );
  if (rows.length !== stageNames.length) throw new Error(`Entity ${id} has ${rows.length} results.`);
  const hops = rows.slice(1).map(({ started }, index) => started - (rows[index] as { finished: number }).finished);
  return { first: (rows[0] as { started: number }).started - updated, hops };
}
