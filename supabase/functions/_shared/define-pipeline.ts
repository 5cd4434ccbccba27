import { z } from 'zod';

const name = z.string().regex(/^[a-z][a-z0-9_]{0,40}$/, 'must be lower case letters, digits and _, a letter first');
const positive = z.number().int().positive();
const seconds = z.number().positive();

const backoff = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('exponential'),
    baseSeconds: seconds,
    factor: z.number().min(1),
    capSeconds: seconds,
    jitter: z.number().min(0).max(1),
  }),
  z.strictObject({ kind: z.literal('list'), seconds: z.array(z.number().min(0)).min(1) }),
]);
const policy = z.strictObject({ maxAttempts: positive, backoff });

const stageSchema = z.strictObject({
  kind: z.enum(['function', 'external']),
  /** The Edge Function that runs the stage. */
  function: z.string().regex(/^[a-z][a-z0-9-]*$/, 'must be the name of an Edge Function'),
  needs: z.array(name).default([]),
  batchSize: positive.max(500),
  maxWorkers: positive,
  leaseSeconds: positive,
  /** No worker may work longer than 190 s, so no handler may either. */
  timeoutSeconds: positive.max(190),
  retry: policy.extend({ byCode: z.record(z.string(), policy).default({}) }),
  completion: z
    .strictObject({ callback: z.boolean(), pollSeconds: positive.nullable(), deadlineSeconds: positive })
    .optional(),
  /** A function of yours, schema.name(jsonb), called with [{ attempt, run, entity_id, result }] in the completion's transaction. */
  apply: z
    .string()
    .regex(/^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$/, 'must be schema.function')
    .optional(),
  /** Left out, a stage stays switched on or off as it was. */
  enabled: z.boolean().optional(),
  resultLimitBytes: positive.default(1_048_576),
});

const pipelineSchema = z.strictObject({
  name,
  entity: z.strictObject({
    table: z.string().regex(/^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$/, 'must be schema.table'),
    key: z.string().min(1),
    projection: z.enum(['columns', 'none']),
  }),
  stages: z.record(name, stageSchema).refine((stages) => Object.keys(stages).length > 0, 'needs at least one stage'),
});

export type StageDefinition = z.output<typeof stageSchema>;
export type StageInput = z.input<typeof stageSchema>;
export type PipelineInput = z.input<typeof pipelineSchema>;

/** A checked pipeline definition. */
export interface PipelineDefinition {
  name: string;
  stages: Record<string, StageDefinition>;
  /** One stage's definition. Throws when there is none of that name. */
  stage(name: string): StageDefinition;
  /** The definition as `pipeline.define(jsonb)` takes it. */
  toJson(): Record<string, unknown>;
}

/**
 * Checks a pipeline's definition. Throws an error that names the field, what is wrong with it and what was found;
 * the database checks it again when it is defined there.
 */
export function definePipeline(input: PipelineInput): PipelineDefinition {
  const parsed = pipelineSchema.safeParse(input);
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'the definition'}: ${issue.message}`);
    throw new Error(`Pipeline ${String(input.name)} is not defined correctly. ${faults.join('; ')}`);
  }
  const { stages, entity, name: pipeline } = parsed.data;
  checkNeeds(pipeline, stages);
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
      entity,
      stages: Object.entries(stages).map(([stage, options]) => ({ name: stage, ...snakeKeys(options) })),
    }),
  };
}

function checkNeeds(pipeline: string, stages: Record<string, StageDefinition>): void {
  const settled = new Set<string>();
  const visit = (stage: string, trail: string[]): void => {
    if (settled.has(stage)) return;
    if (trail.includes(stage)) {
      const cycle = [...trail.slice(trail.indexOf(stage)), stage].join(' → ');
      throw new Error(`Pipeline ${pipeline} has a cycle: ${cycle}. Remove one of these needs.`);
    }
    for (const need of stages[stage]?.needs ?? []) {
      if (!stages[need]) {
        throw new Error(`stages.${stage}.needs names ${need}, which pipeline ${pipeline} does not have: correct it.`);
      }
      visit(need, [...trail, stage]);
    }
    settled.add(stage);
  };
  for (const stage of Object.keys(stages)) visit(stage, []);
}

/** Renames the options to the database's spelling. The keys of `byCode` are error codes: they stay as written. */
function snakeKeys(value: object): Record<string, unknown> {
  const entries = Object.entries(value).map(([key, inner]): [string, unknown] => {
    const name = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner)) return [name, inner];
    if (key !== 'byCode') return [name, snakeKeys(inner)];
    const policies = Object.entries(inner as Record<string, object>);
    return [name, Object.fromEntries(policies.map(([code, policy]) => [code, snakeKeys(policy)]))];
  });
  return Object.fromEntries(entries);
}
