import { callbackUrlFault, isOwnCallbackUrl } from '../_shared/callback-url.ts';
import { createEngine, dataApiRpc, type Engine, type Rpc } from '../_shared/engine-client.ts';
import type { JobOrigin, JobOutcomeItem } from '../_shared/engine-contract.ts';
import { classify, messageOf } from '../_shared/errors.ts';
import { externalStage, finishJob } from '../_shared/external-stages.ts';
import { createFolder, type Folder } from '../_shared/fold.ts';
import { createLog } from '../_shared/log.ts';
import { getModelResponse, isUnfinished, MODEL_SERVICE } from '../_shared/model.ts';
import { type Platform, readPlatform } from '../_shared/platform.ts';
import { readBody } from '../_shared/read-body.ts';
import { resumeJobs } from '../_shared/resume-jobs.ts';
import { createRinger, type Ringer } from '../_shared/ring.ts';
import { type Env, readSettings } from '../_shared/settings.ts';
import { type Callback, readCallback, readMetadata, readUnsignedCallback, signatureFault } from '../_shared/webhook.ts';

const MAX_BODY_BYTES = 12 * 1024 * 1024;
const SAVE_TIME_MS = 4_000;
const RETRIEVE_TIMEOUT_MS = 10_000;
const FINISH_TIMEOUT_MS = 5_000;

const log = createLog({ function: 'job-complete' });

interface FinishedJob {
  service: string;
  jobId: string;
  metadata: JobOrigin;
  job: unknown;
}

/**
 * Answers the callback of an external job: 200 with the engine's verdict (processed before and too late included),
 * 400 for a body it cannot use, 401 for a bad signature, 500 for a wrong setting, 503 when the sender should try again.
 */
export function answerCallback(
  env: Env,
  background: (work: Promise<unknown>) => void,
  rpcFor: (platform: Platform) => Rpc = dataApiRpc,
): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.method !== 'POST') return refuse(405, 'method_not_allowed', 'Send callbacks with POST.');
    let platform: Platform;
    let secrets: string[];
    try {
      platform = readPlatform(env);
      secrets = readSettings('webhook', env).WEBHOOK_SECRET;
    } catch (error) {
      log.error(messageOf(error));
      return refuse(500, 'misconfigured', messageOf(error));
    }
    const callback = await verifiedCallback(request, secrets);
    if (callback instanceof Response) return callback;
    const found = await findOutcome(callback, env);
    if (found instanceof Response) return found;
    const engine = createEngine({ rpc: rpcFor(platform), retryUntil: deadline(SAVE_TIME_MS), log });
    const ringer = createRinger({ platform, engine, log });
    const folder = createFolder({ engine, ringer, log });
    const answer = await record(found, { engine, ringer, folder });
    background(folder.settled().then(() => ringer.settled()));
    return answer;
  };
}

/** The callback that a request brings, or the answer to give when nobody vouches for it or it cannot be used. */
async function verifiedCallback(request: Request, secrets: string[]): Promise<Callback | Response> {
  const url = new URL(request.url);
  const isOwn = isOwnCallbackUrl(url);
  const urlFault = isOwn ? callbackUrlFault(url, secrets) : null;
  if (urlFault) return refuseStranger(`${urlFault}: use the URL that the job was submitted with.`);
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === null) return refuse(413, 'too_large', `The body has more than ${MAX_BODY_BYTES} bytes.`);
  const fault = isOwn ? null : signatureFault(body, request.headers, secrets);
  if (fault) return refuseStranger(`${fault}: sign with the secret that WEBHOOK_SECRET holds.`);
  const read = isOwn ? readUnsignedCallback(url, body) : readCallback(body);
  return 'fault' in read ? refuse(400, 'bad_callback', read.fault) : read.callback;
}

/** What became of the job that a callback is about, or the answer to give when that cannot be told. */
async function findOutcome(callback: Callback, env: Env): Promise<JobOutcomeItem | Response> {
  try {
    const found = await findJob(callback, env);
    if (found instanceof Response) {
      log.warn('a callback could not be used', { job_id: callback.jobId, status: found.status });
      return found;
    }
    const { service, jobId, metadata, job } = found;
    const stage = externalStage(metadata.pipeline, metadata.stage);
    const signal = AbortSignal.timeout(FINISH_TIMEOUT_MS);
    const outcome = await finishJob(stage, job, { env, entityId: metadata.entity_id, signal });
    return { ...metadata, service, job_id: jobId, ...outcome };
  } catch (error) {
    return refuseFor(error);
  }
}

async function record(
  item: JobOutcomeItem,
  through: { engine: Engine; ringer: Ringer; folder: Folder },
): Promise<Response> {
  try {
    const [verdict] = await resumeJobs([item], { ...through, until: Date.now() + SAVE_TIME_MS });
    const { pipeline, stage, submission, trace_id, job_id } = item;
    log.info('a callback was answered', { pipeline, stage, submission, trace_id, job_id, verdict: verdict?.verdict });
    if (verdict?.verdict === 'busy') return refuse(503, 'busy', 'The row is locked: send this again shortly.');
    if (!verdict || verdict.verdict === 'rejected') return refuse(400, 'rejected', verdict?.reason ?? 'no verdict');
    return Response.json({ verdict: verdict.verdict, reason: verdict.reason ?? null });
  } catch (error) {
    return refuseFor(error);
  }
}

/** The job a callback is about. A model's callback names only the response, which is fetched. */
async function findJob(callback: Callback, env: Env): Promise<FinishedJob | Response> {
  const { jobId } = callback;
  if (callback.from === 'job') return callback;
  const job = await getModelResponse(jobId, env, AbortSignal.timeout(RETRIEVE_TIMEOUT_MS));
  if (!job) return refuse(400, 'unknown_job', `The model at LLM_URL knows no response ${jobId.slice(0, 100)}.`);
  if (isUnfinished(job)) return refuse(503, 'unfinished', 'The response is not finished: send this again shortly.');
  const read = readMetadata(job.metadata);
  if ('fault' in read) return refuse(400, 'bad_callback', read.fault);
  return { service: MODEL_SERVICE, jobId, metadata: read.metadata, job };
}

/** Nothing was recorded: the sender should try again, unless that cannot help. */
function refuseFor(error: unknown): Response {
  const failure = classify(error);
  log.error('a callback was not recorded', { code: failure.code, error: failure.message });
  return refuse(failure.permanent ? 400 : 503, failure.code, failure.message);
}

function refuseStranger(reason: string): Response {
  log.warn('a callback was refused', { reason });
  return refuse(401, 'bad_signature', reason);
}

function refuse(status: number, code: string, message: string): Response {
  return Response.json({ error: { code, message } }, { status });
}

function deadline(ms: number): () => number {
  const at = Date.now() + ms;
  return () => at;
}
