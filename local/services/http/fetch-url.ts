import { type Agent, fetch, type Response } from 'undici';
import { within } from '../../platform/deadline.ts';
import { JobError, toJobError } from './job-error.ts';

const maxRedirects = 5;
const longestUrl = 2048;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);

export interface FetchOptions {
  agent: Agent;
  /** Ends the fetch when the whole job has to end. */
  signal: AbortSignal;
  timeoutMs: number;
  maxBytes: number;
  headers: Record<string, string>;
  /** Keeps the first `maxBytes` of a body that is longer, where it would otherwise fail with `too_large`. */
  truncate?: boolean;
  /** Called before each request, redirects included; throws to refuse it. */
  check?: (url: URL) => Promise<void>;
  /** Names the address that a body leads on to by itself, or null. Following it counts as a redirect. */
  leadsTo?: (fetched: Fetched) => URL | null;
}

/** A body as it came, with the address it was finally found at. */
export interface Fetched {
  url: URL;
  status: number;
  contentType: string;
  body: Buffer;
  /** The values of its Set-Cookie headers. */
  cookies?: string[];
  /** Doubts about its letters that the body no longer shows, in sentences. */
  doubts?: string[];
}

/**
 * Reads a URL that may be visited from text. Throws JobError `invalid_url` for other schemes and for credentials.
 */
export function readWebUrl(text: string, base?: URL): URL {
  const url = URL.canParse(text, base) ? new URL(text, base) : undefined;
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || !url.hostname) {
    throw new JobError('invalid_url', `"${text.slice(0, 200)}" is no http or https URL`);
  }
  if (url.href.length > longestUrl) {
    throw new JobError('invalid_url', `a URL of ${url.host} is longer than ${longestUrl} characters`);
  }
  if (url.username || url.password) {
    throw new JobError('invalid_url', `the URL of ${url.host} carries a user name or password; leave them out`);
  }
  url.hash = '';
  return url;
}

/** Gets one URL, following at most five redirects by hand, those that `leadsTo` names included. Rejects with a JobError. */
export async function fetchUrl(start: URL, options: FetchOptions): Promise<Fetched> {
  try {
    return await within(options.timeoutMs, options.signal, (signal) => follow(start, options, signal));
  } catch (error) {
    throw toJobError(error, start);
  }
}

async function follow(start: URL, options: FetchOptions, signal: AbortSignal): Promise<Fetched> {
  let url = start;
  for (let hops = 0; hops <= maxRedirects; hops++) {
    await options.check?.(url);
    try {
      const response = await fetch(url, {
        dispatcher: options.agent,
        redirect: 'manual',
        signal,
        headers: options.headers,
      });
      const location = redirectStatuses.has(response.status) ? response.headers.get('location') : null;
      if (location === null) {
        const fetched = await readResponse(response, url, options);
        const next = options.leadsTo?.(fetched) ?? null;
        if (next === null) return fetched;
        url = readWebUrl(next.href);
        continue;
      }
      await response.body?.cancel();
      url = readWebUrl(location, url);
    } catch (error) {
      throw toJobError(error, url);
    }
  }
  throw new JobError('too_many_redirects', `${start.href}: more than ${maxRedirects} redirects`);
}

async function readResponse(response: Response, url: URL, options: FetchOptions): Promise<Fetched> {
  if (!response.ok) {
    await response.body?.cancel();
    throw statusError(response, url);
  }
  const contentType = response.headers.get('content-type') ?? '';
  const cookies = response.headers.getSetCookie();
  return { url, status: response.status, contentType, cookies, body: await readBody(response, url, options) };
}

async function readBody(response: Response, url: URL, { maxBytes, truncate }: FetchOptions): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // The announced length spares the transfer. Only the count is reliable: a length may be missing, wrong or of packed bytes.
  if (!truncate && Number(response.headers.get('content-length')) > maxBytes) {
    await response.body?.cancel();
    throw tooLarge(url, maxBytes);
  }
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    length += chunk.byteLength;
    if (length <= maxBytes) continue;
    if (truncate) break;
    throw tooLarge(url, maxBytes);
  }
  return Buffer.concat(chunks).subarray(0, maxBytes);
}

function tooLarge(url: URL, maxBytes: number): JobError {
  return new JobError('too_large', `${url.href}: it is larger than the limit of ${maxBytes} bytes`);
}

function statusError(response: Response, url: URL): JobError {
  const { status } = response;
  const message = `${url.href}: the site answered with status ${status}`;
  const retryAfterMs = readRetryAfter(response.headers.get('retry-after'));
  if (response.headers.get('cf-mitigated') === 'challenge') {
    return new JobError('captcha', `${url.href}: the site asks for a captcha`);
  }
  if (status === 401 || status === 403) return new JobError('forbidden', message);
  if (status === 404 || status === 410) return new JobError('not_found', message);
  if (status === 408) return new JobError('timeout', message);
  // Some boards answer 999 to whoever asks too often.
  if (status === 429 || status === 999) return new JobError('rate_limited', message, retryAfterMs);
  if (status >= 500) return new JobError('server_error', message, retryAfterMs);
  return new JobError('http_error', message);
}

function readRetryAfter(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
