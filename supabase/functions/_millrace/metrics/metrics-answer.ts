import '../zod-settings.ts';
import { z } from 'zod';
import type { HealthFault } from '../alerts/say-alert.ts';

/** Times in seconds: their sum, and how many lie below each bound and above the one before. */
interface Times {
  sum: number;
  buckets: number[];
}

/** The counters of a stage, or of a pipeline as a whole. */
interface Counter {
  pipeline: string;
  /** Null for the pipeline as a whole. */
  stage: string | null;
  outcomes: Record<string, number>;
  run_seconds: Times;
  wait_seconds: Times;
  cost_usd: number;
  input_tokens: number;
  output_tokens: number;
}

/**
 * The counters of one outcome of a stage, or of a pipeline as a whole. A scrape has thousands, so fields have no names. Times are in
 * milliseconds, of runs and then of waits; then come cost, and tokens in and out.
 */
const outcomeCounter = z.tuple([
  z.string(),
  z.string().nullable(),
  z.string(),
  z.number(),
  z.number(),
  z.array(z.number()),
  z.number(),
  z.array(z.number()),
  z.number(),
  z.number(),
  z.number(),
]);

/** Adds up the outcomes of each stage, which follow each other, in so many buckets. */
function addUp(outcomes: z.output<typeof outcomeCounter>[], bucketCount: number): Counter[] {
  const counters: Counter[] = [];
  for (const [pipeline, stage, outcome, n, runMs, runs, waitMs, waits, cost, input, output] of outcomes) {
    const last = counters.at(-1);
    const counter =
      last?.pipeline === pipeline && last.stage === stage ? last : emptyCounter(pipeline, stage, bucketCount);
    if (counter !== last) counters.push(counter);
    counter.outcomes[outcome] = n;
    addTimes(counter.run_seconds, runMs, runs);
    addTimes(counter.wait_seconds, waitMs, waits);
    counter.cost_usd += cost;
    counter.input_tokens += input;
    counter.output_tokens += output;
  }
  return counters;
}

const emptyCounter = (pipeline: string, stage: string | null, bucketCount: number): Counter => ({
  pipeline,
  stage,
  outcomes: {},
  run_seconds: { sum: 0, buckets: Array<number>(bucketCount).fill(0) },
  wait_seconds: { sum: 0, buckets: Array<number>(bucketCount).fill(0) },
  cost_usd: 0,
  input_tokens: 0,
  output_tokens: 0,
});

function addTimes(times: Times, ms: number, counts: number[]): void {
  times.sum += ms / 1000;
  for (const [place, n] of counts.entries()) times.buckets[place] = (times.buckets[place] ?? 0) + n;
}

/** The engine's answer for metrics. */
export const metricsAnswer = z
  .object({
    release: z.string(),
    level: z.number(),
    /** The upper bounds of all buckets but the last, in seconds. */
    bounds: z.array(z.number()),
    counters: z.array(outcomeCounter),
    stages: z.array(
      z.object({
        pipeline: z.string(),
        stage: z.string(),
        enabled: z.boolean(),
        ready: z.number(),
        in_backoff: z.number(),
        started: z.number(),
        oldest_ready_seconds: z.number().nullable(),
        live_workers: z.number(),
      }),
    ),
    /** Null where there was none yet. */
    sweep_age_seconds: z.number().nullable(),
    alerts: z.array(z.object({ rule: z.string(), pipeline: z.string().nullable(), open: z.number() })),
    messages: z.array(z.object({ channel: z.string(), waiting: z.number(), dead: z.number() })),
  })
  .transform((answer) => ({ ...answer, counters: addUp(answer.counters, answer.bounds.length + 1) }));

export const healthAnswer = z.object({
  ok: z.boolean(),
  release: z.string(),
  level: z.number(),
  faults: z.array(
    z.object({
      kind: z.string(),
      what: z.string(),
      detail: z.string().nullish(),
      pipeline: z.string().nullish(),
      stage: z.string().nullish(),
      since: z.string().nullish(),
      alert: z.custom<HealthFault['alert']>().optional(),
    }),
  ),
  more: z.number(),
  dead_last_day: z.string(),
});

export type MetricsAnswer = z.output<typeof metricsAnswer>;
