// Work in the database on behalf of a caller: under the role and the claims of its token, so that row-level security
// decides as it does on hosted Supabase.
import type { JWTPayload } from 'jose';
import pg from 'pg';
import { accessDenied } from './storage-error.ts';

/** Runs statements of one transaction, under the caller's role until told otherwise. */
export interface Session {
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
  asCaller(): Promise<void>;
  asAdmin(): Promise<void>;
}

export interface Database {
  /** Runs `work` in one transaction, as the caller with these claims, or as Storage itself without any. */
  transaction<T>(claims: JWTPayload | undefined, work: (session: Session) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

const callerRoles = ['anon', 'authenticated', 'service_role'];

/** `url` logs in as supabase_storage_admin. Connects at the first use. */
export function openDatabase(url: string): Database {
  const pool = new pg.Pool({ connectionString: url, max: 5, allowExitOnIdle: true });
  // A crash of Postgres ends idle connections too: the next use opens another.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));

  return {
    async transaction(claims, work) {
      const role = String(claims?.role ?? 'anon');
      if (claims && !callerRoles.includes(role)) throw accessDenied(`The token's role ${role} is unknown to Storage`);
      const client = await pool.connect();
      const query = async (text: string, values?: unknown[]) => (await client.query(text, values)).rows;
      const session: Session = {
        query,
        async asCaller() {
          await query('select set_config($1, $2, true)', ['role', role]);
        },
        async asAdmin() {
          await query('set local role supabase_storage_admin');
        },
      };
      let broken = true;
      try {
        await query('begin');
        if (claims) {
          await query(
            `select set_config('request.jwt.claims', $1, true), set_config('request.jwt.claim.sub', $2, true)`,
            [JSON.stringify(claims), claims.sub ?? ''],
          );
          await session.asCaller();
        }
        const result = await work(session);
        await query('commit');
        broken = false;
        return result;
      } catch (error) {
        broken = await client.query('rollback').then(
          () => false,
          () => true,
        );
        throw error;
      } finally {
        client.release(broken);
      }
    },
    stop: () => pool.end(),
  };
}
