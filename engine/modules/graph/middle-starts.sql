-- Starts in the middle: the results that a run takes over for the stages before

-- Copies results from each entity's previous run into its new run. Leaves out p_stage, the stages
-- that depend on it, and stages that were skipped on demand or by an ending. Raises an error where
-- prune() has deleted a result that p_stage or a stage after it needs.
create function millrace.copy_earlier_results(
  p_stage millrace.version_stages, p_run_ids bigint[]
)
set plan = by_key
as $$
  v_copied int[];

with copied as (
  insert into millrace.attempts (run_id, stage_id, number, parent_id, state, error, retry_count,
    created_at, started_at, finished_at, output, deleted_after)
  select r.id, d.stage_id, 1, d.id, d.state, d.error, d.retry_count,
    d.created_at, d.started_at, d.finished_at, d.output, d.deleted_after
  from millrace.runs r
  cross join lateral (
    select coalesce(r.copy_of, (
      select o.id
      from millrace.runs o
      where o.entity_id = any (array[r.entity_id])
        and o.pipeline_id = r.pipeline_id and o.id < r.id
      order by o.entity_id desc, o.id desc
      limit 1)) as id
    offset 0) o
  -- by key
  cross join lateral (
    select a.*
    from millrace.done_attempts a
    where a.run_id = o.id
      and a.stage_id = any (array(
        select vs.stage_id
        from millrace.version_stages vs
        where vs.version_id = p_stage.version_id
          and vs.stage_id <> all (p_stage.dependents || p_stage.stage_id)))
      and (a.error ?| '{on_demand,ended}') is not true
    offset 0) d
  where r.id = any (p_run_ids)
  order by r.id, d.id
  returning stage_id
)
select array_agg(c.stage_id) into v_copied from copied c;
perform millrace.refuse_deleted(p_run_ids, p_stage.dependents || p_stage.stage_id);
perform millrace.note_pulses('copied', v_copied);
$$;

-- Returns the stage at which a pipeline starts unless another is named.
create function millrace.first_stage(p_pipeline_id int) returns int
stable
as $$
return (
  select vs.stage_id
  from millrace.pipelines p
  join millrace.version_stages vs
    on vs.version_id = p.current_version_id and vs.is_first
  where p.id = p_pipeline_id
  order by vs.on_demand, vs.position
  limit 1);
$$;
