import type { JobFault, JobOutcome, JobOutcomeItem, JobReport, WaitingJob } from '../engine/engine-contract.ts';
import { classify, RetriableError } from '../errors.ts';
import type { Env } from '../settings.ts';
import type { JobState } from '../stage/service.ts';
import type { Stage } from '../stage/stage.ts';
import { serviceOf } from './finish-callback.ts';
import { finishJob } from './finish-job.ts';
import type { JobRecorder } from './job-recorder.ts';

/** The time for asking after a job and finishing it. */
const ASK_TIMEOUT_MS = 5_000;

/** The result of polling one job: its end, a report that it goes on, or an error. */
interface PollResult {
  ended?: JobOutcomeItem;
  report?: JobReport;
  fault?: JobFault;
}

/**
 * Asks the stage's services about jobs whose poll is due, finishes and records those that have ended, and tells the engine
 * which of the others wait in their service's queue. Where a service does not answer, the job's next poll asks again, until its
 * deadline: a service's silence says nothing about its job. Resolves to how many have ended.
 */
export async function pollServices(
  stage: Stage,
  jobs: WaitingJob[],
  { env, recorder }: { env: Env; recorder: JobRecorder },
): Promise<{ ended: number }> {
  const asked = await Promise.all(jobs.map((job) => askAfter(stage, job, env)));
  const given = <K extends keyof PollResult>(key: K) =>
    asked.flatMap((answer) => answer[key] ?? []) as NonNullable<PollResult[K]>[];
  await recorder.noteJobs(given('report'));
  await recorder.noteFaults(given('fault'));
  const items = given('ended');
  await recorder.noteFaults(await recordAll(items, recorder));
  return { ended: items.length };
}

/** Records jobs that have ended; returns the faults of those that could not be recorded. */
async function recordAll(items: JobOutcomeItem[], recorder: JobRecorder): Promise<JobFault[]> {
  if (items.length === 0) return [];
  const verdicts = await recorder.record(items);
  return verdicts.flatMap(({ verdict, reason }, index) => {
    if (verdict !== 'busy' && verdict !== 'rejected') return [];
    const { submission, service, job_id } = items[index] as JobOutcomeItem;
    return [{ submission, service, job_id, code: `job_${verdict}`, message: reason ?? verdict }];
  });
}

async function askAfter(stage: Stage, waiting: WaitingJob, env: Env): Promise<PollResult> {
  const { submission, service: name, job_id, trace_id: traceId } = waiting;
  try {
    const service = serviceOf(stage, name);
    // Nobody can ask this service: its callback finishes the attempt, or the deadline does.
    if (!service.poll) return {};
    const signal = AbortSignal.timeout(ASK_TIMEOUT_MS);
    return await conclude(stage, waiting, await service.poll(job_id, { env, signal, traceId, submission }), {
      env,
      signal,
    });
  } catch (error) {
    const { code, message, detail } = classify(error);
    return { fault: { submission, service: name, job_id, code, message: detail ?? message } };
  }
}

async function conclude(
  stage: Stage,
  { attempt, awaits_start, ...waiting }: WaitingJob,
  asked: JobState,
  { env, signal }: { env: Env; signal: AbortSignal },
): Promise<PollResult> {
  const { submission, trace_id, pipeline, stage: name, entity_id, service, job_id } = waiting;
  if (asked.state === 'queued' || asked.state === 'running') {
    return awaits_start ? { report: { attempt, service, job_id, state: asked.state } } : {};
  }
  const outcome =
    asked.state === 'lost'
      ? lost(service, job_id)
      : await finishJob(stage, asked.job, { env, entityId: entity_id, traceId: trace_id, submission, signal });
  return { ended: { submission, trace_id, pipeline, stage: name, entity_id, service, job_id, ...outcome } };
}

function lost(service: string, jobId: string): JobOutcome {
  const error = new RetriableError('job_lost', `The ${service} does not know job ${jobId} any more.`);
  return { outcome: 'failed', error: classify(error) };
}
