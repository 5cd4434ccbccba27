import { type LookupAddress, lookup } from 'node:dns';
import { isIP, isIPv6, type LookupFunction } from 'node:net';
import { promisify } from 'node:util';
import ipaddr from 'ipaddr.js';
import { Agent, buildConnector } from 'undici';
import { JobError } from './job-error.ts';

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

/** The hosts that a service may visit wherever they are, and the name of the setting that lists them. */
export interface AllowedHosts {
  setting: string;
  hosts: Set<string>;
}

/** Reads the setting of that name: hosts or host:port by commas. Throws on an entry that is neither. */
export function readAllowedHosts(setting: string, env: Record<string, string | undefined>): AllowedHosts {
  const entries = (env[setting] ?? '').split(',').map((entry) => entry.trim().toLowerCase());
  const hosts = entries.filter(Boolean).map((entry) => {
    if (isIPv6(entry)) return entry;
    const match = /^(?:\[([0-9a-f:.]+)\]|([^\s:/[\]]+))(:\d{1,5})?$/.exec(entry);
    if (!match) {
      throw new Error(`${setting} has the entry "${entry}": give hosts or host:port, parted by commas`);
    }
    return `${match[1] ?? match[2]}${match[3] ?? ''}`;
  });
  return { setting, hosts: new Set(hosts) };
}

/**
 * An HTTP agent that connects to public addresses only, and to the allowed hosts wherever they are.
 * It checks the address where the connection is made, so that neither a redirect nor a changed DNS answer gets around it.
 */
export function guardedAgent({ setting, hosts }: AllowedHosts, resolve: Resolve): Agent {
  const connectAnywhere = buildConnector({ lookup: lookupBy(resolve, () => true, setting) });
  const connectPublic = buildConnector({ lookup: lookupBy(resolve, isPublicAddress, setting) });
  return new Agent({
    connect(options, callback) {
      const host = options.hostname.replace(/^\[|\]$/g, '').toLowerCase();
      const port = options.port || (options.protocol === 'https:' ? '443' : '80');
      if (hosts.has(host) || hosts.has(`${host}:${port}`)) return connectAnywhere(options, callback);
      // Nobody looks a literal address up, so that it must be checked here.
      if (isIP(host) && !isPublicAddress(host)) return callback(blocked(host, host, setting), null);
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

function lookupBy(resolve: Resolve, accepts: (address: string) => boolean, setting: string): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (found) => {
        const usable = found.filter(({ address }) => accepts(address));
        const first = usable[0];
        if (!first) callback(blocked(hostname, found[0]?.address ?? 'no address', setting), '');
        else if (options.all) callback(null, usable);
        else callback(null, first.address, first.family);
      },
      (error) => callback(error, ''),
    );
  };
}

function blocked(host: string, address: string, setting: string): JobError {
  const resolved = host === address ? '' : ` (it resolves to ${address})`;
  return new JobError(
    'blocked_address',
    `${host} is not on the public internet${resolved}; list it in ${setting} to allow it`,
  );
}
