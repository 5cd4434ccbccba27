import type { Env, SettingsGroup } from '../settings.ts';
import type { Traced } from '../trace.ts';

/** What a service is asked with: `traceHeaders(context)` says for which run. */
export interface ServiceContext extends Traced {
  env: Env;
  /** Aborted when the time for asking is over. */
  signal: AbortSignal;
}

/**
 * What a service says of a job: it waits in the service's own queue (then the stage's deadline does not run), it is being
 * worked on, the service does not know it, or it has ended, well or badly. `job` is what the stage's `finish` reads.
 */
export type JobState =
  | { state: 'queued' }
  | { state: 'running' }
  | { state: 'lost' }
  | { state: 'finished'; job: unknown };

/** The job that a callback is about; without `job` the service is asked for it. */
export interface CalledBack {
  jobId: string;
  job?: unknown;
}

/**
 * A service outside of the project that does a stage's work as a job and tells when it has ended. Most speak the protocol of
 * docs/services.md, for which `jobService()` makes this; any other is described by hand.
 */
export interface Service {
  /** Its name among waiting attempts, in the log and in callbacks: lower case letters, digits, - and _. */
  name: string;
  /** Where it is and how to get in, as it appears in the environment. */
  settings?: SettingsGroup;
  /**
   * Asks after a job. Throws a StageError when the service does not answer, which says nothing about the job. A service
   * that cannot be asked has none: then its callback ends the attempt, or the deadline does.
   */
  poll?(jobId: string, context: ServiceContext): Promise<JobState>;
  /**
   * Reads the body of a verified callback, parsed from JSON, or its text where it is none. Throws a PermanentError that says
   * what is wrong with it.
   */
  readCallback(body: unknown): CalledBack;
}
