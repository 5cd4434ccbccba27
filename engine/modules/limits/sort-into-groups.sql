-- Concurrency groups: how the queue of a stage is sorted
--
-- A stage with the limit concurrency has a group for each key. Whoever queues an attempt writes its
-- group and inserts an arrival, which the next claim reads (group-turns.sql). A gate reads the
-- groups of its queue itself.

-- Lists the groups of runs at a stage, by the keys of their rows, read here where p_keys is null.
create function millrace.groups_of_runs(
  p_stage millrace.stages, p_run_ids bigint[], p_keys text[] default null
) returns text[]
as $$
begin
  return array(
    select '0' || coalesce(e.key, '')
    from unnest(p_run_ids, coalesce(p_keys, (millrace.values_of_entities(
      p_stage.pipeline_id, array(
        select r.entity_id
        from unnest(p_run_ids) with ordinality i(id, place)
        left join millrace.runs r on r.id = i.id
        order by i.place), false, p_stage.name)).keys)) with ordinality e(id, key, place)
    order by e.place);
end
$$;

-- Gives live attempts the group of their entity as it is now, and announces those queued.
create function millrace.place_attempts(p_stage millrace.stages, p_attempt_ids bigint[])
as $$
declare
  v_run_ids bigint[] := array(
    select a.run_id
    from unnest(p_attempt_ids) with ordinality i(id, place)
    left join millrace.attempts a on a.id = i.id
    order by i.place);
begin
  if cardinality(p_attempt_ids) = 0 then
    return;
  end if;
  with placed as (
    update millrace.attempts a
    set concurrency_group = u.concurrency_group
    from unnest(p_attempt_ids, millrace.groups_of_runs(p_stage, v_run_ids))
      u(id, concurrency_group)
    where a.id = u.id and a.state in ('queued', 'started', 'waiting')
    returning a.concurrency_group, a.state
  )
  insert into millrace.arrivals (stage_id, concurrency_group)
  select distinct p_stage.id, p.concurrency_group
  from placed p
  where p.state = 'queued' and p_stage.kind <> 'gate';
end
$$;

-- Sorts attempts that were just queued at a stage, until they are queued again.
create function millrace.assign_groups(p_stage_id int, p_run_ids bigint[])
as $$
declare
  v_stage millrace.stages;
begin
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  if v_stage.has_groups then
    perform millrace.place_attempts(v_stage, array(
      select a.id
      from unnest(p_run_ids) r
      join millrace.attempts a on a.run_id = r and a.stage_id = p_stage_id and a.state = 'queued'));
  end if;
end
$$;

-- Sorts attempts that were queued before the stage had groups.
create function millrace.sort_ungrouped(p_stage millrace.stages, p_limit int)
as $$
begin
  perform millrace.place_attempts(p_stage, array(
    select a.id
    from unnest(millrace.live_attempts(p_stage.id, p_limit)) i
    join millrace.attempts a on a.id = i
    where a.concurrency_group is null
    for update of a skip locked));
end
$$;

-- Deletes the groups of stages that a new definition sorts by something else, and the slots of
-- those that it no longer counts.
create function millrace.forget_groups(p_pipeline_id int, p_definition jsonb)
as $$
declare
  v_stage record;
begin
  for v_stage in
    select t.id,
      millrace.key_in(t.limits) is distinct from millrace.key_in(s -> 'limits')
        or (t.kind = 'gate') <> (s ->> 'kind' = 'gate') as sorted_anew,
      millrace.counts_in_flight(s -> 'limits') as counted
    from millrace.stages t
    join jsonb_array_elements(p_definition -> 'stages') s on s ->> 'name' = t.name
    where t.pipeline_id = p_pipeline_id and t.limits is not null
    order by t.id
  loop
    if v_stage.sorted_anew or not v_stage.counted then
      perform millrace.forget_in_flight(v_stage.id);
    end if;
    continue when not v_stage.sorted_anew;
    delete from millrace.concurrency_groups g where g.stage_id = v_stage.id;
    delete from millrace.arrivals a where a.stage_id = v_stage.id;
    update millrace.attempts a
    set concurrency_group = null
    from (
      select o.id
      from unnest(millrace.live_attempts(v_stage.id, null)) i
      join millrace.attempts o on o.id = i
      where o.concurrency_group is not null
      for update of o skip locked) t
    where a.id = t.id;
  end loop;
end
$$;

-- Sorts the queues of a pipeline's stages, counts what is in work, and announces every group, since
-- a limit may have been raised.
create function millrace.attach_groups(p_pipeline millrace.pipelines)
as $$
declare
  v_stage millrace.stages;
begin
  for v_stage in
    select s.*
    from millrace.stages s
    where s.pipeline_id = p_pipeline.id
    order by s.id
  loop
    if v_stage.has_groups then
      perform millrace.sort_ungrouped(v_stage, null);
      insert into millrace.arrivals (stage_id, concurrency_group)
      select distinct a.stage_id, a.concurrency_group
      from millrace.attempts a
      where v_stage.kind <> 'gate'
        and a.stage_id = v_stage.id
        and a.concurrency_group is not null
        and a.queue_at is not null
        and a.state = 'queued';
    end if;
    perform millrace.count_attempts(v_stage, null);
  end loop;
end
$$;
