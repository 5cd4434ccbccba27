// Whether a folder holds Millrace as it was released: the runtime, the engine's migrations, and both of one release.
import fs from 'node:fs';
import path from 'node:path';
import { withoutReturns } from '../project/change-set.ts';
import { editedFiles } from '../project/edited-files.ts';
import { engineState, levelIn } from '../project/engine-level.ts';
import { migrationsOf, type Project } from '../project/find-project.ts';
import { installedManifest, releaseFault } from '../project/release-fit.ts';
import { engineInstall, engineStep, readManifest, runtimeFolder } from '../project/shipped.ts';

/** Returns a sentence, with the remedy, for each thing that is not as this release has it. */
export function releaseFaults(project: Project): string[] {
  const manifest = installedManifest(project);
  const fault = releaseFault(project, manifest, 'check');
  // This release cannot judge files that another release shipped.
  if (fault) return [fault];
  return [
    ...editedFiles(project, manifest).map(
      (file) =>
        `${runtimeFolder}/${file} is not as Millrace ${manifest.release} shipped it: run \`npx millrace upgrade\`, which shows ` +
        'the difference, with --force to drop it.',
    ),
    ...engineFaults(project),
  ];
}

function engineFaults(project: Project): string[] {
  const { level, release } = readManifest();
  const folder = path.join(project.root, 'supabase', 'migrations');
  const migrations = migrationsOf(project).map((name) => {
    return { name, text: fs.readFileSync(path.join(folder, name), 'utf8') };
  });
  const state = engineState(migrations.map(({ text }) => text));
  if (state.level === null) return ['No migration installs the engine: run `npx millrace init`.'];
  return [
    ...(state.level === level
      ? []
      : [
          `The migrations have the engine at level ${state.level}, release ${release} has ${level}: run \`npx millrace upgrade\`.`,
        ]),
    ...(state.isSetUp
      ? []
      : [
          'The migrations have the engine without its rows, as a squash leaves it: run `npx millrace init`, which adds them.',
        ]),
    ...migrations
      .filter(({ text }) => isEdited(text, level))
      .map(
        ({ name }) =>
          `supabase/migrations/${name} is not as Millrace shipped it: restore it, since it cannot be upgraded.`,
      ),
  ];
}

/** Returns whether a migration of the engine at this release's level was edited. An older level belongs to another release. */
function isEdited(text: string, level: number): boolean {
  if (!text.startsWith('-- Millrace, built of engine/') || levelIn(text) !== level) return false;
  const own = withoutReturns(text);
  return own !== engineInstall() && (level === 1 || own !== engineStep(level));
}
