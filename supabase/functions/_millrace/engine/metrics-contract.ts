// The engine's answers about its figures and its health.
import '../zod-settings.ts';
import { z } from 'zod';
import type { AlertFacts } from './alert-contract.ts';

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

/** The engine's answer for metrics. */
export const metricsAnswer = z.object({
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
});

/** Something that is not well, as the database lists it: the sweep, a stage that nobody works at, an alert, or a finding. */
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
  dead_last_day: z.string(),
});
