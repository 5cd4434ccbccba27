import { z } from 'zod';
import { errorFromStatus, MisconfiguredError, messageOf, PermanentError, RetriableError } from './errors.ts';
import { type Env, readSettings } from './settings.ts';

/** The name under which waiting attempts know this service. */
export const SCRAPER_SERVICE = 'scraper';

const jobSchema = z.object({
  job_id: z.string(),
  status: z.enum(['queued', 'running', 'completed', 'failed']),
  result: z.unknown().optional(),
  error: z
    .object({
      code: z.string(),
      message: z.string(),
      permanent: z.boolean().default(false),
      retry_after_ms: z.number().optional(),
    })
    .nullish(),
  metadata: z.unknown().optional(),
});

/** A job at the scraper, as it answers and as it reports it. */
export type ScraperJob = z.output<typeof jobSchema>;

export interface ScrapeRequest {
  url: string;
  callback_url: string;
  metadata: { pipeline: string; stage: string; submission: number; trace_id: string };
  max_pages: number;
}

/**
 * Submits a job and returns its id. The same idempotency key gets the same job. Throws a StageError, a permanent one
 * when the scraper has taken another request under that key.
 */
export async function submitScrape(
  request: ScrapeRequest,
  options: { idempotencyKey: string; env: Env; signal: AbortSignal },
): Promise<string> {
  const answer = await callScraper('/jobs', options.env, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': options.idempotencyKey },
    body: JSON.stringify(request),
    signal: options.signal,
  });
  if (answer.status === 404) throw new MisconfiguredError('SCRAPER_URL has no /jobs: correct it.');
  if (answer.status === 409) {
    throw new PermanentError(
      'idempotency_key_reused',
      `The scraper answered 409: Idempotency-Key ${options.idempotencyKey} stands for another request there, so what ` +
        'was sent has changed since. Set the stage to queued again for a new submission.',
    );
  }
  if (!answer.ok) throw await rejection(answer);
  const body = z.object({ job_id: z.string() }).safeParse(await readJson(answer));
  if (!body.success) throw new RetriableError('server_error', 'The scraper answered without a job_id.');
  return body.data.job_id;
}

/** Asks after a job; null when the scraper does not know it. Throws a StageError. */
export async function getScrapeJob(id: string, env: Env, signal: AbortSignal): Promise<ScraperJob | null> {
  const answer = await callScraper(`/jobs/${encodeURIComponent(id)}`, env, { signal });
  if (answer.status === 404) return null;
  if (!answer.ok) throw await rejection(answer);
  return readScraperJob(await readJson(answer));
}

/** Checks the form of a job. Throws a permanent error that names what is wrong. */
export function readScraperJob(value: unknown): ScraperJob {
  const job = jobSchema.safeParse(value);
  if (job.success) return job.data;
  const issue = job.error.issues[0];
  throw new PermanentError(
    'invalid_output',
    `The scraper's job is wrong at ${issue?.path.join('.')}: ${issue?.message}`,
  );
}

/** The error that a failed job reports, with its own code and its own word on whether to try again. */
export function scrapeFailure(job: ScraperJob): PermanentError | RetriableError {
  const {
    code,
    message,
    permanent,
    retry_after_ms: wait,
  } = job.error ?? {
    code: 'scrape_failed',
    message: 'The scraper gave no reason.',
    permanent: false,
  };
  return permanent ? new PermanentError(code, message) : new RetriableError(code, message, wait);
}

async function callScraper(path: string, env: Env, init: RequestInit): Promise<Response> {
  const { SCRAPER_URL: base, SCRAPER_AUTH_TOKEN: token } = readSettings('scraper', env);
  const headers = new Headers(init.headers);
  if (token) headers.set('authorization', `Bearer ${token}`);
  let answer: Response;
  try {
    answer = await fetch(`${base}${path}`, { ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    // An outage of the scraper says nothing about the site it was to read: always worth another try.
    throw new RetriableError(
      'scraper_unreachable',
      `The scraper at SCRAPER_URL cannot be reached: ${messageOf(error)}`,
    );
  }
  if (answer.status === 401 || answer.status === 403) {
    throw new MisconfiguredError(`The scraper refused SCRAPER_AUTH_TOKEN (${answer.status}): correct it.`);
  }
  return answer;
}

async function rejection(answer: Response): Promise<Error> {
  const body = z
    .object({ error: z.object({ code: z.string(), message: z.string() }) })
    .safeParse(await readJson(answer));
  const isOurs = answer.status === 400 || answer.status === 422;
  if (isOurs && body.success) return new PermanentError(body.data.error.code, body.data.error.message);
  return errorFromStatus(answer.status, answer.headers, 'The scraper');
}

async function readJson(answer: Response): Promise<unknown> {
  try {
    return await answer.json();
  } catch {
    return undefined;
  }
}
