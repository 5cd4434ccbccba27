import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { percentile, type Values } from '../results.ts';
import { watchStack } from '../stack-usage.ts';
import { everyWorkerHasLeft, nothingRuns, until } from '../until.ts';
import { functionNames, onANoOpStack } from './no-op-stack.ts';

// As long as pg_net sleeps after it has sent requests: on an idle system no user's update falls into that second.
const idleMs = 1_200;

/** Measures one row after the other, each on an idle stack, by warm functions, from its update to the end of its run. */
export function measure({ rows }: { rows: number }): Promise<Values> {
  // The platform retires a process after a second of CPU; the next one's start is no way of a row through warm functions.
  const limits = { cpuSoftMs: 60_000, cpuHardMs: 120_000 };
  return onANoOpStack({ batch: 50, limits }, async (stack, client) => {
    const watch = watchStack(stack, functionNames);
    const times: number[] = [];
    for (let id = 1; id <= rows; id += 1) times.push(await oneRow(client, id));
    const used = watch.end();
    return {
      'p50 ms': percentile(times, 50),
      'p95 ms': percentile(times, 95),
      rows,
      invocations: used.invocations,
      'API calls a transition': used.apiCalls / (rows * functionNames.length),
    };
  });
}

/** Resolves to the milliseconds of one row. */
async function oneRow(client: pg.Client, id: number): Promise<number> {
  await client.query(`insert into public.bench_hop (id, label) values ($1, 'one')`, [id]);
  await until(client, 'every worker has left', everyWorkerHasLeft);
  await delay(idleMs);
  const { rows: said } = await client.query<{ at: Date }>(
    `update public.bench_hop set one_status = 'queued' where id = $1 returning statement_timestamp() as at`,
    [id],
  );
  await until(client, 'the row is through', nothingRuns);
  const { rows: found } = await client.query<{ ms: number }>(
    `select extract(epoch from finished_at - $1)::float8 * 1000 as ms from millrace.runs where entity_id = $2`,
    [said[0]?.at, String(id)],
  );
  return (found[0] as { ms: number }).ms;
}
