import '../zod-settings.ts';
import { z } from 'zod';
import type { Failure } from '../errors.ts';

const wakeTarget = z.object({ pipeline: z.string(), stage: z.string(), function: z.string() });
/** The stages that the engine wants woken. */
const wake = z.array(wakeTarget);

const item = z.object({
  attempt: z.number(),
  token: z.string(),
  run: z.number(),
  trace_id: z.string(),
  version: z.number(),
  entity_id: z.string(),
  entity: z.record(z.string(), z.unknown()),
  needs: z.record(z.string(), z.unknown()),
  retry_count: z.number(),
  submission: z.number(),
  /** The first attempt of this stage run of the stage: retries go on from it, a reset begins another. */
  stage_run: z.number(),
  isolated: z.boolean(),
  /** Why the engine hands out neither row nor results. The worker reports it as a permanent failure and runs no handler. */
  failure: z.object({ code: z.string(), message: z.string() }).nullish(),
});

const verdict = z.object({
  attempt: z.number().nullish(),
  verdict: z.enum(['accepted', 'duplicate', 'stale', 'busy', 'rejected']),
  reason: z.string().nullish(),
});

const stageLimits = z.object({
  batch_size: z.number(),
  timeout_ms: z.number(),
  result_limit_bytes: z.number(),
  /** CPU that a row took in earlier isolates, in milliseconds; null where no isolate has reported it. */
  row_cpu_ms: z.number().nullish(),
});

/** Fan-outs whose children have reported something. */
const collect = z.array(z.number()).default([]);

/** Whether the last sweep is over a minute old: then the client calls millrace_sweep. */
const sweep_due = z.boolean().default(false);

const admitted = z.object({
  status: z.enum(['working', 'empty']),
  reason: z.string().nullish(),
  lease_ms: z.number(),
  stage: stageLimits,
  batch: z.array(item),
  wake,
  /** After how long to ask again when the stage's limits left nothing to take; null when waiting would be no use. */
  wait_ms: z.number().nullish(),
  /** Whether the engine cut the batch at the most bytes that one may have, with more queued. */
  cut: z.boolean().default(false),
  /** Whether the worker is signed off: it had said goodbye, and there was nothing to claim. */
  left: z.boolean().default(false),
  collect,
  sweep_due,
});
const refused = z.object({
  status: z.literal('refused'),
  reason: z.string().nullish(),
  wake: wake.default([]),
  collect,
  sweep_due,
});
const verdicts = { items: z.array(verdict) };

export const claimAnswer = z.discriminatedUnion('status', [admitted, refused]);
export const completeAnswer = z.discriminatedUnion('status', [admitted.extend(verdicts), refused.extend(verdicts)]);
export const renewAnswer = z.object({ renewed: z.number(), lost: z.array(z.number()) });
export const leaveAnswer = z.object({ left: z.boolean(), wake });
export const wakeAnswer = z.object({ woken: z.number() });
export const resumeAnswer = z.object({ items: z.array(verdict), wake, collect, sweep_due });
export const sweepAnswer = z.object({ swept: z.boolean() });
export const collectAnswer = z.object({ wake, busy: z.array(z.number()), collect });
/** A job whose poll is due. */
export const waitingJob = z.object({
  attempt: z.number(),
  submission: z.number(),
  trace_id: z.string(),
  pipeline: z.string(),
  stage: z.string(),
  /** The Edge Function that runs the stage. */
  function: z.string(),
  service: z.string(),
  job_id: z.string(),
  entity_id: z.string(),
  deadline_at: z.string().nullish(),
  /** Whether the engine wants to hear, by `noteJobs`, that the job is queued at its service or running. */
  awaits_start: z.boolean(),
});
export const pollAnswer = z.object({ jobs: z.array(waitingJob), more: z.boolean() });
/** How many of the jobs the report changed. */
export const noteJobsAnswer = z.object({ noted: z.number() });
export const noteFaultsAnswer = z.object({ noted: z.number() });
/** The owner of a job; null when no attempt has the job's id, two waiting attempts have it, or its stage is unknown. */
export const jobOwnerAnswer = z
  .object({
    function: z.string(),
    service: z.string(),
    pipeline: z.string(),
    stage: z.string(),
    submission: z.number(),
    trace_id: z.string(),
    entity_id: z.string(),
    /** True if the attempt has ended, so that the job’s result is ignored. */
    ended: z.boolean().default(false),
  })
  .nullable();

const turnUsage = z.object({
  model: z.string(),
  prompt: z.string().optional(),
  input_tokens: z.number().nullable(),
  output_tokens: z.number().nullable(),
  cost_usd: z.number().nullable(),
  unreported: z.literal(true).optional(),
  unpriced: z.literal(true).optional(),
  priced_at: z.string().optional(),
  call: z.string().optional(),
  cached_input_tokens: z.number().optional(),
  cache_write_tokens: z.number().optional(),
});
const turn = z.discriminatedUnion('kind', [
  z.object({
    seq: z.number(),
    kind: z.literal('model'),
    content: z.object({
      /** The first message; only the first turn has it. */
      asked: z.string().optional(),
      /** The items of the response. */
      output: z.array(z.looseObject({ type: z.string() })),
      /** Why the response was paid for but is no part of the conversation. */
      discarded: z.string().optional(),
    }),
    usage: turnUsage,
    attempt: z.number(),
  }),
  z.object({
    seq: z.number(),
    kind: z.literal('tool'),
    call_id: z.string(),
    content: z.object({ name: z.string(), arguments: z.string(), output: z.string(), failed: z.boolean() }),
    attempt: z.number(),
  }),
]);
const agentLimits = z.object({
  // An agent without a limit must not go on for ever.
  max_turns: z.number().default(50),
  max_tokens: z.number().optional(),
  max_cost_usd: z.number().optional(),
  max_seconds: z.number().optional(),
});
const staleAnswer = z.object({ status: z.literal('stale'), reason: z.string() });
export const spawnAnswer = z.discriminatedUnion('status', [
  z.object({ status: z.literal('spawned'), fan_out: z.number(), spawned: z.number(), wake }),
  /** The keys of items whose rows are locked; empty: the parent is locked. */
  z.object({ status: z.literal('busy'), busy: z.array(z.string()).default([]), wake }),
  staleAnswer,
]);
export const turnsAnswer = z.discriminatedUnion('status', [
  z.object({ status: z.literal('current'), elapsed_ms: z.number(), limits: agentLimits, turns: z.array(turn) }),
  staleAnswer,
]);
export const checkpointAnswer = z.discriminatedUnion('status', [
  z.object({ status: z.enum(['accepted', 'duplicate']), next_seq: z.number() }),
  z.object({ status: z.literal('busy'), reason: z.string() }),
  staleAnswer,
]);

/** A stage that the engine wants woken, and the function to wake for it. */
export type WakeTarget = z.output<typeof wakeTarget>;
/** One claimed attempt, with all that its handler needs. */
export type Item = z.output<typeof item>;
/** An attempt under the token of its claim. */
export type ClaimedAttempt = Pick<Item, 'attempt' | 'token'>;
/** The engine's answer to one outcome; answers come in the order of the items. */
export type Verdict = z.output<typeof verdict>;
export type Claim = z.output<typeof claimAnswer>;
export type Completion = z.output<typeof completeAnswer>;
export type StageLimits = z.output<typeof stageLimits>;
export type WaitingJob = z.output<typeof waitingJob>;

/** A service's report of a job that has not ended: it waits in the service's queue, or it runs. */
export type JobReport = Pick<WaitingJob, 'attempt' | 'service' | 'job_id'> & { state: 'queued' | 'running' };

/** An error of a job that was polled, called back about or finished. */
export interface JobFault {
  /** The submission of the job; null for a callback that cannot be assigned to one. */
  submission: number | null;
  service: string;
  job_id: string | null;
  code: string;
  message: string;
}

/** One turn of an agent's conversation, and the attempt that took it. */
export type Turn = z.output<typeof turn>;
/** An answer of the model. */
export type ModelTurn = Extract<Turn, { kind: 'model' }>;
/** A turn as the runtime records it: the engine knows the attempt. */
export type NewTurn = Turn extends infer T ? (T extends Turn ? Omit<T, 'attempt'> : never) : never;
export type AgentLimits = z.output<typeof agentLimits>;

/** Usage of an attempt: a flat object, which the engine stores on the attempt as it is. */
export interface Usage {
  model: string;
  /** The version of the prompt. */
  prompt?: string;
  /** The kind of the call, and its provider where its address tells it, such as `chat openai`. */
  call?: string | undefined;
  input_tokens: number | null;
  output_tokens: number | null;
  /** Of a transcription. */
  audio_seconds?: number;
  cost_usd: number | null;
  /** Of the input, tokens that the provider read from its cache of prompts, and those that it wrote into it. */
  cached_input_tokens?: number;
  cache_write_tokens?: number;
  /** The provider reported no tokens, so that the cost is unknown. */
  unreported?: true | undefined;
  /** The model's price is unknown, and so is the cost. */
  unpriced?: true | undefined;
  /** The day of the published prices by which the cost was reckoned. */
  priced_at?: string;
  /** The answer came from a provider's batch, at its lower price. */
  batch?: boolean;
  /** The answer is a former answer: no model was asked. */
  cached?: boolean;
  /** Of an agent: how often this attempt asked the model, and the usage of all attempts of its stage run. */
  turns?: number;
  stage_run_turns?: number;
  stage_run_tokens?: number;
  stage_run_cost_usd?: number | null;
}

/** The usage as it is recorded, with the last lines of the attempt's log. */
export type RecordedUsage = Partial<Usage> & { log?: string };

/** A limit for which the platform ends a function. */
export type PlatformLimit = 'cpu' | 'memory';

/** A worker's report of an attempt that it holds. */
export type Outcome =
  | { outcome: 'completed'; result: unknown; usage?: RecordedUsage }
  | { outcome: 'failed'; error: Failure; usage?: RecordedUsage }
  | { outcome: 'waiting'; service: string; job_id: string; usage?: RecordedUsage }
  /**
   * `limit`: the limit of the platform that the function reached with this attempt in work, or would reach beside other
   * rows.
   */
  | { outcome: 'released'; limit?: PlatformLimit | undefined };

export type OutcomeItem = { attempt: number; token: string } & Outcome;

/** The outcome of an external job. */
export type JobOutcome = Extract<Outcome, { outcome: 'completed' | 'failed' }>;
export type JobOutcomeItem = JobOrigin & { service: string; job_id: string } & JobOutcome;

/** Where a job was submitted. The engine takes its end only for an attempt of this stage and trace. */
export interface JobOrigin {
  pipeline: string;
  stage: string;
  submission: number;
  trace_id: string;
  entity_id: string;
}

/** The cost of one row to an isolate: milliseconds of CPU and bytes of memory. */
export interface RowCost {
  cpuMs: number;
  bytes: number;
}

/** A job as a callback names it: by the attempt it was submitted for, or by its id. */
export type JobName = JobOrigin | { job_id: string };

/** A child of a map: its key, which no sibling has, and the arguments of the insert function. */
export type ChildItem = { key: string | number } & Record<string, unknown>;
