-- Raises MR002 for a value that a setting cannot have, before a function of the engine reads it.
create function millrace.check_setting() returns trigger
as $$
perform millrace.refuse(
  format('setting %s is %s, but must be ', new.name, quote_nullable(new.value)) || case
    when new.name in ('worker_seconds', 'retention_days', 'minutes_hours', 'hours_days',
        'journal_days', 'history_gb')
      and new.value !~ '^[1-9][0-9]{0,3}$'
      then 'a whole number from 1 to 9999'
    when new.name = 'batch_bytes' and new.value !~ '^[1-9][0-9]{4,7}$'
      then 'a whole number from 10000 to 99999999'
    when new.name = 'operators_need_aal2' and new.value not in ('true', 'false')
      then 'true or false'
    when new.name in ('page_url', 'playbooks_url')
      and coalesce(new.value, '-') !~ '^(https?://[^/[:space:]<>|]+(/[^[:space:]<>|]*)?)?$'
      then 'an address with https:// or http://, or empty'
  end,
  format('update millrace.settings set value = … where name = %L; it stays as it was.', new.name),
  'MR002');
return new;
$$;

create trigger settings_are_checked
before insert or update on millrace.settings
for each row execute function millrace.check_setting();
