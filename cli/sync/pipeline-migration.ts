// The text of a migration that defines a pipeline, and the way back from such texts to definitions.
import type { CompiledPipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import { columnsOf } from '../project/stage-columns.ts';

const definition = /select millrace\.define\(\$pipeline\$(.*?)\$pipeline\$\);/gs;

/** Returns the latest definition of each pipeline in the migrations' texts, given in order. */
export function definitionsIn(migrations: string[]): Map<string, CompiledPipeline> {
  const found = migrations
    .flatMap((text) => [...text.matchAll(definition)])
    .map((match) => JSON.parse(match[1] ?? '') as CompiledPipeline);
  return new Map(found.map((pipeline) => [pipeline.pipeline, pipeline]));
}

/** Returns the functions of all stages that the migrations' texts have ever defined. */
export function functionsIn(migrations: string[]): string[] {
  const all = migrations.flatMap((text) => [...text.matchAll(definition)]);
  const stages = all.flatMap((match) => (JSON.parse(match[1] ?? '') as CompiledPipeline).stages);
  return stages.flatMap(({ function_name }) => function_name ?? []);
}

/**
 * A migration that defines `pipeline`; stages that are new to it get their columns first. `defined` is what the migrations
 * so far define, by name. The roles that `entity.startableBy` names may write the status of each stage, or the one that shows
 * them all. `gone`: the stages whose columns it drops in the end. `renaming`: the statements with which it begins.
 */
export function pipelineMigration(
  pipeline: CompiledPipeline,
  defined: Map<string, CompiledPipeline>,
  { gone = [], renaming = [] }: { gone?: string[]; renaming?: string[] } = {},
): string {
  const before = defined.get(pipeline.pipeline);
  const known = before?.stages.map((stage) => stage.name) ?? [];
  const added = pipeline.stages.filter((stage) => !known.includes(stage.name));
  const shown = pipeline.entity.projection === 'columns' && added.length > 0;
  const names = added.map((stage) => `'${stage.name}'`).join(', ');
  return [
    `-- The pipeline ${pipeline.pipeline}, written from its definition in supabase/functions/_pipelines. Do not edit it: change it`,
    '-- there and sync again, which adds another migration.',
    '',
    ...renaming,
    ...(shown ? [`select millrace.add_columns('${pipeline.entity.table.replaceAll("'", "''")}', ${names});`, ''] : []),
    ...startingRights(pipeline, before?.entity.table === pipeline.entity.table ? before : undefined),
    // Escapes the tag that ends the text, which a name may contain.
    `select millrace.define($pipeline$${compiledText(pipeline).replaceAll(/\$(?=pipeline\$)/g, '\\u0024')}$pipeline$);`,
    '',
    ...gone.map(
      (stage) =>
        `alter table ${pipeline.entity.table} ${columnsOf(stage)
          .map((column) => `drop column if exists ${column}`)
          .join(', ')};\n`,
    ),
    // Writes the functions again: define() has just written them for the columns of the former stages, too.
    ...(gone.length > 0 ? [`select millrace.attach('${pipeline.pipeline}');`, ''] : []),
  ].join('\n');
}

/** Returns a compiled definition with a line for each field, and a line for each item of a list of rows. */
export function compiledText(pipeline: CompiledPipeline): string {
  const fields = Object.entries(pipeline).map(([field, value]) => `  ${JSON.stringify(field)}: ${rowsText(value)}`);
  return `{\n${fields.join(',\n')}\n}`;
}

function rowsText(value: unknown): string {
  if (!Array.isArray(value)) return JSON.stringify(value);
  return `[\n${value.map((row) => `    ${JSON.stringify(row)}`).join(',\n')}\n  ]`;
}

/** Grants the statuses that a role may write now and might not before, and revokes those of a role that may no longer. */
function startingRights(now: CompiledPipeline, before: CompiledPipeline | undefined): string[] {
  const had = statusesByRole(before);
  const has = statusesByRole(now);
  const kept = statusColumns(now);
  const lines = [...new Set([...had.keys(), ...has.keys()])].flatMap((role) => {
    const [old = [], wanted = []] = [had.get(role), has.get(role)];
    const granted = wanted.filter((column) => !old.includes(column));
    const revoked = old.filter((column) => kept.includes(column) && !wanted.includes(column));
    return [
      ...(granted.length > 0
        ? [`grant update (${granted.map(quoted).join(', ')}) on ${now.entity.table} to ${role};`]
        : []),
      ...(revoked.length > 0
        ? [`revoke update (${revoked.map(quoted).join(', ')}) on ${now.entity.table} from ${role};`]
        : []),
    ];
  });
  return lines.length > 0 ? [...lines, ''] : [];
}

/** Returns a column as SQL names it, whatever its name is; those of stages are plain. */
const quoted = (column: string) =>
  /^[a-z][a-z0-9_]*_status$/.test(column) ? column : `"${column.replaceAll('"', '""')}"`;

/** Returns the statuses of a pipeline by the roles that may write them. */
function statusesByRole(pipeline: CompiledPipeline | undefined): Map<string, string[]> {
  return new Map(pipeline?.entity.startable_by?.map((role) => [role, statusColumns(pipeline)]));
}

/** Returns the columns by which people start stages: one a stage, or the one that shows them all. */
export function statusColumns({ entity, stages }: CompiledPipeline): string[] {
  return entity.status ? [entity.status.column] : stages.map(({ name }) => `${name}_status`);
}
