import { CommandError } from './command-error.ts';

/** Returns the port that an option gives, undefined where it is left out. Throws a CommandError where it gives none. */
export function readPort(option: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const port = /^\d{1,5}$/.test(given) ? Number(given) : 0;
  if (port < 1 || port > 65_535)
    throw new CommandError(`${option} is "${given}", but must be a port from 1 to 65535.`, 2);
  return port;
}
