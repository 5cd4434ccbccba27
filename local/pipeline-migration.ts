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

/** A migration that defines `pipeline`; stages that came since `before`, or all of a new one, get their columns first. */
export function pipelineMigration(pipeline: DefinitionJson, before: DefinitionJson | undefined): string {
  const known = before?.stages.map((stage) => stage.name) ?? [];
  const added = pipeline.stages.filter((stage) => !known.includes(stage.name));
  const columns =
    pipeline.entity.projection === 'columns'
      ? added.map((stage) => stageColumns(pipeline.entity.table, stage.name))
      : [];
  return [
    `-- The pipeline ${pipeline.pipeline}, written by \`npm run pipelines:sync\` from supabase/functions/_pipelines.`,
    '-- Do not edit the definition: change it there and run the command again, which adds another migration.',
    '',
    ...columns,
    `select pipeline.define($pipeline$${JSON.stringify(pipeline, null, 2)}$pipeline$);`,
    '',
  ].join('\n');
}

function stageColumns(table: string, stage: string): string {
  return [
    `alter table ${table}`,
    `  add column if not exists ${stage}_status text not null default 'pending',`,
    `  add column if not exists ${stage}_job_id text,`,
    `  add column if not exists ${stage}_result jsonb,`,
    `  add column if not exists ${stage}_error text,`,
    `  add column if not exists ${stage}_retry_count int not null default 0,`,
    `  add column if not exists ${stage}_started_at timestamptz,`,
    `  add column if not exists ${stage}_completed_at timestamptz;`,
    `grant update (${stage}_status) on ${table} to authenticated;`,
    '',
  ].join('\n');
}
