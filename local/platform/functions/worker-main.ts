// Runs in Deno, one process per function: gives the function the globals of the Edge Runtime, then imports it.
// The host speaks to it by lines on standard input, it answers by lines on standard output that begin with a token.
import process from 'node:process';
import { createInterface } from 'node:readline';
import { countBackgroundWork, hideTheProcess } from './edge-globals.ts';

const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();
const first = await lines.next();
const { token, entry } = JSON.parse(first.value) as { token: string; entry: string };

function tell(event: Record<string, unknown>): void {
  process.stdout.write(`${token}${JSON.stringify(event)}\n`);
}

const realServe = Deno.serve.bind(Deno) as (options: Deno.ServeOptions, handler: Deno.ServeHandler) => unknown;

function serve(first: Deno.ServeHandler | Deno.ServeOptions, second?: Deno.ServeHandler): unknown {
  const handler = typeof first === 'function' ? first : (second ?? (first as { handler: Deno.ServeHandler }).handler);
  // The host decides where a function listens, as the platform does.
  const onListen = ({ port }: { port: number }) => {
    const { heapUsed, external } = Deno.memoryUsage();
    tell({ event: 'listening', port, baseBytes: heapUsed + external });
  };
  return realServe({ hostname: '127.0.0.1', port: 0, onListen }, handler);
}
Object.defineProperty(Deno, 'serve', { value: serve });

const tellWork = (busy: boolean) => tell({ event: busy ? 'busy' : 'idle' });
const hasBackgroundWork = countBackgroundWork(tellWork);
const exit = hideTheProcess();

function hear(told: { event: 'drain' } | { event: 'beforeunload'; reason: string }): void {
  if (told.event === 'drain') globalThis.dispatchEvent(new Event('drain'));
  // The host cannot know yet of work that began as its last answer went out.
  else if (told.reason === 'early_drop' && hasBackgroundWork()) tellWork(true);
  else unload(told.reason);
}

function unload(reason: string): void {
  globalThis.dispatchEvent(new CustomEvent('beforeunload', { detail: { reason }, cancelable: true }));
  if (reason === 'early_drop') tell({ event: 'dropped' });
}

async function listenToHost(): Promise<void> {
  for await (const line of { [Symbol.asyncIterator]: () => lines }) hear(JSON.parse(line));
  // The host has died.
  exit(1);
}
void listenToHost();

const module = (await import(entry)) as { default?: { fetch?: Deno.ServeHandler } };
const exported = module.default;
if (exported?.fetch) serve((request, info) => exported.fetch?.(request, info) as Response);
