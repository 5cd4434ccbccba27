// Where a row's run stands, and how a failed expectation says so.
import { AssertionError } from 'node:assert';
import type { Client } from 'pg';
import type { Failure, RowState, StageState } from './test.d.ts';

interface StageRow {
  stage: string;
  kind: string;
  state: StageState['state'];
  tries: number;
  error: Failure | null;
  result: unknown;
  usage: unknown;
}

/** Reads the newest run of a row; undefined where it has none. */
export async function readRow(sql: Client, pipeline: string, key: string): Promise<RowState | undefined> {
  const runs = await sql.query(
    `select r.id, r.status from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
     where p.name = $1 and r.entity_id = $2 order by r.id desc limit 1`,
    [pipeline, key],
  );
  const [run] = runs.rows;
  if (!run) return undefined;
  const { rows } = await sql.query<StageRow>(
    `select o.stage, o.kind, o.state, coalesce(a.retry_count + 1, 0) as tries, a.error, a.output as result, a.usage
     from millrace.stage_runs o left join millrace.attempts a on a.id = o.attempt_id
     where o.run_id = $1 order by a.id, o.stage`,
    [run.id],
  );
  const stages = rows.map(({ stage, kind: _, ...state }): [string, StageState] => [stage, state]);
  return { run: run.id, status: run.status, stages: Object.fromEntries(stages) };
}

/** Returns an error that says what was expected of a row, and where each of its stages stands. */
export function rowError(what: string, row: RowState | undefined, expected: unknown, caller: object): Error {
  const lines = Object.entries(row?.stages ?? {}).map(([name, state]) => `  ${name}: ${describe(state)}`);
  return new AssertionError({
    message: [what, ...lines].join('\n'),
    actual: row?.status ?? null,
    expected,
    operator: 'expectRow',
    stackStartFn: caller as (...given: unknown[]) => unknown,
  });
}

function describe({ state, tries, error }: StageState): string {
  const count = tries > 1 ? ` (try ${tries})` : '';
  if (!error) return `${state}${count}`;
  return `${state}${count}, ${error.code}${error.permanent ? ' (permanent)' : ''}: ${error.detail ?? error.message}`;
}

/** Returns the stage that ended a failed run, with its error. */
export function failureOf(row: RowState): { stage: string; error: Failure } | undefined {
  const failed = Object.entries(row.stages).filter(([, { state, error }]) => state === 'failed' && error);
  const [stage, state] = failed.at(-1) ?? [];
  return stage && state?.error ? { stage, error: state.error } : undefined;
}
