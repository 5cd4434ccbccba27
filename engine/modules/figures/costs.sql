-- The cost of a run is the sum of usage.cost_usd of its attempts, failed ones too, and of its
-- descendants' attempts. Without a known price the cost is null.

-- Returns the cost of each attempt of some runs and of their descendants, and of deleted
-- descendants. Views call this for each run, so one plan serves all calls.
-- run_id, stage_id, attempt_id: of the run in p_runs; for a descendant, the stage and the attempt
-- that started its children.
create function millrace.attempt_costs(p_runs bigint[])
returns table (run_id bigint, stage_id int, attempt_id bigint, cost_usd numeric)
stable
set plan = by_index
as $$
return query
with recursive family as (
  select r.id as root_id, null::int as stage_id, null::bigint as attempt_id, r.id
  from unnest(p_runs) r(id)
  union all
  select m.root_id, coalesce(m.stage_id, n.stage_id), coalesce(m.attempt_id, n.attempt_id), n.id
  from family m
  cross join lateral (
    select f.stage_id, f.attempt_id, c.id
    -- by key
    from (select o.* from millrace.fan_outs o where o.run_id = m.id offset 0) f
    join millrace.runs c on c.fan_out_id = f.id
  ) n
)
select m.root_id, coalesce(m.stage_id, a.stage_id), coalesce(m.attempt_id, a.id),
  jsonb_path_query_first(a.usage, '$.cost_usd ? (@ >= 0)')::numeric
from family m
cross join lateral (select o.* from millrace.attempts o where o.run_id = m.id offset 0) a
union all
select m.root_id, coalesce(m.stage_id, f.stage_id), coalesce(m.attempt_id, f.attempt_id),
  g.cost_usd
from family m
cross join lateral (select o.* from millrace.fan_outs o where o.run_id = m.id offset 0) f
join millrace.former_costs g on g.fan_out_id = f.id;
$$;

-- Saves the costs of children whose runs will be deleted, at the fan-outs of their parents.
create function millrace.keep_costs(p_run_ids bigint[])
set plan = anew
as $$
insert into millrace.former_costs (fan_out_id, cost_usd)
select r.fan_out_id, sum(t.cost_usd)
from millrace.attempt_costs(array(
  -- Only children whose parents are not deleted with them.
  select c.id
  from millrace.runs c
  join millrace.fan_outs f on f.id = c.fan_out_id
  join millrace.runs p on p.id = f.run_id
  where c.id = any (p_run_ids)
    and p.id <> all (p_run_ids))) t
join millrace.runs r on r.id = t.run_id
where t.cost_usd is not null
group by r.fan_out_id;
$$;

-- Saves the costs and the last run of rows whose runs will be pruned. A child's cost belongs to its
-- parent's row.
create function millrace.keep_former_runs(p_run_ids bigint[])
set plan = anew
as $$
with root as materialized (
  select r.*
  from millrace.runs r
  where r.id = any (p_run_ids) and r.fan_out_id is null and r.copy_key is null
), cost as materialized (
  select r.pipeline_id, r.entity_id, s.name, sum(c.cost_usd) as cost_usd
  from millrace.attempt_costs(array(select r.id from root r)) c
  join root r on r.id = c.run_id
  join millrace.stages s on s.id = c.stage_id
  where c.cost_usd is not null
  group by 1, 2, 3
), total as (
  select c.pipeline_id, c.entity_id, json_object_agg(c.name, c.cost_usd)::jsonb as costs
  from cost c
  group by 1, 2
)
insert into millrace.former_runs as f (pipeline_id, entity_id, run_id, trace_id, status, metadata,
  costs, created_at, started_at, finished_at)
select distinct on (r.pipeline_id, r.entity_id) r.pipeline_id, r.entity_id, r.id, r.trace_id,
  r.status, millrace.metadata_of(r.id), coalesce(t.costs, '{}'), r.created_at, (
    select min(a.started_at)
    from millrace.attempts a
    where a.run_id = r.id), r.finished_at
from root r
left join total t using (pipeline_id, entity_id)
order by 1, 2, 3 desc
on conflict on constraint former_runs_pkey do update
set run_id = excluded.run_id, trace_id = excluded.trace_id, status = excluded.status,
  metadata = excluded.metadata, costs = (
    select coalesce(json_object_agg(s.key, s.sum)::jsonb, '{}')
    from (
      select c.key, sum(c.value::numeric)
      from (
        select * from jsonb_each_text(f.costs)
        union all
        select * from jsonb_each_text(excluded.costs)) c
      group by c.key) s),
  created_at = excluded.created_at, started_at = excluded.started_at,
  finished_at = excluded.finished_at;
$$;

-- Returns the cost of each stage of a run so far in US dollars, with failed attempts and children.
-- The sum is the cost of the run.
-- cost_usd: null where no attempt named a price.
create function millrace.stage_costs(p_run bigint) returns table (stage text, cost_usd numeric)
stable
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
return query
select s.name, sum(c.cost_usd)
from millrace.runs r
join millrace.version_stages vs on vs.version_id = r.version_id
join millrace.stages s on s.id = vs.stage_id
left join millrace.attempt_costs(array[p_run]) c on c.stage_id = vs.stage_id
where r.id = p_run
group by s.id, vs.position
order by vs.position;
$$;

-- Returns the cost of all runs of some rows through a pipeline in US dollars, with descendants and
-- pruned runs. Null where no attempt named a price.
create function millrace_evidence.entity_costs(p_pipeline text, p_entity_ids text[])
returns numeric
stable security definer
set callers = people
as $$
select sum(c.cost_usd)
from (
  select t.cost_usd
  from millrace.attempt_costs(array(
    select r.id
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id
    where p.name = p_pipeline and r.entity_id = any (p_entity_ids))) t
  union all
  select k.value::numeric
  from millrace.former_runs f
  join millrace.pipelines p on p.id = f.pipeline_id
  cross join jsonb_each_text(f.costs) k
  where p.name = p_pipeline and f.entity_id = any (p_entity_ids)) c
$$;
