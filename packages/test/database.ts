// A fresh database: a copy of another; reused-database.ts lets one serve many tests. Nothing runs beside it: no pg_net or pg_cron
// worker, so that a test decides itself when the sweep runs and can read the wake-ups in net's queue.
import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { databaseUrl, pg } from '../../local/platform/embedded.ts';

const loginRoles = ['supabase_admin', 'postgres', 'authenticator'];

export interface TestDatabase {
  /** Logs in as postgres: the owner, no superuser, as on hosted Supabase. */
  url: string;
  /** Logs in as supabase_admin: the superuser. */
  superUrl: string;
  /**
   * A session of its own as `role` (default postgres), with the claims of a signed-in user if given. For anon,
   * authenticated and service_role it logs in as authenticator and sets the role, as the Data API does.
   */
  connect(role?: string, claims?: Record<string, unknown>): Promise<Client>;
  /**
   * Hands a session of connect() back that is between transactions and as connect() made it: the next connect() for
   * that role gets it, spared the work of loading and planning the engine's functions anew.
   */
  giveBack(client: Client): void;
  /**
   * Readies the sessions that connect() made and a test left in order for the next test, and ends all others but the given one,
   * a superuser's.
   */
  recall(keeper: Client): Promise<void>;
  /** Ends its sessions and removes it. */
  drop(): Promise<void>;
}

/**
 * A session keeps what it has planned for functions that are long dropped, and walks through all of it whenever a table or function
 * changes: after 250 tests each took three times as long. A new one is made for a tenth of that.
 */
const mostTests = 20;

/** Copies the database `template` of the server at `port`. Throws where a session of another process is in it. */
export async function copyDatabase(port: number, template: string): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const url = (role: string, database: string) => databaseUrl(port, role, database);
  // Copying files costs a third less than the default, which writes every page to the log as well.
  const how = `template ${template} owner postgres strategy file_copy`;
  await administer(url('supabase_admin', 'template1'), `create database ${name} ${how}`);
  const clients: Client[] = [];
  const roles = new Map<Client, string>();
  const idle: Client[] = [];
  /** How many tests each session has served. */
  const served = new Map<Client, number>();
  return {
    url: url('postgres', name),
    superUrl: url('supabase_admin', name),
    async connect(role = 'postgres', claims) {
      const kept = claims ? -1 : idle.findIndex((client) => roles.get(client) === role);
      if (kept >= 0) return idle.splice(kept, 1)[0] as Client;
      const login = loginRoles.includes(role) ? role : 'authenticator';
      const client = new pg.Client({ connectionString: url(login, name) });
      client.on('error', () => {});
      clients.push(client);
      await client.connect();
      if (login !== role) await client.query(`set role ${pg.escapeIdentifier(role)}`);
      if (claims) {
        await client.query(`select set_config('request.jwt.claims', $1, false)`, [JSON.stringify({ role, ...claims })]);
      } else {
        roles.set(client, role);
      }
      return client;
    },
    giveBack(client) {
      if (client.getTransactionStatus() !== 'I') throw new Error('a session in a transaction cannot be handed back');
      if (roles.has(client)) idle.push(client);
    },
    async recall(keeper) {
      const { rows } = await keeper.query<{ pid: number; idle: boolean }>(
        `select pid, state is not distinct from 'idle' as idle from pg_stat_activity
         where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`,
      );
      const free = new Set(rows.filter((row) => row.idle).map((row) => row.pid));
      idle.length = 0;
      for (const client of clients.splice(0)) {
        const role = roles.get(client);
        const tests = (served.get(client) ?? 0) + 1;
        served.set(client, tests);
        if (!role || tests >= mostTests || !free.has(processId(client)) || !(await refreshed(client, role))) {
          roles.delete(client);
          served.delete(client);
          client.end().catch(() => {});
          continue;
        }
        clients.push(client);
        idle.push(client);
      }
      const kept = clients.map(processId);
      const strangers = rows.map((row) => row.pid).filter((pid) => !kept.includes(pid));
      if (strangers.length > 0) {
        await keeper.query('select pg_terminate_backend(pid, 5000) from unnest($1::int[]) pid', [strangers]);
      }
    },
    async drop() {
      await Promise.all(clients.map((client) => client.end().catch(() => {})));
      await administer(url('supabase_admin', 'template1'), `drop database ${name} with (force)`);
    },
  };
}

function processId(client: Client): number {
  return (client as unknown as { processID: number }).processID;
}

/** Brings a session back to what connect() made of it; false when it cannot be. */
async function refreshed(client: Client, role: string): Promise<boolean> {
  client.removeAllListeners('notice').removeAllListeners('notification');
  const setRole = loginRoles.includes(role) ? 'reset role' : `set role ${pg.escapeIdentifier(role)}`;
  try {
    // Not "discard all", which forgets the plans.
    await client.query(
      `close all; unlisten *; select pg_advisory_unlock_all(); discard temp; discard sequences; reset all; ${setRole}`,
    );
    return true;
  } catch {
    return false;
  }
}

async function administer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
