// Opening a session by a password, and going on with it by a refresh token.
import { randomBytes } from 'node:crypto';
import { type Ask, type Found, instance, shown, type User } from './accounts.ts';
import { AuthError, invalidCredentials, refusedRefresh } from './auth-error.ts';

export interface Opened {
  user: User;
  session: string;
  refreshToken: string;
}

/** How long a used refresh token is good once more, for tabs that refresh at the same time. */
const reuse = '10 seconds';

const newToken = () => randomBytes(9).toString('base64url');

/** Opens a session for a user by password. */
export async function openSession(first: Ask, email: string, password: string): Promise<Opened> {
  const found = await first(
    `select ${shown}, u.banned_until > now() as is_banned, u.email_confirmed_at is not null as is_confirmed,
      u.encrypted_password = extensions.crypt($2, u.encrypted_password) as fits
    from auth.users u
    where u.instance_id = '${instance}' and u.aud = 'authenticated' and u.email = lower($1)
      and not u.is_sso_user and u.deleted_at is null and u.encrypted_password <> ''`,
    [email, password],
  );
  if (!found) throw invalidCredentials();
  if (found.is_banned) throw new AuthError(400, 'user_banned', 'User is banned');
  if (!found.fits) throw invalidCredentials();
  if (!found.is_confirmed) throw new AuthError(400, 'email_not_confirmed', 'Email not confirmed');
  const refreshToken = newToken();
  const opened = await first(
    `with opened as (
      insert into auth.sessions (id, user_id, created_at, updated_at, aal)
      values (gen_random_uuid(), $1, now(), now(), 'aal1') returning id
    ), handed_out as (
      insert into auth.refresh_tokens (instance_id, token, user_id, revoked, created_at, updated_at, session_id)
      select '${instance}', $2, $1::text, false, now(), now(), id from opened
    )
    update auth.users u set last_sign_in_at = now() where id = $1 returning ${shown}, (select id from opened) as session`,
    [found.user.id, refreshToken],
  );
  return { user: opened?.user as User, session: String(opened?.session), refreshToken };
}

/** Goes on with a session; the refresh token is good for one time. */
export async function renewSession(first: Ask, token: string): Promise<Opened> {
  const found = await first(
    `select ${shown}, t.session_id as session, t.revoked, s.not_after < now() as is_over,
      u.banned_until > now() as is_banned, t.updated_at > now() - interval '${reuse}' as is_fresh,
      (select a.token from auth.refresh_tokens a
        where a.session_id = s.id and not a.revoked and a.parent = t.token limit 1) as child
    from auth.refresh_tokens t
    join auth.sessions s on s.id = t.session_id
    join auth.users u on u.id::text = t.user_id
    where t.token = $1`,
    [token],
  );
  if (!found) throw refusedRefresh('refresh_token_not_found', 'Refresh Token Not Found');
  if (found.is_banned) throw refusedRefresh('user_banned', 'User Banned');
  if (found.is_over) throw refusedRefresh('session_expired', 'Session Expired');
  const { user, session, child } = found as Found & { session: string; child: string | null };
  // A client that lost the answer asks once more.
  if (found.revoked && child) return { user, session, refreshToken: child };
  if (found.revoked && !found.is_fresh) {
    await first(
      'update auth.refresh_tokens set revoked = true, updated_at = now() where session_id = $1 and not revoked',
      [session],
    );
    throw refusedRefresh('refresh_token_already_used', 'Already Used');
  }
  const refreshToken = newToken();
  await first(
    `with used as (
      update auth.refresh_tokens set revoked = true, updated_at = now() where token = $1
    ), refreshed as (
      update auth.sessions set updated_at = now(), refreshed_at = now() at time zone 'utc' where id = $3
    )
    insert into auth.refresh_tokens (instance_id, token, user_id, revoked, created_at, updated_at, parent, session_id)
    values ('${instance}', $2, $4, false, now(), now(), $1, $3)`,
    [token, refreshToken, session, user.id],
  );
  return { user, session, refreshToken };
}
