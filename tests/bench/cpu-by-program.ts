// The CPU that the programs of a stack have used which this process has started, read from /proc, on Linux alone.
import fs from 'node:fs';

export type Program = 'Postgres' | 'PostgREST' | 'Deno' | 'stack';

interface ProcessTimes {
  pid: number;
  parent: number;
  name: string;
  ownMs: number;
  /** Of its children that have ended. */
  endedMs: number;
}

// The kernel counts in hundredths of a second.
const msPerTick = 10;

/**
 * CPU in milliseconds since their start, of each program's processes, those that have ended included. `stack` is this process,
 * with the gateway, pg_net and pg_cron.
 */
export function cpuByProgram(): Record<Program, number> {
  const all = fs
    .readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap(timesOf);
  const childrenOf = (pid: number) => all.filter(({ parent }) => parent === pid);
  const children = childrenOf(process.pid);
  const named = (name: string) => children.filter((child) => child.name === name);
  const servers = named('postgres');
  const self = all.find(({ pid }) => pid === process.pid) as ProcessTimes;
  return {
    Postgres: total([...servers, ...servers.flatMap(({ pid }) => childrenOf(pid))]),
    PostgREST: total(named('postgrest')),
    // Nothing but functions ends while a stack is up.
    Deno: total(named('deno')) + self.endedMs,
    stack: self.ownMs,
  };
}

function total(times: ProcessTimes[]): number {
  return times.reduce((sum, { ownMs, endedMs }) => sum + ownMs + endedMs, 0);
}

function timesOf(entry: string): ProcessTimes[] {
  try {
    const stat = fs.readFileSync(`/proc/${entry}/stat`, 'utf8');
    const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const ticks = (first: number) => ((fields[first] ?? 0) + (fields[first + 1] ?? 0)) * msPerTick;
    return [{ pid: Number(entry), parent: fields[1] ?? 0, name, ownMs: ticks(11), endedMs: ticks(13) }];
  } catch {
    // It has ended meanwhile.
    return [];
  }
}
