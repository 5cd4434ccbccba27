-- Operations: retrying, starting, ending, skipping and hurrying a stage by hand

-- Retries one run, which goes on where it failed or was cancelled.
create function millrace.retry_one(p_run bigint, p_stage text)
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
begin
  if p_stage is not null
      and millrace.state_of(p_run, (v_held.version_stage).stage_id) not in ('failed', 'cancelled')
      or millrace.retry_runs(array[p_run]) = 0 then
    raise exception 'run % has nothing to retry%: it is %',
      p_run, coalesce(' at stage ' || p_stage, ''), (v_held.run).status
      using errcode = 'MR004', hint =
        'Only a stage that failed or was cancelled, in a run that is over, can be retried.';
  end if;
end
$$;

-- Starts a pending stage of a running run, whatever its thresholds and its condition.
create function millrace.start_one(p_run bigint, p_stage text)
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage_id int := (v_held.version_stage).stage_id;
  v_state text := millrace.state_of(p_run, v_stage_id);
begin
  if (v_held.run).status <> 'running' or v_state <> 'pending' then
    perform millrace.refuse_operation(p_run, p_stage, 'started',
      format('%s, and the run is %s', v_state, (v_held.run).status),
      'Only a pending stage of a running run can be started; '
      'use millrace.retry(run) or millrace.reset(run, stage).');
  end if;
  perform millrace.wake(millrace.enqueue_stage(array[p_run], v_stage_id, true));
end
$$;

-- Completes the live attempt of a stage by hand with a result, or fails it without one. Its token,
-- job or children are void.
create function millrace.end_stage(
  p_run bigint,
  p_stage text,
  p_result jsonb,
  p_message text default null,
  p_permanent boolean default null)
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage_id int := (v_held.version_stage).stage_id;
  v_outcome text := case when p_result is null then 'failed' else 'completed' end;
  v_attempt millrace.attempts;
  v_item millrace.work;
  v_done record;
begin
  select a.*
  into v_attempt
  from millrace.attempts a
  where a.run_id = p_run
    and a.stage_id = v_stage_id
    and a.state in ('queued', 'started', 'waiting')
  for update;
  if not found then
    perform millrace.refuse_operation(
      p_run, p_stage, v_outcome, millrace.state_of(p_run, v_stage_id),
      'Only a stage that is queued, started or waiting can be ended by hand.');
  end if;
  perform millrace.abandon_fan_outs(array[p_run], array[v_stage_id]);
  update millrace.attempts a
  set token = null, service = 'by_hand'
  where a.id = v_attempt.id
  returning a.* into v_attempt;
  v_done := millrace.apply_outcomes_guarded(array[millrace.work_on(
    v_attempt, (v_held.run).entity_id, v_outcome, p_result, case v_outcome
      when 'failed' then jsonb_build_object('code', 'failed_by_hand',
        'message', coalesce(p_message, 'failed by hand'),
        'permanent', coalesce(p_permanent, false)) end)]);
  v_item := v_done.items[1];
  if v_item.verdict = 'busy' then
    raise exception 'stage % of run % cannot be ended now: %', p_stage, p_run, v_item.reason
      using errcode = 'MR004', hint = 'Nothing was changed; try again shortly.';
  elsif v_outcome = 'completed' and v_item.outcome = 'failed' then
    raise exception 'stage % of run % cannot be completed: %', p_stage, p_run, v_item.reason
      using errcode = 'MR004',
        hint = 'Correct what its apply function or a trigger of yours refuses.';
  end if;
  perform millrace.wake(v_done.ready);
end
$$;

-- Skips a stage of one run.
create function millrace.skip_one(p_run bigint, p_stage text)
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage millrace.version_stages := v_held.version_stage;
  v_state text := millrace.state_of(p_run, v_stage.stage_id);
  v_wake int[];
begin
  if v_state in ('completed', 'skipped') then
    perform millrace.refuse_operation(p_run, p_stage, 'skipped', v_state,
      'It is done. To go on without its result: millrace.reset(run, stage), then skip it.');
  elsif v_state = 'pending' and ((v_held.run).status <> 'running' or exists (
      select from unnest(v_stage.needs) n where not millrace.is_done(p_run, n))) then
    perform millrace.refuse_operation(p_run, p_stage, 'skipped',
      'pending, and its needs are not done', 'Skip or finish its needs first.');
  end if;
  perform millrace.supersede(array[p_run], array[v_stage.stage_id]);
  v_wake := millrace.reopen_run(v_held.run, array[v_stage.stage_id]);
  v_wake := v_wake || millrace.skip_stage(v_stage.stage_id, millrace.running_of(array[p_run]),
    '{"code": "skipped", "message": "skipped by hand"}');
  perform millrace.wake(v_wake || millrace.begin_branches(array[p_run]));
end
$$;

-- Makes a run's attempts in backoff, or those of one stage, due now; returns how many. What a quota
-- holds back stays.
create function millrace.hurry_one(p_run bigint, p_stage text) returns int
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_now timestamptz := millrace.now();
  v_hurried bigint[] := array(
    select a.id
    from millrace.attempts a
    where a.run_id = p_run
      and a.state = 'queued'
      and a.queue_at > v_now
      and not a.held
      and (p_stage is null or a.stage_id = (v_held.version_stage).stage_id)
    order by a.id
    for update);
  v_stages int[] := array(
    select distinct a.stage_id
    from millrace.attempts a
    where a.id = any (v_hurried));
begin
  if cardinality(v_hurried) = 0 then
    raise exception 'run % has nothing that waits to be tried again%',
      p_run, coalesce(' at stage ' || p_stage, '')
      using errcode = 'MR004', hint = 'Only a retry in backoff can be hurried: '
        'select * from millrace.timeline(' || p_run || ').';
  end if;
  update millrace.attempts a set queue_at = v_now where a.id = any (v_hurried);
  perform millrace.show_status((v_held.run).pipeline_id, array[(v_held.run).entity_id]);
  perform millrace.wake(v_stages);
  return cardinality(v_hurried);
end
$$;
