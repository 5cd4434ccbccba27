// The resources that a stack of this process uses up: calls that come to its gateway, CPU by program, processes of functions. All
// of it is seen from outside, so that a stack of another checkout is measured alike.
import diagnostics from 'node:diagnostics_channel';
import type http from 'node:http';
import type { Stack } from '../../local/platform/stack.ts';
import { cpuByProgram, type Program } from './cpu-by-program.ts';
import type { Values } from './results.ts';

/** The resources that a stack has used from `watchStack()` to its `end()`. */
export interface Used {
  /** Calls of the Data API. */
  apiCalls: number;
  /** Requests to Edge Functions. */
  invocations: number;
  /** Processes of the watched functions. */
  isolates: number;
  cpuMs: Record<Program, number>;
}

/** Watches a stack from now on, and the processes of the functions of these names. */
export function watchStack(stack: Pick<Stack, 'functions'>, functions: string[]): { end(): Used } {
  const before = cpuByProgram();
  const pids = new Set<number>();
  let apiCalls = 0;
  let invocations = 0;
  const count = (message: unknown) => {
    const { url = '' } = (message as { request: http.IncomingMessage }).request;
    if (url.startsWith('/rest/v1/')) apiCalls += 1;
    if (url.startsWith('/functions/v1/')) invocations += 1;
  };
  const look = () => {
    for (const name of functions) for (const pid of stack.functions.pids(name)) pids.add(pid);
  };
  diagnostics.subscribe('http.server.request.start', count);
  const timer = setInterval(look, 25);
  return {
    end() {
      diagnostics.unsubscribe('http.server.request.start', count);
      clearInterval(timer);
      look();
      const cpuMs = cpuByProgram();
      for (const program of Object.keys(cpuMs) as Program[]) cpuMs[program] -= before[program];
      return { apiCalls, invocations, isolates: pids.size, cpuMs };
    },
  };
}

/** Calls of the Data API and CPU by program, for each of so many transitions. */
export function perTransition({ apiCalls, cpuMs }: Used, transitions: number): Values {
  return {
    'API calls a transition': apiCalls / transitions,
    'Postgres ms a transition': cpuMs.Postgres / transitions,
    'PostgREST ms a transition': cpuMs.PostgREST / transitions,
    'Deno ms a transition': cpuMs.Deno / transitions,
  };
}
