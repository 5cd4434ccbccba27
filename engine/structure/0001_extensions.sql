-- The extensions of the engine.
--
-- Millrace needs three parts of a Supabase project: pg_net (HTTP from the database, the doorbell),
-- pg_cron (the sweep) and Vault (the project's URL and secret key). All three exist on hosted
-- Supabase and under `supabase start`. Each is created only where its schema is not there yet, so
-- that a stack which brings its own copy of the same surface can run the same migrations.

do $$
begin
  if to_regnamespace('net') is null then
    create extension if not exists pg_net with schema extensions;
  end if;
  if to_regnamespace('cron') is null then
    create extension if not exists pg_cron with schema pg_catalog;
  end if;
  -- Vault is optional: without it millrace.settings holds the same values.
  if to_regnamespace('vault') is null
     and exists (
       select from pg_available_extensions where name = 'supabase_vault') then
    -- It makes its schema itself: `with schema vault` asks for one that is there already, and
    -- always raises.
    create extension supabase_vault cascade;
  end if;
end
$$;
