// `millrace sync`: plans a new migration for each pipeline whose TypeScript definition differs from the existing
// migrations, children before their parents, and for the limits that stages share. It never edits a migration.
import fs from 'node:fs';
import path from 'node:path';
import { type CompiledPipeline, compilePipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import { compileSharedLimits } from '../../supabase/functions/_millrace/compile/compile-shared-limits.ts';
import { stampsAfter } from '../migration-stamps.ts';
import { sinceUninstall } from '../project/engine-level.ts';
import { readHandlers } from '../project/load-handlers.ts';
import { pathFault } from '../project/read-condition.ts';
import { tableLacking } from '../project/stage-columns.ts';
import {
  type LimitsJson,
  limitDrops,
  limitMigration,
  limitsIn,
  limitsInUse,
  unknownLimits,
} from './limit-migration.ts';
import { functionFaults } from './pipeline-functions.ts';
import { compiledText, definitionsIn, pipelineMigration } from './pipeline-migration.ts';
import { childrenFirst, droppedFaults, droppedStages, keptPipelines, referenceFaults } from './pipeline-order.ts';
import { pipelineTypes } from './pipeline-types.ts';
import { type Definitions, readDefinitions } from './read-definitions.ts';
import { type Renamed, renameFaults, renamingSql, withRenamed } from './rename-stages.ts';
import { grantFaults } from './table-grants.ts';

/** Takes what the user is told, who runs this by `command`. */
export type Logger = Pick<Console, 'log' | 'warn'> & { command: string };

/** The compiled definitions of `_pipelines/*.ts`. */
interface Project {
  pipelines: CompiledPipeline[];
  limits: LimitsJson;
  /** The errors of handlers that do not load. */
  faults: string[];
}

/**
 * Every export of `_pipelines/*.ts` that is a definition, with what the handlers of its stages require. Throws an error that names
 * the file of one that is wrong.
 */
async function readProject(functionsFolder: string): Promise<Project> {
  const limits: LimitsJson = {};
  const seen = new Set<object>();
  const pipelines: CompiledPipeline[] = [];
  const defined = await readDefinitions(path.join(functionsFolder, '_pipelines'));
  const handlers = await readHandlers(functionsFolder, functionsOf(defined));
  for (const { file, exported, shared } of defined) {
    // One file may export what another has defined.
    const isNew = (exported: object) => !seen.has(exported) && seen.add(exported);
    for (const own of shared.filter(isNew)) {
      for (const [name, limit] of Object.entries(inFile(file, () => compileSharedLimits(own)))) {
        if (name in limits) throw new Error(`Shared limit ${name} is defined twice: give each a name of its own.`);
        limits[name] = limit;
      }
    }
    pipelines.push(
      ...[...exported.values()]
        .filter(isNew)
        .map((pipeline) =>
          inFile(file, () => withSoundPaths(compilePipeline(pipeline, handlers.columns.get(pipeline.name)))),
        ),
    );
  }
  return { pipelines, limits, faults: [...handlers.faults.values()] };
}

/** Resolves to the types of the pipelines for a page's code. */
export async function readTypes(functionsFolder: string): Promise<string> {
  const defined = await readDefinitions(path.join(functionsFolder, '_pipelines'));
  const { outputs } = await readHandlers(functionsFolder, functionsOf(defined));
  return pipelineTypes([...new Set(defined.flatMap(({ exported }) => [...exported.values()]))], outputs);
}

/** Throws an error for a condition that the database would refuse, before a migration is written. */
function withSoundPaths(compiled: CompiledPipeline): CompiledPipeline {
  for (const { field, path: given, predicate, example } of compiled.paths ?? []) {
    const fault = pathFault(given, predicate);
    if (!fault) continue;
    throw new Error(
      `${field} is ${JSON.stringify(given)}, but must be a jsonpath${predicate ? ' predicate' : ''}: ${fault}. Write for example ${example}.`,
    );
  }
  return compiled;
}

/** Returns the functions that stages run in. */
function functionsOf(defined: Definitions[]): string[] {
  const pipelines = defined.flatMap(({ exported }) => [...exported.values()]);
  const stages = pipelines.flatMap(({ stages }) => Object.values(stages));
  return [...new Set(stages.flatMap((stage) => ('function' in stage ? [stage.function] : [])))];
}

function inFile<Result>(file: string, compile: () => Result): Result {
  try {
    return compile();
  } catch (error) {
    throw new Error(`supabase/functions/_pipelines/${file}: ${(error as Error).message}`);
  }
}

/** A migration that is missing, what it defines, and its text. */
interface Missing {
  file: string;
  defines: string;
  text: string;
}

/** Returns the migrations that are missing, in their order: limits before the stages that name them, and dropped after those. */
function missingMigrations(
  { pipelines, limits }: Project,
  texts: string[],
  { dropsColumns = false, renamed = [] }: ColumnChanges,
): Missing[] {
  const defined = definitionsIn(texts);
  const underNewNames = new Map([...defined].map(([name, before]) => [name, withRenamed(before, renamed)]));
  const changed = childrenFirst(pipelines).filter((pipeline) => {
    const before = defined.get(pipeline.pipeline);
    return !before || compiledText(before) !== compiledText(pipeline);
  });
  const limitsDefined = limitsIn(texts);
  const define = limitMigration(limits, limitsDefined);
  const drop = limitDrops(limits, limitsDefined);
  return [
    ...(define ? [{ file: 'shared_limits', defines: 'the shared limits', text: define }] : []),
    ...changed.map((pipeline) => ({
      file: `pipeline_${pipeline.pipeline}`,
      defines: pipeline.pipeline,
      text: pipelineMigration(pipeline, underNewNames, {
        gone: dropsColumns ? columnsGone(pipeline, pipelines, underNewNames) : [],
        renaming: renamingSql(pipeline, renamed),
      }),
    })),
    ...(drop ? [{ file: 'dropped_limits', defines: 'the shared limits', text: drop }] : []),
  ];
}

/** Returns the stages that a definition has dropped and whose columns no pipeline over the table has any more. */
function columnsGone(
  { pipeline, entity }: CompiledPipeline,
  pipelines: CompiledPipeline[],
  defined: Map<string, CompiledPipeline>,
): string[] {
  const before = defined.get(pipeline);
  if (before?.entity.projection !== 'columns' || before.entity.table !== entity.table) return [];
  const over = pipelines.filter((other) => other.entity.table === entity.table);
  const kept = new Set(over.flatMap(({ stages }) => stages.map(({ name }) => name)));
  return before.stages.flatMap(({ name }) => (kept.has(name) ? [] : [name]));
}

/** A migration to write, and its text. */
interface Planned {
  name: string;
  text: string;
}

/** The changes that migrations make to columns of stages, besides adding those of new ones. */
export interface ColumnChanges {
  /** Whether those of stages that are gone go too. */
  dropsColumns?: boolean;
  renamed?: Renamed[];
}

/**
 * The migrations that are missing in `supabaseFolder`; with `check` it is an error that some are. Throws what is amiss and the remedy.
 */
export async function planSync(
  supabaseFolder: string,
  check: boolean,
  logger: Logger,
  columns: ColumnChanges = {},
): Promise<Planned[]> {
  const migrationsFolder = path.join(supabaseFolder, 'migrations');
  const functionsFolder = path.join(supabaseFolder, 'functions');
  const project = await readProject(functionsFolder);
  const { pipelines, limits } = project;
  const faults = [
    ...referenceFaults(pipelines),
    ...unknownLimits(pipelines, limits),
    ...functionFaults(pipelines, supabaseFolder),
    ...project.faults,
  ];
  const existing = (fs.existsSync(migrationsFolder) ? fs.readdirSync(migrationsFolder) : [])
    .filter((name) => name.endsWith('.sql'))
    .sort();
  const all = existing.map((name) => fs.readFileSync(path.join(migrationsFolder, name), 'utf8'));
  const texts = sinceUninstall(all);
  const defined = definitionsIn(texts);
  const { renamed = [], dropsColumns = false } = columns;
  faults.push(...renameFaults(renamed, pipelines, defined));
  faults.push(...droppedFaults(pipelines, defined), ...limitsInUse(pipelines, limits, defined, limitsIn(texts)));
  const missing = missingMigrations(project, texts, columns);
  if (check && missing.length > 0) {
    const names = [...new Set(missing.map(({ defines }) => defines))].join(', ');
    faults.push(
      `No migration defines the present state of: ${names}. Run \`${logger.command}\` and commit what it writes.`,
    );
  }
  // A migration never changes once it is written, so none is written for a definition that may yet be corrected.
  if (faults.length > 0) throw new Error(faults.join('\n'));
  const underNewNames = new Map([...defined].map(([name, before]) => [name, withRenamed(before, renamed)]));
  const tables = new Set(pipelines.map(({ entity }) => entity.table));
  // Tables and grants are the user's own: an uninstall leaves them.
  const lacking = [...tables].flatMap((table) => tableLacking(all, table) ?? []);
  const warnings = [
    ...lacking,
    ...grantFaults(pipelines, all),
    ...keptPipelines(pipelines, defined),
    ...droppedStages(pipelines, underNewNames, (name) => fs.existsSync(path.join(functionsFolder, name)), dropsColumns),
  ];
  for (const warning of warnings) logger.warn(warning);
  const stamps = missing.length > 0 ? await stampsAfter(existing, missing.length) : [];
  return missing.map(({ file, text }, at) => ({ name: `${stamps[at]}_${file}.sql`, text }));
}

/** Writes the migrations that are missing, or with `check` names them. Throws an error with what is amiss and the remedy. */
export async function syncPipelines(supabaseFolder: string, check: boolean, logger: Logger): Promise<void> {
  const planned = await planSync(supabaseFolder, check, logger);
  for (const { name, text } of planned) {
    fs.writeFileSync(path.join(supabaseFolder, 'migrations', name), text);
    logger.log(`Wrote supabase/migrations/${name}.`);
  }
  if (planned.length === 0) {
    logger.log('The migrations define every pipeline as it stands in supabase/functions/_pipelines.');
  } else {
    logger.log('Next: look at it, commit it, and `npx supabase db push --remote`.');
  }
}
