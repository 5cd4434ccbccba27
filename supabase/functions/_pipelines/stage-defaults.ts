// Defaults for the stages of several pipelines.

const patient = { kind: 'exponential' as const, baseSeconds: 2, factor: 2, capSeconds: 300, jitter: 0.2 };

/** A stage that reads and writes Storage and rows, and asks nobody else. */
export const ownWork = {
  kind: 'function' as const,
  batchSize: 1,
  maxWorkers: 4,
  leaseSeconds: 60,
  timeoutSeconds: 30,
  retry: { maxAttempts: 4, backoff: patient },
};

/** A job elsewhere, of a model or an OCR service, finishes the stage unless it was answered in the call. */
export const completion = { callback: true, pollSeconds: 2, deadlineSeconds: 600 };

/** It waits for a model, which many rows may do at once. The model may answer better when asked again, and at once. */
export const modelWork = {
  kind: ownWork.kind,
  concurrency: 50,
  leaseSeconds: ownWork.leaseSeconds,
  timeoutSeconds: ownWork.timeoutSeconds,
  retry: {
    ...ownWork.retry,
    byCode: { invalid_output: { maxAttempts: 3, backoff: { kind: 'list' as const, seconds: [1, 5] } } },
  },
  completion,
};

/** `work` with more attempts, the last some four minutes after the first: an outage that is over by then costs no row. */
export function throughOutages<Work extends { retry: { maxAttempts: number } }>(work: Work): Work {
  return { ...work, retry: { ...work.retry, maxAttempts: 8 } };
}
