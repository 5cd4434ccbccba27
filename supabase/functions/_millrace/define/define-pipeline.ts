import { checkGraph, checkReplaces, definitionFaults } from './definition-checks.ts';
import { type PipelineInput, pipelineSchema, type StageDefinition } from './definition-schema.ts';

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
  const { stages, entity, replaces, quota, name: pipeline } = parsed.data;
  checkReplaces(parsed.data);
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
    toJson: () => ({
      pipeline,
      entity: snakeKeys(entity),
      ...(replaces && { replaces: snakeKeys(replaces) }),
      ...(quota && { quota: snakeKeys(quota) }),
      stages: Object.entries(stages).map(([stage, options]) => ({ name: stage, ...snakeKeys(options) })),
    }),
  };
}

/**
 * Renames the options to the database's spelling. The keys of `byCode` are error codes and those of a decision's `schema`
 * name what people send: they stay as written.
 */
function snakeKeys(value: object): Record<string, unknown> {
  const entries = Object.entries(value).map(([key, inner]): [string, unknown] => {
    const name = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner) || key === 'schema') return [name, inner];
    if (key !== 'byCode') return [name, snakeKeys(inner)];
    const policies = Object.entries(inner as Record<string, object>);
    return [name, Object.fromEntries(policies.map(([code, policy]) => [code, snakeKeys(policy)]))];
  });
  return Object.fromEntries(entries);
}
