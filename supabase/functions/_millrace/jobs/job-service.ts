import { z } from 'zod';
import type { JobOrigin } from '../engine/engine-contract.ts';
import { errorFromStatus, MisconfiguredError, messageOf, PermanentError, RetriableError } from '../errors.ts';
import { authToken, type Env, httpUrl, readSettings, type SettingsGroup } from '../settings.ts';
import type { CalledBack, JobState, Service, ServiceContext } from '../stage/service.ts';
import type { HandlerContext } from '../stage/stage.ts';
import { type Traced, traceHeaders } from '../trace.ts';

const jobSchema = z.object({
  job_id: z.string().min(1),
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

/** A job as a service answers and reports it: docs/services.md. */
export type Job = z.output<typeof jobSchema>;

const callbackSchema = z.object({
  type: z.enum(['job.completed', 'job.failed']),
  data: z.looseObject({ job_id: z.string().min(1) }),
});

/** A service that speaks the protocol of docs/services.md. */
export interface JobService extends Service {
  settings: SettingsGroup;
  /** As in "The scraper answered 500." */
  label: string;
  /**
   * Submits a job and returns its id. The service answers the same `key` with the same job. The request is sent as JSON with
   * `callback_url` and `metadata`, which says whose job it is. Throws a StageError: a permanent one when the service has
   * taken another request under that key.
   */
  submit(request: object, context: SubmitContext, key: string): Promise<string>;
  /** Asks after a job; null when the service does not know it. Throws a StageError. */
  get(jobId: string, context: ServiceContext): Promise<Job | null>;
  poll(jobId: string, context: ServiceContext): Promise<JobState>;
  /** The result of a job that has ended well. Throws what the job failed of. */
  resultOf(job: unknown): unknown;
}

export type SubmitContext = Pick<
  HandlerContext,
  'pipeline' | 'stage' | 'submission' | 'traceId' | 'entityId' | 'env' | 'signal'
> &
  Partial<Pick<HandlerContext, 'callbackUrl'>>;

/** Returns which attempt a job is submitted for. */
export function jobOrigin(context: Omit<SubmitContext, 'env' | 'signal'>): JobOrigin {
  const { pipeline, stage, submission, traceId, entityId } = context;
  return { pipeline, stage, submission, trace_id: traceId, entity_id: entityId };
}

/**
 * A service that speaks the protocol of docs/services.md. Its address and token are the settings NAME_URL and
 * NAME_AUTH_TOKEN. `label` is what messages call it, as in "The mailer answered 500."; its name when it is left out.
 *
 * @example
 * ```ts
 * const mailer = jobService({ name: 'mailer' });
 *
 * export const notify = defineStage({
 *   pipeline: orders,
 *   stage: 'notify',
 *   input: z.object({ entity: z.object({ email: z.email() }) }),
 *   output: z.object({ delivered: z.boolean() }),
 *   handler: async ({ entity }, context) =>
 *     waiting(mailer, await mailer.submit({ to: entity.email }, context, context.idempotencyKey)),
 *   finish: (job) => z.object({ delivered: z.boolean() }).parse(mailer.resultOf(job)),
 *   services: [mailer],
 *   settings: [mailer.settings],
 * });
 * ```
 */
export function jobService({ name, label = name }: { name: string; label?: string }): JobService {
  const client = new JobClient(name, label);
  return {
    name,
    label,
    settings: client.settings,
    submit: (request, context, key) => client.submit(request, context, key),
    get: (jobId, context) => client.get(jobId, context),
    poll: async (jobId, context) => stateOf(await client.get(jobId, context)),
    readCallback: readJobCallback,
    resultOf: (job) => client.resultOf(job),
  };
}

function stateOf(job: Job | null): JobState {
  if (!job) return { state: 'lost' };
  if (job.status === 'queued' || job.status === 'running') return { state: job.status };
  return { state: 'finished', job };
}

function readJobCallback(body: unknown): CalledBack {
  const parsed = callbackSchema.safeParse(body);
  if (parsed.success) return { jobId: parsed.data.data.job_id, job: parsed.data.data };
  const issue = parsed.error.issues[0];
  throw new PermanentError('bad_callback', `${issue?.path.join('.') || 'The body'}: ${issue?.message}`);
}

class JobClient {
  readonly settings: SettingsGroup;
  private readonly prefix: string;

  constructor(
    private readonly name: string,
    private readonly label: string,
  ) {
    this.prefix = name.toUpperCase().replaceAll('-', '_');
    this.settings = z.object({
      [`${this.prefix}_URL`]: httpUrl.describe(`set the base URL of the ${label}, such as https://${name}.example.com`),
      [`${this.prefix}_AUTH_TOKEN`]: authToken.optional(),
    });
  }

  async submit(request: object, context: SubmitContext, key: string): Promise<string> {
    const { label, name, prefix } = this;
    const answer = await this.call('/jobs', context, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({
        ...request,
        callback_url: context.callbackUrl,
        metadata: { ...jobOrigin(context), service: name },
      }),
    });
    if (answer.status === 404) throw new MisconfiguredError(`${prefix}_URL has no /jobs: correct it.`);
    if (answer.status === 409) {
      throw new PermanentError(
        'idempotency_key_reused',
        `The ${label} answered 409: Idempotency-Key ${key} stands for another request there. It must compare the request ` +
          'without callback_url and metadata, which are those of the submission. Where what the handler sends has changed, set ' +
          'the stage to queued again: that has another key, and what was done under this one may be done twice.',
      );
    }
    if (!answer.ok) throw await rejection(label, answer);
    const body = z.object({ job_id: z.string().min(1) }).safeParse(await readJson(answer));
    if (!body.success) throw new RetriableError('server_error', `The ${label} answered without a job_id.`);
    return body.data.job_id;
  }

  async get(jobId: string, context: ServiceContext): Promise<Job | null> {
    const answer = await this.call(`/jobs/${encodeURIComponent(jobId)}`, context);
    if (answer.status === 404) return null;
    if (!answer.ok) throw await rejection(this.label, answer);
    return this.readJob(await readJson(answer));
  }

  resultOf(value: unknown): unknown {
    const job = this.readJob(value);
    if (job.status === 'completed') return job.result;
    const { label, name } = this;
    const unknown = { code: `${name}_failed`, message: `The ${label} gave no reason.`, permanent: false };
    const { code, message, permanent, retry_after_ms: wait } = { retry_after_ms: undefined, ...(job.error ?? unknown) };
    throw permanent ? new PermanentError(code, message) : new RetriableError(code, message, wait);
  }

  private readJob(value: unknown): Job {
    const job = jobSchema.safeParse(value);
    if (job.success) return job.data;
    const issue = job.error.issues[0];
    const where = issue?.path.join('.') || 'the top';
    throw new PermanentError('invalid_output', `The ${this.label}'s job is wrong at ${where}: ${issue?.message}`);
  }

  private async call(path: string, context: Traced & { env: Env; signal: AbortSignal }, init: RequestInit = {}) {
    const { label, prefix } = this;
    const settings = readSettings(this.settings, context.env) as Record<string, string | undefined>;
    const headers = new Headers({ ...traceHeaders(context), ...(init.headers as Record<string, string>) });
    const token = settings[`${prefix}_AUTH_TOKEN`];
    if (token) headers.set('authorization', `Bearer ${token}`);
    let answer: Response;
    try {
      answer = await fetch(`${settings[`${prefix}_URL`]}${path}`, {
        ...init,
        headers,
        redirect: 'manual',
        signal: context.signal,
      });
    } catch (error) {
      if (context.signal.aborted) throw error;
      // An outage of the service says nothing about what it was to do: always worth another try.
      throw new RetriableError(
        `${this.name}_unreachable`,
        `The ${label} cannot be reached.`,
        undefined,
        `The ${label} at ${prefix}_URL cannot be reached: ${messageOf(error)}`,
      );
    }
    if (answer.status === 401 || answer.status === 403) {
      throw new MisconfiguredError(`The ${label} refused ${prefix}_AUTH_TOKEN (${answer.status}): correct it.`);
    }
    // A redirect is refused: it would take a POST or the token elsewhere.
    if (answer.status >= 300 && answer.status < 400) {
      throw new MisconfiguredError(
        `${prefix}_URL leads elsewhere (${answer.status}): set it to the address that answers.`,
      );
    }
    return answer;
  }
}

async function rejection(label: string, answer: Response): Promise<Error> {
  const body = z
    .object({ error: z.object({ code: z.string(), message: z.string() }) })
    .safeParse(await readJson(answer));
  const isOurs = answer.status === 400 || answer.status === 422;
  if (isOurs && body.success) return new PermanentError(body.data.error.code, body.data.error.message);
  return errorFromStatus(answer.status, answer.headers, `The ${label}`, body.data?.error.message);
}

async function readJson(answer: Response): Promise<unknown> {
  try {
    return await answer.json();
  } catch {
    return undefined;
  }
}
