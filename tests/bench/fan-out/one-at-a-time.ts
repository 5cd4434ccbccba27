// Collects children as the stage runtime does: after the commit that left tallies, beside the worker's next calls, and never
// more than one at a time, so that what is asked for meanwhile goes with the next.

export interface OneAtATime {
  ask(): void;
  /** Resolves when nothing is under way any more; throws what the work threw. */
  settled(): Promise<void>;
}

/** Makes a worker's turns of `work`. */
export function oneAtATime(work: () => Promise<void>): OneAtATime {
  let asked = false;
  let underway: Promise<void> | null = null;
  let failure: { error: unknown } | null = null;
  async function run(): Promise<void> {
    while (asked && !failure) {
      asked = false;
      await work().catch((error: unknown) => {
        failure = { error };
      });
    }
    underway = null;
  }
  return {
    ask() {
      asked = true;
      underway ??= run();
    },
    async settled() {
      await underway;
      if (failure) throw failure.error;
    },
  };
}
