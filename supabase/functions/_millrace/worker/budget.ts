import { usedMemory } from './isolate.ts';

/** How long one invocation may work before it hands over to the next. */
export interface Budget {
  /** True while a piece of work that may take `durationMs` can still be begun. */
  fits(durationMs: number): boolean;
  /** Epoch milliseconds at which all work must have ended. */
  readonly endsAt: number;
  /** Epoch milliseconds until which finished work may still be saved. */
  readonly savesUntil: number;
}

// The platform ends an isolate at 256 MB: the rest is for rows in work.
const MEMORY_LIMIT_BYTES = 150 * 1024 * 1024;

// WORKER_SECONDS is less than half of the platform's wall clock, so that this share of it leaves a tenth unused.
const SAVING_SHARE = 1.8;

/** Returns a budget of `seconds` of wall clock from now, and of as much memory as the platform's limit leaves room for. */
export function createBudget(seconds: number, memory: () => number = usedMemory): Budget {
  const startedAt = Date.now();
  const endsAt = startedAt + seconds * 1000;
  return {
    endsAt,
    savesUntil: startedAt + SAVING_SHARE * seconds * 1000,
    fits: (durationMs) => Date.now() + durationMs <= endsAt && memory() < MEMORY_LIMIT_BYTES,
  };
}
