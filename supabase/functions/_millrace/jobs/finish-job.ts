import type { JobOutcome, Usage } from '../engine/engine-contract.ts';
import {
  classify,
  classifyNetworkError,
  MisconfiguredError,
  messageOf,
  PermanentError,
  UnavailableError,
} from '../errors.ts';
import type { FinishContext, Stage } from '../stage/stage.ts';
import { validateResult } from '../stage/validate-result.ts';

/**
 * Turns a finished job into the stage's checked output, or into its failure. Throws only where the job itself is good
 * and paid for, and can be finished later: a MisconfiguredError when a setting is missing or wrong, an UnavailableError
 * when the stage's finish function cannot reach what it needs, or has not ended when the signal aborts.
 */
export async function finishJob(
  stage: Stage,
  job: unknown,
  context: Omit<FinishContext, 'reportUsage'>,
): Promise<JobOutcome> {
  let usage: Usage | undefined;
  let outcome: JobOutcome;
  try {
    const { finish } = stage;
    if (!finish) throw new PermanentError('no_finish', `Stage ${stage.name} has no finish function: give it one.`);
    const reportUsage = (reported: Usage) => {
      usage = reported;
    };
    const output = await until(context.signal, () => finish(job, { ...context, reportUsage }));
    const result = validateResult(stage.output, output, stage.definition.resultLimitBytes);
    outcome = { outcome: 'completed', result };
  } catch (error) {
    if (error instanceof MisconfiguredError || error instanceof UnavailableError) throw error;
    const fault = classifyNetworkError(error);
    if (fault) throw new UnavailableError(fault.code, fault.message, undefined, fault.detail);
    outcome = { outcome: 'failed', error: classify(error) };
  }
  return usage ? { ...outcome, usage } : outcome;
}

/** Settles with the work, or with an UnavailableError at the signal, whether or not the work obeys it. */
function until<T>(signal: AbortSignal, work: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = () =>
      reject(new UnavailableError('timeout', `Finishing the job took too long: ${messageOf(signal.reason)}`));
    if (signal.aborted) return giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    Promise.resolve().then(work).then(resolve, reject);
  });
}
