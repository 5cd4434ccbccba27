import type { Env, SettingsGroup } from '../settings.ts';
import type { Traced } from '../trace.ts';

/** Context of a call to a service. `traceHeaders(context)` returns headers that name the run. */
export interface ServiceContext extends Traced {
  env: Env;
  /** Aborted when the time for asking is over. */
  signal: AbortSignal;
}

/**
 * The state of a job at its service.
 *
 * - `queued`: it waits in the service's own queue; the stage's deadline does not run.
 * - `running`: the service works on it.
 * - `lost`: the service does not know it.
 * - `finished`: it has ended, well or badly. `job` is the value that the stage's `finish` reads.
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
 * A service outside of the project that does a stage's work as a job and reports its end. `jobService()` makes one for
 * the protocol of docs/services.md; any other service is described by hand.
 */
export interface Service {
  /** Its name among waiting attempts, in the log and in callbacks: lower case letters, digits, - and _. */
  name: string;
  /** Settings with the service's address and credentials, by the names of environment variables. */
  settings?: SettingsGroup;
  /**
   * Returns the state of a job. Throws a StageError when the service does not answer, which says nothing about the job.
   * Left out for a service that cannot be polled: then its callback ends the attempt, or the deadline does.
   */
  poll?(jobId: string, context: ServiceContext): Promise<JobState>;
  /**
   * Reads the body of a verified callback: parsed from JSON, or its text where it is no JSON. Throws a PermanentError
   * that names the fault of the body.
   */
  readCallback(body: unknown): CalledBack;
}
