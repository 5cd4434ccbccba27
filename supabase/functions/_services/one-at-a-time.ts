// Of this isolate, which several workers may share.
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs the work when what was given before has ended or was aborted. Several large files side by side would take more
 * memory than an isolate has, and none would be read when its CPU is used up. Throws at its turn what the signal was
 * aborted with.
 *
 * @example
 * ```ts
 * const pages = await oneAtATime(context.signal, async () => (await openPdf(bytes)).pageCount);
 * ```
 */
export function oneAtATime<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const before = last;
  const turn = before.then(() => {
    signal.throwIfAborted();
    return work();
  });
  // Work that ignores its signal must not block the next work, so an abort ends the turn.
  const aborted = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  last = before.then(() => Promise.race([turn.catch(() => {}), aborted]));
  return turn;
}
