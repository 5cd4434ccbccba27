import { z } from 'zod';
import { PermanentError, storableText } from './errors.ts';
import { getJob, type Job, type JobMetadata, type JobService, jobFailure, readJob, submitJob } from './job-client.ts';
import { type Env, readSettings } from './settings.ts';

/** The name under which waiting attempts know this service. */
export const OCR_SERVICE = 'ocr';

const NAME = 'OCR service';

export interface PageRequest {
  env: Env;
  /** A PDF, or a PNG or JPEG image, as the service can download it: a signed URL of Storage that outlives the job. */
  documentUrl: string;
  /** From 1. */
  page: number;
  /** Where the service reports the job's end; without it nobody is told. */
  callbackUrl?: string;
  idempotencyKey: string;
  /** Which attempt the job belongs to. */
  metadata: Omit<JobMetadata, 'service'>;
  signal: AbortSignal;
}

const share = z.number().min(0).max(1);

const pageSchema = z.object({
  page: z.int().positive(),
  /** Of the page: points of a PDF, pixels of an image; so are the boxes [x0, y0, x1, y1], from the top left corner. */
  width: z.number().positive(),
  height: z.number().positive(),
  /** The lines, parted by \n, with an empty line between blocks; empty when the page is. */
  text: z.string().transform(storableText),
  confidence: share,
  lines: z.array(
    z.object({
      text: z.string().transform(storableText),
      confidence: share,
      bbox: z.tuple([z.number(), z.number(), z.number(), z.number()]),
    }),
  ),
});

/** What was read on a page. */
export type ReadPage = z.output<typeof pageSchema>;

/**
 * Has a page read. Returns the job's id; the same idempotency key gets the same job. Throws a StageError.
 */
export async function submitPage(request: PageRequest): Promise<string> {
  const body = {
    document_url: request.documentUrl,
    page: request.page,
    callback_url: request.callbackUrl,
    metadata: { ...request.metadata, service: OCR_SERVICE },
  };
  return submitJob(ocr(request.env), body, request);
}

/** Asks after a job; null when the service does not know it. Throws a StageError. */
export async function getOcrJob(id: string, env: Env, signal: AbortSignal): Promise<Job | null> {
  return getJob(ocr(env), id, signal);
}

/** Turns a finished job into what was read; a blank page is empty text. Throws what the job failed of. */
export function pageOfJob(value: unknown): ReadPage {
  const job = readJob(NAME, value);
  if (job.status !== 'completed') throw jobFailure(NAME, job, 'ocr_failed');
  const page = pageSchema.safeParse(job.result);
  if (page.success) return page.data;
  const issue = page.error.issues[0];
  const where = ['result', ...(issue?.path ?? [])].join('.');
  throw new PermanentError('invalid_output', `The ${NAME}'s job is wrong at ${where}: ${issue?.message}`);
}

function ocr(env: Env): JobService {
  const { OCR_URL: url, OCR_AUTH_TOKEN: token } = readSettings('ocr', env);
  return { name: NAME, prefix: 'OCR', url, token };
}
