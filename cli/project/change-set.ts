// The files that a command writes: all or none, and shown as a patch first with --dry-run.
import fs from 'node:fs';
import path from 'node:path';
import { createTwoFilesPatch } from 'diff';
import { isRunning } from '../../local/platform/child-processes.ts';

/** One file below `root`, with its whole text; null where it is to go. */
export interface Change {
  file: string;
  text: string | null;
  /** The text of the file that `text` was made from; null: there was no file; undefined: the command read none. */
  from?: string | null;
}

/** Of these changes those that change anything; git may have ended the lines of what is there as Windows does. */
export function realChanges(root: string, changes: Change[]): Change[] {
  return changes.filter(({ file, text }) => {
    const before = readText(path.join(root, file));
    return text === null || before === null ? text !== before : withoutReturns(text) !== withoutReturns(before);
  });
}

/** Returns a text with its lines ended as ours are. */
export const withoutReturns = (text: string) => text.replaceAll('\r\n', '\n');

/** Characters. A patch leaves out the text of a longer file, since people would not read it. */
const longest = 100_000;

/** Returns the changes as `git diff` shows them; a very long file by its name and size. */
export function patchOf(root: string, changes: Change[]): string {
  return changes
    .map(({ file, text }) => {
      if ((text?.length ?? 0) > longest) return `${file}: ${text?.length} characters\n`;
      const before = readText(path.join(root, file));
      return createTwoFilesPatch(
        before === null ? '/dev/null' : file,
        text === null ? '/dev/null' : file,
        before ?? '',
        text ?? '',
      );
    })
    .join('');
}

/**
 * Writes all changes or none: each text goes into a new file beside its place first. When one cannot be put in its place,
 * the former files are restored. Ctrl-C waits until all is written. Throws an error that names the file.
 */
export function applyChanges(root: string, changes: Change[]): void {
  // Node calls these listeners after this function has returned, since nothing here waits.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(130));
  const done: { place: string; before: string | null }[] = [];
  const made: string[] = [];
  const writes = changes.map(({ file, text }) => {
    const place = targetOf(path.join(root, file));
    return { place, part: `${place}.${process.pid}.part`, text };
  });
  try {
    for (const { file, from } of changes) {
      if (from === undefined || from === readText(path.join(root, file))) continue;
      throw new Error(changedMeanwhile(file));
    }
    for (const folder of new Set(writes.map(({ place }) => path.dirname(place)))) removeLeftParts(folder);
    for (const { place, part, text } of writes) {
      const first = fs.mkdirSync(path.dirname(place), { recursive: true });
      if (first) made.push(first);
      const mode = writableMode(place);
      if (text !== null) fs.writeFileSync(part, text, { mode });
    }
    for (const { place, part, text } of writes) {
      const before = readText(place);
      if (text === null) fs.rmSync(place, { force: true });
      else fs.renameSync(part, place);
      done.push({ place, before });
    }
  } catch (error) {
    for (const { place, before } of done.reverse()) {
      if (before === null) fs.rmSync(place, { force: true });
      else fs.writeFileSync(place, before);
    }
    // A part is missing where a file stands in the way of its folder.
    for (const { part } of writes) if (fs.existsSync(part)) fs.rmSync(part);
    for (const folder of made) fs.rmSync(folder, { recursive: true, force: true });
    throw new Error(`Nothing was written: ${(error as Error).message}.`);
  }
  for (const { file, text } of changes) if (text === null) removeEmptyFolders(root, path.dirname(file));
}

/** Says that what a command read is no longer so. */
export const changedMeanwhile = (file: string) =>
  `${file} was changed meanwhile, by another command or an editor: run this again`;

/** Returns whether a file is not yet in its place: its name then ends with the process that writes it. */
export const isPart = (name: string) => partOf.test(name);

const partOf = /\.(\d+)\.part$/;

/** Removes what a process has left that was killed before its end. */
function removeLeftParts(folder: string): void {
  if (!fs.existsSync(folder)) return;
  for (const name of fs.readdirSync(folder)) {
    const [, pid] = partOf.exec(name) ?? [];
    if (pid && !isRunning(Number(pid))) fs.rmSync(path.join(folder, name));
  }
}

/** Returns the real path that a write to `place` changes: `place` may be a symlink. */
const targetOf = (place: string) => (fs.existsSync(place) ? fs.realpathSync(place) : place);

/** Returns the mode of a file that is to be replaced, which must not be read-only; undefined for a new one. */
function writableMode(place: string): number | undefined {
  if (!fs.existsSync(place)) return undefined;
  fs.accessSync(place, fs.constants.W_OK);
  return fs.statSync(place).mode & 0o777;
}

/** Returns the text of a file, or null where there is none. */
export function readText(file: string): string | null {
  if (!fs.existsSync(file)) return null;
  if (fs.statSync(file).isDirectory()) throw new Error(`Nothing was written: ${file} is a folder: move it away.`);
  return fs.readFileSync(file, 'utf8');
}

function removeEmptyFolders(root: string, folder: string): void {
  if (folder === '.') return;
  const place = path.join(root, folder);
  const found = fs.lstatSync(place, { throwIfNoEntry: false });
  // Keeps a link to a folder, which is the user's own.
  if (found && (!found.isDirectory() || fs.readdirSync(place).length > 0)) return;
  if (found) fs.rmdirSync(place);
  removeEmptyFolders(root, path.dirname(folder));
}
