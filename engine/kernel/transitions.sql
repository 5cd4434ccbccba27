-- Waiting, releasing, cancelling, and showing all of it

-- Writes a batch of changes of one stage into its entities' columns, where the pipeline has a
-- projection.
create function millrace.project(p_stage_id int, p_changes millrace.change[])
returns void
language plpgsql
as $$
begin
  perform millrace.project_entities(s.pipeline_id, 'settle', s.name, p_changes, null, null)
  from millrace.stages s
  where s.id = p_stage_id;
end
$$;

-- started → waiting for an external job, under the stage's deadline and poll interval.
create function millrace.wait(p_stage_id int, p_items millrace.work[]) returns void
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
begin
  with waiting as (
    update millrace.attempts a
    set state = 'waiting', queue_at = null, service = i.service, job_id = i.job_id,
      deadline_at = v_now + coalesce(s.deadline, interval '10 minutes'),
      poll_at = v_now + s.poll_every
    from unnest(p_items) i, millrace.stages s
    where a.id = i.attempt_id and a.state = i.was and s.id = p_stage_id
    returning i.entity_id, a.job_id, a.retry_count, a.started_at
  )
  select array_agg(row(w.entity_id, 'started', w.job_id, null, null, w.retry_count, w.started_at,
    null, null)::millrace.change)
  into v_changes
  from waiting w;
  perform millrace.project(p_stage_id, v_changes);
  if exists (
      select from millrace.stages s
      where s.id = p_stage_id and s.poll_every is not null) then
    perform millrace.hook_polled();
  end if;
  -- Its children may all have ended while it was still spawning: the tally makes somebody look.
  insert into millrace.child_tallies (fan_out_id)
  select f.id
  from unnest(p_items) i
  join millrace.fan_outs f on f.attempt_id = i.attempt_id
  where i.service = 'children';
end
$$;

-- started → queued without costing an attempt; the third release in a row fails an attempt. An item
-- with an error was in work when its function reached a limit of CPU or memory. Nobody knows whose
-- doing that was, so each of them runs alone from then on, which costs no attempt; one that reaches
-- the limit alone fails with that error.
create function millrace.release(p_stage_id int, p_items millrace.work[]) returns int[]
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
  v_grouped bigint[];
begin
  with released as (
    update millrace.attempts a
    set state = 'queued', token = null, started_at = null, queue_at = v_now,
      isolated = a.isolated or i.error is not null,
      releases = a.releases + (i.error is null)::int
    from unnest(p_items) i
    where a.id = i.attempt_id
      and a.state = i.was
      and case when i.error is null then a.releases < 2 else not a.isolated end
    returning i.entity_id, a.retry_count, a.run_id, a.concurrency_group
  )
  select array_agg(row(r.entity_id, 'queued', null, null, null, r.retry_count, null, null,
      null)::millrace.change),
    array_agg(r.run_id) filter (where r.concurrency_group is not null)
  into v_changes, v_grouped
  from released r;
  if v_grouped is not null then
    perform millrace.hook_queued(p_stage_id, v_grouped);
  end if;
  perform millrace.project(p_stage_id, v_changes);
  perform millrace.fail_tired(p_stage_id, p_items);
  return array[p_stage_id];
end
$$;

-- Fails what release() has left: a row that always outlives its worker would go round for ever.
create function millrace.fail_tired(p_stage_id int, p_items millrace.work[])
returns void
language plpgsql
as $$
declare
  v_tired millrace.work[] := array(
    select i from unnest(p_items) i
    join millrace.attempts a on a.id = i.attempt_id
    where a.state = 'started');
begin
  for v_i in 1 .. cardinality(v_tired) loop
    v_tired[v_i].outcome := 'failed';
    v_tired[v_i].error := coalesce(v_tired[v_i].error, '{"code": "released",
        "message": "released by three workers in a row without a result"}');
    v_tired[v_i].result := null;
    v_tired[v_i].service := null;
    v_tired[v_i].job_id := null;
  end loop;
  if cardinality(v_tired) > 0 then
    perform millrace.fail(p_stage_id, v_tired);
  end if;
end
$$;

-- queued | started | waiting → cancelled, for locked runs: all of their live attempts, or those of
-- some stages; their tokens and jobs are void. Returns what is left to project, which the caller
-- does when it is done.
create function millrace.cancel_attempts(p_run_ids bigint[], p_stage_ids int[])
returns millrace.cancelled[]
language plpgsql
as $$
declare
  v_cancelled millrace.cancelled[];
begin
  perform from millrace.attempts a
  where a.run_id = any (p_run_ids)
    and (p_stage_ids is null or a.stage_id = any (p_stage_ids))
    and a.state = 'queued'
  order by a.id
  for update;
  with cancelled as (
    update millrace.attempts a
    set state = 'cancelled', finished_at = millrace.now(), queue_at = null, poll_at = null,
      deadline_at = null, late_at = null,
      error = '{"code": "cancelled", "message": "cancelled"}'
    from millrace.runs r
    where a.run_id = any (p_run_ids)
      and r.id = a.run_id
      and (p_stage_ids is null or a.stage_id = any (p_stage_ids))
      and a.state in ('queued', 'started', 'waiting')
    returning a.stage_id, row(r.entity_id, 'failed', a.job_id, null, 'cancelled', a.retry_count,
      a.started_at, null, null)::millrace.change as change
  )
  select coalesce(array_agg(row(c.stage_id, c.change)::millrace.cancelled), '{}') into v_cancelled
  from cancelled c;
  perform millrace.note_pulses('cancelled', array(select c.stage_id from unnest(v_cancelled) c));
  perform millrace.note_pulses('unstarted', array(
    select c.stage_id from unnest(v_cancelled) c where (c.change).started_at is null));
  perform millrace.hook_given_up(p_run_ids, p_stage_ids);
  return v_cancelled;
end
$$;

-- Shows cancelled attempts on their entities.
create function millrace.project_cancelled(p_cancelled millrace.cancelled[])
returns void
language plpgsql
as $$
declare
  v_stage record;
begin
  for v_stage in
    select c.stage_id, array_agg(c.change) as changes
    from unnest(p_cancelled) c
    group by c.stage_id
    order by c.stage_id
  loop
    perform millrace.project(v_stage.stage_id, v_stage.changes);
  end loop;
end
$$;
