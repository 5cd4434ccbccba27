import '../zod-settings.ts';
import { z } from 'zod';
import { decisionSchema } from './decision-schema.ts';

// What a definition may say, as zod schemas. The order of the fields is the order in which migrations show them.

export const name = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,40}$/, 'must be lower case letters, digits and _, a letter first');
const role = z.string().regex(/^[a-z_][a-z0-9_]*$/, 'must be the name of a database role');
const whole = z.number().int().positive();
const seconds = z.number().positive();
/** The seconds of a quota's window, at most 31 days. */
const window = whole.max(2_678_400);
const qualified = (what: string) => z.string().regex(/^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$/, `must be ${what}`);

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
const policy = z.strictObject({ maxAttempts: whole, backoff });

const threshold = z
  .strictObject({
    /** A map stage of this pipeline. */
    map: name,
    /** The stage that its children must have done. */
    stage: name,
    /** So many children, whichever they are. */
    count: whole.max(100_000).optional(),
    /** So many children from the smallest number on, without a gap. */
    consecutive: whole.max(100_000).optional(),
    all: z.literal(true).optional(),
  })
  .refine(
    ({ count, consecutive, all }) => [count, consecutive, all].filter((rule) => rule !== undefined).length === 1,
    'must have one of count, consecutive and all: true',
  );

const graph = {
  needs: z.array(name).default([]),
  /** A jsonpath over `{ entity, needs }`. Unless it is true the stage is skipped. */
  when: z.string().min(1).optional(),
  /** What becomes of the stages after one that is skipped: they go on without its result, or are skipped too. */
  otherwise: z.enum(['skip', 'skip_dependents']).optional(),
  /** Thresholds on the children of map stages; all must hold before the stage begins. */
  after: z.array(threshold).min(1).optional(),
};
const ending = {
  /** What a failure for good does: it fails the run, or the run goes on without the stage's result. */
  onFailure: z.enum(['fail_run', 'continue']).optional(),
  /** A function of yours, schema.name(jsonb), called with [{ attempt, run, entity_id, result }] in the completion's transaction. */
  apply: qualified('schema.function').optional(),
  /** How long after it became ready the stage should be done, waits and retries included; an alert tells of one that is not. */
  slaSeconds: seconds.min(1).max(31_536_000).optional(),
  /** Left out, a stage stays switched on or off as it was. */
  enabled: z.boolean().optional(),
  resultLimitBytes: whole.max(10_485_760).default(1_048_576),
};

const limits = z
  .strictObject({
    maxInFlight: whole.max(10_000).optional(),
    rate: z
      .strictObject({ count: whole.max(1_000_000), perSeconds: seconds, burst: whole.max(1_000_000).optional() })
      .optional(),
    concurrency: z
      .strictObject({ column: z.string().min(1), part: z.enum(['value', 'host']).optional(), limit: whole.max(1_000) })
      .optional(),
    priority: z.boolean().optional(),
    /** The stage is a later one of this pipeline, or `pipeline.stage`. */
    backPressure: z
      .strictObject({
        stage: z.string().regex(/^([a-z][a-z0-9_]*\.)?[a-z][a-z0-9_]*$/, 'must be stage or pipeline.stage'),
        backlog: z.number().int().min(0).max(100_000),
      })
      .optional(),
  })
  .refine((given) => Object.keys(given).length > 0, 'must name at least one limit, or be left out');

/** What every stage says that an Edge Function runs. */
const worked = {
  /** The Edge Function that runs the stage. */
  function: z.string().regex(/^[a-z][a-z0-9-]*$/, 'must be the name of an Edge Function'),
  ...graph,
  batchSize: whole.max(500),
  maxWorkers: whole.max(1_000),
  leaseSeconds: seconds.min(5).max(3_600),
  /** No worker may work longer than 190 s, so no handler may either. */
  timeoutSeconds: seconds.min(1).max(190),
  retry: policy.extend({ byCode: z.record(z.string(), policy).default({}) }),
  limits: limits.optional(),
};

const fanIn = z
  .strictObject({
    rule: z.enum(['all', 'at_least', 'share']).default('all'),
    count: whole.max(100_000).optional(),
    share: z.number().min(0).max(1).optional(),
    failedChildren: z.enum(['fail', 'ignore']).optional(),
    lateChildren: z.enum(['continue', 'cancel']).optional(),
    deadlineSeconds: seconds.min(1).max(31_536_000).optional(),
    atDeadline: z.enum(['fail', 'finish']).optional(),
  })
  .refine(({ rule, count }) => (rule === 'at_least') === (count !== undefined), {
    path: ['count'],
    error: 'belongs to the rule at_least: give it there, and only there',
  })
  .refine(({ rule, share }) => (rule === 'share') === (share !== undefined), {
    path: ['share'],
    error: 'belongs to the rule share: give it there, and only there',
  });

export const functionStage = z.strictObject({
  kind: z.enum(['function', 'external']),
  ...worked,
  completion: z
    .strictObject({
      callback: z.boolean(),
      pollSeconds: whole.nullable(),
      deadlineSeconds: whole,
      /** `start`, the default: while the poller hears that the job waits in its service's queue, the deadline does not run. */
      deadlineFrom: z.enum(['submission', 'start']).optional(),
    })
    .optional(),
  ...ending,
});
export const agentStage = z.strictObject({
  kind: z.literal('agent'),
  ...worked,
  agent: z
    .strictObject({
      maxTurns: whole.max(1_000).optional(),
      maxTokens: whole.max(100_000_000).optional(),
      maxCostUsd: z.number().min(0).max(10_000).optional(),
      maxSeconds: seconds.min(1).max(604_800).optional(),
      debug: z.boolean().optional(),
    })
    .optional(),
  ...ending,
});
export const mapStage = z.strictObject({
  kind: z.literal('map'),
  ...worked,
  child: z.strictObject({
    pipeline: name,
    /** Your function (p_parent text, p_items jsonb) that inserts the children's rows and returns (item_key, entity_id). */
    insert: qualified('schema.function').optional(),
  }),
  fanIn: fanIn.optional(),
  ...ending,
});
export const manualStage = z.strictObject({
  kind: z.literal('manual'),
  ...graph,
  decision: z
    .strictObject({
      schema: decisionSchema.optional(),
      deadlineSeconds: seconds.min(1).max(31_536_000).optional(),
    })
    .optional(),
  ...ending,
});
export const pipelineStage = z.strictObject({
  kind: z.literal('pipeline'),
  ...graph,
  child: z.strictObject({ pipeline: name }),
  ...ending,
});

const kinds = [functionStage, agentStage, mapStage, manualStage, pipelineStage] as const;

export const stageSchema = z.discriminatedUnion('kind', kinds, {
  error: 'must be an object with a kind: function, external, agent, map, manual or pipeline',
});

export const pipelineSchema = z.strictObject({
  name,
  entity: z
    .strictObject({
      table: qualified('schema.table'),
      key: z.string().min(1),
      projection: z.enum(['columns', 'none']),
      /** A jsonb column, which a run copies when it starts. */
      metadata: z.string().min(1).optional(),
      /** Database roles that start stages by writing their statuses, such as authenticated. Left out, only yours do. */
      startableBy: z.array(role).min(1).optional(),
    })
    .refine(({ projection, startableBy }) => projection === 'columns' || startableBy === undefined, {
      path: ['startableBy'],
      error: 'belongs to the projection columns, since there are no statuses to write without: leave it out',
    }),
  /** An old pipeline over the same rows, which goes on beside this one: a flag in the database says which way a row goes. */
  replaces: z
    .strictObject({
      pipeline: name,
      /** A key of the metadata, by whose value the flag can name groups of rows. */
      groupBy: z.string().min(1).optional(),
    })
    .optional(),
  /** What each tenant may start and spend; what exceeds it stays queued until the next window. Left out, there is no bound. */
  quota: z
    .strictObject({
      /** The entity's column whose value is the tenant; rows without one share a quota. */
      column: z.string().min(1),
      /** Windows are fixed: an hour begins on the hour, a day at midnight UTC. */
      starts: z.strictObject({ count: whole.max(1_000_000), perSeconds: window }).optional(),
      /** By what attempts say they cost. What is in work when it is used up goes on. */
      spending: z.strictObject({ usd: z.number().min(0.01).max(1_000_000), perSeconds: window }).optional(),
    })
    .refine(
      ({ starts, spending }) => starts !== undefined || spending !== undefined,
      'must bound starts, spending or both',
    )
    .optional(),
  stages: z.record(name, stageSchema).refine((stages) => Object.keys(stages).length > 0, 'needs at least one stage'),
});

/** The options that a stage of this kind takes, for messages; null for a kind there is not. */
export function optionsOf(kind: unknown): string[] | null {
  const found = kinds.find(({ shape }) => shape.kind.safeParse(kind).success);
  return found ? Object.keys(found.shape) : null;
}

export type PipelineInput = z.input<typeof pipelineSchema>;
export type PipelineOptions = z.output<typeof pipelineSchema>;
export type StageInput = z.input<typeof stageSchema>;
export type FunctionStageInput = z.input<typeof functionStage>;
export type StageDefinition = z.output<typeof stageSchema>;
/** A stage that an Edge Function runs. */
export type WorkedStageDefinition = Extract<StageDefinition, { function: string }>;
