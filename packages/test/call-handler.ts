// A call of a stage's handler, or of its finish function, without a database.
import type { Item, JobOutcome, Outcome, Turn } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import type { HandlerContext, Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { keepChildren } from './kept-children.ts';
import { keepLines } from './kept-lines.ts';
import { keepCheckpoints } from './kept-turns.ts';
import { importRuntime } from './project-runtime.ts';
import type * as Declared from './test.d.ts';

/** The place to which a service would report; nothing listens there. */
export const callbackUrl = 'http://api.test/functions/v1/millrace/callback';

/** Returns the attempt that a call works on, as a claim hands it out. */
function itemOf({ row = {}, needs = {}, attempt = 1, ...given }: Declared.CallOptions): Item {
  return {
    attempt,
    token: '00000000-0000-4000-8000-000000000001',
    run: attempt,
    trace_id: `trace-${attempt}`,
    version: 1,
    entity_id: given.key ?? String(row.id ?? 1),
    entity: row,
    needs,
    retry_count: given.retryCount ?? 0,
    submission: given.submission ?? attempt,
    stage_run: attempt,
    isolated: given.isAlone ?? false,
  };
}

export const callHandler: typeof Declared.callHandler = async (declared, options = {}) => {
  const stage = declared as Stage;
  const { runHandler } = await importRuntime('worker/run-handler.ts');
  const { log, lines } = keepLines();
  const children = keepChildren(undefined, options.beforeSpawn as Parameters<typeof keepChildren>[1]);
  const checkpoints = keepCheckpoints({ turns: (options.steps as unknown as Turn[] | undefined) ?? [] });
  let thrown: unknown;
  const watched: Stage = {
    ...stage,
    async handler(input, context) {
      try {
        return await stage.handler(input, { ...context, log } as HandlerContext);
      } catch (error) {
        thrown = error;
        throw error;
      }
    },
  };
  const { timeoutSeconds, resultLimitBytes } = stage.definition;
  const outcome = await runHandler({
    stage: watched,
    item: itemOf(options),
    limits: {
      batch_size: 1,
      timeout_ms: options.timeoutMs ?? timeoutSeconds * 1000,
      result_limit_bytes: resultLimitBytes,
    },
    env: options.env ?? {},
    callbackUrl,
    controller: new AbortController(),
    checkpoints,
    children,
  });
  return {
    ...calledOf(outcome),
    thrown,
    lines,
    children: children.chunks,
    steps: checkpoints.turns as unknown as Declared.Called['steps'],
  };
};

export const callFinish: typeof Declared.callFinish = async (declared, job, options = {}) => {
  const stage = declared as Stage;
  const { finishJob } = await importRuntime('jobs/finish-job.ts');
  const { entity_id: entityId, trace_id: traceId, submission } = itemOf(options);
  const signal =
    options.timeoutMs === undefined ? new AbortController().signal : AbortSignal.timeout(options.timeoutMs);
  const context = { env: options.env ?? {}, entityId, traceId, submission, signal };
  return { ...calledOf(await finishJob(stage, job, context)), thrown: undefined, lines: [], children: [], steps: [] };
};

/** Returns an outcome as a test reads it. */
function calledOf(
  outcome: Outcome | JobOutcome | null,
): Omit<Declared.Called, 'thrown' | 'lines' | 'children' | 'steps'> {
  // The runtime returns no outcome for a lost lease. In a test no other worker can have the attempt.
  if (!outcome) throw new Error('The handler says that its lease is lost, which no handler has in a test.');
  const usage = 'usage' in outcome ? outcome.usage : undefined;
  return {
    outcome: outcome.outcome,
    result: outcome.outcome === 'completed' ? outcome.result : undefined,
    error: outcome.outcome === 'failed' ? (outcome.error as Declared.Failure) : undefined,
    job: outcome.outcome === 'waiting' ? { service: outcome.service, id: outcome.job_id } : undefined,
    limit: outcome.outcome === 'released' ? outcome.limit : undefined,
    usage,
    costUsd: usage?.cost_usd ?? null,
  };
}
