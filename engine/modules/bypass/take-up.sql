-- Taking up: starting rows, which a bypass has left out, at the stage

-- Starts remembered rows at a stage, the oldest first, for up to five seconds. Returns how many. A
-- row that is locked, has a live run or cannot start stays remembered. Raises MR004 while the stage
-- is bypassed or its budget spent, or where the current version lacks the stage.
create function millrace.take_up_rows(p_stage millrace.stages, p_request jsonb) returns jsonb
as $$
  v_limit int := coalesce((p_request ->> 'count')::numeric::int, 1000);
  v_until timestamptz := clock_timestamp() + interval '5 seconds';
  v_by_name boolean := (
    select vs.on_demand
    from millrace.pipelines p
    join millrace.version_stages vs
      on vs.version_id = p.current_version_id and vs.stage_id = p_stage.id
    where p.id = p_stage.pipeline_id);
  v_ids text[];
  v_done record;
  v_started int := 0;

if v_limit not between 1 and 10000 then
  raise exception 'MR002: p_count is %, but must be from 1 to 10000', v_limit
    using hint = 'Call it again for more.';
elsif p_stage.bypassed or p_stage.when_spent = 'bypass' and millrace.is_spent(p_stage) then
  raise exception 'MR004: stage % is bypassed or its budget spent: all would be left out again',
    p_stage.name
    using hint =
      'End that first, select millrace.end_bypass(pipeline, stage), or wait for the next window.';
elsif v_by_name is null then
  raise exception 'MR004: stage % is not part of the pipeline''s current version', p_stage.name
    using hint = 'Start the rows at another: millrace.start().';
end if;
v_ids := array(
  select b.entity_id
  from millrace.bypassed b
  where b.stage_id = p_stage.id
    and (
      select r.id
      from millrace.runs r
      where r.pipeline_id = p_stage.pipeline_id and r.entity_id = b.entity_id
        and r.status = 'running'
      limit 1) is null
  order by b.at, b.run_id
  limit v_limit);
for v_first in 1 .. cardinality(v_ids) by 500 loop
  exit when clock_timestamp() >= v_until;
  v_done := millrace.in_halves(
    millrace.lock_present(p_stage.pipeline_id, v_ids[v_first:v_first + 499]),
    format('select millrace.start_remembered(s, $1, %L) from millrace.stages s where s.id = %s',
      v_by_name, p_stage.id), v_until);
  v_started := v_started + v_done.done;
  perform millrace.report('error', 'not_taken_up',
    format('Row %s cannot be taken up at stage %s: %s', f.key, p_stage.name, f.why))
  from unnest(v_done.refused) f;
end loop;
return jsonb_build_object('started', v_started);
$$;

-- Starts those locked rows at the stage whose latest run is over and has skipped it by the bypass.
-- Starts rows whose runs are all pruned at the first stage. Returns how many rows it started.
-- Deletes the memory of all rows, but for those whose live run has skipped the stage.
-- p_by_name: whether the stage is on demand, so that the start must name it.
create function millrace.start_remembered(
  p_stage millrace.stages, p_ids text[], p_by_name boolean
) returns int
as $$
  v_ready text[];
  v_pruned text[];

with latest as materialized (
  select i.id, i.ordinal, r.id as run_id, r.status,
      w.state = 'skipped' and w.error ->> 'code' = 'bypassed' as left_out
  from unnest(p_ids) with ordinality i(id, ordinal)
  left join lateral (
    select o.id, o.status
    from millrace.runs o
    where o.entity_id = any (array[i.id])
      and o.pipeline_id = p_stage.pipeline_id
    order by o.entity_id desc, o.id desc
    limit 1) r on true
  left join lateral millrace.newest_attempt(r.id, p_stage.id) w on true
), forgotten as (
  delete from millrace.bypassed b
  using latest l
  where b.stage_id = p_stage.id and b.entity_id = l.id
    and (l.status is distinct from 'running' or l.left_out is not true)
  returning l.*
)
select coalesce(array_agg(f.id order by f.ordinal) filter (where f.left_out), '{}'),
  coalesce(array_agg(f.id order by f.ordinal) filter (where f.run_id is null), '{}')
into v_ready, v_pruned
from forgotten f;
perform millrace.queue_stage(p_stage.pipeline_id, p_stage.id, v_ready, v_ready,
  case when p_by_name then 'named' else 'due' end)
where v_ready <> '{}';
perform millrace.queue_stage(p_stage.pipeline_id, millrace.first_stage(p_stage.pipeline_id),
  v_pruned, v_pruned, 'due')
where v_pruned <> '{}';
return cardinality(v_ready || v_pruned);
$$;
