-- The state of a stage in a run, and the verbs that this state allows

-- Locks a run, waiting for other transactions, and returns it with the stage in its version. Raises
-- MR003 where there is no such run or stage. Raises MR004 where the run is not the latest of its
-- row, its parent has given it up, its version lacks the stage, or the stage's state does not allow
-- the verb.
-- p_stage: null means the whole run; version_stage is null then.
create function millrace.lock_stage(
  p_run bigint,
  p_stage text,
  p_verb text,
  out run millrace.runs,
  out version_stage millrace.version_stages)
as $$
  v_pipeline text;
  v_parent millrace.runs;
  v_state text;
  v_states text[];
  v_hint text;

perform millrace.lock_runs(array[p_run]);
select r.* into run from millrace.runs r where r.id = p_run;
if not found then
  raise exception 'MR003: there is no run %', coalesce(p_run::text, 'null')
    using hint = 'Look it up: select * from millrace.stage_runs where entity_id = ''…''.';
end if;
select p.name into v_pipeline from millrace.pipelines p where p.id = run.pipeline_id;
if not millrace.is_latest_run(p_run) then
  raise exception 'MR004: run % is not the latest of its entity %', p_run, run.entity_id
    using hint = format('Use the latest: select millrace.run_of(%L, %L).',
      v_pipeline, run.entity_id);
end if;
select r.* into v_parent
from millrace.runs r
where r.id = (
  select f.run_id
  from millrace.fan_outs f
  where f.id = run.fan_out_id and f.state in ('abandoned', 'closed'));
if found then
  raise exception 'MR004: run % cannot go on: it is a child of run %, which is %',
    p_run, v_parent.id, v_parent.status
    using hint = format('Retry the parent with it, select millrace.retry(%s), '
      'or start its row anew with millrace.start().', v_parent.id);
elsif p_stage is null then
  return;
end if;
select vs.* into version_stage
from millrace.version_stages vs
where vs.version_id = run.version_id
  and vs.stage_id = (millrace.stage_named(v_pipeline, p_stage)).id;
if not found then
  raise exception 'MR004: stage % is not part of the version that run % began with', p_stage, p_run
    using hint = 'Name a stage of its version: select stage from '
      'millrace.stage_runs where run_id = ' || p_run || '.';
end if;
v_state := millrace.state_of(p_run, version_stage.stage_id);
select v.states into v_states from millrace.run_verbs v where v.verb = p_verb;
v_hint := case
  when v_state <> all (v_states)
      or p_verb = 'start_stage' and run.status <> 'running'
    then format('Only a stage that is %s can; use millrace.retry(run) or '
      'millrace.reset(run, stage).',
      regexp_replace(array_to_string(v_states, ', '), ', (\w+)$', ' or \1'))
  when v_state <> 'pending' then null
  when p_verb = 'reset_children' then 'It spawns its children once its needs are done.'
  when p_verb = 'skip' and (run.status <> 'running' or exists (
      select from unnest(version_stage.needs) n where not millrace.is_done(p_run, n)))
    then 'Skip or finish its needs first.'
end;
if v_hint is not null then
  raise exception 'MR004: stage % of run % cannot be told to %: it is %, and the run is %',
    p_stage, p_run, p_verb, v_state, run.status
    using hint = v_hint;
end if;
$$;

-- Returns the state of a stage in a run: the state of its newest attempt that is not superseded, or
-- pending without one.
create function millrace.state_of(p_run_id bigint, p_stage_id int) returns text
as $$
return coalesce(
  (select a.state::text from millrace.newest_attempt(p_run_id, p_stage_id) a), 'pending');
$$;

-- Supersedes the attempts of stages in a locked run, and lets a run that is over go on. The caller
-- begins or ends these stages itself. Returns the stages to wake.
create function millrace.reopen_run(p_run millrace.runs, p_stages int[]) returns int[]
as $$
perform millrace.refuse_deleted(array[p_run.id], p_stages);
perform millrace.supersede(array[p_run.id], p_stages || array(
  -- A stage that was skipped since the run reached an ending becomes pending again.
  select d.stage_id
  from millrace.done_attempts d
  where d.run_id = p_run.id and p_run.ended_as is not null
    and d.error ? 'ended'));
return case p_run.status
  when 'running' then '{}'
  else millrace.reopen_runs(array[p_run.id], p_stages)
end;
$$;

-- Returns the newest run of a row: select millrace.cancel(millrace.run_of('leads', '7')). Raises
-- MR003 where the row has no run.
create function millrace.run_of(p_pipeline text, p_entity_id text) returns bigint
stable
set enable_seqscan = off set enable_indexonlyscan = off
as $$
  v_run bigint := (
    select max(r.id)
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id
    where r.entity_id = p_entity_id and p.name = p_pipeline);

if v_run is null then
  raise exception 'MR003: entity % has no run of pipeline %',
    coalesce(millrace.cut_text(to_json(p_entity_id)::text, 100), 'null'),
    coalesce(p_pipeline, 'null')
    using hint = 'Start one: select millrace.start(pipeline, entity).';
end if;
return v_run;
$$;

-- Lists each stage of each run with the state of its newest attempt.
-- can_start: whether the stage is pending, its needs are done and its thresholds hold.
-- is_started: whether the stage has begun and has neither failed nor been cancelled.
-- is_done: whether the attempt is over.
-- failures: how many tries of the stage failed. fails_after: at how many the run fails.
create view millrace.stage_runs as
select r.id as run_id, p.name as pipeline, r.entity_id, s.name as stage, s.kind,
  coalesce(a.state::text, 'pending') as state,
  case
    when a.state in ('completed', 'skipped') then 'complete'
    when a.state < 'completed' then 'in progress'
    when a.state in ('failed', 'cancelled') then 'failed'
    else 'not started'
  end as progress,
  r.status = 'running'
    and a.id is null
    and cardinality(vs.needs) = (
      select count(*)
      from millrace.done_attempts n
      where n.run_id = r.id and n.stage_id = any (vs.needs))
    and millrace.thresholds_hold(r.id, vs.after) as can_start,
  coalesce(a.state not in ('failed', 'cancelled'), false)
    as is_started,
  a.state in ('completed', 'skipped', 'failed', 'cancelled') is true as is_done,
  coalesce(a.retry_count, 0) + coalesce((a.state = 'failed')::int, 0) as failures,
  coalesce((s.retry ->> 'max_attempts')::int, 3) as fails_after,
  a.id as attempt_id,
  nullif(concat_ws(' ', a.error ->> 'message', a.error ->> 'detail'), '') as error
from millrace.runs r
join millrace.pipelines p on p.id = r.pipeline_id
join millrace.version_stages vs on vs.version_id = r.version_id
join millrace.stages s on s.id = vs.stage_id
left join lateral (
  select o.*
  from millrace.attempts o
  where o.run_id = r.id and o.stage_id = s.id and not o.superseded
  order by o.number desc
  limit 1) a on true;
