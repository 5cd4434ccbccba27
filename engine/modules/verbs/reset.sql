-- Operations: starting stages of a run, or its failed children, over.

-- Resets a stage of one run, or all of it.
create function millrace.reset_one(p_run bigint, p_stage text)
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage millrace.version_stages := v_held.version_stage;
  v_stages int[] := v_stage.dependents || v_stage.stage_id;
  v_wake int[];
begin
  if p_stage is null then
    v_stages := array(
      select vs.stage_id
      from millrace.version_stages vs
      where vs.version_id = (v_held.run).version_id);
  end if;
  perform millrace.supersede(array[p_run], v_stages);
  if p_stage is not null then
    perform millrace.forget_given(array[p_run], v_stages);
  end if;
  v_wake := millrace.reopen_run(v_held.run, v_stages);
  if (select s.has_unchanged from millrace.stages s where s.id = v_stage.stage_id) then
    v_wake := v_wake || millrace.begin_stage(v_stage.stage_id,
      millrace.open_runs(v_stage.stage_id, array[p_run]), p_anew => true);
  end if;
  perform millrace.wake(v_wake || millrace.begin_branches(array[p_run]));
end
$$;

-- Resets the failed children of a stage of one run; returns how many.
create function millrace.reset_failed_children(p_run bigint, p_stage text) returns int
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage_id int := (v_held.version_stage).stage_id;
  v_fan_out millrace.fan_outs;
  v_failed record;
  v_entities text[];
  v_stages int[];
  v_wake int[];
begin
  select f.*
  into v_fan_out
  from millrace.fan_outs f
  where f.run_id = p_run and f.stage_id = v_stage_id
  order by f.id desc
  limit 1;
  if not found then
    perform millrace.refuse_operation(p_run, p_stage, 'reset by its children', 'without any',
      'Only a map or pipeline stage that has spawned has children; '
      'use millrace.reset(run, stage).');
  elsif millrace.state_of(p_run, v_stage_id) = 'pending' then
    perform millrace.refuse_operation(p_run, p_stage, 'reset by its children', 'pending',
      'Its needs run again; it spawns anew when they are done.');
  end if;
  select array_agg(r.id) as ids, array_agg(r.entity_id) as entities, count(*) as n
  into v_failed
  from millrace.runs r
  where r.fan_out_id = v_fan_out.id and r.status in ('failed', 'cancelled');
  if v_failed.n = 0 then
    return 0;
  elsif v_fan_out.state = 'open' then
    -- The stage still waits: its children go on, but for those whose row somebody holds.
    v_entities := millrace.lock_entities(
      v_fan_out.child_pipeline_id, v_failed.entities, false);
    return millrace.retry_runs(array(
      select r.id
      from millrace.runs r
      where r.id = any (v_failed.ids)
        and r.entity_id = any (v_entities)
      order by r.id
      for no key update skip locked));
  end if;
  -- Not those that a threshold of this one has begun: it still holds.
  v_stages := array(
    select distinct d
    from millrace.version_stages vs
    cross join lateral unnest(vs.dependents || vs.stage_id) d
    where vs.version_id = (v_held.run).version_id
      and v_stage_id = any (vs.needs)) || v_stage_id;
  perform millrace.supersede(array[p_run], v_stages);
  v_wake := millrace.reopen_run(v_held.run, v_stages);
  v_wake := v_wake || millrace.retry_stage(v_stage_id, (
    select s.kind from millrace.stages s where s.id = v_stage_id),
    millrace.running_of(array[p_run]));
  perform millrace.wake(v_wake || millrace.begin_branches(array[p_run]));
  return v_failed.n;
end
$$;
