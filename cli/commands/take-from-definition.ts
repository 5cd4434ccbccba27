// Takes stages out of a definition, however its author has written it.
import path from 'node:path';
import { CommandError } from '../command-error.ts';
import type { Change } from '../project/change-set.ts';
import type { Project } from '../project/find-project.ts';
import { readDefinitions } from '../sync/read-definitions.ts';
import { closing, type Defined, places, requireSound, shape } from './add-to-definition.ts';

/**
 * The file of a definition without these of its stages. Throws a CommandError where other stages need one of them, where none would be
 * left, and where the file is written in a way that this cannot take from.
 */
export async function withoutStages(project: Project, defined: Defined, gone: string[]): Promise<Change> {
  const { definition, file, text } = defined;
  if (gone.length === 0) return { file, text, from: text };
  const left = Object.fromEntries(Object.entries(definition.stages).filter(([stage]) => !gone.includes(stage)));
  requireLeft(defined, left, gone);
  let changed = text;
  const stages = { ...definition.stages };
  for (const stage of gone) {
    delete stages[stage];
    const less = await withoutOne(project, defined, changed, stage, stages);
    if (less === undefined) {
      throw new CommandError(
        `${file} is written in a way that this command cannot take from: take stage ${stage} out of it, then run this again for ` +
          'its function, its test and its section of the configuration.',
      );
    }
    changed = less;
  }
  return { file, text: changed, from: text };
}

/** Throws a CommandError where the stages that are left could not be a pipeline. */
function requireLeft({ definition, file }: Defined, left: Defined['definition']['stages'], gone: string[]): void {
  const { name, input } = definition;
  if (Object.keys(left).length === 0) {
    throw new CommandError(
      `Pipeline ${name} would have no stage: to end it, run \`select millrace.pause('${name}')\` in each database that has it, and ` +
        `delete ${file} with the functions and tests of its stages.`,
    );
  }
  for (const [stage, { needs = [] }] of Object.entries(left)) {
    const need = needs.find((other) => gone.includes(other));
    if (need === undefined) continue;
    throw new CommandError(
      `Stage ${stage} of pipeline ${name} needs ${need}: write into its needs in ${file} what it goes on from, then run this again.`,
    );
  }
  requireSound({ ...input, stages: left });
}

/** Resolves to the text without one stage; undefined where no way of taking it out leaves exactly `stages`. */
async function withoutOne(
  project: Project,
  { definition, file, all }: Defined,
  text: string,
  stage: string,
  stages: Defined['definition']['stages'],
): Promise<string | undefined> {
  const folder = path.join(project.root, path.dirname(file));
  const wanted = shape(all, { pipeline: definition.name, stages });
  for (const { from, to } of places(text).flatMap((place) => entriesOf(text, place, stage))) {
    const changed = text.slice(0, from) + text.slice(to);
    const after = await readDefinitions(folder, { [path.basename(file)]: changed }).catch(() => []);
    if (shape(after) === wanted) return changed;
  }
  return undefined;
}

/** Where a stage's entry begins and ends within the stages of a definition, with the comment above it and the comma behind it. */
function entriesOf(text: string, place: { from: number; to: number }, stage: string): { from: number; to: number }[] {
  const entry = new RegExp(
    `(?:^[ \\t]*(?://.*|/\\*[^*]*(?:\\*(?!/)[^*]*)*\\*/)[ \\t]*\\r?\\n)*[ \\t]*(?<!\\w)['"]?${stage}['"]?\\s*:\\s*\\{`,
    'gm',
  );
  return [...text.slice(place.from, place.to).matchAll(entry)].flatMap(({ 0: opening, index }) => {
    const from = place.from + index;
    const end = closing(text, from + opening.length);
    if (end < 0) return [];
    const [behind = ''] = /^[ \t]*,?(?:[ \t]*\r?\n)?/.exec(text.slice(end + 1)) ?? [];
    return [{ from, to: end + 1 + behind.length }];
  });
}
