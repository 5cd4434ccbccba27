import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { z } from 'zod';
import type { JobOrigin } from './engine-contract.ts';
import { OCR_SERVICE } from './ocr-client.ts';
import { SCRAPER_SERVICE } from './scraper-client.ts';

/** What a job carries from its submission to its end. */
const named = z.object({
  pipeline: z.string(),
  stage: z.string(),
  submission: z.coerce.number().int().positive(),
  trace_id: z.string().min(1),
  entity_id: z.string().min(1),
});

/** A job's also says which service has it; the scraper is the one that need not. */
const jobMetadata = named.extend({ service: z.enum([SCRAPER_SERVICE, OCR_SERVICE]).default(SCRAPER_SERVICE) });

const jobCallback = z
  .object({
    type: z.enum(['job.completed', 'job.failed']),
    data: z.looseObject({ job_id: z.string().min(1), metadata: jobMetadata }),
  })
  .transform(({ data: job }) => {
    const { service, ...metadata } = job.metadata;
    return { from: 'job' as const, service, jobId: job.job_id, metadata, job };
  });

const modelCallback = z
  .object({
    type: z.enum(['response.completed', 'response.failed', 'response.cancelled', 'response.incomplete']),
    data: z.object({ id: z.string().min(1) }),
  })
  .transform(({ data }) => ({ from: 'model' as const, jobId: data.id }));

const payload = z.discriminatedUnion('type', [jobCallback, modelCallback]);
/** A callback as a service of jobs sends it (`job.*`) or as the model does (`response.*`). */
export type Callback = z.output<typeof payload>;

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

/** Reads the body of a verified callback, or says what is wrong with it. */
export function readCallback(body: string): { callback: Callback } | { fault: string } {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return { fault: 'The body is no JSON.' };
  }
  const parsed = payload.safeParse(json);
  return parsed.success ? { callback: parsed.data } : { fault: fault(parsed.error) };
}

/** Reads the metadata that a model's response carries, or says what is wrong with it. */
export function readMetadata(value: unknown): { metadata: JobOrigin } | { fault: string } {
  const parsed = named.safeParse(value);
  return parsed.success ? { metadata: parsed.data } : { fault: `The response's metadata: ${fault(parsed.error)}` };
}

function fault(error: z.ZodError): string {
  const issue = error.issues[0];
  return `${issue?.path.join('.') || 'The body'}: ${issue?.message}`;
}
