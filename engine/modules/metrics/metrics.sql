-- Returns counters by stage and outcome, gauges of each stage, and open alerts, for a monitoring
-- system. Times of counters are in milliseconds. The function millrace adds up the counters of a
-- stage. The answer is json, since jsonb would parse all numbers at each level.
create function public.millrace_metrics() returns json
stable
set plan = for_lists
as $$
return json_build_object(
  'release', (millrace.engine()).release,
  'level', (millrace.engine()).level,
  -- The bounds are in seconds, as Prometheus' label `le` has them.
  'bounds', array(select b / 1000 from unnest(millrace.bucket_bounds()) b),
  'counters', array(
    select json_build_array(p.name, s.name, c.outcome, c.n, c.run_ms, c.runs, c.wait_ms, c.waits,
      c.cost_usd, c.input_tokens, c.output_tokens)
    from millrace.sums c
    join millrace.pipelines p on p.id = c.pipeline_id
    left join millrace.stages s on s.id = c.stage_id
    where c.unit = 'total'
      and (c.stage_id = 0 or s.id is not null)
    order by p.name, s.id nulls first),
  'stages', array(
    select row_to_json(c)
    from (
      select p.name as pipeline, s.name as stage, s.enabled and p.enabled as enabled, c.ready,
        c.in_backoff, c.started, c.live_workers,
        greatest(extract(epoch from v_now - c.oldest_due_at), 0) as oldest_ready_seconds
      from millrace.live_counts(10001) c
      join millrace.stages s on s.id = c.stage_id
      join millrace.pipelines p on p.id = s.pipeline_id
      order by p.name, s.id) c),
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
      -- A count for each state reads an index. Most messages are delivered, and not read.
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

-- Returns whether all is well now, the faults, the engine's level and release, and the digests of
-- the definitions.
create function public.millrace_health()
stable
set plan = free
as $$
return to_jsonb(millrace.engine()) - 'contracts' || millrace.well(null, true)
  || jsonb_build_object('definitions', (
    select coalesce(json_object_agg(p.name, p.digest), '{}') from millrace.pipelines p));
$$;
