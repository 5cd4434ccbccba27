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

-- Throttles a shared limit, or lets it go on; only a caller who sees it may.
create function millrace.act_on_limit(
  p_caller millrace.caller,
  p_request jsonb,
  p_line bigint)
returns jsonb
as $$
declare
  v_name text := p_request ->> 'limit';
  v_outcome jsonb := jsonb_build_object('limit', v_name);
begin
  if p_request ?| array['pipeline', 'stage'] then
    raise exception 'limit stands beside a pipeline or a stage, but is shared by several'
      using errcode = 'MR002', hint = 'Name the limit alone, or the stage alone.';
  elsif p_caller.pipelines is not null and not millrace.limits_json(p_caller)
      @> jsonb_build_array(jsonb_build_object('limit', v_name)) then
    raise exception 'there is no shared limit % that you see',
      millrace.short_json(p_request -> 'limit')
      using errcode = 'MR003', hint = 'It may hold for pipelines that you do not see. Those that '
        'you see are in millrace_limits().';
  end if;
  if p_request ->> 'verb' = 'throttle' then
    perform millrace.put_throttle(null, v_name, p_request -> 'limits',
      millrace.request_end(p_request), p_request ->> 'reason', p_line);
    v_outcome := v_outcome || jsonb_build_object('limits', p_request -> 'limits',
      'until', millrace.request_end(p_request));
  elsif not millrace.end_throttle(millrace.shared_limit_named(v_name), true) then
    raise exception 'shared limit % has no throttle, and no service has paused it', v_name
      using errcode = 'MR004', hint = 'Look at them: select * from millrace.shared_limit_state.';
  end if;
  return jsonb_build_object('outcome', v_outcome);
end
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
