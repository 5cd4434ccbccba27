/** What the platform allows one process of a function. */
export interface FunctionLimits {
  /** Life of a process; it gets no new request after half of it and hears `beforeunload` at nine tenths. */
  wallClockMs: number;
  /** CPU time after which a process gets no new request and hears `beforeunload`. */
  cpuSoftMs: number;
  /** CPU time at which the platform kills a process. */
  cpuHardMs: number;
  memoryMb: number;
}

/** The limits of a paid plan on hosted Supabase. */
export const hostedLimits: FunctionLimits = { wallClockMs: 400_000, cpuSoftMs: 1000, cpuHardMs: 2000, memoryMb: 256 };

/** Why a process ends; the function hears it with `beforeunload`. */
export type EndReason = 'wall_clock' | 'cpu' | 'memory' | 'early_drop' | 'termination';

/** How long a process has lived, and what it has used since it listened. */
export interface Usage {
  ageMs: number;
  cpuMs: number;
  memoryBytes: number;
}

/** What the platform does to a process that has used so much. */
export interface LimitVerdict {
  /** It gets no new request. */
  retire: boolean;
  /** It hears that it will end. */
  warn?: EndReason;
  /** It ends at once. */
  kill?: EndReason;
}

/** Compares what a process has used with its limits. */
export function judgeUsage(limits: FunctionLimits, { ageMs, cpuMs, memoryBytes }: Usage): LimitVerdict {
  const memoryLimit = limits.memoryMb * 1024 * 1024;
  const retire = ageMs > limits.wallClockMs / 2 || cpuMs > limits.cpuSoftMs;
  if (ageMs > limits.wallClockMs) return { retire, kill: 'wall_clock' };
  if (cpuMs > limits.cpuHardMs) return { retire, kill: 'cpu' };
  if (memoryBytes > memoryLimit) return { retire, kill: 'memory' };
  if (ageMs > limits.wallClockMs * 0.9) return { retire, warn: 'wall_clock' };
  if (cpuMs > limits.cpuSoftMs) return { retire, warn: 'cpu' };
  if (memoryBytes > memoryLimit * 0.9) return { retire, warn: 'memory' };
  return { retire };
}
