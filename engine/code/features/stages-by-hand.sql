-- Operations: starting, completing, failing and skipping a stage by hand.

-- Starts a pending stage of a running run. enqueue_stage() refuses one whose needs are not done;
-- its thresholds and its own condition are what the person overrules.
create or replace function millrace.start_stage(p_run bigint, p_stage text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
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
  perform millrace.note_run('start_stage', p_run, p_stage);
end
$$;
comment on function millrace.start_stage(bigint, text) is
  'Starts a pending stage whose needs are done, without waiting for its thresholds.';

-- Ends the live attempt of a stage as a person says. Its token, job or children are void: whoever
-- has it in work hears that it comes too late, also where it would have said the same.
create or replace function millrace.end_stage(
  p_run bigint,
  p_stage text,
  p_outcome text,
  p_result jsonb,
  p_error jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage_id int := (v_held.version_stage).stage_id;
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
      p_run, p_stage, p_outcome, millrace.state_of(p_run, v_stage_id),
      'Only a stage that is queued, started or waiting can be ended by hand.');
  end if;
  perform millrace.abandon_fan_outs(array[p_run], array[v_stage_id]);
  update millrace.attempts a set token = null, service = 'by_hand' where a.id = v_attempt.id;
  v_item.ord := 1;
  v_item.attempt_id := v_attempt.id;
  v_item.outcome := p_outcome;
  v_item.result := p_result;
  v_item.error := p_error;
  v_item.service := 'by_hand';
  v_item.job_id := v_attempt.job_id;
  v_item.run_id := p_run;
  v_item.stage_id := v_stage_id;
  v_item.entity_id := (v_held.run).entity_id;
  v_item.was := v_attempt.state;
  v_done := millrace.apply_outcomes_guarded(array[v_item]);
  v_item := v_done.items[1];
  if v_item.verdict = 'busy' then
    raise exception 'stage % of run % cannot be ended now: %', p_stage, p_run, v_item.reason
      using errcode = 'MR004', hint = 'Nothing was changed; try again shortly.';
  elsif p_outcome = 'completed' and v_item.outcome = 'failed' then
    raise exception 'stage % of run % cannot be completed: %', p_stage, p_run, v_item.reason
      using errcode = 'MR004',
        hint = 'Correct what its apply function or a trigger of yours refuses.';
  end if;
  perform millrace.wake(v_done.ready);
end
$$;

create or replace function millrace.complete_stage(p_run bigint, p_stage text, p_result jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
begin
  if p_result is null then
    raise exception 'p_result is null, but must be the result of stage %', p_stage
      using errcode = 'MR002', hint = 'Give the result as jsonb; ''null''::jsonb is one.';
  end if;
  perform millrace.end_stage(p_run, p_stage, 'completed', p_result, null);
  perform millrace.note_run('complete', p_run, p_stage);
end
$$;
comment on function millrace.complete_stage(bigint, text, jsonb) is
  'Completes a queued, started or waiting stage with a result given by hand.';

-- Fails a stage of one run.
create or replace function millrace.fail_one(
  p_run bigint,
  p_stage text,
  p_message text,
  p_permanent boolean)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.end_stage(p_run, p_stage, 'failed', null, jsonb_build_object(
    'code', 'failed_by_hand',
    'message', coalesce(p_message, 'failed by hand'),
    'permanent', coalesce(p_permanent, false)));
end
$$;

create or replace function millrace.fail_stage(
  p_run bigint,
  p_stage text,
  p_message text,
  p_permanent boolean default false)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
begin
  perform millrace.fail_one(p_run, p_stage, p_message, p_permanent);
  perform millrace.note_run('fail', p_run, p_stage,
    jsonb_build_object('message', left(p_message, 2000), 'permanent', p_permanent));
end
$$;
comment on function millrace.fail_stage(bigint, text, text, boolean) is
  'Fails a queued, started or waiting stage by hand; it is retried as its policy says, unless '
  'permanent.';

-- Skips a stage of one run.
create or replace function millrace.skip_one(p_run bigint, p_stage text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
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
  perform millrace.supersede(p_run, array[v_stage.stage_id]);
  v_wake := millrace.reopen_run(v_held.run, array[v_stage.stage_id]);
  v_wake := v_wake || millrace.skip_stage(v_stage.stage_id, millrace.running_of(array[p_run]),
    '{"code": "skipped", "message": "skipped by hand"}');
  perform millrace.wake(v_wake || millrace.begin_open(array[p_run]));
end
$$;

create or replace function millrace.skip(p_run bigint, p_stage text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
begin
  perform millrace.skip_one(p_run, p_stage);
  perform millrace.note_run('skip', p_run, p_stage);
end
$$;
comment on function millrace.skip(bigint, text) is
  'Goes on without a stage: one that is queued, started, waiting, failed, cancelled, or held back '
  'by a threshold. Its result is null to those that need it.';
