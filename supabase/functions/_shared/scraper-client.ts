import type { PermanentError, RetriableError } from './errors.ts';
import { getJob, type Job, type JobMetadata, type JobService, jobFailure, readJob, submitJob } from './job-client.ts';
import { type Env, readSettings } from './settings.ts';

/** The name under which waiting attempts know this service. */
export const SCRAPER_SERVICE = 'scraper';

const NAME = 'scraper';

export interface ScrapeRequest {
  url: string;
  callback_url: string;
  metadata: JobMetadata;
  max_pages: number;
}

/** Submits a job and returns its id, as submitJob does. */
export async function submitScrape(
  request: ScrapeRequest,
  options: { idempotencyKey: string; env: Env; signal: AbortSignal },
): Promise<string> {
  return submitJob(scraper(options.env), request, options);
}

/** Asks after a job; null when the scraper does not know it. Throws a StageError. */
export async function getScrapeJob(id: string, env: Env, signal: AbortSignal): Promise<Job | null> {
  return getJob(scraper(env), id, signal);
}

/** Checks the form of a job. Throws a permanent error that names what is wrong. */
export function readScraperJob(value: unknown): Job {
  return readJob(NAME, value);
}

/** The error that a failed job reports, with its own code and its own word on whether to try again. */
export function scrapeFailure(job: Job): PermanentError | RetriableError {
  return jobFailure(NAME, job, 'scrape_failed');
}

function scraper(env: Env): JobService {
  const { SCRAPER_URL: url, SCRAPER_AUTH_TOKEN: token } = readSettings('scraper', env);
  return { name: NAME, prefix: 'SCRAPER', url, token };
}
