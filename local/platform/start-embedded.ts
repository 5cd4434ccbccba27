// Loaded when a server starts: what needs only its address loads less.
import fs from 'node:fs';
import type { Socket } from 'node:net';
import path from 'node:path';
import { supabaseVersion } from './binaries.ts';
import { choosePostgres } from './choose-postgres.ts';
import { createDataDirectory } from './database/template.ts';
import { startPostgres } from './postgres.ts';
import { scratchFolder } from './scratch-folder.ts';
import { startWatchdog } from './watchdog.ts';

/** A running server. */
export interface EmbeddedPostgres {
  port: number;
  /** Ends the server and removes its files. A watchdog does so where this process dies before. */
  stop(): Promise<void>;
}

/**
 * Starts a Postgres whose database `postgres` has the migrations of the project in `root`. Nothing runs beside it: no pg_cron, no
 * pg_net. A process ends without waiting for it.
 */
export async function startEmbedded(root: string): Promise<EmbeddedPostgres> {
  supabaseVersion();
  choosePostgres(root, undefined, () => {});
  const folder = fs.mkdtempSync(path.join(scratchFolder(), 'millrace-test-'));
  fs.chmodSync(folder, 0o711);
  const watchdog = startWatchdog();
  watchdog.removeLater(folder);
  try {
    const dataDir = path.join(folder, 'postgres');
    await createDataDirectory(dataDir, folder, { folder: path.join(root, 'supabase', 'migrations') });
    const server = await startPostgres({
      dataDir,
      fsync: false,
      maxConnections: 300,
      // A database in which real extensions work cannot be copied.
      workersIn: 'template1',
      autovacuum: false,
      watchdog: {
        ...watchdog,
        watch(child) {
          child.unref();
          (child.stderr as Socket | null)?.unref();
          watchdog.watch(child);
        },
      },
    });
    return {
      port: server.port,
      async stop() {
        await server.stop();
        fs.rmSync(folder, { recursive: true, force: true });
        watchdog.dismiss();
      },
    };
  } catch (error) {
    fs.rmSync(folder, { recursive: true, force: true });
    watchdog.dismiss();
    throw error;
  }
}
