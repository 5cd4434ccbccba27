// A job service that works on so many jobs at once and lets the others wait, by the engine's clock.
import type { Claimed } from '../worker.ts';

export interface ServiceJob {
  id: string;
  submission: number;
  attempt: number;
  state: 'queued' | 'running' | 'finished';
  endsAt: number;
}

export class BusyService {
  /** Every job that was ever bought, in order. */
  readonly jobs: ServiceJob[] = [];
  readonly #capacity: number;
  readonly #jobMs: number;

  constructor(capacity: number, jobSeconds: number) {
    this.#capacity = capacity;
    this.#jobMs = jobSeconds * 1000;
  }

  /** Buys a job; the same submission gets the same one. */
  submit({ submission, attempt }: Claimed): ServiceJob {
    const known = this.jobs.find((job) => job.submission === submission);
    if (known) return known;
    const id = `job-${this.jobs.length + 1}`;
    const job: ServiceJob = { id, submission, attempt, state: 'queued', endsAt: 0 };
    this.jobs.push(job);
    return job;
  }

  job(id: string): ServiceJob {
    const found = this.jobs.find((job) => job.id === id);
    if (!found) throw new Error(`the service has no job ${id}`);
    return found;
  }

  get running(): ServiceJob[] {
    return this.jobs.filter((job) => job.state === 'running');
  }

  /** Ends the jobs whose time has come, and takes up as many that wait; returns those that ended. */
  work(now: Date): ServiceJob[] {
    const ended = this.running.filter((job) => job.endsAt <= now.getTime());
    for (const job of ended) job.state = 'finished';
    const next = this.jobs.filter((job) => job.state === 'queued').slice(0, this.#capacity - this.running.length);
    for (const job of next) Object.assign(job, { state: 'running', endsAt: now.getTime() + this.#jobMs });
    return ended;
  }
}
