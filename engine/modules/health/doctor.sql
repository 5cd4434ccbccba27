-- Checks the engine's configuration and health, and returns a finding for each check. Checks the
-- invariants of the newest hundred runs, and of runs in which the sweep has found faults. Of the
-- last hour's errors it names the five most frequent messages and counts the others.
create function millrace.doctor() returns setof millrace.finding
stable
set plan = for_lists
set quote_all_identifiers = off
as $$
  v_newest bigint := coalesce((
    select r.id from millrace.runs r order by r.id desc offset 100 limit 1), 0);
  v_url text;
  v_secret text;
  v_key text;
  v_fault text := 'missing';
  v_swept timestamptz := nullif(millrace.last_sweep(), '-infinity');

begin
  v_url := millrace.setting('project_url');
  v_secret := millrace.setting('wake_secret');
  v_key := millrace.setting('secret_key');
exception when others then
  v_fault := 'Vault cannot be read: ' || sqlerrm;
end;
return query
select 'project_url is set', u.is_one, case when u.is_one then v_url
  else coalesce(v_url || ' is none', v_fault) || ': npx millrace connect writes it' end
from (select v_url ~ '^https?://[^/ ]+$' is true) u(is_one)
union all
select 'wake_secret is set', h.has_secret, case
  when h.has_secret then 'present'
  when v_key is null then v_fault || ': npx millrace connect writes it'
  else 'wake-ups show secret_key instead, which every SQL role can read in '
    'net.http_request_queue: npx millrace connect writes one' end
from (select v_secret is not null) h(has_secret)
union all
select 'the sweep has run in the last minute', s.runs,
  coalesce('last at ' || v_swept, 'never; it is due every ten seconds') || case
    when not s.runs then ': cron.job_run_details says what became of millrace-sweep, '
      'select millrace.sweep() what it says itself' else '' end
from (
  -- The first sweep of a new installation has a minute's time, too.
  select coalesce(coalesce(v_swept, (select min(r.installed_at) from millrace.releases r))
    > v_now - interval '1 minute', false)) s(runs)
union all
select 'the functions answered the last wake-ups', count(f.remedy) = 0,
  coalesce(
    string_agg(concat_ws(' ', f.function_name, f.answered || ':', f.means || ';') || ' '
      || f.remedy, '. '),
    string_agg(distinct f.answered, ', '), 'no wake-ups yet')
from millrace.last_answers() f
-- Functions of unattended stages are in the finding about ready work.
where f.function_name not in (select u.function_name from millrace.unattended() u)
union all
select 'pg_net''s worker runs', count(*) > 0,
  coalesce('process ' || min(a.pid),
    'it is not in pg_stat_activity: select net.worker_restart()')
from pg_stat_activity a
where a.datname = current_database()
  and (a.backend_type ilike '%pg_net%' or a.application_name ilike 'pg_net %');
return query select * from millrace.pipeline_findings;
return query select * from millrace.label_findings;
begin
  return query
  select 'no invariant is violated', count(*) = 0, coalesce(
    string_agg(distinct f.rule, '; ') || ' (' || min(f.detail)
      || '): select * from millrace.check_invariants() names the runs',
    'none; the sweep has ' || coalesce((
      select 'looked at all runs, last at ' || date_trunc('second', c.ended_at)
      from millrace.check_progress c), 'yet to look at all runs'))
  from (
    select v_newest, 9223372036854775807
    union all
    select i - 1, i
    from millrace.check_progress c
    cross join unnest(c.faulty) i
    where i <= v_newest) s(after, until)
  cross join millrace.check_slice(s.after, s.until) f;
exception when others then
  -- The rules read tables of the project, which may have lost a column.
  return query
  select 'no invariant is violated', false,
    sqlerrm || ': the rules cannot be checked until this is mended';
end;
return query select * from millrace.hook_findings();
return query
select 'no errors in the last hour', count(*) = 0,
  coalesce(string_agg(format('%s %sat %s: %s', l.code,
        case when l.n > 1 then l.n || ' times, last ' end, date_trunc('second', l.at), l.message),
      '; ' order by l.ordinal) filter (where l.ordinal <= 5)
    || case when count(*) > 5 then format('; and %s more messages', count(*) - 5) else '' end
    || ': see millrace.log, and docs/errors.md for each code; an error counts for an hour',
    'none')
from (
  select o.code, o.message, max(o.at) as at, count(*) as n,
    row_number() over (order by count(*) desc, max(o.at) desc) as ordinal
  from millrace.log o
  where o.level = 'error'
    and o.at > v_now - interval '1 hour'
  group by o.code, o.message) l;
$$;

-- Replaces the saved findings by what doctor() finds now, for pages that poll. Does nothing while
-- another sweep does so, since it would wait for the rows that the other deletes.
create function millrace.keep_findings()
as $$
if not pg_try_advisory_xact_lock(hashtext('millrace.last_findings')) then
  return;
end if;
delete from millrace.last_findings where true;
insert into millrace.last_findings
select f.what, f.detail from millrace.doctor() f where not f.ok on conflict do nothing;
$$;
