import OpenAI from 'openai';
import {
  errorFromStatus,
  MisconfiguredError,
  messageOf,
  PermanentError,
  RetriableError,
  retryAfterMs,
  type StageError,
} from '../errors.ts';

/** Codes and types by which model APIs say that an account has no money left, some of them beside the status 429. */
const withoutMoney = /^(?:insufficient_quota|insufficient_balance|billing_\w+|payment_required)$/;

/** Codes by which model APIs say that a filter of theirs stopped the question. */
const byFilter = /^(?:content_filter|content_policy_violation|responsible_ai_policy_violation)$/;
const tooLong = /^(?:context_length_exceeded|string_above_max_length|tokens_exceed_context_window)$/;
const refusal =
  /unsupported (?:parameter|value)|unknown parameter|unrecognized request argument|not supported with this|extra inputs are not permitted/i;

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
  return rejected(error.code ?? '', message) ?? byParameter(error) ?? otherwise(message);
}

/**
 * The error of a background response that failed, by the code and the message that it came with.
 *
 * @internal
 */
export function failedResponse({ code, message }: { code: string; message: string }): StageError {
  const said = `The model failed (${code}).`;
  if (code === 'rate_limit_exceeded') return new RetriableError('rate_limited', said, undefined, message);
  if (code === 'server_error' || code === 'unknown') {
    return new RetriableError('server_error', said, undefined, message);
  }
  return rejected(code, message) ?? new PermanentError('model_rejected_request', said, undefined, message);
}

/**
 * The parameter that a model does not know or take, such as `metadata`; null for every other error.
 *
 * @internal
 */
export function refusedParameter(error: unknown): string | null {
  if (!(error instanceof OpenAI.APIError) || (error.status !== 400 && error.status !== 422)) return null;
  const { code, message, param } = error;
  if (!/^un(?:supported|known)_(?:parameter|value)$/.test(code ?? '') && !refusal.test(message)) return null;
  const name = param ?? /(?:['"`]|(?:supplied|permitted): ?)([a-z_.]+)/i.exec(message)?.[1];
  return name?.split('.')[0] ?? null;
}

/**
 * Returns the error of a question that the model rejects for its text, so that no retry helps; null for other errors.
 */
function rejected(code: string, message: string): PermanentError | null {
  if (byFilter.test(code)) {
    return new PermanentError('content_filtered', "The model's filter stopped the question.", undefined, message);
  }
  if (tooLong.test(code)) {
    const said = 'The question is longer than the model reads: shorten it, or set LLM_MODEL to one that reads more.';
    return new PermanentError('question_too_long', said, undefined, message);
  }
  return null;
}

function byParameter(error: unknown): StageError | null {
  const name = refusedParameter(error);
  if (name === null || name === 'text') return null;
  const { message } = error as Error;
  if (name === 'background') {
    return new MisconfiguredError('The model answers in the call alone: set LLM_MODE to inline.', message);
  }
  const said = `The model does not take the parameter ${name}: set LLM_MODEL to one that does.`;
  return new PermanentError('parameter_refused', said, undefined, message);
}

function otherwise(message: string): PermanentError {
  return new PermanentError('model_rejected_request', 'The model rejected the request.', undefined, message);
}
