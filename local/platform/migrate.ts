// Migrations are applied by the real supabase CLI, as in a deployment: what it refuses is refused here too.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { supabaseBinary } from './binaries.ts';
import { withHostedRights } from './database/hosted-rights.ts';
import { readConfig } from './functions/project-config.ts';
import { isBundled } from './places.ts';

export interface Migrations {
  /** Folder of `<timestamp>_<name>.sql` files. */
  folder: string;
}

/** Returns the files that decide what a migrated database looks like, in order. */
export function migrationFiles({ folder }: Migrations): string[] {
  if (!fs.existsSync(folder)) return [];
  const names = fs
    .readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  return names.map((name) => path.join(folder, name));
}

/**
 * Texts that shape a database before its migrations, as far as the project has them: its roles, and with secrets for
 * Vault these, the files of settings and the values of `env()`.
 */
export function precedingTexts({ folder }: Migrations): string[] {
  const { roles, vault, settings } = preceding(folder);
  const named = Object.values(vault).map((value) => process.env[/^env\((\w+)\)$/.exec(value)?.[1] ?? ''] ?? '');
  const texts = [...(roles ? [roles] : []), ...(named.length > 0 ? settings : [])].map((file) =>
    fs.readFileSync(file, 'utf8'),
  );
  return named.length > 0 ? [...texts, JSON.stringify(vault), ...named] : texts;
}

/** Beside the migrations: roles, secrets for Vault, and the files by which the CLI knows what `env()` means in these. */
function preceding(folder: string) {
  const supabase = path.dirname(folder);
  const isThere = (file: string) => fs.existsSync(file);
  const roles = path.join(supabase, 'roles.sql');
  return {
    roles: isThere(roles) ? roles : undefined,
    vault: readConfig(supabase).db?.vault ?? {},
    settings: ['.env', '.env.local', '../.env', '../.env.local']
      .map((name) => path.join(supabase, name))
      .filter(isThere),
  };
}

interface Applied {
  /** SQL files that come after the migrations: absolute paths, with wildcards. */
  seeds?: string[];
  /** Whether the database is new, and gets the project's own roles first. */
  isNew?: boolean;
}

/**
 * Applies what is missing to the database at `url` (as role postgres): with the first migration the secrets of [db.vault], then the
 * seeds that it has not had. Throws with the CLI's output on failure, also where a file's stamp is older than that of one that was
 * applied.
 */
export async function applyMigrations(
  url: string,
  migrations: Migrations,
  { seeds = [], isNew = false }: Applied = {},
): Promise<void> {
  const files = migrationFiles(migrations);
  const { roles, vault, settings } = preceding(migrations.folder);
  const givesRoles = isNew && roles !== undefined;
  if (seeds.length === 0 && !givesRoles && (files.length === 0 || (await hasJust(url, files)))) return;
  // A work folder of its own: the CLI leaves notes beside the migrations it reads.
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-migrate-'));
  try {
    fs.mkdirSync(path.join(work, 'supabase', 'migrations'), { recursive: true });
    const secrets = Object.entries(vault).map(
      ([name, value]) => `${JSON.stringify(name)} = ${JSON.stringify(value)}\n`,
    );
    const config = `project_id = "millrace"\n[db.seed]\nsql_paths = ${JSON.stringify(seeds)}\n[db.vault]\n${secrets.join('')}`;
    fs.writeFileSync(path.join(work, 'supabase', 'config.toml'), config);
    if (roles) fs.copyFileSync(roles, path.join(work, 'supabase', 'roles.sql'));
    for (const file of secrets.length > 0 ? settings : []) {
      fs.copyFileSync(file, path.join(work, path.relative(path.join(migrations.folder, '..', '..'), file)));
    }
    for (const file of files) {
      const text = await withHostedRights(fs.readFileSync(file, 'utf8'));
      fs.writeFileSync(path.join(work, 'supabase', 'migrations', path.basename(file)), text);
    }
    const included = [
      ...(seeds.length > 0 ? ['--include-seed'] : []),
      ...(givesRoles ? ['--include-roles'] : []),
      ...(secrets.length > 0 ? [] : ['--skip-vault']),
    ];
    const remote = `--remote=${url}?sslmode=disable`;
    await runCli(['db', 'push', remote, '--yes', ...included, '--workdir', work]);
  } finally {
    fs.rmSync(work, { recursive: true });
  }
}

/** Resolves to whether a database has had all of these migrations and no other, which the CLI takes a second to find. */
async function hasJust(url: string, files: string[]): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ version: string }>(
      'select version from supabase_migrations.schema_migrations',
    );
    const stamps = files.map((file) => /^(\d+)_/.exec(path.basename(file))?.[1]);
    return isDeepStrictEqual(stamps.sort(), rows.map(({ version }) => version).sort());
  } catch (error) {
    // The CLI makes the table with the first migration.
    if ((error as { code?: string }).code === '42P01') return false;
    throw error;
  } finally {
    await client.end();
  }
}

/** Of the CLI's output, which migration failed and why; all of it where it says something else. */
function failureOf(output: string): string {
  const [, early] = output.match(/--include-all flag[^\n]*\n([\s\S]*)/) ?? [];
  if (early) {
    const files = early
      .trim()
      .split('\n')
      .map((file) => path.basename(file.trim()));
    return (
      `${files.join(', ')} has an older stamp than a migration that this database took, so a deployment would refuse it: ` +
      'give it a newer one.'
    );
  }
  const [, file, why, statement] =
    output.match(
      /Applying migration (\S+)\.\.\.\n(ERROR: [\s\S]*?)\nAt statement: \d+\n([\s\S]*?)(?:\nTry rerunning .*)?$/,
    ) ?? [];
  if (!file || !statement) return output;
  const lines = statement.trimEnd().split('\n');
  const shown = lines.length > 6 ? [...lines.slice(0, 6), '…'] : lines;
  const first = / does not exist /.test(why ?? '') ? 'Add the migration of what is missing, or correct' : 'Correct';
  const remedy = file.includes('_pipeline_')
    ? [
        `${first} the definition; then delete supabase/migrations/${file}, if no database has taken it yet, and run ` +
          `\`${isBundled ? 'npx millrace sync' : 'npm run pipelines:sync'}\`, which writes it anew after the others.`,
      ]
    : [];
  return [`Migration ${file} failed.`, why, ...shown, ...remedy].join('\n');
}

function runCli(args: string[]): Promise<void> {
  const env = { ...process.env, SUPABASE_TELEMETRY_DISABLED: '1', DO_NOT_TRACK: '1', NO_COLOR: '1' };
  return new Promise((resolve, reject) => {
    execFile(supabaseBinary(), args, { env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error)
        reject(new Error(failureOf(`supabase ${args.slice(0, 2).join(' ')} failed:\n${stdout}${stderr}`.trim())));
      else resolve();
    });
  });
}
