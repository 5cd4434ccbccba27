// The faults that an install looks for before it makes anything.
import { expect, test } from 'vitest';
import { createBareDatabase } from '../support/database.ts';
import { presentInstall, snapshot } from '../support/engine/releases.ts';

test('an install names all that is in its way at once, and makes nothing', async () => {
  const database = await createBareDatabase();
  const superuser = await database.connect('supabase_admin');
  await superuser.query('drop extension pg_net cascade; create schema net');
  const owner = await database.connect();
  await owner.query(`
    create schema millrace;
    create table millrace.mine (id int);
    create function public.millrace_claim() returns int language sql as 'select 1';
    create function public.millraces() returns int language sql as 'select 1';
    create view public.millrace_decisions as select 1 as id;
    select cron.schedule('millrace-sweep', '* * * * *', 'select 1')`);
  const before = await snapshot(owner);
  // No older server is at hand, so this one is taken for too old.
  const install = (await presentInstall()).replace('< 150000', '< 990000');
  const refused = await owner.query(install).catch((error) => error);
  expect(refused).toMatchObject({ code: 'MR004', hint: 'Nothing has been made. Mend all of it, then install again.' });
  expect(refused.message).toMatch(
    /^Millrace cannot be installed: this is Postgres \d.*: upgrade it to 15 or newer; the extension pg_net is missing: enable it under Database, Extensions; these names are taken: schema millrace, view millrace_decisions, function millrace_claim\(\), pg_cron job millrace-sweep: rename or drop what is called so$/,
  );
  expect(await snapshot(owner)).toEqual(before);
  await database.drop();
});

test('a second install says that Millrace is there already', async () => {
  const database = await createBareDatabase();
  const owner = await database.connect();
  const install = await presentInstall();
  await owner.query(install);
  const before = await snapshot(owner);
  await expect(owner.query(install)).rejects.toThrow('Millrace is installed already');
  expect(await snapshot(owner)).toEqual(before);
  await database.drop();
});
