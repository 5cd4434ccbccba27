-- Returns operators, channels of alerts, settings and pipelines; for operators who see all
-- pipelines also the jobs of pg_cron and what doctor() finds wrong. {"pipeline": "books"} returns
-- the 20 newest versions of a pipeline instead.
-- The jobs include the project's own, without their commands, which often contain a key. The last
-- run of a job is looked for among the newest 10,000 runs of all jobs.
create function public.millrace_settings(p_query jsonb default '{}')
set reads = '{"pipeline": "name"}'
as $$
if p_query ? 'pipeline' then
  return jsonb_build_object('versions', array(
    select jsonb_build_object('version', v.number, 'since', v.created_at, 'graph', v.graph)
    from millrace.versions v
    join millrace.pipelines p on p.id = v.pipeline_id
    where p.name = p_query ->> 'pipeline'
    order by v.number desc
    limit 20));
end if;
return jsonb_build_object(
  'operators', array(
    select to_jsonb(o)
    from millrace.operators o
    where o.subject = v_caller.subject
      or v_caller.role = 'operator' and v_caller.pipelines is null
    order by o.subject),
  'findings', case when v_caller.pipelines is null then array(
    select to_jsonb(d) - 'ok'
    from millrace.doctor() d
    where not d.ok) end,
  'jobs', case when v_caller.pipelines is null then array(
    select jsonb_build_object('job', coalesce(j.jobname, 'job ' || j.jobid),
      'schedule', j.schedule, 'active', j.active, 'last', to_jsonb(l) - 'jobid')
    from cron.job j
    left join (
      select distinct on (d.jobid) d.jobid, d.status, d.start_time as began_at,
        millrace.cut_text(d.return_message, 300) as message
      from cron.job_run_details d
      where d.status in ('succeeded', 'failed')
        and d.runid > (select max(o.runid) - 10000 from cron.job_run_details o)
      order by d.jobid, d.runid desc) l using (jobid)
    order by 1) end,
  'channels', array(
    select jsonb_build_object(
      'channel', c.name, 'kind', c.kind, 'enabled', c.enabled,
      'has_address', millrace.setting('channel_' || c.name || '_address') is not null,
      'last', (
        select jsonb_build_object('state', m.state, 'tries', m.tries,
          'error', m.error, 'at', coalesce(m.ended_at, m.tried_at, m.created_at))
        from millrace.alert_messages m
        where m.channel_id = c.id
        order by m.id desc
        limit 1))
    from millrace.alert_channels c
    order by c.name),
  'settings', (
    select json_agg(to_jsonb(s) order by s.name)::jsonb
    from millrace.settings s
    where s.name in ('retention_days', 'history_gb', 'journal_days', 'minutes_hours',
      'hours_days', 'operators_need_aal2', 'worker_seconds', 'batch_bytes', 'page_url',
      'playbooks_url')),
  'pipelines', array(
    select to_jsonb(k)
    from (
      select p.name as pipeline, p.entity_table::text as "table", p.projection, p.due_column,
        case when p.due_column > '' then millrace.due_json(p) end as due, v.number as version,
        v.created_at as since, t.days as retention_days, p.outputs_days
      from millrace.pipelines p
      join millrace.retention t on t.pipeline = p.name
      left join millrace.versions v on v.id = p.current_version_id
      where millrace.sees(v_caller, p.name)
      order by p.name) k));
$$;
