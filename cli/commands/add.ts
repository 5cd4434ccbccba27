// millrace add: a pipeline's definition, and a function with its test for each stage.
import fs from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import { addCommand } from '../../local/platform/add-command.ts';
import type { PipelineInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { CommandError } from '../command-error.ts';
import { defineCommand, writingOptions } from '../define-command.ts';
import type { Change } from '../project/change-set.ts';
import { withFunctionSections } from '../project/config-sections.ts';
import { migrationTexts } from '../project/engine-level.ts';
import { findProject, type Project } from '../project/find-project.ts';
import { conditionFault } from '../project/read-condition.ts';
import { requireRelease } from '../project/release-fit.ts';
import { denoJson, modelPackage, readManifest } from '../project/shipped.ts';
import { columnThere, tableLacking } from '../project/stage-columns.ts';
import { warnTsconfig } from '../project/warn-tsconfig.ts';
import { writeChanges } from '../project/write-changes.ts';
import { functionOf } from '../sync/pipeline-functions.ts';
import { batchChanges } from './add-batches.ts';
import { findDefined, requireSound, withStages } from './add-to-definition.ts';
import {
  type Added,
  definitionText,
  exportName,
  handlerText,
  indexText,
  needsOf,
  stageOptions,
  testText,
} from './stage-templates.ts';

const usage = `npx millrace add PIPELINE STAGE … [--table T] [--key K] [--needs A,B] [--when CONDITION]
                 [--external | --model [--batch] | --manual] [--dry-run]
  Writes a pipeline over your table, or stages at the end of one that is there: the definition, and for each stage a function
  with its handler, its pinned deno.json, its section of the configuration and a test that passes.
  --table T         the table whose rows go through it, of public where no schema is named (default: public.PIPELINE)
  --key K           its key (default: id)
  --needs A,B       the stages whose results each of these gets, '' for none (default: the one before it)
  --when CONDITION  a jsonpath over the row and these results, without which a row skips the stages, such as
                    '$.needs.triage.urgent == true'
  --external        the stages' work is done by a service that calls back
  --model           the stages ask a language model
  --batch           with --model: at half the price, for rows that can wait a day; once a project also what carries batches
  --manual          the stages wait for a person's decision, and have no function`;

export const add = defineCommand({
  usage,
  takesWords: Number.POSITIVE_INFINITY,
  options: {
    ...writingOptions,
    table: { type: 'string' },
    key: { type: 'string' },
    external: { type: 'boolean', default: false },
    model: { type: 'boolean', default: false },
    batch: { type: 'boolean', default: false },
    manual: { type: 'boolean', default: false },
    needs: { type: 'string' },
    when: { type: 'string' },
  },
  run: async ({ words, values }) => {
    const [pipeline, ...stages] = words;
    if (!pipeline || stages.length === 0) throw new CommandError(`Name a pipeline and its stages.\n\n${usage}`, 2);
    const [work = 'own', other] = (['external', 'model', 'manual'] as const).filter((kind) => values[kind]);
    if (other) throw new CommandError(`Say --${work} or --${other}, not both.`, 2);
    if (values.batch && work !== 'model')
      throw new CommandError('Say --batch with --model: only a model has batch prices.', 2);
    const project = findProject(values.workdir);
    const { key, when, batch } = values;
    const table = values.table && !values.table.includes('.') ? `public.${values.table}` : values.table;
    const changes = await addChanges(project, {
      pipeline,
      stages,
      work,
      batch,
      table,
      key,
      when,
      needs: listed(values.needs),
    });
    if (work === 'manual') return writeChanges(project, changes, values, manualNext(pipeline));
    warnTsconfig(project.root, `tests/${functionOf(pipeline, '*')}.test.ts`);
    const next = `${testsNeed(project, work)}write what the handlers do, then npx millrace sync.`;
    return writeChanges(project, changes, values, next);
  },
});

/** Returns the names of a list with commas; undefined where none was given. */
const listed = (text: string | undefined) => text?.split(',').flatMap((part) => part.trim() || []);

const manualNext = (pipeline: string) =>
  `write the schema of the answer into the definition of ${pipeline}, and in a migration the policies of public.millrace_decisions ` +
  'that say who may decide (npx millrace docs decisions), then npx millrace sync.';

const name = /^[a-z][a-z0-9_]{0,39}$/;

/**
 * The changes that add a pipeline, or stages at the end of one that is there. Throws a CommandError where a name is not
 * valid or is taken, and where the database would refuse the definition.
 */
async function addChanges(project: Project, added: Added): Promise<Change[]> {
  requireRelease(project, 'add');
  requireNames([added.pipeline]);
  requireStageNames(added.stages);
  const twice = added.stages.find((stage, at) => added.stages.indexOf(stage) !== at);
  if (twice) throw new CommandError(`Stage ${twice} is named twice: give each a name of its own.`);
  requireCondition(added);
  const functions = added.work === 'manual' ? [] : added.stages.map((stage) => functionOf(added.pipeline, stage));
  for (const folder of functions) {
    if (fs.existsSync(path.join(project.root, 'supabase/functions', folder))) {
      throw new CommandError(`supabase/functions/${folder} is there already: give the stage another name.`);
    }
  }
  const defined = await findDefined(project, added.pipeline);
  if (!defined) requireSound(newOptions(added));
  const table = defined?.definition.input.entity.table ?? added.table ?? `public.${added.pipeline}`;
  requireFreeColumns(project, table, added.stages);
  const { file, exported } = defined ?? newDefinition(project, added.pipeline);
  if (defined && (added.table ?? added.key) !== undefined) {
    throw new CommandError(
      `${file} names its table and key already: leave out --table and --key, or correct them there.`,
    );
  }
  const config = fs.readFileSync(path.join(project.root, project.config), 'utf8');
  const batches = added.batch ? await batchChanges(project) : { changes: [], functions: [] };
  const sections = withFunctionSections(project.config, config, [...functions, ...batches.functions]);
  return [
    ...batches.changes,
    defined ? await withStages(project, defined, added) : { file, text: definitionText(added), from: null },
    ...added.stages.flatMap((stage) => stageChanges(added, stage, file, exported)),
    { file: project.config, text: sections, from: config },
  ];
}

/** Throws a CommandError where the condition is one that the database would refuse when it comes there. */
function requireCondition({ when, stages: [stage] }: Added): void {
  const fault = when ? conditionFault(when) : undefined;
  if (!fault) return;
  throw new CommandError(
    `stages.${stage}.when is ${JSON.stringify(when)}, but must be a jsonpath predicate: ${fault}. Write for example ` +
      `--when '$.entity.kind == "scan"'.`,
  );
}

function requireNames(names: string[]): void {
  for (const given of names) {
    if (name.test(given)) continue;
    throw new CommandError(
      `${JSON.stringify(given)} cannot be a name: use lower-case letters, digits and _, a letter first.`,
    );
  }
}

/** Throws a CommandError where a stage cannot have one of these names. */
export function requireStageNames(stages: string[]): void {
  requireNames(stages);
  // serveStage() and defineStage() are the runtime's.
  const clash = stages.find((stage) => stage === 'serve' || stage === 'define');
  if (clash) throw new CommandError(`${clash} cannot be a stage's name, since its code would be ${clash}Stage.`);
}

/** Returns a new pipeline as its definition gives it. */
function newOptions(added: Added): PipelineInput {
  const { pipeline, stages, table = `public.${pipeline}`, key = 'id' } = added;
  const rows = stages.map((stage, at) => [stage, stageOptions(added, stage, needsOf(added, stages[at - 1]))] as const);
  return { name: pipeline, entity: { table, key, projection: 'columns' }, stages: Object.fromEntries(rows) };
}

/** Returns where a new pipeline is defined. Throws a CommandError where a file is in the way. */
function newDefinition({ root }: Project, pipeline: string): { file: string; exported: string } {
  const file = `supabase/functions/_pipelines/${pipeline.replaceAll('_', '-')}.ts`;
  if (!fs.existsSync(path.join(root, file))) return { file, exported: exportName(pipeline) };
  throw new CommandError(
    `${file} is there and exports no pipeline ${pipeline}: name the pipeline that it defines, or move it away.`,
  );
}

/** Throws a CommandError where the migrations give the table a column that a stage would have; warns where they make no such table. */
export function requireFreeColumns(project: Project, table: string, stages: string[]): void {
  const migrations = migrationTexts(project);
  const lacking = tableLacking(migrations, table);
  if (lacking) console.error(pc.yellow(lacking));
  for (const stage of stages) {
    const column = columnThere(migrations, table, stage);
    if (!column) continue;
    throw new CommandError(
      `${table} has a column ${column} already, which stage ${stage} would have: give the stage another name.`,
    );
  }
}

/**
 * How to install the packages that the tests of such stages import, as the beginning of the next step. Empty where the project
 * has them. pnpm hides the runtime's packages from a project that does not ask for them.
 */
function testsNeed({ root }: Project, work: Added['work']): string {
  const { imports, modelImports } = readManifest();
  const pins = Object.entries({ ...imports, ...(work === 'model' && { [modelPackage]: modelImports[modelPackage] }) });
  const lacking = pins.flatMap(([name, pin]) => (pin && !isThere(root, name) ? [pin.replace('npm:', '')] : []));
  return lacking.length === 0
    ? ''
    : `${addCommand(root)} ${lacking.join(' ')}, which the tests import with the handlers; `;
}

/** Whether a file in `root` finds a package. Node's own search would ask NODE_PATH too, which pnpm sets for programs alone. */
function isThere(root: string, name: string): boolean {
  const folder = path.resolve(root);
  if (fs.existsSync(path.join(folder, 'node_modules', name, 'package.json'))) return true;
  return path.dirname(folder) !== folder && isThere(path.dirname(folder), name);
}

export function stageChanges(added: Added, stage: string, definition: string, exported: string): Change[] {
  const { work } = added;
  if (work === 'manual') return [];
  const folder = functionOf(added.pipeline, stage);
  const given = { ...added, work, stage, folder, definition: path.posix.basename(definition), exported };
  return [
    { file: `supabase/functions/${folder}/index.ts`, text: indexText(given) },
    { file: `supabase/functions/${folder}/handler.ts`, text: handlerText(given) },
    { file: `supabase/functions/${folder}/deno.json`, text: denoJson(readManifest(), work === 'model') },
    { file: `tests/${folder}.test.ts`, text: testText(given) },
  ];
}
