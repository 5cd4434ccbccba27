// A service that takes its time, in the process that measures: it sees each start of a handler, whatever the database knows of it,
// and how many handlers wait at once.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';

export interface Calls {
  url: string;
  /** How many calls each row has made. */
  ofRow: Map<number, number>;
  /** The most calls that waited at the same time. */
  most(): number;
  /** Seconds of all waits together, as far as their callers have stayed. */
  waited(): number;
  reset(): void;
  stop(): Promise<void>;
}

/** The fate of a call: it counts for `row` and is answered by `answer` after so many milliseconds. */
export interface Call {
  row: number;
  ms: number;
  answer(response: http.ServerResponse): void;
}

/** From one to three seconds, in milliseconds: the same for a number in every round, and spread evenly over numbers in turn. */
export const waitOf = (number: number) => 1_000 + ((number * 1_237) % 2_000);

/** Starts the service that stages of `bench_wait` call by `POST /call?row=7&ms=1500`. */
export function startCalls(): Promise<Calls> {
  return startWaiting((request) => {
    const { searchParams } = new URL(request.url ?? '/', 'http://calls');
    const asked = (name: string) => Number(searchParams.get(name));
    return { row: asked('row'), ms: asked('ms'), answer: (response) => void response.end() };
  });
}

/** Starts a service whose calls are judged by `take`. */
export async function startWaiting(take: (request: http.IncomingMessage) => Call): Promise<Calls> {
  const ofRow = new Map<number, number>();
  let atOnce = 0;
  let most = 0;
  let waitedMs = 0;
  const server = http.createServer((request, response) => {
    const { row, ms, answer } = take(request);
    ofRow.set(row, (ofRow.get(row) ?? 0) + 1);
    atOnce += 1;
    most = Math.max(most, atOnce);
    const began = performance.now();
    const timer = setTimeout(() => answer(response), ms);
    // A caller that dies waits no longer.
    response.once('close', () => {
      clearTimeout(timer);
      atOnce -= 1;
      waitedMs += performance.now() - began;
    });
  });
  server.keepAliveTimeout = 65_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ofRow,
    most: () => most,
    waited: () => waitedMs / 1000,
    reset() {
      ofRow.clear();
      most = atOnce;
      waitedMs = 0;
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
