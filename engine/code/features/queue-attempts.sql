-- Queueing attempts, and showing it

-- Adds a queued attempt of a stage to each of the runs.
create or replace function millrace.queue_attempts(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_again boolean := exists (
    select
    from millrace.attempts a
    where a.run_id = any (p_run_ids)
      and a.stage_id = p_stage_id);
begin
  insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at, late_at)
  select r.id, p_stage_id,
    coalesce((
      select max(a.number)
      from millrace.attempts a
      where v_again
        and a.run_id = r.id
        and a.stage_id = p_stage_id), 0) + 1,
    v_now, v_now, v_now + s.sla
  from unnest(p_run_ids) r(id), millrace.stages s
  where s.id = p_stage_id
  order by r.id;
  if (select s.has_groups from millrace.stages s where s.id = p_stage_id) then
    perform millrace.assign_groups(p_stage_id, p_run_ids);
  end if;
end
$$;

-- Shows a stage in one state on the entities of these runs, since the time given where it has one.
create or replace function millrace.show_stage(
  p_stage_id int,
  p_run_ids bigint[],
  p_status text,
  p_at timestamptz default null,
  p_job_id text default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
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
create or replace function millrace.show_queued(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.show_stage(p_stage_id, p_run_ids, 'queued');
end
$$;
