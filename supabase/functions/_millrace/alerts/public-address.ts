import { type LookupAddress, lookup } from 'node:dns';
import { isIP, isIPv6 } from 'node:net';
import { promisify } from 'node:util';
import ipaddr from 'ipaddr.js';

/** Finds the addresses of a host name; rejects with a system error such as ENOTFOUND. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

const lookupAll = promisify(lookup);

/** The machine's own name resolution. */
export const systemResolve: Resolve = (hostname) => lookupAll(hostname, { all: true });

/**
 * Hosts, or host:port, parted by commas, as a setting lists those that may be reached wherever they are. Throws an Error that
 * names the entry that is neither.
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

/** Whether the list allows the host of a URL wherever it is. */
export function isAllowed({ hostname, port, protocol }: URL, hosts: Set<string>): boolean {
  const host = bare(hostname);
  return hosts.has(host) || hosts.has(`${host}:${port || (protocol === 'https:' ? '443' : '80')}`);
}

/**
 * The address of a URL's host that is not on the public internet; null where all its addresses are. Rejects with what the name
 * resolution says.
 */
export async function privateAddressOf({ hostname }: URL, resolve: Resolve): Promise<string | null> {
  const host = bare(hostname);
  if (isIP(host)) return isPublicAddress(host) ? null : host;
  const found = await resolve(host);
  if (found.length === 0) return 'no address';
  return found.find(({ address }) => !isPublicAddress(address))?.address ?? null;
}

function isPublicAddress(address: string): boolean {
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  // Only 2000::/3 is assigned: the rest includes ways to spell IPv4 addresses, such as ::7f00:1.
  return !(parsed instanceof ipaddr.IPv6) || parsed.match(ipaddr.IPv6.parseCIDR('2000::/3'));
}

function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').toLowerCase();
}
