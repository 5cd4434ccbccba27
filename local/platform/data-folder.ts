// The folder that a stack keeps its data in over restarts: made where it is missing, and taken by one stack at a time.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isRunning } from './child-processes.ts';
import { closedToOthers, postgresUser } from './postgres-user.ts';
import { scratchFolder } from './scratch-folder.ts';

const lockName = 'stack.pid';
/** Folders that this very process has taken: its id in a lock may also be left from an earlier process. */
const taken = new Set<string>();

export interface DataFolder {
  /** Absolute. */
  folder: string;
  /** Lets another stack take it. */
  release(): void;
}

/**
 * Takes `given` for the calling process, and makes it with its parents where there is none. Throws one sentence when it is no
 * folder, cannot be written, or is another stack's, and leaves none behind then.
 */
export function takeDataFolder(given: string): DataFolder {
  const folder = path.resolve(given);
  const lock = path.join(folder, lockName);
  const closed = postgresUser() && closedToOthers(folder);
  if (closed) {
    throw new Error(
      `The data folder ${folder} cannot be reached by Postgres, which root runs as the user "nobody": name another one, or let others ` +
        `enter ${closed} (chmod o+x).`,
    );
  }
  try {
    makeFolder(folder);
    if (taken.has(folder) || !createLock(lock)) throw inUse(folder, lock);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!code) throw error;
    throw new Error(`The data folder ${folder} ${reasons[code] ?? `cannot be used (${code})`}.`);
  }
  taken.add(folder);
  return {
    folder,
    release() {
      taken.delete(folder);
      fs.rmSync(lock, { force: true });
    },
  };
}

/** Returns where a stack's data lies for as long as it runs. Without fsync nobody minds where the files are. */
export const temporaryPlace = (fsync: boolean) => (fsync ? os.tmpdir() : scratchFolder());

/** Makes a folder that the stack removes when it ends. */
export function temporaryDataFolder(fsync: boolean): DataFolder {
  const folder = fs.mkdtempSync(path.join(temporaryPlace(fsync), 'millrace-'));
  // Postgres may run as another user, who must get through to its own folder in here.
  fs.chmodSync(folder, 0o711);
  return { folder, release: () => fs.rmSync(folder, { recursive: true, force: true }) };
}

const reasons: Record<string, string> = {
  EEXIST: 'is a file: name a folder, or a place where one can be made',
  ENOTDIR: 'lies below a file: name a folder, or a place where one can be made',
  ENOENT: 'cannot be made there: the system keeps that place for itself',
  EACCES: 'cannot be written: you have no right to',
  EPERM: 'cannot be written: you have no right to',
  EROFS: 'cannot be written: its file system is read-only',
};

/** One folder after the other: asked for all of them at once, Node never returns from some places, such as /proc. */
function makeFolder(folder: string): void {
  if (fs.statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  if (path.dirname(folder) !== folder) makeFolder(path.dirname(folder));
  fs.mkdirSync(folder);
}

/** Creates the lock; returns false where a living process has it. Replaces a lock that a killed process left behind. */
function createLock(lock: string): boolean {
  const holder = readHolder(lock);
  if (holder !== undefined && holder !== process.pid && isRunning(holder)) return false;
  if (holder !== undefined) fs.rmSync(lock);
  fs.writeFileSync(lock, `${process.pid}\n`, { flag: 'wx' });
  return true;
}

function readHolder(lock: string): number | undefined {
  return fs.existsSync(lock) ? Number.parseInt(fs.readFileSync(lock, 'utf8'), 10) || 0 : undefined;
}

function inUse(folder: string, lock: string): Error {
  return new Error(
    `The data folder ${folder} is in use by another stack, process ${readHolder(lock)}: stop that one or name another ` +
      `folder. If it is no stack, remove ${lock}.`,
  );
}
