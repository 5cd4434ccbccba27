import { messageOf, PermanentError, RetriableError } from '../_millrace/mod.ts';
import { hostOf, privateAddressOf, type Resolve, systemResolve } from '../_millrace/public-hosts.ts';

/** Who may be asked, and how. */
export interface PublicFetchOptions {
  headers: Record<string, string>;
  signal: AbortSignal;
  /** Hosts that may be asked wherever they are, and the setting that lists them; others must be on the public internet. */
  allowed: { hosts: Set<string>; setting: string };
  resolve?: Resolve;
}

const maxRedirects = 5;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/**
 * Fetches an address, over at most five redirects, and returns the answer with where it was found. Each host's addresses are
 * looked up before it is asked, so that nobody reads what lies inside of a network. Throws a StageError for where it must not
 * go, such as `blocked_address`, and what `fetch` throws. Read the answer's body or cancel it, or its connection stays open.
 *
 * @example
 * ```ts
 * const { answer, url } = await publicFetch(new URL('https://example.com/feed.xml'), {
 *   headers: { accept: 'application/xml' },
 *   signal: context.signal,
 *   allowed: { hosts: new Set(), setting: 'FEED_ALLOW_HOSTS' },
 * });
 * ```
 */
export async function publicFetch(start: URL, options: PublicFetchOptions): Promise<{ answer: Response; url: URL }> {
  const { headers, signal } = options;
  let url = start;
  for (let hops = 0; hops <= maxRedirects; hops++) {
    await refusePrivate(url, options);
    const answer = await fetch(url, { redirect: 'manual', signal, headers });
    const location = redirectStatuses.has(answer.status) ? answer.headers.get('location') : null;
    if (location === null) return { answer, url };
    await answer.body?.cancel();
    url = redirected(location, url);
  }
  throw new PermanentError(
    'too_many_redirects',
    `${start.host} leads on more than ${maxRedirects} times: enter the address where it is in the end.`,
  );
}

function redirected(location: string, from: URL): URL {
  const url = URL.canParse(location, from) ? new URL(location, from) : null;
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return url;
  throw new PermanentError('invalid_url', `${from.host} leads on to what is no web address: tell the site’s owner.`);
}

async function refusePrivate(url: URL, { allowed, resolve = systemResolve }: PublicFetchOptions): Promise<void> {
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
    return new PermanentError('dns_not_found', `There is no host ${host}: correct the address.`);
  }
  return new RetriableError('dns_unavailable', `${host} cannot be looked up just now.`, undefined, messageOf(error));
}
