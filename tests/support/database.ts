// A fresh database per test file or test: a copy of the migrated one, about 50 ms each. Nothing runs beside it: no
// pg_net or pg_cron worker, so that a test decides itself when the sweep runs and can read the rings in net's queue.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

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
  connect(role?: string, claims?: Record<string, unknown>): Promise<pg.Client>;
  /** Ends its sessions and removes it. */
  drop(): Promise<void>;
}

/** Creates a database with the roles, stand-ins and migrations applied. Throws when the migrations do not apply. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const error = inject('postgresError');
  if (error) throw new Error(error);
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const url = (role: string, database: string) =>
    `postgresql://${role}:postgres@127.0.0.1:${inject('postgresPort')}/${database}`;
  await administer(url('supabase_admin', 'template1'), `create database ${name} template postgres owner postgres`);
  const clients: pg.Client[] = [];
  return {
    url: url('postgres', name),
    superUrl: url('supabase_admin', name),
    async connect(role = 'postgres', claims) {
      const login = loginRoles.includes(role) ? role : 'authenticator';
      const client = new pg.Client({ connectionString: url(login, name) });
      client.on('error', () => {});
      clients.push(client);
      await client.connect();
      if (login !== role) await client.query(`set role ${pg.escapeIdentifier(role)}`);
      if (claims) {
        await client.query(`select set_config('request.jwt.claims', $1, false)`, [JSON.stringify({ role, ...claims })]);
      }
      return client;
    },
    async drop() {
      await Promise.all(clients.map((client) => client.end().catch(() => {})));
      await administer(url('supabase_admin', 'template1'), `drop database ${name} with (force)`);
    },
  };
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
