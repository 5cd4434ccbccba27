import fs from 'node:fs';
import os from 'node:os';

/**
 * Where to keep files that nobody needs after a crash of the machine: in memory where there is room for it, since thousands of
 * files that come and go with databases cost a fraction there. TMPDIR, where it is set, has the last word.
 */
export function scratchFolder(): string {
  if (process.env.TMPDIR) return os.tmpdir();
  const memory = '/dev/shm';
  const needed = 2 * 1024 ** 3;
  try {
    fs.accessSync(memory, fs.constants.W_OK | fs.constants.X_OK);
    const { bavail, bsize } = fs.statfsSync(memory);
    if (bavail * bsize >= needed && os.freemem() >= needed) return memory;
  } catch {
    // There is no such folder, or it may not be written.
  }
  return os.tmpdir();
}
