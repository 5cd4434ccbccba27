import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createDataDirectory } from '../../local/platform/database/template.ts';
import { startPostgres } from '../../local/platform/postgres.ts';
import { startWatchdog } from '../../local/platform/watchdog.ts';

const migrations = path.join(import.meta.dirname, '..', '..', 'supabase', 'migrations');

/** Calls `work` with the URL (role postgres) of an empty database with all migrations applied, and removes it after. */
export async function withMigratedDatabase<T>(work: (url: string) => Promise<T>): Promise<T> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-check-'));
  // Postgres may run as another user, who must get through to its own folder in here.
  fs.chmodSync(folder, 0o711);
  const watchdog = startWatchdog();
  watchdog.removeLater(folder);
  try {
    const dataDir = path.join(folder, 'postgres');
    await createDataDirectory(dataDir, folder, { folder: migrations });
    const server = await startPostgres({ dataDir, fsync: false, watchdog });
    try {
      return await work(server.url('postgres'));
    } finally {
      await server.stop();
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
    watchdog.dismiss();
  }
}
