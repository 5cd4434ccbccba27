-- Fan-in: what the children's ends come to for the stage that waits for them

-- Builds the error of a stage whose children failed, with the first of them.
create function millrace.child_failure(p_fan_out millrace.fan_outs) returns jsonb
language plpgsql stable
as $$
declare
  v_first record;
begin
  select r.item_key, r.status, s.name as stage, millrace.owner_message(a.error, a.id) as message
  into v_first
  from millrace.runs r
  left join millrace.attempts a on a.run_id = r.id and a.state = 'failed' and not a.superseded
  left join millrace.stages s on s.id = a.stage_id
  where r.fan_out_id = p_fan_out.id
    and r.status in ('failed', 'cancelled')
  order by r.status, r.id, a.id desc
  limit 1;
  return jsonb_build_object(
    'permanent', true,
    'code', case when p_fan_out.failed > 0 then 'child_failed' else 'child_cancelled' end,
    'message', format('%s of %s children failed and %s were cancelled; the first: %s, %s',
      p_fan_out.failed, coalesce(p_fan_out.total, p_fan_out.spawned), p_fan_out.cancelled,
      coalesce(v_first.item_key, 'one that was deleted'),
      coalesce(v_first.stage || ': ' || v_first.message, v_first.status::text, 'gone')));
end
$$;

-- Says what the fan-in rule makes of the sums: completed, failed with the reason, or null (go on
-- waiting). A rule that asks for more children than there are is satisfied by all of them.
create function millrace.fan_in_verdict(
  p_fan_out millrace.fan_outs,
  p_fan_in jsonb,
  p_deadline_at timestamptz,
  out outcome text,
  out error jsonb
)
language plpgsql volatile
as $$
declare
  v_over boolean :=
    p_fan_out.completed + p_fan_out.failed + p_fan_out.cancelled >= p_fan_out.total;
  v_wanted int := case p_fan_in ->> 'rule'
    when 'at_least' then (p_fan_in ->> 'count')::int
    when 'share' then ceil((p_fan_in ->> 'share')::numeric * p_fan_out.total)
  end;
begin
  -- A rule that is met counts, whichever of its last children was added up first.
  if p_fan_out.completed >= v_wanted then
    outcome := 'completed';
  elsif coalesce(p_fan_in ->> 'failed_children', 'fail') = 'fail'
        and p_fan_out.failed + p_fan_out.cancelled > 0 then
    outcome := 'failed';
    error := millrace.child_failure(p_fan_out);
  elsif v_over and (v_wanted is null or p_fan_out.completed >= p_fan_out.total) then
    outcome := 'completed';
  elsif v_over then
    outcome := 'failed';
    error := millrace.child_failure(p_fan_out);
    error := error || jsonb_build_object('code', 'too_few_children', 'message', format(
      '%s of %s children were completed, but the fan-in rule asks for %s; %s',
      p_fan_out.completed, p_fan_out.total, v_wanted, error ->> 'message'));
  elsif p_deadline_at <= millrace.now() and p_fan_in ->> 'at_deadline' = 'finish' then
    outcome := 'completed';
  end if;
end
$$;

-- Builds the result of a map stage (how many children came to what) or of a pipeline stage (the
-- results of the child's last stages).
create function millrace.fan_in_output(p_fan_out millrace.fan_outs, p_kind text)
returns jsonb
language plpgsql stable
as $$
begin
  if p_kind = 'map' then
    return jsonb_build_object(
      'total', coalesce(p_fan_out.total, p_fan_out.spawned),
      'completed', p_fan_out.completed,
      'failed', p_fan_out.failed,
      'cancelled', p_fan_out.cancelled);
  end if;
  return (
    select coalesce(jsonb_object_agg(s.name, a.output), '{}')
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.is_sink
    join millrace.stages s on s.id = vs.stage_id
    join millrace.done_attempts a on a.run_id = r.id and a.stage_id = s.id
    where r.fan_out_id = p_fan_out.id);
end
$$;

-- Closes the fan-outs of attempts that were completed. Children that still run go on, or the sweep
-- cancels them, as the stage says. An attempt that the stage's apply function refused is not
-- completed: its fan-out stays open for the next attempt.
create function millrace.leave_children(
  p_stage millrace.stages, p_attempt_ids bigint[]
) returns void
language plpgsql
as $$
begin
  update millrace.fan_outs f
  set state = case p_stage.fan_in ->> 'late_children'
    when 'cancel' then 'abandoned'
    else 'finished'
  end
  from millrace.attempts a
  where a.id = any (p_attempt_ids)
    and a.state = 'completed'
    and f.attempt_id = a.id
    and f.state = 'open';
end
$$;

-- Completes or fails the waiting attempt of a fan-out as its rule says; returns the stages with
-- work. busy: the database said to try again.
create function millrace.join_children(
  p_fan_out millrace.fan_outs, out ready int[], out busy boolean
)
language plpgsql
set lock_timeout = '200ms'
as $$
declare
  v_attempt millrace.attempts;
  v_stage millrace.stages;
  v_verdict record;
  v_done record;
begin
  ready := '{}';
  busy := false;
  select a.* into v_attempt from millrace.attempts a
    where a.id = p_fan_out.attempt_id;
  if v_attempt.state is distinct from 'waiting' then
    return;
  end if;
  select s.* into v_stage from millrace.stages s where s.id = p_fan_out.stage_id;
  v_verdict := millrace.fan_in_verdict(
    p_fan_out, coalesce(v_stage.fan_in, '{}'), v_attempt.deadline_at);
  if v_verdict.outcome is null then
    return;
  end if;
  v_done := millrace.apply_outcomes_guarded(array[millrace.work_on(v_attempt,
    (select r.entity_id from millrace.runs r where r.id = v_attempt.run_id),
    v_verdict.outcome,
    case v_verdict.outcome
      when 'completed' then millrace.fan_in_output(p_fan_out, v_stage.kind)
    end,
    v_verdict.error)]);
  ready := v_done.ready;
  busy := (v_done.items)[1].verdict is not distinct from 'busy';
  perform millrace.leave_children(v_stage, array[v_attempt.id]);
end
$$;
