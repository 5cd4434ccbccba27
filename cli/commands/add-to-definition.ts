// Puts stages into a definition that is there, however its author has written it.
import fs from 'node:fs';
import path from 'node:path';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import { type Change, changedMeanwhile } from '../project/change-set.ts';
import { CommandError } from '../project/command-error.ts';
import { hasDefinitions, type Project } from '../project/find-project.ts';
import { type Definitions, readDefinitions } from '../sync/read-definitions.ts';
import type { Added } from './add.ts';
import { functionOf, stageLine } from './stage-templates.ts';

/** A pipeline that the project defines. */
export interface Defined {
  definition: PipelineDefinition;
  /** The name under which its file exports it. */
  exported: string;
  /** That file, below the project's root, and its text before it was read. */
  file: string;
  text: string;
  /** All that the project defines. */
  all: Definitions[];
}

const below = 'supabase/functions/_pipelines';

/** Finds the definition of a pipeline, in whichever file it is; undefined where there is none. */
export async function findDefined(project: Project, pipeline: string): Promise<Defined | undefined> {
  if (!hasDefinitions(project)) return undefined;
  const folder = path.join(project.root, below);
  const names = fs.readdirSync(folder).filter((name) => name.endsWith('.ts'));
  const texts = new Map(names.map((name) => [name, fs.readFileSync(path.join(folder, name), 'utf8')]));
  const all = await readDefinitions(folder);
  const found = all.flatMap(({ file, exported }) =>
    [...exported]
      .filter(([, { name }]) => name === pipeline)
      .map(([name, definition]) => ({ definition, exported: name, file, text: texts.get(file) ?? '' })),
  );
  // What one file defines another may export too.
  const own = found.find(({ text }) => places(text).length > 0) ?? found[0];
  return own && { ...own, file: `${below}/${own.file}`, all };
}

/**
 * Puts the stages at the end of those that a pipeline has, each after the one before it. A stage that the definition has already,
 * with the function that it would get, is left as it is there. Throws a CommandError with the lines to write by hand where the file
 * is written in a way that this cannot add to.
 */
export async function withStages(project: Project, defined: Defined, added: Added): Promise<Change> {
  const { definition, file, text, all } = defined;
  const lacking = added.stages.filter((stage) => !isThere(definition, stage, file));
  if (lacking.length === 0) return { file, text, from: text };
  const names = [...Object.keys(definition.stages), ...lacking];
  const needOf = (stage: string) => names[names.indexOf(stage) - 1];
  const lines = lacking.map((stage) => stageLine(added, stage, needOf(stage)));
  for (const { from, to } of places(text)) {
    const body = text.slice(from, to).trimEnd();
    const comma = body === '' || body.endsWith(',') ? '' : ',';
    const changed = `${text.slice(0, from)}${body}${comma}\n${lines.join('\n')}\n  ${text.slice(to)}`;
    const after = await readDefinitions(path.join(project.root, below), { [path.basename(file)]: changed }).catch(
      () => [],
    );
    if (shape(after) === shape(all, { pipeline: added.pipeline, lacking, needOf })) {
      return { file, text: changed, from: text };
    }
  }
  if (fs.readFileSync(path.join(project.root, file), 'utf8') !== text) {
    throw new CommandError(`Nothing was written: ${changedMeanwhile(file)}.`);
  }
  throw new CommandError(
    `${file} is written in a way that this command cannot add to: put these lines at the end of its stages, then run this again ` +
      `for the functions.\n${lines.join('\n')}`,
  );
}

/** Whether the definition has a stage already, with the function that `add` writes. Throws a CommandError where it has another. */
function isThere({ name, stages }: PipelineDefinition, stage: string, file: string): boolean {
  const there = stages[stage];
  if (!there) return false;
  if ('function' in there && there.function === functionOf(name, stage)) return true;
  throw new CommandError(`Stage ${stage} is in ${file} already: give the stage another name.`);
}

/** Where texts of stages begin and end, as far as brackets tell. */
function places(text: string): { from: number; to: number }[] {
  return [...text.matchAll(/\bstages['"]?\s*:\s*\{/g)].flatMap(({ 0: opening, index }) => {
    const from = index + opening.length;
    const to = closing(text, from);
    return to < 0 ? [] : [{ from, to }];
  });
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

interface Lacking {
  pipeline: string;
  lacking: string[];
  needOf(stage: string): string | undefined;
}

/** All pipelines with their stages and what each needs, as one text; with the stages that one of them lacks. */
function shape(definitions: Definitions[], more?: Lacking): string {
  const pipelines = definitions.flatMap(({ exported }) => [...exported.values()]);
  return JSON.stringify(
    pipelines.map(({ name, stages }) => [
      name,
      ...Object.entries(stages).map(([stage, of]) => [stage, of.needs ?? []]),
      ...(name === more?.pipeline ? more.lacking : []).map((stage) => [stage, [more?.needOf(stage)].filter(Boolean)]),
    ]),
  );
}
