-- Retrying
--
-- By these calls a person lets runs go on that failed or were cancelled. They wait for the
-- entities, then lock the runs.

-- Tells whether the run's entity has no later run.
create function millrace.is_latest_run(p_run_id bigint) returns boolean
language plpgsql volatile
as $$
begin
  return not exists (
    select
    from millrace.runs r
    join millrace.runs o
      on o.entity_id = r.entity_id and o.pipeline_id = r.pipeline_id and o.id > r.id
    where r.id = p_run_id);
end
$$;

-- Tells whether an attempt counts and is the newest of its stage and run.
create function millrace.is_last_word(p_attempt millrace.attempts) returns boolean
language plpgsql volatile
as $$
begin
  return not p_attempt.superseded and not exists (
    select
    from millrace.attempts n
    where n.run_id = p_attempt.run_id
      and n.stage_id = p_attempt.stage_id
      and n.number > p_attempt.number);
end
$$;

-- Makes the newest attempts of a stage the retries of those before them.
create function millrace.name_parents(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
as $$
begin
  update millrace.attempts a
  set parent_id = (
    select o.id
    from millrace.attempts o
    where o.run_id = a.run_id
      and o.stage_id = a.stage_id
      and o.number = a.number - 1)
  where a.run_id = any (p_run_ids)
    and a.stage_id = p_stage_id
    and a.parent_id is null
    and a.number > 1
    and millrace.is_last_word(a);
end
$$;

-- Makes a new attempt of a stage that failed or was cancelled in runs that go on. Returns the
-- stages with work.
create function millrace.retry_stage(
  p_stage_id int, p_kind text, p_run_ids bigint[]
) returns int[]
language plpgsql
as $$
declare
  v_wake int[] := millrace.hook_retry_kind(p_kind, p_stage_id, p_run_ids);
begin
  if v_wake is null then
    perform millrace.queue_again(p_stage_id, p_run_ids);
    v_wake := array[p_stage_id];
  end if;
  return v_wake;
end
$$;

-- Queues a stage anew as the retry of what it was, and shows it.
create function millrace.queue_again(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
as $$
begin
  perform millrace.queue_attempts(p_stage_id, p_run_ids);
  perform millrace.name_parents(p_stage_id, p_run_ids);
  perform millrace.show_queued(p_stage_id, p_run_ids);
end
$$;

-- Lets held runs go on where they had failed or were cancelled, with new attempts and a fresh
-- allowance; returns how many. All stages that failed or were cancelled go on together, or the run
-- could never end.
create function millrace.retry_runs(p_run_ids bigint[]) returns int
language plpgsql
as $$
declare
  v_stage record;
  v_retried bigint[];
  v_wake int[] := '{}';
begin
  v_retried := array(
    select r.id
    from millrace.runs r
    -- Asked under the locks: an entity may have been queued anew since the runs were chosen.
    where r.id = any (p_run_ids)
      and r.status in ('failed', 'cancelled')
      and millrace.is_latest_run(r.id)
      and exists (
        select
        from millrace.attempts a
        where a.run_id = r.id
          and a.state in ('failed', 'cancelled')
          and millrace.is_last_word(a))
    order by r.id);
  update millrace.runs r
  set status = 'running', finished_at = null, failed_stage_id = null, error_code = null
  where r.id = any (v_retried);
  insert into millrace.child_tallies (fan_out_id, recount)
  select distinct r.fan_out_id, true
  from millrace.runs r
  where r.id = any (v_retried)
    and r.fan_out_id is not null;
  for v_stage in
    select a.stage_id, s.kind, array_agg(a.run_id order by a.run_id) as run_ids
    from millrace.attempts a
    join millrace.stages s on s.id = a.stage_id
    where a.run_id = any (v_retried)
      and a.state in ('failed', 'cancelled')
      and millrace.is_last_word(a)
    group by a.stage_id, s.kind
    order by a.stage_id
  loop
    -- The retry of one stage may fail there and then, and its run with it.
    v_wake := v_wake || millrace.retry_stage(
      v_stage.stage_id, v_stage.kind, millrace.running_of(v_stage.run_ids));
  end loop;
  perform millrace.wake(v_wake || millrace.hook_continue(v_retried));
  return cardinality(v_retried);
end
$$;

-- Raises MR004 about a run whose parent has given up its children: its parent's word on it is
-- spoken, and a child that went on alone would change nothing.
create function millrace.refuse_orphan(p_run millrace.runs) returns void
language plpgsql stable
as $$
declare
  v_parent millrace.runs;
begin
  select r.* into v_parent
  from millrace.fan_outs f
  join millrace.runs r on r.id = f.run_id
  where f.id = p_run.fan_out_id
    and f.state in ('abandoned', 'closed');
  if found then
    raise exception 'run % cannot go on: it is a child of run %, which is %',
      p_run.id, v_parent.id, v_parent.status
      using errcode = 'MR004', hint = case
        when v_parent.status in ('failed', 'cancelled') then format(
          'Retry the parent, which retries its children that failed: select millrace.retry(%s).',
          v_parent.id)
        else 'The parent went on without it: start its row anew, by itself, with millrace.start() '
          || 'or by queueing a stage.' end;
  end if;
end
$$;

-- Retries one run.
create function millrace.retry_one(p_run bigint, p_stage text) returns void
language plpgsql
as $$
declare
  v_run millrace.runs := millrace.hold_run(p_run);
  v_stage_id int;
  v_state millrace.attempt_state;
begin
  if p_stage is not null then
    v_stage_id := (millrace.stage_named(
      (select p.name from millrace.pipelines p where p.id = v_run.pipeline_id),
      p_stage)).id;
  end if;
  if not millrace.is_latest_run(p_run) then
    raise exception 'run % cannot be retried: its entity % has a later run', p_run, v_run.entity_id
      using errcode = 'MR004', hint = format(
        'Retry that: select millrace.retry(millrace.run_of(%L, %L)); or queue a stage of the row.',
        (select p.name from millrace.pipelines p where p.id = v_run.pipeline_id),
        v_run.entity_id);
  end if;
  perform millrace.refuse_orphan(v_run);
  select a.state into v_state
  from millrace.attempts a
  where a.run_id = p_run
    and a.stage_id = v_stage_id
  order by a.number desc
  limit 1;
  if (v_stage_id is not null and coalesce(v_state not in ('failed', 'cancelled'), true))
      or millrace.retry_runs(array[p_run]) = 0 then
    raise exception 'run % has nothing to retry%: it is %',
      p_run, coalesce(' at stage ' || p_stage, ''), v_run.status
      using errcode = 'MR004', hint =
        'Only a stage that failed or was cancelled, in a run that is over, can be retried.';
  end if;
end
$$;
