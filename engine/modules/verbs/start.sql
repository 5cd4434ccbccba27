-- Starting: a run of an entity by a person's call, in the lock order: the entities, then the runs

-- Starts a run of an entity, at the first stage or the one named, and returns it. A stage that is
-- named begins whatever its own condition says. A run that is under way is returned as it is; with
-- p_restart it starts over from that stage. p_priority (0 to 9) counts at stages that declare
-- priority.
create function millrace.start(
  p_pipeline text, p_entity_id text, p_stage text default null, p_priority int default null,
  p_restart boolean default false
) returns bigint
language plpgsql
set millrace.plan = by_index
as $$
declare
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
  v_stage_id int;
  v_held text[];
  v_run bigint;
begin
  perform millrace.refuse_priority(p_priority);
  v_held := millrace.lock_rows_named(v_pipeline, array[p_entity_id], true);
  if cardinality(v_held) = 0 then
    raise exception 'table % has no row with % %',
      v_pipeline.entity_table, v_pipeline.entity_key, coalesce(p_entity_id, 'null')
      using errcode = 'MR003', hint = 'Insert the row first.';
  end if;
  v_stage_id := case when p_stage is null then millrace.first_stage(v_pipeline.id)
    else (millrace.stage_named(p_pipeline, p_stage)).id end;
  if p_restart is not true then
    -- Locked, so that a worker that ends it this moment goes first.
    select r.id into v_run
    from millrace.runs r
    where r.pipeline_id = v_pipeline.id
      and r.entity_id = v_held[1]
      and r.status = 'running'
    for no key update;
  end if;
  if v_run is null then
    perform millrace.queue_stage(v_pipeline.id, v_stage_id, v_held, v_held, p_stage is not null,
      p_priority => coalesce(p_priority, 0));
    -- A run whose stages are all skipped is over already.
    v_run := (
      select max(r.id)
      from millrace.runs r
      where r.pipeline_id = v_pipeline.id
        and r.entity_id = v_held[1]);
  end if;
  if (
      select r.status = 'running' and r.priority <> p_priority
      from millrace.runs r
      where r.id = v_run) then
    perform millrace.prioritise_one(v_run, p_priority);
  end if;
  if p_restart then
    perform millrace.note('restart', p_pipeline, p_stage, array[v_run]);
  end if;
  return v_run;
end
$$;

-- Returns the stage at which a pipeline starts unless another is named.
create function millrace.first_stage(p_pipeline_id int) returns int
language plpgsql stable
as $$
begin
  return (
    select vs.stage_id
    from millrace.pipelines p
    join millrace.version_stages vs
      on vs.version_id = p.current_version_id and vs.needs = '{}' and vs.after = '[]'
    where p.id = p_pipeline_id
    order by vs.on_demand, vs.position
    limit 1);
end
$$;
