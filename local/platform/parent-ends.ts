import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { isRunning } from './child-processes.ts';

const lookEveryMs = 500;

/**
 * Calls `end` when npm has ended, where npm started this process: by a shell, which hands no signal on, ends with an npm that is told to
 * stop, and outlives one that is killed.
 */
export function whenNpmEnds(end: () => void): void {
  if (!process.env.npm_command) return;
  const parent = process.ppid;
  const npm = npmAbove(parent);
  const hasEnded = () => process.ppid !== parent || (npm !== undefined && !isRunning(npm));
  setInterval(() => hasEnded() && end(), lookEveryMs).unref();
}

/** Returns the parent of the shell by which npm started this; undefined where the parent is no shell, and so npm itself. */
function npmAbove(parent: number): number | undefined {
  const [name = '', above] = nameAndParent(parent) ?? [];
  return /^-?(ba|da|z|k|fi|a)?sh$/.test(name) ? above : undefined;
}

/** Returns a process's program and parent; undefined where the system does not tell. */
function nameAndParent(pid: number): [name: string, parent: number] | undefined {
  try {
    if (process.platform !== 'linux') {
      const row = execFileSync('ps', ['-o', 'ppid=,comm=', '-p', String(pid)], { encoding: 'utf8' }).trim();
      const [, above, program = ''] = /^(\d+)\s+(.*)$/.exec(row) ?? [];
      return [program.split('/').at(-1) ?? '', Number(above)];
    }
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    const end = stat.lastIndexOf(')');
    return [stat.slice(stat.indexOf('(') + 1, end), Number(stat.slice(end + 2).split(' ')[1])];
  } catch {
    return undefined;
  }
}
