-- Failing, and trying again

-- Fails attempts of one stage: started | waiting | queued → failed. Adds a retry where the policy
-- allows one. Otherwise the run fails, or goes on without the stage. Returns the stages that got
-- work.
create function millrace.fail(p_stage_id int, p_items millrace.work[]) returns int[]
as $$
  v_failed record;
  v_cancelled millrace.cancelled[];
  v_ready int[] := '{}';
  v_stage millrace.stages;

with failed as (
  update millrace.attempts a
  set state = 'failed', finished_at = v_now, queue_at = null, poll_at = null,
    deadline_at = null, late_at = null, error = i.error, usage = i.usage,
    service = coalesce(a.service, i.service), job_id = coalesce(a.job_id, i.job_id)
  from unnest(p_items) i
  where a.id = any (array[i.attempt_id]) and a.state = i.was
  returning a.*, i.entity_id, i.was, i.job_id as reported_job,
    coalesce(i.error ->> 'code' in ('lost_lease', 'resource_limit'), false) as lost,
    coalesce(i.error ->> 'code', '') = 'released' as released,
    millrace.retry_due(a.stage_id, i.error, a.retry_count) as due
), again as (
  insert into millrace.attempts (run_id, stage_id, number, parent_id, retry_count, queue_at,
    created_at, late_at, isolated, lost_alone, submission_id)
  select f.run_id, f.stage_id, f.number + 1, f.id, f.retry_count + 1, f.due, v_now,
    -- Reads the row as it was before this statement.
    (select o.late_at from millrace.attempts o where o.id = f.id),
    f.lost or f.isolated and f.released, f.isolated and f.lost or f.lost_alone and f.released,
    -- An earlier submission's id is kept until its job has ended: a crash buys no second job.
    case when f.was = 'started' and f.reported_job is null
      and f.service is distinct from 'by_hand' then coalesce(f.submission_id, f.id) end
  from failed f where f.due is not null
  order by f.run_id
), pulse as (
  insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n, run_ms, wait_ms, codes)
  select v_now, s.pipeline_id, s.id, case when f.due is null then 'failed' else 'retried' end,
    count(*), array_agg(date_part('epoch', v_now - f.started_at) * 1000),
    array_agg(date_part('epoch', f.started_at - f.created_at) * 1000)
      filter (where f.retry_count = 0),
    array_agg(left(coalesce(f.error ->> 'code', 'unknown'), 100))
  from failed f
  join millrace.stages s on s.id = f.stage_id
  group by s.id, f.due is null
  union all
  select v_now, s.pipeline_id, s.id, 'unstarted', count(*), null, null, null
  from failed f
  join millrace.stages s on s.id = f.stage_id
  where f.was = 'queued'
  group by s.id
)
select array_agg(millrace.change_of(
    f.entity_id, case when f.due is null then 'failed' else 'queued' end,
    p_error => millrace.owner_message(f.error, f.id),
    p_retry_count => f.retry_count + (f.due is not null)::int,
    p_started_at => case when f.due is null then f.started_at end)) as changes,
  coalesce(array_agg(f.run_id order by f.run_id) filter (where f.due is null), '{}') as dead,
  coalesce(bool_or(f.due <= v_now), false) as due_now,
  array_agg(f.run_id) filter (where f.due is not null and f.concurrency_group is not null)
    as grouped,
  array_agg(row(f.run_id, case when f.due is null then 'failed' else 'retried' end, f.usage)
    ::millrace.used) filter (where f.usage is not null) as used
into v_failed
from failed f;
perform millrace.note_usage(v_now, p_stage_id, v_failed.used) where v_failed.used is not null;
if v_failed.grouped is not null then
  perform millrace.assign_groups(p_stage_id, v_failed.grouped);
end if;
select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
if v_stage.has_quota or v_stage.limits ? 'shared' then
  perform millrace.hook_spent(v_stage, p_items);
end if;
if v_failed.due_now then
  v_ready := array[p_stage_id];
end if;
if v_failed.dead <> '{}' and v_stage.on_failure = 'continue' then
  perform millrace.hook_stages_left(v_failed.dead, array[p_stage_id], 'cancelled');
elsif v_failed.dead <> '{}' then
  -- The runs end before the first projection, in which a user's trigger may queue a stage anew.
  perform millrace.end_runs(v_failed.dead, 'failed', p_stage_id);
  v_cancelled := millrace.cancel_attempts(v_failed.dead, null);
end if;
perform millrace.project(p_stage_id, v_failed.changes);
perform millrace.project_cancelled(v_cancelled);
if v_failed.dead <> '{}' and v_stage.on_failure = 'continue' then
  -- A user's trigger may have started the stage over. runs_at() leaves such runs out.
  v_ready := v_ready || millrace.skip_stage(
    p_stage_id, millrace.runs_at(p_stage_id, v_failed.dead, 'failed'),
    '{"code": "failed", "message": "the stage failed, and the run goes on without it"}');
end if;
return v_ready;
$$;

-- Returns when the next try is due; null for none. The next try comes after the policy's backoff,
-- and not before the time for which the service asked, a day at most. Stages of the kinds manual,
-- pipeline and gate get no retry. A misconfigured function or a service without capacity is no
-- fault of the row. So the codes misconfigured, rate_limited and overloaded get 100 tries over
-- about a day, unless the stage's policy names the code.
create function millrace.retry_due(p_stage_id int, p_error jsonb, p_retry_count int)
returns timestamptz
as $$
  c_patient constant jsonb := '{"max_attempts": 100, "backoff": {"kind": "exponential",
    "base_seconds": 10, "factor": 2, "cap_seconds": 900, "jitter": 0.2}}';
  v_code text := p_error ->> 'code';
  v_retry jsonb := (
    select case
      when s.kind in ('manual', 'pipeline', 'gate') then '{"max_attempts": 1}'
      when v_code in ('misconfigured', 'rate_limited', 'overloaded') then s.retry || c_patient
      else s.retry
    end
    from millrace.stages s
    where s.id = p_stage_id);
  v_policy jsonb := v_retry || coalesce(v_retry -> 'by_code' -> v_code, '{}');
  v_backoff jsonb := coalesce(v_policy -> 'backoff', '{}');
  v_listed jsonb := v_backoff -> 'seconds';
  v_seconds float8;

if coalesce((p_error ->> 'permanent')::boolean, false)
  or p_retry_count + 1 >= coalesce((v_policy ->> 'max_attempts')::int, 3) then
  return null;
end if;
if v_backoff ->> 'kind' = 'list' then
  v_seconds := v_listed ->> least(p_retry_count, jsonb_array_length(v_listed) - 1);
else
  v_seconds := least(
      coalesce((v_backoff ->> 'base_seconds')::float8, 5)
        * power(coalesce((v_backoff ->> 'factor')::float8, 2), least(p_retry_count, 60)),
      coalesce((v_backoff ->> 'cap_seconds')::float8, 300))
    * (1 + coalesce((v_backoff ->> 'jitter')::float8, 0.2) * (2 * random() - 1));
end if;
return v_now + make_interval(secs => greatest(v_seconds,
  least(coalesce((p_error ->> 'retry_after_ms')::float8, 0) / 1000, 86400)));
$$;

-- Returns an error's message for the owner of the row, without the detail, which operators read
-- under the attempt's number.
create function millrace.owner_message(p_error jsonb, p_attempt_id bigint) returns text
immutable
as $$
select (p_error ->> 'message')
  || case when p_error ->> 'detail' is null then ''
    else format(' (attempt %s)', p_attempt_id) end
$$;
