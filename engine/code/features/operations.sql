-- Chapter 24: a stage as an operation
--
-- What a person does to one stage of one run, a function a verb: start_stage, complete_stage, fail_stage, skip, reset; and
-- retry (chapter retrying), reset_children. The view millrace.operations tells of each stage whether it can start, is started, is
-- done. All of them wait for the row and the run, in the lock order, and raise MR003 or MR004 with the remedy.

-- The run, held with its entity, and the stage of its version.
create or replace function millrace.hold_stage(p_run bigint, p_stage text, out run millrace.runs, out version_stage millrace.version_stages, p_whole boolean default false)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline text;
begin
  if p_stage is null and not p_whole then
    raise exception 'p_stage is null, but must be the name of a stage' using errcode = 'MR002', hint = 'Name one: select stage, state from millrace.operations where run_id = …';
  end if;
  perform millrace.hold_runs(array[p_run]);
  select r.* into run from millrace.runs r where r.id = p_run;
  if not found then
    raise exception 'there is no run %', coalesce(p_run::text, 'null') using errcode = 'MR003', hint = 'Look it up: select * from millrace.operations where entity_id = ''…''.';
  end if;
  if not millrace.is_latest_run(p_run) then
    raise exception 'run % is not the latest of its entity %', p_run, run.entity_id using errcode = 'MR004', hint = 'Use the latest: select max(id) from millrace.runs where entity_id = ''…''.';
  end if;
  perform millrace.refuse_orphan(run);
  select p.name into v_pipeline from millrace.pipelines p where p.id = run.pipeline_id;
  if p_stage is not null then
    select vs.* into version_stage from millrace.version_stages vs where vs.version_id = run.version_id and vs.stage_id = (millrace.stage_named(v_pipeline, p_stage)).id;
    if not found then
      raise exception 'stage % is not part of the version that run % began with', p_stage, p_run using errcode = 'MR004', hint = 'Name a stage of its version: select stage from millrace.operations where run_id = ' || p_run || '.';
    end if;
  end if;
end
$$;
comment on function millrace.hold_stage(bigint, text, boolean) is 'Locks a run and its entity, waiting for both; MR003 or MR004 when there is no such run or stage, or a later run.';

create or replace function millrace.state_of(p_run_id bigint, p_stage_id int) returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((select a.state::text from millrace.attempts a where a.run_id = p_run_id and a.stage_id = p_stage_id and not a.superseded order by a.number desc limit 1), 'pending');
end
$$;
comment on function millrace.state_of(bigint, int) is 'State of a stage in a run: that of its newest attempt that counts, else pending.';

create or replace function millrace.refuse_operation(p_run bigint, p_stage text, p_verb text, p_state text, p_hint text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'stage % of run % cannot be %: it is %', p_stage, p_run, p_verb, p_state using errcode = 'MR004', hint = p_hint;
end
$$;
comment on function millrace.refuse_operation(bigint, text, text, text, text) is 'Raises MR004 about a verb that the state of a stage does not allow.';

create or replace function millrace.start_stage(p_run bigint, p_stage text) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage millrace.version_stages := v_held.version_stage;
  v_state text := millrace.state_of(p_run, v_stage.stage_id);
begin
  if (v_held.run).status <> 'running' or v_state <> 'pending' then
    perform millrace.refuse_operation(p_run, p_stage, 'started', format('%s, and the run is %s', v_state, (v_held.run).status), 'Only a pending stage of a running run can be started; use millrace.retry(run) or millrace.reset(run, stage).');
  end if;
  -- enqueue_stage() refuses a stage whose needs are not done; its thresholds are what the person overrules.
  perform millrace.wake(millrace.enqueue_stage(array[p_run], v_stage.stage_id));
end
$$;
comment on function millrace.start_stage(bigint, text) is 'Starts a pending stage whose needs are done, without waiting for its thresholds.';

-- A live attempt's end as a person says it. Its token, job or children are void.
create or replace function millrace.end_stage(p_run bigint, p_stage text, p_verb text, p_outcome text, p_result jsonb, p_error jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_attempt millrace.attempts;
  v_done record;
begin
  select a.* into v_attempt from millrace.attempts a
  where a.run_id = p_run and a.stage_id = (v_held.version_stage).stage_id and a.state in ('queued', 'started', 'waiting') for update;
  if not found then
    perform millrace.refuse_operation(p_run, p_stage, p_verb, millrace.state_of(p_run, (v_held.version_stage).stage_id), 'Only a stage that is queued, started or waiting can be ended by hand.');
  end if;
  perform millrace.abandon_fan_outs(array[p_run], array[v_attempt.stage_id]);
  -- Whoever has it in work, a worker or a job, hears that it comes too late, also where it would have said the same.
  update millrace.attempts a set token = null, service = 'by_hand' where a.id = v_attempt.id;
  v_done := millrace.apply_outcomes_guarded(array[row(1, v_attempt.id, null, null, p_outcome, p_result, null, p_error,
    'by_hand', v_attempt.job_id, v_attempt.run_id, v_attempt.stage_id, (v_held.run).entity_id, v_attempt.state, null, null, null, null)::millrace.work]);
  if (v_done.items)[1].verdict = 'busy' then
    raise exception 'stage % of run % cannot be ended now: %', p_stage, p_run, (v_done.items)[1].reason
      using errcode = 'MR004', hint = 'Nothing was changed; try again shortly.';
  end if;
  if p_outcome = 'completed' and (v_done.items)[1].outcome = 'failed' then
    raise exception 'stage % of run % cannot be completed: %', p_stage, p_run, (v_done.items)[1].reason using errcode = 'MR004', hint = 'Correct what its apply function or a trigger of yours refuses.';
  end if;
  perform millrace.wake(v_done.ready);
end
$$;
comment on function millrace.end_stage(bigint, text, text, text, jsonb, jsonb) is 'Ends the live attempt of a stage by hand.';

create or replace function millrace.complete_stage(p_run bigint, p_stage text, p_result jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
begin
  if p_result is null then
    raise exception 'p_result is null, but must be the result of stage %', p_stage using errcode = 'MR002', hint = 'Give the result as jsonb; ''null''::jsonb is one.';
  end if;
  perform millrace.end_stage(p_run, p_stage, 'completed', 'completed', p_result, null);
end
$$;
comment on function millrace.complete_stage(bigint, text, jsonb) is 'Completes a queued, started or waiting stage with a result given by hand.';

create or replace function millrace.fail_stage(p_run bigint, p_stage text, p_message text, p_permanent boolean default false) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
begin
  perform millrace.end_stage(p_run, p_stage, 'failed', 'failed', null, jsonb_build_object('code', 'failed_by_hand', 'message', coalesce(p_message, 'failed by hand'), 'permanent', coalesce(p_permanent, false)));
end
$$;
comment on function millrace.fail_stage(bigint, text, text, boolean) is 'Fails a queued, started or waiting stage by hand; it is retried as its policy says, unless permanent.';

-- A run that is over goes on: whatever else had failed or was cancelled is retried with it, or it could never end.
create or replace function millrace.reopen_run(p_run millrace.runs, p_except int[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
  v_wake int[] := '{}';
begin
  insert into millrace.child_tallies (fan_out_id, recount) select p_run.fan_out_id, true where p_run.fan_out_id is not null;
  if p_run.status = 'running' then
    return '{}';
  end if;
  update millrace.runs r set status = 'running', finished_at = null where r.id = p_run.id;
  for v_stage in
    select a.stage_id, s.kind from millrace.attempts a join millrace.stages s on s.id = a.stage_id
    where a.run_id = p_run.id and a.state in ('failed', 'cancelled') and millrace.is_last_word(a) and a.stage_id <> all (p_except) order by a.stage_id
  loop
    v_wake := v_wake || millrace.retry_stage(v_stage.stage_id, v_stage.kind, millrace.running_of(array[p_run.id]));
  end loop;
  return v_wake;
end
$$;
comment on function millrace.reopen_run(millrace.runs, int[]) is 'completed | failed | cancelled → running for a held run, with retries of what had failed, except of these stages; returns the stages with work.';

-- Back to pending: live attempts are cancelled, finished ones kept as history, columns cleared.
create or replace function millrace.clear_stages(p_run millrace.runs, p_stage_ids int[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.cancel_attempts(array[p_run.id], p_stage_ids);
  update millrace.attempts a set superseded = true where a.run_id = p_run.id and a.stage_id = any (p_stage_ids) and not a.superseded;
  -- Children that were late for a stage which was over: those that start anew must not meet them.
  update millrace.fan_outs f set state = 'abandoned' where f.run_id = p_run.id and f.stage_id = any (p_stage_ids) and f.state = 'finished';
  perform millrace.write_entities(p_run.pipeline_id, 'queued', null, null, array[p_run.entity_id], array(select s.name from millrace.stages s where s.id = any (p_stage_ids)));
end
$$;
comment on function millrace.clear_stages(millrace.runs, int[]) is 'Puts stages of a held run back to pending; what they had is kept as history.';

create or replace function millrace.reset(p_run bigint, p_stage text default null) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage, p_whole => true);
  v_run millrace.runs := v_held.run;
  v_stages int[] := (v_held.version_stage).dependents || (v_held.version_stage).stage_id;
  v_wake int[];
begin
  if p_stage is null then
    v_stages := array(select vs.stage_id from millrace.version_stages vs where vs.version_id = v_run.version_id);
  end if;
  perform millrace.clear_stages(v_run, v_stages);
  v_wake := millrace.reopen_run(v_run, v_stages);
  perform millrace.wake(v_wake || millrace.begin_open(array[p_run]));
end
$$;
comment on function millrace.reset(bigint, text) is 'Puts a stage and all that depends on it, or the whole run, back to pending and goes on from there: also in a run that is over. What they had is kept as history; children of a map that is reset are cancelled and spawned anew.';

-- The stages that need a stage, however far down. One that only awaits a threshold has had it.
create or replace function millrace.needing(p_version_id int, p_stage_id int) returns int[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
  with recursive needing as (
    select vs.stage_id from millrace.version_stages vs where vs.version_id = p_version_id and p_stage_id = any (vs.needs)
    union
    select vs.stage_id from needing n join millrace.version_stages vs on vs.version_id = p_version_id and n.stage_id = any (vs.needs)
  )
  select array(select n.stage_id from needing n)
$$;
comment on function millrace.needing(int, int) is 'All stages that need a stage, directly or through others.';

-- Children of a stage that still waits, as far as their rows are free.
create or replace function millrace.retry_failed_children(p_fan_out millrace.fan_outs) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_runs bigint[];
  v_entities text[];
begin
  select coalesce(array_agg(r.id), '{}'), coalesce(array_agg(r.entity_id), '{}') into v_runs, v_entities from millrace.runs r where r.fan_out_id = p_fan_out.id and r.status in ('failed', 'cancelled');
  if (select p.projection <> 'none' from millrace.pipelines p where p.id = p_fan_out.child_pipeline_id) then
    v_entities := millrace.lock_entities(p_fan_out.child_pipeline_id, v_entities, false);
  end if;
  v_runs := array(select r.id from millrace.runs r where r.id = any (v_runs) and r.entity_id = any (v_entities) and r.status in ('failed', 'cancelled') order by r.id for no key update skip locked);
  return millrace.retry_runs(v_runs);
end
$$;
comment on function millrace.retry_failed_children(millrace.fan_outs) is 'Retries the children that failed or were cancelled, but for those whose row somebody holds; returns how many.';

create or replace function millrace.reset_children(p_run bigint, p_stage text) returns int
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage_id int := (v_held.version_stage).stage_id;
  v_kind text := (select s.kind from millrace.stages s where s.id = v_stage_id);
  v_fan_out millrace.fan_outs;
  v_stages int[];
  v_failed int;
  v_wake int[];
begin
  select f.* into v_fan_out from millrace.fan_outs f where f.run_id = p_run and f.stage_id = v_stage_id order by f.id desc limit 1;
  if not found then
    perform millrace.refuse_operation(p_run, p_stage, 'reset by its children', 'without any', 'Only a map or pipeline stage that has spawned has children; use millrace.reset(run, stage).');
  elsif v_fan_out.state = 'open' then
    return millrace.retry_failed_children(v_fan_out);
  elsif millrace.state_of(p_run, v_stage_id) = 'pending' then
    perform millrace.refuse_operation(p_run, p_stage, 'reset by its children', 'pending', 'Its needs run again; it spawns anew when they are done.');
  end if;
  v_failed := (select count(*) from millrace.runs r where r.fan_out_id = v_fan_out.id and r.status in ('failed', 'cancelled'));
  if v_failed = 0 then
    return 0;
  end if;
  v_stages := millrace.needing((v_held.run).version_id, v_stage_id) || v_stage_id;
  perform millrace.clear_stages(v_held.run, v_stages);
  v_wake := millrace.reopen_run(v_held.run, v_stages);
  v_wake := v_wake || millrace.retry_stage(v_stage_id, v_kind, millrace.running_of(array[p_run]));
  perform millrace.wake(v_wake || millrace.begin_open(array[p_run]));
  return v_failed;
end
$$;
comment on function millrace.reset_children(bigint, text) is 'Lets the failed and cancelled children of a map or pipeline stage go on, each from where it failed. A stage that was over waits for them again, and the stages that need it start over; one that had begun by a threshold stays. Returns how many children.';

create or replace function millrace.skip(p_run bigint, p_stage text) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage millrace.version_stages := v_held.version_stage;
  v_state text := millrace.state_of(p_run, v_stage.stage_id);
  v_wake int[];
begin
  if v_state in ('completed', 'skipped') then
    perform millrace.refuse_operation(p_run, p_stage, 'skipped', v_state, 'It is done. To go on without its result: millrace.reset(run, stage), then skip it.');
  elsif v_state = 'pending' and ((v_held.run).status <> 'running' or exists (select from unnest(v_stage.needs) n where not millrace.is_done(p_run, n))) then
    perform millrace.refuse_operation(p_run, p_stage, 'skipped', 'pending, and its needs are not done', 'Skip or finish its needs first.');
  end if;
  perform millrace.cancel_attempts(array[p_run], array[v_stage.stage_id]);
  update millrace.attempts a set superseded = true where a.run_id = p_run and a.stage_id = v_stage.stage_id and not a.superseded;
  v_wake := millrace.reopen_run(v_held.run, array[v_stage.stage_id]);
  v_wake := v_wake || millrace.skip_stage(v_stage.stage_id, millrace.running_of(array[p_run]), '{"code": "skipped", "message": "skipped by hand"}');
  perform millrace.wake(v_wake || millrace.begin_open(array[p_run]));
end
$$;
comment on function millrace.skip(bigint, text) is 'Goes on without a stage: one that is queued, started, waiting, failed, cancelled, or held back by a threshold. Its result is null to those that need it.';

create or replace view millrace.operations as
select r.id as run_id, p.name as pipeline, r.entity_id, s.name as stage, s.kind, coalesce(a.state::text, 'pending') as state,
  case when a.state in ('completed', 'skipped') then 'complete' when a.state in ('queued', 'started', 'waiting') then 'in progress'
    when a.state in ('failed', 'cancelled') then 'failed' else 'not started' end as operation,
  r.status = 'running' and a.id is null and cardinality(vs.needs) = (
      select count(*) from millrace.attempts n where n.run_id = r.id and n.stage_id = any (vs.needs) and n.state in ('completed', 'skipped') and not n.superseded)
    and millrace.thresholds_hold(r.id, vs.after) as can_start,
  coalesce(a.state in ('queued', 'started', 'waiting', 'completed', 'skipped'), false) as is_started,
  coalesce(a.state in ('completed', 'skipped', 'failed', 'cancelled'), false) as is_done,
  coalesce(a.retry_count, 0) + coalesce((a.state = 'failed')::int, 0) as failures,
  coalesce((s.retry ->> 'max_attempts')::int, 3) as fails_after,
  a.id as attempt_id, coalesce(a.error ->> 'detail', a.error ->> 'message') as error
from millrace.runs r
join millrace.pipelines p on p.id = r.pipeline_id
join millrace.version_stages vs on vs.version_id = r.version_id
join millrace.stages s on s.id = vs.stage_id
left join lateral (
  select o.* from millrace.attempts o where o.run_id = r.id and o.stage_id = s.id and not o.superseded order by o.number desc limit 1) a on true;
comment on view millrace.operations is 'Each stage of each run: can it start, is it started, is it done (complete, or failed for good), how often has it failed. Ask for one run: where run_id = …';
