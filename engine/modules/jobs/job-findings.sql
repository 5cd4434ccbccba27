-- Looks at pg_cron's jobs, that they are there, switched on, and ended well when they ran last, and
-- at jobs at services, that they can be asked after and finished, and end in time.
create function millrace.job_findings() returns setof millrace.finding
stable
as $$
declare
  -- Of many that wait it looks at the 10,000 whose deadlines come first.
  v_faulty text := (
    select string_agg(format('%s of stage %s of %s since %s: %s', g.jobs, g.stage, g.pipeline,
      to_char(g.since, 'YYYY-MM-DD HH24:MI:SS'), g.message), '; ' order by g.since)
    from (
      -- By code: each job's own message may name its id.
      select count(*) as jobs, s.name as stage, p.name as pipeline,
        min(a.error ->> 'detail') as message,
        min((a.error ->> 'since')::timestamptz) as since
      from (
        select w.stage_id, w.state, w.error
        from millrace.attempts w
        where w.deadline_at is not null
        order by w.deadline_at
        limit 10000) a
      join millrace.stages s on s.id = a.stage_id
      join millrace.pipelines p on p.id = s.pipeline_id
      where a.state = 'waiting'
        and a.error is not null
      group by p.name, s.id, s.name, a.error ->> 'code'
      order by min((a.error ->> 'since')::timestamptz)
      limit 10) g);
begin
  return query
    select 'pg_cron job ' || j.name,
      coalesce(c.active and l.status is distinct from 'failed', false),
      case
        when c.jobid is null then format(
          'missing: select cron.schedule(%L, %L, %L)', j.name, j.schedule, j.command)
        when not c.active then 'switched off: select cron.alter_job('
          || c.jobid || ', active := true)'
        when l.status = 'failed' then format('its last run failed: %s. %s', l.message, case
          when l.message ~ '^connection' then format('pg_cron connects to %s:%s as %s: see what it '
            'may log in by and the setting cron.host, or have it run jobs without a connection '
            '(cron.use_background_workers)', c.nodename, c.nodeport, c.username)
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
        -- The history of other jobs may be long.
        and d.runid > (select max(o.runid) - 10000 from cron.job_run_details o)
      order by d.runid desc
      limit 1) l on true;
  return query
    select 'jobs at services can be asked after and finished', v_faulty is null,
      coalesce(v_faulty, 'none is in trouble');
  return query
    select 'external jobs end before their deadlines', count(*) = 0,
      coalesce(string_agg(format(
        'stage %s of %s: in the last hour %s jobs passed their deadline and %s completed: '
          || 'set limits.maxInFlight (now %s) to what the service works on at once, '
          || 'or completion.deadlineSeconds to more',
        s.name, p.name, f.codes ->> 'deadline', f.completed,
        coalesce(s.limits ->> 'max_in_flight', 'none')), ', ' order by p.name, s.id),
        'none passed more often than jobs completed')
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    cross join lateral millrace.figures(p.name, s.name) f
    where s.kind in ('function', 'external')
      and s.deadline is not null
      and (f.codes ->> 'deadline')::bigint > f.completed;
end
$$;
