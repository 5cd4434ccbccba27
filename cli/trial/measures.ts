// The measurements of a trial, a function for each. Times are by the database's clock, so distance does not count.
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandError } from '../command-error.ts';
import type { TrialDeps } from '../commands/trial.ts';
import type { Target } from '../operate/find-target.ts';
import { callDatabase } from '../project/call-database.ts';
import type { Findings } from './expected.ts';

/** How much is measured. */
export interface Size {
  /** Rows one after the other, and all at once. */
  single: number;
  burst: number;
  idleSeconds: number;
  /** How long the trial's service takes for a job, and twice as long as its model takes. */
  serviceMs: number;
}

/** The parameters of every measurement. */
export interface Measuring {
  target: Target;
  size: Size;
  signal: AbortSignal;
  deps: TrialDeps;
}

export type Found = Findings['measured'];

interface Rows {
  first: number;
  last: number;
}

interface Figures {
  rows: number;
  completed: number;
  failed: number;
  codes: string[] | null;
  seconds: number;
  begun_ms: number | null;
  retried_ms: number | null;
  row_ms: [number, number] | null;
  hop_ms: [number, number] | null;
}

interface Counters {
  at: number;
  calls: Record<string, number>;
  jobs: number;
  log_bytes: number;
}

const call = <Answer>({ target }: Measuring, name: string, args = {}) =>
  callDatabase<Answer>(target.url, target.headers, name, args);
const queue = (measuring: Measuring, rows: number, how = {}) =>
  call<Rows>(measuring, 'trial_queue', { p_rows: rows, ...how });
const figures = (measuring: Measuring, { first, last }: Rows) =>
  call<Figures>(measuring, 'trial_figures', { p_first: first, p_last: last });
const counters = (measuring: Measuring) => call<Counters>(measuring, 'trial_counters');

/** Asks until it holds. Throws a CommandError with what was seen last where it does not within so many seconds. */
async function until(
  measuring: Measuring,
  rows: Rows,
  what: string,
  holds: (seen: Figures) => boolean,
  seconds: number,
) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    measuring.signal.throwIfAborted();
    const seen = await figures(measuring, rows);
    if (holds(seen)) return seen;
    if (Date.now() > end) {
      throw new CommandError(`Not within ${seconds} s: ${what}. The rows: ${JSON.stringify(seen)}`, 4);
    }
    await sleep(250, undefined, { signal: measuring.signal });
  }
}

const allEnded = ({ rows, completed, failed }: Figures) => rows > 0 && completed + failed === rows;
const ended = (measuring: Measuring, rows: Rows, seconds: number) =>
  until(measuring, rows, 'all rows are through', allEnded, seconds);

/** The first row of all, by functions that were never called before. */
export async function measureFirstRow(measuring: Measuring): Promise<Found> {
  const { begun_ms } = await ended(measuring, await queue(measuring, 1), 90);
  return { first_begun: begun_ms ?? undefined };
}

/** Rows one after the other, by warm functions, and the calls that each takes. */
export async function measureSingleRows(measuring: Measuring): Promise<Found> {
  const before = await counters(measuring);
  let all: Rows | undefined;
  for (let row = 0; row < measuring.size.single; row += 1) {
    const rows = await queue(measuring, 1);
    await ended(measuring, rows, 90);
    all = { first: all?.first ?? rows.first, last: rows.last };
  }
  if (!all) return {};
  const { row_ms, hop_ms } = await figures(measuring, all);
  const calls = callsSince(before, await counters(measuring));
  return {
    row_p50: added(row_ms?.[0], measuring),
    row_p95: added(row_ms?.[1], measuring),
    hop_p50: hop_ms?.[0],
    hop_p95: hop_ms?.[1],
    single_calls: (calls.plain + calls.waiting + calls.model) / measuring.size.single,
  };
}

/** Rows all at once: how fast they go, and the calls of each kind of stage, for 1,000 rows. */
export async function measureBurst(measuring: Measuring): Promise<Found> {
  const { burst } = measuring.size;
  const before = await counters(measuring);
  const { seconds } = await ended(measuring, await queue(measuring, burst), 240);
  const calls = callsSince(before, await counters(measuring));
  const forThousand = (count: number) => (count / burst) * 1000;
  return {
    burst_rate: burst / seconds,
    plain_calls: forThousand(calls.plain),
    waiting_calls: forThousand(calls.waiting),
    model_calls: forThousand(calls.model),
  };
}

/** Returns the milliseconds that platform and engine add to those of service and model. */
const added = (ms: number | undefined, { size }: Measuring) =>
  ms === undefined ? undefined : ms - 1.5 * size.serviceMs;

/** Returns the calls between two readings, by kind of stage. Calls of the function millrace count for the waiting stage. */
function callsSince(before: Counters, now: Counters) {
  const of = (name: string) => (now.calls[name] ?? 0) - (before.calls[name] ?? 0);
  return { plain: of('trial-read'), waiting: of('trial-render') + of('millrace'), model: of('trial-judge') };
}

/** A row whose handler never ends: the platform ends its function, and the row is tried again. */
export async function measureKillByCpu(measuring: Measuring): Promise<Found> {
  const rows = await queue(measuring, 1, { p_burns: true });
  const { retried_ms } = await ended(measuring, rows, 150);
  return { cpu_retried: retried_ms ?? undefined };
}

/** A row whose wake-up is lost: the sweep finds it. */
export async function measureLostWakeUp(measuring: Measuring): Promise<Found> {
  const rows = await queue(measuring, 1, { p_lose: true });
  const { begun_ms } = await ended(measuring, rows, 90);
  return { lost_begun: begun_ms ?? undefined };
}

/** Rows under way while `exchange` deploys the next version. */
export async function measureUpgrade(measuring: Measuring, exchange: () => Promise<void>): Promise<Found> {
  const rows = await queue(measuring, measuring.size.burst);
  await exchange();
  const { failed } = await ended(measuring, rows, 240);
  return { upgrade_failed: failed };
}

/** Rows queued while the pipeline is paused wait, and go on after it. */
export async function measurePause(measuring: Measuring): Promise<Found> {
  const api = measuring.deps.connectApi(measuring.target);
  const act = (verb: string) => api.act({ verb, pipeline: 'trial', reason: 'the trial' });
  await act('pause');
  const before = await counters(measuring);
  const rows = await queue(measuring, 5);
  // The sweep runs every ten seconds: in the longer wait it has looked at the paused pipeline.
  await sleep(Math.min(12, measuring.size.idleSeconds) * 1000, undefined, { signal: measuring.signal });
  const { begun_ms } = await figures(measuring, rows);
  const woken = callsSince(before, await counters(measuring)).plain;
  await act('unpause');
  await ended(measuring, rows, 60);
  return { pause_begun: begun_ms === null ? woken : 5 };
}

/** The invocations and cron jobs an hour, and the log a day, of a project that nobody uses. */
export async function measureIdle(measuring: Measuring): Promise<Found> {
  const before = await counters(measuring);
  await sleep(measuring.size.idleSeconds * 1000, undefined, { signal: measuring.signal });
  const now = await counters(measuring);
  const hours = (now.at - before.at) / 3600;
  const sum = ({ calls }: Counters) => Object.values(calls).reduce((all, count) => all + count, 0);
  return {
    idle_calls: (sum(now) - sum(before)) / hours,
    idle_jobs: (now.jobs - before.jobs) / hours,
    idle_log: ((now.log_bytes - before.log_bytes) / 1e6 / hours) * 24,
  };
}

/** A row on another project, which is a branch of this one. */
export async function measureBranchRow(measuring: Measuring): Promise<Found> {
  const { row_ms } = await ended(measuring, await queue(measuring, 1), 90);
  return { branch_row: added(row_ms?.[0], measuring) };
}
