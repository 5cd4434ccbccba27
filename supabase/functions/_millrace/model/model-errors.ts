import OpenAI from 'openai';
import {
  errorFromStatus,
  MisconfiguredError,
  messageOf,
  PermanentError,
  RetriableError,
  retryAfterMs,
} from '../errors.ts';

/** Codes and types by which model APIs say that an account has no money left, some of them beside the status 429. */
const withoutMoney = /^(?:insufficient_quota|insufficient_balance|billing_\w+|payment_required)$/;

/**
 * Sorts an error of the openai SDK. An API that cannot be reached is an outage and thus retriable, unlike a site that
 * is to be read; a refused key or an unknown model is a setting to correct.
 */
export function modelError(error: unknown): unknown {
  if (error instanceof OpenAI.APIConnectionTimeoutError) {
    return new RetriableError('timeout', 'The model at LLM_URL did not answer in time.');
  }
  if (error instanceof OpenAI.APIConnectionError) {
    const said = `The model at LLM_URL cannot be reached: ${messageOf(error)}`;
    return new RetriableError('model_unreachable', 'The model cannot be reached.', undefined, said);
  }
  if (!(error instanceof OpenAI.APIError) || error.status === undefined) return error;
  const { status, message } = error;
  const headers: Headers = error.headers ?? new Headers();
  if (status === 402 || withoutMoney.test(error.code ?? '') || withoutMoney.test(error.type ?? '')) {
    return new MisconfiguredError("The model account's money is out: add credit, or raise its limit.", message);
  }
  if (status === 401 || status === 403) {
    return new MisconfiguredError('The model refused LLM_AUTH_TOKEN: correct it.', message);
  }
  if (status === 404) {
    return new MisconfiguredError('The model was not found: correct LLM_URL or LLM_MODEL.', message);
  }
  if (status === 409 && error.code === 'idempotency_key_reused') {
    return new PermanentError(
      error.code,
      "The model took another request under this attempt's key.",
      undefined,
      message,
    );
  }
  if (status === 409) return new RetriableError('conflict', 'The model answered 409', retryAfterMs(headers), message);
  if (status === 408 || status === 429 || status >= 500) return errorFromStatus(status, headers, 'The model');
  return new PermanentError('model_rejected_request', 'The model rejected the request.', undefined, message);
}
