/** A failed attempt, as the engine gets it. */
export interface Failure {
  code: string;
  /** The text that the owner of the row reads and can act on: no address, path, SQL or stack. */
  message: string;
  /** The whole error, for operators alone, where the message does not say it. */
  detail?: string;
  /** Of an unexpected error: where it was thrown, for operators alone. */
  stack?: string;
  permanent: boolean;
  retry_after_ms?: number;
}

/**
 * An error with a code that the retry policy can name. Use one of its two subclasses. All who may read the row can read
 * the message. Put text for operators alone, such as an address, into `detail`.
 */
export abstract class StageError extends Error {
  abstract readonly permanent: boolean;

  constructor(
    readonly code: string,
    message: string,
    readonly retryAfterMs?: number,
    readonly detail?: string,
  ) {
    super(message);
    this.name = new.target.name;
  }
}

/**
 * Fails the attempt for good: trying again cannot help. `code` is lower case letters, digits and _; the stage's retry
 * policy and operators know the error by it. All who may read the row can read `message`: write what is wrong and what
 * to do.
 *
 * @example
 * ```ts
 * throw new PermanentError('invalid_address', 'The order has no address: write one and set the stage to queued again.');
 * ```
 */
export class PermanentError extends StageError {
  readonly permanent = true;
}

/**
 * Fails the attempt so that it is retried as the stage's policy says.
 *
 * `retryAfterMs`: milliseconds before the retry at the earliest; left out, the policy alone decides.
 * `detail`: text for operators alone.
 *
 * @example
 * ```ts
 * throw new RetriableError('carrier_busy', 'The carrier takes no order just now.', 30_000, 'Its answer was 503.');
 * ```
 */
export class RetriableError extends StageError {
  readonly permanent = false;
}

/**
 * A setting is missing or wrong. Its code is `misconfigured`. Retriable, so that nothing is lost until it is corrected.
 *
 * @example
 * ```ts
 * throw new MisconfiguredError('The mailer refused MAILER_AUTH_TOKEN: correct it.');
 * ```
 */
export class MisconfiguredError extends RetriableError {
  constructor(message: string, detail?: string) {
    super('misconfigured', message, undefined, detail);
  }
}

/**
 * The project's own rows or files do not answer just now, which says nothing about the work that needs them. A finish
 * function that throws it ends no attempt: the job is kept, and finished when it is reported or polled again.
 *
 * @example
 * ```ts
 * throw new UnavailableError('orders_unavailable', 'The orders cannot be read just now.');
 * ```
 */
export class UnavailableError extends RetriableError {}

/** The attempt was taken away: any outcome of its handler is dropped. */
export class LeaseLost extends Error {}

const MAX_MESSAGE_LENGTH = 2000;
/** The engine refuses longer ones. */
const MAX_CODE_LENGTH = 200;
const MAX_STACK_BYTES = 2048;
const UNDESCRIBED = 'Something was thrown that cannot be turned into text: throw an Error.';

/**
 * Replaces NUL and lone surrogates, which Postgres cannot store in a text or jsonb value, by U+FFFD.
 *
 * @example
 * ```ts
 * const body = storableText(entity.body);
 * ```
 */
export function storableText(text: string): string {
  return text.replaceAll('\u0000', '\ufffd').replace(/\p{Surrogate}/gu, '\ufffd');
}

let graphemes: Intl.Segmenter | undefined;
/** How far back a cut looks for the beginning of a character as readers see it. */
const LONGEST_GRAPHEME = 128;

/**
 * The beginning of a text, at most `most` UTF-16 units of it, as Postgres can store it and a service can read it: no character is
 * cut in two, neither a pair of surrogates nor a letter from its accents. Every cut of a text to a length is made by it.
 *
 * @example
 * ```ts
 * const shown = excerpt(entity.body, 200);
 * ```
 */
export function excerpt(text: string, most: number): string {
  return storableText(text.slice(0, text.length <= most ? most : boundaryBefore(text, most)));
}

/** Returns the last place at or before `at` that lies between two characters as readers see them. */
function boundaryBefore(text: string, at: number): number {
  let from = Math.max(0, at - LONGEST_GRAPHEME);
  if (isTrailing(text, from)) from -= 1;
  graphemes ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  const found = graphemes.segment(text.slice(from, at + LONGEST_GRAPHEME)).containing(at - from);
  const boundary = from + (found?.index ?? at - from);
  if (boundary > from) return boundary;
  // A character that is longer than all of it.
  return isTrailing(text, at) ? at - 1 : at;
}

function isTrailing(text: string, at: number): boolean {
  return /[\udc00-\udfff]/.test(text.charAt(at)) && /[\ud800-\udbff]/.test(text.charAt(at - 1));
}

/**
 * Turns any value that a handler threw into a failure that the engine can record. Never throws.
 * Network errors are sorted by their cause; an unexpected error is retriable with the code `unexpected_error`.
 */
export function classify(error: unknown): Failure {
  try {
    return describe(error);
  } catch {
    return { code: 'unexpected_error', message: UNDESCRIBED, permanent: false };
  }
}

function describe(error: unknown): Failure {
  const foreseen = error instanceof StageError ? error : classifyNetworkError(error);
  const known = foreseen ?? unexpected(error);
  const failure: Failure = {
    code: excerpt(String(known.code), MAX_CODE_LENGTH),
    message: excerpt(String(known.message), MAX_MESSAGE_LENGTH),
    permanent: known.permanent === true,
  };
  if (known.detail !== undefined) failure.detail = excerpt(String(known.detail), MAX_MESSAGE_LENGTH);
  const stack = foreseen ? '' : stackOf(error);
  if (stack) failure.stack = stack;
  if (Number.isFinite(known.retryAfterMs)) failure.retry_after_ms = Number(known.retryAfterMs);
  return failure;
}

/**
 * Sorts an error thrown by `fetch`, on Deno or on Node. Returns null for any other error.
 * A name that does not exist and a refused connection are permanent; the rest is retriable.
 */
export function classifyNetworkError(error: unknown): StageError | null {
  const text = describeChain(error);
  if (/\bENOTFOUND\b|dns error: (?!.*temporary)|no such host/i.test(text)) {
    return new PermanentError('dns_not_found', 'The host name was not found.', undefined, messageOf(error));
  }
  if (/\bECONNREFUSED\b|connection refused/i.test(text)) {
    return new PermanentError('connection_refused', 'The host refused the connection.', undefined, messageOf(error));
  }
  if (/\bTimeoutError\b|\bETIMEDOUT\b|UND_ERR_\w*TIMEOUT|timed out/i.test(text)) {
    return new RetriableError('timeout', 'The request timed out.', undefined, messageOf(error));
  }
  if (/\bRateLimitError\b/.test(text)) {
    const wait = (error as { retryAfterMs?: unknown }).retryAfterMs;
    return new RetriableError(
      'rate_limited',
      'The platform limits requests between functions.',
      typeof wait === 'number' ? wait : undefined,
      messageOf(error),
    );
  }
  if (/fetch failed|error sending request|ECONNRESET|EPIPE|EAI_AGAIN|UND_ERR_SOCKET|socket hang up/i.test(text)) {
    return new RetriableError('connection_lost', 'The connection failed.', undefined, messageOf(error));
  }
  return null;
}

/**
 * The error for an HTTP answer that is no success: retriable for 408, 429 and 5xx, the latter two as late as `Retry-After` asks;
 * `misconfigured` for 402, an account without money; permanent for the rest. `what` names who answered, in the error's message; `detail` is what it said, for operators alone.
 *
 * @example
 * ```ts
 * const answer = await fetch('https://carrier.example.com/rates', { signal: context.signal });
 * if (!answer.ok) throw errorFromStatus(answer.status, answer.headers, 'The carrier', await answer.text());
 * ```
 */
export function errorFromStatus(status: number, headers: Headers, what: string, detail?: string): StageError {
  const said = `${what} answered ${status}`;
  if (status === 429) return new RetriableError('rate_limited', said, retryAfterMs(headers), detail);
  if (status === 402) return new MisconfiguredError(`${said}: the account's money is out. Add credit to it.`, detail);
  if (status === 408) return new RetriableError('timeout', said, undefined, detail);
  if (status >= 500) return new RetriableError('server_error', said, retryAfterMs(headers), detail);
  if (status === 401 || status === 403) return new PermanentError('forbidden', said, undefined, detail);
  if (status === 404 || status === 410) return new PermanentError('not_found', said, undefined, detail);
  return new PermanentError('request_rejected', said, undefined, detail);
}

/**
 * The wait that an answer asks for, in milliseconds, or undefined when it asks for none. `retry-after-ms`, which model APIs send,
 * is exacter than `Retry-After` and counts first.
 */
export function retryAfterMs(headers: Headers, now: number = Date.now()): number | undefined {
  const exact = headers.get('retry-after-ms')?.trim();
  if (exact && /^\d+(\.\d+)?$/.test(exact)) return Math.round(Number(exact));
  const value = headers.get('retry-after')?.trim();
  if (!value) return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Math.round(Number(value) * 1000);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/**
 * The message of anything thrown, for operators: with its detail, or with its cause's message, where `fetch` puts the reason.
 * Never throws.
 *
 * @example
 * ```ts
 * try {
 *   await fetch('https://carrier.example.com/rates');
 * } catch (error) {
 *   throw new RetriableError('carrier_unreachable', 'The carrier cannot be reached.', undefined, messageOf(error));
 * }
 * ```
 */
export function messageOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return String(error);
    if (error instanceof StageError && error.detail) return `${error.message} ${error.detail}`;
    const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
    return `${error.message}${cause}`;
  } catch {
    return UNDESCRIBED;
  }
}

function unexpected(error: unknown): StageError {
  const name = error instanceof Error && error.name !== 'Error' ? `${error.name}: ` : '';
  const said = 'Something went wrong that nobody foresaw (unexpected_error).';
  return new RetriableError('unexpected_error', said, undefined, `${name}${messageOf(error)}`);
}

/** Returns the lines of an error's stack without its message, which the detail has; empty for an error without a stack. */
function stackOf(error: unknown): string {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return '';
  const said = error.stack.indexOf(error.message);
  const places = said < 0 ? error.stack : error.stack.slice(said + error.message.length);
  const bytes = new TextEncoder().encode(storableText(places.trim())).subarray(0, MAX_STACK_BYTES);
  // The cut may leave part of a character: with `stream` the decoder drops it.
  return new TextDecoder().decode(bytes, { stream: true });
}

function describeChain(error: unknown): string {
  const parts: string[] = [];
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    parts.push(at.name, at.message, String((at as { code?: unknown }).code ?? ''));
  }
  return parts.map((part) => excerpt(part, MAX_MESSAGE_LENGTH)).join(' ');
}
