// Users and their sessions, in the tables of the schema auth.
import pg from 'pg';
import { AuthError } from './auth-error.ts';

/** A user as Auth answers it. */
export type User = Record<string, unknown> & { id: string; email: string; role: string };

export interface NewUser {
  email: string;
  password?: string;
  email_confirm?: boolean;
  user_metadata?: object;
  app_metadata?: object;
}

export type Found = Record<string, unknown> & { user: User };
/** Asks the database; resolves to the first row. */
export type Ask = (text: string, values: unknown[]) => Promise<Found | undefined>;

/** The only instance that there is. */
export const instance = '00000000-0000-0000-0000-000000000000';
/** SQL that makes of the row `u` a user as Auth answers it. */
export const shown = `jsonb_build_object('id', u.id, 'aud', u.aud, 'role', u.role, 'email', u.email,
  'email_confirmed_at', u.email_confirmed_at, 'phone', coalesce(u.phone, ''), 'confirmed_at', u.confirmed_at,
  'last_sign_in_at', u.last_sign_in_at, 'app_metadata', coalesce(u.raw_app_meta_data, '{}'),
  'user_metadata', coalesce(u.raw_user_meta_data, '{}'), 'identities', '[]'::jsonb, 'created_at', u.created_at,
  'updated_at', u.updated_at, 'is_anonymous', u.is_anonymous) as user`;

/** `url` logs in as supabase_auth_admin. Connects at the first use. */
export function openAccounts(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: 3, allowExitOnIdle: true });
  // A crash of Postgres ends idle connections too: the next use opens another.
  pool.on('error', () => {});
  const first: Ask = async (text, values) => (await pool.query(text, values)).rows[0];

  return {
    first,
    async user(id: string): Promise<User | undefined> {
      return (await first(`select ${shown} from auth.users u where id = $1`, [id]))?.user;
    },
    async hasSession(id: string): Promise<boolean> {
      return (await first('select true from auth.sessions where id = $1', [id])) !== undefined;
    },
    /** Ends all sessions of a user, this one, or all but this one. */
    async close(user: string, session: string | null, scope: 'global' | 'local' | 'others'): Promise<void> {
      await first(
        `delete from auth.sessions where user_id = $1 and case $3 when 'local' then id = $2 when 'others' then
          id is distinct from $2 else true end`,
        [user, session, session === null ? 'global' : scope],
      );
    },
    async create({ email, password, email_confirm, user_metadata = {}, app_metadata = {} }: NewUser): Promise<User> {
      const made = await first(
        `insert into auth.users as u (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at,
          confirmation_token, recovery_token, email_change_token_new, email_change, raw_app_meta_data,
          raw_user_meta_data, created_at, updated_at)
        values ('${instance}', gen_random_uuid(), 'authenticated', 'authenticated', lower($1),
          coalesce(extensions.crypt($2, extensions.gen_salt('bf')), ''), case when $3 then now() end, '', '', '', '',
          '{"provider": "email", "providers": ["email"]}'::jsonb || $4, $5, now(), now())
        on conflict do nothing returning ${shown}`,
        [email, password ?? null, email_confirm === true, app_metadata, user_metadata],
      );
      if (!made) throw new AuthError(422, 'email_exists', 'A user with this email address has already been registered');
      return made.user;
    },
    async remove(id: string): Promise<void> {
      const gone = await first('delete from auth.users where id = $1 returning id', [id]);
      if (!gone) throw new AuthError(404, 'user_not_found', 'User not found');
    },
    stop: () => pool.end(),
  };
}
