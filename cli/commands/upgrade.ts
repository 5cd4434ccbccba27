// millrace upgrade: the runtime of this release in the place of an older one.
import fs from 'node:fs';
import path from 'node:path';
import { defineCommand, writingOptions } from '../define-command.ts';
import { type Change, patchOf, readText } from '../project/change-set.ts';
import { CommandError } from '../project/command-error.ts';
import { findProject, migrationsOf, type Project } from '../project/find-project.ts';
import {
  denoJson,
  digestOf,
  levelIn,
  type Manifest,
  readManifest,
  runtimeFiles,
  runtimeFolder,
} from '../project/shipped.ts';
import { writeChanges } from '../project/write-changes.ts';

export const upgrade = defineCommand({
  usage: `npx millrace upgrade [--force] [--dry-run]
  Writes the runtime of this release in the place of an older one. Where you edited it, shows the difference and writes nothing.
  --force    drops what you edited`,
  options: { ...writingOptions, force: { type: 'boolean', default: false } },
  run: async ({ values }) => {
    const project = findProject(values.workdir);
    return writeChanges(project, upgradeChanges(project, values.force), values, 'npx supabase functions deploy.');
  },
});

/**
 * What brings the runtime and the function millrace to this release. Throws a CommandError where somebody has edited the runtime,
 * unless `force`, or where the engine's migrations are of another level than this release has a way from.
 */
function upgradeChanges(project: Project, force: boolean): Change[] {
  const folder = path.join(project.root, runtimeFolder);
  if (!fs.existsSync(path.join(folder, 'manifest.json'))) {
    throw new CommandError(`There is no ${runtimeFolder} in ${project.root}: run \`millrace init\` first.`);
  }
  const manifest = readManifest();
  refuseOtherLevel(project, manifest);
  const edited = editedFiles(project);
  if (edited.length > 0 && !force) {
    throw new CommandError(
      `You have edited ${edited.join(', ')} below ${runtimeFolder}. An upgrade drops what you changed:\n` +
        `${patchOf(
          project.root,
          whole(manifest).filter(({ file }) => edited.includes(path.posix.relative(runtimeFolder, file))),
        )}` +
        'Move your change into your own functions, or run this again with --force.',
    );
  }
  const now = whole(manifest);
  const gone = Object.keys(readManifest(folder).files)
    .map((file) => `${runtimeFolder}/${file}`)
    .filter((file) => !now.some((change) => change.file === file))
    .map((file) => ({ file, text: null }));
  return [...now, ...gone, { file: 'supabase/functions/millrace/deno.json', text: denoJson(manifest) }];
}

/** The runtime's files that are not as their release shipped them. */
export function editedFiles({ root }: Project): string[] {
  const folder = path.join(root, runtimeFolder);
  const { files } = readManifest(folder);
  return Object.keys(files).filter((file) => {
    const text = readText(path.join(folder, file));
    return text !== null && digestOf(text) !== files[file];
  });
}

function whole(manifest: Manifest): Change[] {
  return [
    ...Object.entries(runtimeFiles()).map(([file, text]) => ({ file: `${runtimeFolder}/${file}`, text })),
    { file: `${runtimeFolder}/manifest.json`, text: `${JSON.stringify(manifest, null, 2)}\n` },
  ];
}

function refuseOtherLevel(project: Project, { level, release }: Manifest): void {
  const folder = path.join(project.root, 'supabase', 'migrations');
  const found = migrationsOf(project).map((name) => levelIn(fs.readFileSync(path.join(folder, name), 'utf8')));
  const newest = Math.max(0, ...found.filter((number) => number !== null));
  if (newest === level) return;
  throw new CommandError(
    newest === 0
      ? 'No migration of this project installs the engine: run `millrace init` first.'
      : `This project's migrations have the engine at level ${newest}, and release ${release} has level ${level} and no way from there.`,
  );
}
