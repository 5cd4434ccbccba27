import { checkAlerts, checkGraph, checkReplaces, definitionFaults } from './definition-checks.ts';
import { type PipelineInput, pipelineSchema, type StageDefinition } from './definition-schema.ts';
import { snakeKeys } from './snake-keys.ts';

/** A checked pipeline definition; `Name` is any of its stages' names. */
export interface PipelineDefinition<Name extends string = string> {
  name: string;
  stages: Record<Name, StageDefinition>;
  /** One stage's definition. Throws when there is none of that name. */
  stage(name: string): StageDefinition;
  /** The definition as `millrace.define(jsonb)` takes it. */
  toJson(): Record<string, unknown>;
}

/**
 * Checks a pipeline's definition. Throws an error that names the field, what is wrong with it and what was found;
 * the database checks it again when it is defined there.
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
 *       batchSize: 10,
 *       maxWorkers: 2,
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
  const parsed = pipelineSchema.safeParse(input);
  if (!parsed.success) {
    const faults = definitionFaults(parsed.error, input).join('; ');
    throw new Error(`Pipeline ${String(input.name)} is not defined correctly. ${faults}`);
  }
  const { stages, name: pipeline } = parsed.data;
  checkReplaces(parsed.data);
  checkAlerts(parsed.data);
  checkGraph(pipeline, stages);
  return {
    name: pipeline,
    stages,
    stage(wanted) {
      const found = stages[wanted];
      if (!found) {
        throw new Error(`Pipeline ${pipeline} has no stage ${wanted}: it has ${Object.keys(stages).join(', ')}.`);
      }
      return found;
    },
    toJson: () => definitionJson(parsed.data),
  };
}

/** A definition as millrace.define(jsonb) takes it, checked or not. */
export function definitionJson({ name, stages, ...options }: Record<string, unknown>): Record<string, unknown> {
  const list = Object.entries(stages as Record<string, object>).map(([stage, given]) => ({
    name: stage,
    ...given,
    ...('ends' in given && { ends: listed(given.ends) }),
  }));
  return { pipeline: name, ...(snakeKeys(options) as object), stages: snakeKeys(list) };
}

/** Endings as a list, since jsonb keeps no order of names. */
function listed(ends: unknown): unknown {
  if (ends === null || typeof ends !== 'object' || Array.isArray(ends)) return ends;
  return Object.entries(ends).map(([name, when]) => ({ name, when }));
}
