import type { Values } from '../results.ts';
import { perTransition, watchStack } from '../stack-usage.ts';
import { nothingRuns, until } from '../until.ts';
import { functionNames, onANoOpStack } from './no-op-stack.ts';

/** Measures so many rows, from the update that queues them all to the end of the last run. */
export function measure({ rows, batch }: { rows: number; batch: number }): Promise<Values> {
  return onANoOpStack({ batch }, async (stack, client) => {
    await client.query(
      `insert into public.bench_hop (id, label) select n, 'row ' || n from generate_series(1, $1::int) n`,
      [rows],
    );
    await client.query('vacuum analyze public.bench_hop');
    const watch = watchStack(stack, functionNames);
    const { rows: said } = await client.query<{ at: Date }>('select clock_timestamp() as at');
    await client.query(`update public.bench_hop set one_status = 'queued' where id > 0`);
    await until(client, 'every row is through', nothingRuns, { patienceMs: 900_000, everyMs: 100 });
    const used = watch.end();
    const { rows: found } = await client.query<{ seconds: number; completed: number }>(
      `select extract(epoch from max(finished_at) - $1)::float8 as seconds,
         count(*) filter (where status = 'completed')::int as completed
       from millrace.runs where entity_id <> '0'`,
      [said[0]?.at],
    );
    const { seconds, completed } = found[0] as { seconds: number; completed: number };
    const { invocations, isolates } = used;
    const transitions = rows * functionNames.length;
    return {
      'rows a second': rows / seconds,
      seconds,
      completed,
      invocations,
      isolates,
      ...perTransition(used, transitions),
    };
  });
}
