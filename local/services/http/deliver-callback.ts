import { setTimeout as pause } from 'node:timers/promises';
import { within } from '../../platform/deadline.ts';

/** A message to one receiver. */
export interface Delivery {
  url: string;
  body: string;
  /** Makes the headers of each try anew, since a signature may contain the time. */
  headers: () => Record<string, string>;
}

const tryTimeoutMs = 10_000;

/**
 * Posts a JSON message until the receiver answers 2xx. `delaysMs` are the pauses between tries. Resolves to whether the
 * receiver accepted it; never rejects.
 */
export async function deliverCallback(delivery: Delivery, delaysMs: number[], stop: AbortSignal): Promise<boolean> {
  for (let tries = 0; !stop.aborted; tries++) {
    if (await postOnce(delivery, stop)) return true;
    const delay = delaysMs[tries];
    if (delay === undefined) return false;
    await pause(delay, undefined, { signal: stop, ref: false }).catch(() => {});
  }
  return false;
}

async function postOnce({ url, body, headers: headersOfTry }: Delivery, stop: AbortSignal): Promise<boolean> {
  const headers = { 'content-type': 'application/json', ...headersOfTry() };
  try {
    return await within(tryTimeoutMs, stop, async (signal) => {
      const response = await fetch(url, { method: 'POST', redirect: 'manual', signal, headers, body });
      await response.body?.cancel();
      return response.ok;
    });
  } catch {
    return false;
  }
}
