/** What the platform allows one process of a function. */
export interface FunctionLimits {
  /** Life of a process; it gets no new request after half of it and hears `beforeunload` at nine tenths. */
  wallClockMs: number;
  /** CPU time after which a process gets no new request and hears `beforeunload`. */
  cpuSoftMs: number;
  /** CPU time at which a process is killed. */
  cpuHardMs: number;
  memoryMb: number;
}

/** The limits of a paid plan on hosted Supabase. */
export const hostedLimits: FunctionLimits = { wallClockMs: 400_000, cpuSoftMs: 1000, cpuHardMs: 2000, memoryMb: 256 };
