// One worker of a stage over a test's database: the runtime's own loop, until nothing is left to take.
import type { Rpc } from '../../supabase/functions/_millrace/engine/engine-client.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import type { Stage } from '../../supabase/functions/_millrace/stage/stage.ts';
import { callbackUrl } from './call-handler.ts';
import { keepLines } from './kept-lines.ts';
import type { RuntimeLoader } from './project-runtime.ts';
import type { LogLine } from './test.d.ts';

/** Longer than any stage may take: a handler that hangs ends by its own timeout. */
const budgetMs = 3_600_000;

/** The parts that all workers of a test share. */
export interface Working {
  load: RuntimeLoader;
  rpc: Rpc;
  env: Env;
  lines: LogLine[];
}

/** Works a stage off; returns how many attempts were taken. */
export async function workStage(stage: Stage, { load, rpc, env, lines }: Working): Promise<number> {
  const [{ createEngine }, { Drain }, { Isolate }, { runHandler }, { ChildCollector }, { createChildren }] =
    await Promise.all([
      load('engine/engine-client.ts'),
      load('worker/drain.ts'),
      load('worker/isolate.ts'),
      load('worker/run-handler.ts'),
      load('worker/collect-children.ts'),
      load('stage/spawn-children.ts'),
    ]);
  const { createCheckpoints } = await load('stage/agent-checkpoints.ts');
  const about = { pipeline: stage.pipeline.name, stage: stage.name };
  const { log } = keepLines(about);
  const engine = createEngine({ rpc, retryUntil: () => 0, log });
  // Wake-ups are left out, since the test's own loop finds due work.
  const waker = { wake: () => {}, settled: async () => {} };
  const { definition } = stage;
  const endsAt = Date.now() + budgetMs;
  let taken = 0;
  const drain = new Drain({
    ...about,
    engine,
    budget: { endsAt, savesUntil: endsAt, fits: () => true },
    waker,
    collector: new ChildCollector({ engine, waker, log }),
    log,
    isolate: new Isolate(),
    probe: async () => true,
    assumed: {
      batch_size: definition.batchSize ?? 10,
      timeout_ms: definition.timeoutSeconds * 1000,
      result_limit_bytes: definition.resultLimitBytes,
    },
    run: (item, { worker, ...context }) => {
      taken += 1;
      const { signal } = context.controller;
      const checkpoints = createCheckpoints({ engine, worker, item, signal });
      const children = createChildren({ engine, waker, worker, item, signal });
      const { log: ownLog } = keepLines({ ...about, entity: item.entity_id, attempt: item.attempt }, lines);
      const watched: Stage = {
        ...stage,
        handler: (input, given) => stage.handler(input, { ...given, log: ownLog }),
      };
      return runHandler({ stage: watched, item, ...context, env, callbackUrl, checkpoints, children });
    },
  });
  const end = await drain.run();
  if (end === 'failed' || end === 'refused') {
    throw new Error(`The worker of stage ${stage.name} of ${stage.pipeline.name} ended early (${end}).`);
  }
  return taken;
}
