// Keeps commands of one machine that write into the same project apart.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isRunning } from '../../local/platform/child-processes.ts';

const longestMs = 10_000;

/** Writes while no other command does in the folder `root`, and waits for one that does. Throws where that takes too long. */
export function writeAlone(root: string, write: () => void): void {
  const lock = lockOf(root);
  const until = Date.now() + longestMs;
  while (!take(lock)) {
    if (Date.now() > until) throw new Error(`Nothing was written: another command writes here, as ${lock} says.`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  }
  try {
    write();
  } finally {
    fs.rmSync(lock, { force: true });
  }
}

/** Returns the lock file, in the temporary folder: a command that is killed leaves nothing in the project. */
function lockOf(root: string): string {
  const name = createHash('sha256').update(fs.realpathSync(root)).digest('hex').slice(0, 16);
  return path.join(os.tmpdir(), `millrace-${os.userInfo().uid}-${name}.lock`);
}

/** Takes the lock, from a process that was killed too. */
function take(lock: string): boolean {
  try {
    fs.writeFileSync(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const holder = fs.existsSync(lock) ? Number(fs.readFileSync(lock, 'utf8')) : 0;
  if (holder > 0 && !isRunning(holder)) fs.rmSync(lock, { force: true });
  return false;
}
