import { onUnload } from '../edge-runtime.ts';
import { createEngine, type Rpc } from '../engine/engine-client.ts';
import type { Platform } from '../engine/platform.ts';
import { createLog, flushLog } from '../log.ts';
import { type Env, readSettings, workerSettings } from '../settings.ts';
import { createCheckpoints } from '../stage/agent-checkpoints.ts';
import { createChildren } from '../stage/spawn-children.ts';
import type { Stage } from '../stage/stage.ts';
import { type Budget, createBudget } from './budget.ts';
import { ChildCollector } from './collect-children.ts';
import { Drain, type DrainEnd } from './drain.ts';
import { type Isolate, type Probe, thisIsolate } from './isolate.ts';
import { createProbe } from './probe.ts';
import { runHandler } from './run-handler.ts';
import { createWaker, type Waker } from './wake.ts';

/** The project of a stage: its settings, its keys and its API. */
export interface ProjectContext {
  env: Env;
  platform: Platform;
  rpc: Rpc;
}

/** The share of its machine that a worker may use. */
export interface Bounds {
  isolate: Isolate;
  budget: Budget;
  probe: Probe;
}

/** Runs one worker of a stage in this Edge Function until it ends, and waits for the answers to its wake-ups. */
export async function drainStage(stage: Stage, env: Env, platform: Platform, rpc: Rpc): Promise<DrainEnd> {
  const { drain, waker } = createDrain(
    stage,
    { env, platform, rpc },
    {
      isolate: thisIsolate,
      budget: createBudget(settingsOrDefaults(env).WORKER_SECONDS),
      probe: createProbe({ platform, functionName: stage.definition.function, isolate: thisIsolate }),
    },
  );
  const stopListening = onUnload((reason) => drain.unload(reason));
  try {
    const end = await drain.run();
    await waker.settled();
    return end;
  } finally {
    stopListening();
    flushLog();
  }
}

/** Makes one worker of a stage. */
export function createDrain(
  stage: Stage,
  { env, platform, rpc }: ProjectContext,
  bounds: Bounds,
): { drain: Drain; waker: Waker } {
  const log = createLog({ pipeline: stage.pipeline.name, stage: stage.name });
  const settings = settingsOrDefaults(env);
  const engine = createEngine({ rpc, retryUntil: () => bounds.budget.savesUntil, log });
  const waker = createWaker({ platform, engine, log });
  const callbackUrl = settings.JOB_CALLBACK_URL ?? `${platform.url}/functions/v1/millrace/callback`;
  const { definition } = stage;
  const drain = new Drain({
    pipeline: stage.pipeline.name,
    stage: stage.name,
    engine,
    waker,
    collector: new ChildCollector({ engine, waker, log }),
    log,
    ...bounds,
    batchSize: settings.QUEUE_BATCH_SIZE,
    assumed: {
      batch_size: definition.batchSize ?? Math.min(definition.concurrency ?? 1, 50),
      timeout_ms: definition.timeoutSeconds * 1000,
      result_limit_bytes: definition.resultLimitBytes,
    },
    run: (item, { worker, ...context }) => {
      const { signal } = context.controller;
      const checkpoints = createCheckpoints({ engine, worker, item, signal });
      const children = createChildren({ engine, waker, worker, item, signal });
      return runHandler({ stage, item, ...context, env, callbackUrl, checkpoints, children });
    },
  });
  return { drain, waker };
}

/** Returns the worker's own settings. Defaults replace faulty ones, and each attempt then fails with what is wrong. */
function settingsOrDefaults(env: Env) {
  try {
    return readSettings(workerSettings, env);
  } catch {
    return readSettings(workerSettings, {});
  }
}
