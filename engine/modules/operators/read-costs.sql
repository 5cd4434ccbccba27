-- Returns what attempts cost from since to before, by pipeline, stage, model and tenant, as of the
-- last sweep, and the 20 dearest of the newest 2,000 runs of this time.
-- since: null means 30 days before; 400 days ago at most. The answer begins with the hour in which
-- it lies, or for more than 25 hours ago with the day (UTC).
-- before: null means now. The answer has the whole of its hour or day.
-- points: the hours or days with costs, those of the same time before, too.
-- shares: the 500 highest of each kind. The others are the rest of the sum.
-- looked: among how many runs the dearest were found. whole: whether no other runs match.
create function public.millrace_costs(p_query jsonb default '{}')
set timezone = utc set enable_sort = off set work_mem = '32MB'
set reads = '{"pipeline": "name", "since": "time", "before": "time"}'
as $$
  v_pipelines int[] := millrace.pipelines_seen(v_caller, p_query ->> 'pipeline');
  v_stages int[] := array(
    select t.id from millrace.stages t where t.pipeline_id = any (v_pipelines));
  v_found record := millrace.find_runs(v_pipelines, p_query || '{"limit": 2000}');
  v_before timestamptz := least((p_query ->> 'before')::timestamptz, v_now);
  v_since timestamptz := greatest(v_now - interval '400 days',
    coalesce((p_query ->> 'since')::timestamptz, v_before - interval '30 days'));
  v_unit text := case when v_since > v_now - interval '25 hours' then 'hour' else 'day' end;

v_since := date_trunc(v_unit, v_since);
return (
  with share as (
    select k.*, sum(c.usd) as usd,
      row_number() over (partition by k.kind order by sum(c.usd) desc, k.name) as ordinal
    from (
      select s.stage_id, s.model, s.tenant, sum(s.usd) as usd
      from millrace.costs s
      where s.unit = v_unit and s.at >= v_since and s.at < v_before and s.stage_id = any (v_stages)
      group by 1, 2, 3) c
    join millrace.stages t on t.id = c.stage_id
    join millrace.pipelines p on p.id = t.pipeline_id
    cross join lateral (values ('pipeline', p.name, p.name), ('stage', p.name, t.name),
      ('model', null, c.model), ('tenant', null, c.tenant)) k(kind, pipeline, name)
    group by 1, 2, 3
  )
  select jsonb_build_object(
    'since', v_since,
    'points', array(
      select jsonb_build_object('at', s.at, 'usd', sum(s.usd))
      from millrace.costs s
      where s.unit = v_unit and s.at >= date_trunc(v_unit, v_since - (v_before - v_since))
        and s.at < v_before and s.stage_id = any (v_stages)
      group by s.at
      order by s.at),
    'shares', array(
      select to_jsonb(s) - 'ordinal'
      from share s
      where s.ordinal <= 500
      order by s.kind, s.ordinal),
    'looked', cardinality(v_found.run_ids), 'whole', v_found.next is null, 'dearest', array(
      select jsonb_build_object('usd', c.usd) || (millrace.runs_json(array[c.run_id]) -> 0)
      from (
        select a.run_id,
          sum(jsonb_path_query_first(a.usage, '$.cost_usd ? (@ > 0)')::numeric) as usd
        from unnest(v_found.run_ids) r(id)
        -- by key
        cross join lateral (select o.* from millrace.attempts o where o.run_id = r.id offset 0) a
        group by 1
        order by 2 desc nulls last
        limit 20) c
      where c.usd > 0)));
$$;
