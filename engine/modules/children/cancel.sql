-- Cancelling children: a parent only gives its fan-out up; the sweep cancels the children

-- Gives up the children of these runs at these stages, or at all of them.
create function millrace.abandon_fan_outs(p_run_ids bigint[], p_stage_ids int[])
as $$
begin
  update millrace.fan_outs f
  set state = 'abandoned'
  where f.run_id = any (p_run_ids)
    and (p_stage_ids is null or f.stage_id = any (p_stage_ids))
    and f.state = 'open';
end
$$;

-- Cancels children that no parent waits for on held rows, unseen: the row shows what starts next.
create function millrace.cancel_given_up(p_pipeline_id int, p_entity_ids text[])
as $$
declare
  v_runs bigint[] := array(
    select r.id
    from millrace.runs r
    join millrace.fan_outs f on f.id = r.fan_out_id and f.state <> 'open'
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_entity_ids)
      -- "is true" and "+ 0" have each row look at its runs: an old plan might read all that live.
      and (r.status = 'running') is true
    order by r.id + 0
    for no key update of r);
begin
  if cardinality(v_runs) > 0 then
    perform millrace.cancel_runs(v_runs, false);
  end if;
end
$$;

-- Cancels those of held runs that run, and shows it on their rows; returns how many.
create function millrace.cancel_runs(p_run_ids bigint[], p_shown boolean) returns int
as $$
declare
  -- A user's trigger on what was cancelled before may have ended some.
  v_runs bigint[] := millrace.running_of(p_run_ids);
  v_cancelled millrace.cancelled[];
begin
  perform millrace.end_runs(v_runs, 'cancelled');
  v_cancelled := millrace.cancel_attempts(v_runs, null);
  if p_shown then
    perform millrace.project_cancelled(v_cancelled);
  end if;
  return cardinality(v_runs);
end
$$;

-- Cancels held runs; one whose trigger refuses to show it is cancelled unseen, or put off where the
-- database says to try again.
create function millrace.cancel_held(p_run_ids bigint[], p_until timestamptz) returns int
as $$
declare
  v_done record;
  v_unseen bigint[];
begin
  v_done := millrace.in_halves(p_run_ids::text[],
    'select millrace.cancel_runs($1::bigint[], true)', p_until);
  perform millrace.report_passed_over(p.name, null, r.entity_id, u.why)
  from unnest(v_done.refused, v_done.why, v_done.later) u(id, why, later)
  join millrace.runs r on r.id = u.id::bigint
  join millrace.pipelines p on p.id = r.pipeline_id
  where u.later;
  select array_agg(u.id::bigint order by u.id::bigint) into v_unseen
  from unnest(v_done.refused, v_done.others, v_done.why, v_done.later) u(id, others, why, later)
  cross join lateral millrace.report('error', 'projection_failed',
    'A cancelled child could not be shown on its row: ' || u.why,
    jsonb_build_object('run', u.id::bigint))
  where not u.later
    and u.others = 0;
  return v_done.done + millrace.cancel_runs(v_unseen, false);
end
$$;

-- Cancels children of abandoned fan-outs on free rows, and forgets the fan-outs of deleted parents.
create function millrace.cancel_children(p_limit int) returns int
as $$
declare
  v_group record;
  v_until timestamptz := clock_timestamp() + interval '2 seconds';
  v_count int := 0;
  -- A person's retry, which opens them again, waits for this batch.
  v_fan_outs bigint[] := array(
    select f.id
    from millrace.fan_outs f
    where f.state = 'abandoned'
    order by f.id
    for update skip locked);
begin
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
    delete from millrace.fan_progress p using forgotten f where p.fan_out_id = f.id
  )
  delete from millrace.former_costs c using forgotten f where c.fan_out_id = f.id;
  return v_count;
end
$$;
