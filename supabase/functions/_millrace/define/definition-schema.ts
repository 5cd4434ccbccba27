import '../zod-settings.ts';
import { z } from 'zod';
import { decisionSchema } from './decision-schema.ts';
import * as defaults from './stage-defaults.ts';

// The fields of a definition, as zod schemas. `wanted` completes "must be …" in the messages of the compiler, and
// `remedy` says what to do. Migrations show the fields in this order. The engine's build makes a JSON Schema of the
// schema of a shared limit, and millrace.define_limit() checks a limit by it.

const says = (wanted: string, remedy?: string) => ({ wanted, ...(remedy && { remedy }) });
/** Returns the schema of a text that matches a pattern. */
const text = (pattern: RegExp, wanted: string, remedy?: string) =>
  z.string().regex(pattern, `must be ${wanted}`).meta(says(wanted, remedy));
/** Returns the schema of a text that is not empty. */
const filled = (wanted: string, remedy?: string) => z.string().min(1).meta(says(wanted, remedy));
const whole = (least: number, most: number) => z.int().min(least).max(most);
const number = (least: number, most: number) => z.number().min(least).max(most);
const flag = z.boolean().meta(says('true or false'));
const oneOf = <const Words extends readonly string[]>(words: Words, remedy: string) =>
  z.enum(words).meta(says(`${words.slice(0, -1).join(', ')} or ${words.at(-1)}`, remedy));

const lowerCase = 'Use letters, digits and underscores, beginning with a letter, at most 41.';
export const name = text(/^[a-z][a-z0-9_]{0,40}$/, 'a lower-case name of letters, digits and _', lowerCase);
const role = text(/^[a-z_][a-z0-9_]*$/, 'the name of a database role');
const table = text(
  /^([a-z_][a-z0-9_]*|"([^"]|"")+")\.([a-z_][a-z0-9_]*|"([^"]|"")+")$/,
  'schema.table',
  'Create the table in an earlier migration and name it with its schema.',
);
const routine = (takes: string) =>
  text(
    /^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$/,
    `schema.function, ${takes}`,
    'Create the function in an earlier migration and name it with its schema.',
  );
const column = (remedy: string) => filled("a column of the entity's table", remedy);
const year = 31_536_000;
const week = 604_800;

/** Refuses an object with fewer or more fields than `least` and `most`. */
function sized<Shape extends z.ZodObject>(shape: Shape, least: number, most: number, wanted: string, remedy: string) {
  const fits = (given: object) => {
    const count = Object.values(given).filter((value) => value !== undefined).length;
    return least <= count && count <= most;
  };
  return shape
    .refine(fits, `must be ${wanted}`)
    .meta({ ...says(wanted, remedy), minProperties: least, maxProperties: most });
}

const exponential = z.strictObject({
  kind: z.literal('exponential'),
  baseSeconds: number(0, 86_400).default(5),
  factor: number(1, 100).default(2),
  capSeconds: number(0, week).default(300),
  jitter: number(0, 1).default(0.2),
});
const list = z.strictObject({
  kind: z.literal('list'),
  seconds: z
    .array(number(0, week))
    .min(1)
    .meta(says('a list of at least one number of seconds', "Write { kind: 'list', seconds: [5, 30] }.")),
});
const backoff = z.discriminatedUnion('kind', [exponential, list]).meta({
  noun: 'backoff',
  ...says(
    'exponential or list',
    "Use { kind: 'list', seconds: [5, 30] } or { kind: 'exponential', baseSeconds: 5, factor: 2, capSeconds: 300, jitter: 0.2 }.",
  ),
});
const attempts = whole(1, 100);
/** How attempts follow one another; a policy of `byCode` says what is other for its code. */
const retry = z.strictObject({
  maxAttempts: attempts.default(3),
  backoff: backoff.prefault({ kind: 'exponential' }),
  byCode: z
    .record(z.string(), z.strictObject({ maxAttempts: attempts.optional(), backoff: backoff.optional() }))
    .default({}),
});

const threshold = sized(
  z.strictObject({
    /** A map stage of this pipeline. */
    map: name,
    /** The stage that its children must have done. */
    stage: name,
    /** So many children, whichever they are. */
    count: whole(1, 100_000).optional(),
    /** So many children from the smallest number on, without a gap. */
    consecutive: whole(1, 100_000).optional(),
    all: z.literal(true).optional(),
  }),
  3,
  3,
  'a threshold with a map, a stage and one of count, consecutive and all: true',
  "Write { map: 'split', stage: 'blend', count: 20 }, or consecutive: 10, or all: true.",
);

const graph = {
  needs: z.array(name).meta(says('a list of names of stages', "Write needs: ['other_stage'].")).default([]),
  /** A jsonpath over `{ entity, needs }`. Unless it is true the stage is skipped. */
  when: filled(
    'a jsonpath predicate',
    'Write for example "$.entity.kind == \\"scan\\"" or "$.needs.count.pages > 20".',
  ).optional(),
  /** Whether the stages after a skipped stage go on without its result, or are skipped too. */
  otherwise: oneOf(
    ['skip', 'skip_dependents'],
    'skip lets the stages after it go on without its result, skip_dependents skips them too.',
  ).optional(),
  /** A jsonpath over `{ entity }`. Where it is true of a row whose first run begins, that run skips the stage. */
  given: filled('a jsonpath predicate', 'Write for example "$.entity.summary != null".').optional(),
  /** Only a start by name begins it; a run that comes to it by itself is over. */
  onDemand: flag.optional(),
  /** Thresholds on the children of map stages; all must hold before the stage begins. */
  after: z.array(threshold).min(1).meta(says('a list of at least one threshold')).optional(),
};
/** Within how many seconds after it became ready a stage should be done, waits and retries included; else an alert is raised. */
const slaSeconds = number(1, year).optional();
/** Left out, a stage stays switched on or off as it was. */
const enabled = flag.optional();
const ending = {
  /** Whether a failure for good fails the run, or the run goes on without the stage's result. */
  onFailure: oneOf(
    ['fail_run', 'continue'],
    "fail_run ends the run, continue goes on without the stage's result.",
  ).optional(),
  /** A function of yours, schema.name(jsonb), called with [{ attempt, run, entity_id, result }] in the completion's transaction. */
  apply: routine('which takes one jsonb').optional(),
  /**
   * Jsonpaths over `{ entity, result }` by the names under which they end the run, which is no failure. They are
   * evaluated in this order when the stage completes, after `apply`; the first that is true ends the run.
   */
  ends: z
    .record(name, filled('a jsonpath predicate', 'Write for example "$.result.score < 0.5".'))
    .refine((ends) => Object.keys(ends).length > 0, 'needs at least one name')
    .meta({
      ...says('an object of names and conditions', "Write { rejected: '$.result.ok == false' }."),
    })
    .optional(),
  slaSeconds,
  enabled,
  resultLimitBytes: whole(1, 10_485_760).default(defaults.resultLimitBytes),
};

const rate = z.strictObject({
  count: whole(1, 1_000_000).meta({ remedy: 'It is how many may begin in each interval.' }),
  perSeconds: number(0.001, 86_400).meta({ remedy: 'It is the length of the interval.' }),
  burst: whole(1, 1_000_000).optional(),
});
const key = z.strictObject({
  column: column('Name the column whose value is the key.'),
  part: oneOf(['value', 'host'], 'value takes the column as it is, host the host of a URL.').optional(),
});
const concurrency = key.extend({
  limit: whole(1, 1_000).meta({ remedy: 'It is how many with the same key may be in work at once.' }),
});
/** The stage is a later one of this pipeline. */
const backPressure = z.strictObject({
  stage: text(/^[a-z][a-z0-9_]*$/, 'the name of a later stage', 'Name a stage after this one.'),
  backlog: whole(1, 100_000).meta({
    remedy: 'It is how many may be unfinished at the later stage; to let nothing through, pause the stage.',
  }),
});
const backPressures = z
  .union([backPressure, z.array(backPressure).min(1).max(20)])
  .meta(says('an object of stage and backlog, or a list of them'));
/** The names of limits that `defineSharedLimits` defines; all of them must allow a claim, as the stage's own. */
const sharedNames = z.array(name).min(1).meta(says('a list of names of shared limits', 'Write ["scrapes"].'));
const limits = sized(
  z.strictObject({
    maxInFlight: whole(1, 10_000).optional(),
    rate: rate.meta(says('an object of count, per_seconds and burst')).optional(),
    concurrency: concurrency.meta(says('an object of column, part and limit')).optional(),
    backPressure: backPressures.optional(),
    shared: sharedNames.optional(),
    /**
     * US dollars that an attempt costs at the budgets of `shared`, until the stage's own average is known. Without it, such a stage
     * has one attempt in flight until an attempt has named its cost: a batch of a provider would begin with one row.
     */
    expectedUsd: number(0.000001, 10_000).optional(),
  }),
  1,
  6,
  'an object with at least one limit',
  'Set maxInFlight, rate, concurrency, backPressure or shared, or leave limits out.',
);
/** Limits of a gate. No attempt is in work at a gate: it is limited by a rate and by later stages. */
const gateLimits = sized(
  z.strictObject({
    rate: rate.meta(says('an object of count, per_seconds and burst')).optional(),
    /** The key whose values take turns, each with its own backlog. */
    concurrency: key.meta(says('an object of column and part')).optional(),
    backPressure: backPressures.optional(),
    /** A gate obeys the rates of these limits, and nothing else of them. */
    shared: sharedNames.optional(),
  }),
  1,
  4,
  'an object of rate, concurrency, backPressure or shared',
  'Set rate, concurrency, backPressure or shared, or leave limits out: then the gate passes whatever comes.',
);

/** A value of the status column: a text, or a number for a column of codes. */
const value = z
  .union([z.string(), z.int()])
  .meta(says('a value of the status column', 'Write the code, or the word, that the column shows.'));
const valueOrNone = z
  .union([z.string(), z.int(), z.null()])
  .meta(says('a value of the status column, or null for none'));
const pair = z.array(value).min(2).max(2).meta(says('a list of two values: from and to'));
/** Values of the status column for a stage that has a function. */
const shows = z
  .strictObject({
    queued: value,
    /** Shown while a retry is not due yet; left out, the column shows `queued`. */
    backoff: value.optional(),
    started: value,
    completed: value,
    /** Values by the error's code; other failures are shown as `entity.status.failed`. */
    failed: z.record(z.string(), value).default({}),
  })
  .meta(says('an object of queued, started and completed'));
/** Values of the status column for a stage that waits for a person. */
const showsManual = z
  .strictObject({
    asked: value,
    /** Values that a person may write between question and answer. */
    interim: z.array(value).default([]),
    interimMoves: z.array(pair).default([]),
    /** Values that answer the question; `from` names the values at which a person may write each. */
    answers: z
      .record(
        z.string(),
        z.strictObject({
          from: z.array(value).min(1),
          decision: z.record(z.string(), z.unknown()).meta(says('an object')),
        }),
      )
      .default({}),
    /** Whether the question may be taken back by writing the value that the row had before. */
    discard: flag.default(false),
    /** For a result that is none of the answers. */
    completed: value.optional(),
    failed: z.record(z.string(), value).default({}),
  })
  .meta(says('an object of asked and answers'));

/** Values of the status column for a gate. */
const showsGate = z
  .strictObject({
    /** Shown while the gate waits. A row that passes at once has the value in its history. */
    queued: value,
    completed: value,
    failed: z.record(z.string(), value).default({}),
  })
  .meta(says('an object of queued and completed'));

/** Fields of every stage that has a function, or with host 'worker' a process in its place. */
const worked = {
  /** The Edge Function that runs the stage. */
  function: text(
    /^[a-z][a-z0-9-]*$/,
    'the name of an Edge Function',
    'Use small letters, digits and -, a letter first.',
  ),
  /** Where its handler runs: in the Edge Function, or in a process of one's own, `npx millrace work`. */
  host: oneOf(
    ['function', 'worker'],
    'function is the Edge Function, worker a process of your own that `npx millrace work` starts.',
  ).optional(),
  ...graph,
  /** How many rows are in work at once, 50 unless it says otherwise; the engine chooses batch and workers for it. */
  concurrency: whole(1, 5_000).optional(),
  /** Instead of `concurrency`: how many rows one worker holds (10), and how many workers there are at most (2). */
  batchSize: whole(1, 500).optional(),
  maxWorkers: whole(1, 1_000).optional(),
  leaseSeconds: number(5, 3_600).default(60),
  /** At most 190 in an Edge Function, which works no longer; up to a day with `host: 'worker'`. */
  timeoutSeconds: number(1, 86_400).default(defaults.timeoutSeconds),
  retry: retry.prefault({}),
  /** Which attempts keep the last lines of their log: those that failed, or every one. The runtime alone reads it. */
  keepLog: oneOf(
    ['failed', 'every'],
    'failed keeps the last lines of attempts that failed, every those of all attempts.',
  ).optional(),
  limits: limits.optional(),
  /** Whether the stage waits for the next window while its budget is spent, or is bypassed. */
  whenSpent: oneOf(
    ['wait', 'bypass'],
    'wait works it in the next window, bypass leaves it out and remembers its rows.',
  ).optional(),
  shows: shows.optional(),
};

const fanIn = z.strictObject({
  failedChildren: oneOf(
    ['fail', 'ignore'],
    'fail ends the stage with the first child that fails, ignore goes on with the others.',
  ).optional(),
  deadlineSeconds: number(1, year).optional(),
});

const completion = z.strictObject({
  callback: flag.default(false),
  pollSeconds: whole(1, 3_600).nullable().default(null),
  /**
   * How long the attempt waits for its job, in seconds; the time in the service's queue does not count while it is
   * polled.
   */
  deadlineSeconds: whole(1, week).default(600),
});
const functionStage = z
  .strictObject({
    kind: z.enum(['function', 'external']),
    ...worked,
    /** Left out, a callback and a poll every ten seconds both end a wait: a stage that waits is never forgotten. */
    completion: completion.prefault({ callback: true, pollSeconds: 10 }),
    ...ending,
  })
  .refine(
    ({ kind, completion: by }) => kind === 'function' || by?.callback === true || typeof by?.pollSeconds === 'number',
    { path: ['completion'], error: 'must be by callback or by polling, or both, for an external stage' },
  );
const agentStage = z.strictObject({
  kind: z.literal('agent'),
  ...worked,
  agent: z
    .strictObject({
      maxTurns: whole(1, 1_000).optional(),
      maxTokens: whole(1, 100_000_000).optional(),
      maxCostUsd: number(0, 10_000).optional(),
      maxSeconds: number(1, week).optional(),
      debug: flag.optional(),
    })
    .optional(),
  ...ending,
});
const child = says('an object with the name of a pipeline');
const mapStage = z.strictObject({
  kind: z.literal('map'),
  ...worked,
  child: z
    .strictObject({
      pipeline: name,
      /** Your function (p_parent text, p_items jsonb) that inserts the children's rows and returns (item_key, entity_id). */
      insert: routine('which takes (p_parent text, p_items jsonb)').optional(),
    })
    .meta(child),
  fanIn: fanIn.optional(),
  ...ending,
});
const manualStage = z.strictObject({
  kind: z.literal('manual'),
  ...graph,
  decision: z
    .strictObject({
      schema: decisionSchema.optional(),
      deadlineSeconds: number(1, year).optional(),
    })
    .optional(),
  shows: showsManual.optional(),
  ...ending,
});
const pipelineStage = z.strictObject({
  kind: z.literal('pipeline'),
  ...graph,
  child: z.strictObject({ pipeline: name }).meta(child),
  shows: shows.optional(),
  ...ending,
});

/** The database passes it, as its limits allow. */
const gateStage = z.strictObject({
  kind: z.literal('gate'),
  ...graph,
  limits: gateLimits.optional(),
  shows: showsGate.optional(),
  slaSeconds,
  enabled,
});

const kinds = [functionStage, agentStage, mapStage, manualStage, pipelineStage, gateStage] as const;

export const stageSchema = z
  .discriminatedUnion('kind', kinds, {
    error: 'must be an object with a kind: function, external, agent, map, manual, pipeline or gate',
  })
  .meta({
    noun: 'stage',
    ...says(
      'function, external, agent, map, manual, pipeline or gate',
      'A function does its work itself, an external stage hands it to a job service, a manual one waits for a person, a ' +
        'pipeline one for a run of another pipeline, a map one for many; an agent takes many turns with a model; a gate ' +
        'is passed by the database.',
    ),
  });

const layer = z.strictObject({
  /** Stages that stand together in the chain. */
  stages: z.array(name).min(1),
  /** A value that rows pass on entering; a row may wait there until a person begins it. */
  enter: value.optional(),
  /** A value that rows pass when they go on from the layer. */
  leave: value.optional(),
});
const changes = 'Name the column, or leave it out.';
const history = z
  .strictObject({
    table,
    /** The column that names the entity. */
    key: filled('a column of the history'),
    /** A timestamptz column of the entity, in which the engine keeps when the present value began. */
    since: column('Add a column of type timestamptz and name it.'),
    /** A jsonb column of the entity, which goes into the history of the next value that a person writes. */
    changes: column(changes).optional(),
  })
  .meta(says('an object of table, key and since'));
/** One column of the entity that shows where its run stands, and by which people act. */
const status = z
  .strictObject({
    column: column('Name the column of type smallint or text.'),
    /** By category and value: name and description. */
    values: z.record(
      z.string(),
      z.record(
        z.string(),
        z
          .array(z.string())
          .min(1)
          .max(2)
          .meta(says('a list of name and description', 'For a column of texts the value is the name.')),
      ),
    ),
    layers: z.record(name, layer).default({}),
    /** Shown for a failure for good whose code no stage names, and for a cancelled run. */
    failed: value,
    /** By the names under which stages end runs. */
    ends: z.record(name, value).default({}),
    /** Values that several positions may use. */
    shared: z.array(value).default([]),
    /** Values at which no other stage is started over, but by `moves`. */
    closed: z.array(value).default([]),
    /**
     * Moves that people may make beyond those that follow from the stages. A move to `failed` gives up: the run fails
     * with the row's error.
     */
    moves: z.array(pair).default([]),
    /** Values at which a new row may enter without a run, beside those that begin one: a copy of another, say. */
    entries: z.array(value).default([]),
    /** Chains of values that a diagram draws; null at the beginning is a row that is new. */
    drawn: z.array(z.array(valueOrNone).min(2)).default([]),
    lookup: table.optional(),
    history: history.optional(),
    attempts: column(changes).optional(),
    retryAt: column(changes).optional(),
    error: column(changes).optional(),
  })
  .meta(says('an object of column, values and failed'));

const entity = z
  .strictObject({
    table,
    key: filled('the name of a column').default('id'),
    projection: oneOf(
      ['columns', 'status', 'none'],
      'columns keeps seven columns a stage on the entity, status shows the run in one column, none keeps its state in the engine alone.',
    ).default('columns'),
    status: status.optional(),
    /** A text column by which people know the row, such as a URL or a title; the search looks for it by an index of yours. */
    label: filled('the name of a text column').optional(),
    /** A uuid column: the trace id of all the row's runs. Left out, each run has one of its own. */
    trace: filled('the name of a uuid column').optional(),
    /** A timestamptz column: once it is past, the sweep starts a run. Needs an index of yours. */
    due: filled('the name of a timestamptz column').optional(),
    /** A jsonb column, which a run copies when it starts. */
    metadata: filled('the name of a jsonb column').optional(),
    /** Database roles that start stages by writing their statuses, such as authenticated. Left out, only yours do. */
    startableBy: z.array(role).min(1).optional(),
  })
  .refine(({ projection, startableBy }) => projection !== 'none' || startableBy === undefined, {
    path: ['startableBy'],
    error: 'belongs to the projections columns and status, since there are no statuses to write without: leave it out',
  })
  .refine(({ projection, status: shown }) => (projection === 'status') === (shown !== undefined), {
    path: ['status'],
    error: 'belongs to the projection status: give it there, and only there',
  })
  .meta(says('an object with a table'));

/** The seconds of a quota's window, at most 31 days. */
const window = whole(1, 2_678_400);
const starts = z.strictObject({ count: whole(1, 1_000_000), perSeconds: window });
const spending = z.strictObject({ usd: number(0.01, 1_000_000), perSeconds: window });
const both = 'Name both, and nothing else; or leave it out.';
/** Starts and spending that each tenant may have in a window; the rest stays queued. Left out, there is no bound. */
const quota = sized(
  z.strictObject({
    /** The entity's column whose value is the tenant; rows without one share a quota. */
    column: column('Name the column whose value is the tenant.'),
    /** Windows are fixed: an hour begins on the hour, a day at midnight UTC. */
    starts: starts.meta(says('an object of count and per_seconds', both)).optional(),
    /** Compared with the cost that attempts report. Attempts that are in work when it is used up go on. */
    spending: spending.meta(says('an object of usd and per_seconds', both)).optional(),
  }),
  2,
  3,
  'an object of column, and starts or spending or both',
  'Name what is bounded and by which column, and nothing else; or leave it out.',
);

/** One limit over all stages that name it. */
const sharedLimit = sized(
  z.strictObject({
    /** How many attempts of all its stages are in work at once. */
    maxInFlight: whole(1, 10_000).optional(),
    /** How many begin in an interval, at all its stages together. */
    rate: rate.meta(says('an object of count, per_seconds and burst')).optional(),
    /** How many of one key begin in an interval; the key is that of each stage's `limits.concurrency`, such as a host. */
    keyRate: rate.meta(says('an object of count, per_seconds and burst')).optional(),
    /** Usage that attempts may report in a window; at least one of usd and tokens. */
    spending: sized(
      z.strictObject({
        usd: number(0.01, 1_000_000).optional(),
        /** Of input and output. */
        tokens: whole(1, 1_000_000_000_000).optional(),
        /** Windows are fixed: an hour begins on the hour, a day at midnight UTC. */
        perSeconds: window,
      }),
      2,
      3,
      'an object of usd or tokens or both, and per_seconds',
      'Write {"usd": 5, "per_seconds": 86400}; or leave it out.',
    ).optional(),
  }),
  1,
  4,
  'an object with at least one limit',
  'Set max_in_flight, rate, key_rate or spending; a limit that is to let nothing through is a pause of its stages.',
);
/** Limits by their names. */
export const sharedLimitsSchema = z.record(name, sharedLimit);
export type SharedLimitsInput = z.input<typeof sharedLimitsSchema>;

/**
 * A rule that is judged each minute, for the pipeline or its stages. The database holds the channels that it notifies.
 */
const alertRule = z
  .strictObject({
    kind: oneOf(
      ['run_sla', 'error_share', 'backlog', 'dead', 'spend', 'late', 'refused', 'unattended'],
      'run_sla and late know their own bounds, the others need above.',
    ),
    /** A stage, or * for each of them; left out, the pipeline as a whole, end to end. */
    stage: text(
      /^(\*|[a-z][a-z0-9_]{0,40})$/,
      'the name of a stage, or *',
      'Leave it out for the pipeline.',
    ).optional(),
    /** A share for error_share, runs for backlog and dead, US dollars for spend, seconds for refused and unattended. */
    above: number(0, 1_000_000_000).optional(),
    /** How far back the rule looks, in seconds: 600 by default, 3,600 for dead and spend. */
    spanSeconds: whole(60, week).optional(),
    /** How long the value must be above its bound before an alert is raised, in seconds. */
    forSeconds: whole(0, 86_400).optional(),
    /** How long the value must be back within its bound before the alert is resolved, in seconds. */
    recoverSeconds: whole(0, 86_400).optional(),
    /** How many attempts must have ended before error_share is judged. */
    least: whole(1, 1_000_000).optional(),
    /** Names of the channels that get its alerts; left out, all channels do. */
    channels: z.array(name).min(1).meta(says('a list of names of channels')).optional(),
    /** The page that says what to do. */
    playbook: filled('the address of a page').optional(),
    enabled: flag.optional(),
  })
  .meta(says('an object with a kind'));

/** How long the pipeline's runs should take from their start to their end. Left out, there is no bound. */
const sla = sized(
  z.strictObject({
    /** Half of the runs should take no longer. */
    medianSeconds: number(1, year).optional(),
    /** Nineteen of twenty should take no longer. */
    p95Seconds: number(1, year).optional(),
  }),
  1,
  2,
  'an object of medianSeconds or p95Seconds or both',
  'Write { p95Seconds: 7200 }, or leave it out.',
);

const retention = sized(
  z.strictObject({
    /** How long finished runs are kept; left out, as the engine's setting retention_days says. */
    days: whole(1, 9999).optional(),
    /** How long they keep their results, log lines and conversations; left out, as long as the runs. */
    outputsDays: whole(1, 9999).optional(),
  }),
  1,
  2,
  'an object of days or outputsDays or both',
  'Write { days: 30 }, or leave it out.',
);

/** To whom millrace_progress() shows more than the message of an error. */
const progress = z
  .strictObject({
    /** The roles that see the `detail` of errors too, which is for operators otherwise. */
    detailsTo: z.array(role).min(1).meta(says('a list of at least one role', "Write ['authenticated'].")),
  })
  .meta(says('an object of detailsTo', "Write { detailsTo: ['authenticated'] }, or leave it out."));

export const pipelineSchema = z.strictObject({
  name,
  entity,
  quota: quota.optional(),
  /** By their names; one that is called like a default rule takes its place. */
  alerts: z.record(name, alertRule).optional(),
  sla: sla.optional(),
  retention: retention.optional(),
  progress: progress.optional(),
  /** Left out, a pipeline stays switched on or off as it was. */
  enabled: flag.optional(),
  stages: z
    .record(name, stageSchema)
    .refine((stages) => Object.keys(stages).length > 0, 'must be an object of at least one stage')
    .meta(says('an object of at least one stage')),
});

/** Returns the options that a stage of this kind takes, for messages; null for a kind there is not. */
export function optionsOf(kind: unknown): string[] | null {
  const found = kinds.find(({ shape }) => shape.kind.safeParse(kind).success);
  return found ? Object.keys(found.shape) : null;
}

export type PipelineInput = z.input<typeof pipelineSchema>;
export type PipelineOptions = z.output<typeof pipelineSchema>;
export type StageInput = z.input<typeof stageSchema>;
export type FunctionStageInput = z.input<typeof functionStage>;
export type StageDefinition = z.output<typeof stageSchema>;
/** A stage that has a function, or with host 'worker' a process in its place. */
export type WorkedStageInput = Extract<StageInput, { function: string }>;
