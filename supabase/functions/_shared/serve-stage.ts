import { createCheckpoints } from './agent-checkpoints.ts';
import { createBudget } from './budget.ts';
import { Drain, type DrainEnd } from './drain.ts';
import { onUnload, serve, waitUntil } from './edge-runtime.ts';
import { createEngine, dataApiRpc, type Rpc } from './engine-client.ts';
import { messageOf } from './errors.ts';
import { createFolder } from './fold.ts';
import { createLog } from './log.ts';
import { type Platform, readPlatform, refuseStranger } from './platform.ts';
import { createRinger } from './ring.ts';
import { runHandler } from './run-handler.ts';
import { type Env, processEnv, readSettings, type Settings, settingsFaults } from './settings.ts';
import { createChildren } from './spawn-children.ts';
import type { Stage } from './stage.ts';

/** One id for all drains of this isolate. */
const host = crypto.randomUUID();

/** Serves a stage as an Edge Function: answers its doorbell at once, then works until the stage is empty. */
export function serveStage(stage: Stage): void {
  serve(answerDoorbell(stage, processEnv(), (work) => waitUntil(work)));
}

/**
 * What the function answers: 202 when it goes to work, 401 without the secret key, 409 when it is rung for a stage that is
 * not its own, 500 with the faults of its settings.
 * A GET with `?health` tells the state of the settings and starts nothing.
 */
export function answerDoorbell(
  stage: Stage,
  env: Env,
  background: (work: Promise<DrainEnd>) => void,
  rpcFor: (platform: Platform) => Rpc = dataApiRpc,
): (request: Request) => Promise<Response> {
  return async (request) => {
    let platform: Platform;
    try {
      platform = readPlatform(env);
    } catch (error) {
      console.error(messageOf(error));
      return misconfigured([messageOf(error)]);
    }
    const refusal = await refuseStranger(request, platform);
    if (refusal) return refusal;
    const faults = settingsFaults(['worker', ...stage.settings], env);
    if (new URL(request.url).searchParams.has('health')) {
      return faults.length > 0 ? misconfigured(faults) : Response.json({ status: 'ok' });
    }
    if (request.method !== 'POST') {
      return Response.json({ error: { code: 'method_not_allowed', message: 'Ring with POST.' } }, { status: 405 });
    }
    const other = await otherStageRung(request, stage);
    if (other) {
      console.error(other);
      return Response.json({ error: { code: 'wrong_stage', message: other } }, { status: 409 });
    }
    background(drainStage(stage, env, platform, rpcFor(platform)));
    // The drain goes ahead all the same: each attempt then fails with this reason and is tried again later.
    return faults.length > 0 ? misconfigured(faults) : Response.json({ status: 'draining' }, { status: 202 });
  };
}

/** What to correct when a ring names a stage that this function does not serve: nobody else would say why that one stands still. */
async function otherStageRung(request: Request, { pipeline, name }: Stage): Promise<string | undefined> {
  const body = await request.text();
  let rung: { pipeline?: unknown; stage?: unknown };
  try {
    rung = Object(JSON.parse(body || '{}'));
  } catch {
    return undefined;
  }
  const wanted = { pipeline: rung.pipeline ?? pipeline.name, stage: rung.stage ?? name };
  if (wanted.pipeline === pipeline.name && wanted.stage === name) return undefined;
  return (
    `This function was rung for stage ${wanted.stage} of pipeline ${wanted.pipeline}, but its code serves stage ${name} of ` +
    `pipeline ${pipeline.name}: correct the stage in its handler.ts, or the function in the definition of one of the two.`
  );
}

/** Runs one worker of a stage until it ends, and waits for the doorbells it rang. */
export async function drainStage(stage: Stage, env: Env, platform: Platform, rpc: Rpc): Promise<DrainEnd> {
  const log = createLog({ pipeline: stage.pipeline.name, stage: stage.name });
  const settings = workerSettings(env, log.error);
  const budget = createBudget(settings.WORKER_SECONDS);
  const engine = createEngine({ rpc, retryUntil: () => budget.savesUntil, log });
  const ringer = createRinger({ platform, engine, log });
  const callbackUrl = env.JOB_CALLBACK_URL || `${platform.url}/functions/v1/job-complete`;
  const { definition } = stage;
  const drain = new Drain({
    pipeline: stage.pipeline.name,
    stage: stage.name,
    engine,
    budget,
    ringer,
    folder: createFolder({ engine, ringer, log }),
    log,
    host,
    batchSize: settings.QUEUE_BATCH_SIZE,
    assumed: {
      batch_size: definition.batchSize,
      timeout_ms: definition.timeoutSeconds * 1000,
      result_limit_bytes: definition.resultLimitBytes,
    },
    run: (item, limits, controller, worker) => {
      const { signal } = controller;
      const checkpoints = createCheckpoints({ engine, worker, item, signal });
      const children = createChildren({ engine, ringer, worker, item, signal });
      return runHandler({ stage, item, limits, env, callbackUrl, controller, checkpoints, children });
    },
  });
  const stopListening = onUnload((reason) => drain.unload(reason));
  try {
    const end = await drain.run();
    await ringer.settled();
    return end;
  } finally {
    stopListening();
  }
}

/** The worker's own settings; faulty ones are reported and replaced by the defaults, so that attempts can say so. */
function workerSettings(env: Env, report: (message: string) => void): Settings['worker'] {
  try {
    return readSettings('worker', env);
  } catch (error) {
    report(messageOf(error));
    return readSettings('worker', {});
  }
}

function misconfigured(faults: string[]): Response {
  return Response.json({ error: { code: 'misconfigured', message: faults.join(' ') } }, { status: 500 });
}
