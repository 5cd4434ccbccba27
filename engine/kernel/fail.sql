-- Failing, and trying again

-- Whoever may read a row reads its errors. So an error has a message for the row's owner and, where
-- there is more to say, a detail for operators (an address, a constraint, a stack), whom the
-- attempt's number leads to it. This is what the owner reads.
create function millrace.owner_message(p_error jsonb, p_attempt_id bigint) returns text
language sql immutable
as $$
  select (p_error ->> 'message')
    || case when p_error ->> 'detail' is null then ''
      else format(' (attempt %s)', p_attempt_id) end
$$;

-- Reckons the seconds until the retry with this count (0: the first), by a policy of the
-- definition.
create function millrace.backoff_seconds(p_backoff jsonb, p_retry_count int)
returns float8
language plpgsql volatile
as $$
declare
  v_listed jsonb := p_backoff -> 'seconds';
  v_base float8 := coalesce((p_backoff ->> 'base_seconds')::float8, 5);
  v_factor float8 := coalesce((p_backoff ->> 'factor')::float8, 2);
  v_cap float8 := coalesce((p_backoff ->> 'cap_seconds')::float8, 300);
  v_jitter float8 := coalesce((p_backoff ->> 'jitter')::float8, 0.2);
begin
  if p_backoff ->> 'kind' = 'list' then
    return (v_listed ->> least(p_retry_count, jsonb_array_length(v_listed) - 1))::float8;
  end if;
  return least(v_base * power(v_factor, least(p_retry_count, 60)), v_cap)
    * (1 + v_jitter * (2 * random() - 1));
end
$$;

-- Says when a failed attempt is to be tried again; null when it is permanent or exhausted.
create function millrace.retry_due(p_stage_id int, p_error jsonb, p_retry_count int)
returns timestamptz
language plpgsql volatile
as $$
declare
  -- What waits for a person, for a child run or at a gate is not asked again by itself.
  v_retry jsonb := (
    select case
      when s.kind in ('manual', 'pipeline', 'gate') then '{"max_attempts": 1}'
      else s.retry
    end
    from millrace.stages s
    where s.id = p_stage_id);
  v_policy jsonb := v_retry || coalesce(v_retry -> 'by_code' -> (p_error ->> 'code'), '{}');
begin
  if coalesce((p_error ->> 'permanent')::boolean, false)
    or p_retry_count + 1 >= coalesce((v_policy ->> 'max_attempts')::int, 3) then
    return null;
  end if;
  return millrace.now() + make_interval(secs => greatest(
    millrace.backoff_seconds(coalesce(v_policy -> 'backoff', '{}'), p_retry_count),
    least(coalesce((p_error ->> 'retry_after_ms')::float8, 0) / 1000, 86400)));
end
$$;

-- Writes the attempts of fail(), with a retry row where the policy allows one. Returns what is to
-- be shown, the runs that have no further try, whether a retry is due at once, and the runs whose
-- retry belongs into a group.
create function millrace.close_failed(
  p_items millrace.work[],
  out changes millrace.change[], out dead bigint[], out due_now boolean, out grouped bigint[]
)
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
begin
  with failed as (
    update millrace.attempts a
    set state = 'failed', finished_at = v_now, queue_at = null, poll_at = null,
      deadline_at = null, late_at = null, error = i.error, usage = i.usage,
      service = coalesce(a.service, i.service), job_id = coalesce(a.job_id, i.job_id)
    from unnest(p_items) i
    where a.id = i.attempt_id and a.state = i.was
    returning a.*, i.entity_id, i.was, i.job_id as reported_job,
      coalesce(i.error ->> 'code' in ('lost_lease', 'resource_limit'), false) as lost,
      coalesce(i.error ->> 'code', '') = 'released' as released,
      millrace.retry_due(a.stage_id, i.error, a.retry_count) as due
  ), again as (
    insert into millrace.attempts (run_id, stage_id, number, parent_id, retry_count, queue_at,
      created_at, late_at, isolated, lost_alone, submission_id)
    select f.run_id, f.stage_id, f.number + 1, f.id, f.retry_count + 1, f.due, v_now,
      -- Read from the row as it was before this statement.
      (select o.late_at from millrace.attempts o where o.id = f.id),
      f.lost or f.isolated and f.released, f.isolated and f.lost or f.lost_alone and f.released,
      -- The id of an earlier submission is kept until its job is known to have ended: a crash after
      -- submitting buys no second job. What a person failed by hand is submitted anew.
      case when f.was = 'started' and f.reported_job is null
        and f.service is distinct from 'by_hand' then coalesce(f.submission_id, f.id) end
    from failed f where f.due is not null
    order by f.run_id
  ), pulse as (
    insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n, run_ms, wait_ms, codes,
      cost_usd, input_tokens, output_tokens)
    select v_now, s.pipeline_id, s.id, case when f.due is null then 'failed' else 'retried' end,
      count(*), array_agg(millrace.ms_between(f.started_at, v_now)),
      array_agg(millrace.ms_between(f.created_at, f.started_at)) filter (where f.retry_count = 0),
      array_agg(left(coalesce(f.error ->> 'code', 'unknown'), 100)),
      millrace.sum_usage(array_agg(f.usage), 'cost_usd'),
      millrace.sum_usage(array_agg(f.usage), 'input_tokens'),
      millrace.sum_usage(array_agg(f.usage), 'output_tokens')
    from failed f
    join millrace.stages s on s.id = f.stage_id
    group by s.id, f.due is null
    union all
    select v_now, s.pipeline_id, s.id, 'unstarted', count(*), null, null, null, null, null, null
    from failed f
    join millrace.stages s on s.id = f.stage_id
    where f.was = 'queued'
    group by s.id
  )
  select array_agg(row(
      f.entity_id, case when f.due is null then 'failed' else 'queued' end, null, null,
      millrace.owner_message(f.error, f.id),
      f.retry_count + case when f.due is null then 0 else 1 end,
      case when f.due is null then f.started_at end, null, null)::millrace.change),
    coalesce(array_agg(f.run_id order by f.run_id) filter (where f.due is null), '{}'),
    coalesce(bool_or(f.due <= v_now), false),
    array_agg(f.run_id) filter (where f.due is not null and f.concurrency_group is not null)
  into changes, dead, due_now, grouped
  from failed f;
end
$$;

-- started | waiting | queued → failed, with a retry row when the policy allows one; else the run
-- fails, or goes on without the stage. Returns the stages that got work.
create function millrace.fail(p_stage_id int, p_items millrace.work[]) returns int[]
language plpgsql
as $$
declare
  v_failed record;
  v_cancelled millrace.cancelled[] := '{}';
  v_ready int[] := '{}';
  v_stage millrace.stages;
begin
  v_failed := millrace.close_failed(p_items);
  if v_failed.grouped is not null then
    perform millrace.hook_queued(p_stage_id, v_failed.grouped);
  end if;
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  if v_stage.counted or v_stage.limits ? 'shared' then
    perform millrace.hook_spent(v_stage, p_items);
  end if;
  if v_failed.due_now then
    v_ready := array[p_stage_id];
  end if;
  if cardinality(v_failed.dead) = 0 then
    perform millrace.project(p_stage_id, v_failed.changes);
    return v_ready;
  end if;
  if v_stage.kind in ('map', 'pipeline') then
    perform millrace.hook_given_up(v_failed.dead, array[p_stage_id]);
  end if;
  if v_stage.on_failure = 'continue' then
    perform millrace.project(p_stage_id, v_failed.changes);
    return v_ready || millrace.hook_continue_without(p_stage_id, v_failed.dead);
  end if;
  -- All of it before the first projection: a user's trigger on the entity may queue a stage anew
  -- there and then.
  perform millrace.end_runs(v_failed.dead, 'failed', p_stage_id);
  v_cancelled := millrace.cancel_attempts(v_failed.dead, null);
  perform millrace.project(p_stage_id, v_failed.changes);
  perform millrace.project_cancelled(v_cancelled);
  return v_ready;
end
$$;

-- running → failed | cancelled for locked runs; a child's end is tallied for its parent. A run that
-- fails keeps the stage that ended it and the code of the error, by which dead letters are read.
create function millrace.end_runs(
  p_run_ids bigint[], p_status millrace.run_status, p_failed_stage_id int default null
) returns void
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
begin
  with ended as (
    update millrace.runs r
    set status = p_status, finished_at = v_now, failed_stage_id = p_failed_stage_id,
      error_code = (
        select left(coalesce(a.error ->> 'code', 'unknown'), 200)
        from millrace.attempts a
        where a.run_id = r.id
          and a.stage_id = p_failed_stage_id
        order by a.number desc
        limit 1)
    where r.id = any (p_run_ids)
    returning r.fan_out_id, r.pipeline_id
  ), pulse as (
    insert into millrace.pulses (at, pipeline_id, stage_id, outcome, n)
    select v_now, e.pipeline_id, 0, p_status::text, count(*)
    from ended e
    group by e.pipeline_id
  )
  insert into millrace.child_tallies (fan_out_id, failed, cancelled)
  select e.fan_out_id, count(*) filter (where p_status = 'failed'),
    count(*) filter (where p_status = 'cancelled')
  from ended e
  where e.fan_out_id is not null
  group by e.fan_out_id;
end
$$;
