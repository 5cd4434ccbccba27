// Finds files of the runtime that the user has edited, and shows the edits.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { createTwoFilesPatch } from 'diff';
import { readText } from './change-set.ts';
import type { Project } from './find-project.ts';
import { digestOf, type Manifest, runtimeFolder, shippedRuntime } from './shipped.ts';

/** Returns the runtime's files that are not as their release shipped them, including files that are gone. */
export function editedFiles({ root }: Project, { files }: Manifest): string[] {
  return Object.keys(files).filter((file) => {
    const text = readText(path.join(root, runtimeFolder, file));
    return text === null || digestOf(text) !== files[file];
  });
}

/** Returns the edits as a unified diff against the release that the files came from; without its text, by their names. */
export function showEdits(project: Project, { files, release }: Manifest, edited: string[]): string {
  const shipped = shippedRuntime();
  return edited
    .map((file) => {
      const name = `${runtimeFolder}/${file}`;
      const isShipped = shipped[file] !== undefined && digestOf(shipped[file]) === files[file];
      const original = isShipped ? shipped[file] : committed(project, name, files[file] ?? '');
      const text = readText(path.join(project.root, name));
      if (original === undefined) return `${name}: not as Millrace ${release} shipped it\n`;
      return createTwoFilesPatch(name, text === null ? '/dev/null' : name, original, text ?? '');
    })
    .join('');
}

/** Returns the text with this digest that the file had in the last fifty commits that changed it. */
function committed({ root }: Project, name: string, digest: string): string | undefined {
  const git = (...args: string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout ?? '';
  const commits = git('log', '-n50', '--format=%H', '--', name).split('\n').filter(Boolean);
  return commits.map((commit) => git('show', `${commit}:./${name}`)).find((text) => digestOf(text) === digest);
}
