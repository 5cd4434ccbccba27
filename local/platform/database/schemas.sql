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
create extension pgcrypto with schema extensions;
create extension "uuid-ossp" with schema extensions;

create schema graphql_public;
grant usage on schema graphql_public to postgres, anon, authenticated, service_role;

-- What hosted's event trigger issue_pg_cron_access grants to whoever creates pg_cron.
create function extensions.grant_pg_cron_access() returns event_trigger
language plpgsql
set search_path = ''
as $$
begin
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
create event trigger issue_pg_cron_access on ddl_command_end
when tag in ('CREATE EXTENSION')
execute function extensions.grant_pg_cron_access();
