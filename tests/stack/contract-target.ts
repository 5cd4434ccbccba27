// Where the contract of pg_net and pg_cron is tested: on a server of its own, with the stand-ins or with the extensions that its
// Postgres really has, or on the one that PGURL names (a role that may use them).
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { createDataDirectory } from '../../local/platform/database/template.ts';
import { startPgCron } from '../../local/platform/pg-cron/worker.ts';
import { startPgNet } from '../../local/platform/pg-net/worker.ts';
import { type Postgres, startPostgres } from '../../local/platform/postgres.ts';
import { startWatchdog } from '../../local/platform/watchdog.ts';

export interface ContractTarget {
  connect(): Promise<pg.Client>;
  /** A session as the superuser, where the server is one of our own. */
  connectAsSuperuser?: () => Promise<pg.Client>;
  /** The server, when it is one that may be killed. */
  server?: Postgres;
  stop(): Promise<void>;
}

/** The server at PGURL if it has the extension, else one of our own. */
export async function startContractTarget(extension: 'pg_net' | 'pg_cron'): Promise<ContractTarget> {
  const given = process.env.PGURL;
  const clients: pg.Client[] = [];
  const connectTo = async (url: string) => {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    await client.connect();
    clients.push(client);
    return client;
  };
  const endClients = () => Promise.all(clients.map((client) => client.end().catch(() => {})));

  if (given) {
    const client = await connectTo(given);
    const { rowCount } = await client.query('select from pg_extension where extname = $1', [extension]);
    if (!rowCount) throw new Error(`PGURL: the database has no extension ${extension}: create it, or unset PGURL.`);
    return {
      connect: () => connectTo(given),
      async stop() {
        await endClients();
      },
    };
  }

  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'millrace-contract-'));
  fs.chmodSync(folder, 0o711);
  const watchdog = startWatchdog();
  watchdog.removeLater(folder);
  const dataDir = path.join(folder, 'postgres');
  await createDataDirectory(dataDir, folder, false);
  const server = await startPostgres({ dataDir, fsync: false, watchdog });
  const report = (line: string) => console.error(line);
  const worker = server.worksFor(extension)
    ? undefined
    : extension === 'pg_net'
      ? startPgNet(server.url('supabase_admin'), report)
      : startPgCron(server.url, report);
  return {
    connect: () => connectTo(server.url('postgres')),
    connectAsSuperuser: () => connectTo(server.url('supabase_admin')),
    server,
    async stop() {
      await endClients();
      await worker?.stop();
      await server.stop();
      fs.rmSync(folder, { recursive: true });
      watchdog.dismiss();
    },
  };
}
