// The part of Supabase Auth's HTTP interface by which a user signs in with a password, goes on and signs out, and by which a
// secret key makes users. There is no second factor, no provider, no mail.
import { type Context, Hono } from 'hono';
import type { JWTPayload } from 'jose';
import { type Keys, signUserToken } from '../keys.ts';
import { type NewUser, openAccounts, type User } from './accounts.ts';
import { AuthError, badToken, toAuthError } from './auth-error.ts';
import { type Opened, openSession, renewSession } from './sessions.ts';

export interface AuthOptions {
  /** Logs in as supabase_auth_admin. */
  databaseUrl: string;
  keys: Keys;
  /** Where the project is, such as http://127.0.0.1:54321: the tokens' issuer. */
  apiUrl: string;
}

export interface Auth {
  /** Answers a request below /auth/v1. `claims` are those of the caller's token, if it showed a valid one. */
  handle(request: Request, claims: JWTPayload | undefined): Response | Promise<Response>;
  stop(): Promise<void>;
}

type AuthContext = Context<{ Bindings: { claims: JWTPayload | undefined } }>;

const lifetimeSeconds = 3600;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Connects to the database at the first request. */
export function createAuth({ databaseUrl, keys, apiUrl }: AuthOptions): Auth {
  const accounts = openAccounts(databaseUrl);
  const app = new Hono<{ Bindings: { claims: JWTPayload | undefined } }>().basePath('/auth/v1');

  app.post('/token', async (c) => {
    const body = await readJson(c);
    switch (c.req.query('grant_type')) {
      case 'password': {
        if (!body.email) throw new AuthError(400, 'validation_failed', 'missing email or phone');
        return c.json(await tell(await openSession(accounts.first, String(body.email), String(body.password ?? ''))));
      }
      case 'refresh_token': {
        if (!body.refresh_token)
          return c.json({ error: 'invalid_request', error_description: 'refresh_token required' }, 400);
        return c.json(await tell(await renewSession(accounts.first, String(body.refresh_token))));
      }
      default:
        throw new AuthError(400, 'invalid_credentials', 'unsupported_grant_type');
    }
  });
  app.get('/user', async (c) => c.json((await callerOf(c)).user));
  app.post('/logout', async (c) => {
    const scope = c.req.query('scope') || 'global';
    if (scope !== 'global' && scope !== 'local' && scope !== 'others')
      throw new AuthError(400, 'validation_failed', `Unsupported logout scope "${scope}"`);
    const { user, session } = await callerOf(c);
    await accounts.close(user.id, session, scope);
    return c.body(null, 204);
  });
  app.post('/admin/users', async (c) => {
    requireSecretKey(c);
    return c.json(await accounts.create((await readJson(c)) as unknown as NewUser));
  });
  app.delete('/admin/users/:id', async (c) => {
    requireSecretKey(c);
    await accounts.remove(c.req.param('id'));
    return c.json({});
  });
  app.notFound((c) => c.text('404 page not found', 404));
  app.onError((error, c) => toAuthError(error).response(c.req.raw));

  /** Resolves to the user whom the caller's token names; refuses one whose session is over. */
  async function callerOf(c: AuthContext): Promise<{ user: User; session: string | null }> {
    const { claims } = c.env;
    if (!claims) throw badToken('invalid JWT: unable to parse or verify signature');
    if (!claims.sub) throw badToken('invalid claim: missing sub claim');
    if (!uuid.test(claims.sub)) throw new AuthError(400, 'bad_jwt', 'invalid claim: sub claim must be a UUID');
    const user = await accounts.user(claims.sub);
    if (!user) throw new AuthError(403, 'user_not_found', 'User from sub claim in JWT does not exist');
    const session = typeof claims.session_id === 'string' ? claims.session_id : null;
    if (session && !(await accounts.hasSession(session)))
      throw new AuthError(403, 'session_not_found', 'Session from session_id claim in JWT does not exist');
    return { user, session };
  }

  /** Resolves to the answer to a client that has opened or renewed a session, with a new access token. */
  async function tell({ user, session, refreshToken }: Opened) {
    const now = Math.floor(Date.now() / 1000);
    const { id, aud, role, email, phone, app_metadata, user_metadata, is_anonymous } = user;
    const access_token = await signUserToken(keys, {
      ...{ iss: `${apiUrl}/auth/v1`, sub: id, aud, iat: now, exp: now + lifetimeSeconds },
      ...{ role, email, phone, app_metadata, user_metadata, is_anonymous, session_id: session },
      ...{ aal: 'aal1', amr: [{ method: 'password', timestamp: now }] },
    });
    const expiry = { expires_in: lifetimeSeconds, expires_at: now + lifetimeSeconds };
    return { access_token, token_type: 'bearer', ...expiry, refresh_token: refreshToken, user };
  }

  return {
    handle: (request, claims) => app.fetch(request, { claims }),
    stop: () => accounts.stop(),
  };
}

function requireSecretKey(c: AuthContext): void {
  if (c.env.claims?.role !== 'service_role') throw new AuthError(403, 'not_admin', 'User not allowed');
}

async function readJson(c: AuthContext): Promise<Record<string, unknown>> {
  const body: unknown = await c.req.json().catch(() => undefined);
  if (body === null || typeof body !== 'object')
    throw new AuthError(400, 'bad_json', 'Could not parse request body as JSON');
  return body as Record<string, unknown>;
}
