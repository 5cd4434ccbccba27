import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Webhook } from 'standardwebhooks';
import { JobError, unexpectedError } from './job-error.ts';
import { deliverSigned } from './signed-callback.ts';

/** A job as `GET /jobs/:id` shows it. */
export interface JobView<Result> {
  job_id: string;
  status: 'queued' | 'running' | 'completed' | 'failed';
  result?: Result;
  error?: { code: string; message: string; permanent: boolean; retry_after_ms?: number };
  metadata: Record<string, unknown>;
}

/** The fields that every request of a job may have. */
export interface CommonRequest {
  callback_url?: string | undefined;
  metadata: Record<string, unknown>;
}

export interface JobsOptions<Request, Result> {
  /** Does the work of a job. Rejects with a JobError. */
  run: (request: Request) => Promise<Result>;
  /** The part of a request that must be the same under the same idempotency key. */
  identity: (request: Request) => unknown;
  /** How many jobs run at a time. */
  concurrency: number;
  secrets: Webhook[];
  callbackDelaysMs: number[];
  stop: AbortSignal;
}

interface Job<Request, Result> {
  view: JobView<Result>;
  request: Request;
  endedAt?: number;
}

const mostQueued = 10_000;
const keptMs = 60 * 60 * 1000;

/** The jobs of one service, in memory: a few run at a time, and each is forgotten an hour after its end. */
export class Jobs<Request extends CommonRequest, Result> {
  readonly #options: JobsOptions<Request, Result>;
  readonly #byId = new Map<string, Job<Request, Result>>();
  readonly #idByKey = new Map<string, string>();
  readonly #queue: Job<Request, Result>[] = [];
  #running = 0;

  constructor(options: JobsOptions<Request, Result>) {
    this.#options = options;
  }

  /**
   * Queues a job, or finds the one that the same idempotency key has already made.
   * Refuses a key that came with another request before, and a job that it has no room for now.
   */
  submit(
    request: Request,
    key: string | undefined,
  ): { view: JobView<Result>; created: boolean } | 'key_reused' | 'full' {
    this.#prune();
    const known = key === undefined ? undefined : this.#byId.get(this.#idByKey.get(key) ?? '');
    if (known) {
      const { identity } = this.#options;
      const isSame = isDeepStrictEqual(identity(known.request), identity(request));
      return isSame ? { view: known.view, created: false } : 'key_reused';
    }
    if (this.#queue.length >= mostQueued) return 'full';
    const view: JobView<Result> = { job_id: `job_${randomUUID()}`, status: 'queued', metadata: request.metadata };
    const job: Job<Request, Result> = { view, request };
    this.#byId.set(view.job_id, job);
    if (key !== undefined) this.#idByKey.set(key, view.job_id);
    this.#queue.push(job);
    // Starts the job in a later turn, so that the answer to its submission says queued.
    setImmediate(() => this.#startNext());
    return { view, created: true };
  }

  /** Returns the job of that id, unless it is unknown or forgotten. */
  find(id: string): JobView<Result> | undefined {
    return this.#byId.get(id)?.view;
  }

  #startNext(): void {
    while (this.#running < this.#options.concurrency && !this.#options.stop.aborted) {
      const job = this.#queue.shift();
      if (!job) return;
      this.#running++;
      void this.#run(job).finally(() => {
        this.#running--;
        this.#startNext();
      });
    }
  }

  async #run(job: Job<Request, Result>): Promise<void> {
    const { view, request } = job;
    view.status = 'running';
    try {
      view.result = await this.#options.run(request);
      view.status = 'completed';
    } catch (error) {
      const failure = error instanceof JobError ? error : unexpectedError(error, 'The job');
      const { code, message, permanent, retryAfterMs } = failure;
      view.error = {
        code,
        message,
        permanent,
        ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
      };
      view.status = 'failed';
    }
    job.endedAt = Date.now();
    // Does not wait for the delivery: a slow receiver must not hold up the next job.
    void this.#report(job);
  }

  async #report({ view, request }: Job<Request, Result>): Promise<void> {
    if (request.callback_url === undefined) return;
    const payload = { type: `job.${view.status}`, timestamp: new Date().toISOString(), data: view };
    const callback = { url: request.callback_url, id: `msg_${view.job_id}`, payload, secrets: this.#options.secrets };
    await deliverSigned(callback, this.#options.callbackDelaysMs, this.#options.stop);
  }

  #prune(): void {
    const horizon = Date.now() - keptMs;
    for (const [id, job] of this.#byId) if ((job.endedAt ?? Infinity) < horizon) this.#byId.delete(id);
    for (const [key, id] of this.#idByKey) if (!this.#byId.has(id)) this.#idByKey.delete(key);
  }
}
