import { z } from 'zod';
import { serve, waitUntil } from './edge-runtime.ts';
import { registering } from './engine/connect.ts';
import { dataApiRpc, type Rpc } from './engine/engine-client.ts';
import { type WaitingJob, waitingJob } from './engine/engine-contract.ts';
import { type Platform, readPlatform, refuseStranger, refuseWakeUp } from './engine/platform.ts';
import { messageOf } from './errors.ts';
import { type CallbackOrigin, readOrigin } from './jobs/callback-url.ts';
import { finishCallback } from './jobs/finish-callback.ts';
import { JobRecorder } from './jobs/job-recorder.ts';
import { pollServices } from './jobs/poll-services.ts';
import { createLog } from './log.ts';
import { parseJson } from './parse-json.ts';
import { type Env, processEnv, settingsFaults, workerSettings } from './settings.ts';
import type { Stage } from './stage/stage.ts';
import { drainStage } from './worker/drain-stage.ts';
import { thisIsolate } from './worker/isolate.ts';
import { tellForms } from './worker/tell-form.ts';

const SAVE_TIME_MS = 4_000;
const POLL_TIME_MS = 10_000;

/** For which stage a wake-up or a poll is meant. */
const named = z.object({ pipeline: z.string(), stage: z.string() }).partial();
const poll = z.object({ jobs: z.array(waitingJob) });

interface Serving {
  stage: Stage;
  env: Env;
  platform: Platform;
  rpc: Rpc;
  background: (work: Promise<unknown>) => void;
}

/**
 * Serves a stage as an Edge Function: answers a wake-up at once, then works until the stage is empty; finishes the jobs that
 * the function millrace hands over. It is all that a stage's index.ts calls.
 *
 * @example
 * ```ts
 * const pack = defineStage({
 *   pipeline: orders,
 *   stage: 'pack',
 *   input: z.object({ entity: z.object({ id: z.string() }) }),
 *   output: z.object({ packed: z.string() }),
 *   handler: ({ entity }) => ({ packed: entity.id }),
 * });
 *
 * serveStage(pack);
 * ```
 */
export function serveStage(stage: Stage): void {
  const env = processEnv();
  serve(registering(telling(answerRequests(stage, env, waitUntil), stage, env), env, waitUntil));
}

/** Sends the stage's schemas to the database after the first wake-up that this isolate has accepted. */
function telling(answer: (request: Request) => Promise<Response>, stage: Stage, env: Env): typeof answer {
  let isTold = false;
  return async (request) => {
    const response = await answer(request);
    if (!isTold && response.status === 202) {
      isTold = true;
      const log = createLog({ pipeline: stage.pipeline.name, stage: stage.name });
      waitUntil(tellForms([stage], dataApiRpc(readPlatform(env)), log));
    }
    return response;
  };
}

/**
 * Returns the handler of all requests to a stage's function.
 *
 * - A wake-up: 202 when the function goes to work, 500 with the faults of its settings.
 * - A callback that the function millrace hands over, or its poll of jobs: the outcome of the jobs.
 * - A GET with `?health`: the state of the settings. A GET with `?host`: the isolate that answers. Neither starts
 *   anything.
 *
 * Answers 401 without a secret key; a wake-up may show the wake-up secret instead. Answers 409 to a request for another
 * stage, or from an engine of another contract.
 */
export function answerRequests(
  stage: Stage,
  env: Env,
  background: (work: Promise<unknown>) => void,
  rpcFor: (platform: Platform) => Rpc = dataApiRpc,
): (request: Request) => Promise<Response> {
  return async (request) => {
    thisIsolate.arrived();
    let platform: Platform;
    try {
      platform = readPlatform(env);
    } catch (error) {
      createLog({ pipeline: stage.pipeline.name, stage: stage.name }).error(messageOf(error));
      return misconfigured([messageOf(error)]);
    }
    const { searchParams } = new URL(request.url);
    const stranger = refuseStranger(request, platform);
    const mayWake = request.method === 'POST' && searchParams.size === 0;
    const refusal = mayWake ? refuseWakeUp(request, platform) : stranger;
    if (refusal) return refusal;
    if (searchParams.has('host')) return Response.json({ host: thisIsolate.host });
    if (searchParams.has('health')) {
      const faults = faultsOf(stage, env);
      return faults.length > 0 ? misconfigured(faults) : Response.json({ status: 'ok' });
    }
    if (request.method !== 'POST') {
      return Response.json(
        { error: { code: 'method_not_allowed', message: 'Wake this function with POST.' } },
        { status: 405 },
      );
    }
    const serving = { stage, env, platform, rpc: rpcFor(platform), background };
    const body = await request.text();
    if (searchParams.has('callback')) return answerCallback(serving, readOrigin(searchParams), body);
    return answerBody(serving, body, stranger);
  };
}

/** Answers a wake-up or a poll of jobs. `stranger`: the refusal of a poll without a secret key; null with one. */
async function answerBody(serving: Serving, text: string, stranger: Response | null): Promise<Response> {
  const asked = parseJson(text);
  const wrong = wrongStage(serving.stage, named.safeParse(asked).data ?? {});
  if (wrong) return wrong;
  if (typeof asked !== 'object' || asked === null || !('jobs' in asked)) return answerWake(serving);
  if (stranger) return stranger;
  const parsed = poll.safeParse(asked);
  if (parsed.success) return answerPoll(serving, parsed.data.jobs);
  const [issue] = parsed.error.issues;
  const message = `${issue?.path.join('.')}: ${issue?.message}. Deploy millrace and this function in the same version.`;
  return Response.json({ error: { code: 'bad_request', message } }, { status: 400 });
}

function answerWake({ stage, env, platform, rpc, background }: Serving): Response {
  if (stage.definition.host === 'worker') {
    const message = `Stage ${stage.name} runs on a worker: start one with npx millrace work.`;
    return Response.json({ error: { code: 'host_is_worker', message } }, { status: 409 });
  }
  const faults = faultsOf(stage, env);
  background(drainStage(stage, env, platform, rpc));
  if (faults.length === 0) return Response.json({ status: 'draining' }, { status: 202 });
  // The drain goes ahead all the same: each attempt then fails with this reason and is tried again later.
  createLog({ pipeline: stage.pipeline.name, stage: stage.name }).error('the settings are wrong', { faults });
  return misconfigured(faults);
}

async function answerCallback(serving: Serving, origin: CallbackOrigin, body: string): Promise<Response> {
  const wrong = wrongStage(serving.stage, origin);
  if (wrong) return wrong;
  const recorder = recorderOf(serving, SAVE_TIME_MS);
  const answer = await counted(1, () => finishCallback(serving.stage, origin, body, { env: serving.env, recorder }));
  serving.background(recorder.settled());
  return answer;
}

async function answerPoll(serving: Serving, jobs: WaitingJob[]): Promise<Response> {
  const recorder = recorderOf(serving, POLL_TIME_MS);
  try {
    const given = { env: serving.env, recorder };
    return Response.json(await counted(jobs.length, () => pollServices(serving.stage, jobs, given)));
  } catch (error) {
    return Response.json({ error: { code: 'not_recorded', message: messageOf(error) } }, { status: 503 });
  } finally {
    serving.background(recorder.settled());
  }
}

/** Does work for `rows` rows that this isolate has not claimed: they use its CPU as claimed rows do. */
async function counted<T>(rows: number, work: () => Promise<T>): Promise<T> {
  thisIsolate.begin(rows);
  try {
    return await work();
  } finally {
    for (let row = 0; row < rows; row++) thisIsolate.end();
  }
}

function recorderOf({ stage, platform, rpc }: Serving, ms: number): JobRecorder {
  const log = createLog({ pipeline: stage.pipeline.name, stage: stage.name });
  return new JobRecorder({ platform, rpc, log }, Date.now() + ms);
}

function faultsOf(stage: Stage, env: Env): string[] {
  return settingsFaults([workerSettings, ...stage.settings], env);
}

/**
 * Refuses a request for a stage that this function does not serve, with a remedy: no other answer would say why that
 * stage stands still. Returns null for the function's own stage.
 */
function wrongStage({ pipeline, name }: Stage, asked: z.output<typeof named>): Response | null {
  const wanted = { pipeline: asked.pipeline ?? pipeline.name, stage: asked.stage ?? name };
  if (wanted.pipeline === pipeline.name && wanted.stage === name) return null;
  const message =
    `This function was woken for stage ${wanted.stage} of pipeline ${wanted.pipeline}, but its code serves stage ${name} of ` +
    `pipeline ${pipeline.name}: correct the stage in its handler.ts, or the function in the definition of one of the two.`;
  createLog({ pipeline: pipeline.name, stage: name }).error(message);
  return Response.json({ error: { code: 'wrong_stage', message } }, { status: 409 });
}

function misconfigured(faults: string[]): Response {
  return Response.json({ error: { code: 'misconfigured', message: faults.join(' ') } }, { status: 500 });
}
