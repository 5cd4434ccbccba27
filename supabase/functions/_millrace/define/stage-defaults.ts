// Defaults of a stage that has a function, in seconds, bytes and rows. The compiler writes the same values.
export const timeoutSeconds = 30;
export const resultLimitBytes = 1_048_576;
/** Rows in work: enough for a stage that waits for seconds, and within the parallel calls that most providers allow an account. */
const concurrency = 50;
const batchSize = 10;
const maxWorkers = 2;

interface Slots {
  concurrency?: number | undefined;
  batchSize?: number | undefined;
  maxWorkers?: number | undefined;
}

/** Returns how many rows of a stage are in work at once: `concurrency`, or batch and workers where one of them is given. */
export function slotsOf(given: Slots): Slots {
  const byHand = given.batchSize !== undefined || given.maxWorkers !== undefined;
  if (byHand) return { batchSize: given.batchSize ?? batchSize, maxWorkers: given.maxWorkers ?? maxWorkers };
  return { concurrency: given.concurrency ?? concurrency };
}
