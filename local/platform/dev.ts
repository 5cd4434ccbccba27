// `millrace dev`: runs a project's own migrations, seeds and functions on a stack.
import fs from 'node:fs';
import path from 'node:path';
import { supabaseVersion } from './binaries.ts';
import { choosePostgres } from './choose-postgres.ts';
import { followSettings, readEnvFile } from './follow-settings.ts';
import { readConfig } from './functions/project-config.ts';
import { runUntilStopped } from './run-until-stopped.ts';
import { type StackOptions, startStack } from './stack.ts';
import { tellNewMigrations } from './tell-new-migrations.ts';

export interface DevOptions {
  /** The folder that holds `supabase/`. */
  root: string;
  /** Keeps database, objects and keys in this folder over restarts. Default: a temporary folder. */
  dataDir?: string | undefined;
  /** Ports of 127.0.0.1; free ones unless given. */
  port?: number | undefined;
  dbPort?: number | undefined;
  /** The folder of an installed Postgres, whose `bin` has its programs. Default: the one that the configuration asks for. */
  postgres?: string | undefined;
  /** A line of JSON when ready, nothing else on standard output. */
  json: boolean;
}

/** Runs the project until Ctrl-C, and ends the process then. */
export async function runDev({ root, dataDir, port, dbPort, postgres, json }: DevOptions): Promise<void> {
  await runUntilStopped({
    root,
    json,
    async start(say) {
      // Said before anything is fetched or prepared.
      supabaseVersion();
      choosePostgres(root, postgres, say.progress ?? (() => {}));
      const kept = { ...(dataDir && { dataDir }), ...(port && { port }), ...(dbPort && { dbPort }) };
      const options = projectOptions(root);
      const stack = await startStack({ ...options, ...kept, ...say });
      // Starting takes seconds, in which the file may change.
      followSettings(settingsFile(root), stack, say.progress ?? (() => {}), { known: options.env ?? {} });
      tellNewMigrations(path.join(root, 'supabase', 'migrations'), stack, say.progress ?? (() => {}));
      if (hasWorkerStages(root)) say.progress?.('Stages with host: worker run in another terminal: npx millrace work');
      return stack;
    },
  });
}

const settingsFile = (root: string) => path.join(root, 'supabase', 'functions', '.env');

/** Returns whether a definition has a stage run on a worker, which the stack does not start. */
function hasWorkerStages(root: string): boolean {
  const folder = path.join(root, 'supabase', 'functions', '_pipelines');
  const files = fs.existsSync(folder) ? fs.readdirSync(folder).filter((name) => name.endsWith('.ts')) : [];
  return files.some((name) => /\bhost: ['"]worker['"]/.test(fs.readFileSync(path.join(folder, name), 'utf8')));
}

/** Returns the options of a stack for the project in `root`: no further services, and the local settings of its functions. */
export function projectOptions(root: string): StackOptions {
  const supabase = path.join(root, 'supabase');
  return {
    migrations: path.join(supabase, 'migrations'),
    functionsDir: path.join(supabase, 'functions'),
    packages: 'deno',
    seeds: seedsOf(supabase),
    dataApi: dataApiOf(supabase),
    env: readEnvFile(settingsFile(root)),
  };
}

/** Returns the settings of the Data API in the configuration. */
function dataApiOf(supabase: string): StackOptions['dataApi'] {
  const { schemas = [], extra_search_path: extraSearchPath, max_rows: maxRows } = readConfig(supabase).api ?? {};
  return { schemas: schemas.length > 0 ? schemas : undefined, extraSearchPath, maxRows };
}

/** Returns the project's SQL files that come after its migrations, with wildcards. */
function seedsOf(supabase: string): string[] {
  const { enabled = true, sql_paths: given = ['./seed.sql'] } = readConfig(supabase).db?.seed ?? {};
  if (!enabled) return [];
  const files = given.map((file) => path.resolve(supabase, file));
  // The CLI warns of a file that is not there, and most projects have none of that name.
  return files.filter((file) => /[*?[]/.test(file) || fs.existsSync(file));
}
