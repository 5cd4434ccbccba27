-- Chapter 34: schedules, and the doors
--
-- pg_cron runs one instance of a job at a time. The completion poller follows the shortest poll interval in use.

create function pipeline.schedule_polls() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_seconds int := (select ceil(extract(epoch from min(s.poll_every))) from pipeline.stages s where s.poll_every is not null);
begin
  if v_seconds is not null then
    perform cron.schedule('millrace-poll', least(v_seconds, 59) || ' seconds', 'select pipeline.ring_polls()');
  elsif exists (select from cron.job j where j.jobname = 'millrace-poll') then
    perform cron.unschedule('millrace-poll');
  end if;
end
$$;
comment on function pipeline.schedule_polls() is 'Schedules the completion poller at the shortest poll interval of any stage, or not at all.';

select cron.schedule('millrace-sweep', '10 seconds', 'select pipeline.sweep()');
select cron.schedule('millrace-prune', '17 3 * * *', 'select pipeline.prune()');

-- The doors: nobody but the owner calls into schema pipeline, which is the engine's own. Each chapter says by name who calls
-- the public functions that it makes.
revoke all on all functions in schema pipeline from public;

notify pgrst, 'reload schema';
