import {
  errorFromStatus,
  excerpt,
  PermanentError,
  RetriableError,
  type Traced,
  traceHeaders,
} from '../../_millrace/mod.ts';
import type { Resolve } from '../../_millrace/public-hosts.ts';
import { publicFetch } from '../../_services/public-fetch.ts';
import { refusalText } from '../../_services/refusal-text.ts';
import { MAX_FEED_BYTES, tooLarge } from './feed-text.ts';

const longestMark = 500;
const headers = {
  accept: 'application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5',
  'user-agent': 'MillraceFeeds/1.0',
};

/** How feeds are reached. */
export interface FeedAccess {
  /** Hosts that may be read wherever they are; others must be on the public internet. */
  allowed: Set<string>;
  resolve: Resolve;
  signal: AbortSignal;
  /** How long one address may take, redirects and body included. */
  timeoutMs: number;
  /** For whom they are read: the stage's context. */
  traced?: Traced;
}

/** Validators of an earlier answer: the site need not send an unchanged feed again. */
export interface Conditions {
  /** Asks for the bytes as they are, which are unpacked here where a site packs them all the same. */
  unpacked?: boolean;
  etag?: string | null;
  lastModified?: string | null;
}

/** A feed whose first bytes have arrived. Read its body or cancel it, or its connection stays open. */
export interface FetchedFeed {
  /** Where it was found at last. */
  url: string;
  etag: string | null;
  lastModified: string | null;
  contentType: string;
  /** Whether it came packed (Content-Encoding), as far as the runtime tells. */
  wasPacked?: boolean;
  body: ReadableStream<Uint8Array>;
}

/** The address of a feed from text. Throws the PermanentError `invalid_url` for what is no web address. */
export function readFeedAddress(text: string): URL {
  const url = URL.canParse(text.trim()) ? new URL(text.trim()) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.href.length > 2048) {
    const shown = JSON.stringify(excerpt(text, 200));
    throw new PermanentError('invalid_url', `${shown} is no web address: write it as https://example.com/feed.xml.`);
  }
  if (url.username || url.password) {
    throw new PermanentError('invalid_url', `The address at ${url.host} has a user name or password: leave them out.`);
  }
  return url;
}

/**
 * Fetches a feed as publicFetch() does; null where it has not changed. Throws a StageError that says what to do.
 */
export async function fetchFeed(
  start: URL,
  { etag, lastModified, unpacked }: Conditions,
  { allowed, resolve, signal: given, timeoutMs, traced = {} }: FeedAccess,
): Promise<FetchedFeed | null> {
  const signal = AbortSignal.any([given, AbortSignal.timeout(timeoutMs)]);
  const asking = {
    ...headers,
    ...traceHeaders(traced),
    ...(unpacked ? { 'accept-encoding': 'identity' } : {}),
    ...(etag ? { 'if-none-match': etag } : {}),
    ...(lastModified ? { 'if-modified-since': lastModified } : {}),
  };
  const { answer, url } = await publicFetch(start, {
    headers: asking,
    signal,
    allowed: { hosts: allowed, setting: 'FEED_ALLOW_HOSTS' },
    resolve,
  });
  return readAnswer(answer, url);
}

async function readAnswer(answer: Response, url: URL): Promise<FetchedFeed | null> {
  if (answer.status === 304) return null;
  if (!answer.ok || !answer.body) throw refusal(answer, url, await refusalText(answer));
  if (Number(answer.headers.get('content-length')) > MAX_FEED_BYTES) {
    await answer.body.cancel();
    throw tooLarge();
  }
  return {
    url: url.href,
    etag: mark(answer, 'etag'),
    lastModified: mark(answer, 'last-modified'),
    contentType: answer.headers.get('content-type') ?? '',
    wasPacked: answer.headers.has('content-encoding'),
    body: answer.body,
  };
}

/** A header that the source's row keeps, unless it is longer than anybody needs. */
function mark(answer: Response, header: string): string | null {
  const value = answer.headers.get(header);
  return value !== null && value.length <= longestMark ? value : null;
}

const remedies: Record<string, string> = {
  not_found: 'correct the address, or switch the source off',
  forbidden: 'it lets only those in whom it knows; ask the site’s owner, or switch the source off',
  rate_limited: 'it is asked too often; give the source a longer interval',
  request_rejected: 'open the address in a browser, and correct it',
};

function refusal(answer: Response, { host }: URL, detail: string | undefined): Error {
  if (answer.ok) return new RetriableError('empty_feed', `${host} answered with nothing; it is asked again.`);
  const { code, message, permanent, retryAfterMs } = errorFromStatus(answer.status, answer.headers, host);
  const said = `${message}: ${remedies[code] ?? 'it is asked again'}.`;
  return permanent
    ? new PermanentError(code, said, undefined, detail)
    : new RetriableError(code, said, retryAfterMs, detail);
}
