// Which calls of the Data API the rule of safeupdate refuses, and which SQL `npm run check` finds: by the stand-in's gateway and the
// check alone, or also by the extension itself, where the sessions of the server in PGURL load it, such as
// postgresql://…/postgres?options=-csession_preload_libraries%3Dsafeupdate of a superuser.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forwardRest } from '../../local/platform/gateway/forward-rest.ts';
import { startPostgrest } from '../../local/platform/postgrest.ts';
import { unsafeUpdates } from '../../tools/check/safe-updates.ts';
import { createBareDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase | undefined;
let sql: pg.Client;
let isReal = false;
let api: string;
const endings: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  if (process.env.PGURL) {
    sql = new pg.Client({ connectionString: process.env.PGURL });
    await sql.connect();
    isReal = (await sql.query(`select current_setting('safeupdate.enabled', true) as state`)).rows[0].state === 'on';
    if (!isReal) await sql.end();
  }
  if (!isReal) {
    database = await createBareDatabase();
    sql = await database.connect();
  }
  await sql.query(`
    create table public.safe_things (id int primary key, name text, data jsonb, "a.b" int);
    create table public.safe_parts (id int primary key, thing int references public.safe_things);
    grant all on public.safe_things, public.safe_parts to anon`);
  const dbUrl = isReal ? (process.env.PGURL as string) : (database as TestDatabase).url;
  const postgrest = await startPostgrest({ dbUrl, keySet: { keys: [] } });
  endings.push(postgrest.stop);
  api = `http://127.0.0.1:${postgrest.port}`;
  if (isReal) return;
  const gateway = http.createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://gateway');
    forwardRest(postgrest.port, url, request.headers, request, response);
  });
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  endings.push(async () => gateway.close());
  api = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}/rest/v1`;
});
afterAll(async () => {
  for (const end of endings.toReversed()) await end();
  if (isReal) await sql.query('drop table public.safe_parts, public.safe_things');
  await sql.end();
  await database?.drop();
});

async function call(method: string, path: string): Promise<{ status: number; body: unknown }> {
  const body = method === 'PATCH' ? '{"name":"x"}' : null;
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${api}/${path}`, { method, body, headers });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? '' : JSON.parse(text) };
}

describe('a PATCH or a DELETE of all rows is refused as safeupdate refuses it', () => {
  test.each(['', '?select=id', '?order=id', '?on_conflict=id', '?id', '?safe_parts.id=eq.1&select=*,safe_parts(*)'])(
    '%s',
    async (query) => {
      for (const [method, statement] of Object.entries({ PATCH: 'UPDATE', DELETE: 'DELETE' })) {
        expect(await call(method, `safe_things${query}`)).toEqual({
          status: 400,
          body: { code: '21000', details: null, hint: null, message: `${statement} requires a WHERE clause` },
        });
      }
    },
  );
});

describe('one that chooses rows passes', () => {
  test.each([
    '?id=eq.1',
    '?or=(id.eq.1,id.eq.2)',
    '?not.and=(id.eq.1,name.eq.a)',
    '?data->>a=eq.1',
    '?data->>%22a.b%22=eq.1',
    '?%22a.b%22=eq.1',
    '?limit=1&order=id',
    '?offset=1&order=id',
  ])('%s', async (query) => {
    for (const method of ['PATCH', 'DELETE']) {
      expect(await call(method, `safe_things${query}`)).toEqual({ status: 204, body: '' });
    }
  });

  test('and what PostgREST refuses itself keeps its own answer', async () => {
    const unordered = await call('PATCH', 'safe_things?limit=1');
    expect(unordered).toMatchObject({ status: 400, body: { code: 'PGRST109' } });
    expect(await call('DELETE', 'rpc/safe_things')).toMatchObject({ status: 405, body: { code: 'PGRST101' } });
  });
});

describe('the check finds what the extension refuses, and nothing else', () => {
  test.each([
    ['delete from public.safe_things', true],
    ['update public.safe_things set id = 1 from public.safe_parts p', true],
    ['with d as (delete from public.safe_things returning id) select id from d where id > 1', true],
    ['with w as (select 1 where true) update public.safe_things set id = 1', true],
    ['update public.safe_things set id = 1 where true', false],
    ['insert into public.safe_things values (1) on conflict (id) do update set name = $$x$$', false],
    ['merge into public.safe_things using public.safe_parts on true when matched then delete', false],
    ['do $$ begin delete from public.safe_things; end $$', true],
    ["do $$ declare t text := 'public.safe_things'; begin execute 'update ' || t || ' set id = 1'; end $$", true],
    ["do $$ begin execute format('delete from public.%I', 'safe_things'); end $$", true],
    ['do $$ begin if false then delete from public.safe_things; end if; end $$', true],
    ["do $$ begin execute 'lock public.safe_parts; delete from public.safe_things'; end $$", true],
  ])('%s', async (statement, isUnsafe) => {
    expect((await unsafeUpdates(statement)).length > 0).toBe(isUnsafe);
    // A statement that is not reached is unseen by the extension.
    if (!isReal || statement.includes('if false')) return;
    await sql.query('begin');
    const refused = await sql.query(statement).then(
      () => false,
      ({ code, message }) => code === '21000' && /requires a WHERE clause/.test(message),
    );
    await sql.query('rollback');
    expect(refused).toBe(isUnsafe);
  });
});
