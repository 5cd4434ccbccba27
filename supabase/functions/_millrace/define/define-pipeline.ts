import type { PipelineInput, StageInput, WorkedStageInput } from './definition-schema.ts';
import { resultLimitBytes, slotsOf, timeoutSeconds } from './stage-defaults.ts';

/** A stage that has a function, with what its worker needs to know. */
export type WorkedStage = WorkedStageInput & { timeoutSeconds: number; resultLimitBytes: number };

/** A pipeline's definition; `Name` is any of its stages' names. */
export interface PipelineDefinition<Name extends string = string> {
  name: string;
  stages: Record<Name, StageInput>;
  /** The definition as it was given; `npx millrace sync` checks and compiles it. */
  input: PipelineInput;
  /** One stage's definition. Throws when there is none of that name. */
  stage(name: string): Exclude<StageInput, WorkedStageInput> | WorkedStage;
}

/**
 * Holds a pipeline's definition, for the code of its stages and for `npx millrace sync`, which checks it, names each field
 * that is wrong, and compiles it into what `millrace.define()` takes. A function that is deployed loads neither the checks nor
 * the compiler.
 *
 * @example
 * ```ts
 * export const orders = definePipeline({
 *   name: 'orders',
 *   entity: { table: 'public.orders', key: 'id', projection: 'columns' },
 *   stages: {
 *     pack: {
 *       kind: 'function',
 *       function: 'orders-pack',
 *       concurrency: 50,
 *       leaseSeconds: 60,
 *       timeoutSeconds: 30,
 *       retry: { maxAttempts: 4, backoff: { kind: 'list', seconds: [5, 60, 600] } },
 *     },
 *   },
 * });
 * ```
 */
export function definePipeline<Input extends PipelineInput>(
  input: Input,
): PipelineDefinition<keyof Input['stages'] & string> {
  const { name: pipeline, stages } = input;
  return {
    name: pipeline,
    stages,
    input,
    stage(wanted) {
      const found = stages[wanted];
      if (!found) {
        throw new Error(`Pipeline ${pipeline} has no stage ${wanted}: it has ${Object.keys(stages).join(', ')}.`);
      }
      if (!('function' in found)) return found;
      const bounds = {
        timeoutSeconds: found.timeoutSeconds ?? timeoutSeconds,
        resultLimitBytes: found.resultLimitBytes ?? resultLimitBytes,
      };
      return { ...found, ...bounds, ...slotsOf(found) };
    },
  };
}
