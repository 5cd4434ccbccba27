-- The extensions of the engine, each created only where its schema does not exist yet

do $$
begin
  if to_regnamespace('net') is null then
    create extension if not exists pg_net with schema extensions;
  end if;
  if to_regnamespace('cron') is null then
    create extension if not exists pg_cron with schema pg_catalog;
  end if;
  if to_regnamespace('vault') is null
     and exists (select from pg_available_extensions where name = 'supabase_vault') then
    -- The extension creates its schema itself, and raises where a schema is named.
    create extension supabase_vault cascade;
  end if;
end
$$;
