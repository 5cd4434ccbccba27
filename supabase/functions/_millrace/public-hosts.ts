import { type LookupAddress, lookup } from 'node:dns';
import { isIP, isIPv6 } from 'node:net';
import { promisify } from 'node:util';
import ipaddr from 'ipaddr.js';

/** Finds the addresses of a host name; rejects with a system error such as ENOTFOUND. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

const lookupAll = promisify(lookup);

/**
 * The machine's own name resolution, except that names under .invalid never exist (RFC 6761).
 *
 * @example
 * ```ts
 * const [first] = await systemResolve('example.com');
 * ```
 */
export const systemResolve: Resolve = async (hostname) => {
  if (/(^|\.)invalid\.?$/i.test(hostname)) {
    throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' });
  }
  return lookupAll(hostname, { all: true });
};

/**
 * Whether an IP address, in whatever notation, belongs to the public internet.
 *
 * @example
 * ```ts
 * if (!isPublicAddress('10.0.0.1')) throw new PermanentError('blocked_address', 'It is an address inside of a network.');
 * ```
 */
export function isPublicAddress(address: string): boolean {
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  // Only 2000::/3 is assigned: the rest includes ways to spell IPv4 addresses, such as ::7f00:1.
  return !(parsed instanceof ipaddr.IPv6) || parsed.match(ipaddr.IPv6.parseCIDR('2000::/3'));
}

/**
 * Hosts, or host:port, parted by commas, as a setting lists those that may be visited wherever they are. Throws an Error that
 * names the entry that is neither.
 *
 * @example
 * ```ts
 * const allowed = parseHosts('intranet.example, 127.0.0.1:8080');
 * ```
 */
export function parseHosts(text: string): Set<string> {
  const entries = text.split(',').map((entry) => entry.trim().toLowerCase());
  const hosts = entries.filter(Boolean).map((entry) => {
    if (isIPv6(entry)) return entry;
    const match = /^(?:\[([0-9a-f:.]+)\]|([^\s:/[\]]+))(:\d{1,5})?$/.exec(entry);
    if (!match) throw new Error(`has the entry "${entry}": give hosts or host:port, parted by commas`);
    return `${match[1] ?? match[2]}${match[3] ?? ''}`;
  });
  return new Set(hosts);
}

/**
 * The host of a URL as a connection names it, and whether the list allows it wherever it is.
 *
 * @example
 * ```ts
 * const { host, allowed } = hostOf(new URL('http://[::1]:8080/'), parseHosts('[::1]:8080'));
 * ```
 */
export function hostOf(
  { hostname, port, protocol }: Pick<URL, 'hostname' | 'port' | 'protocol'>,
  hosts: Set<string>,
): { host: string; allowed: boolean } {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const number = port || (protocol === 'https:' ? '443' : '80');
  return { host, allowed: hosts.has(host) || hosts.has(`${host}:${number}`) };
}

/**
 * The address of a host that is not on the public internet, null where all its addresses are. Rejects with what the name
 * resolution says, as for a name that does not exist.
 *
 * @example
 * ```ts
 * const inside = await privateAddressOf('example.com', systemResolve);
 * ```
 */
export async function privateAddressOf(host: string, resolve: Resolve): Promise<string | null> {
  if (isIP(host)) return isPublicAddress(host) ? null : host;
  const found = await resolve(host);
  if (found.length === 0) return 'no address';
  return found.find(({ address }) => !isPublicAddress(address))?.address ?? null;
}
