import { type LookupAddress, lookup } from 'node:dns';
import { isIP, isIPv6, type LookupFunction } from 'node:net';
import { promisify } from 'node:util';
import ipaddr from 'ipaddr.js';
import { Agent, buildConnector } from 'undici';
import { ScrapeError } from './scrape-error.ts';

/** Finds the addresses of a host name; rejects with a system error such as ENOTFOUND. */
export type Resolve = (hostname: string) => Promise<LookupAddress[]>;

const lookupAll = promisify(lookup);

/** The machine's own name resolution, except that names under .invalid never exist (RFC 6761). */
export const systemResolve: Resolve = async (hostname) => {
  if (/(^|\.)invalid\.?$/i.test(hostname)) {
    throw Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' });
  }
  return lookupAll(hostname, { all: true });
};

/** Reads SCRAPER_ALLOW_HOSTS: hosts or host:port by commas. Throws on an entry that is neither. */
export function readAllowedHosts(value: string | undefined): Set<string> {
  const entries = (value ?? '').split(',').map((entry) => entry.trim().toLowerCase());
  return new Set(
    entries.filter(Boolean).map((entry) => {
      if (isIPv6(entry)) return entry;
      const match = /^(?:\[([0-9a-f:.]+)\]|([^\s:/[\]]+))(:\d{1,5})?$/.exec(entry);
      if (!match) {
        throw new Error(`SCRAPER_ALLOW_HOSTS has the entry "${entry}": give hosts or host:port, parted by commas`);
      }
      return `${match[1] ?? match[2]}${match[3] ?? ''}`;
    }),
  );
}

/**
 * An HTTP agent that connects to public addresses only, and to the allowed hosts wherever they are.
 * The address is judged where the connection is made, so neither a redirect nor a changed DNS answer gets around it.
 */
export function guardedAgent(allowedHosts: Set<string>, resolve: Resolve): Agent {
  const connectAnywhere = buildConnector({ lookup: lookupBy(resolve, () => true) });
  const connectPublic = buildConnector({ lookup: lookupBy(resolve, isPublicAddress) });
  return new Agent({
    connect(options, callback) {
      const host = options.hostname.replace(/^\[|\]$/g, '').toLowerCase();
      const port = options.port || (options.protocol === 'https:' ? '443' : '80');
      if (allowedHosts.has(host) || allowedHosts.has(`${host}:${port}`)) return connectAnywhere(options, callback);
      // A literal address is never looked up, so it has to be judged here.
      if (isIP(host) && !isPublicAddress(host)) return callback(blocked(host, host), null);
      return connectPublic(options, callback);
    },
  });
}

/** Whether an IP address, in whatever notation, belongs to the public internet. */
export function isPublicAddress(address: string): boolean {
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  // Only 2000::/3 is assigned: the rest includes ways to spell IPv4 addresses, such as ::7f00:1.
  return !(parsed instanceof ipaddr.IPv6) || parsed.match(ipaddr.IPv6.parseCIDR('2000::/3'));
}

function lookupBy(resolve: Resolve, accepts: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (found) => {
        const usable = found.filter(({ address }) => accepts(address));
        const first = usable[0];
        if (!first) callback(blocked(hostname, found[0]?.address ?? 'no address'), '');
        else if (options.all) callback(null, usable);
        else callback(null, first.address, first.family);
      },
      (error) => callback(error, ''),
    );
  };
}

function blocked(host: string, address: string): ScrapeError {
  const resolved = host === address ? '' : ` (it resolves to ${address})`;
  return new ScrapeError(
    'blocked_address',
    `${host} is not on the public internet${resolved}; list it in SCRAPER_ALLOW_HOSTS to allow it`,
  );
}
