import { execFileSync } from 'node:child_process';
import fs from 'node:fs';

/** Returns the direct children of a process, as process ids. */
export function childProcesses(pid: number): number[] {
  if (process.platform !== 'linux') {
    const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
    const rows = table
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/).map(Number));
    return rows.filter(([, parent]) => parent === pid).map(([child]) => child as number);
  }
  const children: number[] = [];
  for (const entry of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      // The name in parentheses may itself hold spaces and parentheses: the parent's id follows the last one.
      const stat = fs.readFileSync(`/proc/${entry}/stat`, 'utf8');
      const parent = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1];
      if (Number(parent) === pid) children.push(Number(entry));
    } catch {
      // The process ended meanwhile.
    }
  }
  return children;
}

/** Returns whether a process runs. On Linux, a dead process whose parent has not yet waited for it does not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  if (process.platform !== 'linux') return true;
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z';
  } catch {
    return false;
  }
}

/** Waits until none of the processes runs any more. Throws after `timeoutMs` milliseconds. */
export async function waitUntilGone(pids: number[], timeoutMs = 10_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (pids.some(isRunning)) {
    if (Date.now() > deadline) throw new Error(`Still running after ${timeoutMs} ms: ${pids.filter(isRunning)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
