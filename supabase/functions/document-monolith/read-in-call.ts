import { setTimeout as delay } from 'node:timers/promises';
import { placeOf, type SourceDocument } from '../_documents/extract-document.ts';
import { pictureText, type ReadElsewhere, spokenText } from '../_documents/read-elsewhere.ts';
import { RetriableError } from '../_shared/errors.ts';
import { askService } from '../_shared/external-services.ts';
import { jobOrigin } from '../_shared/job-client.ts';
import { OCR_SERVICE, pageOfJob, submitPage } from '../_shared/ocr-client.ts';
import type { HandlerContext } from '../_shared/stage.ts';
import { signedUrl } from '../_shared/storage-files.ts';
import { transcribeNow } from '../_shared/transcription-client.ts';

const urlSeconds = 600;
const pollMs = 500;

/** Has a service read the document's file, and waits for it in this call. Throws a StageError. */
export async function readInCall(
  service: 'transcription' | 'ocr',
  document: SourceDocument,
  context: HandlerContext,
  checkTime: (progress: string) => void,
): Promise<ReadElsewhere> {
  const { env, signal, idempotencyKey } = context;
  const url = await signedUrl(placeOf(document), env, urlSeconds);
  if (service === 'transcription') {
    return spokenText(await transcribeNow({ ...context, audioUrl: url }));
  }
  const jobId = await submitPage({
    env,
    documentUrl: url,
    page: 1,
    idempotencyKey,
    metadata: jobOrigin(context),
    signal,
  });
  for (;;) {
    const answer = await askService(OCR_SERVICE, jobId, env, signal);
    if (answer.state === 'lost') throw new RetriableError('job_lost', `The OCR service has no job ${jobId} any more.`);
    if (answer.state === 'finished') return pictureText(pageOfJob(answer.job));
    checkTime('The OCR service was still reading the picture');
    await delay(pollMs, undefined, { signal });
  }
}
