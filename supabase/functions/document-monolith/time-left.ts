import { type HandlerContext, RetriableError } from '../_millrace/mod.ts';

/** Time kept back for saving the result, in milliseconds. */
const reserveMs = 3_000;

/**
 * Watches the time of one call. The function returned throws a RetriableError `timeout` that says how far the call has
 * come, in the words of `progress`, when too little is left to begin anything, and the signal's reason once it has aborted.
 */
export function timeWatch({ signal, timeoutMs }: HandlerContext): (progress: string) => void {
  const end = performance.now() + timeoutMs - reserveMs;
  return (progress) => {
    signal.throwIfAborted();
    if (performance.now() < end) return;
    throw new RetriableError(
      'timeout',
      `${progress} when the ${timeoutMs / 1000} s of one call were used up. Where this stays so the document is too ` +
        'large for one call: let it go the new way, which works in steps, by the flag in public.document_way.',
    );
  };
}
