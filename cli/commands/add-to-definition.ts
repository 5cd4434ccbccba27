// Puts stages into a definition that is there, however its author has written it.
import fs from 'node:fs';
import path from 'node:path';
import { checkedOptions } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import type { PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { PipelineInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import { CommandError } from '../command-error.ts';
import { type Change, changedMeanwhile } from '../project/change-set.ts';
import { hasDefinitions, type Project } from '../project/find-project.ts';
import { functionOf } from '../sync/pipeline-functions.ts';
import { type Definitions, readDefinitions } from '../sync/read-definitions.ts';
import { type Added, needsOf, stageLine, stageOptions } from './stage-templates.ts';

/** A pipeline that the project defines. */
export interface Defined {
  definition: PipelineDefinition;
  /** The name under which its file exports it. */
  exported: string;
  /** The definition's file, below the project's root; `text` is its text before it was read. */
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
  // Several files may export the pipeline: takes the one whose text holds stages.
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
  const lacking = added.stages.filter((stage) => !isThere(defined, stage, added.work));
  if (lacking.length === 0) return { file, text, from: text };
  const names = [...Object.keys(definition.stages), ...lacking];
  const needs = (stage: string) => needsOf(added, names[names.indexOf(stage) - 1]);
  const more = Object.fromEntries(lacking.map((stage) => [stage, stageOptions(added, stage, needs(stage))]));
  requireSound({ ...definition.input, stages: { ...definition.stages, ...more } });
  const lines = lacking.map((stage) => stageLine(added, stage, needs(stage)));
  for (const { from, to } of places(text)) {
    const body = text.slice(from, to).trimEnd();
    const comma = body === '' || body.endsWith(',') ? '' : ',';
    const changed = `${text.slice(0, from)}${body}${comma}\n${lines.join('\n')}\n  ${text.slice(to)}`;
    const after = await readDefinitions(path.join(project.root, below), { [path.basename(file)]: changed }).catch(
      () => [],
    );
    if (shape(after) === shape(all, { pipeline: added.pipeline, stages: { ...definition.stages, ...more } })) {
      return { file, text: changed, from: text };
    }
  }
  if (fs.readFileSync(path.join(project.root, file), 'utf8') !== text) {
    throw new CommandError(`Nothing was written: ${changedMeanwhile(file)}.`);
  }
  const then = added.work === 'manual' ? '' : ', then run this again for the functions';
  throw new CommandError(
    `${file} is written in a way that this command cannot add to: put these lines at the end of its stages${then}.\n` +
      lines.join('\n'),
  );
}

/** Throws a CommandError where a pipeline with these new stages would be refused, by the rules of `sync`. */
export function requireSound(input: PipelineInput): void {
  try {
    checkedOptions(input);
  } catch (error) {
    throw new CommandError((error as Error).message);
  }
}

/** Returns whether the definition has a stage already, as `add` would write it. Throws a CommandError where it has another. */
function isThere({ definition: { name, stages }, file }: Defined, stage: string, work: Added['work']): boolean {
  const there = stages[stage];
  if (!there) return false;
  if (work === 'manual' ? there.kind === work : 'function' in there && there.function === functionOf(name, stage)) {
    return true;
  }
  throw new CommandError(`Stage ${stage} is in ${file} already: give the stage another name.`);
}

/** Returns where texts of stages begin and end, as far as brackets tell. */
export function places(text: string): { from: number; to: number }[] {
  return [...text.matchAll(/\bstages['"]?\s*:\s*\{/g)].flatMap(({ 0: opening, index }) => {
    const from = index + opening.length;
    const to = closing(text, from);
    return to < 0 ? [] : [{ from, to }];
  });
}

/** Returns where the bracket closes that was opened right before `from`; -1 where it does not. */
export function closing(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1;
    if (text[at] === '}') depth -= 1;
    if (depth === 0) return at;
  }
  return -1;
}

/** A pipeline's stages as they are to be. */
interface Wanted {
  pipeline: string;
  stages: PipelineDefinition['stages'];
}

/** All pipelines with their stages and where each stands in the graph, as one text; of one of them the stages that it is to have. */
export function shape(definitions: Definitions[], wanted?: Wanted): string {
  const pipelines = definitions.flatMap(({ exported }) => [...exported.values()]);
  return JSON.stringify(
    pipelines.map(({ name, stages }) => [
      name,
      ...Object.entries(name === wanted?.pipeline ? wanted.stages : stages).map(
        ([stage, { kind, needs = [], when }]) => [stage, kind, needs, when],
      ),
    ]),
  );
}
