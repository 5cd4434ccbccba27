// Measures the age of one process, and its CPU time and memory from the moment it listens.
import type { Usage } from './limits.ts';
import { processUsage } from './usage.ts';

export interface UsageMeter {
  /** Begins to count. `baseBytes` is what the function holds by then; the rest of the memory is Deno's own. */
  begin(baseBytes: number): void;
  read(): Usage;
}

/**
 * Counts what the process uses. CPU time before `begin` is left out: most of it starts Deno and loads and compiles modules,
 * which is free on the platform, and their evaluation, which is not, cannot be told from that.
 */
export function createUsageMeter(pid: number): UsageMeter {
  const started = Date.now();
  let base: { cpuMs: number; memoryBytes: number } | undefined;
  return {
    begin(baseBytes) {
      const used = processUsage(pid);
      base = used && { cpuMs: used.cpuMs, memoryBytes: used.memoryBytes - baseBytes };
    },
    read() {
      const used = base && processUsage(pid);
      const cpuMs = used && base ? used.cpuMs - base.cpuMs : 0;
      const memoryBytes = used && base ? used.memoryBytes - base.memoryBytes : 0;
      return { ageMs: Date.now() - started, cpuMs, memoryBytes };
    },
  };
}
