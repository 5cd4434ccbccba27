-- Chapter 35: schedules, and the doors
--
-- pg_cron runs one instance of a job at a time. The completion poller follows the shortest poll interval of any stage, and
-- is scheduled only while a job waits to be polled: a job that runs every two seconds costs a session each time, and rows
-- of history. Whoever begins to wait schedules it; the sweep takes it off, and makes good where the two crossed.

create or replace function millrace.schedule_polls() returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off
as $$
declare
  v_every interval := (
    select least(min(s.poll_every), interval '59 seconds')
    from millrace.stages s
    where s.poll_every is not null
      and exists (select from millrace.attempts a where a.poll_at is not null)
    having count(*) > 0);
  v_wanted text := ceil(extract(epoch from v_every)) || ' seconds';
begin
  if v_wanted is not distinct from (
    select j.schedule from cron.job j where j.jobname = 'millrace-poll') then
    return;
  end if;
  -- Nobody waits for another's row of cron.job: who is too late leaves it to the next sweep.
  if not pg_try_advisory_xact_lock(hashtext('millrace.schedule_polls')) then
    return;
  end if;
  if v_wanted is not null then
    perform cron.schedule('millrace-poll', v_wanted, 'select millrace.wake_job_poll()');
  elsif exists (select from cron.job j where j.jobname = 'millrace-poll') then
    perform cron.unschedule('millrace-poll');
  end if;
exception
  -- A worker's batch must not fail for want of a poller: callbacks end jobs too, and the sweep tries again.
  when others then
    if millrace.error_kind(sqlstate) = 'fatal' then
      raise;
    end if;
    perform millrace.report('error', 'polls_not_scheduled', 'The poller could not be scheduled: ' || sqlerrm);
end
$$;
comment on function millrace.schedule_polls() is
  'Schedules the completion poller at the shortest poll interval of any stage while a job waits, else not at all.';

create or replace function millrace.schedule_pruning(p_more boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_scheduled boolean := exists (select from cron.job j where j.jobname = 'millrace-prune-more');
begin
  if p_more and not v_scheduled then
    perform cron.schedule('millrace-prune-more', '5 seconds', 'select millrace.prune()');
  elsif v_scheduled and not p_more then
    perform cron.unschedule('millrace-prune-more');
  end if;
end
$$;
comment on function millrace.schedule_pruning(boolean) is
  'Has pg_cron call prune() every five seconds as long as there is more to prune.';

select cron.schedule('millrace-sweep', '10 seconds', 'select millrace.sweep()');

select cron.schedule('millrace-prune', '17 3 * * *', 'select millrace.prune()');


-- Nobody but the owner calls into the schema; each file says by name who calls the public functions that it makes.
revoke all on all functions in schema millrace from public;
notify pgrst, 'reload schema';
