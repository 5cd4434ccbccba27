-- Schedules pg_cron's job that polls, at the shortest poll interval of any stage, while a job
-- waits. Unschedules it while none waits, since pg_cron opens a session for each run.
create function millrace.schedule_polls()
set enable_seqscan = off
as $$
  v_wanted text;

-- pg_cron raises in the second of two sweeps that unschedule the job at once.
if not pg_try_advisory_xact_lock(hashtext('millrace.polls')) then
  return;
end if;
v_wanted := (
  select ceil(extract(epoch from least(min(s.poll_every), '59 seconds'))) || ' seconds'
  from millrace.stages s
  where s.poll_every is not null
    and exists (select from millrace.attempts a where a.poll_at is not null)
  having count(*) > 0);
if v_wanted is not distinct from (
    select j.schedule from cron.job j where j.jobname = 'millrace-poll') then
  return;
elsif v_wanted is not null then
  perform cron.schedule('millrace-poll', v_wanted, 'select millrace.wake_job_poll()');
else
  perform cron.unschedule('millrace-poll');
end if;
$$;

-- Wakes the function that polls, where the poll of a waiting job is due. Returns whether it did.
create function millrace.wake_job_poll() returns boolean
set plan = by_index
as $$
if exists (select from millrace.attempts a where a.poll_at <= v_now) then
  return millrace.post('millrace/poll', '{}');
end if;
return false;
$$;

-- The jobs that pg_cron must have at any time. Jobs that come and go are not among them.
create view millrace.schedules as
select *
from (values
  ('millrace-sweep', '10 seconds', 'do $do$declare s jsonb; begin loop '
    's := millrace.sweep_next(s); exit when s is null; commit; end loop; end$do$'),
  ('millrace-prune', '17 3 * * *', 'select millrace.prune()')) j(name, schedule, command);

-- Only the owner may call functions of the schema millrace. Each public function is granted by
-- name.
revoke all on all routines in schema millrace from public;
notify pgrst, 'reload schema';
