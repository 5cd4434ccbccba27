// Defaults of a stage that an Edge Function runs, in seconds, bytes and rows. The compiler writes the same values.
export const timeoutSeconds = 30;
export const resultLimitBytes = 1_048_576;
/** Enough for a stage that waits for seconds, and little enough for what most providers let one account ask at once. */
const concurrency = 50;
const batchSize = 10;
const maxWorkers = 2;

interface Slots {
  concurrency?: number | undefined;
  batchSize?: number | undefined;
  maxWorkers?: number | undefined;
}

/** How many rows of a stage are in work at once: the number of its places, or batch and workers where one of them is given. */
export function slotsOf(given: Slots): Slots {
  const byHand = given.batchSize !== undefined || given.maxWorkers !== undefined;
  if (byHand) return { batchSize: given.batchSize ?? batchSize, maxWorkers: given.maxWorkers ?? maxWorkers };
  return { concurrency: given.concurrency ?? concurrency };
}
