// The operators' functions as a page calls them, through PostgREST: who gets what answer, by the token alone.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { acceptedKeySet, createKeys, type Keys, signUserToken } from '../../../local/platform/keys.ts';
import { type Postgrest, startPostgrest } from '../../../local/platform/postgrest.ts';
import { createEngine, type Engine, type Row } from '../../support/engine.ts';
import { failed, Worker } from '../../support/worker.ts';

let engine: Engine;
let keys: Keys;
let api: Postgrest;
let run: number;
let attempt: number;

beforeAll(async () => {
  engine = await createEngine();
  await engine.pipeline([{ name: 'only' }]);
  await engine.queued('only', 2);
  const worker = await Worker.of(engine, 'only');
  const [item] = await worker.take(2);
  if (!item) throw new Error('two were queued');
  ({ run, attempt } = item);
  await worker.report(failed(item, { code: 'gone', message: 'it is gone', detail: 'a secret', permanent: true }));
  await worker.leave();
  keys = await createKeys();
  const dbUrl = engine.database.url.replace('//postgres:', '//authenticator:');
  api = await startPostgrest({ dbUrl, keySet: acceptedKeySet(keys) });
});
afterAll(async () => {
  await api?.stop();
  await engine.expectSound();
  await engine.database.drop();
});
beforeEach(async () => {
  await engine.sql.query('delete from millrace.operators');
  await engine.sql.query(
    `insert into millrace.operators (subject, role, payloads)
     values ('vera', 'viewer', false), ('otto', 'operator', false), ('adam', 'operator', true)`,
  );
});

const user = (sub: string) => signUserToken(keys, { sub });

/** The answer that a function answers to whoever has this token. */
async function call(token: string, name: string, body: Row): Promise<{ status: number; body: Row }> {
  const answer = await fetch(`http://127.0.0.1:${api.port}/rpc/millrace_${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Row };
}

const ask = (token: string, name: string, query: Row = {}) => call(token, name, { p_query: query });
const act = (token: string, verb: string, request: Row = {}) => call(token, 'act', { p_request: { verb, ...request } });

const reads = (): [name: string, query: Row][] => [
  ['overview', {}],
  ['pipeline', { pipeline: 'flow' }],
  ['series', { pipeline: 'flow' }],
  ['runs', {}],
  ['run', { run }],
  ['attempt', { attempt }],
  ['dead_letters', {}],
  ['alerts', {}],
  ['journal', {}],
  ['search', { text: String(run) }],
  ['limits', {}],
  ['settings', {}],
];

const refusal = (status: number, message: string) => ({ status, body: { code: '42501', message } });
const stateOf = () => engine.value('select status from millrace.runs where id = $1', [run]);

test('anon is refused with 401 by each function, and hears no name', async () => {
  for (const [name, query] of [...reads(), ['act', {}] as const]) {
    const answer = name === 'act' ? await act(keys.anonKey, 'retry', { run }) : await ask(keys.anonKey, name, query);
    expect(answer).toMatchObject(refusal(401, `permission denied for function millrace_${name}`));
    expect(JSON.stringify(answer)).not.toMatch(/flow|only|gone/);
  }
});

test('a signed-in user without a row is refused with 403 by each function, and hears no name', async () => {
  const stranger = await user('5d0c7b1e-1111-4222-8333-444455556666');
  for (const [name, query] of reads()) {
    const answer = await ask(stranger, name, query);
    expect(answer).toMatchObject(refusal(403, 'you are no operator here'));
    expect(JSON.stringify(answer)).not.toMatch(/flow|only|gone/);
  }
  for (const verb of ['retry', 'pause', 'nothing']) {
    expect(await act(stranger, verb, { run })).toMatchObject(refusal(403, 'you are no operator here'));
  }
});

test('a viewer reads all and acts on nothing, and payloads are not theirs', async () => {
  const viewer = await user('vera');
  for (const [name, query] of reads()) {
    const answer = await ask(viewer, name, query);
    expect({ name, status: answer.status }).toEqual({ name, status: 200 });
    expect(JSON.stringify(answer)).not.toContain('a secret');
  }
  for (const [verb, request] of [
    ['retry', { run }],
    ['pause', { pipeline: 'flow' }],
  ] as const) {
    expect(await act(viewer, verb, request)).toMatchObject(refusal(403, 'you may read here, but not act'));
  }
  expect(await stateOf()).toBe('failed');
});

test('a series by stage tells of each what it came to in all of the steps', async () => {
  await engine.sweepAll();
  const to = new Date((await engine.now()).getTime() + 60_000).toISOString();
  const { body } = await ask(await user('vera'), 'series', { pipeline: 'flow', to });
  expect(body.stages).toMatchObject({ only: { failed: 1, completed: 0, codes: { gone: 1 } } });
});

const stage = { pipeline: 'flow', stage: 'only' };

test('an operator acts, under the name of their token', async () => {
  const operator = await user('otto');
  const asked = { ...stage, reason: 'first', operator: 'adam' };
  const made = await act(operator, 'pause', asked);
  expect(made).toMatchObject({ status: 200, body: { verb: 'pause' } });
  expect(await ask(operator, 'journal', { verb: 'pause' })).toMatchObject({
    body: {
      entries: [{ journal_entry: made.body.journal_entry, by: 'otto', key: 'user', verb: 'pause', reason: 'first' }],
    },
  });
});

test('an operator who sees payloads reads the details of errors', async () => {
  const admin = await user('adam');
  expect(await ask(admin, 'attempt', { attempt })).toMatchObject({ body: { error: { detail: 'a secret' } } });
  const at = [{ error: { code: 'gone', message: 'it is gone', detail: 'a secret' } }];
  expect(await ask(admin, 'run', { run })).toMatchObject({ body: { at } });
  expect(await ask(admin, 'runs', { runs: [run] })).toMatchObject({ body: { runs: [{ at }] } });
});

test('a secret key sees all, and acts for an operator that it names', async () => {
  const key = keys.serviceRoleKey;
  for (const [name, query] of reads()) expect(await ask(key, name, query)).toMatchObject({ status: 200 });
  expect(await act(key, 'unpause', stage)).toMatchObject({
    status: 400,
    body: { code: 'MR002', message: 'operator is missing, but a secret key must say for whom it acts' },
  });
  const { body } = await act(key, 'unpause', { ...stage, operator: 'runbook' });
  expect(await ask(key, 'journal', { verb: 'unpause' })).toMatchObject({
    body: {
      entries: expect.arrayContaining([
        expect.objectContaining({ journal_entry: body.journal_entry, by: 'runbook', key: 'secret' }),
      ]),
    },
  });
});

test('a right that is taken away or made less counts at the next call of the same token', async () => {
  const operator = await user('otto');
  expect(await act(operator, 'pause', stage)).toMatchObject({ status: 200 });
  await engine.sql.query(`update millrace.operators set role = 'viewer' where subject = 'otto'`);
  expect(await act(operator, 'unpause', stage)).toMatchObject({ status: 403 });
  expect(await ask(operator, 'overview')).toMatchObject({ status: 200 });
  await engine.sql.query(`delete from millrace.operators where subject = 'otto'`);
  for (const [name, query] of reads()) {
    expect(await ask(operator, name, query)).toMatchObject(refusal(403, 'you are no operator here'));
  }
});

test('an operator who loses the right between a preview and its beginning begins nothing', async () => {
  const operator = await user('otto');
  const filter = { pipeline: 'flow', status: 'failed' };
  const { body: bulk } = await act(operator, 'preview', { do: { verb: 'retry' }, filter });
  expect(bulk).toMatchObject({ state: 'previewed' });
  await engine.sql.query(`delete from millrace.operators where subject = 'otto'`);
  expect(await act(operator, 'begin', { bulk: bulk.bulk })).toMatchObject({ status: 403 });
  expect(await stateOf()).toBe('failed');
});

test('no link acts: a verb refuses a GET, which a read answers', async () => {
  const headers = { authorization: `Bearer ${await user('adam')}` };
  const get = (path: string) => fetch(`http://127.0.0.1:${api.port}/rpc/millrace_${path}`, { headers });
  expect((await get('overview')).status).toBe(200);
  const request = encodeURIComponent(JSON.stringify({ verb: 'pause', pipeline: 'flow' }));
  expect((await get(`act?p_request=${request}`)).status).toBe(405);
  expect(await engine.value(`select enabled from millrace.pipelines where name = 'flow'`)).toBe(true);
});

test('a wrong request is answered with 400, the field and the remedy', async () => {
  const operator = await user('otto');
  expect(await ask(operator, 'runs', { limit: 0 })).toEqual({
    status: 400,
    body: {
      code: 'MR002',
      message: 'p_query.limit is 0, but must be a whole number from 1 to 200',
      hint: expect.stringContaining('Correct that field'),
      details: null,
    },
  });
  expect(await act(operator, 'retry', { run: 4711 })).toMatchObject({ status: 400, body: { code: 'MR003' } });
});
