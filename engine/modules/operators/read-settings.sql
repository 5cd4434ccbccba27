-- The operators' read of what is set up

-- Operators (all of them for admins of all pipelines), channels of alerts, settings, pipelines and
-- what doctor() finds amiss. With {"pipeline": "books"}: its newest versions. For operators.
create function public.millrace_settings(p_query jsonb default '{}') returns jsonb
stable
set millrace.plan = for_lists
as $$
declare
  v_caller millrace.caller := millrace.enter();
  v_sees_all boolean := v_caller.role = 'admin' and v_caller.pipelines is null;
begin
  perform millrace.check_request(p_query, '{"pipeline": "name"}', 'p_query');
  if p_query ? 'pipeline' then
    return jsonb_build_object('pipeline', p_query -> 'pipeline', 'versions',
      array(
        select jsonb_build_object(
          'version', v.number, 'since', v.created_at, 'graph', v.graph)
        from (
          select o.*
          from millrace.versions o
          where o.pipeline_id = (millrace.pipeline_seen(v_caller, p_query ->> 'pipeline')).id
          order by o.number desc
          limit 20) v
        order by v.number desc));
  end if;
  return jsonb_build_object(
    'operators', array(
      select to_jsonb(o)
      from millrace.operators o
      where v_sees_all or o.subject = v_caller.subject
      order by o.subject),
    'all_operators', v_sees_all,
    'findings', case when v_caller.pipelines is null then array(
      select jsonb_build_object('what', d.what, 'detail', d.detail)
      from millrace.doctor() d
      where not d.ok) end,
    'channels', array(
      select jsonb_build_object(
        'channel', c.name, 'kind', c.kind, 'enabled', c.enabled,
        'has_address', millrace.setting('channel_' || c.name || '_address') is not null,
        'last', case when m.id is not null then jsonb_build_object(
          'message', m.id, 'state', m.state, 'tries', m.tries, 'status', m.status, 'error', m.error,
          'at', coalesce(m.ended_at, m.tried_at, m.created_at)) end)
      from millrace.alert_channels c
      left join lateral (
        select o.*
        from millrace.alert_messages o
        where o.channel_id = c.id
        order by o.id desc
        limit 1) m on true
      order by c.name),
    'settings', (
      select jsonb_agg(to_jsonb(s) order by s.name)
      from millrace.settings s
      where s.name in ('retention_days', 'journal_days', 'minutes_hours', 'hours_days',
        'operators_need_aal2', 'worker_seconds', 'batch_bytes')),
    'pipelines', array(
      select jsonb_build_object(
        'pipeline', p.name, 'table', p.entity_table::text, 'projection', p.projection,
        'version', v.number, 'since', v.created_at,
        'retention_days', millrace.retention_days(p))
      from millrace.pipelines p
      left join millrace.versions v on v.id = p.current_version_id
      where millrace.sees(v_caller, p.name)
      order by p.name));
end
$$;
