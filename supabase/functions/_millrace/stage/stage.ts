import type { z } from 'zod';
import type { PipelineDefinition, WorkedStage } from '../define/define-pipeline.ts';
import type { Usage } from '../engine/engine-contract.ts';
import type { Log } from '../log.ts';
import type { Env, SettingsGroup } from '../settings.ts';
import type { Traced } from '../trace.ts';
import type { Checkpoints } from './agent-checkpoints.ts';
import type { Service } from './service.ts';
import type { Children } from './spawn-children.ts';

/** Context that a handler gets beside its input. */
export interface HandlerContext {
  pipeline: string;
  stage: string;
  attempt: number;
  run: number;
  /** The row's key as text: exact also where the row's own column is a number beyond 2^53, which JSON rounds. */
  entityId: string;
  /** The id that ties an external job to its attempt: the same after a crash, another for a retry. */
  submission: number;
  /**
   * The key of an effect that must not happen twice, such as a mail or a payment. It is the same for every attempt of
   * this stage in this run, until a person resets the stage or starts it over. A service that knows the key repeats its
   * first answer, even a failure.
   */
  idempotencyKey: string;
  /**
   * The key of a request that each retry should send anew, such as a question to a model. Like `submission`, the key
   * stays the same after a crash and changes with each retry. Both keys differ from those of all
   * other projects.
   */
  submissionKey: string;
  retryCount: number;
  /** Whether the row was claimed alone, with no other row in work in this isolate: `handBack({ alone: true })` asks for that. */
  isAlone: boolean;
  traceId: string;
  /** Where an external service reports the end of its job. */
  callbackUrl: string;
  /** Aborted at the stage's timeout, when the lease is lost, and when the platform ends the function. */
  signal: AbortSignal;
  /** The stage's timeout: the handler is stopped this many milliseconds after its start. */
  timeoutMs: number;
  env: Env;
  /**
   * Writes lines of JSON into the function's log that name pipeline, stage, run, trace, entity and attempt. Supabase
   * keeps 100 events of a function in ten seconds. Lines that come faster are bundled; those that still have no room
   * are counted.
   */
  log: Log;
  /** The records of the attempt so far: an agent's conversation, or the steps of `stepsOf()`. */
  checkpoints: Checkpoints;
  /** The children of a map's attempt. */
  children: Children;
  /** Records the usage of the attempt, whether it completes or fails. */
  reportUsage(usage: Usage): void;
}

/**
 * The return value of a handler whose work an external job will finish. `waiting()` makes it.
 *
 * @example
 * ```ts
 * function isHandedOver(answer: { weight: number } | Waiting): boolean {
 *   return answer instanceof Waiting;
 * }
 * ```
 */
export class Waiting {
  constructor(
    readonly service: string,
    readonly jobId: string,
  ) {}
}

/**
 * Says that the job `jobId` at `service` will finish this attempt, by callback or by polling. The stage must name the service
 * among its `services`.
 *
 * @example
 * ```ts
 * const mailer = jobService({ name: 'mailer' });
 *
 * async function sendMail(context: HandlerContext): Promise<Waiting> {
 *   return waiting(mailer, await mailer.submit({ to: entity.email }, context, context.idempotencyKey));
 * }
 * ```
 */
export function waiting(service: Pick<Service, 'name'>, jobId: string): Waiting {
  return new Waiting(service.name, jobId);
}

/**
 * The answer of a handler that goes on under another claim, which costs no attempt. `handBack()` makes it.
 *
 * @example
 * ```ts
 * const isOver = (answer: { weight: number } | HandedBack) => !(answer instanceof HandedBack);
 * ```
 */
export class HandedBack {
  /**
   * `alone`: no other row may be in work in the isolate then. `byAnother`: this worker takes no more, since the row has used up much of
   * what its isolate has.
   */
  constructor(
    readonly alone = false,
    readonly byAnother = false,
  ) {}
}

/**
 * Puts the row back into the queue. The next claim runs the same attempt again: `stepsOf()` tells it what was done so far. With
 * `alone` the next claim has its isolate to itself, as a row needs that may use up the isolate's memory or CPU; a handler asks
 * `context.isAlone` first. A row that is handed back three times in a row without a step in between fails.
 *
 * @example
 * ```ts
 * function roomFor({ isAlone }: HandlerContext): HandedBack | undefined {
 *   if (entity.body.length > 1_000_000 && !isAlone) return handBack({ alone: true });
 * }
 * ```
 */
export function handBack({ alone = false } = {}): HandedBack {
  return new HandedBack(alone, true);
}

/** Context that a finish function gets beside the job. */
export interface FinishContext extends Traced {
  env: Env;
  entityId: string;
  /** Aborted when the time for finishing is over. */
  signal: AbortSignal;
  /** Records the usage of the job, whether the attempt completes or fails. */
  reportUsage(usage: Usage): void;
}

/**
 * Turns a finished external job into the stage's output. Throws a StageError when the job failed. It has a few seconds,
 * may run several times for one job, and runs before the engine says whether the attempt still stands: what it writes
 * must be harmless when repeated or too late. A MisconfiguredError, an UnavailableError and a failing network end
 * nothing: the job is kept, and finished when its service reports it again or the poller asks after it.
 */
export type Finish<Output> = (job: unknown, context: FinishContext) => Output | Promise<Output>;

type Answer<T> = T | Promise<T>;

interface CommonOptions<Input extends z.ZodType, Output extends z.ZodType, Name extends string> {
  pipeline: PipelineDefinition<Name>;
  stage: NoInfer<Name>;
  /** Parses `{ entity, needs }`: the entity's row and the results of the stages this one needs. */
  input: Input;
  output: Output;
  /** Groups of settings the stage cannot work without. */
  settings?: readonly SettingsGroup[];
}

/** A stage whose handler does the work itself. */
export interface StageOptions<Input extends z.ZodType, Output extends z.ZodType, Name extends string>
  extends CommonOptions<Input, Output, Name> {
  services?: undefined;
  finish?: undefined;
  handler(input: z.output<Input>, context: HandlerContext): Answer<z.input<Output> | HandedBack>;
}

/** A stage whose handler may hand the work to a service, whose job is then finished by `finish`. */
export interface WaitingStageOptions<Input extends z.ZodType, Output extends z.ZodType, Name extends string>
  extends CommonOptions<Input, Output, Name> {
  /** The services that the handler may wait for. */
  services: readonly [Service, ...Service[]];
  handler(input: z.output<Input>, context: HandlerContext): Answer<z.input<Output> | Waiting | HandedBack>;
  finish: Finish<z.input<Output>>;
}

/** A stage's code with its entry in the pipeline's definition. */
export interface Stage {
  pipeline: PipelineDefinition;
  name: string;
  definition: WorkedStage;
  input: z.ZodType;
  output: z.ZodType;
  handler(input: unknown, context: HandlerContext): unknown;
  services: readonly Service[];
  finish?: Finish<unknown> | undefined;
  settings: readonly SettingsGroup[];
}

/**
 * Joins a stage's code with its definition.
 *
 * `input` parses `{ entity, needs }`: the entity's row, and the results of the stages that this one needs. The handler
 * gets the parsed input and returns a value that `output` accepts. An error that it throws fails the attempt. It may
 * return `waiting(…)` only where `services` and `finish` are given.
 *
 * Throws when the pipeline does not define the stage, or its kind has no code. Also throws when neither a callback nor
 * a poll would end its job, when a stage of kind external lacks `services` or `finish`, and when `input` wants the
 * result of a stage that it does not need.
 *
 * @example
 * ```ts
 * export const pack = defineStage({
 *   pipeline: orders,
 *   stage: 'pack',
 *   input: z.object({ entity: z.object({ id: z.string(), articles: z.array(z.string()) }) }),
 *   output: z.object({ parcels: z.number() }),
 *   handler: ({ entity }) => {
 *     if (entity.articles.length === 0) throw new PermanentError('empty_order', 'The order names no article.');
 *     return { parcels: Math.ceil(entity.articles.length / 10) };
 *   },
 * });
 * ```
 */
export function defineStage<Input extends z.ZodType, Output extends z.ZodType, Name extends string>(
  options: StageOptions<Input, Output, Name>,
): Stage;
export function defineStage<Input extends z.ZodType, Output extends z.ZodType, Name extends string>(
  options: WaitingStageOptions<Input, Output, Name>,
): Stage;
export function defineStage<Input extends z.ZodType, Output extends z.ZodType, Name extends string>(
  options: StageOptions<Input, Output, Name> | WaitingStageOptions<Input, Output, Name>,
): Stage {
  const { pipeline, stage: name, services = [], finish } = options;
  const definition = pipeline.stage(name);
  const { kind } = definition;
  const completion = 'completion' in definition ? definition.completion : undefined;
  if (services.length > 0 && completion && !completion.callback && completion.pollSeconds == null) {
    throw new Error(
      `Stage ${name} of pipeline ${pipeline.name} may wait for ${services.map((one) => one.name).join(', ')}, but nobody would hear ` +
        'how that ends: its completion has neither callback: true nor pollSeconds. Write one of them, or leave completion out.',
    );
  }
  if (kind === 'external' && !(finish && services.length > 0)) {
    throw new Error(
      `Stage ${name} of pipeline ${pipeline.name} is of kind external, but its code says nothing of how its job ends: give ` +
        'defineStage() the services it waits for and a finish function, or define it with kind function.',
    );
  }
  return stageOf({ ...options, services, finish } as StageCode);
}

/** A stage's code as it stands, before it is joined with the definition. */
type StageCode = Omit<Stage, 'name' | 'definition' | 'settings'> & {
  stage: string;
  settings?: readonly SettingsGroup[] | undefined;
};

/**
 * Joins a stage's code with its definition, whatever the handler may return: defineStage() and defineMap() check that. Throws
 * when the pipeline defines no such stage, or one that has no code.
 */
export function stageOf({ pipeline, stage: name, settings = [], ...code }: StageCode): Stage {
  const definition = pipeline.stage(name);
  if (!('function' in definition)) {
    throw new Error(
      `Stage ${name} of pipeline ${pipeline.name} is of kind ${definition.kind}, which has no code: ` +
        'the database does its work. Remove its function, or change its kind.',
    );
  }
  const { input, output, handler, services, finish } = code;
  const needs: readonly string[] = definition.needs ?? [];
  const missing = neededBy(input).filter((need) => !needs.includes(need));
  if (missing.length > 0) {
    throw new Error(
      `The input of stage ${name} of pipeline ${pipeline.name} wants needs.${missing.join(', needs.')}, which the stage never gets: ` +
        `its definition needs ${needs.join(', ') || 'no stage'}. Add ${missing.join(', ')} to needs there, or take it out of input.`,
    );
  }
  return { pipeline, name, definition, input, output, handler, services, finish, settings };
}

/** Returns the stages whose results an input cannot do without, as far as its schema is an object that tells. */
function neededBy(input: z.ZodType): string[] {
  const needs = shapeOf(input).needs;
  return Object.entries(shapeOf(needs))
    .filter(([, schema]) => !schema.safeParse(undefined).success)
    .map(([name]) => name);
}

/** Returns the properties of an object's schema; none of any other schema. */
function shapeOf(schema: z.ZodType | undefined): Record<string, z.ZodType> {
  return (schema as { shape?: Record<string, z.ZodType> } | undefined)?.shape ?? {};
}
