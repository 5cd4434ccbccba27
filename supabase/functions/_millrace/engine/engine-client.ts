import type { z } from 'zod';
import type { Log } from '../log.ts';
import { type Delivery, notedDeliveries, takenMessages } from './alert-contract.ts';
import { dataApi } from './data-api.ts';
import type { EngineFunctions, Json } from './database.types.ts';
import * as contract from './engine-contract.ts';
import { healthAnswer, metricsAnswer } from './metrics-contract.ts';
import type { Platform } from './platform.ts';
import { storable } from './storable.ts';
import { createSweeper } from './sweep.ts';

/** The answer to one call of a database function, in the shape of postgrest-js. */
export interface RpcAnswer {
  data: unknown;
  error: { message: string; code?: string; details?: string | null; hint?: string | null } | null;
  status: number;
}
export type Rpc = (name: string, args: Record<string, unknown>, signal: AbortSignal) => PromiseLike<RpcAnswer>;

/** The arguments of a database function. JSON arguments are `unknown` here: the engine's own contract checks them. */
type EngineArgs<N extends keyof EngineFunctions> = {
  [A in keyof EngineFunctions[N]['Args']]: Json extends EngineFunctions[N]['Args'][A]
    ? unknown
    : EngineFunctions[N]['Args'][A];
};

/** The engine could not be reached, or answered 5xx, for as long as the caller was willing to try. */
export class EngineUnavailable extends Error {}
/** The engine speaks another contract: until database and functions are of one release, no call is of use. */
export class ContractRefused extends EngineUnavailable {}
/** The engine refused the call itself; the same call would be refused again. */
export class EngineRefusal extends Error {
  /** `code` is the SQLSTATE, where the database gave one. */
  constructor(
    message: string,
    readonly code?: string,
  ) {
    super(message);
  }
}

/** The engine's functions, typed. Each throws EngineUnavailable or EngineRefusal. */
export interface Engine {
  claim(call: {
    pipeline: string;
    stage: string;
    worker: string;
    host: string;
    seq: number;
    limit: number;
    /** Returns the limit of the next try after the database has cancelled a call that took too long. */
    afterTimeout?(limit: number): number;
  }): Promise<contract.Claim>;
  complete(call: {
    worker: string;
    seq: number;
    items: contract.OutcomeItem[];
    limit: number;
    /** Whether the worker has no other item in work, so that it signs off if there is nothing to claim. */
    goodbye: boolean;
    afterTimeout?(limit: number): number;
  }): Promise<contract.Completion>;
  /** Renews all leases of a worker; of the attempts it names, `lost` are those that are no longer its own. */
  renew(worker: string, attempts: number[]): Promise<z.output<typeof contract.renewAnswer>>;
  /**
   * Signs off. Handing over leaves in any case; otherwise `left` is false when work has come meanwhile. `cost` is what a row
   * takes of an isolate, as far as the worker can tell.
   */
  leave(worker: string, handOver: boolean, cost?: contract.RowCost): Promise<z.output<typeof contract.leaveAnswer>>;
  wake(stages: { pipeline: string; stage: string }[]): Promise<z.output<typeof contract.wakeAnswer>>;
  /** Starts the runs of a map attempt's children; an item whose key has one already is passed over. */
  spawn(
    worker: string,
    claimed: contract.ClaimedAttempt,
    items: contract.ChildItem[],
    last: boolean,
  ): Promise<z.output<typeof contract.spawnAnswer>>;
  /** Adds up what the children of these fan-outs have reported. Takes at most 100 at a time. */
  collectChildren(fanOuts: number[]): Promise<z.output<typeof contract.collectAnswer>>;
  /** Returns the recorded turns of an agent's attempt, and its limits. */
  turns(worker: string, claimed: contract.ClaimedAttempt): Promise<z.output<typeof contract.turnsAnswer>>;
  /** Records turns of an agent's attempt and renews the worker's leases. */
  checkpoint(
    worker: string,
    claimed: contract.ClaimedAttempt,
    turns: contract.NewTurn[],
  ): Promise<z.output<typeof contract.checkpointAnswer>>;
  /** Takes jobs whose poll is due; `pollMs` sets their next poll instead of their stage. */
  poll(limit: number, pollMs?: number): Promise<z.output<typeof contract.pollAnswer>>;
  /**
   * Reports polled jobs that have not ended, at most 1,000 at a time. Where a stage's deadline counts from the start, it
   * does not run while its job is queued. Only jobs with `awaits_start` need a report; a report too many changes nothing.
   * Tried once: the next poll repeats it.
   */
  noteJobs(jobs: contract.JobReport[]): Promise<z.output<typeof contract.noteJobsAnswer>>;
  /** Shows what went wrong with jobs in the engine's log and in doctor(). Tried once. */
  noteFaults(faults: contract.JobFault[]): Promise<z.output<typeof contract.noteFaultsAnswer>>;
  /** Finds the owner of a job by the attempt it was submitted for, or by its id alone. */
  jobOwner(job: contract.JobName): Promise<z.output<typeof contract.jobOwnerAnswer>>;
  resume(items: contract.JobOutcomeItem[]): Promise<z.output<typeof contract.resumeAnswer>>;
  /** Takes messages about alerts whose turn it is, one a channel at most. */
  takeMessages(): Promise<z.output<typeof takenMessages>>;
  /** Notes what came of messages that were taken. */
  noteDeliveries(deliveries: Delivery[]): Promise<z.output<typeof notedDeliveries>>;
  /** Returns all metrics. Tried once: a monitoring system asks again by itself. */
  metrics(): Promise<z.output<typeof metricsAnswer>>;
  /** Returns the faults of the project. Tried once. */
  health(): Promise<z.output<typeof healthAnswer>>;
}

const CALL_TIMEOUT_MS = 10_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;
/** Error codes of a call during an upgrade of the engine: PostgREST or a session still knows the former functions. */
const UPGRADE_CODES = ['PGRST202', '42883'];
const UPGRADE_MS = 5_000;
/** The SQLSTATE of a statement that was cancelled, mostly by its timeout: nothing of it stays. */
const QUERY_CANCELED = '57014';

/**
 * Calls one of the engine's functions and checks its answer. `once`: not repeated. `afterTimeout` gives the arguments of the
 * next try after the database has cancelled a call.
 */
type Call = <S extends z.ZodType, N extends keyof EngineFunctions>(
  schema: S,
  name: N,
  given: EngineArgs<N>,
  once?: boolean,
  afterTimeout?: (args: EngineArgs<N>) => EngineArgs<N>,
) => Promise<z.output<S>>;

/** Returns an answer, after starting the sweep where the answer says that it is late. */
type SweepIfDue = <A extends { sweep_due: boolean }>(answer: A) => A;

interface EngineOptions {
  rpc: Rpc;
  retryUntil: () => number;
  log: Log;
}

/**
 * The engine's functions over `rpc`. A call that got no answer, or 5xx, is repeated until `retryUntil` (epoch
 * milliseconds), unchanged, since every function takes a repeat as the same call; only a claim that the database has
 * cancelled, so that nothing of it stays, may ask for less the next time. `renew` is tried once, since its timer repeats it,
 * and so is `collectChildren`, which the sweep repeats. When an answer says that the sweep itself is late, the client calls
 * it in the background.
 */
export function createEngine(options: EngineOptions): Engine {
  const call = createCall(options);
  const sweepWhenDue = createSweeper(() => call(contract.sweepAnswer, 'millrace_sweep', {}, true), options.log);
  const sweepIfDue: SweepIfDue = (answer) => {
    sweepWhenDue(answer);
    return answer;
  };
  return {
    ...workerCalls(call, sweepIfDue),
    ...attemptCalls(call),
    ...jobCalls(call, sweepIfDue),
    ...watchCalls(call),
  };
}

function createCall({ rpc, retryUntil, log }: EngineOptions): Call {
  return async (schema, name, given, once = false, afterTimeout = (args) => args) => {
    let args = storable(given);
    const began = Date.now();
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const answer = await tryCall(rpc, name, args);
      if (!answer.error) return readAnswer(schema, name, answer.data);
      const said = `${name}: ${answer.status} ${answer.error.message}`;
      const told = [said, answer.error.hint].filter(Boolean).join(' — ');
      if (answer.status === 426) throw new ContractRefused(told);
      if (!isTransient(answer) && !mayBeUpgraded(answer, began)) throw new EngineRefusal(told, answer.error.code);
      if (once || Date.now() + pause >= retryUntil()) throw new EngineUnavailable(said);
      log.warn('the engine did not answer, trying again', { rpc: name, status: answer.status, error: said });
      await new Promise((resolve) => setTimeout(resolve, pause * (0.5 + Math.random() / 2)));
      if (answer.error.code === QUERY_CANCELED) args = afterTimeout(args);
    }
  };
}

/** Returns a function that repeats a claim with the limit that its caller chooses after a timeout. */
function claimLess(choose: ((limit: number) => number) | undefined) {
  return <A extends { p_limit: number }>(args: A): A => (choose ? { ...args, p_limit: choose(args.p_limit) } : args);
}

/** Calls of a worker for all its attempts at once. */
function workerCalls(
  call: Call,
  sweepIfDue: SweepIfDue,
): Pick<Engine, 'claim' | 'complete' | 'renew' | 'leave' | 'wake' | 'collectChildren'> {
  return {
    claim({ pipeline, stage, worker, host, seq, limit, afterTimeout }) {
      const who = { p_pipeline: pipeline, p_stage: stage, p_worker: worker, p_host: host };
      const args = { ...who, p_seq: seq, p_limit: limit };
      return call(contract.claimAnswer, 'millrace_claim', args, false, claimLess(afterTimeout)).then(sweepIfDue);
    },
    complete({ worker, seq, items, limit, goodbye, afterTimeout }) {
      const args = { p_worker: worker, p_seq: seq, p_items: items, p_limit: limit, p_goodbye: goodbye };
      return call(contract.completeAnswer, 'millrace_complete', args, false, claimLess(afterTimeout)).then(sweepIfDue);
    },
    renew: (worker, attempts) =>
      call(contract.renewAnswer, 'millrace_renew', { p_worker: worker, p_attempts: attempts }, true),
    leave(worker, handOver, cost) {
      const costs = cost ? { p_row_cpu_ms: cost.cpuMs, p_row_bytes: Math.round(cost.bytes) } : {};
      return call(contract.leaveAnswer, 'millrace_leave', { p_worker: worker, p_hand_over: handOver, ...costs });
    },
    wake: (stages) => call(contract.wakeAnswer, 'millrace_wake', { p_stages: stages }),
    collectChildren: (fanOuts) =>
      call(contract.collectAnswer, 'millrace_collect_children', { p_fan_outs: fanOuts }, true),
  };
}

/** Calls of a worker for one attempt: for its children, and for its conversation with a model. */
function attemptCalls(call: Call): Pick<Engine, 'spawn' | 'turns' | 'checkpoint'> {
  return {
    spawn(worker, { attempt, token }, items, last) {
      const claimed = { p_worker: worker, p_attempt: attempt, p_token: token };
      return call(contract.spawnAnswer, 'millrace_spawn', { ...claimed, p_items: items, p_last: last });
    },
    turns: (worker, { attempt, token }) =>
      call(contract.turnsAnswer, 'millrace_turns', { p_worker: worker, p_attempt: attempt, p_token: token }),
    checkpoint(worker, { attempt, token }, turns) {
      const claimed = { p_worker: worker, p_attempt: attempt, p_token: token };
      return call(contract.checkpointAnswer, 'millrace_checkpoint', { ...claimed, p_turns: turns });
    },
  };
}

/** Calls of the function millrace and the stages' functions about jobs at external services. */
function jobCalls(
  call: Call,
  sweepIfDue: SweepIfDue,
): Pick<Engine, 'poll' | 'noteJobs' | 'noteFaults' | 'jobOwner' | 'resume'> {
  return {
    poll: (limit, pollMs) =>
      call(contract.pollAnswer, 'millrace_poll', {
        p_limit: limit,
        ...(pollMs === undefined ? {} : { p_poll_ms: pollMs }),
      }),
    noteJobs: (jobs) => call(contract.noteJobsAnswer, 'millrace_note_jobs', { p_jobs: jobs }, true),
    noteFaults: (faults) => call(contract.noteFaultsAnswer, 'millrace_note_faults', { p_faults: faults }, true),
    jobOwner: (job) => call(contract.jobOwnerAnswer, 'millrace_job_owner', { p_job: job }),
    resume: (items) => call(contract.resumeAnswer, 'millrace_resume', { p_items: items }).then(sweepIfDue),
  };
}

/**
 * Calls of the function millrace for alerts and metrics. A message that was taken by a call whose answer got lost is
 * put off, and sent later.
 */
function watchCalls(call: Call): Pick<Engine, 'takeMessages' | 'noteDeliveries' | 'metrics' | 'health'> {
  return {
    takeMessages: () => call(takenMessages, 'millrace_take_messages', {}, true),
    noteDeliveries: (deliveries) => call(notedDeliveries, 'millrace_note_deliveries', { p_deliveries: deliveries }),
    metrics: () => call(metricsAnswer, 'millrace_metrics', {}, true),
    health: () => call(healthAnswer, 'millrace_health', {}, true),
  };
}

/** Calls the database's functions through the Data API with the project's secret key. */
export function dataApiRpc(platform: Platform): Rpc {
  const client = dataApi(platform);
  return (name, args, signal) => client.rpc(name, args).abortSignal(signal);
}

async function tryCall(rpc: Rpc, name: string, args: Record<string, unknown>): Promise<RpcAnswer> {
  try {
    return await rpc(name, args, AbortSignal.timeout(CALL_TIMEOUT_MS));
  } catch (error) {
    return { data: null, error: { message: error instanceof Error ? error.message : String(error) }, status: 0 };
  }
}

function readAnswer<S extends z.ZodType>(schema: S, name: string, data: unknown): z.output<S> {
  const parsed = schema.safeParse(data);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new EngineRefusal(
    `${name} answered something else than these functions expect, at ${issue?.path.join('.') || 'the top'}: ` +
      `${issue?.message}. Deploy migrations and functions of the same version.`,
  );
}

/** postgrest-js reports a failed fetch as status 0. */
function isTransient(answer: RpcAnswer): boolean {
  return [0, 408, 429].includes(answer.status) || answer.status >= 500 || isLostConnection(answer);
}

/** Whether Postgres went away during the call: PostgREST answers 400 with an error that has no SQLSTATE, as every refusal has. */
function isLostConnection({ status, error }: RpcAnswer): boolean {
  return status === 400 && error?.code === '';
}

/** Returns whether the function may be there in a moment: an upgrade replaces all of them in one transaction. */
function mayBeUpgraded({ error }: RpcAnswer, began: number): boolean {
  return UPGRADE_CODES.includes(error?.code ?? '') && Date.now() < began + UPGRADE_MS;
}
