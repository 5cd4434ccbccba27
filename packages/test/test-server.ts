// The Postgres of a test run, and the databases that tests get of it: copies of one that has the project's migrations.
import path from 'node:path';
import process from 'node:process';
import type { Client } from 'pg';
import { databaseUrl, pg, startEmbedded, templateDatabase } from '../../local/platform/embedded.ts';
import { copyDatabase } from './database.ts';
import { letProcessEnd } from './let-process-end.ts';
import { borrowDatabase } from './reused-database.ts';
import { setUpClock } from './set-clock.ts';

/** Names the port of a server that the run has started for all its processes. */
export const portSetting = 'MILLRACE_TEST_POSTGRES';

export interface TestServer {
  port: number;
  stop(): Promise<void>;
}

/**
 * Starts a server whose database `postgres` is as the project defines it: its migrations, and those that `millrace sync` would write.
 * Throws what `sync` finds wrong.
 */
export async function startTestServer(root: string): Promise<TestServer> {
  const logger = { command: 'npx millrace sync', log: () => {}, warn: () => {} };
  const { planSync } = await import('../../cli/sync/sync-pipelines.ts');
  const planned = await planSync(path.join(root, 'supabase'), false, logger);
  const server = await startEmbedded(root);
  try {
    for (const { name, text } of planned) {
      await query(databaseUrl(server.port, 'postgres', templateDatabase), text).catch((error: Error) => {
        throw new Error(`What sync would write as ${name} does not apply: ${error.message}`);
      });
    }
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

/** Servers of this process by the project: files of tests that share a process share them. */
const held = globalThis as { millraceTestServers?: Map<string, Promise<Pick<TestServer, 'port'>>> };
held.millraceTestServers ??= new Map();
const servers = held.millraceTestServers;

function serverOf(root: string): Promise<Pick<TestServer, 'port'>> {
  const port = process.env[portSetting];
  if (port) return Promise.resolve({ port: Number(port) });
  const found = servers.get(root) ?? startTestServer(root);
  servers.set(root, found);
  return found;
}

async function query(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(text).finally(() => client.end());
}

/** A database of one test, and its two sessions. */
export interface LentDatabase {
  /** A session of the owner, `postgres`. */
  sql: Client;
  /** A session of `service_role`, which workers use. */
  worker: Client;
  /** Hands it on to the next test. */
  giveBack(): Promise<void>;
}

/** Lends a test a database of the project with a clock that is set. A test that keeps it keeps no process from its end. */
export async function lendDatabase(root: string): Promise<LentDatabase> {
  const { port } = await serverOf(root);
  const database = await borrowDatabase({
    kind: `project ${port}`,
    create: () => copyDatabase(port, templateDatabase),
    async setUp(made) {
      const sql = await made.connect();
      await setUpClock(sql);
      made.giveBack(sql);
    },
  });
  const [sql, worker] = await Promise.all([database.connect(), database.connect('service_role')]);
  for (const client of [sql, worker]) letProcessEnd(client);
  return {
    sql,
    worker,
    async giveBack() {
      for (const client of [sql, worker]) database.giveBack(client);
      await database.drop();
    },
  };
}
