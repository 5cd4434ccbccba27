// The text of a migration that defines a pipeline, and the way back from such texts to definitions.

export interface DefinitionJson {
  pipeline: string;
  entity: { table: string; key: string; projection: string; metadata?: string };
  replaces?: { pipeline: string; group_by?: string };
  stages: StageJson[];
}

/** What is read here of a stage; the definition says more. */
export interface StageJson {
  name: string;
  kind: string;
  /** Left out by the kinds that no function runs. */
  function?: string;
  child?: { pipeline: string };
  after?: { map: string; stage: string }[];
  limits?: { back_pressure?: { stage: string } };
}

const definition = /select pipeline\.define\(\$pipeline\$(.*?)\$pipeline\$\);/gs;

/** The latest definition of each pipeline in the migrations' texts, given in order. */
export function definitionsIn(migrations: string[]): Map<string, DefinitionJson> {
  const found = migrations
    .flatMap((text) => [...text.matchAll(definition)])
    .map((match) => JSON.parse(match[1] ?? '') as DefinitionJson);
  return new Map(found.map((pipeline) => [pipeline.pipeline, pipeline]));
}

/** What there is beside the pipeline that a migration is written for. */
export interface Surroundings {
  /** What the migrations so far define, by name. */
  defined: Map<string, DefinitionJson>;
  /** All pipelines as they are to be. */
  pipelines: DefinitionJson[];
}

/**
 * A migration that defines `pipeline`; stages that are new to it get their columns first. Users may write the status of
 * each stage, but not of a pipeline that another replaces: only the flag of the cut-over sends rows there.
 */
export function pipelineMigration(pipeline: DefinitionJson, { defined, pipelines }: Surroundings): string {
  const before = defined.get(pipeline.pipeline);
  const known = before?.stages.map((stage) => stage.name) ?? [];
  const added = pipeline.stages.filter((stage) => !known.includes(stage.name));
  const isReplaced = pipelines.some(({ replaces }) => replaces?.pipeline === pipeline.pipeline);
  const columns =
    pipeline.entity.projection === 'columns'
      ? added.map((stage) => stageColumns(pipeline.entity.table, stage.name, !isReplaced))
      : [];
  const begins = pipeline.replaces?.pipeline !== before?.replaces?.pipeline;
  const replaced = begins ? defined.get(pipeline.replaces?.pipeline ?? '') : undefined;
  return [
    `-- The pipeline ${pipeline.pipeline}, written by \`npm run pipelines:sync\` from supabase/functions/_pipelines.`,
    '-- Do not edit the definition: change it there and run the command again, which adds another migration.',
    '',
    ...columns,
    ...(replaced?.entity.projection === 'columns' ? [withdrawStatuses(replaced)] : []),
    `select pipeline.define($pipeline$${JSON.stringify(pipeline, null, 2)}$pipeline$);`,
    '',
  ].join('\n');
}

function stageColumns(table: string, stage: string, forUsers: boolean): string {
  return [
    `alter table ${table}`,
    `  add column if not exists ${stage}_status text not null default 'pending',`,
    `  add column if not exists ${stage}_job_id text,`,
    `  add column if not exists ${stage}_result jsonb,`,
    `  add column if not exists ${stage}_error text,`,
    `  add column if not exists ${stage}_retry_count int not null default 0,`,
    `  add column if not exists ${stage}_started_at timestamptz,`,
    `  add column if not exists ${stage}_completed_at timestamptz;`,
    ...(forUsers ? [`grant update (${stage}_status) on ${table} to authenticated;`] : []),
    '',
  ].join('\n');
}

function withdrawStatuses({ pipeline, entity, stages }: DefinitionJson): string {
  const statuses = stages.map((stage) => `${stage.name}_status`).join(', ');
  return [
    `-- From now on only the flag of the cut-over sends rows to ${pipeline}.`,
    `revoke update (${statuses}) on ${entity.table} from authenticated;`,
    '',
  ].join('\n');
}
