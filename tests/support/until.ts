import { setTimeout as delay } from 'node:timers/promises';

type Found<T> = Exclude<T, false | null | undefined | 0 | ''>;

/** Asks again and again until `probe` gives something truthy, and returns it. Throws after `timeoutMs` milliseconds. */
export async function until<T>(probe: () => T | Promise<T>, timeoutMs = 10_000, everyMs = 20): Promise<Found<T>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const found = await probe();
    if (found) return found as Found<T>;
    if (Date.now() > deadline) throw new Error(`Not within ${timeoutMs} ms: ${probe}`);
    await delay(everyMs);
  }
}
