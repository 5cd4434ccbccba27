import { z } from 'zod';
import { jobService, PermanentError, type SubmitContext, storableText } from '../_millrace/mod.ts';

/** Reads the pages of scanned documents, as pictures. */
export const ocrService = jobService({ name: 'ocr', label: 'OCR service' });

/** A page to be read. */
export interface PageRequest {
  /** A PDF, or a PNG or JPEG image, as the service can download it: a signed URL of Storage that outlives the job. */
  documentUrl: string;
  /** From 1. */
  page: number;
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

/** A page as the service read it. */
export type ReadPage = z.output<typeof pageSchema>;

/**
 * Has a page of a document read. `documentUrl` is where the service downloads the document, and `page` counts from 1. Resolves
 * to the job's id; the same key gets the same job. Throws a StageError.
 *
 * @example
 * ```ts
 * async function readPage(context: HandlerContext): Promise<Waiting> {
 *   const request = { documentUrl: 'https://files.example.com/order.pdf', page: 1 };
 *   return waiting(ocrService, await submitPage(request, context, context.submissionKey));
 * }
 * ```
 */
export async function submitPage(
  { documentUrl, page }: PageRequest,
  context: SubmitContext,
  key: string,
): Promise<string> {
  return ocrService.submit({ document_url: documentUrl, page }, context, key);
}

/**
 * Turns a finished job into what was read; a blank page is empty text. Throws what the job failed of.
 *
 * @example
 * ```ts
 * const { text, confidence } = pageOfJob(job);
 * ```
 */
export function pageOfJob(value: unknown): ReadPage {
  const page = pageSchema.safeParse(ocrService.resultOf(value));
  if (page.success) return page.data;
  const issue = page.error.issues[0];
  const where = ['result', ...(issue?.path ?? [])].join('.');
  throw new PermanentError('invalid_output', `The ${ocrService.label}'s job is wrong at ${where}: ${issue?.message}`);
}
