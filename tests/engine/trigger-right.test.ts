// The sentences of README about the right TRIGGER, which no test can take away: whoever has it on an entity table runs code as the engine.
import { expect } from 'vitest';
import { chain, test } from '../support/engine.ts';
import { runStage } from '../support/worker.ts';

test('a role with TRIGGER on an entity table has its code run with the rights of the engine’s owner', async ({
  engine,
}) => {
  await engine.pipeline(chain(['one']));
  const ids = await engine.insert();
  const role = `builder_${process.pid}_${Date.now()}`;
  await engine.sql.query(`
    create role ${role};
    grant ${role} to postgres;
    grant trigger on public.items to ${role};
    create schema theirs authorization ${role};
    create table theirs.seen (who text);
    alter table theirs.seen owner to ${role};
    set role ${role};
    create function theirs.note() returns trigger language plpgsql as
      $$ begin insert into theirs.seen values (current_user); return null; end $$;
    create trigger note after update on public.items for each statement execute function theirs.note();
    reset role`);
  await engine.sql.query(`update public.items set one_status = 'queued' where id = any ($1)`, [ids]);
  await engine.sql.query('delete from theirs.seen');
  await runStage(engine, 'one');
  expect(await engine.rows('select distinct who from theirs.seen')).toEqual([{ who: 'postgres' }]);
  await engine.sql.query(`drop schema theirs cascade; revoke all on public.items from ${role}; drop role ${role}`);
});

test('no role of the Data API has TRIGGER, TRUNCATE or REFERENCES on a table of the examples', async ({ engine }) => {
  const held = await engine.rows(
    `select c.relname, r.rolname, p.name from pg_class c cross join pg_roles r
     cross join (values ('trigger'), ('truncate'), ('references')) p(name)
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'test_clock'
       and r.rolname in ('anon', 'authenticated', 'service_role')
       and has_table_privilege(r.oid, c.oid, p.name)`,
  );
  expect(held).toEqual([]);
});
