// How a project gets a package of ours in some release: from npm, or by a tarball where it has this one so.
import path from 'node:path';
import { addCommand } from '../../local/platform/add-command.ts';
import { readText } from './change-set.ts';

type Ours = 'millrace' | '@millrace/dev';

/** Returns the command that installs a release, for the user to paste. */
export function installCommand(root: string, release: string, name: Ours = 'millrace'): string {
  return `${addCommand(root)} ${hasTarball(root) ? `./${tarballOf(name, release)}` : `${name}@${release}`}`;
}

/** Returns the command that installs a release as a part of a sentence, which says where a tarball is from. */
export function howToInstall(root: string, release: string, name: Ours = 'millrace'): string {
  const packing = name === 'millrace' ? 'npm pack' : `npm pack -w ${name}`;
  const from = hasTarball(root) ? `, whose tarball \`npm ci && ${packing}\` writes in a clone of that release` : '';
  return `run \`${installCommand(root, release, name)}\`${from}`;
}

const tarballOf = (name: Ours, release: string) => `${name.replace('@', '').replace('/', '-')}-${release}.tgz`;

/** Returns whether the package.json at or above `root` that asks for millrace has it from a file. */
export function hasTarball(root: string): boolean {
  for (let folder = path.resolve(root); ; folder = path.dirname(folder)) {
    const { devDependencies, dependencies } = packageIn(folder);
    const asked = devDependencies?.millrace ?? dependencies?.millrace;
    if (asked !== undefined) return asked.startsWith('file:');
    if (path.dirname(folder) === folder) return false;
  }
}

interface PackageJson {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

function packageIn(folder: string): PackageJson {
  try {
    return JSON.parse(readText(path.join(folder, 'package.json')) ?? '{}');
  } catch {
    return {};
  }
}
