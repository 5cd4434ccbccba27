-- Cancelling children
--
-- A parent that is cancelled, fails or starts over only gives its fan-out up. The sweep cancels the
-- children in batches, and a caller that needs one of their rows earlier cancels them there.

-- Gives up the children of these runs at these stages, or at all of them: the sweep cancels them.
create function millrace.abandon_fan_outs(p_run_ids bigint[], p_stage_ids int[])
returns void
language plpgsql
as $$
begin
  update millrace.fan_outs f
  set state = 'abandoned'
  where f.run_id = any (p_run_ids)
    and (p_stage_ids is null or f.stage_id = any (p_stage_ids))
    and f.state = 'open';
end
$$;

-- Cancels children of abandoned fan-outs on these rows, which the caller holds; the sweep may not
-- have reached them. It does not show that: the row shows what starts there next.
create function millrace.cancel_given_up(p_pipeline_id int, p_entity_ids text[])
returns void
language plpgsql
as $$
declare
  v_runs bigint[] := array(
    select r.id
    from millrace.runs r
    join millrace.fan_outs f on f.id = r.fan_out_id and f.state in ('abandoned', 'closed')
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_entity_ids)
      and r.status = 'running'
    order by r.id
    for no key update of r);
begin
  if cardinality(v_runs) > 0 then
    perform millrace.end_runs(v_runs, 'cancelled');
    perform millrace.cancel_attempts(v_runs, null);
  end if;
end
$$;

-- Cancels runs that the caller holds and shows it on their rows; returns how many it cancelled. One
-- row whose own trigger refuses to show it must not keep the others from being cancelled: it is
-- cancelled unseen, or left to the next call where the database says to try again.
create function millrace.cancel_held(p_run_ids bigint[], p_until timestamptz)
returns int
language plpgsql
set lock_timeout = '200ms'
as $$
declare
  -- A user's trigger on what was cancelled before may have ended some.
  v_runs bigint[] := millrace.running_of(p_run_ids);
  v_half int := cardinality(v_runs) / 2;
  v_context text;
  v_transient boolean;
  v_why text;
  v_count int;
begin
  begin
    perform millrace.end_runs(v_runs, 'cancelled');
    perform millrace.project_cancelled(millrace.cancel_attempts(v_runs, null));
    return cardinality(v_runs);
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    v_transient := millrace.error_kind(sqlstate, v_context) = 'transient';
    v_why := sqlerrm;
  end;
  if v_half > 0 then
    v_count := millrace.cancel_held(v_runs[:v_half], p_until);
    return v_count + case
      when v_transient and millrace.now() >= p_until then 0
      else millrace.cancel_held(v_runs[v_half + 1:], p_until)
    end;
  elsif v_transient then
    perform millrace.report_passed_over(p.name, null, r.entity_id, v_why)
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id
    where r.id = v_runs[1];
    return 0;
  end if;
  perform millrace.report('error', 'projection_failed',
    'A cancelled child could not be shown on its row: ' || v_why,
    jsonb_build_object('run', v_runs[1]));
  perform millrace.end_runs(v_runs, 'cancelled');
  perform millrace.cancel_attempts(v_runs, null);
  return 1;
end
$$;

-- Cancels up to so many children of abandoned fan-outs; returns how many. Rows that somebody holds
-- are left to the next call. Fan-outs that are closed by then and whose parents were deleted are
-- forgotten.
create function millrace.cancel_children(p_limit int) returns int
language plpgsql
as $$
declare
  v_group record;
  v_fan_outs bigint[];
  v_until timestamptz := millrace.now() + interval '2 seconds';
  v_count int := 0;
begin
  -- A person's retry, which opens them again, waits for this batch.
  v_fan_outs := array(
    select f.id
    from millrace.fan_outs f
    where f.state = 'abandoned'
    order by f.id
    for update skip locked);
  for v_group in
    select p.id, p.projection <> 'none' as projected,
      array_agg(c.id) as run_ids, array_agg(c.entity_id) as entity_ids
    from (
      select r.id, r.pipeline_id, r.entity_id
      from millrace.runs r
      where r.fan_out_id = any (v_fan_outs)
        and r.status = 'running'
      -- In no order, or the same rows, held or refused, would come first for ever.
      order by random()
      limit p_limit
    ) c
    join millrace.pipelines p on p.id = c.pipeline_id
    group by p.id
    order by p.id
  loop
    v_group.entity_ids := case when v_group.projected
      then millrace.lock_entities(v_group.id, v_group.entity_ids, false)
      else v_group.entity_ids end;
    v_count := v_count + millrace.cancel_held(array(
      select r.id
      from millrace.runs r
      where r.id = any (v_group.run_ids)
        and r.entity_id = any (v_group.entity_ids)
        and r.status = 'running'
      order by r.id
      for no key update skip locked), v_until);
  end loop;
  update millrace.fan_outs f
  set state = 'closed'
  where f.id = any (v_fan_outs)
    and not exists (
      select from millrace.runs r where r.fan_out_id = f.id and r.status = 'running');
  with forgotten as (
    delete from millrace.fan_outs f
    where f.id = any (v_fan_outs)
      and f.state = 'closed'
      and not exists (select from millrace.runs r where r.id = f.run_id)
    returning f.id
  ), progress as (
    delete from millrace.fan_progress p
    using forgotten f
    where p.fan_out_id = f.id
  )
  delete from millrace.former_costs c
  using forgotten f
  where c.fan_out_id = f.id;
  return v_count;
end
$$;
