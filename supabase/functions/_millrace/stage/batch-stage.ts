import type { z } from 'zod';
import type { PipelineDefinition } from '../define/define-pipeline.ts';
import type { Usage } from '../engine/engine-contract.ts';
import { PermanentError, RetriableError } from '../errors.ts';
import type { SettingsGroup } from '../settings.ts';
import { rowsToPutBack } from './rows-to-put-back.ts';
import type { Service } from './service.ts';
import { type Finish, HandedBack, type HandlerContext, type Stage, stageOf, type Waiting } from './stage.ts';

/** A row of a call. */
export interface BatchRow<Input> {
  input: Input;
  /** The row's own context, with its keys for services. Its `reportUsage` records the cost of this row alone. */
  context: HandlerContext;
}

/** Context of a call for many rows. `traceId` and `submission` are those of the first row. */
export interface BatchContext
  extends Pick<HandlerContext, 'pipeline' | 'stage' | 'traceId' | 'submission' | 'timeoutMs' | 'env' | 'log'> {
  /** Aborted when no row of the call is wanted any more: at the stage's timeout, or when the worker ends. */
  signal: AbortSignal;
  /** Records the usage of the call, shared evenly by the rows that have not reported their own. */
  reportUsage(usage: Usage): void;
}

/** The outcome of one row: its result, an error that fails it alone, a job to wait for, or its return into the queue. */
export type RowOutcome<Output> = Output | Error | Waiting | HandedBack;

/**
 * The outcomes of a call: a list in the order of its rows, or a map by the rows. A row without one is retried as
 * `no_outcome`.
 */
export type RowOutcomes<Input, Output> =
  | readonly (RowOutcome<Output> | undefined)[]
  | ReadonlyMap<BatchRow<Input>, RowOutcome<Output>>;

export interface BatchStageOptions<Input extends z.ZodType, Output extends z.ZodType, Name extends string> {
  pipeline: PipelineDefinition<Name>;
  stage: NoInfer<Name>;
  /** Parses `{ entity, needs }` of each row. A row that it refuses fails alone. */
  input: Input;
  /** Checks each row's result. */
  output: Output;
  /** The most rows of one call; a worker must hold at least as many. */
  maxRows: number;
  /** Groups of settings the stage cannot work without. */
  settings?: readonly SettingsGroup[];
  /** The services that rows may wait for. */
  services?: readonly Service[];
  /** Turns a job of such a service into the stage's output. */
  finish?: Finish<z.input<Output>>;
  handler(
    rows: readonly BatchRow<z.output<Input>>[],
    context: BatchContext,
  ): RowOutcomes<z.output<Input>, z.input<Output>> | Promise<RowOutcomes<z.output<Input>, z.input<Output>>>;
}

/**
 * Joins the code of a stage whose handler takes many rows in one call with its definition. A worker has at most one call in
 * work; rows that come meanwhile are the next call. A retriable error that the handler throws fails all rows of the call. After a
 * permanent one the call is made again for each half of the rows, until the row that causes it stands alone.
 *
 * Throws as defineStage() does, and where `maxRows` is more than a worker holds.
 *
 * @example
 * ```ts
 * export const pack = defineBatchStage({
 *   pipeline: orders,
 *   stage: 'pack',
 *   maxRows: 10,
 *   input: z.object({ entity: z.object({ id: z.string() }) }),
 *   output: z.object({ packed: z.string() }),
 *   handler: (rows) => rows.map(({ input }) => ({ packed: input.entity.id })),
 * });
 * ```
 */
export function defineBatchStage<Input extends z.ZodType, Output extends z.ZodType, Name extends string>(
  options: BatchStageOptions<Input, Output, Name>,
): Stage {
  const { pipeline, stage: name, input, output, maxRows, settings, services = [], finish } = options;
  const calls = new Calls(options.handler as unknown as CallHandler, maxRows);
  const stage = stageOf({
    pipeline,
    stage: name,
    input,
    output,
    settings,
    services,
    finish: finish as Finish<unknown> | undefined,
    handler: (given, context) => calls.take({ input: given, context }),
  });
  const { batchSize, concurrency = 50 } = stage.definition;
  const most = batchSize ?? Math.min(50, concurrency);
  if (!Number.isInteger(maxRows) || maxRows < 1 || maxRows > most) {
    throw new Error(
      `maxRows of stage ${name} of pipeline ${pipeline.name} is ${maxRows}, but must be a whole number from 1 to ${most}, ` +
        'the rows that a worker holds: raise batchSize in the definition, or lower maxRows.',
    );
  }
  return stage;
}

type Row = BatchRow<unknown>;
type CallHandler = (rows: readonly Row[], context: BatchContext) => unknown;

interface Gathered {
  row: Row;
  resolve(outcome: unknown): void;
  reject(error: unknown): void;
  /** Records the row's share of the usage of its call. */
  reportShare(usage: Usage): void;
  /** Whether the row has reported a usage of its own. */
  hasUsage: boolean;
}

/** Gathers the rows of one stage, and makes one call after the other. */
class Calls {
  private gathered: Gathered[] = [];
  private isCalling = false;

  constructor(
    private readonly handler: CallHandler,
    private readonly maxRows: number,
  ) {
    rowsToPutBack.add(() => this.putBack());
  }

  /** Resolves to the outcome of a row, once its call has ended. */
  take({ input, context }: Row): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const reportUsage = (usage: Usage) => {
        gathered.hasUsage = true;
        context.reportUsage(usage);
      };
      const gathered: Gathered = {
        row: { input, context: { ...context, reportUsage } },
        resolve,
        reject,
        reportShare: context.reportUsage,
        hasUsage: false,
      };
      this.gathered.push(gathered);
      // All rows of a claim come before the microtask runs, so one call takes them.
      queueMicrotask(() => void this.callAll());
    });
  }

  /** Puts the rows back that no call has taken. */
  private putBack(): void {
    for (const { resolve } of this.gathered) resolve(new HandedBack());
    this.gathered = [];
  }

  private async callAll(): Promise<void> {
    if (this.isCalling) return;
    this.isCalling = true;
    while (this.gathered.length > 0) {
      await this.call(this.gathered.splice(0, this.maxRows));
    }
    this.isCalling = false;
  }

  /** Makes one call, and after a permanent error one for each half of its rows. */
  private async call(given: Gathered[]): Promise<void> {
    // The worker has let go of a row whose signal is aborted.
    const some = given.filter(({ row }) => !row.context.signal.aborted);
    if (some.length === 0) return;
    try {
      const outcomes = await callOnce(this.handler, some);
      if (Array.isArray(outcomes) && outcomes.length > some.length) {
        const counts = `The call for ${some.length} rows returned ${outcomes.length} outcomes`;
        throw new RetriableError('no_outcome', `${counts}, and which are whose is unknown: return one for each row.`);
      }
      for (const [at, { row, resolve, reject }] of some.entries()) {
        const outcome = outcomeOf(outcomes, row, at);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      }
    } catch (error) {
      if (!(error instanceof PermanentError) || some.length === 1) {
        for (const { reject } of some) reject(error);
        return;
      }
      const middle = Math.ceil(some.length / 2);
      await this.call(some.slice(0, middle));
      await this.call(some.slice(middle));
    }
  }
}

/** Calls the handler. Resolves to undefined as soon as no row is wanted any more, even if the handler ignores its signal. */
async function callOnce(handler: CallHandler, some: Gathered[]): Promise<unknown> {
  const rows = some.map(({ row }) => row);
  const [{ context }] = rows as [Row, ...Row[]];
  const controller = new AbortController();
  const { promise: unwanted, resolve } = withResolve();
  const watch = () => {
    if (!rows.every((row) => row.context.signal.aborted)) return;
    controller.abort(context.signal.reason);
    resolve();
  };
  for (const row of rows) row.context.signal.addEventListener('abort', watch);
  try {
    const { pipeline, stage, traceId, submission, timeoutMs, env, log } = context;
    const own = { signal: controller.signal, reportUsage: (usage: Usage) => share(usage, some) };
    const working = handler(rows, { pipeline, stage, traceId, submission, timeoutMs, env, log, ...own });
    return await Promise.race([working, unwanted]);
  } finally {
    for (const row of rows) row.context.signal.removeEventListener('abort', watch);
  }
}

/** A promise with its switch: Promise.withResolvers is not in Node 20. */
function withResolve(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Returns the outcome of a row, or an error where the call has none for it. */
function outcomeOf(outcomes: unknown, row: Row, at: number): unknown {
  const found = outcomes instanceof Map ? outcomes.get(row) : Array.isArray(outcomes) ? outcomes[at] : undefined;
  if (found !== undefined) return found;
  return new RetriableError(
    'no_outcome',
    'The call for many rows returned nothing for this one: return an outcome for each row, in their order or by a Map.',
  );
}

/**
 * Records a usage in even shares for the rows that have not reported their own. The first rows get what tokens leave over.
 * Where all rows have reported their own, the usage is only logged.
 */
function share(usage: Usage, some: Gathered[]): void {
  const rows = some.filter(({ hasUsage }) => !hasUsage);
  if (rows.length === 0) {
    const [first] = some;
    first?.row.context.log.warn('the usage of a call is not recorded: each of its rows has reported its own', {
      usage,
    });
  }
  const part = (whole: number | null, at: number) =>
    whole === null ? null : Math.floor(whole / rows.length) + (at < whole % rows.length ? 1 : 0);
  const { input_tokens: input, output_tokens: output, cost_usd: cost } = usage;
  for (const [at, { reportShare }] of rows.entries()) {
    reportShare({
      ...usage,
      input_tokens: part(input, at),
      output_tokens: part(output, at),
      cost_usd: cost === null ? null : cost / rows.length,
    });
  }
}
