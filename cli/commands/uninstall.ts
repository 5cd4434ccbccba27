// millrace uninstall: a migration that removes the engine, and our files gone.
import fs from 'node:fs';
import path from 'node:path';
import { defineCommand, writingOptions } from '../define-command.ts';
import { stampsAfter } from '../migration-stamps.ts';
import type { Change } from '../project/change-set.ts';
import { CommandError } from '../project/command-error.ts';
import { withoutFunctionSections } from '../project/config-sections.ts';
import { findProject, migrationsOf, type Project } from '../project/find-project.ts';
import { engineUninstall, readManifest, runtimeFolder } from '../project/shipped.ts';
import { writeChanges } from '../project/write-changes.ts';
import { editedFiles } from './upgrade.ts';

export const uninstall = defineCommand({
  usage: `npx millrace uninstall [--dry-run]
  Writes a migration that removes the engine. The runtime and the function millrace go; definitions and stages stay.`,
  options: writingOptions,
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    const next = 'npx supabase db push, then delete the functions that are left over.';
    return writeChanges(project, await uninstallChanges(project), values, next);
  },
});

/**
 * What takes Millrace out of a project: a migration, since the database has the engine, and the runtime's files with the function
 * millrace. Definitions and stages stay, as they are the project's. Throws a CommandError where a file of the runtime was edited.
 */
async function uninstallChanges(project: Project): Promise<Change[]> {
  const folder = path.join(project.root, runtimeFolder);
  if (!fs.existsSync(path.join(folder, 'manifest.json'))) {
    throw new CommandError(`There is no ${runtimeFolder} in ${project.root}: Millrace is not installed here.`);
  }
  const edited = editedFiles(project);
  if (edited.length > 0) {
    throw new CommandError(`You have edited ${edited.join(', ')} below ${runtimeFolder}: move that away first.`);
  }
  const [stamp] = await stampsAfter(migrationsOf(project), 1);
  const config = fs.readFileSync(path.join(project.root, project.config), 'utf8');
  const gone = [
    ...Object.keys(readManifest(folder).files).map((file) => `${runtimeFolder}/${file}`),
    `${runtimeFolder}/manifest.json`,
  ];
  return [
    { file: `supabase/migrations/${stamp}_uninstall_millrace.sql`, text: engineUninstall() },
    ...[...gone, 'supabase/functions/millrace/index.ts', 'supabase/functions/millrace/deno.json'].map((file) => ({
      file,
      text: null,
    })),
    { file: project.config, text: withoutFunctionSections(project.config, config, ['millrace']) },
  ];
}
