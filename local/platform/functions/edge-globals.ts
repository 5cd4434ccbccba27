// The globals in which the Edge Runtime differs from Deno, as far as functions can meet them.
import process from 'node:process';

type ResolveHook = (promise: Promise<unknown>) => void;
interface DenoCore {
  setPromiseHooks(init: undefined, before: undefined, after: undefined, resolve: ResolveHook): void;
}

/**
 * Sets `EdgeRuntime.waitUntil`, and calls `changed` when background work begins and when all of it has ended. Returns
 * whether there is any. As on the platform, a promise ends when it settles: one that had settled before never does.
 */
export function countBackgroundWork(changed: (busy: boolean) => void): () => boolean {
  const awaited = new Set<Promise<unknown>>();
  let pending = 0;
  const { core } = (Deno as unknown as Record<symbol, { core: DenoCore }>)[Deno.internal] as { core: DenoCore };
  core.setPromiseHooks(undefined, undefined, undefined, (promise) => {
    if (!awaited.delete(promise)) return;
    pending -= 1;
    if (pending === 0) changed(false);
  });
  const waitUntil = <T>(work: T): T => {
    if (!(work instanceof Promise)) return work;
    awaited.add(work);
    pending += 1;
    if (pending === 1) changed(true);
    return work;
  };
  Object.assign(globalThis, { EdgeRuntime: { waitUntil } });
  return () => pending > 0;
}

/**
 * Takes away what a function on the platform cannot do or learn: it can end nothing, its CPU time is not told, and of its
 * memory only the isolate's. Returns the real `Deno.exit`.
 */
export function hideTheProcess(): (code: number) => void {
  const { exit, memoryUsage } = Deno;
  const isolateMemory = () => ({ ...memoryUsage(), rss: 0 });
  const nodeMemory = () => ({ ...isolateMemory(), arrayBuffers: 0 });
  const mock = () => {};
  const mocks = { exit: mock, kill: mock, addSignalListener: mock, removeSignalListener: mock };
  for (const [name, value] of Object.entries({ ...mocks, memoryUsage: isolateMemory })) {
    Object.defineProperty(Deno, name, { value });
  }
  Object.assign(process, {
    memoryUsage: Object.assign(nodeMemory, { rss: () => 0 }),
    cpuUsage() {
      console.warn('Warning: Not implemented: process.cpuUsage()');
      return { user: 0, system: 0 };
    },
  });
  return exit;
}
