-- Raises MR004 with all obstacles at once, before anything is created.
do $preflight$
  v_faults text[] := '{}';
  v_taken text[];

if current_setting('server_version_num')::int < 150000 then
  v_faults := v_faults || format('this is Postgres %s: upgrade it to 15 or newer',
    current_setting('server_version'));
end if;
v_faults := v_faults || array(
  select format('the extension %s is missing: enable it under Database, Extensions', e.name)
  from (values
    ('pg_net', 'net', to_regproc('net.http_post') is null),
    ('pg_cron', 'cron', to_regclass('cron.job') is null)
  ) e(name, schema, is_lacking)
  where e.is_lacking
    and (to_regnamespace(e.schema) is not null
      or not exists (select from pg_available_extensions a where a.name = e.name)));
if to_regprocedure('millrace.engine()') is not null then
  v_faults := v_faults
    || 'Millrace is installed already: run the upgrade to a newer release, or nothing'::text;
else
  v_taken := array(
    select 'schema ' || n.nspname
    from pg_namespace n
    where n.nspname = any ('{{schemas}}')
    union all
    select pg_describe_object('pg_class'::regclass, c.oid, 0)
    from pg_class c
    where c.relnamespace = to_regnamespace('public')
      and c.relname ^@ 'millrace_'
      and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    union all
    select pg_describe_object('pg_proc'::regclass, p.oid, 0)
    from pg_proc p
    where p.pronamespace = to_regnamespace('public')
      and p.proname ^@ 'millrace_');
  if to_regclass('cron.job') is not null then
    v_taken := v_taken || array(
      select 'pg_cron job ' || j.jobname
      from cron.job j
      where j.jobname ^@ 'millrace-'
      order by 1);
  end if;
  if v_taken <> '{}' then
    v_faults := v_faults || format(
      'these names are taken: %s: rename or drop what is called so',
      array_to_string(v_taken, ', '));
  end if;
end if;
if v_faults <> '{}' then
  raise exception 'MR004: Millrace cannot be installed: %', array_to_string(v_faults, '; ')
    using hint = 'Nothing has been made. Mend all of it, then install again.';
end if;
$preflight$;
