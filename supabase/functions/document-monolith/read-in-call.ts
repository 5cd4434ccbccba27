import { setTimeout as delay } from 'node:timers/promises';
import { placeOf, type SourceDocument } from '../_documents/extract-document.ts';
import { pictureText, type ReadElsewhere, spokenText } from '../_documents/read-elsewhere.ts';
import { type HandlerContext, RetriableError } from '../_millrace/mod.ts';
import { ocrService, pageOfJob, submitPage } from '../_services/ocr.ts';
import { signedUrl } from '../_services/storage-files.ts';
import { transcribeNow } from '../_services/transcription.ts';

const urlSeconds = 600;
const pollMs = 500;

/** Has a service read the document's file, and waits for it in this call. Throws a StageError. */
export async function readInCall(
  service: 'transcription' | 'ocr',
  document: SourceDocument,
  context: HandlerContext,
  checkTime: (progress: string) => void,
): Promise<ReadElsewhere> {
  const { env, signal } = context;
  const url = await signedUrl(placeOf(document), env, urlSeconds);
  if (service === 'transcription') return spokenText(await transcribeNow(url, context));
  // Nobody is called back: this call asks until the page is read.
  const { callbackUrl: _, ...asked } = context;
  const jobId = await submitPage({ documentUrl: url, page: 1 }, asked, context.submissionKey);
  for (;;) {
    const answer = await ocrService.poll(jobId, { env, signal });
    if (answer.state === 'lost') throw new RetriableError('job_lost', `The OCR service has no job ${jobId} any more.`);
    if (answer.state === 'finished') return pictureText(pageOfJob(answer.job));
    checkTime('The OCR service was still reading the picture');
    await delay(pollMs, undefined, { signal });
  }
}
