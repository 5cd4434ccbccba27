-- Verbs: what a person does to runs and to their stages

-- Does a verb to runs, one after the other where the engine has no way to do it to all at once;
-- returns what it came to with the last.
create function millrace.do_to_runs(p_runs bigint[], p_do jsonb) returns jsonb
as $$
declare
  v_verb text := p_do ->> 'verb';
  v_run bigint;
  v_locked record;
  v_stage_id int;
  v_hurried record;
  v_wake int[];
  v_did jsonb := '{}';
begin
  if v_verb = 'cancel'
      or v_verb = 'retry' and cardinality(p_runs) > 1 and not p_do ? 'stage' then
    perform millrace.do_to_all(p_runs, v_verb);
    return v_did;
  end if;
  foreach v_run in array p_runs loop
    v_locked := millrace.hold_stage(v_run, p_do ->> 'stage', v_verb);
    v_stage_id := (v_locked.version_stage).stage_id;
    case v_verb
      when 'retry' then
        perform millrace.do_to_all(array[v_run], v_verb);
      when 'reset' then
        v_wake := v_wake || millrace.reset_one(v_locked.run, v_locked.version_stage);
      when 'reset_children' then
        v_did := jsonb_build_object('children',
          millrace.reset_failed_children(v_locked.run, v_locked.version_stage));
      when 'start_stage' then
        v_wake := v_wake || millrace.begin_at_once(array[v_run], v_stage_id, true);
      when 'skip' then
        v_wake := v_wake || millrace.reopen_run(v_locked.run, array[v_stage_id]);
        v_wake := v_wake || millrace.skip_stage(v_stage_id, millrace.running_of(array[v_run]),
          '{"code": "skipped", "message": "skipped by hand"}');
        v_wake := v_wake || millrace.begin_branches(array[v_run]);
      when 'hurry' then
        v_hurried := millrace.hurry_one(v_locked.run, v_stage_id);
        v_wake := v_wake || v_hurried.stages;
        v_did := jsonb_build_object('attempts', v_hurried.attempts);
      else
        v_wake := v_wake || millrace.end_stage(v_locked.run, v_stage_id, p_do);
    end case;
  end loop;
  perform millrace.wake(v_wake);
  return v_did;
end
$$;

-- Cancels runs, or retries held ones, all or none.
create function millrace.do_to_all(p_runs bigint[], p_verb text)
as $$
declare
  v_fault millrace.runs;
begin
  if p_verb = 'cancel' then
    perform millrace.hold_runs(p_runs);
    select r.* into v_fault
    from millrace.runs r
    where r.id = any (p_runs) and r.status <> 'running'
    limit 1;
    perform millrace.cancel_runs(p_runs, true);
  elsif millrace.retry_runs(p_runs) < cardinality(p_runs) then
    select r.* into v_fault from millrace.runs r where r.id = p_runs[1];
  end if;
  if v_fault.id is not null then
    raise exception 'run % has nothing to %: it is %', v_fault.id, p_verb, v_fault.status
      using errcode = 'MR004', hint =
        'What runs can be cancelled, what failed or was cancelled can be retried.';
  end if;
end
$$;

-- Completes the live attempt of a held stage with a result by hand, or fails it. Its token, job or
-- children are void. Returns the stages to wake.
create function millrace.end_stage(p_run millrace.runs, p_stage_id int, p_do jsonb) returns int[]
as $$
declare
  v_fails boolean := p_do ->> 'verb' = 'fail';
  v_attempt millrace.attempts;
  v_item millrace.work;
  v_done record;
begin
  update millrace.attempts a
  set token = null, service = 'by_hand'
  where a.run_id = p_run.id and a.stage_id = p_stage_id and a.state < 'completed'
  returning a.* into v_attempt;
  perform millrace.abandon_fan_outs(array[p_run.id], array[p_stage_id]);
  v_done := millrace.apply_outcomes_guarded(array[case
    when v_fails then millrace.work_on(v_attempt, p_run.entity_id, 'failed',
      p_error => jsonb_build_object('code', 'failed_by_hand',
        'message', coalesce(p_do ->> 'message', 'failed by hand'),
        'permanent', (p_do ->> 'permanent')::boolean is true))
    else millrace.work_on(v_attempt, p_run.entity_id, 'completed', p_do -> 'result') end]);
  v_item := v_done.items[1];
  if v_item.verdict = 'busy' or v_item.outcome = 'failed' and not v_fails then
    raise exception 'stage % of run % cannot be ended: %', p_do ->> 'stage', p_run.id, v_item.reason
      using errcode = 'MR004', hint = case v_item.verdict
        when 'busy' then 'Nothing was changed; try again shortly.'
        else 'Correct what its apply function or a trigger of yours refuses.' end;
  end if;
  return v_done.ready;
end
$$;

-- Makes the attempts in backoff of a held run, or of one stage of it, due now. Attempts that a
-- quota holds back stay.
create function millrace.hurry_one(
  p_run millrace.runs, p_stage_id int, out attempts int, out stages int[]
)
as $$
with hurried as (
  update millrace.attempts a
  set queue_at = v_now
  where a.id = any (array(
    select o.id
    from millrace.attempts o
    where o.run_id = p_run.id and o.state = 'queued' and o.queue_at > v_now
      and not o.quota_blocked
      and o.stage_id = coalesce(p_stage_id, o.stage_id)
    order by o.id
    for update))
  returning a.stage_id
)
select count(*), array_agg(distinct h.stage_id) into attempts, stages from hurried h;
if attempts = 0 then
  raise exception 'run % has nothing there that waits to be tried again', p_run.id
    using errcode = 'MR004', hint = 'Only a retry in backoff can be hurried: '
      'select * from millrace.timeline(' || p_run.id || ').';
end if;
perform millrace.show_status(p_run.pipeline_id, array[p_run.entity_id]);
$$;
