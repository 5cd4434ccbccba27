-- Returns what the newest 2,000 runs that a filter finds have cost, by model and tenant, and the 20
-- dearest of these runs. millrace_series() has the cost of days and stages.
-- looked: how many runs were added up. whole: whether no other runs match.
create function public.millrace_costs(p_query jsonb default '{}') returns jsonb
stable
set millrace.plan = for_runs
as $$
  v_caller millrace.caller := millrace.authorize(p_query, millrace.filter_fields());
  v_found record := millrace.find_runs(
    millrace.pipelines_seen(v_caller, p_query ->> 'pipeline'), p_query || '{"limit": 2000}');

return (
  with spent as materialized (
    select a.run_id, a.usage ->> 'model' as model, u.usd
    from unnest(v_found.run_ids) r(id)
    -- by key
    cross join lateral (select o.* from millrace.attempts o where o.run_id = r.id offset 0) a
    cross join lateral (
      select jsonb_path_query_first(a.usage, '$.cost_usd ? (@ > 0)')::numeric as usd) u
    where u.usd > 0
  )
  select jsonb_build_object(
    'looked', cardinality(v_found.run_ids), 'whole', v_found.next is null, 'shares', array(
      select to_jsonb(k)
      from (
        select s.model, r.quota_key as tenant, sum(s.usd) as usd
        from spent s
        join millrace.runs r on r.id = s.run_id
        group by 1, 2
        order by 3 desc
        limit 500) k), 'dearest', array(
      select jsonb_build_object('usd', d.usd) || (millrace.runs_json(array[d.run_id]) -> 0)
      from (
        select s.run_id, sum(s.usd) as usd from spent s group by 1 order by 2 desc limit 20) d)));
$$;
