// millrace rename: a stage gets another name in the definition, with its function, test and section of the configuration.
import { isUtf8 } from 'node:buffer';
import fs from 'node:fs';
import path from 'node:path';
import { CommandError } from '../command-error.ts';
import { defineCommand, writingOptions } from '../define-command.ts';
import type { Change } from '../project/change-set.ts';
import { findProject, type Project, readConfigText } from '../project/find-project.ts';
import { requireRelease } from '../project/release-fit.ts';
import { writeChanges } from '../project/write-changes.ts';
import { functionOf } from '../sync/pipeline-functions.ts';
import type { Renamed } from '../sync/rename-stages.ts';
import { requireFreeColumns, requireStageNames } from './add.ts';
import { type Defined, findDefined } from './add-to-definition.ts';
import { conditionsLeft, withStageRenamed } from './rename-in-definition.ts';
import { camel } from './stage-templates.ts';

const usage = `npx millrace rename PIPELINE STAGE NAME [--dry-run]
  Gives a stage another name: in the definition, its function, test and section of the configuration. The migration that
  npx millrace sync --renamed PIPELINE.STAGE=NAME writes next renames its columns, and is refused while runs are live.`;

export const rename = defineCommand({
  usage,
  takesWords: 3,
  options: writingOptions,
  run: async ({ words, values }) => {
    const [pipeline, stage, name] = words;
    if (!pipeline || !stage || !name)
      throw new CommandError(`Name a pipeline, its stage and the new name.\n\n${usage}`, 2);
    const project = findProject(values.workdir);
    requireRelease(project, 'rename');
    const defined = await findDefined(project, pipeline);
    if (!defined?.definition.stages[stage]) {
      const there = defined ? Object.keys(defined.definition.stages).join(', ') : '';
      throw new CommandError(
        defined
          ? `Pipeline ${pipeline} has no stage ${stage}: it has ${there}.`
          : `There is no pipeline ${pipeline} in supabase/functions/_pipelines: correct the name.`,
      );
    }
    if (defined.definition.stages[name]) {
      throw new CommandError(`Pipeline ${pipeline} has a stage ${name} already: choose another name.`);
    }
    requireStageNames([name]);
    const { table, projection } = defined.definition.input.entity;
    if (projection === 'columns') requireFreeColumns(project, table, [name]);
    const renamed = { pipeline, stage, name };
    const changes = await renameChanges(project, defined, renamed);
    return writeChanges(project, changes, values, nextSteps(project, defined, renamed));
  },
});

/** The changes of files. The stage's own function moves; one that the definition names otherwise stays where it is. */
async function renameChanges(project: Project, defined: Defined, renamed: Renamed): Promise<Change[]> {
  const { pipeline, stage, name } = renamed;
  const definition = await withStageRenamed(project, defined, renamed);
  const of = defined.definition.stages[stage];
  if (!of || !('function' in of)) return [definition];
  const from = of.function;
  const to = from === functionOf(pipeline, stage) ? functionOf(pipeline, name) : from;
  if (to !== from && fs.existsSync(path.join(project.root, 'supabase/functions', to))) {
    throw new CommandError(`supabase/functions/${to} is there already: choose another name.`);
  }
  const config = readConfigText(project);
  const moved = codeOf(project.root, from).flatMap((file): Change[] => {
    const place = path.join(project.root, file);
    const bytes = fs.readFileSync(place);
    if (!isUtf8(bytes))
      throw new CommandError(`${file} is no text: move it away, run this again, and move it to ${to}.`);
    const before = bytes.toString();
    const text = withNames(before, renamed).replaceAll(whole(from), to);
    const target = file.replaceAll(whole(from), to);
    if (target === file) return [{ file, text, from: before }];
    return [
      { file: target, text, from: null },
      { file, text: null, from: before },
    ];
  });
  return [definition, ...moved, { file: project.config, text: config.replaceAll(whole(from), to), from: config }];
}

/** Returns the files of a function, and its test. */
function codeOf(root: string, folder: string): string[] {
  const below = path.join(root, 'supabase/functions', folder);
  const found = fs.existsSync(below) ? fs.readdirSync(below, { recursive: true, withFileTypes: true }) : [];
  const files = found
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'));
  const test = `tests/${folder}.test.ts`;
  return fs.existsSync(path.join(root, test)) ? [...files, test] : files;
}

/** Matches a function's name where it is no part of a longer name. */
const whole = (name: string) => new RegExp(`(?<![\\w-])${name}(?![\\w-])`, 'g');

/** The text of a stage's code with the stage's new name: where it says which stage it is, and in the names that `add` wrote. */
function withNames(text: string, { stage, name }: Renamed): string {
  return text
    .replaceAll(new RegExp(`(\\bstage:\\s*|\\btest\\()(['"\`])${stage}(?=\\W)`, 'g'), `$1$2${name}`)
    .replaceAll(new RegExp(`\\b${camel(stage)}(?=(?:Row|Stage)\\b)`, 'g'), camel(name));
}

function nextSteps({ root }: Project, { definition }: Defined, renamed: Renamed): string {
  const { pipeline, stage, name } = renamed;
  const conditions = conditionsLeft(definition, renamed).map((of) => (of === stage ? name : of));
  const of = definition.stages[stage];
  const function_ = of && 'function' in of ? of.function : undefined;
  const readers = Object.values(definition.stages).flatMap((other) =>
    'function' in other && other.needs?.includes(stage) ? codeOf(root, other.function) : [],
  );
  const stale = readers.filter((file) =>
    new RegExp(`\\b${stage}\\b`).test(fs.readFileSync(path.join(root, file), 'utf8')),
  );
  return [
    ...(conditions.length > 0
      ? [`correct ${stage} in the conditions of ${conditions.join(', ')} where it is the stage; `]
      : []),
    ...(stale.length > 0 ? [`write needs.${name} for needs.${stage} in ${stale.join(', ')}; `] : []),
    `npx millrace sync --renamed ${pipeline}.${stage}=${name}.`,
    ...(function_ === functionOf(pipeline, stage)
      ? [` Once it is deployed, npx supabase functions delete ${function_} takes the former function away.`]
      : []),
  ].join('');
}
