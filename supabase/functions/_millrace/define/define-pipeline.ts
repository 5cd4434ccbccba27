import { checkAlerts, checkGraph, definitionFaults } from './definition-checks.ts';
import { type PipelineInput, pipelineSchema, type StageDefinition } from './definition-schema.ts';
import { snakeKeys } from './snake-keys.ts';

/** Enough for a stage that waits for seconds, and little enough for what most providers let one account ask at once. */
const DEFAULT_CONCURRENCY = 50;

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
  const parsed = pipelineSchema.safeParse(input);
  if (!parsed.success) {
    const faults = definitionFaults(parsed.error, input).join('; ');
    throw new Error(`Pipeline ${String(input.name)} is not defined correctly. ${faults}`);
  }
  const { name: pipeline } = parsed.data;
  checkAlerts(parsed.data);
  checkGraph(pipeline, parsed.data.stages);
  const stages = withPlaces(parsed.data.stages);
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
    toJson: () => definitionJson({ ...parsed.data, stages }),
  };
}

/** The stages with the number of their places written out. Throws an error that names a stage that gives it twice. */
function withPlaces(stages: Record<string, StageDefinition>): Record<string, StageDefinition> {
  return Object.fromEntries(
    Object.entries(stages).map(([name, stage]) => {
      if (!('function' in stage)) return [name, stage];
      const { concurrency, batchSize, maxWorkers } = stage;
      const byHand = batchSize !== undefined || maxWorkers !== undefined;
      if (concurrency !== undefined && byHand) {
        throw new Error(
          `stages.${name}.concurrency is ${concurrency}, but batchSize or maxWorkers is given as well: keep concurrency, ` +
            'for which the engine chooses both, or give these two alone.',
        );
      }
      const places = byHand
        ? { batchSize: batchSize ?? 10, maxWorkers: maxWorkers ?? 2 }
        : { concurrency: concurrency ?? DEFAULT_CONCURRENCY };
      return [name, { ...stage, ...places }];
    }),
  );
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
