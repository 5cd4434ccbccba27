import { setTimeout as delay } from 'node:timers/promises';

type Found<T> = Exclude<T, false | null | undefined | 0 | ''>;

/** A look takes of the processor what the awaited needs too: after a while it is asked for only so often. */
const mostMs = 200;

/**
 * Asks again and again until `probe` gives something truthy, and returns it: every `everyMs` milliseconds at first, then less
 * often the longer it takes. Throws after `timeoutMs` milliseconds.
 */
export async function until<T>(probe: () => T | Promise<T>, timeoutMs = 10_000, everyMs = 20): Promise<Found<T>> {
  const began = Date.now();
  for (;;) {
    const found = await probe();
    if (found) return found as Found<T>;
    const waited = Date.now() - began;
    if (waited > timeoutMs) throw new Error(`Not within ${timeoutMs} ms: ${probe}`);
    await delay(Math.max(everyMs, Math.min(mostMs, waited / 5)));
  }
}
