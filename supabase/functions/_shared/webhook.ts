import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { z } from 'zod';
import { callbackOrigin } from './callback-url.ts';
import type { JobOrigin } from './engine-contract.ts';
import { OCR_SERVICE } from './ocr-client.ts';
import { parseJson } from './parse-json.ts';
import { SCRAPER_SERVICE } from './scraper-client.ts';
import { TRANSCRIPTION_SERVICE } from './transcription-client.ts';

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

/** The transcription service's says nothing of the attempt: the URL it was sent to does. */
const transcriptionOrigin = named.extend({ service: z.literal(TRANSCRIPTION_SERVICE) });
const requestId = z.string().min(1);
const transcriptionId = z.union([
  z.object({ metadata: z.object({ request_id: requestId }) }).transform(({ metadata }) => metadata.request_id),
  z.object({ request_id: requestId, err_code: z.string() }).transform((refusal) => refusal.request_id),
]);

/** Of a job with all that finishes it, or of a model's response, which must be fetched. */
export type Callback =
  | { from: 'job'; service: string; jobId: string; metadata: JobOrigin; job: unknown }
  | { from: 'model'; jobId: string };

type ReadCallback = { callback: Callback } | { fault: string };

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
export function readCallback(body: string): ReadCallback {
  const parsed = payload.safeParse(parseJson(body));
  return parsed.success ? { callback: parsed.data } : { fault: fault(parsed.error) };
}

/** Reads a callback to a verified URL of our own, of a service that signs nothing, or says what is wrong with it. */
export function readUnsignedCallback(url: URL, body: string): ReadCallback {
  const origin = transcriptionOrigin.safeParse(callbackOrigin(url));
  if (!origin.success) return { fault: `The URL: ${fault(origin.error)}` };
  const { service, ...metadata } = origin.data;
  const job = parseJson(body);
  const jobId = transcriptionId.safeParse(job);
  if (!jobId.success) return { fault: 'The body has no metadata.request_id, as a transcription has.' };
  return { callback: { from: 'job', service, jobId: jobId.data, metadata, job } };
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
