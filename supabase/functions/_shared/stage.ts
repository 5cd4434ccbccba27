import type { z } from 'zod';
import type { Checkpoints } from './agent-checkpoints.ts';
import type { PipelineDefinition } from './define-pipeline.ts';
import type { WorkedStageDefinition } from './definition-schema.ts';
import type { Usage } from './engine-contract.ts';
import type { Env, SettingsGroup } from './settings.ts';
import type { Children } from './spawn-children.ts';

/** What a handler knows beside its input. */
export interface HandlerContext {
  pipeline: string;
  stage: string;
  attempt: number;
  run: number;
  entityId: string;
  /** What an external job carries to say which attempt it belongs to: the same after a crash, another for a retry. */
  submission: number;
  /** The idempotency key for what the handler buys elsewhere: as `submission`, and like none of another project. */
  idempotencyKey: string;
  retryCount: number;
  traceId: string;
  /** Where an external service reports the end of its job. */
  callbackUrl: string;
  /** Aborted at the stage's timeout, when the lease is lost, and when the platform ends the function. */
  signal: AbortSignal;
  /** How long after its start the handler is stopped: the stage's timeout. */
  timeoutMs: number;
  env: Env;
  /** The conversation of an agent's attempt. */
  checkpoints: Checkpoints;
  /** The children of a map's attempt. */
  children: Children;
  /** Records what the attempt used up, whether it completes or fails. */
  reportUsage(usage: Usage): void;
}

/** What a handler returns when an external job will finish its work. */
export class Waiting {
  constructor(
    readonly service: string,
    readonly jobId: string,
  ) {}
}

/** Says that the job `jobId` at `service` will finish this attempt, by callback or by polling. */
export function waiting(job: { service: string; jobId: string }): Waiting {
  return new Waiting(job.service, job.jobId);
}

/** What a handler returns to go on under another claim, which costs no attempt: what it has recorded so far is kept. */
export class HandedBack {}

/** What a finish function knows beside the job. */
export interface FinishContext {
  env: Env;
  entityId: string;
  /** Aborted when the time for finishing is over. */
  signal: AbortSignal;
  /** Records what the job used up, whether the attempt completes or fails. */
  reportUsage(usage: Usage): void;
}

/**
 * Turns a finished external job into the stage's output. Throws a StageError when the job failed. It has a few seconds,
 * may run several times for one job, and runs before the engine says whether the attempt still stands: what it writes
 * must be harmless when repeated or too late. A MisconfiguredError, an UnavailableError and a failing network end
 * nothing: the job is kept, and finished when its service reports it again or the poller asks after it.
 */
export type Finish<Output> = (job: unknown, context: FinishContext) => Output | Promise<Output>;

export interface StageOptions<Input extends z.ZodType, Output extends z.ZodType, Name extends string> {
  pipeline: PipelineDefinition<Name>;
  stage: NoInfer<Name>;
  /** Parses `{ entity, needs }`: the entity's row and the results of the stages this one needs. */
  input: Input;
  output: Output;
  handler(
    input: z.output<Input>,
    context: HandlerContext,
  ): z.input<Output> | Waiting | HandedBack | Promise<z.input<Output> | Waiting | HandedBack>;
  finish?: Finish<z.input<Output>>;
  /** Groups of settings the stage cannot work without. */
  settings?: readonly SettingsGroup[];
}

/** A stage's code with its entry in the pipeline's definition. */
export interface Stage {
  pipeline: PipelineDefinition;
  name: string;
  definition: WorkedStageDefinition;
  input: z.ZodType;
  output: z.ZodType;
  handler(input: unknown, context: HandlerContext): unknown;
  finish?: Finish<unknown>;
  settings: readonly SettingsGroup[];
}

/** Joins a stage's code with its definition. Throws when the pipeline defines no such stage, or one that has no code. */
export function defineStage<Input extends z.ZodType, Output extends z.ZodType, Name extends string>(
  options: StageOptions<Input, Output, Name>,
): Stage {
  const definition = options.pipeline.stage(options.stage);
  if (!('function' in definition)) {
    throw new Error(
      `Stage ${options.stage} of pipeline ${options.pipeline.name} is of kind ${definition.kind}, which has no code: ` +
        'the database does its work. Remove its function, or change its kind.',
    );
  }
  return {
    pipeline: options.pipeline,
    name: options.stage,
    definition,
    input: options.input,
    output: options.output,
    handler: options.handler as Stage['handler'],
    finish: options.finish,
    settings: options.settings ?? [],
  };
}
