import { keepChildren } from '../../packages/test/kept-children.ts';
import { keepCheckpoints } from '../../packages/test/kept-turns.ts';
import type { Usage } from '../../supabase/functions/_millrace/engine/engine-contract.ts';
import { createLog } from '../../supabase/functions/_millrace/log.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import type { FinishContext, HandlerContext } from '../../supabase/functions/_millrace/stage/stage.ts';

/** A handler's context for one test; `usages` keeps what was reported. */
export function makeContext(env: Env, changes: Partial<HandlerContext> = {}) {
  const usages: Usage[] = [];
  const context: HandlerContext = {
    pipeline: 'leads',
    stage: 'intel',
    attempt: 11,
    run: 1,
    entityId: '1',
    submission: 11,
    idempotencyKey: 'trace-3',
    submissionKey: 'trace-11',
    retryCount: 0,
    isAlone: false,
    traceId: 'trace',
    callbackUrl: 'http://api.test/functions/v1/millrace/callback',
    signal: new AbortController().signal,
    timeoutMs: 30_000,
    checkpoints: keepCheckpoints(),
    children: keepChildren(),
    env,
    log: createLog({}),
    reportUsage: (usage) => usages.push(usage),
    ...changes,
  };
  return { context, usages };
}

/** The arguments that finishJob is given beside stage and job. */
export function finishContext(env: Env = {}): Omit<FinishContext, 'reportUsage'> {
  return { env, entityId: '1', signal: new AbortController().signal };
}
