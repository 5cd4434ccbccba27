import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { publicSurface } from '../../tools/check/public-surface.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let owner: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = await database.connect();
});
afterAll(() => database.drop());

// Names of what breaks a rule; `of` are the engine's functions.
const of = `(select p.*, p.oid::regprocedure::text as name from pg_proc p
  where p.pronamespace = 'millrace'::regnamespace or (p.pronamespace = 'public'::regnamespace and p.proname like 'millrace\\_%')) f`;
const names = async (query: string) => (await owner.query<{ name: string }>(query)).rows.map((row) => row.name);

it('the rules below look at all functions of the engine', async () => {
  expect((await names(`select f.name from ${of}`)).length).toBeGreaterThan(70);
});

it('every function sets a search_path in which the session’s temporary schema comes last', async () => {
  expect(
    await names(
      `select f.name from ${of} where not coalesce(f.proconfig @> array['search_path=pg_catalog, pg_temp'], false)`,
    ),
    'Supabase’s Security Advisor warns of any without',
  ).toEqual([]);
});

it('every function that people call has a comment, and so has every table and view', async () => {
  const nameOf = "n.nspname || '.' || p.proname";
  const called = await owner.query<{ name: string; comment: string | null }>(
    `select ${nameOf} as name, obj_description(p.oid, 'pg_proc') as comment
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where ${nameOf} = any ($1) or ${nameOf} like 'public.millrace\\_%'`,
    [publicSurface],
  );
  expect(called.rows.filter(({ comment }) => comment === null)).toEqual([]);
  expect(called.rows.map(({ name }) => name)).toEqual(expect.arrayContaining(publicSurface));
  expect(
    await names(`select c.oid::regclass::text as name from pg_class c
      where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'v') and obj_description(c.oid, 'pg_class') is null`),
  ).toEqual([]);
});

it('no function can be executed by public', async () => {
  expect(
    await names(`select f.name from ${of}
      where f.proacl is null or exists (select from aclexplode(f.proacl) a where a.grantee = 0)`),
  ).toEqual([]);
});

it('a function that runs with its owner’s rights is a public one or a trigger; deciding and progress run with the caller’s', async () => {
  expect(
    await names(`select f.name from ${of}
      where f.name not in ('millrace_decide(bigint,jsonb)', 'millrace_progress(jsonb,uuid)')
        and f.prosecdef <> (f.pronamespace = 'public'::regnamespace or (f.prorettype = 'trigger'::regtype))`),
  ).toEqual([]);
});

it('all of the engine belongs to postgres, and every constraint has a name of its own', async () => {
  expect(await names(`select f.name from ${of} where f.proowner <> 'postgres'::regrole`)).toEqual([]);
  expect(
    await names(`select c.conname as name from pg_constraint c
      where c.connamespace = 'millrace'::regnamespace and c.contype in ('c', 'f', 'u') and c.conname ~ '_(check|fkey|key)[0-9]+$'`),
  ).toEqual([]);
});

it('views in public run with the rights of who asks', async () => {
  expect(
    await names(`select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'v'
      and not coalesce(c.reloptions @> array['security_invoker=true'], false)`),
  ).toEqual([]);
});

it('every table in public has row-level security', async () => {
  expect(
    await names(`select c.relname as name from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and not c.relrowsecurity`),
  ).toEqual([]);
});

it('every table, the examples’ as well, has a primary key or a replica identity, or a publication stops updates of it', async () => {
  expect(
    await names(`select c.oid::regclass::text as name from pg_class c
      where c.relnamespace in ('millrace'::regnamespace, 'public'::regnamespace) and c.relkind in ('r', 'p')
        and c.relreplident not in ('f', 'i')
        and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`),
  ).toEqual([]);
});
