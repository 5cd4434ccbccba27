/** Test helpers for a project that uses Millrace: docs/testing.md. */

type Row = Record<string, unknown>;
type Env = Record<string, string | undefined>;

/** A stage as `defineStage()` or `defineMap()` returns it. */
export interface Stage {
  name: string;
  pipeline: { name: string };
  handler(input: unknown, context: never): unknown;
}

export interface CallOptions {
  /** The row, as the handler's input parses it; `{}` unless given. */
  row?: Row;
  /** The results of the stages that the stage needs, by their names. */
  needs?: Row;
  env?: Env;
  /** The row's key; the row's `id` unless given, else 1. */
  key?: string;
  /** The number of the attempt, 1 unless given. The run and its trace id (`trace-1`) have the number too. */
  attempt?: number;
  /** The attempt whose job the call goes on with; the attempt itself unless given. */
  submission?: number;
  retryCount?: number;
  /** Whether no other row is in work beside it. */
  isAlone?: boolean;
  /** In milliseconds; the stage's own timeout unless given. */
  timeoutMs?: number;
  /** Steps that an earlier call of the attempt recorded: the `steps` of its answer. */
  steps?: Row[];
  /** Called before each chunk of a map's children is started; an error that it throws ends the attempt. */
  beforeSpawn?(items: Row[], last: boolean): void;
}

/** A line of the handler's log. */
export interface LogLine extends Row {
  level: 'info' | 'warn' | 'error';
  message: string;
}

export interface Failure {
  code: string;
  message: string;
  permanent: boolean;
  retry_after_ms?: number;
  detail?: string;
  /** Of an unexpected error: where it was thrown. */
  stack?: string;
}

/** The outcome of a call, as the worker would report it, and the handler's traces. */
export interface Called {
  outcome: 'completed' | 'failed' | 'waiting' | 'released';
  /** The handler's result, as the stage's output schema makes it; undefined unless it completed. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads its own stage's result.
  result: any;
  /** Undefined unless it failed. */
  error: Failure | undefined;
  /** The handler's own error, as it was thrown. */
  thrown: unknown;
  /** The job that it waits for. */
  job: { service: string; id: string } | undefined;
  /** Of a row that was handed back: the limit that it asks to be alone for. */
  limit: string | undefined;
  lines: LogLine[];
  /** The usage that it reported: model, prompt, tokens and cost. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  usage: any;
  /** In dollars; null where nothing was reported. */
  costUsd: number | null;
  /** The chunks of children that a map started. */
  children: { items: Row[]; last: boolean }[];
  /** The steps that it recorded, for the next call's `steps`. */
  steps: Row[];
}

/** Runs a stage's handler on one row, as its worker does: settings, input, timeout and result are checked. */
export function callHandler(stage: Stage, options?: CallOptions): Promise<Called>;

/** Finishes a job of a stage, as its callback or a poll does. */
export function callFinish(stage: Stage, job: unknown, options?: CallOptions): Promise<Called>;

/** An answer other than what is asked for: a status, and what goes with it. */
export interface Fault {
  status: number;
  headers: Record<string, string>;
  body: unknown;
}

/** Answers a request with an HTTP status such as 429. */
export function refuses(
  status: number,
  options?: { code?: string; message?: string; retryAfterSeconds?: number },
): Fault;

/** A server on 127.0.0.1 that answers by a script. The process ends without waiting for it. */
interface Scripted {
  /** The settings by which handlers find it. */
  env: Record<string, string>;
  url: string;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ScriptedModel extends Scripted {
  /** The next answers: an object or a text, or a fault. The last one is repeated. */
  answers(...answers: unknown[]): void;
  /** The bodies of the requests so far. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  asked: any[];
}

/** Starts a model that speaks the Responses API. */
export function startModel(): Promise<ScriptedModel>;

export interface ScriptedService extends Scripted {
  name: string;
  /** The next job ends well, with this result. */
  completes(result: unknown): void;
  /** The next job ends badly. */
  fails(error: { code: string; message: string; permanent?: boolean; retry_after_ms?: number }): void;
  /** The next job never ends, so that the stage's deadline ends it. */
  hangs(): void;
  /** The next job is forgotten: it calls nobody back, and a poll finds it nowhere. */
  forgets(): void;
  /** The next submission is answered with an HTTP status. */
  refuses(status: number, options?: Parameters<typeof refuses>[1]): void;
  /** The submissions so far, with their headers. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  submitted: { body: any; headers: Record<string, string | string[] | undefined> }[];
}

/** Starts a service of the protocol of docs/services.md, as `jobService({ name })` calls it. */
export function startService(name: string): Promise<ScriptedService>;

/**
 * The work of a stage in a test: the stage's own code, a result, or a function of the input in the place of the handler. A stage
 * of kind map takes the list of its items.
 */
export type StageWork = Stage | ((input: { entity: Row; needs: Row }, context: never) => unknown) | object | null;

export interface PipelineOptions {
  /** By stage, or PIPELINE.STAGE for a child pipeline's. A stage without an entry runs its own handler. */
  stages?: Record<string, StageWork>;
  env?: Env;
  /** Models and services whose settings the handlers get, and which call back. */
  services?: (ScriptedModel | ScriptedService)[];
  /** When the clock begins; now unless given. */
  at?: Date | string;
  /** The folder that holds `supabase/`; the nearest above the working directory unless given. */
  root?: string;
}

export interface StageState {
  state: 'pending' | 'queued' | 'started' | 'waiting' | 'completed' | 'failed' | 'cancelled' | 'skipped';
  tries: number;
  error: Failure | null;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  result: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  usage: any;
}

export interface RowState {
  run: string;
  status: 'running' | 'completed' | 'failed' | 'cancelled';
  stages: Record<string, StageState>;
}

type Key = string | number;

export interface RowExpectation {
  /**
   * Works until the row's run has completed. The clock goes on to each retry and poll, by at most `within` in all (default:
   * `1 day`). The error of a run that has not completed says where each stage stands.
   */
  toComplete(options?: { within?: string }): Promise<RowState>;
  /** Works until the row's run has failed, at the stage and with the code that are given. */
  toFail(expected?: { stage?: string; code?: string; within?: string }): Promise<RowState>;
}

export interface TestPipeline {
  name: string;
  /** Rows of a statement, run as `postgres`. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  sql<T = any>(statement: string, values?: unknown[]): Promise<T[]>;
  /** Inserts a row into the pipeline's table, or another; returns its key. */
  insert(row: Row, table?: string): Promise<string>;
  /** Inserts a row and starts a run of it; returns its key. */
  begin(row: Row): Promise<string>;
  /** Starts a run of a row, from a stage on where one is named. */
  start(key: Key, stage?: string): Promise<void>;
  /** Answers a stage that waits for a person. */
  decide(key: Key, stage: string, answer: unknown): Promise<void>;
  /** Does all work that is due, of this pipeline and its children, and sweeps. */
  work(): Promise<void>;
  /** Moves the clock on, by an interval such as `2 days`, and does what is due then. */
  advance(interval: string): Promise<void>;
  now(): Promise<Date>;
  /** Where the newest run of a row stands. */
  row(key: Key): Promise<RowState>;
  expectRow(key: Key): RowExpectation;
  /** The lines that handlers wrote so far. */
  lines: LogLine[];
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Opens a pipeline on a database of its own: the project's migrations, and what `millrace sync` would add to them. Time
 * stands still until `advance()` or an expectation moves it on.
 */
export function openPipeline(name: string, options?: PipelineOptions): Promise<TestPipeline>;
