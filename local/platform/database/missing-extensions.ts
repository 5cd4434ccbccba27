import fs from 'node:fs';
import path from 'node:path';
import { loadModule, parseSync } from '@libpg-query/parser';
import { knownExtensions, standsIn } from '../extensions.ts';
import { migrationFiles } from '../migrate.ts';
import { wayOut } from '../obstacle.ts';
import { postgresFiles } from '../postgres-files.ts';

/**
 * Throws an error that names each extension which the migrations in `folder` create and this Postgres has not, with file and line,
 * and each function of pgsodium that they call. A file that Postgres could not parse is left to the CLI, which says where.
 */
export async function refuseMissingExtensions(folder: string): Promise<void> {
  const postgres = postgresFiles();
  const known = knownExtensions(postgres);
  const missing: { name: string; line: string }[] = [];
  const standIn = standsIn(postgres, 'pgsodium');
  for (const file of migrationFiles({ folder })) {
    const text = fs.readFileSync(file, 'utf8');
    for (const { call, line } of standIn ? callsOfPgsodium(text) : []) {
      missing.push({ name: 'pgsodium', line: `${path.basename(file)}:${line} calls ${call}` });
    }
    if (!/create\s+extension/i.test(text)) continue;
    for (const { name, line } of await createdExtensions(text)) {
      if (!known.includes(name))
        missing.push({ name, line: `${path.basename(file)}:${line} creates the extension ${name}` });
    }
  }
  if (missing.length === 0) return;
  throw new Error(
    `${missing.map(({ line }) => line).join(';\n')}, which the local stack does not have. It skips no statement: ` +
      `${installedWay(postgres, [...new Set(missing.map(({ name }) => name))])}, or ${wayOut}.`,
  );
}

/** Debian's packages that are not called as their extension. */
const debian: Record<string, string> = {
  pg_cron: 'cron',
  pg_hint_plan: 'pg-hint-plan',
  pg_partman: 'partman',
  pg_repack: 'repack',
  postgis: 'postgis-3',
  vector: 'pgvector',
};

/** Says how to install these extensions and run a Postgres that has them. */
function installedWay({ version }: { version: string }, names: string[]): string {
  const major = Number.parseInt(version, 10);
  if (process.platform === 'darwin') {
    return `install them for a Postgres of Homebrew's and run \`npx millrace dev --postgres "$(brew --prefix postgresql@${major})"\``;
  }
  const packages = names.map((name) => `postgresql-${major}-${debian[name] ?? name.replaceAll('_', '-')}`);
  return `run \`apt-get install ${packages.join(' ')}\` and \`npx millrace dev --postgres /usr/lib/postgresql/${major}\``;
}

/** Calls of functions that the stand-in does not have: comments are no calls. */
function callsOfPgsodium(text: string): { call: string; line: number }[] {
  const bare = text.replace(/--.*/g, '').replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''));
  return [...bare.matchAll(/\bpgsodium"?\s*\.\s*"?(\w+)"?\s*\(/gi)].map(({ 1: name, index }) => ({
    call: `pgsodium.${name}`,
    line: bare.slice(0, index).split('\n').length,
  }));
}

async function createdExtensions(text: string): Promise<{ name: string; line: number }[]> {
  await loadModule();
  const bytes = Buffer.from(text);
  try {
    return (parseSync(text).stmts ?? []).flatMap(({ stmt, stmt_location: at = 0 }) => {
      const { extname: name } = (stmt as { CreateExtensionStmt?: { extname?: string } }).CreateExtensionStmt ?? {};
      if (name === undefined) return [];
      const before = bytes.subarray(0, at).toString();
      const skipped = /^(?:\s|--[^\n]*(?:\n|$))*/.exec(bytes.subarray(at).toString())?.[0] ?? '';
      return [{ name, line: `${before}${skipped}`.split('\n').length }];
    });
  } catch {
    return [];
  }
}
