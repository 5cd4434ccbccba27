// The end of each command that writes: shows what would change, or writes it and tells so.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import pc from 'picocolors';
import { many } from '../../operators/numbers.ts';
import { applyChanges, type Change, patchOf, realChanges } from './change-set.ts';
import type { Project } from './find-project.ts';
import { runtimeFolder } from './shipped.ts';
import { writeAlone } from './write-alone.ts';

/** How a command is to write. */
interface Manner {
  'dry-run': boolean;
  json: boolean;
}

/** Writes all of the changes or none. Returns what the person is told, which ends with the command that comes next. */
export function writeChanges(project: Project, planned: Change[], manner: Manner, next: string): string {
  const changes = realChanges(project.root, planned);
  const files = changes.map(({ file }) => file);
  if (manner['dry-run']) {
    const patch = shown(project.root, changes);
    return manner.json ? JSON.stringify({ files, patch }) : patch || 'Nothing would change.';
  }
  if (changes.length > 0) writeAlone(project.root, () => applyChanges(project.root, changes));
  if (manner.json) return JSON.stringify({ files, next });
  if (changes.length === 0) return 'Nothing to do: all of it is there.';
  return [...summary(changes), `Next: ${next}`].join('\n');
}

/** The changes as a patch; a runtime that comes or goes whole is one line. */
function shown(root: string, changes: Change[]): string {
  const ofRuntime = changes.filter(isOfRuntime);
  const isNew = !fs.existsSync(path.join(root, runtimeFolder));
  const isGone = ofRuntime.every(({ text }) => text === null);
  const runtime = isNew || isGone ? ofRuntime : [];
  const others = changes.filter((change) => !runtime.includes(change));
  const whole =
    runtime.length > 0
      ? `${runtimeFolder}: ${many(runtime.length, 'file')}, ${isNew ? 'all new' : runtime.length === 1 ? 'which goes' : 'which go'}\n`
      : '';
  return whole + patchOf(root, others);
}

/** Warns where git knows of changes that are not committed, among which those of a command are hard to see. */
export function warnDirty({ root }: Project): void {
  const { status, stdout } = spawnSync('git', ['status', '--porcelain', '--untracked-files=no'], { cwd: root });
  if (status !== 0 || stdout.length === 0) return;
  console.error(pc.yellow('Your git tree has changes that are not committed: `git diff` will show them with these.'));
}

const isOfRuntime = ({ file }: Change) => file.startsWith(`${runtimeFolder}/`);

/** The files that were written and deleted, the runtime's many files in one line. */
function summary(changes: Change[]): string[] {
  const ofRuntime = changes.filter(isOfRuntime);
  const others = changes.filter((change) => !ofRuntime.includes(change));
  const verb = (isGone: boolean) => (isGone ? pc.red('gone') : pc.green('wrote'));
  const whole = `  ${verb(ofRuntime.every(({ text }) => text === null))} ${runtimeFolder} (${many(ofRuntime.length, 'file')})`;
  return [
    ...others.map(({ file, text }) => `  ${verb(text === null)} ${file}`),
    ...(ofRuntime.length > 0 ? [whole] : []),
  ];
}
