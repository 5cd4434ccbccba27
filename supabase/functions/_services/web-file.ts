import { classifyNetworkError, errorFromStatus } from '../_millrace/errors.ts';
import { messageOf, PermanentError, RetriableError } from '../_millrace/mod.ts';
import { hostOf, privateAddressOf, type Resolve, systemResolve } from './public-hosts.ts';

/** How a file is to be fetched. */
export interface WebFileOptions {
  /** The media types that are wanted, as HTTP's header says it. */
  accept: string;
  maxBytes: number;
  /** How long it may take, redirects and body included. */
  timeoutMs: number;
  signal: AbortSignal;
  /** Hosts that may be asked wherever they are, and the setting that lists them; others must be on the public internet. */
  allowed: { hosts: Set<string>; setting: string };
  /** Says by the beginning of the file whether the rest is wanted, and throws where it is not. */
  check?: (head: Uint8Array) => void;
  resolve?: Resolve;
}

/** A file of the web, with the address at which it was found. */
export interface WebFile {
  url: string;
  bytes: Uint8Array<ArrayBuffer>;
}

const maxRedirects = 5;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);
/** What `check` sees at least, unless the file is shorter. */
const headBytes = 64 * 1024;

/**
 * Fetches a file from the web, over at most five redirects, and no more of it than is allowed and wanted. Each host's addresses
 * are looked up before it is asked, so that nobody reads what lies inside of a network. Throws a StageError: a PermanentError such
 * as `not_found`, `blocked_address` and `too_large`, a RetriableError such as `timeout`, `rate_limited` and `server_error`.
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
  let url = new URL(start);
  try {
    for (let hops = 0; hops <= maxRedirects; hops++) {
      await refusePrivate(url, options);
      const headers = { accept: options.accept, 'user-agent': 'MillraceFetcher/1.0' };
      const answer = await fetch(url, { redirect: 'manual', signal, headers });
      const location = redirectStatuses.has(answer.status) ? answer.headers.get('location') : null;
      if (location === null) return { url: url.href, bytes: await readAnswer(answer, url, options) };
      await answer.body?.cancel();
      url = redirected(location, url);
    }
  } catch (error) {
    options.signal.throwIfAborted();
    throw classifyNetworkError(error) ?? error;
  }
  throw new PermanentError('too_many_redirects', `${start}: it leads on more than ${maxRedirects} times.`);
}

function redirected(location: string, from: URL): URL {
  const url = URL.canParse(location, from) ? new URL(location, from) : null;
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return url;
  throw new PermanentError('invalid_url', `${from.href}: it leads on to what is no web address.`);
}

async function refusePrivate(url: URL, { allowed, resolve = systemResolve }: WebFileOptions): Promise<void> {
  const { host, allowed: isAllowed } = hostOf(url, allowed.hosts);
  if (isAllowed) return;
  const address = await privateAddressOf(host, resolve).catch((error) => {
    throw lookupError(host, error);
  });
  if (address === null) return;
  throw new PermanentError(
    'blocked_address',
    `${host} is not on the public internet: correct the address, or list the host in ${allowed.setting} to allow it.`,
    undefined,
    `It resolves to ${address}.`,
  );
}

function lookupError(host: string, error: unknown): Error {
  const { code } = error as { code?: unknown };
  if (code === 'ENOTFOUND' || code === 'ENODATA') {
    return new PermanentError('dns_not_found', `${host}: the host name was not found; check its spelling.`);
  }
  return new RetriableError('dns_unavailable', `${host} cannot be looked up just now.`, undefined, messageOf(error));
}

async function readAnswer(answer: Response, url: URL, options: WebFileOptions): Promise<Uint8Array<ArrayBuffer>> {
  if (!answer.ok || !answer.body) {
    await answer.body?.cancel();
    throw errorFromStatus(answer.ok ? 500 : answer.status, answer.headers, url.href);
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
