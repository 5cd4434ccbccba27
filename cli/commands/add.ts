// millrace add: a pipeline's definition, and a function with its test for each stage.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import pc from 'picocolors';
import { checkedOptions } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import { defineCommand, writingOptions } from '../define-command.ts';
import type { Change } from '../project/change-set.ts';
import { CommandError } from '../project/command-error.ts';
import { withFunctionSections } from '../project/config-sections.ts';
import { migrationTexts } from '../project/engine-level.ts';
import { findProject, type Project } from '../project/find-project.ts';
import { requireRelease } from '../project/release-fit.ts';
import { denoJson, modelPackage, readManifest } from '../project/shipped.ts';
import { columnThere, tableLacking } from '../project/stage-columns.ts';
import { warnTsconfig } from '../project/warn-tsconfig.ts';
import { writeChanges } from '../project/write-changes.ts';
import { findDefined, withStages } from './add-to-definition.ts';
import { definitionText, exportName, functionOf, handlerText, indexText, testText } from './stage-templates.ts';

const usage = `npx millrace add PIPELINE STAGE … [--table T] [--key K] [--external | --model] [--dry-run]
  Writes a pipeline over your table, or stages at the end of one that is there: the definition, and for each stage a function
  with its handler, its pinned deno.json, its section of the configuration and a test that passes.
  --table T   the table whose rows go through it (default: public.PIPELINE)
  --key K     its key (default: id)
  --external  the stages' work is done by a service that calls back
  --model     the stages ask a language model`;

export const add = defineCommand({
  usage,
  takesWords: Number.POSITIVE_INFINITY,
  options: {
    ...writingOptions,
    table: { type: 'string' },
    key: { type: 'string' },
    external: { type: 'boolean', default: false },
    model: { type: 'boolean', default: false },
  },
  run: async ({ words, values }) => {
    const [pipeline, ...stages] = words;
    if (!pipeline || stages.length === 0) throw new CommandError(`Name a pipeline and its stages.\n\n${usage}`, 2);
    if (values.external && values.model) throw new CommandError('Say --external or --model, not both.', 2);
    const work = values.external ? 'external' : values.model ? 'model' : 'own';
    const project = findProject(values.workdir);
    const given = { pipeline, stages, work, table: values.table, key: values.key } as const;
    const next = `${testsNeed(project, work)}write what the handlers do, then npx millrace sync.`;
    const changes = await addChanges(project, given);
    warnTsconfig(project.root, `tests/${functionOf(pipeline, '*')}.test.ts`);
    return writeChanges(project, changes, values, next);
  },
});

/** What `add` was asked for. */
export interface Added {
  pipeline: string;
  stages: string[];
  /** The table whose rows go through a new pipeline, `public.PIPELINE` where it is not named. */
  table?: string;
  /** Its key, `id` where it is not named. */
  key?: string;
  /** How the stages work: by their own code, at a service that calls back, or by a model. */
  work: 'own' | 'external' | 'model';
}

const name = /^[a-z][a-z0-9_]{0,39}$/;

/**
 * What adds a pipeline, or stages at the end of one that is there. Throws a CommandError where a name cannot be one, or something is
 * there already.
 */
async function addChanges(project: Project, added: Added): Promise<Change[]> {
  requireRelease(project, 'add');
  for (const given of [added.pipeline, ...added.stages]) {
    if (!name.test(given)) {
      throw new CommandError(
        `${JSON.stringify(given)} cannot be a name: use lower-case letters, digits and _, a letter first.`,
      );
    }
  }
  // serveStage() and defineStage() are the runtime's.
  const clash = added.stages.find((stage) => stage === 'serve' || stage === 'define');
  if (clash) throw new CommandError(`${clash} cannot be a stage's name, since its code would be ${clash}Stage.`);
  const twice = added.stages.find((stage, at) => added.stages.indexOf(stage) !== at);
  if (twice) throw new CommandError(`Stage ${twice} is named twice: give each a name of its own.`);
  const functions = added.stages.map((stage) => functionOf(added.pipeline, stage));
  for (const folder of functions) {
    if (fs.existsSync(path.join(project.root, 'supabase/functions', folder))) {
      throw new CommandError(`supabase/functions/${folder} is there already: give the stage another name.`);
    }
  }
  const defined = await findDefined(project, added.pipeline);
  if (!defined) requireSound(added);
  const table = defined?.definition.input.entity.table ?? added.table ?? `public.${added.pipeline}`;
  requireFreeColumns(project, table, added.stages);
  const { file, exported } = defined ?? newDefinition(project, added.pipeline);
  if (defined && (added.table ?? added.key) !== undefined) {
    throw new CommandError(
      `${file} names its table and key already: leave out --table and --key, or correct them there.`,
    );
  }
  const config = fs.readFileSync(path.join(project.root, project.config), 'utf8');
  return [
    defined ? await withStages(project, defined, added) : { file, text: definitionText(added), from: null },
    ...added.stages.flatMap((stage) => stageChanges(added, stage, file, exported)),
    { file: project.config, text: withFunctionSections(project.config, config, functions), from: config },
  ];
}

/** Throws a CommandError where a new pipeline cannot have this table or key: by the rules that the definition is held to, when `sync` reads it. */
function requireSound({ pipeline, stages, table = `public.${pipeline}`, key = 'id' }: Added): void {
  const rows = stages.map((stage) => [stage, { kind: 'function', function: functionOf(pipeline, stage) }] as const);
  try {
    checkedOptions({
      name: pipeline,
      entity: { table, key, projection: 'columns' },
      stages: Object.fromEntries(rows),
    });
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
}

/** Where a new pipeline is defined. Throws a CommandError where a file is in the way. */
function newDefinition({ root }: Project, pipeline: string): { file: string; exported: string } {
  const file = `supabase/functions/_pipelines/${pipeline.replaceAll('_', '-')}.ts`;
  if (!fs.existsSync(path.join(root, file))) return { file, exported: exportName(pipeline) };
  throw new CommandError(
    `${file} is there and exports no pipeline ${pipeline}: name the pipeline that it defines, or move it away.`,
  );
}

/** Throws a CommandError where the migrations give the table a column that a stage would have; warns where they make no such table. */
function requireFreeColumns(project: Project, table: string, stages: string[]): void {
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

/** What is to be installed before the tests of such stages can import their handlers, as the beginning of what comes next. */
function testsNeed({ root }: Project, work: Added['work']): string {
  if (work !== 'model') return '';
  try {
    createRequire(path.join(root, 'package.json')).resolve(modelPackage);
    return '';
  } catch {
    const version = readManifest().modelImports[modelPackage]?.replace('npm:', '');
    return `npm i -D ${version}, which the tests import with the handlers; `;
  }
}

function stageChanges(added: Added, stage: string, definition: string, exported: string): Change[] {
  const folder = functionOf(added.pipeline, stage);
  const given = { ...added, stage, folder, definition: path.posix.basename(definition), exported };
  return [
    { file: `supabase/functions/${folder}/index.ts`, text: indexText(given) },
    { file: `supabase/functions/${folder}/handler.ts`, text: handlerText(given) },
    { file: `supabase/functions/${folder}/deno.json`, text: denoJson(readManifest(), added.work === 'model') },
    { file: `tests/${folder}.test.ts`, text: testText(given) },
  ];
}
