/**
 * A signal for one piece of work: aborted when `outer` is, or `ms` milliseconds from now if given. Call `done` when the work
 * has ended, whatever came of it. The OpenAI SDK leaves a listener on every signal that it is given: on one that lasts for
 * many questions they would gather.
 */
export function ownSignal(outer: AbortSignal, ms?: number): { signal: AbortSignal; done(): void } {
  const controller = new AbortController();
  const abort = () => controller.abort(outer.reason);
  if (outer.aborted) abort();
  else outer.addEventListener('abort', abort);
  const timer = ms === undefined ? undefined : setTimeout(() => controller.abort(new Error('time is up')), ms);
  return {
    signal: controller.signal,
    done: () => {
      clearTimeout(timer);
      outer.removeEventListener('abort', abort);
    },
  };
}
