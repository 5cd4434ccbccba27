// The stage messaging with three faults: one lead ends the function that works on it, by an error that nobody catches, and two
// take it to a limit of the platform, bit by bit, so that it can still say so.
import process from 'node:process';
import { serveStage } from '../../../supabase/functions/_millrace/mod.ts';
import { messaging } from '../../../supabase/functions/leads-messaging/handler.ts';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
// A message that has been taken is never given back.
const taken: Uint8Array[] = [];

/** Never settles: the function is gone before. */
function end(): Promise<never> {
  return new Promise(() => {
    setTimeout(() => {
      throw new Error('nobody catches this');
    });
  });
}

/** Obeys no signal: the handler goes on until its process is ended. */
async function useCpu(): Promise<never> {
  for (;;) {
    const until = Date.now() + 20;
    while (Date.now() < until) Math.sqrt(until);
    await pause(5);
  }
}

async function useMemory(signal: AbortSignal): Promise<never> {
  while (!signal.aborted) {
    taken.push(new Uint8Array(4 * 1024 * 1024).fill(1));
    await pause(20);
  }
  throw signal.reason;
}

serveStage({
  ...messaging,
  async handler(input, context) {
    if (context.entityId === process.env.FATAL_LEAD) return end();
    if (context.entityId === process.env.CPU_LEAD) return useCpu();
    if (context.entityId === process.env.MEMORY_LEAD) return useMemory(context.signal);
    return messaging.handler(input, context);
  },
});
