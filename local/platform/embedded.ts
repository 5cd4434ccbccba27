// Postgres alone, for @millrace/test: one server, with a database that has a project's migrations.
import pg from 'pg';
import type { EmbeddedPostgres } from './start-embedded.ts';

export { pg };

/** The database that has the migrations. */
export const templateDatabase = 'postgres';

/** Returns the address of a database for a role that may log in: postgres, supabase_admin or authenticator. */
export const databaseUrl = (port: number, role: string, database: string) =>
  `postgresql://${role}:postgres@127.0.0.1:${port}/${database}`;

/**
 * Starts a Postgres whose database `postgres` has the migrations of the project in `root`. Nothing runs beside it: no pg_cron, no
 * pg_net. A process ends without waiting for it.
 */
export async function startEmbedded(root: string): Promise<EmbeddedPostgres> {
  const loaded = await import('./start-embedded.ts');
  return loaded.startEmbedded(root);
}
