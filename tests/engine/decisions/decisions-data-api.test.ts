import { afterAll, beforeAll, expect, it } from 'vitest';
import { acceptedKeySet, createKeys, type Keys, signUserToken } from '../../../local/platform/keys.ts';
import { type Postgrest, startPostgrest } from '../../../local/platform/postgrest.ts';
import { accept, asked, reject, toReview } from '../../support/engine/decisions.ts';
import { createEngine, type Engine } from '../../support/engine.ts';

const sub = '33333333-3333-4333-8333-333333333333';
let engine: Engine;
let keys: Keys;
let api: Postgrest;
let attempt: string;

beforeAll(async () => {
  engine = await createEngine();
  const [id] = await toReview(engine);
  attempt = await asked(engine, id);
  await engine.sql.query(`
    create policy see on public.millrace_decisions for select to authenticated using (true);
    create policy decide on public.millrace_decisions for update to authenticated using (true)`);
  keys = await createKeys();
  const dbUrl = engine.database.url.replace('//postgres:', '//authenticator:');
  api = await startPostgrest({ dbUrl, keySet: acceptedKeySet(keys) });
});
afterAll(async () => {
  await api?.stop();
  await engine.expectSound();
  await engine.database.drop();
});

async function call(path: string, init: RequestInit & { user?: boolean } = {}) {
  const authorization = `Bearer ${init.user === false ? keys.anonKey : await signUserToken(keys, { sub })}`;
  const answer = await fetch(`http://127.0.0.1:${api.port}${path}`, {
    ...init,
    headers: { authorization, 'content-type': 'application/json', ...init.headers },
  });
  const text = await answer.text();
  return { status: answer.status, body: text ? JSON.parse(text) : null };
}

const decide = (body: unknown, user = true) =>
  call('/rpc/millrace_decide', { method: 'POST', body: JSON.stringify(body), user });

it('a refusal reaches the client as 400 with code, message and hint', async () => {
  expect(await decide({ p_attempt: attempt, p_decision: { verdict: 'maybe' } })).toEqual({
    status: 400,
    body: {
      code: 'MR002',
      message: 'decision.verdict is "maybe", but must be one of "accept", "reject"',
      hint: expect.stringContaining('decide again'),
      details: null,
    },
  });
  expect(await decide({ p_attempt: 4711, p_decision: accept })).toMatchObject({ status: 400, body: { code: 'MR003' } });
  expect(await decide({ p_attempt: attempt, p_decision: null })).toMatchObject({
    status: 400,
    body: { code: 'MR002', message: expect.stringContaining('decision is null') },
  });
});

it('a caller without a user is refused with 401', async () => {
  expect(await decide({ p_attempt: attempt, p_decision: accept }, false)).toMatchObject({
    status: 401,
    body: { code: '42501' },
  });
});

it('a user reads the open question, decides it, and hears duplicate or 400 afterwards', async () => {
  expect(await call('/millrace_decisions?closed_at=is.null&select=attempt_id,stage,entity_id')).toEqual({
    status: 200,
    body: [{ attempt_id: Number(attempt), stage: 'review', entity_id: '1' }],
  });
  const made = { p_attempt: Number(attempt), p_decision: reject };
  expect(await decide(made)).toEqual({ status: 200, body: { attempt: Number(attempt), verdict: 'accepted' } });
  expect(await decide(made)).toEqual({ status: 200, body: { attempt: Number(attempt), verdict: 'duplicate' } });
  expect(await decide({ ...made, p_decision: accept })).toMatchObject({ status: 400, body: { code: 'MR004' } });
  expect(await engine.value('select decided_by from public.millrace_decisions')).toBe(sub);
});
