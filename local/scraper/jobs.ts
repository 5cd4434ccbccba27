import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Webhook } from 'standardwebhooks';
import type { ScrapedPage } from './crawl-site.ts';
import type { JobRequest } from './job-request.ts';
import type { ScrapeError } from './scrape-error.ts';
import { deliverSigned } from './signed-callback.ts';

/** A job as `GET /jobs/:id` shows it. */
export interface JobView {
  job_id: string;
  status: 'queued' | 'running' | 'completed' | 'failed';
  result?: { pages: ScrapedPage[] };
  error?: { code: string; message: string; permanent: boolean; retry_after_ms?: number };
  metadata: Record<string, unknown>;
}

export interface JobsOptions {
  crawl: (request: JobRequest) => Promise<ScrapedPage[]>;
  secrets: Webhook[];
  callbackDelaysMs: number[];
  stop: AbortSignal;
}

interface Job {
  view: JobView;
  request: JobRequest;
  endedAt?: number;
}

const concurrency = 8;
const keptMs = 60 * 60 * 1000;

/** The jobs of one scraper, in memory: eight run at a time, and each is forgotten an hour after its end. */
export class Jobs {
  readonly #options: JobsOptions;
  readonly #byId = new Map<string, Job>();
  readonly #idByKey = new Map<string, string>();
  readonly #queue: Job[] = [];
  #running = 0;

  constructor(options: JobsOptions) {
    this.#options = options;
  }

  /**
   * Queues a job, or finds the one that the same idempotency key has already made.
   * Returns null when that key came with another request before.
   */
  submit(request: JobRequest, key: string | undefined): { view: JobView; created: boolean } | null {
    this.#prune();
    const known = key === undefined ? undefined : this.#byId.get(this.#idByKey.get(key) ?? '');
    if (known) return isDeepStrictEqual(known.request, request) ? { view: known.view, created: false } : null;
    const view: JobView = { job_id: `job_${randomUUID()}`, status: 'queued', metadata: request.metadata };
    const job: Job = { view, request };
    this.#byId.set(view.job_id, job);
    if (key !== undefined) this.#idByKey.set(key, view.job_id);
    this.#queue.push(job);
    // Started in a later turn, so that the submission is answered as queued.
    setImmediate(() => this.#startNext());
    return { view, created: true };
  }

  /** The job of that id, unless it is unknown or forgotten. */
  find(id: string): JobView | undefined {
    return this.#byId.get(id)?.view;
  }

  #startNext(): void {
    while (this.#running < concurrency && !this.#options.stop.aborted) {
      const job = this.#queue.shift();
      if (!job) return;
      this.#running++;
      void this.#run(job).finally(() => {
        this.#running--;
        this.#startNext();
      });
    }
  }

  async #run(job: Job): Promise<void> {
    const { view, request } = job;
    view.status = 'running';
    try {
      view.result = { pages: await this.#options.crawl(request) };
      view.status = 'completed';
    } catch (error) {
      const { code, message, permanent, retryAfterMs } = error as ScrapeError;
      view.error = {
        code,
        message,
        permanent,
        ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
      };
      view.status = 'failed';
    }
    job.endedAt = Date.now();
    // Not awaited: a receiver that is slow must not keep the next job waiting.
    void this.#report(job);
  }

  async #report({ view, request }: Job): Promise<void> {
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
