import fs from 'node:fs';
import path from 'node:path';
import { editedMigrations, noteMigrations } from '../edited-migrations.ts';
import { applyMigrations } from '../migrate.ts';
import { type Postgres, startPostgres } from '../postgres.ts';
import { postgresFiles } from '../postgres-files.ts';
import type { Watchdog } from '../watchdog.ts';
import { refuseMissingExtensions } from './missing-extensions.ts';
import { runWhereThere } from './run-where-there.ts';
import { createDataDirectory } from './template.ts';

export interface DatabaseOptions {
  /** The stack's folder; the cluster lies in it. */
  dataDir: string;
  /** Folder of migrations, false for none. */
  migrations: string | false;
  /** SQL files that a new database gets after them: absolute paths, with wildcards. */
  seeds: string[];
  /** Undefined for a free one. */
  port: number | undefined;
  fsync: boolean;
}

/** Starts Postgres on the cluster in `dataDir` with all migrations applied; makes the cluster where there is none. */
export async function openDatabaseCluster({
  dataDir,
  migrations,
  seeds,
  port,
  fsync,
  watchdog,
  progress,
}: DatabaseOptions & { watchdog: Watchdog; progress(message: string): void }): Promise<Postgres> {
  if (migrations !== false) await refuseMissingExtensions(migrations);
  const cluster = path.join(dataDir, 'postgres');
  const known = fs.existsSync(cluster);
  if (known) requireMajor(cluster);
  progress(known ? 'database: opening' : 'database: preparing');
  if (!known) await createDataDirectory(cluster, dataDir, migrations !== false && { folder: migrations });
  const postgres = await startPostgres({ dataDir: cluster, ...(port && { port }), fsync, watchdog });
  if (migrations === false) return postgres;
  try {
    if (known) for (const edited of editedMigrations(dataDir, migrations)) progress(edited);
    // A new one has its migrations from the template.
    if (known || seeds.length > 0) await applyMigrations(postgres.url('postgres'), { folder: migrations }, { seeds });
    if (!known) await dateInstall(postgres.url('supabase_admin'));
    noteMigrations(dataDir, migrations);
    return postgres;
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/** Throws where a kept cluster is of another major version than the Postgres that is run. */
function requireMajor(cluster: string): void {
  const kept = fs.readFileSync(path.join(cluster, 'PG_VERSION'), 'utf8').trim();
  const { version } = postgresFiles();
  if (version.split('.')[0] === kept) return;
  throw new Error(
    `${path.dirname(cluster)} holds data of Postgres ${kept}, and this is ${version}: name another folder, or run Postgres ${kept}.`,
  );
}

/** Dates the install in a copy of an old template as of now: otherwise the sweep would seem late. */
const dateInstall = (superUrl: string) =>
  runWhereThere(superUrl, 'millrace.releases', 'update millrace.releases set installed_at = millrace.now() where true');
