// The helpers that tests of operations share: a stage as millrace.stage_runs shows it, the verbs, and a map over rows that exist.

import type { Engine, Row, StageDefinition } from '../engine.ts';
import { spawnAll, stageAttempts } from './children.ts';

/** The number of an entity's newest run of `flow`. */
export async function flowRun(engine: Engine, id: string | undefined): Promise<string> {
  return engine.value<string>(
    `select max(r.id) from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id where p.name = 'flow' and r.entity_id = $1`,
    [id],
  );
}

/** The status of an entity's newest run of `flow`. */
export async function flowStatus(engine: Engine, id: string | undefined): Promise<string> {
  return engine.value<string>('select status from millrace.runs where id = $1', [await flowRun(engine, id)]);
}

/** The attempts of a stage in an entity's newest run of `flow`, oldest first, as `number state`. */
export const flowAttempts = (engine: Engine, id: string | undefined, stage: string): Promise<string[]> =>
  stageAttempts(engine, id, stage, 'flow');

/** The columns that millrace.stage_runs shows of a stage of an entity's newest run of `flow`. */
export async function operation(engine: Engine, id: string | undefined, stage: string): Promise<Row> {
  const [row] = await engine.rows(
    `select state, progress, can_start, is_started, is_done, failures, fails_after, error
     from millrace.stage_runs where run_id = $1 and stage = $2`,
    [await flowRun(engine, id), stage],
  );
  if (!row) throw new Error(`run of ${id} has no stage ${stage}`);
  return row;
}

/** Calls a verb such as reset or skip on a stage of an entity's newest run of `flow`; resolves to its answer. */
export async function verb(engine: Engine, name: string, id: string | undefined, ...rest: unknown[]): Promise<unknown> {
  const values = [await flowRun(engine, id), ...rest];
  return engine.value(`select millrace.${name}(${values.map((_, n) => `$${n + 1}`).join(', ')})`, values);
}

/** The refusal of a verb. */
export async function refused(engine: Engine, name: string, id: string | undefined, ...rest: unknown[]) {
  const values = [await flowRun(engine, id), ...rest];
  return engine.refusal(`select millrace.${name}(${values.map((_, n) => `$${n + 1}`).join(', ')})`, values);
}

/** Defines `parts` (scan → read) over public.parts and `flow` (split over parts, then join) over public.items. */
export async function defineSplit(engine: Engine, more: StageDefinition[] = [], split: Row = {}): Promise<void> {
  await engine.pipeline([{ name: 'scan' }, { name: 'read', needs: ['scan'] }], { table: 'public.parts' }, 'parts');
  const map = { name: 'split', kind: 'map', child: { pipeline: 'parts' }, ...split };
  await engine.pipeline([map, { name: 'join', needs: ['split'] }, ...more]);
}

/** Claims a map stage of `flow` and spawns children for `keys`, which are ids of rows that exist; its attempt waits for them then. */
export const spawnParts = (engine: Engine, keys: string[], stage = 'split'): Promise<number> =>
  spawnAll(
    engine,
    keys.map((key) => ({ key })),
    stage,
    'flow',
  );

/** Rows of public.parts, as many as asked for; resolves to their ids. */
export async function insertParts(engine: Engine, count: number): Promise<string[]> {
  const rows = await engine.rows<{ id: string }>(
    `insert into public.parts (label) select 'part ' || n from generate_series(1, $1) n returning id::text`,
    [count],
  );
  return rows.map((row) => row.id);
}

/** The statuses of a row's runs of `parts`, oldest first. */
export async function partRuns(engine: Engine, part: string | undefined): Promise<string[]> {
  const rows = await engine.rows<{ status: string }>(
    `select r.status from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id
     where p.name = 'parts' and r.entity_id = $1 order by r.id`,
    [part],
  );
  return rows.map((row) => row.status);
}
