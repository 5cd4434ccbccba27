-- Retrying one run: a person lets it go on where it failed or was cancelled

-- Retries one run.
create function millrace.retry_one(p_run bigint, p_stage text) returns void
language plpgsql
as $$
declare
  v_run millrace.runs := millrace.hold_run(p_run);
  v_stage_id int;
  v_state millrace.attempt_state;
begin
  if p_stage is not null then
    v_stage_id := (millrace.stage_named(
      (select p.name from millrace.pipelines p where p.id = v_run.pipeline_id),
      p_stage)).id;
  end if;
  if not millrace.is_latest_run(p_run) then
    raise exception 'run % cannot be retried: its entity % has a later run', p_run, v_run.entity_id
      using errcode = 'MR004', hint = format(
        'Retry that: select millrace.retry(millrace.run_of(%L, %L)); or queue a stage of the row.',
        (select p.name from millrace.pipelines p where p.id = v_run.pipeline_id),
        v_run.entity_id);
  end if;
  perform millrace.refuse_orphan(v_run);
  select a.state into v_state
  from millrace.attempts a
  where a.run_id = p_run
    and a.stage_id = v_stage_id
  order by a.number desc
  limit 1;
  if (v_stage_id is not null and coalesce(v_state not in ('failed', 'cancelled'), true))
      or millrace.retry_runs(array[p_run]) = 0 then
    raise exception 'run % has nothing to retry%: it is %',
      p_run, coalesce(' at stage ' || p_stage, ''), v_run.status
      using errcode = 'MR004', hint =
        'Only a stage that failed or was cancelled, in a run that is over, can be retried.';
  end if;
end
$$;

-- Raises MR004 about a run whose parent has given up its children: its parent's word on it is
-- spoken, and a child that went on alone would change nothing.
create function millrace.refuse_orphan(p_run millrace.runs) returns void
language plpgsql stable
as $$
declare
  v_parent millrace.runs;
begin
  select r.* into v_parent
  from millrace.fan_outs f
  join millrace.runs r on r.id = f.run_id
  where f.id = p_run.fan_out_id
    and f.state in ('abandoned', 'closed');
  if found then
    raise exception 'run % cannot go on: it is a child of run %, which is %',
      p_run.id, v_parent.id, v_parent.status
      using errcode = 'MR004', hint = case
        when v_parent.status in ('failed', 'cancelled') then format(
          'Retry the parent, which retries its children that failed: select millrace.retry(%s).',
          v_parent.id)
        else 'The parent went on without it: start its row anew, by itself, with millrace.start() '
          || 'or by queueing a stage.' end;
  end if;
end
$$;
