// Runs in Deno, one process per function: gives the function the globals of the Edge Runtime, then imports it.
// The host speaks to it by lines on standard input, it answers by lines on standard output that begin with a token.
import process from 'node:process';
import { createInterface } from 'node:readline';

const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();
const first = await lines.next();
const { token, entry } = JSON.parse(first.value) as { token: string; entry: string };

function tell(event: Record<string, unknown>): void {
  process.stdout.write(`${token}${JSON.stringify(event)}\n`);
}

let pending = 0;
const realServe = Deno.serve.bind(Deno) as (options: Deno.ServeOptions, handler: Deno.ServeHandler) => unknown;

function serve(first: Deno.ServeHandler | Deno.ServeOptions, second?: Deno.ServeHandler): unknown {
  const handler = typeof first === 'function' ? first : (second ?? (first as { handler: Deno.ServeHandler }).handler);
  // The host decides where a function listens, as the platform does.
  const onListen = ({ port }: { port: number }) => tell({ event: 'listening', port });
  return realServe({ hostname: '127.0.0.1', port: 0, onListen }, handler);
}

Object.assign(globalThis, {
  EdgeRuntime: {
    waitUntil<T>(work: Promise<T>): Promise<T> {
      pending += 1;
      if (pending === 1) tell({ event: 'busy' });
      const settled = () => {
        pending -= 1;
        if (pending === 0) tell({ event: 'idle' });
      };
      Promise.resolve(work).then(settled, settled);
      return work;
    },
  },
});
Object.defineProperty(Deno, 'serve', { value: serve });

async function listenToHost(): Promise<void> {
  for await (const line of { [Symbol.asyncIterator]: () => lines }) {
    const { reason } = JSON.parse(line) as { reason: string };
    globalThis.dispatchEvent(new CustomEvent('beforeunload', { detail: { reason }, cancelable: true }));
    tell({ event: 'unloading' });
  }
  // The host has died.
  process.exit(1);
}
void listenToHost();

const module = (await import(entry)) as { default?: { fetch?: Deno.ServeHandler } };
const exported = module.default;
if (exported?.fetch) serve((request, info) => exported.fetch?.(request, info) as Response);
