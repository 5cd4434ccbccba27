// Whether this command and the project's folder are of one release.
import fs from 'node:fs';
import path from 'node:path';
import { CommandError } from '../command-error.ts';
import type { Project } from './find-project.ts';
import { hasTarball, howToInstall } from './how-to-install.ts';
import { type Manifest, readManifest, runtimeFolder } from './shipped.ts';

/** Returns the manifest of the runtime in a project's folder. Throws a CommandError where there is none. */
export function installedManifest({ root }: Project): Manifest {
  const folder = path.join(root, runtimeFolder);
  if (!fs.existsSync(path.join(folder, 'manifest.json'))) {
    throw new CommandError(`There is no ${runtimeFolder} in ${root}: run \`npx millrace init\` first.`);
  }
  return readManifest(folder);
}

/** Returns the sentence that helps where the folder's release is not that of this command; null where it is. */
export function releaseFault(
  { root }: Project,
  folder: Manifest,
  command: string,
  own = readManifest(),
): string | null {
  if (folder.release === own.release) return null;
  const said = `This folder has Millrace ${folder.release}, and this command is of ${own.release}:`;
  // npx fetches a release from npm, but a tarball has to be made first.
  const same = hasTarball(root)
    ? howToInstall(root, folder.release)
    : `run \`npx millrace@${folder.release} ${command}\``;
  return isOlder(folder.release, own.release)
    ? `${said} run \`npx millrace upgrade\`, or ${same}.`
    : `${said} ${same}.`;
}

/** The sentence that helps where the database's engine is not of the folder's release and level, which `push` mends; null where it is. */
export function databaseFault(
  { root }: Project,
  database: { release: string; level: number },
  folder: Manifest,
  push: string,
): string | null {
  if (database.level === folder.level && database.release === folder.release) return null;
  const said =
    `The database has Millrace ${database.release} at level ${database.level}, ` +
    `and this folder ${folder.release} at level ${folder.level}:`;
  const isBehind =
    database.level === folder.level ? isOlder(database.release, folder.release) : database.level < folder.level;
  return isBehind
    ? `${said} run \`${push}\`.`
    : `${said} ${howToInstall(root, database.release)}, then \`npx millrace upgrade\`.`;
}

/** Throws a CommandError with the exact command where the folder is of another release than this command. */
export function requireRelease(project: Project, command: string): Manifest {
  const manifest = installedManifest(project);
  const fault = releaseFault(project, manifest, command);
  if (fault) throw new CommandError(fault);
  return manifest;
}

export function isOlder(a: string, b: string): boolean {
  return a.localeCompare(b, 'en', { numeric: true }) < 0;
}
