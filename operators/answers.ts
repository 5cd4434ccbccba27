// Answers of the database's functions for operators, with the fields that the page shows.
import type { AlertFacts } from '../supabase/functions/_millrace/engine/alert-contract.ts';
import type { Usage } from '../supabase/functions/_millrace/engine/engine-contract.ts';
import type { HealthFault } from '../supabase/functions/_millrace/engine/metrics-contract.ts';

export interface Throttle {
  limits: Record<string, unknown>;
  until: string;
  reason: string | null;
  by: string | null;
}

export interface Pause {
  at: string | null;
  /** When a bypass ends by itself. */
  until?: string | null;
  by: string | null;
  reason: string | null;
}

/** Why nobody takes up what is ready at a stage. */
export interface Unattended {
  since: string;
  /** The reason, such as `nobody takes it up: leads-strategy answered 503 14 s ago: the function did not start`. */
  why: string;
  remedy: string;
  function_name: string;
}

/** Why attempts of a stage are in backoff: the newest failure of those that are due first. */
export interface Backoff {
  /** The failure's code; left out where no attempt has failed, as where a quota keeps all of them back. */
  code?: string;
  message?: string;
  /** When the attempt failed. */
  at?: string;
  /** When the first attempt in backoff is due. */
  next_at: string;
}

/** Whether all is well, as the database says it everywhere. */
export interface Well {
  ok: boolean;
  /** The most urgent first, up to twenty. */
  faults: HealthFault[];
  /** How many there are besides. */
  more: number;
  /** How many open alerts are silenced or no longer above their bounds. Not in the answer of an earlier release. */
  quiet_alerts?: number;
  /** How many runs failed in the last day and have not been taken up: `1,000+` may be more. */
  dead_last_day: string;
}

/** How many attempts of a stage are queued, in work and ended. */
export interface StageHealth {
  pipeline: string;
  stage: string;
  enabled: boolean;
  ready: number;
  in_backoff: number;
  started: number;
  waiting: number;
  completed: number;
  failed: number;
  retries: number;
  oldest_age: number | null;
  live_workers: number;
  late: number;
  /** Which of these counts stopped at their bound, so that there are more. */
  at_least?: string[] | null;
  paused: Pause | null;
  throttle: Throttle | null;
  bypass: Pause | null;
  unattended?: Unattended;
  backoff?: Backoff;
  /** How many workers there may be; null for a stage that no function runs. */
  max_workers?: number | null;
  /** The CPU of an isolate that one row takes, in milliseconds. */
  row_cpu_ms?: number | null;
  /** With quiet stages alone: the function, since when each release works, the newest first, and what a row takes. */
  function?: string | null;
  releases?: { release: string; at: string }[] | null;
  costs?: { memory_bytes: number | null; lives_cut: number } | null;
  /** The worker of a stage on hosts of the project's own; empty before the first one has asked for work. */
  worker?: WorkerSeen;
}

/** The process that last asked for work at a stage. */
export interface WorkerSeen {
  seen_at?: string;
  release?: string;
  /** The address at which the process is woken. */
  url?: string;
}

export interface PipelineHealth {
  pipeline: string;
  enabled: boolean;
  paused: Pause | null;
  open_alerts: string;
  /** How many stages the pipeline has; the overview leaves out stages that have nothing to do. */
  stages: number;
}

export interface Overview {
  now: string;
  you: { subject: string | null; role: string; payloads: boolean };
  /** Not in the answer of an earlier release. */
  well?: Well;
  /** `-infinity` before the first sweep. */
  last_sweep_at: string | null;
  installed_at: string | null;
  pipelines: PipelineHealth[];
  stages: StageHealth[];
  /** With quiet stages alone: what each function answered to its newest wake-up of the last six hours. */
  answers?: LastAnswer[] | null;
  bulks: Bulk[];
}

export interface LastAnswer {
  function_name: string;
  /** The answer in words, such as `answered 503`. */
  answered: string;
  means: string;
  /** Null where the function answered well. */
  remedy: string | null;
  answered_at: string;
}

/** The parts of a limit; a part that the limit does not set is missing. */
export interface Allowed {
  max_in_flight?: number;
  rate?: { count: number; per_seconds: number };
  key_rate?: { count: number; per_seconds: number };
  spending?: { usd?: number; tokens?: number; per_seconds: number };
  /** How many of each value of a column at once; a gate without a limit gives each its turn. */
  concurrency?: { column: string; part?: string; limit?: number };
  back_pressure?: { stage: string; backlog: number }[];
}

export interface SharedLimit {
  limit: string;
  stages: string[];
  today: Allowed;
  in_flight: number;
  spent_usd: number | null;
  spent_tokens: number | null;
  window_ends_at: string | null;
  /** The stages for which its budget pays nothing more. */
  spent_for: string[];
  paused_until: string | null;
  /** The keys that a service's refusal has paused, each until a time. */
  keys: { key: string; until: string }[];
  throttle: Throttle | null;
}

export interface LimitedStage {
  pipeline: string;
  stage: string;
  limits: Allowed;
  shared: string[];
  in_flight: number;
  /** How many may begin now; null without a rate. */
  starts: number | null;
  ready: number;
  at_least?: string[] | null;
  oldest_age: number | null;
  throttle: Throttle | null;
}

export interface Quota {
  pipeline: string;
  key: string | null;
  kind: 'starts' | 'spending';
  used: number;
  allowed: number | null;
  quota_blocked: number;
  next_at: string | null;
}

export interface Limits {
  limits: SharedLimit[];
  stages: LimitedStage[];
  quotas: Quota[];
}

export interface StatusValue {
  /** Null for rows that have no value yet. */
  value: string | null;
  name: string | null;
  description: string | null;
  layer: string | null;
  rows: number;
  oldest: string | null;
  median: string | null;
}

export interface Status {
  table: string;
  column: string;
  values: StatusValue[];
  looked: number;
  /** Whether these are all rows of the table. */
  whole: boolean;
  moves: { from: string | null; to: string; by: 'engine' | 'person' | 'call'; means: string }[];
}

export interface StatusRow {
  entity: string;
  since: string | null;
  run: ListedRun | null;
}

export interface Operator {
  subject: string;
  role: string;
  pipelines: string[] | null;
  payloads: boolean;
  note: string;
  added_at: string;
}

export interface Channel {
  channel: string;
  kind: string;
  enabled: boolean;
  has_address: boolean;
  last: { state: string; tries: number; error: string | null; at: string } | null;
}

export interface DefinedPipeline {
  pipeline: string;
  table: string;
  projection: string;
  version: number | null;
  since: string | null;
  retention_days: number;
  /** Days after which finished runs lose results and log lines; null for with the run. */
  outputs_days: number | null;
  /** The column by which the sweep starts its runs. */
  due_column?: string | null;
  /** When the next row becomes due, and how many do within an hour, counted to 1,001. */
  due?: { next: string | null; soon: number } | null;
}

/** A job of pg_cron, with its newest run that is over. */
export interface Job {
  job: string;
  schedule: string;
  active: boolean;
  last: { status: 'succeeded' | 'failed'; began_at: string; message: string } | null;
}

export interface Settings {
  /** All of them, for one who acts on all pipelines; oneself alone for others. */
  operators: Operator[];
  channels: Channel[];
  /** Null for whoever does not see all pipelines. */
  jobs?: Job[] | null;
  settings: { name: string; value: string }[];
  pipelines: DefinedPipeline[];
  /** Null for whoever does not see all pipelines. */
  findings: Finding[] | null;
}

/** Something that does not hold, with what was found and what helps. */
export interface Finding {
  what: string;
  detail: string;
}

export interface Version {
  version: number;
  since: string;
  graph: unknown;
}

export interface Bulk {
  bulk: number;
  state: 'previewed' | 'running' | 'done' | 'aborted';
  do: { verb: string; stage?: string };
  filter: Record<string, unknown> & { pipeline: string };
  by?: string;
  reason?: string;
  why?: string;
  /** cost_usd: about, by what a completed attempt of each stage that it begins has cost in the mean. */
  preview: { runs: string; oldest?: string | null; newest?: string | null; cost_usd?: number };
  began_at?: string;
  ended_at?: string;
  /** The run that was tried before the rest. */
  tried?: number;
  done: number;
  passed_over: number;
  faults: number;
  locked: number;
  faults_by_run?: { run: number; code: string; message: string }[];
}

/** Figures of one step of time, or of the whole stretch. */
export interface Figures {
  at: string;
  completed: number;
  ended: number;
  failed: number;
  retried: number;
  skipped: number;
  cancelled: number;
  run_p50_ms: number | null;
  run_p95_ms: number | null;
  wait_p50_ms: number | null;
  wait_p95_ms: number | null;
  cost_usd: number;
  codes: Record<string, number>;
  /** The most rows that were ready at once, of up to 10,000 a stage, and the highest age of one. Sampled each minute. */
  ready: number;
  oldest_ms: number | null;
}

export interface StageFigures extends Figures {
  /** How many attempts completed in each minute or hour; null where none has. */
  trend?: Record<string, number> | null;
}

export interface Series {
  points: Figures[];
  /** The figures of each stage over all steps, where the request asks for them. */
  stages?: Record<string, StageFigures>;
}

/** The results of a stage, among the newest runs, by what made them: a change of the stage touches them. */
export interface Touched {
  /** How many runs these are. */
  looked: number;
  /** Whether there are no others. */
  whole: boolean;
  /** cost_usd: what the results, and the stages behind them, have cost. run_ids: of 1,000 rows at most. */
  made: {
    model: string | null;
    prompt: string | null;
    release: string | null;
    rows: number;
    run_ids: number[];
    cost_usd: number;
  }[];
}

/** The costs of attempts since a time, and the dearest of the newest runs. */
export interface Costs {
  /** The beginning of an hour or of a day. */
  since: string;
  /** The hours or days that have costs, those of the same time before, too. */
  points: { at: string; usd: number }[];
  /** The 500 highest of each kind. An empty name: no model or tenant was named; null: the others. */
  shares: {
    kind: 'pipeline' | 'stage' | 'model' | 'tenant';
    pipeline: string | null;
    name: string | null;
    usd: number;
  }[];
  /** Among how many runs the dearest were found. */
  looked: number;
  /** Whether no other runs are of this time. */
  whole: boolean;
  dearest: (ListedRun & { usd: number })[];
}

export interface Fault {
  code?: string;
  message?: string;
  hint?: string;
  detail?: string;
  stack?: string;
}

export interface ListedRun {
  run: number;
  pipeline: string;
  entity: string;
  label?: string;
  status: 'running' | 'completed' | 'failed' | 'cancelled';
  ended_as?: string;
  trace?: string;
  began_at: string;
  ended_at?: string;
  parent?: number;
  item?: string;
  /** The run of which this one is a copy. */
  copy_of?: number;
  at?: { stage: string; state: string; attempt: number; retries: number; due_at?: string; error?: Fault }[];
}

export interface JournalEntry {
  journal_entry: number;
  at: string;
  verb: string;
  pipeline?: string;
  stage?: string;
  runs?: number;
  run_ids?: number[];
  by?: string;
  key?: string;
  filter?: Record<string, unknown>;
  reason?: string;
  bulk?: number;
  outcome?: Record<string, unknown>;
}

export interface Attempt {
  attempt: number;
  stage: string;
  number: number;
  state: string;
  parent?: number;
  retries: number;
  queued_at: string;
  due_at?: string;
  started_at?: string;
  ended_at?: string;
  deadline_at?: string;
  service?: string;
  error?: Fault;
  /** The last lines of its log, where they were kept. */
  log?: string;
  /** The days after which its result and log were deleted; left out while they are there. */
  deleted_after?: number;
  /** Sentences of the result about what it may lack. */
  doubts?: string;
  superseded?: boolean;
}

/** An attempt with what its lists leave out. Result, usage, form and row are there for operators who may see payloads. */
export interface WholeAttempt extends Attempt {
  payloads: boolean;
  output: Payload | null;
  /** The schemas of the stage's result and of the row's columns; null before its function has told them. */
  form?: { result?: Record<string, unknown>; row?: Record<string, unknown> } | null;
  row?: Record<string, unknown> | null;
  usage?: Partial<Usage> | null;
}

export interface Payload {
  value?: unknown;
  cut?: string;
  bytes?: number;
}

/** The maker of a stage's result: the attempt, which an earlier run may have had, and what it reported. */
export interface MadeBy {
  attempt: number;
  run: number;
  /** The attempt of an earlier run that made it, where that is deleted. */
  taken_from?: number;
  /** `by_hand` for a person. */
  service?: string;
  model?: string;
  prompt?: string;
  /** A former answer of the model was given again. */
  cached?: boolean;
  cost_usd?: number | null;
  release?: string;
}

export interface Run extends ListedRun {
  version: number;
  stages: { stage: string; kind: string; state: string; needs: string[]; made_by?: MadeBy | null }[];
  children: {
    stage: string;
    pipeline: string;
    spawned: number;
    completed: number;
    failed: number;
    cancelled: number;
  }[];
  /** The stages of it at which nobody takes up what is ready. */
  unattended?: ({ stage: string } & Unattended)[];
  attempts: Attempt[];
  cost_usd: number | null;
  /** How many attempts have usage for which the provider reported no tokens; cost_usd leaves them out. */
  unreported: number;
  metadata: Payload | null;
  table: { name: string; id: number; key: string };
  turns: Turn[];
  decisions: Decision[];
  journal: JournalEntry[];
}

/** A turn of an agent. Its texts are there only for operators who may see payloads. */
export interface Turn {
  stage: string;
  stage_run: number;
  turn: number;
  kind: 'model' | 'tool';
  /** The attempt that asked. */
  attempt: number;
  what: string;
  tool?: string;
  tokens?: number;
  cost_usd?: number;
  at: string;
  asked?: string;
  arguments?: string;
  output?: string;
}

/** A question to a person, and its answer where it has one. */
export interface Decision {
  attempt: number;
  stage: string;
  asked_at: string;
  deadline_at?: string;
  decided_at?: string;
  decided_by?: string;
  closed_why?: string;
  closed_at?: string;
  schema: unknown;
  decision?: Payload;
}

export interface Pipeline {
  pipeline: string;
  enabled: boolean;
  paused: Pause | null;
  table: string;
  version: number;
  health: StageHealth[];
  stages: StageDefinition[];
}

export interface StageDefinition {
  stage: string;
  kind: string;
  function?: string;
  needs: string[];
  enabled: boolean;
  /** How many rows a bypass has left out that nobody has taken up since: 10,000 may be more. */
  left_out?: number;
}

export interface DeadGroup {
  pipeline: string;
  stage: string;
  error_code: string;
  runs: string;
  oldest: string;
  newest: string;
}

/** The facts of an alert, of which sayAlert() makes a sentence. */
export interface Alert extends AlertFacts {
  id: number;
  kind: string;
  rule: string;
  pipeline: string | null;
  stage: string | null;
  playbook: string | null;
  raised_at: string;
  resolved_at: string | null;
}
