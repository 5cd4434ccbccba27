-- Supabase since 30 October 2026: what postgres makes in public is granted to no API role. These are the host's own statements:
-- they take what the Data API uses and leave truncate, references, trigger and maintain, and execute for public. So a
-- migration still revokes all, by name, before it grants.

alter default privileges for role postgres in schema public
  revoke select, insert, update, delete on tables from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke execute on functions from anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  revoke usage, select on sequences from anon, authenticated, service_role;
