import '../zod-settings.ts';
import { z } from 'zod';
import type { HealthFault } from '../alerts/say-alert.ts';

const times = z.object({ sum: z.number(), buckets: z.array(z.number()) });

/** What the engine tells for metrics. */
export const metricsAnswer = z.object({
  release: z.string(),
  level: z.number(),
  /** The upper bounds of all buckets but the last, in seconds. */
  bounds: z.array(z.number()),
  counters: z.array(
    z.object({
      pipeline: z.string(),
      /** Null for the pipeline as a whole. */
      stage: z.string().nullable(),
      outcomes: z.record(z.string(), z.number()),
      run_seconds: times,
      wait_seconds: times,
      cost_usd: z.number(),
      input_tokens: z.number(),
      output_tokens: z.number(),
    }),
  ),
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
