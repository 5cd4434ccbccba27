// Stages that have another name than in the last migration: their columns get it too.
import type { CompiledPipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import { columnsOf } from '../project/stage-columns.ts';

/** A stage that has another name. */
export interface Renamed {
  pipeline: string;
  stage: string;
  name: string;
}

/** Returns a sentence for each renaming that the definitions and the migrations do not bear out. */
export function renameFaults(
  renamed: Renamed[],
  pipelines: CompiledPipeline[],
  defined: Map<string, CompiledPipeline>,
): string[] {
  return renamed.flatMap(({ pipeline, stage, name }) => {
    const has = (of: CompiledPipeline | undefined, wanted: string) =>
      of?.stages.some((one) => one.name === wanted) ?? false;
    const now = pipelines.find((one) => one.pipeline === pipeline);
    const before = defined.get(pipeline);
    if (has(before, stage) && !has(before, name) && has(now, name) && !has(now, stage)) return [];
    return [
      `--renamed says ${pipeline}.${stage}=${name}, but that is so where the migrations define stage ${stage} and the definition has ` +
        `${name} in its place: correct the names, or \`npx millrace rename ${pipeline} ${stage} ${name}\` first.`,
    ];
  });
}

/** Returns a definition in which stages have their new names. */
export function withRenamed(before: CompiledPipeline, renamed: Renamed[]): CompiledPipeline {
  const names = new Map(
    renamed.filter(({ pipeline }) => pipeline === before.pipeline).map(({ stage, name }) => [stage, name]),
  );
  return { ...before, stages: before.stages.map((stage) => ({ ...stage, name: names.get(stage.name) ?? stage.name })) };
}

/**
 * Returns the statements that rename the columns of stages. They raise while runs are live, whose handlers would get results
 * under the former names. They lock the table, so that no run begins meanwhile.
 */
export function renamingSql({ pipeline, entity }: CompiledPipeline, renamed: Renamed[]): string[] {
  const own = renamed.filter((one) => one.pipeline === pipeline);
  if (own.length === 0) return [];
  const columns = own.flatMap(({ stage, name }) => {
    const names = columnsOf(name);
    return columnsOf(stage).map((column, at) => `alter table ${entity.table} rename column ${column} to ${names[at]};`);
  });
  return [
    `do $renamed$
begin
  -- Limits before the table, as define() locks them.
  perform millrace.lock_limits('${pipeline}');
  lock table ${entity.table} in access exclusive mode;
  if exists (
    select from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id
    where p.name = '${pipeline}' and r.status = 'running') then
    raise exception 'runs of pipeline ${pipeline} are live, so that ${own.map(({ stage }) => stage).join(', ')} cannot be renamed'
      using hint = 'Nothing was changed. Let them finish, or cancel them, then push again.';
  end if;
end
$renamed$;`,
    '',
    ...(entity.projection === 'columns' ? [...columns, ''] : []),
  ];
}
