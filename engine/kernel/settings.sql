-- Settings
--
-- A setting is read from Vault under the name `millrace_<name>` first, then from millrace.settings.
-- Secrets belong into Vault:
--   select vault.create_secret('https://REF.supabase.co', 'millrace_project_url');
--   select vault.create_secret('…', 'millrace_wake_secret');

-- Refuses a value that a setting cannot have, with MR002, before a function of the engine reads it.
create function millrace.check_setting() returns trigger
language plpgsql security definer
as $$
declare
  v_wanted text := case
    when new.name in ('worker_seconds', 'retention_days', 'minutes_hours', 'hours_days',
        'journal_days')
      and new.value !~ '^[1-9][0-9]{0,3}$'
      then 'a whole number from 1 to 9999'
    when new.name = 'batch_bytes' and new.value !~ '^[1-9][0-9]{4,7}$'
      then 'a whole number from 10000 to 99999999'
    when new.name = 'operators_need_aal2' and new.value not in ('true', 'false')
      then 'true or false' end;
begin
  if v_wanted is not null then
    raise exception 'setting % is %, but must be %', new.name, quote_literal(new.value), v_wanted
      using errcode = 'MR002', hint = format(
        'update millrace.settings set value = … where name = %L; it stays as it was.', new.name);
  end if;
  return new;
end
$$;

create trigger settings_are_checked
before insert or update on millrace.settings
for each row execute function millrace.check_setting();

-- Reads a setting; null where nobody has set it.
create function millrace.setting(p_name text) returns text
language plpgsql stable
as $$
declare
  v_value text;
begin
  if to_regclass('vault.decrypted_secrets') is not null then
    -- Dynamic, because a plain Postgres has no Vault to plan against.
    execute 'select decrypted_secret from vault.decrypted_secrets where name = $1'
      into v_value using 'millrace_' || p_name;
  end if;
  return coalesce(v_value, (
    select s.value from millrace.settings s where s.name = p_name));
end
$$;
comment on function millrace.setting(text) is
  'Value of a setting: Vault''s millrace_<name>, else millrace.settings, else null.';

-- Reads the text of the setting batch_bytes: how many bytes of rows and results a worker is handed
-- at most. Where the setting was deleted its default counts: without a bound no batch would be
-- built.
create function millrace.batch_bytes(p_setting text) returns bigint
language plpgsql immutable
as $$
begin
  return coalesce(p_setting::bigint, 12582912);
end
$$;

-- Says the same, having read the setting.
create function millrace.batch_bytes() returns bigint
language plpgsql stable
as $$
begin
  return millrace.batch_bytes(
    (select s.value from millrace.settings s where s.name = 'batch_bytes'));
end
$$;
