import { z } from 'zod';
import { serve, waitUntil } from '../edge-runtime.ts';
import { registering } from '../engine/connect.ts';
import { dataApiRpc, EngineRefusal, type Rpc } from '../engine/engine-client.ts';
import { type Platform, readPlatform } from '../engine/platform.ts';
import { classify, excerpt, messageOf, UnavailableError } from '../errors.ts';
import { createLog } from '../log.ts';
import { refuse } from '../refuse.ts';
import { type Env, processEnv, readSettings, webhookSettings } from '../settings.ts';
import { callStage } from './call-stage.ts';
import { type CallbackOrigin, callbackUrlFault, isOwnCallbackUrl, originParams, readOrigin } from './callback-url.ts';
import { JobRecorder } from './job-recorder.ts';
import { readBody } from './read-body.ts';
import { originFault, readOwner, signatureFault } from './webhook.ts';

const MAX_BODY_BYTES = 12 * 1024 * 1024;
const FIND_TIME_MS = 4_000;
/** How long the stage's function may take to ask its service, finish the job and record it. */
const FINISH_TIME_MS = 25_000;

const log = createLog({ function: 'millrace' });

/** The answer of a stage's function to a callback. */
const callbackAnswer = z.union([
  z.object({ verdict: z.string(), reason: z.string().nullish() }),
  z.object({ error: z.object({ code: z.string(), message: z.string() }) }),
]);

/** Serves the function job-complete, whose address services may still hold. */
export function serveCallbacks(): void {
  const env = processEnv();
  serve(registering(answerCallback(env), env, waitUntil));
}

/** A verified callback, and whose job it is about. */
interface Callback {
  about: CallbackOrigin | { job_id: string };
  body: string;
}

/**
 * Answers the callback of an external job: verifies it, looks up whose job it is about, and hands it to that stage's own
 * function, whose answer it passes on. 200 with the engine's verdict (processed before and too late included), 400 for a
 * body that cannot be used, 401 for a bad signature, 500 for a wrong setting, 503 when the sender should try again.
 */
export function answerCallback(
  env: Env,
  rpcFor: (platform: Platform) => Rpc = dataApiRpc,
): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.method !== 'POST') return refuse(405, 'method_not_allowed', 'Send callbacks with POST.');
    let platform: Platform;
    let secrets: string[];
    try {
      platform = readPlatform(env);
      secrets = readSettings(webhookSettings, env).WEBHOOK_SECRET;
    } catch (error) {
      log.error(messageOf(error));
      return refuse(500, 'misconfigured', messageOf(error));
    }
    const callback = await verifiedCallback(request, secrets);
    if (callback instanceof Response) return callback;
    const recorder = new JobRecorder({ platform, rpc: rpcFor(platform), log }, Date.now() + FIND_TIME_MS);
    return handOver(callback, platform, recorder);
  };
}

/** Resolves to the callback that a request brings, or the answer to give when its signature is bad or its body unusable. */
async function verifiedCallback(request: Request, secrets: string[]): Promise<Callback | Response> {
  const url = new URL(request.url);
  const isOwn = isOwnCallbackUrl(url);
  const urlFault = isOwn ? callbackUrlFault(url, secrets) : null;
  if (urlFault) return refuseStranger(`${urlFault}: use the URL that the job was submitted with.`);
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === null) return refuse(413, 'too_large', `The body has more than ${MAX_BODY_BYTES} bytes.`);
  const fault = isOwn ? null : signatureFault(body, request.headers, secrets);
  if (fault) return refuseStranger(`${fault}: sign with the secret that WEBHOOK_SECRET holds.`);
  const about = isOwn ? readOrigin(url.searchParams) : readOwner(body);
  const unusable = 'fault' in about ? about.fault : isOwn && 'stage' in about ? originFault(about) : null;
  return unusable || 'fault' in about ? refuse(400, 'bad_callback', unusable ?? '') : { about, body };
}

/** Hands a callback to the function of the stage whose job it is about. */
async function handOver({ about, body }: Callback, platform: Platform, recorder: JobRecorder): Promise<Response> {
  try {
    const owner = await recorder.engine.jobOwner(about);
    if (!owner) return await refuseUnowned(about, recorder);
    const { function: name, ended, ...found } = owner;
    if (ended) return Response.json({ verdict: 'stale', reason: 'no attempt waits for this job any more' });
    const origin = 'stage' in about ? about : found;
    return await forward(name, origin, body, platform, recorder);
  } catch (error) {
    const { code, message } = classify(error);
    log.error('a callback was not handed over', { ...about, code, error: message });
    // The engine would refuse the same call again, so the sender gets 400 and does not repeat it.
    return refuse(error instanceof EngineRefusal ? 400 : 503, code, message);
  }
}

/** Answers 400 for a stage that does not exist, and 503 for a job without an attempt: one may wait for it a moment later. */
async function refuseUnowned(about: Callback['about'], recorder: JobRecorder): Promise<Response> {
  if ('job_id' in about) {
    const message = `Nobody waits for job ${excerpt(about.job_id, 100)}, or not yet: send this again shortly.`;
    return refuse(503, 'unknown_job', message);
  }
  const { pipeline, stage, service } = about;
  const message =
    `A callback came for stage ${stage} of pipeline ${pipeline}, and there is none: ` +
    'send data.metadata back as it came.';
  await recorder.noteFaults([{ submission: null, service, job_id: null, code: 'unknown_stage', message }]);
  return refuse(400, 'unknown_stage', message);
}

async function forward(
  name: string,
  origin: CallbackOrigin,
  body: string,
  platform: Platform,
  recorder: JobRecorder,
): Promise<Response> {
  const { pipeline, stage, submission, service, trace_id: trace, entity_id: entity } = origin;
  try {
    const query = `callback&${originParams(origin)}`;
    const answer = await callStage(platform, name, { query, body, timeoutMs: FINISH_TIME_MS }, callbackAnswer);
    const { status } = answer;
    log.info('a callback was answered', { pipeline, stage, trace, entity, submission, status });
    // Only these statuses speak of the callback; any other speaks of the way to the function.
    if (status === 200 || status === 400 || status === 503) return Response.json(answer.body, { status });
    throw new UnavailableError(
      'stage_unreachable',
      `Function ${name} answered ${status}: ${JSON.stringify(answer.body)}`,
    );
  } catch (error) {
    const { code, message } = classify(error);
    await recorder.noteFaults([{ submission, service, job_id: null, code, message }]);
    return refuse(503, code, message);
  }
}

function refuseStranger(reason: string): Response {
  log.warn('a callback was refused', { reason });
  return refuse(401, 'bad_signature', reason);
}
