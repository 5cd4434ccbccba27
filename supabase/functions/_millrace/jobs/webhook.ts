import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { z } from 'zod';
import type { JobOrigin } from '../engine/engine-contract.ts';
import { parseJson } from '../parse-json.ts';
import type { CallbackOrigin } from './callback-url.ts';

const origin = z.object({
  pipeline: z.string().min(1),
  stage: z.string().min(1),
  // A service may send numbers back as text.
  submission: z.union([z.number(), z.string().regex(/^\d+$/).transform(Number)]).pipe(z.int().positive()),
  trace_id: z.string().min(1),
  entity_id: z.string().min(1),
});

/** A callback that returns the metadata with which the job was submitted. */
const named = z.object({ data: z.object({ metadata: origin.extend({ service: z.string().default('') }) }) });
/** A callback that brings no metadata of ours back names its job alone. */
const unnamed = z.object({
  data: z.union([
    z.object({ job_id: z.string().min(1) }).transform(({ job_id }) => job_id),
    z.object({ id: z.string().min(1) }).transform(({ id }) => id),
  ]),
});

/**
 * Checks a Standard Webhooks signature against each secret, so that secrets can be exchanged without a gap.
 * Returns null when it is good and at most 5 minutes old, else why not.
 */
export function signatureFault(body: string, headers: Headers, secrets: string[]): string | null {
  let fault = 'No secret is set.';
  for (const secret of secrets) {
    try {
      new Webhook(secret).verify(body, Object.fromEntries(headers), { jsonParse: false });
      return null;
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error;
      fault = error.message;
    }
  }
  return fault;
}

/**
 * Whose job the body of a verified callback is about: the attempt that its `data.metadata` names, else the job's id, its
 * `data.job_id` or `data.id`. Or what is wrong with it.
 */
export function readOwner(body: string): CallbackOrigin | { job_id: string } | { fault: string } {
  const value = parseJson(body);
  const byName = named.safeParse(value);
  if (byName.success) return byName.data.data.metadata;
  const metadata = z.object({ data: z.object({ metadata: z.object({ submission: z.unknown() }) }) }).safeParse(value);
  if (metadata.success && metadata.data.data.metadata.submission !== undefined) return { fault: faultIn(byName.error) };
  const byId = unnamed.safeParse(value);
  if (byId.success) return { job_id: byId.data.data };
  return {
    fault:
      'The body does not say whose job it is about: send data.metadata back as it was submitted, or the job’s id as ' +
      'data.job_id or data.id.',
  };
}

/** Returns the fault of an origin that a URL names, as a sentence; null where it has none. */
export function originFault(value: JobOrigin): string | null {
  const parsed = origin.safeParse(value);
  return parsed.success ? null : `The URL: ${faultIn(parsed.error)}`;
}

function faultIn(error: z.ZodError): string {
  const issue = error.issues[0];
  return `${issue?.path.join('.') || 'The body'}: ${issue?.message}`;
}
