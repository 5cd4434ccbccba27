-- The schemas, default rights and contrib extensions of a hosted Supabase project's database. Run once, as the
-- superuser supabase_admin.
-- The default rights are those of before 30 October 2026; new-objects.sql brings them up to date.

grant usage on schema public to anon, authenticated, service_role;

alter default privileges for role postgres in schema public
  grant all on tables to anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on functions to anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on sequences to anon, authenticated, service_role;

create schema extensions;
grant usage on schema extensions to postgres with grant option;
grant usage on schema extensions to anon, authenticated, service_role;
grant create on schema extensions to postgres;
-- The role that creates an extension may drop it: hosted lets postgres do both.
set role postgres;
create extension pgcrypto with schema extensions;
create extension "uuid-ossp" with schema extensions;
create extension pg_stat_statements with schema extensions;
reset role;

create schema graphql;
grant usage on schema graphql to postgres, anon, authenticated, service_role;
grant create on schema graphql to postgres;
create schema graphql_public;
grant usage on schema graphql_public to postgres, anon, authenticated, service_role;
-- Hosted's answer as long as pg_graphql is not created. The stand-in of pg_graphql has no resolver
-- either.
create function graphql_public.graphql(
  "operationName" text default null, query text default null, variables jsonb default null,
  extensions jsonb default null
) returns jsonb
language sql
set search_path = ''
as $$
  select '{"errors": [{"message": "pg_graphql extension is not enabled."}]}'::jsonb
$$;
grant execute on function graphql_public.graphql to postgres, anon, authenticated, service_role;

-- Hosted grants the same to the role that creates pg_cron (its event trigger issue_pg_cron_access),
-- and for foreign data wrappers.
create function extensions.grant_extension_access() returns event_trigger
language plpgsql security definer
set search_path = ''
as $$
declare
  v_wrapper text;
begin
  for v_wrapper in
    select w.fdwname
      from pg_event_trigger_ddl_commands() d
      join pg_depend p on p.refclassid = d.classid and p.refobjid = d.objid and p.deptype = 'e'
      join pg_foreign_data_wrapper w
        on p.classid = 'pg_foreign_data_wrapper'::regclass and w.oid = p.objid
     where d.classid = 'pg_extension'::regclass
  loop
    execute format(
      'grant usage on foreign data wrapper %I to postgres with grant option', v_wrapper);
  end loop;
  if not exists (
    select from pg_event_trigger_ddl_commands() d
      join pg_extension e on e.oid = d.objid and e.extname = 'pg_cron'
     where d.classid = 'pg_extension'::regclass
  ) then
    return;
  end if;
  grant usage on schema cron to postgres with grant option;
  grant all on all functions in schema cron to postgres with grant option;
  grant all on all tables in schema cron to postgres with grant option;
  revoke all on cron.job from postgres;
  grant select on cron.job to postgres with grant option;
  revoke trigger on cron.job_run_details from postgres;
end
$$;
create event trigger issue_extension_access on ddl_command_end
when tag in ('CREATE EXTENSION')
execute function extensions.grant_extension_access();

-- As hosted's two event triggers of these names, the Data API learns of each table, view, function
-- and type that is made, changed or dropped while it runs.
create function extensions.pgrst_ddl_watch() returns event_trigger
language plpgsql
set search_path = ''
as $$
begin
  if exists (
    select from pg_catalog.pg_event_trigger_ddl_commands() d
    where d.schema_name is distinct from 'pg_temp'
  ) then
    notify pgrst, 'reload schema';
  end if;
end
$$;
create event trigger pgrst_ddl_watch on ddl_command_end
when tag in (
  'CREATE TABLE', 'CREATE TABLE AS', 'ALTER TABLE', 'CREATE VIEW', 'ALTER VIEW',
  'CREATE MATERIALIZED VIEW', 'ALTER MATERIALIZED VIEW', 'CREATE FUNCTION', 'ALTER FUNCTION',
  'CREATE TYPE', 'ALTER TYPE', 'CREATE SCHEMA', 'ALTER SCHEMA')
execute function extensions.pgrst_ddl_watch();
create function extensions.pgrst_drop_watch() returns event_trigger
language plpgsql
set search_path = ''
as $$
begin
  if exists (
    select from pg_catalog.pg_event_trigger_dropped_objects() d
    where not d.is_temporary
      and d.object_type in (
        'table', 'table column', 'view', 'materialized view', 'function', 'type', 'schema')
  ) then
    notify pgrst, 'reload schema';
  end if;
end
$$;
create event trigger pgrst_drop_watch on sql_drop
execute function extensions.pgrst_drop_watch();

-- Hosted runs some statements of postgres with a superuser's rights, such as those of event
-- triggers. Here hosted-rights.ts puts these two functions around each such statement of a
-- migration, within its transaction.
create function extensions.lend_superuser() returns void
language sql security definer
set search_path = ''
as 'alter role postgres superuser';
create function extensions.return_superuser() returns void
language sql security definer
set search_path = ''
as 'alter role postgres nosuperuser';
revoke execute on function extensions.lend_superuser, extensions.return_superuser from public;
grant execute on function extensions.lend_superuser, extensions.return_superuser to postgres;
