// Definitions as tests write them: JSON in the database's spelling, which may leave out what most stages have in common.
import { checkedOptions, compilePipeline } from '../../supabase/functions/_millrace/compile/compile-pipeline.ts';
import { snakeKeys } from '../../supabase/functions/_millrace/compile/snake-keys.ts';
import { definePipeline, type PipelineDefinition } from '../../supabase/functions/_millrace/define/define-pipeline.ts';
import type { PipelineInput } from '../../supabase/functions/_millrace/define/definition-schema.ts';
import type { Definition, Row } from './engine.ts';

/** A pipeline's definition as JSON, with its defaults, to be changed and given to `compiled()`. */
export function definitionOf<Shape = Definition & Row>({ input }: Pick<PipelineDefinition, 'input'>): Shape {
  const { name, stages, ...options } = checkedOptions(input);
  const list = Object.entries(stages).map(([stage, given]) => ({
    name: stage,
    ...given,
    ...('ends' in given &&
      given.ends && { ends: Object.entries(given.ends).map(([end, when]) => ({ name: end, when })) }),
  }));
  return { pipeline: name, ...(snakeKeys(options) as object), stages: snakeKeys(list) } as Shape;
}

/** The definition that millrace.define() takes, compiled of a definition as JSON. Throws the compiler's message of a wrong one. */
export function compiled(definition: unknown): string {
  return JSON.stringify(compilePipeline({ input: inputOf(definition) }));
}

/** A pipeline that the compiler takes. Throws what it says of one that is wrong. */
export function checked<Input extends PipelineInput>(input: Input): PipelineDefinition<keyof Input['stages'] & string> {
  const pipeline = definePipeline(input);
  compilePipeline(pipeline);
  return pipeline;
}

/** A definition as definePipeline() takes it. A stage is a function, ten of whose rows are in work, unless it says otherwise. */
export function inputOf(definition: unknown): PipelineInput {
  const { pipeline, stages, ...options } = definition as Definition & Row;
  const named = Array.isArray(stages) ? stages.map((stage) => [stage.name, stageOf(pipeline, stage)]) : stages;
  return {
    name: pipeline,
    ...(camelKeys(options) as object),
    stages: Array.isArray(named) ? Object.fromEntries(named) : named,
  } as PipelineInput;
}

/** Kinds that no Edge Function runs. */
const withoutFunction = ['manual', 'pipeline', 'gate'];
const places = ['concurrency', 'batch_size', 'max_workers'];

function stageOf(pipeline: string, { name, ends, ...given }: Row & { name: string }): unknown {
  const kind = given.kind ?? 'function';
  const own = withoutFunction.includes(String(kind))
    ? {}
    : {
        function: `${pipeline}-${name}`.replaceAll('_', '-'),
        ...(!places.some((place) => place in given) && { batch_size: 10 }),
      };
  return {
    ...(camelKeys({ kind, ...own, ...given }) as object),
    ...(ends !== undefined && {
      ends: Array.isArray(ends) ? Object.fromEntries(ends.map((end) => [end.name, end.when])) : ends,
    }),
  };
}

/** Options whose keys are names, and words of the user's. */
const records = ['by_code', 'values', 'answers', 'ends', 'failed', 'layers', 'alerts'];

/** Renames options to the spelling of TypeScript. */
function camelKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelKeys);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]): [string, unknown] => {
    const camel = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    if (key === 'schema' || key === 'values' || key === 'answers') return [camel, inner];
    if (!records.includes(key) || typeof inner !== 'object' || inner === null) return [camel, camelKeys(inner)];
    return [camel, Object.fromEntries(Object.entries(inner).map(([name, one]) => [name, camelKeys(one)]))];
  });
  return Object.fromEntries(entries);
}

/** The compiler's message about a definition, in the spelling of the tests. */
export function inDatabaseSpelling(message: string): string {
  return message
    .replace(/\bstages\.(\w+)\./g, 'stage $1: ')
    .replace(/[a-z\d][A-Z]/g, ([small = '', large = '']) => `${small}_${large.toLowerCase()}`);
}
