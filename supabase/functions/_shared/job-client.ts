import { z } from 'zod';
import type { JobOrigin } from './engine-contract.ts';
import { errorFromStatus, MisconfiguredError, messageOf, PermanentError, RetriableError } from './errors.ts';
import type { HandlerContext } from './stage.ts';

/** Where a service of jobs is and what it is called, in messages and among the settings. */
export interface JobService {
  /** As in "The scraper answered 500." */
  name: string;
  /** The settings' names begin with it, as in SCRAPER_URL. */
  prefix: string;
  url: string;
  token: string | undefined;
}

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

/** A job as a service answers and reports it. */
export type Job = z.output<typeof jobSchema>;

/** What a job carries to say which attempt it belongs to. */
export interface JobMetadata extends JobOrigin {
  /** The service's name among waiting attempts; the scraper's when it is missing. */
  service?: string;
}

/** Which attempt a job is submitted for. */
export function jobOrigin(context: HandlerContext): JobOrigin {
  const { pipeline, stage, submission, traceId, entityId } = context;
  return { pipeline, stage, submission, trace_id: traceId, entity_id: entityId };
}

/**
 * Submits a job and returns its id. The same idempotency key gets the same job. Throws a StageError, a permanent one
 * when the service has taken another request under that key.
 */
export async function submitJob(
  service: JobService,
  request: object,
  options: { idempotencyKey: string; signal: AbortSignal },
): Promise<string> {
  const { name, prefix } = service;
  const answer = await call(service, '/jobs', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': options.idempotencyKey },
    body: JSON.stringify(request),
    signal: options.signal,
  });
  if (answer.status === 404) throw new MisconfiguredError(`${prefix}_URL has no /jobs: correct it.`);
  if (answer.status === 409) {
    throw new PermanentError(
      'idempotency_key_reused',
      `The ${name} answered 409: Idempotency-Key ${options.idempotencyKey} stands for another request there, so what ` +
        'was sent has changed since. Set the stage to queued again for a new submission.',
    );
  }
  if (!answer.ok) throw await rejection(name, answer);
  const body = z.object({ job_id: z.string() }).safeParse(await readJson(answer));
  if (!body.success) throw new RetriableError('server_error', `The ${name} answered without a job_id.`);
  return body.data.job_id;
}

/** Asks after a job; null when the service does not know it. Throws a StageError. */
export async function getJob(service: JobService, id: string, signal: AbortSignal): Promise<Job | null> {
  const answer = await call(service, `/jobs/${encodeURIComponent(id)}`, { signal });
  if (answer.status === 404) return null;
  if (!answer.ok) throw await rejection(service.name, answer);
  return readJob(service.name, await readJson(answer));
}

/** Checks the form of a job. Throws a permanent error that names what is wrong. */
export function readJob(name: string, value: unknown): Job {
  const job = jobSchema.safeParse(value);
  if (job.success) return job.data;
  const issue = job.error.issues[0];
  throw new PermanentError(
    'invalid_output',
    `The ${name}'s job is wrong at ${issue?.path.join('.')}: ${issue?.message}`,
  );
}

/** The error that a failed job reports, with its own code and its own word on whether to try again. */
export function jobFailure(name: string, job: Job, defaultCode: string): PermanentError | RetriableError {
  const unknown = { code: defaultCode, message: `The ${name} gave no reason.`, permanent: false };
  const { code, message, permanent, retry_after_ms: wait } = { retry_after_ms: undefined, ...(job.error ?? unknown) };
  return permanent ? new PermanentError(code, message) : new RetriableError(code, message, wait);
}

async function call({ name, prefix, url, token }: JobService, path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token) headers.set('authorization', `Bearer ${token}`);
  let answer: Response;
  try {
    answer = await fetch(`${url}${path}`, { ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    // An outage of the service says nothing about what it was to read: always worth another try.
    throw new RetriableError(
      `${prefix.toLowerCase()}_unreachable`,
      `The ${name} at ${prefix}_URL cannot be reached: ${messageOf(error)}`,
    );
  }
  if (answer.status === 401 || answer.status === 403) {
    throw new MisconfiguredError(`The ${name} refused ${prefix}_AUTH_TOKEN (${answer.status}): correct it.`);
  }
  return answer;
}

async function rejection(name: string, answer: Response): Promise<Error> {
  const body = z
    .object({ error: z.object({ code: z.string(), message: z.string() }) })
    .safeParse(await readJson(answer));
  const isOurs = answer.status === 400 || answer.status === 422;
  if (isOurs && body.success) return new PermanentError(body.data.error.code, body.data.error.message);
  return errorFromStatus(answer.status, answer.headers, `The ${name}`);
}

async function readJson(answer: Response): Promise<unknown> {
  try {
    return await answer.json();
  } catch {
    return undefined;
  }
}
