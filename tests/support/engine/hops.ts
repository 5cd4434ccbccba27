// Which functions of the database a row enters on its way through one stage, as Postgres itself counts calls.
import type pg from 'pg';
import type { TestDatabase } from '../database.ts';

/** The functions of each part of the way, each once. */
export interface Way {
  /** From the write of a row to its queued attempt and the wake-up. */
  intake: string[];
  claim: string[];
  /** The completion of that row, which claims again. */
  complete: string[];
}

/**
 * Follows a row through a stage whose handler answers `result`: `write` queues it. All sessions are opened here, since calls are
 * counted in those alone that are opened after the counting is switched on.
 */
export async function wayThrough(
  database: TestDatabase,
  { pipeline, stage, result }: { pipeline: string; stage: string; result: unknown },
  write: (sql: pg.Client) => Promise<unknown>,
): Promise<Way> {
  const superuser = await database.connect('supabase_admin');
  await superuser.query(`alter database ${new URL(database.url).pathname.slice(1)} set track_functions = 'all'`);
  const user = await database.connect();
  const worker = await database.connect('service_role');
  // A sweep that is late would be started by the worker.
  await worker.query('select public.millrace_sweep()');
  const calls = async (sql: pg.Client) => {
    await sql.query('select pg_stat_force_next_flush()');
    const { rows } = await superuser.query<{ name: string; calls: string }>(
      `select funcname as name, sum(calls) as calls from pg_stat_user_functions
       where schemaname in ('millrace', 'public') group by 1 order by 1`,
    );
    return new Map(rows.map(({ name, calls }) => [name, calls]));
  };
  const entered = async (sql: pg.Client, work: () => Promise<unknown>) => {
    const before = await calls(sql);
    await work();
    return [...(await calls(sql))].filter(([name, count]) => before.get(name) !== count).map(([name]) => name);
  };
  const call = async (statement: string, values: unknown[]) => {
    const { rows } = await worker.query<{ answer: { batch: { attempt: number; token: string }[] } }>(statement, values);
    return rows[0]?.answer.batch ?? [];
  };
  const id = crypto.randomUUID();
  let items: unknown[] = [];
  return {
    intake: await entered(user, () => write(user)),
    claim: await entered(worker, async () => {
      const batch = await call(
        `select public.millrace_claim(p_pipeline => $1, p_stage => $2, p_worker => $3, p_host => $3, p_seq => 1, p_limit => 10) as answer`,
        [pipeline, stage, id],
      );
      if (batch.length !== 1) throw new Error(`${batch.length} rows were claimed, not the one that was queued`);
      items = batch.map(({ attempt, token }) => ({ attempt, token, outcome: 'completed', result }));
    }),
    complete: await entered(worker, () =>
      call(`select public.millrace_complete(p_worker => $1, p_seq => 2, p_items => $2, p_limit => 10) as answer`, [
        id,
        JSON.stringify(items),
      ]),
    ),
  };
}
