// millrace add: a pipeline's definition, and a function with its test for each stage.
import fs from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import { defineCommand, writingOptions } from '../define-command.ts';
import { type Change, readText } from '../project/change-set.ts';
import { CommandError } from '../project/command-error.ts';
import { withFunctionSections } from '../project/config-sections.ts';
import { migrationTexts } from '../project/engine-level.ts';
import { findProject, type Project } from '../project/find-project.ts';
import { requireRelease } from '../project/release-fit.ts';
import { denoJson, readManifest } from '../project/shipped.ts';
import { columnThere, tableLacking } from '../project/stage-columns.ts';
import { writeChanges } from '../project/write-changes.ts';
import { definitionText, handlerText, indexText, stageLine, testText } from './stage-templates.ts';

const usage = `npx millrace add PIPELINE STAGE … [--table T] [--key K] [--external | --model] [--dry-run]
  Writes a pipeline over your table, or stages at the end of one that is there: the definition, and for each stage a function
  with its handler, its pinned deno.json, its section of the configuration and a test that passes.
  --table T   the table whose rows go through it (default: public.PIPELINE)
  --key K     its key (default: id)
  --external  the stages' work is done by a service that calls back
  --model     the stages ask a language model`;

export const add = defineCommand({
  usage,
  takesWords: true,
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
    const next = 'write what the handlers do, then npx millrace sync.';
    return writeChanges(project, addChanges(project, given), values, next);
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
function addChanges(project: Project, added: Added): Change[] {
  requireRelease(project, 'add');
  for (const given of [added.pipeline, ...added.stages]) {
    if (!name.test(given)) {
      throw new CommandError(
        `${JSON.stringify(given)} cannot be a name: use lower-case letters, digits and _, a letter first.`,
      );
    }
  }
  const twice = added.stages.find((stage, at) => added.stages.indexOf(stage) !== at);
  if (twice) throw new CommandError(`Stage ${twice} is named twice: give each a name of its own.`);
  const file = `supabase/functions/_pipelines/${added.pipeline.replaceAll('_', '-')}.ts`;
  const before = readText(path.join(project.root, file));
  const functions = added.stages.map((stage) => functionOf(added.pipeline, stage));
  for (const folder of functions) {
    if (fs.existsSync(path.join(project.root, 'supabase/functions', folder))) {
      throw new CommandError(`supabase/functions/${folder} is there already: give the stage another name.`);
    }
  }
  if (before !== null && (added.table ?? added.key) !== undefined) {
    throw new CommandError(
      `${file} names its table and key already: leave out --table and --key, or correct them there.`,
    );
  }
  requireFreeColumns(project, added, before);
  const config = fs.readFileSync(path.join(project.root, project.config), 'utf8');
  return [
    { file, text: before === null ? definitionText(added) : withStages(file, before, added), from: before },
    ...added.stages.flatMap((stage, at) => stageChanges(added, stage, file, before === null && at === 0)),
    { file: project.config, text: withFunctionSections(project.config, config, functions), from: config },
  ];
}

/** Throws a CommandError where the migrations give the table a column that a stage would have; warns where they make no such table. */
function requireFreeColumns(project: Project, { pipeline, stages, table }: Added, definition: string | null): void {
  const [, defined] = /\btable:\s*['"]([^'"]+)['"]/.exec(definition ?? '') ?? [];
  const entity = defined ?? table ?? `public.${pipeline}`;
  const migrations = migrationTexts(project);
  const lacking = tableLacking(migrations, entity);
  if (lacking) console.error(pc.yellow(lacking));
  for (const stage of stages) {
    const column = columnThere(migrations, entity, stage);
    if (!column) continue;
    throw new CommandError(
      `${entity} has a column ${column} already, which stage ${stage} would have: give the stage another name.`,
    );
  }
}

/** The function of a stage. */
const functionOf = (pipeline: string, stage: string) => `${pipeline}-${stage}`.replaceAll('_', '-');

function stageChanges(added: Added, stage: string, definition: string, isFirst: boolean): Change[] {
  const folder = functionOf(added.pipeline, stage);
  const given = { ...added, stage, folder, definition: path.posix.basename(definition), isFirst };
  return [
    { file: `supabase/functions/${folder}/index.ts`, text: indexText(given) },
    { file: `supabase/functions/${folder}/handler.ts`, text: handlerText(given) },
    { file: `supabase/functions/${folder}/deno.json`, text: denoJson(readManifest()) },
    { file: `tests/${folder}.test.ts`, text: testText(given) },
  ];
}

/** Puts the stages at the end of those that a definition has, each after the one before it. */
function withStages(file: string, text: string, added: Added): string {
  const opening = /\bstages:\s*\{/.exec(text);
  const end = opening ? closing(text, opening.index + opening[0].length) : -1;
  if (!opening || end < 0) {
    const lines = added.stages.map((stage) => stageLine(added, stage, undefined)).join('\n');
    throw new CommandError(`${file} has no "stages: {" to add to: add these lines where its stages are.\n${lines}`);
  }
  const body = text.slice(opening.index + opening[0].length, end);
  const names = [...body.matchAll(/^ {4}(\w+):/gm)].map(([, stage = '']) => stage);
  const there = added.stages.find((stage) => names.includes(stage));
  if (there) throw new CommandError(`Stage ${there} is in ${file} already: give the stage another name.`);
  const lines = added.stages.map((stage, at) => stageLine(added, stage, added.stages[at - 1] ?? names.at(-1)));
  const comma = /[,{]\s*$/.test(text.slice(0, end)) ? '' : ',';
  return `${text.slice(0, end).trimEnd()}${comma}\n${lines.join('\n')}\n  ${text.slice(end)}`;
}

/** Where the bracket closes that was opened right before `from`; -1 where it does not. */
function closing(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1;
    if (text[at] === '}') depth -= 1;
    if (depth === 0) return at;
  }
  return -1;
}
