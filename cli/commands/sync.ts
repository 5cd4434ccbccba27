// millrace sync: the migrations that definitions lack.
import fs from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import { defineCommand, writingOptions } from '../define-command.ts';
import { CommandError } from '../project/command-error.ts';
import { findProject, type Project } from '../project/find-project.ts';
import { requireRelease } from '../project/release-fit.ts';
import { writeChanges } from '../project/write-changes.ts';
import { planSync } from '../sync/sync-pipelines.ts';

export const sync = defineCommand({
  usage: `npx millrace sync [--check] [--dry-run]
  Writes a migration for each definition of supabase/functions/_pipelines that has changed, children before their parents.
  --check    writes none, and fails where one is missing`,
  options: { ...writingOptions, check: { type: 'boolean', default: false } },
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    requireRelease(project, 'sync');
    const planned = await missingMigrations(project, values.check);
    const changes = planned.map(({ name, text }) => ({ file: `supabase/migrations/${name}`, text }));
    return writeChanges(
      project,
      changes,
      values,
      'look at it and commit it; npx millrace dev runs it here, npx supabase db push --remote there.',
    );
  },
});

const definitions = ({ root }: Project) => path.join(root, 'supabase', 'functions', '_pipelines');

export const hasDefinitions = (project: Project) => fs.existsSync(definitions(project));

/** The migrations that the project's definitions lack. Each warning goes to `warn`. */
export async function missingMigrations(project: Project, check: boolean, warn = warnInYellow) {
  if (!hasDefinitions(project)) {
    throw new CommandError('There is no supabase/functions/_pipelines: `npx millrace add PIPELINE STAGE` writes it.');
  }
  return planSync(path.join(project.root, 'supabase'), check, {
    command: 'npx millrace sync',
    log: console.error,
    warn,
  });
}

const warnInYellow = (line: string) => console.error(pc.yellow(line));
