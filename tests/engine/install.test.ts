// Installing on a database where somebody else lives already.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { expect, test } from 'vitest';
import { createBareDatabase } from '../support/database.ts';
import { presentInstall } from '../support/engine/releases.ts';

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

test('set_up() writes the rows and jobs that a squash has lost, keeps what is there, and twice is once', async () => {
  const database = await createBareDatabase();
  const owner = await database.connect();
  await owner.query(await presentInstall());
  const missing = () => owner.query('select detail from millrace.doctor() where what = $1 and not ok', [own]);
  const own = 'the engine has its own rows';
  const rows = async () =>
    (
      await owner.query(
        `select name || ' ' || value as row from millrace.settings union all select name || ' ' || kind from millrace.alert_rules
         union all select level || ' ' || release from millrace.releases union all select id::text from millrace.check_progress
         union all select jobname || ' ' || schedule from cron.job order by 1`,
      )
    ).rows;
  const installed = await rows();
  expect(installed.length).toBeGreaterThan(20);
  expect((await missing()).rows).toEqual([]);
  expect((await owner.query('select millrace.set_up()')).rows).toEqual([{ set_up: [] }]);

  await owner.query(`
    delete from millrace.settings where true;
    delete from millrace.alert_rules where true;
    delete from millrace.releases where true;
    delete from millrace.check_progress where true;
    select cron.unschedule(jobname) from cron.job`);
  expect((await missing()).rows[0]?.detail).toMatch(
    /setting worker_seconds.* release .* missing: npx millrace connect writes it/,
  );
  await owner.query(`insert into millrace.settings (name, value) values ('retention_days', '7')`);
  const { rows: told } = await owner.query('select millrace.set_up()');
  expect(told[0].set_up).toEqual(
    expect.arrayContaining(['setting batch_bytes', 'the alert rules', 'cron job millrace-sweep']),
  );
  expect(told[0].set_up).not.toContain('setting retention_days');
  expect(await rows()).toEqual(
    installed.map(({ row }) => ({ row: row.replace(/^retention_days .*/, 'retention_days 7') })),
  );
  expect((await missing()).rows).toEqual([]);
  await database.drop();
});
