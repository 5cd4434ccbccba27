-- Returns operators, channels of alerts, settings and pipelines; for operators who see all
-- pipelines also the engine's jobs of pg_cron and what doctor() finds wrong. {"pipeline": "books"}
-- returns the 20 newest versions of a pipeline instead.
create function public.millrace_settings(p_query jsonb default '{}') returns jsonb
set millrace.reads = '{"pipeline": "name"}'
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
    select jsonb_build_object('job', j.jobname, 'schedule', j.schedule, 'active', j.active,
      'last', to_jsonb(l))
    from cron.job j
    left join lateral (
      select d.status, d.start_time as began_at, d.return_message as message
      from cron.job_run_details d
      where d.jobid = j.jobid and d.status in ('succeeded', 'failed')
        and d.runid > (select max(o.runid) - 10000 from cron.job_run_details o)
      order by d.runid desc
      limit 1) l on true
    where j.jobname like 'millrace-%'
    order by j.jobname) end,
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
