// The values that each line of the wait shows.
import type pg from 'pg';
import type { Values } from '../results.ts';
import { perTransition, type Used } from '../stack-usage.ts';
import type { Calls } from './call-service.ts';

export interface Outcome {
  /** From the beginning to the last run's end. */
  seconds: number;
  completed: number;
  /** Rows of which an attempt was isolated. */
  isolated: number;
}

/** The outcomes of the runs of a pipeline that began at `began`, without those of the rows in `except`. */
export async function outcomeOf(
  client: pg.Client,
  { pipeline, began, except = [] }: { pipeline: string; began: Date; except?: number[] },
): Promise<Outcome> {
  const { rows } = await client.query<Outcome>(
    `select extract(epoch from max(r.finished_at) - $2)::float8 as seconds,
       count(*) filter (where r.status = 'completed')::int as completed,
       count(*) filter (where exists (
         select from millrace.attempts a where a.run_id = r.id and a.isolated))::int as isolated
     from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
     where p.name = $1 and r.finished_at >= $2 and r.entity_id <> all ($3)`,
    [pipeline, began, except.map(String)],
  );
  return rows[0] as Outcome;
}

export interface Seen extends Outcome {
  /** The seconds that the waits alone would have taken. */
  ideal: number;
  rows: number;
  /** Handler starts that did all this. */
  bought: number;
  transitions: number;
  calls: Calls;
  used: Used;
}

/** The columns, the ratio to the ideal first. */
export function columns({ seconds, ideal, rows, completed, isolated, bought, transitions, calls, used }: Seen): Values {
  return {
    'ratio to ideal': seconds / ideal,
    seconds,
    ideal,
    rows,
    completed,
    'calls bought': bought,
    isolated,
    'at once, most': calls.most(),
    'at once, mean': calls.waited() / seconds,
    invocations: used.invocations,
    isolates: used.isolates,
    ...perTransition(used, transitions),
  };
}
