// Reads from /proc what a process has used. Without /proc the limits on CPU and memory are not enforced.
import { existsSync, readFileSync } from 'node:fs';

const ticksPerSecond = 100;
const enforceable = existsSync('/proc/self/stat');

/**
 * CPU time of the main thread in milliseconds, and private memory in bytes; undefined when the process or /proc is gone.
 * The platform counts the thread that runs a function's code: collecting garbage and compiling beside it are free.
 */
export function processUsage(pid: number): { cpuMs: number; memoryBytes: number } | undefined {
  if (!enforceable) return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    const anonymous = /^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return { cpuMs: (ticks * 1000) / ticksPerSecond, memoryBytes: Number(anonymous ?? 0) * 1024 };
  } catch {
    return undefined;
  }
}
