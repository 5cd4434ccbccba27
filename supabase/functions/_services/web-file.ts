import { classifyNetworkError, errorFromStatus } from '../_millrace/errors.ts';
import { PermanentError, type Traced, traceHeaders } from '../_millrace/mod.ts';
import { type PublicFetchOptions, publicFetch } from './public-fetch.ts';
import { refusalText } from './refusal-text.ts';

/** How a file is to be fetched. */
export interface WebFileOptions extends Omit<PublicFetchOptions, 'headers'> {
  /** The media types that are wanted, as HTTP's header says it. */
  accept: string;
  maxBytes: number;
  /** How long it may take, redirects and body included. */
  timeoutMs: number;
  /** For whom it is fetched: the stage's context. */
  traced?: Traced;
  /** Says by the beginning of the file whether the rest is wanted, and throws where it is not. */
  check?: (head: Uint8Array) => void;
}

/** A file of the web, with the address at which it was found. */
export interface WebFile {
  url: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Bytes that `check` sees at least, unless the file is shorter. */
const headBytes = 64 * 1024;

/**
 * Fetches a file from the web as publicFetch() does, and no more of it than is allowed and wanted. Throws a StageError: a
 * PermanentError such as `not_found`, `blocked_address` and `too_large`, a RetriableError such as `timeout` and `server_error`.
 *
 * @example
 * ```ts
 * const { bytes: picture } = await fetchWebFile('https://images.example.com/7.jpg', {
 *   accept: 'image/jpeg',
 *   maxBytes: 5_000_000,
 *   timeoutMs: 10_000,
 *   signal: context.signal,
 *   allowed: { hosts: new Set(), setting: 'PICTURE_ALLOW_HOSTS' },
 * });
 * ```
 */
export async function fetchWebFile(start: string, options: WebFileOptions): Promise<WebFile> {
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(options.timeoutMs)]);
  const headers = {
    accept: options.accept,
    'user-agent': 'MillraceFetcher/1.0',
    ...traceHeaders(options.traced ?? {}),
  };
  try {
    const { answer, url } = await publicFetch(new URL(start), { ...options, headers, signal });
    return { url: url.href, bytes: await readAnswer(answer, url, options) };
  } catch (error) {
    options.signal.throwIfAborted();
    throw classifyNetworkError(error) ?? error;
  }
}

async function readAnswer(answer: Response, url: URL, options: WebFileOptions): Promise<Uint8Array<ArrayBuffer>> {
  if (!answer.ok || !answer.body) {
    throw errorFromStatus(answer.ok ? 500 : answer.status, answer.headers, url.href, await refusalText(answer));
  }
  const reader = answer.body.getReader();
  try {
    if (Number(answer.headers.get('content-length')) > options.maxBytes) throw tooLarge(url, options.maxBytes);
    return await readBody(reader, url, options);
  } finally {
    await reader.cancel().catch(() => {});
  }
}

async function readBody(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  url: URL,
  { maxBytes, check }: WebFileOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  let isChecked = check === undefined;
  for (let { value } = await reader.read(); value; { value } = await reader.read()) {
    chunks.push(value);
    length += value.length;
    if (length > maxBytes) throw tooLarge(url, maxBytes);
    if (isChecked || length < headBytes) continue;
    check?.(joined(chunks, length));
    isChecked = true;
  }
  const bytes = joined(chunks, length);
  if (!isChecked) check?.(bytes);
  return bytes;
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function tooLarge(url: URL, maxBytes: number): PermanentError {
  return new PermanentError('too_large', `${url.href}: it has more than ${maxBytes / 1_000_000} MB.`);
}
