-- What a monitoring system asks for: counters, gauges of each stage, alerts. It goes as json:
-- jsonb would take all numbers apart at each level.
create function public.millrace_metrics() returns json
stable
set millrace.plan = for_lists
as $$
return json_build_object(
  'release', (millrace.engine()).release,
  'level', (millrace.engine()).level,
  -- In seconds: what `le` names.
  'bounds', array(select b / 1000 from unnest(millrace.bucket_bounds()) b),
  'counters', array(
    select json_build_object(
      'pipeline', p.name, 'stage', s.name,
      'outcomes', json_object_agg(c.outcome, c.n),
      'run_seconds', json_build_object('sum', sum(c.run_ms) / 1000,
        'buckets', array[
          sum(c.runs[1]), sum(c.runs[2]), sum(c.runs[3]), sum(c.runs[4]),
          sum(c.runs[5]), sum(c.runs[6]), sum(c.runs[7]), sum(c.runs[8]),
          sum(c.runs[9]), sum(c.runs[10]), sum(c.runs[11]), sum(c.runs[12]),
          sum(c.runs[13]), sum(c.runs[14]), sum(c.runs[15]), sum(c.runs[16])]),
      'wait_seconds', json_build_object('sum', sum(c.wait_ms) / 1000,
        'buckets', array[
          sum(c.waits[1]), sum(c.waits[2]), sum(c.waits[3]), sum(c.waits[4]),
          sum(c.waits[5]), sum(c.waits[6]), sum(c.waits[7]), sum(c.waits[8]),
          sum(c.waits[9]), sum(c.waits[10]), sum(c.waits[11]), sum(c.waits[12]),
          sum(c.waits[13]), sum(c.waits[14]), sum(c.waits[15]), sum(c.waits[16])]),
      'cost_usd', sum(c.cost_usd), 'input_tokens', sum(c.input_tokens),
      'output_tokens', sum(c.output_tokens))
    from millrace.sums c
    join millrace.pipelines p on p.id = c.pipeline_id
    left join millrace.stages s on s.id = c.stage_id
    where c.unit = 'total'
      and (c.stage_id = 0 or s.id is not null)
    group by p.id, s.id
    order by p.name, s.id nulls first),
  'stages', array(
    select json_build_object(
      'pipeline', p.name, 'stage', s.name, 'enabled', s.enabled and p.enabled,
      'ready', c.ready, 'in_backoff', c.in_backoff, 'started', c.started,
      'oldest_ready_seconds', greatest(extract(epoch from v_now - c.oldest_due_at), 0),
      'live_workers', coalesce(w.n, 0))
    from millrace.live_counts(10001) c
    join millrace.stages s on s.id = c.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    left join (
      select o.stage_id, count(*) as n
      from millrace.workers o
      where o.working and o.left_at is null
        and o.heartbeat_at > (select millrace.alive_since())
      group by o.stage_id) w on w.stage_id = s.id
    order by p.name, s.id),
  'sweep_age_seconds', (
    select greatest(extract(epoch from v_now - s.at), 0)
    from millrace.last_sweep() s(at)
    where isfinite(s.at)),
  'alerts', array(
    select json_build_object('rule', a.rule, 'pipeline', a.pipeline, 'open', count(*))
    from millrace.alerts a
    where a.resolved_at is null
    group by a.rule, a.pipeline
    order by a.rule, a.pipeline),
  'messages', array(
    select json_build_object('channel', c.name,
      -- By an index each: most were delivered.
      'waiting', (
        select count(*)
        from millrace.alert_messages m
        where m.channel_id = c.id and m.state = 'waiting'),
      'dead', (
        select count(*)
        from millrace.alert_messages m
        where m.channel_id = c.id and m.state = 'dead'))
    from millrace.alert_channels c
    order by c.name));
$$;

-- Whether all is well now, what is not, the release, and the digests of the definitions.
create function public.millrace_health() returns jsonb
stable
as $$
return to_jsonb(millrace.engine()) - 'contracts' || millrace.well(null, true)
  || jsonb_build_object('definitions', (
    select coalesce(json_object_agg(p.name, p.digest), '{}') from millrace.pipelines p));
$$;
