import { PermanentError } from './errors.ts';
import type { Job } from './job-client.ts';
import { getModelResponse, isUnfinished, MODEL_SERVICE } from './model.ts';
import { getOcrJob, OCR_SERVICE } from './ocr-client.ts';
import { getScrapeJob, SCRAPER_SERVICE } from './scraper-client.ts';
import type { Env } from './settings.ts';
import { TRANSCRIPTION_SERVICE } from './transcription-client.ts';

/** What a service says of a job: `lost` when it does not know it. */
export type JobState = { state: 'unfinished' } | { state: 'lost' } | { state: 'finished'; job: unknown };

/** Asks a service after a job. Throws a StageError when it does not answer, which says nothing about the job. */
export async function askService(service: string, jobId: string, env: Env, signal: AbortSignal): Promise<JobState> {
  if (service === SCRAPER_SERVICE) return stateOf(await getScrapeJob(jobId, env, signal));
  if (service === OCR_SERVICE) return stateOf(await getOcrJob(jobId, env, signal));
  if (service === MODEL_SERVICE) {
    const response = await getModelResponse(jobId, env, signal);
    if (!response) return { state: 'lost' };
    return isUnfinished(response) ? { state: 'unfinished' } : { state: 'finished', job: response };
  }
  // It cannot be asked: its callback finishes the attempt, or the deadline does.
  if (service === TRANSCRIPTION_SERVICE) return { state: 'unfinished' };
  throw new PermanentError(
    'unknown_service',
    `No service is called ${service}: add it to _shared/external-services.ts.`,
  );
}

function stateOf(job: Job | null): JobState {
  if (!job) return { state: 'lost' };
  const isDone = job.status === 'completed' || job.status === 'failed';
  return isDone ? { state: 'finished', job } : { state: 'unfinished' };
}
