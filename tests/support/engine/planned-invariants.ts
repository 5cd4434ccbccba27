// millrace.check_invariants() as a statement that a session plans once. Postgres plans a function in SQL anew at each call, which
// takes most of the time where the tables are small, and it is called after every test.
import { createHash } from 'node:crypto';
import type pg from 'pg';
import { allFaults, bookkeepingFaults } from '../bookkeeping.ts';

/** Beyond these many attempts a plan made for fewer would cost more than it spares. */
const fewAttempts = 500;

/** Thresholds whose counts are not what the children have done, which no view of the engine looks at. */
const miscounts = `
  select f.id as fan_out, s.name as stage, c.done, t.recount, coalesce(p.done, 0) + t.done as counted
  from millrace.fan_outs f
  join millrace.stages s on s.pipeline_id = f.child_pipeline_id and s.reports_to_parent
  left join millrace.fan_progress p on p.fan_out_id = f.id and p.stage_id = s.id
  cross join lateral (
    select coalesce(sum(t.done) filter (where t.stage_id = s.id), 0) as done, coalesce(bool_or(t.recount), false) as recount
    from millrace.child_tallies t where t.fan_out_id = f.id) t
  cross join lateral (
    select count(distinct d.run_id) as done
    from millrace.runs r join millrace.done_attempts d on d.run_id = r.id and d.stage_id = s.id
    where r.fan_out_id = f.id) c
  where f.state = 'open' and not t.recount and coalesce(p.done, 0) + t.done <> c.done`;

/** The breaches that millrace.check_invariants() finds, by what it says now, those of the bookkeeping, and miscounted thresholds. */
export async function invariantBreaches(client: pg.Client): Promise<unknown[]> {
  const { rows } = await client.query<{ body: string | null; miscounted: unknown[] }>({
    name: 'miscounts',
    text: `select
        (select p.prosrc from pg_proc p where p.oid = to_regprocedure('millrace.check_invariants()')
          and (select count(*) from (select from millrace.attempts limit $1 + 1) a) <= $1) as body,
        array(select to_jsonb(m) from (${miscounts}) m) as miscounted`,
    values: [fewAttempts],
  });
  const { body = null, miscounted = [] } = rows[0] ?? {};
  return [...miscounted, ...(await engineBreaches(client, body))];
}

/** By the body of the function, unless there is too much for a plan that was made of less. */
async function engineBreaches(client: pg.Client, body: string | null): Promise<unknown[]> {
  if (body === null) {
    // With statistics of a time when the tables were empty, each run is compared with each attempt.
    await client.query('analyze millrace.runs, millrace.attempts');
    return (await client.query(allFaults)).rows;
  }
  const digest = createHash('sha256').update(body).digest('hex').slice(0, 16);
  return (await client.query({ name: `invariants-${digest}`, text: `${body} union all ${bookkeepingFaults}` })).rows;
}
