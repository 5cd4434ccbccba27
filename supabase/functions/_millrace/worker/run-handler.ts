import type { z } from 'zod';
import type { Item, Outcome, StageLimits, Usage } from '../engine/engine-contract.ts';
import { classify, LeaseLost, MisconfiguredError, PermanentError, RetriableError } from '../errors.ts';
import { createLog, type Log } from '../log.ts';
import { type Env, settingsFaults, workerSettings } from '../settings.ts';
import type { Checkpoints } from '../stage/agent-checkpoints.ts';
import type { Children } from '../stage/spawn-children.ts';
import { HandedBack, type Stage, Waiting } from '../stage/stage.ts';
import { describeFault, validateResult } from '../stage/validate-result.ts';
import { LastLines } from './last-lines.ts';

/** Why the runtime itself ended a handler: the outcome to report, or null when there is nothing to report any more. */
export class Stopped {
  constructor(readonly outcome: Outcome | null) {}
}

export interface HandlerRun {
  stage: Stage;
  item: Item;
  limits: StageLimits;
  env: Env;
  callbackUrl: string;
  checkpoints: Checkpoints;
  children: Children;
  /** Aborting it with a Stopped ends the handler with that outcome. */
  controller: AbortController;
  /**
   * Called with the milliseconds of CPU that the handler used at a stretch: until its first pause, and for its result.
   */
  seen?: ((ms: number) => void) | undefined;
  /** Called when another worker is to go on with the row. */
  handedOn?: (() => void) | undefined;
}

/**
 * Runs the handler on one claimed item. Returns the outcome to report; null where the lease is lost. Never throws.
 * At the timeout it does not wait for a handler that ignores its signal: a late answer is dropped.
 */
export async function runHandler(run: HandlerRun): Promise<Outcome | null> {
  const { controller, limits } = run;
  let usage: Usage | undefined;
  const lastLines = new LastLines(run.env);
  const log = logOf(run, lastLines);
  const seconds = limits.timeout_ms / 1000;
  const timeout = setTimeout(() => {
    const error = new RetriableError('timeout', `The handler took longer than the stage's timeout of ${seconds} s.`);
    controller.abort(new Stopped({ outcome: 'failed', error: classify(error) }));
  }, limits.timeout_ms);
  const stopped = new Promise<Outcome | null>((resolve) => {
    controller.signal.addEventListener('abort', () => resolve((controller.signal.reason as Stopped).outcome));
  });
  const answered = answer(run, log, (reported) => {
    usage = reported;
  });
  const outcome = await Promise.race([stopped, answered]);
  clearTimeout(timeout);
  const text = outcome && keepsLog(run.stage, outcome) ? lastLines.text() : undefined;
  if (outcome?.outcome === 'failed') {
    const { code, message, detail, permanent } = outcome.error;
    logOf(run).warn('an attempt failed', { code, error: detail ?? message, permanent });
  }
  if (!outcome || outcome.outcome === 'released' || !(usage || text)) return outcome;
  return { ...outcome, usage: { ...usage, ...(text && { log: text }) } };
}

/** Returns the log of one attempt. */
function logOf({ stage, item }: HandlerRun, lastLines?: LastLines): Log {
  const { run, trace_id: trace, entity_id: entity, attempt } = item;
  const base = { pipeline: stage.pipeline.name, stage: stage.name, run, trace, entity, attempt };
  return createLog(base, lastLines && ((...line) => lastLines.add(...line)));
}

/** Returns whether the attempt's last log lines go with its outcome. */
const keepsLog = ({ definition: { keepLog } }: Stage, { outcome }: Outcome) =>
  outcome === 'failed' || keepLog === 'every';

async function answer(run: HandlerRun, log: Log, reportUsage: (usage: Usage) => void): Promise<Outcome | null> {
  const { stage, item, limits, env, controller } = run;
  try {
    if (item.failure) throw new PermanentError(item.failure.code, item.failure.message);
    const faults = settingsFaults([workerSettings, ...stage.settings], env);
    if (faults.length > 0) throw new MisconfiguredError(faults.join(' '));
    const startedAt = performance.now();
    const given = { entity: item.entity, needs: item.needs };
    const input = stage.input.safeParse(given);
    if (!input.success) {
      const fault = describeFault(input.error, given, 'input');
      const absent = absentColumn(input.error, item.entity);
      if (absent) {
        throw new MisconfiguredError(
          `The input of stage ${stage.name} wants the column ${absent}, which no row has: take it out of input, or add it to the ` +
            `table and call select millrace.attach('${stage.pipeline.name}').`,
          fault,
        );
      }
      throw new PermanentError('invalid_input', `The stage cannot use what it was given: ${fault}. Correct it.`);
    }
    const working = stage.handler(input.data, {
      pipeline: stage.pipeline.name,
      stage: stage.name,
      attempt: item.attempt,
      run: item.run,
      entityId: item.entity_id,
      submission: item.submission,
      // Attempts count from 1 in every database, and a service may serve several.
      idempotencyKey: `${item.trace_id}-${item.stage_run}`,
      submissionKey: `${item.trace_id}-${item.submission}`,
      retryCount: item.retry_count,
      isAlone: item.isolated,
      traceId: item.trace_id,
      callbackUrl: run.callbackUrl,
      signal: controller.signal,
      timeoutMs: limits.timeout_ms,
      env,
      log,
      checkpoints: run.checkpoints,
      children: run.children,
      reportUsage,
    });
    run.seen?.(performance.now() - startedAt);
    const output = await working;
    if (output instanceof Waiting) return waitFor(output, stage);
    if (output instanceof HandedBack) {
      if (output.byAnother) run.handedOn?.();
      // The limit makes the engine isolate the row. A report of the limit for an isolated row would fail it.
      return { outcome: 'released', ...(output.alone && !item.isolated && { limit: 'memory' }) };
    }
    const endedAt = performance.now();
    const result = validateResult(stage.output, output, limits.result_limit_bytes);
    run.seen?.(performance.now() - endedAt);
    return { outcome: 'completed', result };
  } catch (error) {
    // The lease is lost and another worker may hold the attempt: there is nothing to report.
    if (error instanceof LeaseLost) return null;
    return { outcome: 'failed', error: classify(error) };
  }
}

/** Checks that the stage can finish the job: a map stage waits for children, any other for a service that it names. */
function waitFor({ service, jobId }: Waiting, stage: Stage): Outcome {
  const known = stage.services.map(({ name }) => name);
  if (stage.definition.kind !== 'map' && !known.includes(service)) {
    throw new PermanentError(
      'unknown_service',
      `The handler waits for service ${service}, which stage ${stage.name} does not name: add it to services, and a finish ` +
        'function, in its defineStage().',
    );
  }
  // Some services number their jobs, and some code passes the number on.
  return { outcome: 'waiting', service, job_id: /^(?:number|bigint)$/.test(typeof jobId) ? String(jobId) : jobId };
}

/** Finds a column that the input requires and the table lacks. Then the schema is wrong, and the row must not fail for good. */
function absentColumn(error: z.ZodError, entity: object): string | undefined {
  const columns = error.issues.map(({ path }) =>
    path[0] === 'entity' && path.length === 2 ? String(path[1]) : undefined,
  );
  return columns.find((column) => column !== undefined && !(column in entity));
}
