// Gives a stage another name in its definition, however its author has written it.
import path from 'node:path';
import { CommandError } from '../command-error.ts';
import type { Change } from '../project/change-set.ts';
import type { Project } from '../project/find-project.ts';
import { columnsOf } from '../project/stage-columns.ts';
import { functionOf } from '../sync/pipeline-functions.ts';
import { readDefinitions } from '../sync/read-definitions.ts';
import type { Renamed } from '../sync/rename-stages.ts';
import { type Defined, places, requireSound, shape } from './add-to-definition.ts';

/**
 * The file of a definition in which a stage has another name, also where stages need it or a condition reads its result. Throws a
 * CommandError where the definition would be refused, and where the file is written in a way that this cannot change.
 */
export async function withStageRenamed(project: Project, defined: Defined, renamed: Renamed): Promise<Change> {
  const { definition, file, text, all } = defined;
  const { pipeline, stage, name } = renamed;
  const stages = withNewName(definition.stages, renamed);
  requireSound({ ...definition.input, stages });
  const wanted = shape(all, { pipeline, stages });
  const key = new RegExp(`(?<![\\w$.])(['"]?)${stage}\\1(?=\\s*:\\s*\\{)`, 'g');
  for (const { from, to } of places(text)) {
    const body = text.slice(from, to);
    for (const { 0: found, index } of body.matchAll(key)) {
      const entry = body.slice(0, index) + found.replace(stage, name) + body.slice(index + found.length);
      const changed = text.slice(0, from) + inTexts(entry, renamed) + text.slice(to);
      const folder = path.join(project.root, path.dirname(file));
      const after = await readDefinitions(folder, { [path.basename(file)]: changed }).catch(() => []);
      if (shape(after) === wanted) return { file, text: changed, from: text };
    }
  }
  throw new CommandError(
    `${file} is written in a way that this command cannot change. Rename stage ${stage} there, in its function, test and section ` +
      `by hand, then run npx millrace sync --renamed ${pipeline}.${stage}=${name}.`,
  );
}

/** The stages as they are to be. A reference that this knows nothing of, such as a threshold's, is refused by the definition's checks. */
function withNewName(stages: Defined['definition']['stages'], { pipeline, stage, name }: Renamed) {
  const entries = Object.entries(stages).map(([key, given]) => [
    key === stage ? name : key,
    {
      ...given,
      ...(given.needs && { needs: given.needs.map((need) => (need === stage ? name : need)) }),
      ...(given.when && { when: given.when.replaceAll(inCondition(stage), name) }),
      ...('function' in given &&
        given.function === functionOf(pipeline, stage) && { function: functionOf(pipeline, name) }),
    },
  ]);
  return Object.fromEntries(entries) as typeof stages;
}

/** Renames the stage in the text of other stages: in needs, conditions and the function's name. */
function inTexts(text: string, { pipeline, stage, name }: Renamed): string {
  const quoted = (word: string) => new RegExp(`(['"\`])${word}\\1`, 'g');
  return text
    .replaceAll(/\bneeds['"]?\s*:\s*\[[^\]]*\]/g, (needs) => needs.replaceAll(quoted(stage), `$1${name}$1`))
    .replaceAll(inCondition(stage), name)
    .replaceAll(quoted(functionOf(pipeline, stage)), `$1${functionOf(pipeline, name)}$1`);
}

/** Matches a stage's name where a condition reads its result, between quotes too. */
const inCondition = (stage: string) => new RegExp(`(?<=\\$\\.needs\\.(?:\\\\?")?)${stage}\\b`, 'g');

/** Returns the stages whose conditions still say the former name, or that of a column, in a way that this does not change. */
export function conditionsLeft({ stages }: Defined['definition'], { stage }: Renamed): string[] {
  const former = new RegExp(`\\b(?:${[stage, ...columnsOf(stage)].join('|')})\\b`);
  return Object.entries(stages).flatMap(([name, { when = '', given, ...of }]) => {
    const ends = 'ends' in of ? of.ends : undefined;
    return former.test(JSON.stringify([when.replaceAll(inCondition(stage), ''), given, ends])) ? [name] : [];
  });
}
