import { z } from 'zod';
import { keepChildren } from '../../../packages/test/kept-children.ts';
import { keepCheckpoints } from '../../../packages/test/kept-turns.ts';
import { definePipeline } from '../../../supabase/functions/_millrace/define/define-pipeline.ts';
import { createEngine } from '../../../supabase/functions/_millrace/engine/engine-client.ts';
import type { WakeTarget } from '../../../supabase/functions/_millrace/engine/engine-contract.ts';
import type { Log } from '../../../supabase/functions/_millrace/log.ts';
import { defineStage, type HandlerContext } from '../../../supabase/functions/_millrace/stage/stage.ts';
import type { Budget } from '../../../supabase/functions/_millrace/worker/budget.ts';
import { ChildCollector } from '../../../supabase/functions/_millrace/worker/collect-children.ts';
import { Drain } from '../../../supabase/functions/_millrace/worker/drain.ts';
import { Isolate, type Probe } from '../../../supabase/functions/_millrace/worker/isolate.ts';
import { runHandler } from '../../../supabase/functions/_millrace/worker/run-handler.ts';
import type { FakeEngine } from './fake-engine.ts';

export const testPipeline = definePipeline({
  name: 'test',
  entity: { table: 'public.things', key: 'id', projection: 'none' },
  stages: {
    work: {
      kind: 'function',
      function: 'test-work',
      batchSize: 3,
      maxWorkers: 1,
      leaseSeconds: 60,
      timeoutSeconds: 2,
      retry: { maxAttempts: 3, backoff: { kind: 'list', seconds: [1] } },
    },
  },
});

export type TestHandler = (entity: { id: number }, context: HandlerContext) => unknown;

/** A stage of one handler, which gets the entity. */
export function makeStage(handler: TestHandler) {
  return defineStage({
    pipeline: testPipeline,
    stage: 'work',
    input: z.object({ entity: z.object({ id: z.number() }) }),
    output: z.object({ done: z.number() }),
    handler: ({ entity }, context) => handler(entity, context) as { done: number },
  });
}

/** A log that keeps its lines. */
export function keepLog(): Log & { lines: string[] } {
  const lines: string[] = [];
  const keep = (message: string, fields?: object) => lines.push(`${message} ${JSON.stringify(fields ?? {})}`);
  return { lines, info: keep, warn: keep, error: keep };
}

/** A budget of `ms` of which the last claim must leave 100, with `savingMs` more for what is finished. */
export function budgetOf(ms: number, savingMs = 0, fits?: () => boolean): Budget {
  const endsAt = Date.now() + ms;
  return { endsAt, savesUntil: endsAt + savingMs, fits: fits ?? (() => Date.now() + 100 <= endsAt) };
}

/** A drain over a fake engine with all else real; `woken` are the stages that it woke. */
export function makeDrain(
  fake: FakeEngine,
  handler: TestHandler,
  changes: { budget?: Budget; batchSize?: number; isolate?: Isolate; probe?: Probe } = {},
) {
  const log = keepLog();
  const woken: WakeTarget[] = [];
  const budget = changes.budget ?? budgetOf(10_000);
  const engine = createEngine({ rpc: fake.rpc, retryUntil: () => budget.savesUntil + 300, log });
  const waker = { wake: (stages: WakeTarget[]) => void woken.push(...stages), settled: async () => {} };
  const stage = makeStage(handler);
  const drain = new Drain({
    pipeline: 'test',
    stage: 'work',
    engine,
    budget,
    waker,
    collector: new ChildCollector({ engine, waker, log }),
    log,
    isolate: changes.isolate ?? new Isolate(),
    probe: changes.probe ?? (async () => true),
    batchSize: changes.batchSize,
    assumed: { batch_size: 3, timeout_ms: 2_000, result_limit_bytes: 10_000 },
    run: (item, context) =>
      runHandler({
        stage,
        item,
        ...context,
        env: {},
        callbackUrl: 'http://callback.test',
        checkpoints: keepCheckpoints(),
        children: keepChildren(),
      }),
  });
  return { drain, woken, log };
}

/** A promise with its switch, to hold a handler until the test lets it go. */
export function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}
