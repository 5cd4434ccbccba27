import { z } from 'zod';
import {
  errorFromStatus,
  MisconfiguredError,
  PermanentError,
  RetriableError,
  type StageError,
  storableText,
} from '../_millrace/errors.ts';

const refusalSchema = z.object({ err_code: z.string(), err_msg: z.string() });
type Refusal = z.output<typeof refusalSchema>;

/**
 * Why the service refused a request, in its own words; null for anything else.
 *
 * @internal
 */
export function readRefusal(body: unknown): Refusal | null {
  return refusalSchema.safeParse(body).data ?? null;
}

/**
 * Sorts a refusal by its status: https://developers.deepgram.com/docs/errors. The service's own words may hold the signed
 * address of the file, or the account: they are for operators, but where they say what is wrong with the recording.
 *
 * @internal
 */
export function refusalError(status: number, refusal: Refusal | null, headers = new Headers()): StageError {
  const reason = storableText(refusal ? `${refusal.err_code}: ${refusal.err_msg}` : 'it gave no reason');
  const said = `The transcription service answered ${status}`;
  if (status === 401 || status === 403) {
    return new MisconfiguredError(
      `${said}: correct DEEPGRAM_API_KEY, or DEEPGRAM_MODEL if the key may not use it.`,
      reason,
    );
  }
  if (status === 404) return new MisconfiguredError(`${said}: correct DEEPGRAM_URL, which has no /v1/listen.`, reason);
  if (status === 402) {
    return new RetriableError('payment_required', `${said}: top up the account's balance.`, undefined, reason);
  }
  // The file was there when its URL was signed.
  if (refusal?.err_code === 'REMOTE_CONTENT_ERROR') {
    return new RetriableError('source_unreachable', `${said}: it could not fetch the file.`, undefined, reason);
  }
  // An upload that broke off.
  if (status === 422) return new RetriableError('incomplete_audio', said, undefined, reason);
  if (status !== 400) return errorFromStatus(status, headers, 'The transcription service', reason);
  if (/\bmodel\b/i.test(reason)) return new MisconfiguredError(`${said}: correct DEEPGRAM_MODEL.`, reason);
  return new PermanentError('unreadable_audio', `${said} (${reason}): upload a recording that plays.`);
}
