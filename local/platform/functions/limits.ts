/** The limits of the platform for one process of a function. */
export interface FunctionLimits {
  /** Life of a process; it gets no new request after half of it and receives `beforeunload` at nine tenths. */
  wallClockMs: number;
  /** CPU time after which a process gets no new request. The process receives no event. */
  cpuSoftMs: number;
  /** CPU time at which the platform ends a process. */
  cpuHardMs: number;
  memoryMb: number;
  /**
   * Whether a process hears `beforeunload` between two turns at nine tenths of its CPU time and of its memory. The Edge
   * Runtime does so unless it is started otherwise, and nobody outside can tell how the hosted one is.
   */
  announcesCpuAndMemory: boolean;
}

/** The limits of a paid plan on hosted Supabase. */
export const hostedLimits: FunctionLimits = {
  wallClockMs: 400_000,
  cpuSoftMs: 1000,
  cpuHardMs: 2000,
  memoryMb: 256,
  announcesCpuAndMemory: true,
};

/** A limit that ends a process. */
export type Limit = 'wall_clock' | 'cpu' | 'memory';

/** Why a function receives `beforeunload`. */
export type UnloadReason = Limit | 'early_drop';

/** How long a process has lived, and what it has used since it listened. */
export interface Usage {
  ageMs: number;
  cpuMs: number;
  memoryBytes: number;
}

/** The platform's measures against a process, by its usage. */
export interface LimitVerdict {
  /** The process gets no new request. */
  retire: boolean;
  /** The process ends as soon as it has no request and no background work. */
  dropWhenIdle: boolean;
  /** The limits that the process is told of, once each. */
  announce: Limit[];
  /** The limit that ends it at once. */
  kill?: Limit;
}

const announcedShare = 0.9;

/** Compares what a process has used with its limits. */
export function judgeUsage(limits: FunctionLimits, used: Usage): LimitVerdict {
  const shares: [Limit, number][] = [
    ['wall_clock', used.ageMs / limits.wallClockMs],
    ['cpu', used.cpuMs / limits.cpuHardMs],
    ['memory', used.memoryBytes / (limits.memoryMb * 1024 * 1024)],
  ];
  const reached = (share: number) => shares.filter(([, used]) => used >= share).map(([limit]) => limit);
  const retire = used.ageMs >= limits.wallClockMs / 2 || used.cpuMs >= limits.cpuSoftMs;
  const announced = (limit: Limit) => limit === 'wall_clock' || limits.announcesCpuAndMemory;
  const [kill] = reached(1);
  return {
    retire,
    dropWhenIdle: retire || reached(0.5).includes('memory'),
    announce: reached(announcedShare).filter(announced),
    ...(kill && { kill }),
  };
}

/** The milliseconds in which a process cannot use more CPU time than it is announced at or ended at: one thread counts. */
export function msToNextLimit(limits: FunctionLimits, { cpuMs }: Usage): number {
  const thresholds = [limits.cpuSoftMs, limits.cpuHardMs * announcedShare, limits.cpuHardMs];
  return Math.min(...thresholds.filter((threshold) => threshold > cpuMs).map((threshold) => threshold - cpuMs));
}
