// Functions and database of releases that do not fit: who says so, where it is seen, and that it costs no attempt.
import { PostgrestClient } from '@supabase/postgrest-js';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { acceptedKeySet, createKeys, type Keys } from '../../local/platform/keys.ts';
import { type Postgrest, startPostgrest } from '../../local/platform/postgrest.ts';
import {
  ContractRefused,
  createEngine as createClient,
  type Rpc,
} from '../../supabase/functions/_millrace/engine/engine-client.ts';
import { CONTRACT } from '../../supabase/functions/_millrace/engine/platform.ts';
import { answerRequests } from '../../supabase/functions/_millrace/serve-stage.ts';
import { chain, createEngine, type Engine } from '../support/engine.ts';
import { keepLog, makeStage } from '../support/runtime/make-drain.ts';

let engine: Engine;
let keys: Keys;
let api: Postgrest;

beforeAll(async () => {
  engine = await createEngine();
  await engine.pipeline(chain(['one', 'two']));
  keys = await createKeys();
  const dbUrl = engine.database.url.replace('//postgres:', '//authenticator:');
  api = await startPostgrest({ dbUrl, keySet: acceptedKeySet(keys) });
});
beforeEach(() => engine.sql.query('delete from millrace.log'));
afterAll(async () => {
  await api?.stop();
  await engine.expectSound();
  await engine.database.drop();
});

/** Has the engine be of level 7 and speak these contracts, the newest first. */
const speak = (contracts: number[]) =>
  engine.sql.query(`
    create or replace function millrace.contracts() returns text[]
    language plpgsql stable set search_path = pg_catalog, pg_temp
    as $$ begin return array[${contracts}]::text[]; end $$;
    create or replace function millrace.engine(out level int, out release text, out contracts int[])
    language plpgsql stable set search_path = pg_catalog, pg_temp
    as $$ begin level := 7; release := '0.7.0'; contracts := millrace.contracts(); end $$`);

const rpcOf = (contract?: string): Rpc => {
  const headers = { Authorization: `Bearer ${keys.serviceRoleKey}` };
  const client = new PostgrestClient(`http://127.0.0.1:${api.port}`, {
    headers: contract === undefined ? headers : { ...headers, 'x-millrace-contract': contract },
  });
  return (name, args, signal) => client.rpc(name, args).abortSignal(signal);
};
const ask = (name: string, args: Record<string, unknown>, contract?: string) =>
  rpcOf(contract)(name, args, AbortSignal.timeout(10_000));

const amiss = async () =>
  (await engine.rows<{ detail: string }>('select detail from millrace.doctor() where not ok')).map(
    ({ detail }) => detail,
  );
const claim = (worker: string) => ({
  p_pipeline: 'flow',
  p_stage: 'one',
  p_worker: worker,
  p_host: '00000000-0000-4000-8000-000000000001',
  p_seq: 1,
  p_limit: 1,
});

test('the engine speaks the contract of the runtime, as its newest', async () => {
  const contracts = await engine.value<number[]>('select e.contracts from millrace.engine() e');
  expect(contracts[0]).toBe(CONTRACT);
  expect([[CONTRACT], [CONTRACT, CONTRACT - 1]]).toContainEqual(contracts);
});

test('a call that speaks neither the contract nor the one before is answered 426, and doctor() tells', async () => {
  await speak([3, 2]);
  const [id] = await engine.queued('one');
  for (const [contract, remedy] of [
    ['1', 'Deploy the functions of release 0.7.0 (supabase functions deploy).'],
    ['4', 'Upgrade the database to the release of these functions: apply its migrations (supabase db push).'],
    ['x', 'Deploy the functions of release 0.7.0 (supabase functions deploy).'],
  ] as const) {
    await engine.sql.query('delete from millrace.log');
    const message = `these functions speak contract ${contract}, and the engine 3 and 2 (level 7, release 0.7.0)`;
    expect(await ask('millrace_claim', claim('00000000-0000-4000-8000-000000000011'), contract)).toMatchObject({
      status: 426,
      data: null,
      error: { code: 'PT426', message, hint: remedy, details: null },
    });
    expect((await amiss()).join()).toContain(`${message}: ${remedy}`);
  }
  expect(await engine.attempts(id)).toEqual(['one 1 queued']);
  expect(await engine.rows('select * from millrace.workers')).toEqual([]);
  await engine.sql.query('delete from millrace.log');
  for (const contract of ['2', '3', undefined]) {
    const answer = await ask('millrace_poll', { p_limit: 1 }, contract);
    expect(answer).toMatchObject({ status: 200, data: { jobs: [] } });
  }
  expect((await amiss()).join()).not.toContain('contract');
});

test('every function that the runtime calls asks for the contract first', async () => {
  await speak([3, 2]);
  const calls = await engine.rows<{ name: string; args: string[] }>(
    `select p.proname as name, coalesce(p.proargnames, '{}') as args from pg_proc p
     where p.pronamespace = 'public'::regnamespace and p.proname ^@ 'millrace_' and has_function_privilege('service_role', p.oid, 'execute')
       and not has_function_privilege('authenticated', p.oid, 'execute') order by 1`,
  );
  expect(calls.length).toBeGreaterThan(14);
  for (const { name, args } of calls) {
    const nothing = Object.fromEntries(args.map((arg) => [arg, null]));
    expect({ name, ...(await ask(name, nothing, '1')) }).toMatchObject({ name, status: 426 });
  }
});

test('the runtime takes 426 for the end: it does not try again', async () => {
  await speak([3, 2]);
  let calls = 0;
  const rpc: Rpc = (...call) => {
    calls += 1;
    return rpcOf('1')(...call);
  };
  const client = createClient({ rpc, retryUntil: () => Date.now() + 5_000, log: keepLog() });
  await expect(client.poll(1)).rejects.toThrow(ContractRefused);
  await expect(client.poll(1)).rejects.toThrow(/426 these functions speak contract 1, .* — Deploy the functions/);
  expect(calls).toBe(2);
});

test('a wake-up tells level and contracts; a function of another answers 409, which doctor() shows', async () => {
  await speak([4, 3]);
  await engine.configureWakeUps();
  await engine.advance('3 seconds');
  const [id] = await engine.queued('one');
  const [wake] = await engine.wakes();
  expect(wake?.headers).toMatchObject({ 'x-millrace-level': '7', 'x-millrace-contracts': '4,3' });
  const work: Promise<unknown>[] = [];
  const platform = { SUPABASE_URL: 'http://127.0.0.1:9', SUPABASE_SECRET_KEYS: '{"default":"sb_secret_a"}' };
  const stage = makeStage(() => ({}));
  const serve = answerRequests(stage, { ...platform, MILLRACE_WAKE_SECRET: 'wake_secret_test' }, (one) =>
    work.push(one),
  );
  const post = (headers: Record<string, string>) =>
    serve(new Request('http://f.test/flow-one', { method: 'POST', headers }));
  const answer = await post(wake?.headers as Record<string, string>);
  const text = await answer.text();
  expect(answer.status).toBe(409);
  expect(work).toEqual([]);
  const message =
    `This function speaks contract ${CONTRACT}, and the engine that woke it 4 and 3 (level 7): ` +
    'deploy the functions of the database’s release (supabase functions deploy).';
  expect(JSON.parse(text)).toEqual({ error: { code: 'contract_refused', message } });
  const older = await post({ ...(wake?.headers as Record<string, string>), 'x-millrace-contracts': '0' });
  expect([older.status, await older.text()]).toEqual([409, expect.stringContaining('upgrade the database')]);

  const owner = await engine.database.connect('supabase_admin');
  await owner.query(
    `insert into net._http_response (id, status_code, created, content) select id, 409, now(), $1 from net.http_request_queue`,
    [text],
  );
  expect((await amiss()).join()).toContain(`409: ${message.replace(/\.$/, '')}`);
  expect(await engine.attempts(id)).toEqual(['one 1 queued']);
});
