// Checks references between pipelines, and orders them so that they can be defined: children before their parents.
import type { CompiledPipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import type { StageRow } from '../../supabase/functions/_millrace/compile/stage-rows.ts';

/**
 * The faults in references between pipelines, one sentence each with the remedy. The database would refuse them too,
 * but only when the migration is applied, which then could not be changed any more.
 */
export function referenceFaults(pipelines: CompiledPipeline[]): string[] {
  const named = new Map(pipelines.map((pipeline) => [pipeline.pipeline, pipeline]));
  const twice = pipelines.filter((pipeline) => named.get(pipeline.pipeline) !== pipeline);
  return [
    ...twice.map(({ pipeline }) => `Pipeline ${pipeline} is defined twice: give each a name of its own.`),
    ...pipelines.flatMap((pipeline) => pipeline.stages.flatMap((stage) => stageFaults(pipeline, stage, named))),
    ...cycleFaults(pipelines, named),
  ];
}

/**
 * Stages that a pipeline drops while the migrations still define a parent that waits until children have done them, one
 * sentence each with the remedy: children are defined before their parents, and the database refuses to drop such a stage.
 */
export function droppedFaults(pipelines: CompiledPipeline[], defined: Map<string, CompiledPipeline>): string[] {
  return [...defined.values()].flatMap((parent) =>
    parent.stages.flatMap((stage) =>
      (stage.after ?? []).flatMap(({ map, stage: counted }) => {
        const name = parent.stages.find((other) => other.name === map)?.child?.pipeline;
        const child = pipelines.find(({ pipeline }) => pipeline === name);
        if (!child || child.stages.some((other) => other.name === counted)) return [];
        return [
          `Pipeline ${name} drops stage ${counted}, which stage ${stage.name} of pipeline ${parent.pipeline} counts in the ` +
            `migrations: keep it for now, change ${parent.pipeline} and run this, then drop it and run this again.`,
        ];
      }),
    ),
  );
}

/** Pipelines that the migrations define and no file does any more, one sentence each: nothing takes them out of the database. */
export function keptPipelines(pipelines: CompiledPipeline[], defined: Map<string, CompiledPipeline>): string[] {
  const present = new Set(pipelines.map(({ pipeline }) => pipeline));
  return [...defined.keys()]
    .filter((name) => !present.has(name))
    .map(
      (name) =>
        `Pipeline ${name} has no file any more, but a database that has taken its migration goes on with it: ` +
        `to stop it, select millrace.pause('${name}'). Where none has, delete the migration.`,
    );
}

/**
 * Stages that a definition has dropped since its last migration, one sentence each: what was written for them may stay.
 * `isThere`: whether a function has its folder. `dropsColumns`: whether the migration drops their columns.
 */
export function droppedStages(
  pipelines: CompiledPipeline[],
  defined: Map<string, CompiledPipeline>,
  isThere: (name: string) => boolean,
  dropsColumns: boolean,
): string[] {
  return pipelines.flatMap(({ pipeline, entity, stages }) => {
    const before = defined.get(pipeline)?.stages ?? [];
    const shows = entity.projection === 'columns' && !dropsColumns;
    return before
      .filter(({ name }) => stages.every((stage) => stage.name !== name))
      .map(({ name, function_name }) => {
        const code =
          function_name && isThere(function_name)
            ? `supabase/functions/${function_name} and its test (npx millrace remove ${pipeline} ${name} deletes them)`
            : '';
        const columns = shows
          ? `its columns in ${entity.table}, such as ${name}_status (drop them in a migration of yours, or delete the one that this ` +
            'writes and run `npx millrace sync --columns`)'
          : '';
        const left = [code, columns].filter(Boolean).join(', and ');
        return (
          `Pipeline ${pipeline} has no stage ${name} any more, and its migration is refused while live runs need it. ` +
          `${left ? `What stays is ${left}. ` : ''}Where it has another name now, say --renamed ${pipeline}.${name}=NAME.`
        );
      });
  });
}

/** Returns the pipelines, each after those it starts runs of and those whose backlog holds it back. */
export function childrenFirst(pipelines: CompiledPipeline[]): CompiledPipeline[] {
  const named = new Map(pipelines.map((pipeline) => [pipeline.pipeline, pipeline]));
  const seen = new Set<string>();
  const ordered: CompiledPipeline[] = [];
  const add = (name: string): void => {
    const pipeline = named.get(name);
    if (!pipeline || seen.has(name)) return;
    seen.add(name);
    namesUsed(pipeline).forEach(add);
    ordered.push(pipeline);
  };
  for (const { pipeline } of pipelines) add(pipeline);
  return ordered;
}

function stageFaults(pipeline: CompiledPipeline, stage: StageRow, named: Map<string, CompiledPipeline>): string[] {
  const subject = `Stage ${stage.name} of pipeline ${pipeline.pipeline}`;
  const child = stage.child && named.get(stage.child.pipeline);
  const faults: string[] = [];
  if (stage.child && !child) {
    faults.push(`${subject} starts runs of pipeline ${stage.child.pipeline}, which no file of _pipelines exports.`);
  }
  const [from, to] = [pipeline.entity, child?.entity];
  if (stage.kind === 'pipeline' && to && (from.table !== to.table || from.key !== to.key)) {
    faults.push(
      `${subject} is of kind pipeline, whose child runs over the same row, but pipeline ${child?.pipeline} is over ` +
        `${to.table}.${to.key} and not ${from.table}.${from.key}: use the kind map.`,
    );
  }
  for (const { map, stage: wanted } of stage.after ?? []) {
    const name = pipeline.stages.find((other) => other.name === map)?.child?.pipeline;
    const counted = name === undefined ? undefined : named.get(name);
    if (!counted || counted.stages.some((other) => other.name === wanted)) continue;
    faults.push(
      `${subject} waits for stage ${wanted} of pipeline ${name}, which has no such stage: correct its after.`,
    );
  }
  for (const later of backPressureOf(pipeline, stage)) {
    if (named.get(later.pipeline)?.stages.some(({ name }) => name === later.stage)) continue;
    const target = `${later.pipeline}.${later.stage}`;
    faults.push(`${subject} is held back by ${target}, which does not exist: correct limits.backPressure.stage.`);
  }
  return faults;
}

function cycleFaults(pipelines: CompiledPipeline[], named: Map<string, CompiledPipeline>): string[] {
  const settled = new Set<string>();
  const visit = (name: string, trail: string[]): string[] => {
    if (settled.has(name)) return [];
    if (trail.includes(name)) {
      const cycle = [...trail.slice(trail.indexOf(name)), name].join(' → ');
      return [
        `Pipelines ${cycle} need one another, so that none can be defined first: remove one of these references.`,
      ];
    }
    const pipeline = named.get(name);
    const faults = pipeline ? namesUsed(pipeline).flatMap((other) => visit(other, [...trail, name])) : [];
    settled.add(name);
    return faults;
  };
  return pipelines.flatMap(({ pipeline }) => visit(pipeline, []));
}

/** Names of the pipelines that must be defined before this one. */
function namesUsed(pipeline: CompiledPipeline): string[] {
  const others = pipeline.stages.flatMap((stage) => [
    stage.child?.pipeline,
    ...backPressureOf(pipeline, stage).map((later) => later.pipeline),
  ]);
  return others.filter((name) => name !== undefined);
}

/** Returns the stages of other pipelines that hold a stage back; those of its own are checked with its graph. */
function backPressureOf({ pipeline }: CompiledPipeline, { limits }: StageRow): { pipeline: string; stage: string }[] {
  const named = [limits?.back_pressure ?? []].flat().map((given) => given.stage.split('.'));
  return named.flatMap(([other, stage]) => (other && stage && other !== pipeline ? [{ pipeline: other, stage }] : []));
}
