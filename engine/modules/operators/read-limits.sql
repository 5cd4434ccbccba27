-- Returns the stages with limits, the 100 quotas with most blocked rows, and the shared limits.
-- Only operators who see all pipelines get the shared limits.
create function public.millrace_limits(p_query jsonb default '{}')
set reads = '{}'
as $$
return jsonb_build_object(
  'limits', array(
    select to_jsonb(l) - array['name', 'throttled_for', 'throttled_until'] || jsonb_build_object(
      'limit', l.name, 'throttle', millrace.throttle_json(o), 'keys', array(
        select to_jsonb(k) - 'name'
        from millrace.limit_pauses k
        where k.name = l.name and k.key is not null))
    from millrace.shared_limit_state l
    join millrace.limits o on o.name = l.name
    where v_caller.pipelines is null
    order by l.name),
  'stages', array(
    select jsonb_build_object(
      'pipeline', p.name, 'stage', s.name, 'limits', s.limits - 'shared',
      'shared', coalesce(s.limits -> 'shared', '[]'),
      'in_flight', (select count(*) from millrace.in_flight_at(s.id)),
      'starts', case when o.limits ? 'rate' then (millrace.room_in(o, '')).room end,
      'ready', h.ready, 'at_least', h.at_least, 'oldest_age', extract(epoch from h.oldest_age),
      'throttle', millrace.throttle_json(o))
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    join millrace.stage_health h on h.pipeline = p.name and h.stage = s.name
    left join millrace.limits o on o.stage_id = s.id
    where s.limits is not null
      and millrace.sees(v_caller, p.name)
    order by p.name, s.id),
  'quotas', array(
    select to_jsonb(q) || jsonb_build_object('key', millrace.cut_text(q.key, 200))
    from millrace.quotas q
    where millrace.sees(v_caller, q.pipeline)
    order by q.quota_blocked desc, q.used / nullif(q.allowed, 0) desc nulls last
    limit 100));
$$;
