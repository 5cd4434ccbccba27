// Installing on a database where somebody else lives already.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { expect, test } from 'vitest';
import { createBareDatabase } from '../support/database.ts';

const folder = path.join(import.meta.dirname, '..', '..', 'supabase', 'migrations');

/** Everything of a user's in `public`, with who may do what with it. */
const belongings = async (owner: pg.Client) =>
  (
    await owner.query(
      `select p.oid::regprocedure::text as name, p.proacl::text as rights from pg_proc p where p.proname like '%\\_mine'
       union all
       select c.oid::regclass::text, c.relacl::text from pg_class c where c.relname like '%\\_mine' order by 1`,
    )
  ).rows;

test('installing leaves the user’s own functions and tables their grants, however they are called', async () => {
  const database = await createBareDatabase();
  const owner = await database.connect();
  await owner.query(`
    create function public."millraceX_mine"() returns int language sql security definer as 'select 1';
    create function public."millraceX_open_mine"() returns int language sql as 'select 1';
    create table public."millraceX_table_mine" (id int);
    grant execute on function public."millraceX_mine"() to anon`);
  const before = await belongings(owner);
  expect(before).toHaveLength(3);
  const files = readdirSync(folder).filter((name) => name.endsWith('.sql'));
  for (const file of files.sort()) await owner.query(readFileSync(path.join(folder, file), 'utf8'));
  expect(await belongings(owner)).toEqual(before);
  const anon = await database.connect('anon');
  expect((await anon.query('select public."millraceX_mine"() as answer')).rows).toEqual([{ answer: 1 }]);
  await database.drop();
});
