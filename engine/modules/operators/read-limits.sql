-- Shared limits, as operators see and throttle them

-- Lists the shared limits all of whose stages a caller sees.
create function millrace.limits_json(p_caller millrace.caller) returns jsonb
language sql stable
as $$
  select coalesce(jsonb_agg(
    to_jsonb(l) - array['name', 'throttled_for', 'throttled_until'] || jsonb_build_object(
      'limit', l.name,
      'keys', array(
        select to_jsonb(k) - 'name'
        from millrace.limit_pauses k
        where k.name = l.name and k.key is not null),
      'throttle', millrace.throttle_json(o)) order by l.name), '[]')
  from millrace.shared_limit_state l
  join millrace.limits o on o.name = l.name
  where p_caller.pipelines is null
    or p_caller.pipelines @> array(select split_part(n, '.', 1) from unnest(l.stages) n)
      and cardinality(l.stages) > 0
$$;

-- Shared limits, stages with limits and the hundred quotas that hold back most, with what is used
-- and what waits.
create function public.millrace_limits(p_query jsonb default '{}') returns jsonb
stable
set millrace.plan = for_lists
as $$
declare
  v_caller millrace.caller := millrace.enter(p_query, '{}');
begin
  return jsonb_build_object(
    'limits', millrace.limits_json(v_caller),
    'stages', array(
      select jsonb_build_object(
        'pipeline', p.name, 'stage', s.name, 'limits', s.limits - 'shared',
        'shared', coalesce(s.limits -> 'shared', '[]'),
        'in_flight', (select count(*) from millrace.in_flight_at(s.id)),
        'starts', case when o.limits ? 'rate' then (millrace.room_in(o, '')).room end,
        'ready', h.ready, 'oldest_age', extract(epoch from h.oldest_age),
        'throttle', millrace.throttle_json(o) - 'line')
      from millrace.stages s
      join millrace.pipelines p on p.id = s.pipeline_id
      join millrace.stage_health h on h.pipeline = p.name and h.stage = s.name
      left join millrace.limits o on o.stage_id = s.id
      where s.limits is not null
        and millrace.sees(v_caller, p.name)
      order by p.name, s.id),
    'quotas', array(
      select to_jsonb(q) || jsonb_build_object(
        'key', millrace.cut_text(q.key, 200))
      from (
        select u.*
        from millrace.quotas u
        where millrace.sees(v_caller, u.pipeline)
        order by u.held desc, u.used / nullif(u.allowed, 0) desc nulls last
        limit 100) q
      order by q.held desc, q.used / q.allowed desc));
end
$$;
