-- Waking stages
--
-- A wake-up says "there is work at this stage" and nothing else. It may be lost, doubled or late;
-- the sweep makes good.
--
-- No lost wake-up: who enqueues takes the stage's advisory lock in shared mode (until its commit),
-- and then, in a fresh snapshot, looks for a live worker or an unanswered wake-up. A leaving worker
-- tries the same lock exclusively and looks at the queue again before it signs off. So either the
-- worker sees the work, or the enqueuer sees that the worker has gone.

-- Chooses those of the stages that are to be woken now, and notes each as woken. A worker that
-- scales its own stage out names it in p_scaling_out, since it is itself alive.
create function millrace.stages_to_wake(
  p_stage_ids int[], p_scaling_out int default null
) returns int[]
language plpgsql volatile
as $$
declare
  v_now timestamptz := millrace.now();
  -- Above read committed there is no fresh snapshot to look at, so it always wakes.
  v_look boolean := current_setting('transaction_isolation') = 'read committed';
  v_wakes int[];
begin
  perform pg_advisory_xact_lock_shared(hashtext('millrace.stage'), s.id)
  from (select distinct u.id from unnest(p_stage_ids) u(id) order by u.id) s;
  v_wakes := array(
    select s.id
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where s.id = any (p_stage_ids)
      and s.enabled
      and not s.bypassed
      and p.enabled
      and s.kind <> 'gate'
      and (not v_look or (
        (s.id is not distinct from p_scaling_out or millrace.live_workers(s.id) = 0)
        and not exists (
          select
          from millrace.wake_ups r
          where r.stage_id = s.id
            and r.woken_at > v_now - interval '2 seconds')
        -- A stage at its limits is woken when a slot is freed, or by the sweep.
        and (s.limits is null or millrace.hook_has_room(s)))));
  if cardinality(v_wakes) > 0 then
    insert into millrace.wake_ups (stage_id, woken_at)
    select r, v_now
    from unnest(v_wakes) r
    order by r;
  end if;
  return v_wakes;
end
$$;

-- Lists stages as the functions read a wake-up: pipeline, stage, function. A gate has none.
create function millrace.wake_list(p_stage_ids int[]) returns jsonb
language plpgsql stable
as $$
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
      'pipeline', p.name, 'stage', s.name, 'function', s.function_name) order by s.id), '[]')
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where s.id = any (p_stage_ids)
      and s.kind <> 'gate');
end
$$;

-- Wakes those of the stages that have no live worker and no unanswered wake-up; returns how many.
create function millrace.wake(p_stage_ids int[]) returns int
language plpgsql
as $$
declare
  v_stage jsonb;
  v_woken int := 0;
begin
  for v_stage in
    select w
    from jsonb_array_elements(millrace.wake_list(millrace.stages_to_wake(p_stage_ids))) w
  loop
    v_woken := v_woken + millrace.post(v_stage ->> 'function', v_stage - 'function')::int;
  end loop;
  return v_woken;
end
$$;

-- Wakes stages for a worker, which has noted these wake-ups already and could not deliver them: so
-- they are posted without a second look.
create function public.millrace_wake(p_stages jsonb) returns jsonb
language plpgsql security definer
set millrace.plan = by_key
as $$
declare
  v_stage jsonb;
  v_woken int := 0;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if jsonb_typeof(p_stages) is distinct from 'array' then
    raise exception 'p_stages is %, but must be a list', coalesce(jsonb_typeof(p_stages), 'null')
      using errcode = 'MR002', hint = 'Send [{"pipeline": "…", "stage": "…"}].';
  end if;
  for v_stage in
    select distinct jsonb_build_object(
      'pipeline', s.value ->> 'pipeline', 'stage', n.name, 'function', n.function_name)
    from jsonb_array_elements(p_stages) s
    cross join lateral millrace.stage_named(s.value ->> 'pipeline', s.value ->> 'stage') n
  loop
    v_woken := v_woken + millrace.post(v_stage ->> 'function', v_stage - 'function')::int;
  end loop;
  return jsonb_build_object('woken', v_woken);
end
$$;
comment on function public.millrace_wake(jsonb) is
  'Asks the database to wake stages that a worker could not reach itself.';
