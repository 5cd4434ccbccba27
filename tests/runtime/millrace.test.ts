// The function millrace: what it answers at which address, and by which secrets it is woken.
import { createHmac } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { answerConnect, registering } from '../../supabase/functions/_millrace/engine/connect.ts';
import { callerOf, ownWakeSecret, readPlatform } from '../../supabase/functions/_millrace/engine/platform.ts';
import { flushLog } from '../../supabase/functions/_millrace/log.ts';
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
    ['/traces', 401, 'unauthorized'],
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
    expect(error.message).toContain('/callback, /poll, /alerts, /traces, /metrics, /health, /connect');
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

  test('is an HMAC of the legacy key too, which proves nobody the project beside secret keys', () => {
    const platform = readPlatform({ ...env, SUPABASE_SERVICE_ROLE_KEY: 'ey.legacy' });
    const called = (headers: Record<string, string>) => callerOf(post('/poll', headers), platform);
    expect(platform.secretKey).toBe('sb_secret_one');
    expect(called({ 'x-millrace-wake-secret': hmacOf('ey.legacy') })).toBe('waker');
    expect(called({ apikey: 'ey.legacy' })).toBe('waker');
    expect(ownWakeSecret(platform)).toBe(hmacOf('sb_secret_one'));
    const alone = readPlatform({ SUPABASE_URL: 'http://project.test', SUPABASE_SERVICE_ROLE_KEY: 'ey.legacy' });
    expect(callerOf(post('/poll', { apikey: 'ey.legacy' }), alone)).toBe('project');
    const listed = { SUPABASE_SECRET_KEYS: '{"default": "ey.legacy", "cron": "sb_secret_cron"}' };
    const both = readPlatform({ ...env, ...listed, SUPABASE_SERVICE_ROLE_KEY: 'ey.legacy' });
    expect(['ey.legacy', 'sb_secret_cron'].map((apikey) => callerOf(post('/poll', { apikey }), both))).toEqual([
      'project',
      'project',
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

  test('a holder of a secret key may name the address at which the database reaches the functions', async () => {
    const calls: unknown[] = [];
    const answer = answerConnect(env, () => async (_, args) => {
      calls.push(args.p_project_url);
      return { data: { wake_up: 7 }, error: null, status: 200 };
    });
    const ask = (body: string, apikey = 'sb_secret_one') =>
      answer(new Request('http://project.test/connect', { method: 'POST', headers: { apikey }, body }));
    expect(await (await ask('{"project_url": "http://api-gw:8000"}')).json()).toMatchObject({
      project_url: 'http://api-gw:8000',
    });
    expect((await ask('{"type": "run.completed"}')).status).toBe(200);
    expect((await ask('{"project_url": "ftp://api-gw"}')).status).toBe(400);
    expect((await ask('{"project_url": "http://evil.test"}', 'sb_publishable')).status).toBe(401);
    expect(calls).toEqual(['http://api-gw:8000', 'http://project.test']);
  });
});

describe('the first request of an isolate', () => {
  const p_wake_secret = createHmac('sha256', 'sb_secret_one').update('millrace wake-up').digest('base64url');
  const truth = { p_project_url: 'http://project.test', p_wake_secret, p_once: true };
  /** A function over a database that gives these answers, one a call. */
  function isolate(answers: (string | null)[]) {
    const calls: unknown[] = [];
    const working: Promise<void>[] = [];
    const answer = registering(
      answerMillrace(env, () => {}),
      env,
      (work) => working.push(work),
      () => async (name, args) => {
        calls.push([name, args]);
        const message = answers.shift();
        if (message) return { data: null, error: { message }, status: 503 };
        return { data: null, error: null, status: 200 };
      },
    );
    return {
      calls,
      answer: async (request: Request) => [(await answer(request)).status, await Promise.all(working)][0],
    };
  }

  test('of a stranger too, connects a database without an address, once, and with nothing of the request', async () => {
    const { calls, answer } = isolate([null]);
    const headers = { host: 'evil.test', 'x-forwarded-host': 'evil.test', apikey: 'sb_publishable' };
    const body = JSON.stringify({ project_url: 'http://evil.test' });
    const ask = () => new Request('http://evil.test/functions/v1/millrace/connect', { method: 'POST', headers, body });
    expect([await answer(ask()), await answer(ask()), await answer(new Request('http://evil.test/'))]).toEqual([
      401, 401, 404,
    ]);
    expect(calls).toEqual([['millrace_connect', truth]]);
  });

  test('from the database asks nothing, since it has an address', async () => {
    const { calls, answer } = isolate([]);
    await answer(post('/poll', { 'x-millrace-wake-secret': p_wake_secret }));
    await answer(post('/poll', { apikey: 'sb_secret_one', 'x-millrace-level': '1' }));
    expect(calls).toEqual([]);
  });

  test('is answered though the database cannot be asked, which is tried again a minute later', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    // Lines of other tests in this process leave the window of the log's bound.
    vi.setSystemTime(Date.now() + 60_000);
    flushLog();
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    try {
      const { calls, answer } = isolate(['no such function', null]);
      expect(await answer(post('/connect'))).toBe(401);
      vi.setSystemTime(Date.now() + 59_000);
      await answer(post('/connect'));
      expect(calls).toHaveLength(1);
      vi.setSystemTime(Date.now() + 1_000);
      await answer(post('/connect'));
      expect(calls).toHaveLength(2);
      expect(warn).toHaveBeenCalledTimes(1);
    } finally {
      vi.useRealTimers();
    }
  });
});
