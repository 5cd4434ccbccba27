// A Postgres server of a test file's own, which is killed in the middle of a statement and started again.
import fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect } from 'vitest';
import { createDataDirectory } from '../../../local/platform/database/template.ts';
import { type Postgres, startPostgres } from '../../../local/platform/postgres.ts';
import { scratchFolder } from '../../../local/platform/scratch-folder.ts';
import { startWatchdog, type Watchdog } from '../../../local/platform/watchdog.ts';
import type { TestDatabase } from '../database.ts';
import { Engine } from '../engine.ts';
import { begin } from '../sessions.ts';
import { until } from '../until.ts';

const migrations = path.join(import.meta.dirname, '..', '..', '..', 'supabase', 'migrations');

export interface KillableServer {
  /** An engine over a session of its own; its clock is the server's. */
  engine(): Promise<Engine>;
  /** Kills the server while this statement writes the given table, and starts it again; resolves to a new engine. */
  killedWithin(engine: Engine, table: string, statement: string): Promise<Engine>;
}

const waitHere = `
  create or replace function public.wait_here() returns trigger language plpgsql as $$
  begin
    perform pg_advisory_xact_lock_shared(7);
    return null;
  end $$`;

/** Starts a server before the tests of a file and stops it after them. */
export function killableServer(name: string): KillableServer {
  let folder: string;
  let watchdog: Watchdog;
  let server: Postgres;
  beforeAll(async () => {
    folder = fs.mkdtempSync(path.join(scratchFolder(), `millrace-${name}-`));
    fs.chmodSync(folder, 0o711);
    watchdog = startWatchdog();
    watchdog.removeLater(folder);
    const dataDir = path.join(folder, 'postgres');
    await createDataDirectory(dataDir, folder, { folder: migrations });
    server = await startPostgres({ dataDir, fsync: false, watchdog });
  });
  afterAll(async () => {
    await server?.stop();
    fs.rmSync(folder, { recursive: true, force: true });
    watchdog.dismiss();
  });
  async function connect(role = 'postgres'): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: server.url('postgres') });
    client.on('error', () => {});
    await client.connect();
    if (role !== 'postgres') await client.query(`set role ${role}`);
    return client;
  }
  const giveBack = (client: pg.Client) => void client.end().catch(() => {});
  const engine = async () => new Engine({ connect, giveBack } as unknown as TestDatabase, await connect());
  return {
    engine,
    async killedWithin(within, table, statement) {
      await within.sql.query(waitHere);
      await within.sql.query(
        `create trigger wait_here after insert on ${table} for each statement execute function public.wait_here()`,
      );
      const holder = await connect();
      await holder.query('select pg_advisory_lock(7)');
      const caught = begin(within.sql.query(statement)).then(
        () => 'done',
        () => 'lost',
      );
      await until(async () => {
        const { rows } = await holder.query(`select from pg_locks where locktype = 'advisory' and not granted`);
        return rows.length > 0;
      });
      await server.kill9();
      expect(await caught).toBe('lost');
      await server.start();
      const fresh = await engine();
      await fresh.sql.query(`drop trigger wait_here on ${table}`);
      return fresh;
    },
  };
}
