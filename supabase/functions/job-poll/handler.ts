import { type Budget, createBudget } from '../_shared/budget.ts';
import { createEngine, dataApiRpc, type Engine, type Rpc } from '../_shared/engine-client.ts';
import type { JobOutcome, JobOutcomeItem, WaitingJob } from '../_shared/engine-contract.ts';
import { classify, messageOf, RetriableError } from '../_shared/errors.ts';
import { askService } from '../_shared/external-services.ts';
import { externalStage, finishJob } from '../_shared/external-stages.ts';
import { createFolder, type Folder } from '../_shared/fold.ts';
import { createLog } from '../_shared/log.ts';
import { type Platform, readPlatform, refuseStranger } from '../_shared/platform.ts';
import { resumeJobs } from '../_shared/resume-jobs.ts';
import { createRinger, type Ringer } from '../_shared/ring.ts';
import { type Env, readSettings } from '../_shared/settings.ts';

const JOBS_A_ROUND = 20;
/** For asking after a job and finishing it. */
const ASK_TIMEOUT_MS = 5_000;
const SAVE_TIME_MS = 2_000;

const log = createLog({ function: 'job-poll' });

/** Answers the poller's doorbell: 202 when it goes to work, 401 without the secret key, 500 for a wrong setting. */
export function answerPollDoorbell(
  env: Env,
  background: (work: Promise<void>) => void,
  rpcFor: (platform: Platform) => Rpc = dataApiRpc,
): (request: Request) => Promise<Response> {
  return async (request) => {
    try {
      const platform = readPlatform(env);
      const refusal = await refuseStranger(request, platform);
      if (refusal) return refusal;
      const budget = createBudget(readSettings('worker', env).WORKER_SECONDS);
      background(pollUntilDone(env, platform, rpcFor(platform), budget));
      return Response.json({ status: 'polling' }, { status: 202 });
    } catch (error) {
      log.error(messageOf(error));
      return Response.json({ error: { code: 'misconfigured', message: messageOf(error) } }, { status: 500 });
    }
  };
}

async function pollUntilDone(env: Env, platform: Platform, rpc: Rpc, budget: Budget): Promise<void> {
  const engine = createEngine({ rpc, retryUntil: () => budget.endsAt, log });
  const ringer = createRinger({ platform, engine, log });
  const folder = createFolder({ engine, ringer, log });
  try {
    await pollJobs({ env, engine, ringer, folder, budget });
  } catch (error) {
    log.error('polling ended early, the next poll goes on', { error: messageOf(error) });
  }
  await folder.settled();
  await ringer.settled();
}

/** Asks after every job whose poll is due and records those that have ended. Unfinished ones are left alone. */
export async function pollJobs(options: {
  env: Env;
  engine: Engine;
  ringer: Ringer;
  folder: Folder;
  budget: Pick<Budget, 'fits'>;
}): Promise<void> {
  const { env, engine, ringer, folder, budget } = options;
  const pollMs = readSettings('worker', env).COMPLETION_POLL_INTERVAL;
  let more = true;
  while (more && budget.fits(ASK_TIMEOUT_MS + SAVE_TIME_MS)) {
    const answer = await engine.poll(JOBS_A_ROUND, pollMs);
    more = answer.more;
    const asked = await Promise.all(answer.jobs.map((job) => askAfter(job, env)));
    const finished = asked.filter((item) => item !== null);
    if (finished.length === 0) continue;
    const verdicts = await resumeJobs(finished, { engine, ringer, folder, until: Date.now() + SAVE_TIME_MS });
    for (const [index, { verdict, reason }] of verdicts.entries()) {
      const { submission, job_id } = finished[index] as JobOutcomeItem;
      if (verdict === 'busy' || verdict === 'rejected') {
        log.error('a finished job was not recorded', { submission, job_id, verdict, reason });
      }
    }
  }
}

async function askAfter(waiting: WaitingJob, env: Env): Promise<JobOutcomeItem | null> {
  const { submission, trace_id, pipeline, stage: name, entity_id, service, job_id } = waiting;
  try {
    const stage = externalStage(pipeline, name);
    const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
    const asked = await askService(service, job_id, env, signal);
    if (asked.state === 'unfinished') return null;
    const outcome =
      asked.state === 'lost'
        ? lost(service, job_id)
        : await finishJob(stage, asked.job, { env, entityId: entity_id, signal });
    return { submission, trace_id, pipeline, stage: name, entity_id, service, job_id, ...outcome };
  } catch (error) {
    // This says nothing about the job: it is asked again at its next poll, until its deadline.
    log.warn('a job could not be asked after', { submission, service, job_id, error: classify(error).message });
    return null;
  }
}

function lost(service: string, jobId: string): JobOutcome {
  const error = new RetriableError('job_lost', `The ${service} does not know job ${jobId} any more.`);
  return { outcome: 'failed', error: classify(error) };
}
