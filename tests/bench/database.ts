// The embedded Postgres as the stack starts it (fsync on, default configuration), with the engine's migrations.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { setProjectSecrets } from '../../local/platform/database/project-secrets.ts';
import { createDataDirectory } from '../../local/platform/database/template.ts';
import { startPostgres } from '../../local/platform/postgres.ts';
import { startWatchdog } from '../../local/platform/watchdog.ts';
import type { Urls } from './engine.ts';

const migrationsFolder = path.join(import.meta.dirname, '..', '..', 'supabase', 'migrations');

export interface BenchDatabase {
  urls: Urls;
  /** A session of the role that owns the migrated objects; closed by stop(). */
  owner: pg.Client;
  /** A session of the superuser; closed by stop(). */
  superuser: pg.Client;
  /** Another database on the same server, with the same content as the first had when the server started. */
  copy(name: string): Promise<{ urls: Urls; superuser: pg.Client }>;
  stop(): Promise<void>;
}

/** Starts a server on a fresh data directory. After any failure nothing of it is left running. */
export async function startBenchDatabase(): Promise<BenchDatabase> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-bench-'));
  // Postgres may run as another user, who must get through to its own folder in here.
  fs.chmodSync(folder, 0o711);
  const watchdog = startWatchdog();
  watchdog.removeLater(folder);
  const dataDir = path.join(folder, 'postgres');
  await createDataDirectory(dataDir, folder, { folder: migrationsFolder });
  const server = await startPostgres({ dataDir, watchdog });
  const urlsOf = (database: string): Urls => ({
    superuser: server.url('supabase_admin', database),
    owner: server.url('postgres', database),
    api: server.url('authenticator', database),
  });
  const clients: pg.Client[] = [];
  const connect = async (url: string) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    clients.push(client);
    // Ten million rows take longer than the two minutes that hosted gives a statement.
    await client.query('set statement_timeout = 0');
    return client;
  };
  const stop = async () => {
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
    await server.stop();
    watchdog.dismiss();
    fs.rmSync(folder, { recursive: true, force: true });
  };
  try {
    const urls = urlsOf('bench');
    const maintenance = await connect(server.url('supabase_admin', 'template1'));
    await maintenance.query('create database bench template postgres owner postgres');
    // Wake-ups are configured as in use; nobody sends what they queue, and no function answers.
    await setProjectSecrets(urls.superuser, 'http://127.0.0.1:9', 'wake_secret_bench');
    return {
      urls,
      owner: await connect(urls.owner),
      superuser: await connect(urls.superuser),
      async copy(name) {
        await maintenance.query(`create database ${name} template postgres owner postgres`);
        const copied = urlsOf(name);
        await setProjectSecrets(copied.superuser, 'http://127.0.0.1:9', 'wake_secret_bench');
        return { urls: copied, superuser: await connect(copied.superuser) };
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
