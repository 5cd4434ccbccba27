import { messageOf } from './errors.ts';
import { createLog, flushLog } from './log.ts';

interface PlatformGlobals {
  EdgeRuntime?: { waitUntil(work: Promise<unknown>): void };
  Deno?: { serve(handler: (request: Request) => Promise<Response>): unknown };
  addEventListener?(type: string, listener: (event: Event) => void): void;
}

const platform = globalThis as unknown as PlatformGlobals;
const unloadListeners = new Set<(reason: string) => void>();

platform.addEventListener?.('beforeunload', (event) => {
  const detail = (event as Event & { detail?: { reason?: string } }).detail;
  for (const listener of unloadListeners) listener(detail?.reason ?? 'unknown');
  flushLog();
});

/**
 * Starts answering requests. Does nothing outside Deno, so that handlers can be imported anywhere. A request whose Host header
 * makes no address, which Deno hands over all the same, is answered with 400.
 */
export function serve(handler: (request: Request) => Promise<Response>): void {
  platform.Deno?.serve(async (request) => (URL.canParse(request.url) ? handler(request) : refuseAddress()));
}

function refuseAddress(): Response {
  const message = 'The address of this request cannot be read: correct its path and its Host header.';
  return Response.json({ error: { code: 'invalid_address', message } }, { status: 400 });
}

/** Keeps the function alive until `work` has settled, although its answer has been sent. */
export function waitUntil(work: Promise<unknown>): void {
  const guarded = work.catch((error) => createLog({}).error('background work failed', { error: messageOf(error) }));
  platform.EdgeRuntime?.waitUntil(guarded);
}

/**
 * Calls `listener` when the platform retires this isolate. The platform says so only while a request is under way: at other times
 * an isolate finds out by itself.
 */
export function onRetire(listener: () => void): void {
  platform.addEventListener?.('drain', listener);
}

/** Calls `listener` when the platform is about to end this function. Returns how to stop listening. */
export function onUnload(listener: (reason: string) => void): () => void {
  unloadListeners.add(listener);
  return () => unloadListeners.delete(listener);
}
