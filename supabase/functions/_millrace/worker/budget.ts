import process from 'node:process';
import type { PlatformLimit } from '../engine/engine-contract.ts';

/** What one invocation may use up before it hands over to the next. */
export interface Budget {
  /** True while a piece of work that may take `durationMs` can still be begun. */
  fits(durationMs: number): boolean;
  /** Epoch milliseconds at which all work must have ended. */
  readonly endsAt: number;
  /** Epoch milliseconds until which finished work may still be saved. */
  readonly savesUntil: number;
}

export interface Used {
  cpuMs: number;
  memoryBytes: number;
}

// The platform retires a worker at 1 s of CPU and ends it at 2 s or at 256 MB.
const CPU_LIMIT_MS = 800;
const MEMORY_LIMIT_BYTES = 150 * 1024 * 1024;

// WORKER_SECONDS is less than half of the platform's wall clock, so that this share of it leaves a tenth unused.
const SAVING_SHARE = 1.8;

/** A budget of `seconds` of wall clock from now, and of as much CPU and memory as the platform's limits leave room for. */
export function createBudget(seconds: number, measure: () => Used = measureProcess): Budget {
  const startedAt = Date.now();
  const endsAt = startedAt + seconds * 1000;
  const cpuAtStart = measure().cpuMs;
  return {
    endsAt,
    savesUntil: startedAt + SAVING_SHARE * seconds * 1000,
    fits(durationMs) {
      if (Date.now() + durationMs > endsAt) return false;
      const used = measure();
      return used.cpuMs - cpuAtStart < CPU_LIMIT_MS && used.memoryBytes < MEMORY_LIMIT_BYTES;
    },
  };
}

/**
 * Whether the work since `before` led to the limit: it used at least half of what one worker's budget allows. True where the
 * runtime does not tell.
 */
export function usedUp(limit: PlatformLimit, before: Used, now: Used = measureProcess()): boolean {
  if (now.cpuMs === 0) return true;
  return limit === 'cpu'
    ? now.cpuMs - before.cpuMs >= CPU_LIMIT_MS / 2
    : now.memoryBytes - before.memoryBytes >= MEMORY_LIMIT_BYTES / 2;
}

/** CPU and heap used by this process so far; zeros where the runtime does not tell. */
export function measureProcess(): Used {
  try {
    const cpu = process.cpuUsage();
    const memory = process.memoryUsage();
    return { cpuMs: (cpu.user + cpu.system) / 1000, memoryBytes: memory.heapUsed + memory.external };
  } catch {
    return { cpuMs: 0, memoryBytes: 0 };
  }
}
