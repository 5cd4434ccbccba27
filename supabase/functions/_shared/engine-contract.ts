import { z } from 'zod';
import type { Failure } from './errors.ts';

const ring = z.object({ pipeline: z.string(), stage: z.string(), function: z.string() });

const item = z.object({
  attempt: z.number(),
  token: z.string(),
  run: z.number(),
  trace_id: z.string(),
  version: z.number(),
  entity_id: z.string(),
  entity: z.record(z.string(), z.unknown()),
  needs: z.record(z.string(), z.unknown()),
  retry_count: z.number(),
  submission: z.number(),
  alone: z.boolean(),
});

const verdict = z.object({
  attempt: z.number().nullish(),
  verdict: z.enum(['accepted', 'duplicate', 'stale', 'busy', 'rejected']),
  reason: z.string().nullish(),
});

const stageLimits = z.object({ batch_size: z.number(), timeout_ms: z.number(), result_limit_bytes: z.number() });

const admitted = z.object({
  status: z.enum(['working', 'empty']),
  reason: z.string().nullish(),
  lease_ms: z.number(),
  stage: stageLimits,
  batch: z.array(item),
  ring: z.array(ring),
});
const refused = z.object({
  status: z.literal('refused'),
  reason: z.string().nullish(),
  ring: z.array(ring).default([]),
});
const verdicts = { items: z.array(verdict) };

export const claimAnswer = z.discriminatedUnion('status', [admitted, refused]);
export const completeAnswer = z.discriminatedUnion('status', [admitted.extend(verdicts), refused.extend(verdicts)]);
export const renewAnswer = z.object({ renewed: z.number(), lost: z.array(z.number()) });
export const leaveAnswer = z.object({ left: z.boolean(), ring: z.array(ring) });
export const ringAnswer = z.object({ rung: z.number() });
export const resumeAnswer = z.object({ items: z.array(verdict), ring: z.array(ring) });
export const pollAnswer = z.object({
  jobs: z.array(
    z.object({
      attempt: z.number(),
      submission: z.number(),
      trace_id: z.string(),
      pipeline: z.string(),
      stage: z.string(),
      service: z.string(),
      job_id: z.string(),
      entity_id: z.string(),
      deadline_at: z.string().nullish(),
    }),
  ),
  more: z.boolean(),
});

/** A doorbell the engine wants rung. */
export type Ring = z.output<typeof ring>;
/** One claimed attempt, with all its handler needs. */
export type Item = z.output<typeof item>;
/** The engine's answer to one outcome; answers come in the order of the items. */
export type Verdict = z.output<typeof verdict>;
export type Claim = z.output<typeof claimAnswer>;
export type Completion = z.output<typeof completeAnswer>;
export type StageLimits = z.output<typeof stageLimits>;
export type WaitingJob = z.output<typeof pollAnswer>['jobs'][number];

/** What an attempt used up: flat, kept as it is on the attempt. */
export interface Usage {
  model: string;
  prompt: string;
  input_tokens: number | null;
  output_tokens: number | null;
  cost_usd: number | null;
}

/** What a worker reports of an attempt it holds. */
export type Outcome =
  | { outcome: 'completed'; result: unknown; usage?: Usage }
  | { outcome: 'failed'; error: Failure; usage?: Usage }
  | { outcome: 'waiting'; service: string; job_id: string; usage?: Usage }
  | { outcome: 'released' };

export type OutcomeItem = { attempt: number; token: string } & Outcome;

/** What became of an external job. */
export type JobOutcome = Extract<Outcome, { outcome: 'completed' | 'failed' }>;
export type JobOutcomeItem = JobOrigin & { service: string; job_id: string } & JobOutcome;

/** Where a job was submitted. The engine takes its end only for an attempt of this stage and trace. */
export interface JobOrigin {
  pipeline: string;
  stage: string;
  submission: number;
  trace_id: string;
}
