import { describe, expect, test, vi } from 'vitest';
import { modelSettings } from '../../supabase/functions/_millrace/model/model-settings.ts';
import { answerRequests } from '../../supabase/functions/_millrace/serve-stage.ts';
import type { Env } from '../../supabase/functions/_millrace/settings.ts';
import type { DrainEnd } from '../../supabase/functions/_millrace/worker/drain.ts';
import { FakeEngine, makeItem } from '../support/runtime/fake-engine.ts';
import { makeStage } from '../support/runtime/make-drain.ts';

const platform: Env = { SUPABASE_URL: 'http://127.0.0.1:9', SUPABASE_SECRET_KEYS: '{"default":"sb_secret_a"}' };

function makeFunction(env: Env = platform, stageChanges: object = {}) {
  const fake = new FakeEngine();
  fake.queue = [makeItem(1)];
  const drains: Promise<DrainEnd>[] = [];
  const stage = { ...makeStage((entity) => ({ done: entity.id })), ...stageChanges };
  const answer = answerRequests(
    stage,
    env,
    (work) => drains.push(work as Promise<DrainEnd>),
    () => fake.rpc,
  );
  const call = (init: RequestInit = {}, path = '') =>
    answer(
      new Request(`http://f.test/test-work${path}`, { method: 'POST', headers: { apikey: 'sb_secret_a' }, ...init }),
    );
  return { fake, drains, call };
}

describe('a wake-up', () => {
  test('is answered 202 before the work is done, which goes on in the background', async () => {
    const { fake, drains, call } = makeFunction();
    const answer = await call({ body: '{"pipeline":"test","stage":"work"}' });
    expect(answer.status).toBe(202);
    expect(fake.saved.size).toBe(0);
    expect(await Promise.all(drains)).toEqual(['empty']);
    expect(fake.saved.size).toBe(1);
  });

  test.each<Record<string, string>>([
    {},
    { apikey: 'sb_secret_b' },
    { apikey: 'sb_publishable_a' },
    { authorization: 'Bearer sb_secret_a' },
  ])('without the secret key in apikey is refused: %j', async (headers) => {
    const { fake, drains, call } = makeFunction();
    expect((await call({ headers })).status).toBe(401);
    expect(drains).toHaveLength(0);
    expect(fake.calls).toHaveLength(0);
  });

  test('woken with the wake-up secret is answered, and that secret opens nothing else', async () => {
    const { drains, call } = makeFunction({ ...platform, MILLRACE_WAKE_SECRET: 'wake' });
    const headers = { 'x-millrace-wake-secret': 'wake' };
    expect((await call({ headers })).status).toBe(202);
    expect((await call({ method: 'GET', headers }, '?health')).status).toBe(401);
    expect((await call({ headers }, '?health')).status).toBe(401);
    expect((await call({ headers, body: '{}' }, '?callback=1')).status).toBe(401);
    expect((await call({ headers, body: '{"jobs":[]}' })).status).toBe(401);
    expect((await call({ headers: { apikey: 'wake' } })).status).toBe(401);
    expect((await call()).status).toBe(202);
    expect(await Promise.all(drains)).toHaveLength(2);
  });

  test.each([{}, { MILLRACE_WAKE_SECRET: '' }, { MILLRACE_WAKE_SECRET: 'wake' }])(
    'woken with a wrong wake-up secret is refused with the remedy: %j',
    async (env) => {
      const { drains, call } = makeFunction({ ...platform, ...env });
      for (const shown of ['', 'rin', 'ringring', 'sb_secret_a', 'undefined']) {
        const answer = await call({ headers: { 'x-millrace-wake-secret': shown } });
        expect(answer.status).toBe(401);
        expect((await answer.json()).error.message).toContain(
          'POST to the function millrace/connect with a secret key',
        );
      }
      expect(drains).toHaveLength(0);
    },
  );

  test('woken with the legacy service-role key works where only that is known, and beside the new keys', async () => {
    const headers = { apikey: 'ey.legacy' };
    const only = makeFunction({ SUPABASE_URL: 'http://127.0.0.1:9', SUPABASE_SERVICE_ROLE_KEY: 'ey.legacy' });
    expect((await only.call({ headers })).status).toBe(202);
    const both = makeFunction({ ...platform, SUPABASE_SERVICE_ROLE_KEY: 'ey.legacy' });
    expect((await both.call({ headers })).status).toBe(202);
    await Promise.all([...only.drains, ...both.drains]);
  });

  test.each([
    [
      '{"pipeline":"test","stage":"other"}',
      'stage other of pipeline test, but its code serves stage work of pipeline test',
    ],
    [
      '{"pipeline":"else","stage":"work"}',
      'stage work of pipeline else, but its code serves stage work of pipeline test',
    ],
  ])('woken for another stage is refused with what to correct: %s', async (body, message) => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { drains, call } = makeFunction();
    const answer = await call({ body });
    expect(answer.status).toBe(409);
    expect((await answer.json()).error).toMatchObject({
      code: 'wrong_stage',
      message: expect.stringContaining(message),
    });
    expect(error).toHaveBeenCalledWith(expect.stringContaining(message));
    expect(drains).toHaveLength(0);
  });

  test.each(['', 'wake', 'null', '[1]', '{"stage":"work"}'])(
    'whose body names no other stage is answered all the same: %j',
    async (body) => {
      const { drains, call } = makeFunction();
      expect((await call({ body })).status).toBe(202);
      await Promise.all(drains);
    },
  );

  test.each<unknown>([5, [{ attempt: 1 }]])(
    'a question after jobs that cannot be read is no wake: %j',
    async (jobs) => {
      const { drains, call } = makeFunction();
      const answer = await call({ body: JSON.stringify({ pipeline: 'test', stage: 'work', jobs }) });
      expect(answer.status).toBe(400);
      expect((await answer.json()).error.message).toMatch(/^jobs.*same version/);
      expect(drains).toHaveLength(0);
    },
  );

  test('woken with GET is refused', async () => {
    const { drains, call } = makeFunction();
    expect((await call({ method: 'GET' })).status).toBe(405);
    expect(drains).toHaveLength(0);
  });

  test('each drain is a worker of its own on the same host', async () => {
    const { fake, drains, call } = makeFunction();
    await call();
    await call();
    await Promise.all(drains);
    const claims = fake.callsOf('millrace_claim').filter((args) => args.p_seq === 1);
    expect(new Set(claims.map((args) => args.p_worker)).size).toBe(2);
    expect(new Set(claims.map((args) => args.p_host)).size).toBe(1);
  });
});

describe('a wrong setting', () => {
  const needsModel = { settings: [modelSettings] };

  test('is named in the answer, and each attempt is kept for a retry with that reason', async () => {
    const { fake, drains, call } = makeFunction(platform, needsModel);
    const answer = await call();
    expect(answer.status).toBe(500);
    expect((await answer.json()).error.message).toContain('LLM_URL is not set');
    await Promise.all(drains);
    expect(fake.saved.get(1)).toMatchObject({ outcome: 'failed', error: { code: 'misconfigured', permanent: false } });
  });

  test('of the worker itself loses nothing either', async () => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { fake, drains, call } = makeFunction({ ...platform, QUEUE_BATCH_SIZE: 'many' });
    expect((await call()).status).toBe(500);
    // Said at the wake-up already, where whoever reads the function's log looks first.
    expect(error).toHaveBeenCalledWith(expect.stringContaining('QUEUE_BATCH_SIZE must be'));
    await Promise.all(drains);
    expect(fake.saved.get(1)).toMatchObject({ error: { code: 'misconfigured' } });
    expect(fake.saved.get(1)).toHaveProperty('error.message', expect.stringContaining('QUEUE_BATCH_SIZE'));
  });

  test('is told by ?health, which starts nothing', async () => {
    const bad = makeFunction(platform, needsModel);
    const answer = await bad.call({ method: 'GET' }, '?health');
    expect(answer.status).toBe(500);
    expect((await answer.json()).error).toMatchObject({ code: 'misconfigured' });
    expect(bad.drains).toHaveLength(0);
    const good = makeFunction();
    expect((await good.call({ method: 'GET' }, '?health')).status).toBe(200);
    expect((await good.call({ method: 'GET', headers: {} }, '?health')).status).toBe(401);
  });

  test('without the platform’s own keys nothing can be done but to say so', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const { drains, call } = makeFunction({ SUPABASE_URL: 'http://127.0.0.1:9' });
    const answer = await call();
    expect(answer.status).toBe(500);
    expect((await answer.json()).error.message).toContain('SUPABASE_SECRET_KEYS');
    expect(drains).toHaveLength(0);
  });
});
