// What a stack that this process has started uses up: CPU by program, and calls that come to its gateway. Both are seen from
// outside, so that a stack of another checkout is measured alike.
import diagnostics from 'node:diagnostics_channel';
import fs from 'node:fs';
import type http from 'node:http';
import type { Stack } from '../../local/platform/stack.ts';

export type Program = 'Postgres' | 'PostgREST' | 'Deno';

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

/** CPU in milliseconds since their start, of each program's processes, those that have ended included. Linux only. */
function cpuByProgram(): Record<Program, number> {
  const all = fs
    .readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap(timesOf);
  const childrenOf = (pid: number) => all.filter(({ parent }) => parent === pid);
  const total = (times: ProcessTimes[]) => times.reduce((sum, { ownMs, endedMs }) => sum + ownMs + endedMs, 0);
  const own = childrenOf(process.pid);
  const named = (name: string) => own.filter((child) => child.name === name);
  const servers = named('postgres');
  // Nothing but functions ends while a stack is up.
  const endedFunctions = all.find(({ pid }) => pid === process.pid)?.endedMs ?? 0;
  return {
    Postgres: total([...servers, ...servers.flatMap(({ pid }) => childrenOf(pid))]),
    PostgREST: total(named('postgrest')),
    Deno: total(named('deno')) + endedFunctions,
  };
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

interface Requests {
  /** Requests at the Data API. */
  api: number;
  /** Requests at Edge Functions. */
  functions: number;
}

/** Counts from now on what comes to the HTTP servers of this process, the stack's gateway among them. */
function countRequests(): Requests {
  const counted: Requests = { api: 0, functions: 0 };
  diagnostics.subscribe('http.server.request.start', (message) => {
    const { url = '' } = (message as { request: http.IncomingMessage }).request;
    if (url.startsWith('/rest/v1/')) counted.api += 1;
    if (url.startsWith('/functions/v1/')) counted.functions += 1;
  });
  return counted;
}

/** What a stack has used from `watchStack()` to its `end()`. */
export interface Used {
  requests: Requests;
  cpuMs: Record<Program, number>;
  /** Processes of the watched functions. */
  isolates: number;
}

/** Watches a stack from now on, and the processes of the functions of these names. */
export function watchStack(stack: Pick<Stack, 'functions'>, functions: string[]): { end(): Used } {
  const before = cpuByProgram();
  const requests = countRequests();
  const pids = new Set<number>();
  const look = () => {
    for (const name of functions) for (const pid of stack.functions.pids(name)) pids.add(pid);
  };
  const timer = setInterval(look, 25);
  return {
    end() {
      clearInterval(timer);
      look();
      const after = cpuByProgram();
      const spent = (program: Program) => after[program] - before[program];
      const cpuMs = { Postgres: spent('Postgres'), PostgREST: spent('PostgREST'), Deno: spent('Deno') };
      return { requests: { ...requests }, cpuMs, isolates: pids.size };
    },
  };
}
