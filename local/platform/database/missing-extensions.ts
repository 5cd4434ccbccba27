import fs from 'node:fs';
import path from 'node:path';
import { loadModule, parseSync } from '@libpg-query/parser';
import { postgresFolder } from '../binaries.ts';
import { knownExtensions } from '../extensions.ts';
import { migrationFiles } from '../migrate.ts';
import { wayOut } from '../obstacle.ts';

/**
 * Throws an error that names each extension which the migrations in `folder` create and this Postgres has not, with file and line.
 * A file that Postgres could not parse is left to the CLI, which says where.
 */
export async function refuseMissingExtensions(folder: string): Promise<void> {
  const known = knownExtensions(postgresFolder());
  const missing: string[] = [];
  for (const file of migrationFiles({ folder })) {
    const text = fs.readFileSync(file, 'utf8');
    if (!/create\s+extension/i.test(text)) continue;
    for (const { name, line } of await createdExtensions(text)) {
      if (!known.includes(name)) missing.push(`${path.basename(file)}:${line} creates the extension ${name}`);
    }
  }
  if (missing.length === 0) return;
  throw new Error(`${missing.join(';\n')}, which the local stack does not have. It skips no statement: ${wayOut}.`);
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
