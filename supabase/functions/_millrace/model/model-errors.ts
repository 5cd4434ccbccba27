import OpenAI, { type APIPromise } from 'openai';
import {
  classifyNetworkError,
  errorFromStatus,
  MisconfiguredError,
  messageOf,
  PermanentError,
  RetriableError,
  retryAfterMs,
  type StageError,
} from '../errors.ts';

/** Codes and types by which model APIs say that an account has no money left, some of them beside the status 429. */
const withoutMoney =
  /^(?:insufficient_quota|insufficient_balance|billing_\w+|payment_required|enforced_spend_limit_reached)$/;
/** Anthropic says so in words alone, beside the status 400. */
const saysWithoutMoney = /credit balance is too low|reached your specified API usage limits/i;

/** Codes by which model APIs say that a filter of theirs stopped the question. */
const byFilter = /^(?:content_filter|content_policy_violation|responsible_ai_policy_violation)$/;
const tooLong = /^(?:context_length_exceeded|string_above_max_length|tokens_exceed_context_window|request_too_large)$/;
/** Servers without a code for it, such as vLLM's and Anthropic's. */
const saysTooLong = /maximum context length|prompt is too long|exceeds? the (?:model's )?context/i;
const refusal =
  /unsupported (?:parameter|value)|unknown parameter|unrecognized request argument|not supported with this|extra inputs are not permitted/i;

/** An API's answer that is an error, whichever API it is. */
export interface ApiFault {
  status: number;
  code: string | null;
  type: string | null;
  message: string;
  param: string | null;
  headers: Headers;
}

/**
 * Sorts an error of the openai SDK. A refused connection is an outage of the API and thus retriable. In
 * `classifyNetworkError`, for a site that a row names, it is permanent. A refused key or an unknown model is a setting to
 * correct.
 *
 * @param prefix The beginning of the names of the model's settings.
 */
export function modelError(error: unknown, prefix = 'LLM'): unknown {
  if (error instanceof OpenAI.APIConnectionTimeoutError) {
    return new RetriableError('timeout', `The model at ${prefix}_URL did not answer in time.`);
  }
  if (error instanceof OpenAI.APIConnectionError) {
    const said = `The model at ${prefix}_URL cannot be reached: ${messageOf(error)}`;
    return new RetriableError('model_unreachable', 'The model cannot be reached.', undefined, said);
  }
  const fault = faultOf(error);
  return fault ? apiError(fault, prefix) : error;
}

/**
 * Resolves to the answer of a call of the openai SDK, which reads the body itself and stumbles over a part that is missing. Its
 * TypeErrors count as `invalid_output` once the headers have come. Earlier ones are faults of a request.
 *
 * @internal
 */
export async function bodyOf<Answer>(asking: APIPromise<Answer>, prefix = 'LLM'): Promise<Answer> {
  await asking.asResponse();
  try {
    return await asking;
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
    if (classifyNetworkError(error) || /terminated|body from connection/.test(error.message)) {
      throw new OpenAI.APIConnectionError({ message: messageOf(error), cause: error });
    }
    const said = `The answer of the model at ${prefix}_URL cannot be read: ${messageOf(error)}`;
    throw new RetriableError('invalid_output', 'The model answered in no form of its API.', undefined, said);
  }
}

/** The statuses of errors that a body names by its type or code alone. */
export const errorStatuses: Record<string, number> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  overloaded_error: 529,
};

/**
 * Reads the error in the body of an answer with the status 200, by which a gateway passes on the error of the server behind it. Null
 * for a body without one.
 *
 * @internal
 */
export function faultInside(body: unknown): ApiFault | null {
  const error = (body as { error?: unknown } | null)?.error;
  if (typeof error !== 'object' || error === null) return null;
  const { code, type, message } = error as Record<string, unknown>;
  const [named, kind] = [code, type].map((word) => (typeof word === 'string' ? word : null));
  const status = Number(code) || errorStatuses[named ?? ''] || errorStatuses[kind ?? ''] || 500;
  return {
    status,
    code: named ?? null,
    type: kind ?? null,
    message: typeof message === 'string' ? message : 'no reason given',
    param: null,
    headers: new Headers(),
  };
}

/**
 * Sorts an API's answer that is an error: 429 with its wait, overload, a question that is too long, a refused key.
 *
 * @internal
 */
export function apiError(fault: ApiFault, prefix: string): StageError {
  const { status, message, headers } = fault;
  const code = fault.code ?? '';
  const type = fault.type ?? '';
  const detail = message || undefined;
  if (status === 402 || withoutMoney.test(code) || withoutMoney.test(type) || saysWithoutMoney.test(message)) {
    return new MisconfiguredError("The model account's money is out: add credit, or raise its limit.", detail);
  }
  if (status >= 300 && status < 400) {
    return new MisconfiguredError(`${prefix}_URL leads elsewhere (${status}): set it to the address that answers.`);
  }
  if (status === 401 || status === 403) {
    return new MisconfiguredError(`The model refused ${prefix}_AUTH_TOKEN: correct it.`, detail);
  }
  if (status === 404) {
    return new MisconfiguredError(`The model was not found: correct ${prefix}_URL or ${prefix}_MODEL.`, detail);
  }
  if (status === 409 && code === 'idempotency_key_reused') {
    return new PermanentError(code, "The model took another request under this attempt's key.", undefined, detail);
  }
  if (status === 409) return new RetriableError('conflict', 'The model answered 409', retryAfterMs(headers), detail);
  if (status === 529 || type === 'overloaded_error') {
    const said = `The model answered ${status}: its provider is overloaded.`;
    return new RetriableError('overloaded', said, retryAfterMs(headers), detail);
  }
  if (status === 408 || status === 429 || status >= 500) return errorFromStatus(status, headers, 'The model', detail);
  const isTooLong = status === 413 || saysTooLong.test(message);
  return rejected(isTooLong ? 'context_length_exceeded' : code, message, prefix) ?? byParameter(fault, prefix);
}

/** Returns the answer of an error of the openai SDK; null for any other error. */
function faultOf(error: unknown): ApiFault | null {
  if (!(error instanceof OpenAI.APIError) || error.status === undefined) return null;
  const { status, message, code, type, param, headers } = error;
  return {
    status,
    // The SDK's own words for an empty body.
    message: message.endsWith('status code (no body)') ? '' : message,
    code: code ?? null,
    type: type ?? null,
    param: param ?? null,
    headers: headers ?? new Headers(),
  };
}

/**
 * The error of a background response that failed, by the code and the message that it came with.
 *
 * @internal
 */
export function failedResponse({ code, message }: { code: string; message: string }, prefix = 'LLM'): StageError {
  const said = `The model failed (${code}).`;
  if (code === 'rate_limit_exceeded') return new RetriableError('rate_limited', said, undefined, message);
  if (code === 'server_error' || code === 'unknown') {
    return new RetriableError('server_error', said, undefined, message);
  }
  return rejected(code, message, prefix) ?? new PermanentError('model_rejected_request', said, undefined, message);
}

/**
 * The parameter that a model does not know or take, such as `metadata`; null for every other error.
 *
 * @internal
 */
export function refusedParameter(error: unknown): string | null {
  const fault = faultOf(error);
  return fault && refusedBy(fault);
}

function refusedBy({ status, code, message, param }: ApiFault): string | null {
  if (status !== 400 && status !== 422) return null;
  if (!/^un(?:supported|known)_(?:parameter|value)$/.test(code ?? '') && !refusal.test(message)) return null;
  const name = param ?? /(?:['"`]|(?:supplied|permitted): ?|^(?=[a-z_.]+: extra))([a-z_.]+)/i.exec(message)?.[1];
  return name?.split('.')[0] ?? null;
}

/**
 * Returns the error of a question that the model rejects for its text, so that no retry helps; null for other errors.
 */
function rejected(code: string, message: string, prefix: string): PermanentError | null {
  if (byFilter.test(code)) {
    return new PermanentError('content_filtered', "The model's filter stopped the question.", undefined, message);
  }
  if (tooLong.test(code)) {
    const said = `The question is longer than the model reads: shorten it, or set ${prefix}_MODEL to one that reads more.`;
    return new PermanentError('question_too_long', said, undefined, message);
  }
  return null;
}

/** Parameters that carry the schema: a model that refuses one of them lacks structured output. */
const schemaParameters = ['text', 'response_format', 'output_config'];
const saysNoSchema = /response[_ ]format|json_schema|structured output/i;

function byParameter(fault: ApiFault, prefix: string): StageError {
  const { message } = fault;
  const name = refusedBy(fault);
  if (schemaParameters.includes(name ?? '') || (saysNoSchema.test(message) && !/invalid schema/i.test(message))) {
    const said = `The model takes no schema for its answer (structured outputs): set ${prefix}_MODEL to one that does.`;
    return new PermanentError('model_rejected_request', said, undefined, `It answered: ${message}`);
  }
  if (name === null) {
    return new PermanentError('model_rejected_request', 'The model rejected the request.', undefined, message);
  }
  if (name === 'background') {
    return new MisconfiguredError(`The model answers in the call alone: set ${prefix}_MODE to inline.`, message);
  }
  const said = `The model does not take the parameter ${name}: set ${prefix}_MODEL to one that does.`;
  return new PermanentError('parameter_refused', said, undefined, message);
}
