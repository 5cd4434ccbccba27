import { isIP, type LookupFunction } from 'node:net';
import { Agent, buildConnector } from 'undici';
import {
  hostOf,
  isPublicAddress,
  parseHosts,
  type Resolve,
} from '../../../supabase/functions/_millrace/public-hosts.ts';
import { JobError } from './job-error.ts';

export { isPublicAddress, type Resolve, systemResolve } from '../../../supabase/functions/_millrace/public-hosts.ts';

/** The hosts that a service may visit wherever they are, and the name of the setting that lists them. */
export interface AllowedHosts {
  setting: string;
  hosts: Set<string>;
}

/** Reads the setting of that name: hosts or host:port by commas. Throws on an entry that is neither. */
export function readAllowedHosts(setting: string, env: Record<string, string | undefined>): AllowedHosts {
  try {
    return { setting, hosts: parseHosts(env[setting] ?? '') };
  } catch (error) {
    throw new Error(`${setting} ${(error as Error).message}`);
  }
}

/** Opens a connection to a host, or says why not. */
export type Connector = buildConnector.connector;

/**
 * Connects to public addresses only, and to the allowed hosts wherever they are. Checks the address where the connection is
 * made, so that neither a redirect nor a changed DNS answer gets around it.
 */
export function guardedConnector({ setting, hosts }: AllowedHosts, resolve: Resolve): Connector {
  const connectAnywhere = buildConnector({ lookup: lookupBy(resolve, () => true, setting) });
  const connectPublic = buildConnector({ lookup: lookupBy(resolve, isPublicAddress, setting) });
  return (options, callback) => {
    const { host, allowed } = hostOf(options, hosts);
    if (allowed) return connectAnywhere(options, callback);
    // A literal address is never looked up, so this is the one place that can check it.
    if (isIP(host) && !isPublicAddress(host)) return callback(blocked(host, host, setting), null);
    return connectPublic(options, callback);
  };
}

/** Returns an HTTP agent whose connections are those of guardedConnector(). */
export function guardedAgent(allowed: AllowedHosts, resolve: Resolve): Agent {
  return new Agent({ connect: guardedConnector(allowed, resolve) });
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
