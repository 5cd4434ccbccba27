// millrace remove: stages out of a pipeline, with their functions, tests and sections of the configuration.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { CommandError } from '../command-error.ts';
import { defineCommand, writingOptions } from '../define-command.ts';
import { type Change, readText, withoutReturns } from '../project/change-set.ts';
import { withoutFunctionSections } from '../project/config-sections.ts';
import { findProject, type Project, readConfigText } from '../project/find-project.ts';
import { requireRelease } from '../project/release-fit.ts';
import { writeChanges } from '../project/write-changes.ts';
import { functionOf } from '../sync/pipeline-functions.ts';
import { stageChanges } from './add.ts';
import { type Defined, findDefined } from './add-to-definition.ts';
import { withoutStages } from './take-from-definition.ts';

const usage = `npx millrace remove PIPELINE STAGE … [--force] [--dry-run]
  Takes stages out of a pipeline: out of the definition, with their functions, tests and sections of the configuration. What the
  database has of them goes by the migration that npx millrace sync writes next; --columns there drops their columns too.
  --force  deletes code that is in no commit, too`;

export const remove = defineCommand({
  usage,
  takesWords: Number.POSITIVE_INFINITY,
  options: { ...writingOptions, force: { type: 'boolean', default: false } },
  run: async ({ words, values }) => {
    const [pipeline, ...stages] = words;
    if (!pipeline || stages.length === 0) throw new CommandError(`Name a pipeline and its stages.\n\n${usage}`, 2);
    const project = findProject(values.workdir);
    requireRelease(project, 'remove');
    const { changes, kept, columns } = await removeChanges(project, pipeline, [...new Set(stages)]);
    if (!values.force) requireSaved(project, changes);
    const stays = kept.map(
      (name) => `take the section of function ${name} out of ${project.config}, which says more; `,
    );
    const how = columns ? ', or npx millrace sync --columns, which also drops their columns' : '';
    return writeChanges(
      project,
      changes.map(({ change }) => change),
      values,
      `${stays.join('')}npx millrace sync${how}.`,
    );
  },
});

/** A change; for a file that is deleted, also the texts that `add` might have written there. */
interface Removed {
  change: Change;
  written?: string[];
}

/** The changes of files that take the stages out. Throws a CommandError where there is no such stage, or it cannot go. */
async function removeChanges(project: Project, pipeline: string, stages: string[]) {
  const defined = await findDefined(project, pipeline);
  const there = defined?.definition.stages ?? {};
  const functions = stages.flatMap((stage) => {
    const of = there[stage];
    if (of && !('function' in of)) return [];
    return [{ stage, name: of ? of.function : functionOf(pipeline, stage) }];
  });
  for (const stage of stages) if (!(stage in there)) requireLeftOver(project, pipeline, stage, Object.keys(there));
  const config = readConfigText(project);
  const names = functions.map(({ name }) => name);
  const sections = withoutFunctionSections(project.config, config, names);
  const inDefinition = stages.filter((stage) => stage in there);
  const definition = defined ? [await withoutStages(project, defined, inDefinition)] : [];
  const changes: Removed[] = [
    ...definition.map((change) => ({ change })),
    ...functions.flatMap(({ stage, name }) => filesOf(project, defined, pipeline, stage, name)),
    { change: { file: project.config, text: sections.text, from: config } },
  ];
  return { changes, kept: sections.kept, columns: defined?.definition.input.entity.projection === 'columns' };
}

/** Throws a CommandError where a stage is in no definition and has no function that it left behind. */
function requireLeftOver({ root }: Project, pipeline: string, stage: string, there: string[]): void {
  if (fs.existsSync(path.join(root, 'supabase/functions', functionOf(pipeline, stage)))) return;
  const has = there.length > 0 ? `Pipeline ${pipeline} has no stage ${stage}: it has ${there.join(', ')}` : undefined;
  throw new CommandError(
    `${has ?? `There is no pipeline ${pipeline} in supabase/functions/_pipelines`}, and there is no supabase/functions/` +
      `${functionOf(pipeline, stage)}: correct the name.`,
  );
}

/** The files of a stage's function and its test, which go. */
function filesOf({ root }: Project, defined: Defined | undefined, pipeline: string, stage: string, name: string) {
  const folder = `supabase/functions/${name}`;
  const found = fs.existsSync(path.join(root, folder))
    ? fs.readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    : [];
  const code = found
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'));
  const test = `tests/${name}.test.ts`;
  const works = ['own', 'external', 'model'] as const;
  const written = works.flatMap((work) =>
    stageChanges({ pipeline, stages: [stage], work }, stage, defined?.file ?? '', defined?.exported ?? ''),
  );
  return [...code, ...(fs.existsSync(path.join(root, test)) ? [test] : [])].map((file) => ({
    change: { file, text: null },
    written: written.flatMap((change) => (change.file === file && change.text !== null ? [change.text] : [])),
  }));
}

/** Throws a CommandError that names the files to delete which the user has edited and no commit holds. */
function requireSaved({ root }: Project, removed: Removed[]): void {
  const edited = removed.flatMap(({ change: { file, text }, written = [] }) => {
    const now = text === null ? readText(path.join(root, file)) : null;
    return now !== null && !written.includes(withoutReturns(now)) ? [file] : [];
  });
  const unsaved = edited.filter((file) => !isCommitted(root, file));
  if (unsaved.length === 0) return;
  throw new CommandError(
    `You have edited ${unsaved.join(', ')}, and no commit has what you wrote there: commit it, or run this again with --force.`,
  );
}

/** Returns whether git has a file as it is. */
function isCommitted(root: string, file: string): boolean {
  const args = ['--no-optional-locks', 'status', '--porcelain', '--ignored', '--untracked-files=all', '--', file];
  const { status, stdout } = spawnSync('git', args, { cwd: root });
  return status === 0 && stdout.length === 0;
}
