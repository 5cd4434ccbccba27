/** A signal with an end: `clear` takes its timer and its listener away once they are of no more use. */
export interface Deadline {
  signal: AbortSignal;
  clear(): void;
}

/**
 * A signal that aborts after `ms` with a TimeoutError, or with `outer` before that. On Node 20 a signal made by
 * AbortSignal.any of AbortSignal.timeout can be garbage collected before it fires, and then never does.
 */
export function deadline(ms: number, outer: AbortSignal): Deadline {
  const controller = new AbortController();
  const endWithOuter = () => controller.abort(outer.reason);
  const timer = setTimeout(() => controller.abort(new DOMException(`${ms} ms are over`, 'TimeoutError')), ms);
  if (outer.aborted) endWithOuter();
  else outer.addEventListener('abort', endWithOuter, { once: true });
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer);
      outer.removeEventListener('abort', endWithOuter);
    },
  };
}

/** Runs work that has to end within `ms` and before `outer` aborts. Rejects at that moment, even if the work goes on. */
export async function within<T>(ms: number, outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { signal, clear } = deadline(ms, outer);
  const over = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason));
  });
  try {
    return await Promise.race([work(signal), over]);
  } finally {
    clear();
  }
}
