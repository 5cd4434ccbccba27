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
