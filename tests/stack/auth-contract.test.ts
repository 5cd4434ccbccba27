// The answers of Supabase Auth to supabase-js where a user signs in by a password.
import { randomUUID } from 'node:crypto';
import { type AuthError, GoTrueClient, type Session } from '@supabase/supabase-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AuthTarget, startAuthTarget } from './auth-target.ts';

let target: AuthTarget;
let admin: GoTrueClient;
const made: string[] = [];
beforeAll(async () => {
  target = await startAuthTarget();
  admin = client(target.secretKey);
});
afterAll(async () => {
  for (const id of made) await admin.admin.deleteUser(id);
  await target.stop();
});

const password = 'correct horse battery staple';

/** A client of Auth as supabase-js makes it, with a key and, where somebody is signed in, a token. */
function client(key = target.publishableKey, token = key): GoTrueClient {
  const headers = { apikey: key, Authorization: `Bearer ${token}` };
  return new GoTrueClient({ url: `${target.url}/auth/v1`, headers, persistSession: false, autoRefreshToken: false });
}

/** A new user with a confirmed address; returns the address. */
async function newUser(email_confirm = true): Promise<string> {
  const email = `${randomUUID()}@example.com`;
  const { data, error } = await admin.admin.createUser({ email, password, email_confirm });
  if (error) throw error;
  made.push(data.user.id);
  return email;
}

async function signedIn(email: string): Promise<{ client: GoTrueClient; session: Session }> {
  const one = client();
  const { data, error } = await one.signInWithPassword({ email, password });
  if (error) throw error;
  return { client: one, session: data.session };
}

const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
const refusal = (error: AuthError | null) => error && { status: error.status, code: error.code, said: error.message };

test('a password opens a session, with a token that says who, until when and how', async () => {
  const email = await newUser();
  const { session } = await signedIn(email.toUpperCase());
  expect(session).toMatchObject({ token_type: 'bearer', refresh_token: expect.stringMatching(/^\S{8,}$/) });
  expect(session.expires_at).toBe(claimsOf(session.access_token).exp);
  expect(session.user).toMatchObject({ email, aud: 'authenticated', role: 'authenticated', is_anonymous: false });
  expect(claimsOf(session.access_token)).toMatchObject({
    sub: session.user.id,
    iss: expect.stringMatching(/\/auth\/v1$/),
    aud: 'authenticated',
    role: 'authenticated',
    email,
    session_id: expect.any(String),
    is_anonymous: false,
    aal: 'aal1',
    amr: [{ method: 'password', timestamp: expect.any(Number) }],
    app_metadata: { provider: 'email', providers: ['email'] },
  });
});

test('a wrong password and an unknown address are refused alike, an address that is not confirmed by name', async () => {
  const refused = async (email: string, tried: string) =>
    refusal((await client().signInWithPassword({ email, password: tried })).error);
  const wrong = { status: 400, code: 'invalid_credentials', said: 'Invalid login credentials' };
  expect(await refused(await newUser(), 'wrong')).toEqual(wrong);
  expect(await refused(`${randomUUID()}@example.com`, password)).toEqual(wrong);
  const unconfirmed = { status: 400, code: 'email_not_confirmed', said: 'Email not confirmed' };
  expect(await refused(await newUser(false), password)).toEqual(unconfirmed);
});

test('a refresh token gives new ones for the same session, also to whoever lost the answer', async () => {
  const { client: one, session } = await signedIn(await newUser());
  const refresh = async (token: string) => (await one.refreshSession({ refresh_token: token })).data.session;
  const next = await refresh(session.refresh_token);
  const again = await refresh(session.refresh_token);
  for (const renewed of [next, again]) {
    expect(renewed?.refresh_token).not.toBe(session.refresh_token);
    expect(claimsOf(renewed?.access_token ?? '').session_id).toBe(claimsOf(session.access_token).session_id);
  }
  expect(await refresh(again?.refresh_token ?? '')).not.toBeNull();
  const { error } = await client().refreshSession({ refresh_token: 'made-up-token' });
  expect(refusal(error)).toEqual({
    status: 400,
    code: 'refresh_token_not_found',
    said: 'Invalid Refresh Token: Refresh Token Not Found',
  });
});

test('a refresh token from before the last one ends the session, since somebody may have stolen it', async () => {
  const { client: one, session } = await signedIn(await newUser());
  const refresh = async (token: string) => (await one.refreshSession({ refresh_token: token })).data.session;
  const next = await refresh(session.refresh_token);
  const last = await refresh(next?.refresh_token ?? '');
  expect(last).not.toBeNull();
  for (const token of [session.refresh_token, last?.refresh_token ?? '']) {
    await target.passReuse();
    const { error } = await client().refreshSession({ refresh_token: token });
    expect(refusal(error)).toMatchObject({ status: 400, code: 'refresh_token_already_used' });
  }
});

test('a token names its user until the session is over, and none other does', async () => {
  const email = await newUser();
  const { client: one, session } = await signedIn(email);
  const userOf = (token: string) => client().getUser(token);
  expect((await userOf(session.access_token)).data.user).toMatchObject({ email, id: session.user.id });
  expect(refusal((await userOf(`${session.access_token}x`)).error)).toMatchObject({ status: 403, code: 'bad_jwt' });
  expect((await one.signOut({ scope: 'local' })).error).toBeNull();
  expect((await userOf(session.access_token)).error?.name).toBe('AuthSessionMissingError');
  const { error } = await client().refreshSession({ refresh_token: session.refresh_token });
  expect(refusal(error)).toMatchObject({ status: 400, code: 'refresh_token_not_found' });
});

test('a sign-out ends this session, the others or all of them', async () => {
  const email = await newUser();
  const isOpen = async ({ session }: { session: Session }) =>
    (await client().getUser(session.access_token)).error === null;
  const [first, second, third] = [await signedIn(email), await signedIn(email), await signedIn(email)];
  await first.client.signOut({ scope: 'local' });
  expect([await isOpen(first), await isOpen(second), await isOpen(third)]).toEqual([false, true, true]);
  await second.client.signOut({ scope: 'others' });
  expect([await isOpen(second), await isOpen(third)]).toEqual([true, false]);
  const fourth = await signedIn(email);
  await second.client.signOut();
  expect([await isOpen(second), await isOpen(fourth)]).toEqual([false, false]);
});

test('an address is taken once, and only a secret key makes users', async () => {
  const email = await newUser();
  expect(refusal((await admin.admin.createUser({ email, password })).error)).toMatchObject({
    status: 422,
    code: 'email_exists',
  });
  const own = client(target.publishableKey, (await signedIn(email)).session.access_token);
  expect(refusal((await own.admin.createUser({ email: `x${email}`, password })).error)).toMatchObject({
    status: 403,
    code: 'not_admin',
  });
});

test('an error comes in the form of the version that is asked for, and without one in the older form', async () => {
  const refused = async (version: Record<string, string>) => {
    const response = await fetch(`${target.url}/auth/v1/token?grant_type=password`, {
      method: 'POST',
      headers: { apikey: target.publishableKey, 'content-type': 'application/json', ...version },
      body: JSON.stringify({ email: 'nobody@example.com', password }),
    });
    return { version: response.headers.get('x-supabase-api-version'), body: await response.json() };
  };
  const said = 'Invalid login credentials';
  expect(await refused({})).toEqual({
    version: null,
    body: { code: 400, error_code: 'invalid_credentials', msg: said },
  });
  expect(await refused({ 'x-supabase-api-version': '2024-01-01' })).toEqual({
    version: '2024-01-01',
    body: { code: 'invalid_credentials', message: said },
  });
});
