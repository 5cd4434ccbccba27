import { z } from 'zod';
import { dataApiRpc, type Rpc } from '../engine/engine-client.ts';
import type { WaitingJob } from '../engine/engine-contract.ts';
import { type Platform, readPlatform, refuseWakeUp } from '../engine/platform.ts';
import { classify, messageOf } from '../errors.ts';
import { createLog } from '../log.ts';
import { refuse } from '../refuse.ts';
import { type Env, readSettings, workerSettings } from '../settings.ts';
import { type Budget, createBudget } from '../worker/budget.ts';
import { callStage } from './call-stage.ts';
import { JobRecorder } from './job-recorder.ts';

const JOBS_A_ROUND = 20;
/** The time in which a stage's function asks its services and records what has ended. */
const ASK_TIME_MS = 15_000;

const log = createLog({ function: 'millrace' });

/** The answer of a stage's function after it has polled jobs. */
const pollAnswer = z.object({ ended: z.number() });

/**
 * Answers a wake-up of the poller: 202 when it goes to work, 401 without the wake-up secret or a secret key, 500 for a wrong
 * setting.
 */
export function answerPollWakeUp(
  env: Env,
  background: (work: Promise<void>) => void,
  rpcFor: (platform: Platform) => Rpc = dataApiRpc,
): (request: Request) => Promise<Response> {
  return async (request) => {
    try {
      const platform = readPlatform(env);
      const refusal = refuseWakeUp(request, platform);
      if (refusal) return refusal;
      const settings = readSettings(workerSettings, env);
      const budget = createBudget(settings.WORKER_SECONDS);
      const recorder = new JobRecorder({ platform, rpc: rpcFor(platform), log }, budget.endsAt);
      background(pollUntilDone({ platform, recorder, budget, pollMs: settings.COMPLETION_POLL_INTERVAL }));
      return Response.json({ status: 'polling' }, { status: 202 });
    } catch (error) {
      log.error(messageOf(error));
      return refuse(500, 'misconfigured', messageOf(error));
    }
  };
}

interface Polling {
  platform: Platform;
  recorder: JobRecorder;
  budget: Pick<Budget, 'fits'>;
  pollMs: number | undefined;
}

async function pollUntilDone(polling: Polling): Promise<void> {
  try {
    await pollJobs(polling);
  } catch (error) {
    log.error('polling ended early, the next poll goes on', { error: messageOf(error) });
  }
}

/** Takes the jobs whose poll is due and has the function of each one's stage ask the service about them. */
export async function pollJobs({ platform, recorder, budget, pollMs }: Polling): Promise<void> {
  let more = true;
  while (more && budget.fits(ASK_TIME_MS)) {
    const answer = await recorder.engine.poll(JOBS_A_ROUND, pollMs);
    more = answer.more;
    await Promise.all(byStage(answer.jobs).map((jobs) => askStage(jobs, platform, recorder)));
  }
}

/** Returns the jobs of each stage, apart. */
function byStage(jobs: WaitingJob[]): WaitingJob[][] {
  const stages = new Map<string, WaitingJob[]>();
  for (const job of jobs) {
    const key = `${job.pipeline}/${job.stage}`;
    stages.set(key, [...(stages.get(key) ?? []), job]);
  }
  return [...stages.values()];
}

/** Hands jobs of one stage to its function. Where the function cannot be reached, notes a fault on each of them. */
async function askStage(jobs: WaitingJob[], platform: Platform, recorder: JobRecorder): Promise<void> {
  const [{ pipeline, stage, function: name }] = jobs as [WaitingJob];
  try {
    const body = JSON.stringify({ pipeline, stage, jobs });
    await callStage(platform, name, { body, timeoutMs: ASK_TIME_MS }, pollAnswer);
  } catch (error) {
    const { code, message } = classify(error);
    const traces = jobs.map((job) => job.trace_id);
    log.error('jobs could not be asked after', { pipeline, stage, jobs: jobs.length, traces, code, error: message });
    await recorder.noteFaults(
      jobs.map(({ submission, service, job_id }) => ({ submission, service, job_id, code, message })),
    );
  }
}
