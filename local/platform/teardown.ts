// Collects the steps that end what has been started, and runs them, the last first.
export interface Teardown {
  /** Has `step` run at the end, before all that was added earlier. */
  add(step: () => unknown): void;
  /** Runs the steps, once: who calls again waits for the same end. */
  run(): Promise<void>;
}

export function createTeardown(): Teardown {
  const steps: (() => unknown)[] = [];
  let running: Promise<void> | undefined;
  return {
    add: (step) => void steps.push(step),
    run() {
      running ??= (async () => {
        for (const step of steps.reverse()) await step();
      })();
      return running;
    },
  };
}
