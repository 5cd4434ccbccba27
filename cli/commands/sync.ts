// millrace sync: the migrations that definitions lack.
import path from 'node:path';
import pc from 'picocolors';
import { findRunningStack, pushCommand } from '../../local/platform/running-stack.ts';
import { staleTypes } from '../check/types-faults.ts';
import { CommandError } from '../command-error.ts';
import { defineCommand, remoteOption, writingOptions } from '../define-command.ts';
import { findTarget, targetAt } from '../operate/find-target.ts';
import { type Change, realChanges } from '../project/change-set.ts';
import { engineState, migrationTexts } from '../project/engine-level.ts';
import { findProject, hasDefinitions, type Project } from '../project/find-project.ts';
import { readHealth } from '../project/read-health.ts';
import { requireRelease } from '../project/release-fit.ts';
import { writeChanges } from '../project/write-changes.ts';
import { lostRows, writeLostRows } from '../sync/lost-rows.ts';
import { withoutOrphans } from '../sync/orphan-sections.ts';
import type { Renamed } from '../sync/rename-stages.ts';
import { type ColumnChanges, planSync, readTypes } from '../sync/sync-pipelines.ts';

export const sync = defineCommand({
  usage: `npx millrace sync [--check] [--columns] [--renamed PIPELINE.STAGE=NAME] [--types=FILE] [--dry-run] [--remote[=REF]]
  Writes a migration for each definition of supabase/functions/_pipelines that has changed, children before their parents, and
  takes sections that add wrote out of the configuration where their functions are gone.
  --check    writes nothing, and fails where a migration is missing, or where the file of --types is not as it would be written
  --columns  has the migrations drop the seven columns of each stage that is gone, with what they show
  --renamed PIPELINE.STAGE=NAME  has the migration rename the columns of a stage that has another name now; say it once for each
  --types=FILE  writes the stages, results and errors of all pipelines as types for @millrace/client, such as src/pipelines.ts
  --remote[=REF]  writes none: gives a database that has the schema without the engine's rows, such as a branch made in the
             dashboard, its settings, cron jobs and the definitions of the migrations. REF is a reference or branch`,
  options: {
    ...writingOptions,
    ...remoteOption,
    check: { type: 'boolean', default: false },
    columns: { type: 'boolean', default: false },
    renamed: { type: 'string', multiple: true, default: [] as string[] },
    types: { type: 'string' },
  },
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    requireRelease(project, 'sync');
    if (engineState(migrationTexts(project)).level === null) {
      throw new CommandError('No migration installs the engine: run `npx millrace init` first.');
    }
    if (values.remote !== undefined) return syncDatabase(project, values);
    const renamed = values.renamed.map(readRenamed);
    const planned = await missingMigrations(project, values.check, warnInYellow, {
      dropsColumns: values.columns,
      renamed,
    });
    const migrations = planned.map(({ name, text }) => ({ file: `supabase/migrations/${name}`, text }));
    const all = [...migrationTexts(project), ...planned.map(({ text }) => text)];
    const changes = [...migrations, ...(values.check ? [] : withoutOrphans(project, all))];
    if (values.types !== undefined) {
      const types = { file: values.types, text: await readTypes(path.join(project.root, 'supabase', 'functions')) };
      if (values.check) requireTypes(project, types);
      changes.push(types);
    }
    const stack = findRunningStack(project.root);
    const here = stack
      ? `${pushCommand(stack)} brings it into the stack that runs here`
      : 'npx millrace dev runs it here';
    const next = `look at it and commit it; ${here}, npx supabase db push --remote there.`;
    return writeChanges(project, changes, values, next);
  },
});

/** Writes the rows that the database lacks. Returns what was written. */
async function syncDatabase(
  project: Project,
  values: { remote?: string; workdir: string; 'dry-run': boolean },
): Promise<string> {
  await missingMigrations(project, true);
  const { url, headers } = await findTarget({ ...values, revealsKey: true });
  const lost = lostRows(project, await readHealth(url, headers));
  if (!lost) return 'Nothing to do: the database has its settings, cron jobs and definitions.';
  if (values['dry-run']) return lost.sql;
  return writeLostRows(project, lost, targetAt(url, project.root, values.remote));
}

/** Throws a CommandError where the file of `--types` is missing or of other definitions. */
function requireTypes({ root }: Project, types: Change): void {
  if (realChanges(root, [types]).length === 0) return;
  throw new CommandError(staleTypes(types.file));
}

/** Reads what `--renamed` says. Throws a CommandError. */
function readRenamed(text: string): Renamed {
  const [, pipeline = '', stage = '', name = ''] = /^(\w+)\.(\w+)=(\w+)$/.exec(text) ?? [];
  if (name) return { pipeline, stage, name };
  throw new CommandError(
    `--renamed is ${JSON.stringify(text)}, but must be PIPELINE.STAGE=NAME, such as tickets.reply=answer.`,
    2,
  );
}

/** Resolves to the migrations that the project's definitions lack. Each warning goes to `warn`. */
export async function missingMigrations(
  project: Project,
  check: boolean,
  warn = warnInYellow,
  columns: ColumnChanges = {},
) {
  if (!hasDefinitions(project)) {
    throw new CommandError('There is no supabase/functions/_pipelines: `npx millrace add PIPELINE STAGE` writes it.');
  }
  const logger = { command: 'npx millrace sync', log: console.error, warn };
  return planSync(path.join(project.root, 'supabase'), check, logger, columns);
}

const warnInYellow = (line: string) => console.error(pc.yellow(line));
