// The engine's answers about its figures and its health.
import '../zod-settings.ts';
import { z } from 'zod';
import type { AlertFacts } from './alert-contract.ts';

/**
 * The counters of one outcome of a stage, or of a pipeline as a whole. A scrape has thousands, so fields have no names. Times are in
 * milliseconds, of runs and then of waits; then come cost, and tokens in and out.
 */
type OutcomeCounter = [
  pipeline: string,
  stage: string | null,
  outcome: string,
  n: number,
  runMs: number,
  runs: number[],
  waitMs: number,
  waits: number[],
  cost: number,
  input: number,
  output: number,
];

const isNumber = (value: unknown) => typeof value === 'number';
const isNumbers = (value: unknown) => Array.isArray(value) && value.every(isNumber);

// By hand: zod takes a hundred milliseconds for the hundred thousand numbers of a thousand stages.
const outcomeCounter = z.custom<OutcomeCounter>((value) => {
  if (!Array.isArray(value)) return false;
  const [pipeline, stage, outcome, n, runMs, runs, waitMs, waits, ...usage] = value;
  return (
    typeof pipeline === 'string' &&
    (typeof stage === 'string' || stage === null) &&
    typeof outcome === 'string' &&
    isNumbers([n, runMs, waitMs, ...usage]) &&
    usage.length === 3 &&
    isNumbers(runs) &&
    isNumbers(waits)
  );
}, 'is no counter of an outcome');

/** How a stage stands now. */
interface StageGauges {
  pipeline: string;
  stage: string;
  enabled: boolean;
  ready: number;
  in_backoff: number;
  started: number;
  oldest_ready_seconds: number | null;
  live_workers: number;
}

const stageGauges = z.custom<StageGauges>((value) => {
  if (typeof value !== 'object' || value === null) return false;
  const { pipeline, stage, enabled, ready, in_backoff, started, oldest_ready_seconds, live_workers } =
    value as Partial<StageGauges>;
  return (
    typeof pipeline === 'string' &&
    typeof stage === 'string' &&
    typeof enabled === 'boolean' &&
    isNumbers([ready, in_backoff, started, oldest_ready_seconds ?? 0, live_workers])
  );
}, 'is no stage with its gauges');

/** The engine's answer for metrics. */
export const metricsAnswer = z.object({
  release: z.string(),
  level: z.number(),
  /** The upper bounds of all buckets but the last, in seconds. */
  bounds: z.array(z.number()),
  counters: z.array(outcomeCounter),
  stages: z.array(stageGauges),
  /** Null where there was none yet. */
  sweep_age_seconds: z.number().nullable(),
  alerts: z.array(z.object({ rule: z.string(), pipeline: z.string().nullable(), open: z.number() })),
  messages: z.array(z.object({ channel: z.string(), waiting: z.number(), dead: z.number() })),
});

/**
 * A fault of the project, as the database lists it: a stopped sweep, an unattended stage, an open alert, or a finding.
 */
export interface HealthFault {
  kind: string;
  what: string;
  detail?: string | null | undefined;
  pipeline?: string | null | undefined;
  stage?: string | null | undefined;
  since?: string | null | undefined;
  /** Of an alert: its facts. */
  alert?: (AlertFacts & { id?: number | undefined; raised_at?: string | undefined }) | null | undefined;
}

export type MetricsAnswer = z.output<typeof metricsAnswer>;

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
  quiet_alerts: z.number().optional(),
  dead_last_day: z.string(),
});
