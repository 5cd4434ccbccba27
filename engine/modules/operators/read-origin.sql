-- Returns what made the result of an attempt: the attempt, its service, model, prompt and cost, and
-- the release that worked at the stage when the attempt started. The service of a person is
-- by_hand. Where a run took the result over from an earlier run of the row, the attempt that made
-- it is searched through at most 50 runs.
-- taken_from: the attempt from which the found one took its result, where that attempt is deleted
-- or further back.
create function millrace.made_by(p_of millrace.attempts) returns jsonb
stable
as $$
with recursive way as (
  select p_of as a, 0 as n
  union all
  select f, n + 1
  from way
  join millrace.attempts f on f.id = (a).parent_id
  where n < 50 and (a).number = 1
)
select jsonb_strip_nulls(jsonb_build_object('attempt', a.id, 'run', a.run_id, 'taken_from',
  case a.number when 1 then a.parent_id end, 'service', a.service, 'model', a.usage -> 'model',
  'prompt', a.usage -> 'prompt', 'cached', a.usage -> 'cached', 'cost_usd', a.usage -> 'cost_usd',
  -- The list begins with the newest release.
  'release', (
    select release
    from jsonb_to_recordset(s.seen -> 'releases') r(release text, at timestamptz)
    where at <= a.started_at limit 1)))
from (select (a).* from way order by n desc limit 1) a
join millrace.stages s on s.id = a.stage_id
$$;

-- Returns what a change of a stage touches, {"pipeline": "books", "stage": "score"}: how many rows
-- among the newest 2,500 runs have a result of the stage, by the model, prompt and release that
-- made it.
-- whole: whether the pipeline has no other runs.
-- cost_usd: what these results, and the stages behind them, have cost.
-- run_ids: the runs of 1,000 rows at most.
create function public.millrace_touched(p_query jsonb)
set plan = for_runs
set reads = '{"pipeline": "name", "stage": "name"}'
as $$
  v_id int := (millrace.stage_named(v_pipeline.name, p_query ->> 'stage')).id;
  v_runs record := millrace.find_runs(array[v_pipeline.id], '{"limit": 2500}');

return jsonb_build_object(
  'looked', cardinality(v_runs.run_ids), 'whole', v_runs.next is null, 'made', array(
  select to_jsonb(k)
  from (
    select m -> 'model' as model, m -> 'prompt' as prompt, m -> 'release' as release,
      count(*) as rows, (array_agg(r.id))[:1000] as run_ids,
      sum(coalesce((m ->> 'cost_usd')::numeric, 0) + c.usd) as cost_usd
    from unnest(v_runs.run_ids) r(id)
    cross join lateral millrace.newest_attempt(r.id, v_id) a
    cross join lateral millrace.made_by(a) m
    cross join lateral (
      select coalesce(sum(jsonb_path_query_first(o.usage, '$.cost_usd ? (@ > 0)')::numeric), 0)
      from millrace.version_stages vs
      join millrace.attempts o on o.run_id = r.id and o.stage_id = any (vs.dependents)
      where vs.version_id = v_pipeline.current_version_id and vs.stage_id = v_id
        and not o.superseded) c(usd)
    where a.state = 'completed' and millrace.is_latest_run(r.id)
    group by 1, 2, 3
    order by 4 desc) k));
$$;
