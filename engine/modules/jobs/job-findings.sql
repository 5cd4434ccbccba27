-- Looks at pg_cron's jobs, that they are there, switched on, and ended well when they ran last.
create function millrace.job_findings() returns setof millrace.finding
stable
as $$
select 'pg_cron job ' || j.name,
  coalesce(c.active and l.status is distinct from 'failed', false),
  case
    when c.jobid is null then format(
      'missing: select cron.schedule(%L, %L, %L)', j.name, j.schedule, j.command)
    when not c.active then 'switched off: select cron.alter_job('
      || c.jobid || ', active := true)'
    when l.status = 'failed' then format('its last run failed: %s. %s', l.message, case
      when l.message ~ '^connection' then format('pg_cron connects to %s:%s as %s: see cron.host '
        'and cron.use_background_workers', c.nodename, c.nodeport, c.username)
      else format('To see more, run it by hand: %s', c.command)
    end)
    else c.schedule
  end
from millrace.schedules j
left join cron.job c on c.jobname = j.name
left join lateral (
  -- The first line: pg_cron keeps the command's place, hint and context behind it.
  select d.status, rtrim(split_part(d.return_message, E'\n', 1), ' .') as message
  from cron.job_run_details d
  where d.jobid = c.jobid and d.status in ('succeeded', 'failed')
    and d.runid > (select max(o.runid) - 10000 from cron.job_run_details o)
  order by d.runid desc
  limit 1) l on true
$$;
