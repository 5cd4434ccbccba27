// The end of each command that writes: shows what would change, or writes it and tells so.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import { many } from '../../operators/numbers.ts';
import { applyChanges, type Change, patchOf, realChanges } from './change-set.ts';
import type { Project } from './find-project.ts';
import { runtimeFolder } from './shipped.ts';
import { snippetFolder } from './snippets.ts';
import { writeAlone } from './write-alone.ts';

/** How a command is to write. */
interface WriteOptions {
  'dry-run': boolean;
  json: boolean;
}

/** Writes all of the changes or none. Returns what the person is told, which ends with the command that comes next. */
export function writeChanges(project: Project, planned: Change[], options: WriteOptions, next: string): string {
  const changes = realChanges(project.root, planned);
  const files = changes.map(({ file }) => file);
  if (options['dry-run']) {
    const patch = shown(project.root, changes);
    return options.json ? JSON.stringify({ files, patch }) : patch || 'Nothing would change.';
  }
  if (changes.length > 0) writeAlone(project.root, () => applyChanges(project.root, changes));
  if (options.json) return JSON.stringify({ files, next });
  if (changes.length === 0) return 'Nothing to do: all of it is there.';
  return [...summary(changes), `Next: ${next}`].join('\n');
}

/** Folders whose files are all Millrace's own, so that a person reads how many there are rather than each. */
const ownFolders = [runtimeFolder, snippetFolder];
const isIn = (folder: string) => (change: Change) => change.file.startsWith(`${folder}/`);
const isElsewhere = (change: Change) => !ownFolders.some((folder) => isIn(folder)(change));

/** Returns the changes as a patch. A folder of Millrace's own that comes or goes whole is one line. */
function shown(root: string, changes: Change[]): string {
  return (
    ownFolders.map((folder) => shownOf(root, folder, changes.filter(isIn(folder)))).join('') +
    patchOf(root, changes.filter(isElsewhere))
  );
}

function shownOf(root: string, folder: string, changes: Change[]): string {
  const isNew = !fs.existsSync(path.join(root, folder));
  if (changes.length === 0 || !(isNew || changes.every(({ text }) => text === null))) return patchOf(root, changes);
  const what = isNew ? 'all new' : changes.length === 1 ? 'which goes' : 'which go';
  return `${folder}: ${many(changes.length, 'file')}, ${what}\n`;
}

/** Warns where git knows of changes that are not committed, among which those of a command are hard to see. */
export function warnDirty({ root }: Project): void {
  const { status, stdout } = spawnSync('git', ['status', '--porcelain', '--untracked-files=no'], { cwd: root });
  if (status !== 0 || stdout.length === 0) return;
  console.error(pc.yellow('Your git tree has changes that are not committed: `git diff` will show them with these.'));
}

/** Returns the files that were written and deleted. The many files of a folder of Millrace's own are one line. */
function summary(changes: Change[]): string[] {
  const verb = (isGone: boolean) => (isGone ? pc.red('gone') : pc.green('wrote'));
  const folders = ownFolders.map((folder) => [folder, changes.filter(isIn(folder))] as const);
  return [
    ...changes.filter(isElsewhere).map(({ file, text }) => `  ${verb(text === null)} ${file}`),
    ...folders
      .filter(([, own]) => own.length > 0)
      .map(
        ([folder, own]) => `  ${verb(own.every(({ text }) => text === null))} ${folder} (${many(own.length, 'file')})`,
      ),
  ];
}
