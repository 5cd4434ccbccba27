-- Verbs: what a person does to runs and to their stages

-- Does a verb to runs, and wakes the stages that got work. Runs are done one by one, unless the
-- verb takes many at once. Returns the outcome of the last run, or {}.
create function millrace.do_to_runs(p_runs bigint[], p_do jsonb) returns jsonb
as $$
  v_verb millrace.run_verbs := (
    select v from millrace.run_verbs v where v.verb = p_do ->> 'verb');
  v_run bigint;
  v_locked record;
  v_wake int[];
  v_more int[];
  v_did jsonb;

if v_verb.verb = 'cancel'
    or v_verb.in_sets and cardinality(p_runs) > 1 and not p_do ? 'stage' then
  perform millrace.do_to_all(p_runs, v_verb.verb);
  return '{}';
end if;
foreach v_run in array p_runs loop
  v_locked := millrace.lock_stage(v_run, p_do ->> 'stage', v_verb.verb);
  execute 'select f.wake, f.did from ' || v_verb.does || ' f'
  into v_more, v_did
  using v_locked.run, v_locked.version_stage, p_do;
  v_wake := v_wake || v_more;
end loop;
perform millrace.wake(v_wake);
return coalesce(v_did, '{}');
$$;

-- Cancels or retries runs, all or none. Raises MR004 where the verb does not suit a run's status.
-- For a retry the caller has locked the runs.
create function millrace.do_to_all(
  p_runs bigint[], p_verb text, out wake int[], out did jsonb
)
as $$
  v_fault millrace.runs;

if p_verb = 'cancel' then
  perform millrace.lock_runs(p_runs);
  select r.* into v_fault
  from millrace.runs r
  where r.id = any (p_runs) and r.status <> 'running'
  limit 1;
  perform millrace.cancel_runs(p_runs, true);
elsif millrace.retry_runs(p_runs) < cardinality(p_runs) then
  select r.* into v_fault from millrace.runs r where r.id = p_runs[1];
end if;
if v_fault.id is not null then
  raise exception 'MR004: run % has nothing to %: it is %', v_fault.id, p_verb, v_fault.status
    using hint =
      'A running run can be cancelled; a failed or cancelled run can be retried.';
end if;
$$;

-- Starts a pending stage of a locked run.
create function millrace.start_one(
  p_run millrace.runs, p_stage millrace.version_stages, out wake int[], out did jsonb
)
as $$
wake := millrace.begin_at_once(array[p_run.id], p_stage.stage_id, true);
$$;

-- Skips a stage that is not done, in a locked run.
create function millrace.skip_one(
  p_run millrace.runs, p_stage millrace.version_stages, out wake int[], out did jsonb
)
as $$
wake := millrace.reopen_run(p_run, array[p_stage.stage_id]);
wake := wake || millrace.skip_stage(p_stage.stage_id, millrace.running_of(array[p_run.id]),
  '{"code": "skipped", "message": "skipped by hand"}');
wake := wake || millrace.begin_branches(array[p_run.id]);
$$;

-- Completes or fails the live attempt of a stage of a locked run, with the service by_hand. A later
-- report under the attempt's token, its job or its children has no effect. Raises MR004 where the
-- stage cannot end.
create function millrace.end_stage(
  p_run millrace.runs, p_stage millrace.version_stages, p_do jsonb, out wake int[], out did jsonb
)
as $$
  v_fails boolean := p_do ->> 'verb' = 'fail';
  v_attempt millrace.attempts;
  v_item millrace.work;
  v_done record;

update millrace.attempts a
set token = null, service = 'by_hand'
where a.run_id = p_run.id and a.stage_id = p_stage.stage_id and a.state < 'completed'
returning a.* into v_attempt;
perform millrace.hook_stages_left(array[p_run.id], array[p_stage.stage_id], 'cancelled');
v_done := millrace.apply_outcomes_guarded(array[case
  when v_fails then millrace.work_on(v_attempt, p_run.entity_id, 'failed',
    p_error => jsonb_build_object('code', 'failed_by_hand',
      'message', coalesce(p_do ->> 'message', 'failed by hand'),
      'permanent', (p_do ->> 'permanent')::boolean is true))
  else millrace.work_on(v_attempt, p_run.entity_id, 'completed', p_do -> 'result') end]);
v_item := v_done.items[1];
if v_item.verdict = 'busy' or v_item.outcome = 'failed' and not v_fails then
  raise exception 'MR004: stage % of run % cannot be ended: %',
      p_do ->> 'stage', p_run.id, v_item.reason
    using hint = case v_item.verdict
      when 'busy' then 'Nothing was changed; try again shortly.'
      else 'Correct what its apply function or a trigger of yours refuses.' end;
end if;
wake := v_done.ready;
$$;

-- Makes the attempts in backoff of a locked run, or of one of its stages, due now. Attempts that
-- are blocked by a quota stay. Raises MR004 where no attempt is in backoff.
-- did: the number of attempts.
create function millrace.hurry_one(
  p_run millrace.runs, p_stage millrace.version_stages, out wake int[], out did jsonb
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
      and o.stage_id = coalesce(p_stage.stage_id, o.stage_id)
    order by o.id
    for update))
  returning a.stage_id
)
select array_agg(distinct h.stage_id), jsonb_build_object('attempts', count(*))
into wake, did
from hurried h;
if wake is null then
  raise exception 'MR004: run % has nothing there that waits to be tried again', p_run.id
    using hint = 'Only a retry in backoff can be hurried: '
      'select * from millrace.timeline(' || p_run.id || ').';
end if;
perform millrace.show_status(p_run.pipeline_id, array[p_run.entity_id]);
$$;
