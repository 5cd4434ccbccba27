// The function millrace: what it answers at which address, and by which secrets it is woken.
import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { answerConnect } from '../../supabase/functions/_millrace/engine/connect.ts';
import { callerOf, ownWakeSecret, readPlatform } from '../../supabase/functions/_millrace/engine/platform.ts';
import { answerMillrace } from '../../supabase/functions/_millrace/serve-millrace.ts';

const env = {
  SUPABASE_URL: 'http://project.test/',
  SUPABASE_SECRET_KEYS: '{"default": "sb_secret_one", "other": "sb_secret_two"}',
};
const post = (path: string, headers: Record<string, string> = {}) =>
  new Request(`http://project.test/functions/v1/millrace${path}`, { method: 'POST', headers });

describe('addresses', () => {
  const answer = answerMillrace(env, () => {});
  test.each([
    ['/callback', 500, 'misconfigured'],
    ['/poll', 401, 'unauthorized'],
    ['/alerts/', 401, 'unauthorized'],
    ['/metrics', 500, 'misconfigured'],
    ['/health', 500, 'misconfigured'],
    ['/connect', 401, 'unauthorized'],
    ['', 404, 'unknown_route'],
    ['/toString', 404, 'unknown_route'],
  ])('%s is answered %i %s without secrets and settings', async (path, status, code) => {
    const response = await answer(post(path));
    expect({ status: response.status, code: (await response.json()).error.code }).toEqual({ status, code });
  });

  test('an unknown address is told those there are', async () => {
    const { error } = await (await answer(post('/pol'))).json();
    expect(error.message).toContain('/callback, /poll, /alerts, /metrics, /health, /connect');
  });
});

describe('the wake-up secret', () => {
  const hmacOf = (key: string) => createHmac('sha256', key).update('millrace wake-up').digest('base64url');
  const caller = (secret: string, more = {}) =>
    callerOf(post('/poll', { 'x-millrace-wake-secret': secret }), readPlatform({ ...env, ...more }));

  test('is an HMAC of any secret key, and the key itself is none', () => {
    expect([hmacOf('sb_secret_one'), hmacOf('sb_secret_two')].map((secret) => caller(secret))).toEqual([
      'waker',
      'waker',
    ]);
    expect([hmacOf('sb_secret_three'), 'sb_secret_one', ''].map((secret) => caller(secret))).toEqual([
      null,
      null,
      null,
    ]);
  });

  test('is MILLRACE_WAKE_SECRET alone where that is set', () => {
    const more = { MILLRACE_WAKE_SECRET: 'a secret of our own' };
    expect(caller('a secret of our own', more)).toBe('waker');
    expect(caller(hmacOf('sb_secret_one'), more)).toBeNull();
    expect(ownWakeSecret(readPlatform({ ...env, ...more }))).toBe('a secret of our own');
  });
});

describe('connect', () => {
  const connect = (headers: Record<string, string>, answered: { data: unknown; error: { message: string } | null }) => {
    const calls: unknown[] = [];
    const answer = answerConnect(env, () => async (name, args) => {
      calls.push([name, args]);
      return answered as never;
    });
    return answer(post('/connect', headers)).then(async (response) => ({
      status: response.status,
      body: await response.json(),
      calls,
    }));
  };

  test('tells the database the own address and the HMAC of the default key', async () => {
    const { status, body, calls } = await connect({ apikey: 'sb_secret_two' }, { data: { wake_up: 7 }, error: null });
    expect({ status, url: body.project_url, wakeUp: body.wake_up }).toEqual({
      status: 200,
      url: 'http://project.test',
      wakeUp: 7,
    });
    const p_wake_secret = createHmac('sha256', 'sb_secret_one').update('millrace wake-up').digest('base64url');
    expect(calls).toEqual([['millrace_connect', { p_project_url: 'http://project.test', p_wake_secret }]]);
    expect(JSON.stringify(body)).not.toContain(p_wake_secret);
  });

  test('a database without the engine is told apart from a stranger', async () => {
    const missing = await connect({ apikey: 'sb_secret_one' }, { data: null, error: { message: 'no such function' } });
    expect({ status: missing.status, message: missing.body.error.message }).toEqual({
      status: 503,
      message: expect.stringContaining('no such function. Push the migrations first'),
    });
    expect((await connect({ apikey: 'sb_publishable' }, { data: {}, error: null })).status).toBe(401);
  });
});
