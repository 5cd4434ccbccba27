-- Queueing attempts, and showing it

-- Adds a queued attempt of a stage to each of the runs. p_start: a person starts them, so that a
-- tenant is charged; p_keys: the keys of their rows, in the order of the runs, where those are
-- known.
create function millrace.queue_attempts(
  p_stage_id int, p_run_ids bigint[], p_start boolean default false, p_keys text[] default null
) returns void
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_again boolean := exists (
    select
    from millrace.attempts a
    where a.run_id = any (p_run_ids)
      and a.stage_id = p_stage_id);
  v_stage millrace.stages;
  v_groups text[];
begin
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  if v_stage.has_groups then
    v_groups := millrace.hook_groups(v_stage, p_run_ids, p_keys);
    insert into millrace.arrivals (stage_id, concurrency_group, due_at)
    select distinct p_stage_id, g, v_now
    from unnest(v_groups) g
    order by g;
  end if;
  insert into millrace.attempts
    (run_id, stage_id, number, queue_at, created_at, late_at, uncounted, concurrency_group)
  select r.id, p_stage_id,
    coalesce((
      select max(a.number)
      from millrace.attempts a
      where v_again
        and a.run_id = r.id
        and a.stage_id = p_stage_id), 0) + 1,
    v_now, v_now, v_now + v_stage.sla, p_start and v_stage.counted, r.concurrency_group
  from unnest(p_run_ids, v_groups) r(id, concurrency_group)
  order by r.id;
end
$$;

-- Shows a stage in one state on the entities of these runs, since the time given where it has one.
create function millrace.show_stage(
  p_stage_id int,
  p_run_ids bigint[],
  p_status text,
  p_at timestamptz default null,
  p_job_id text default null
) returns void
language plpgsql
as $$
begin
  perform millrace.project(p_stage_id, array(
    select millrace.change_of(r.entity_id, p_status, p_job_id,
      p_started_at => case p_status when 'started' then p_at end,
      p_completed_at => case p_status when 'skipped' then p_at end)
    from millrace.runs r
    where r.id = any (p_run_ids)));
end
$$;

-- Shows a stage as queued on the entities of these runs.
create function millrace.show_queued(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
as $$
begin
  perform millrace.show_stage(p_stage_id, p_run_ids, 'queued');
end
$$;
