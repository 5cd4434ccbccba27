-- Cancelling, and holding runs for a person's call

-- Locks runs and their entities in the lock order, waiting for both.
create or replace function millrace.hold_runs(p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
begin
  for v_group in
    select r.pipeline_id, array_agg(r.entity_id) as entity_ids
    from millrace.runs r
    where r.id = any (p_run_ids)
    group by r.pipeline_id
    order by r.pipeline_id
  loop
    perform millrace.lock_entities(v_group.pipeline_id, v_group.entity_ids, true);
  end loop;
  perform
  from millrace.runs r
  where r.id = any (p_run_ids)
  order by r.id
  for no key update;
end
$$;

-- Locks a run and its entity, waiting for both; raises MR003 where there is no such run.
create or replace function millrace.hold_run(p_run bigint) returns millrace.runs
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run millrace.runs;
begin
  perform millrace.hold_runs(array[p_run]);
  select r.* into v_run from millrace.runs r where r.id = p_run;
  if not found then
    raise exception 'there is no run %', coalesce(p_run::text, 'null')
      using errcode = 'MR003',
        hint = 'Look it up: select * from millrace.operations where entity_id = ''…''.';
  end if;
  return v_run;
end
$$;

-- Cancels a run.
create or replace function millrace.cancel_one(p_run bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run millrace.runs := millrace.hold_run(p_run);
begin
  if v_run.status <> 'running' then
    raise exception 'run % cannot be cancelled: it is %', p_run, v_run.status
      using errcode = 'MR004', hint = 'Only a running run can be cancelled: '
        'select * from millrace.runs where status = ''running''.';
  end if;
  perform millrace.end_runs(array[p_run], 'cancelled');
  perform millrace.project_cancelled(millrace.cancel_attempts(array[p_run], null));
end
$$;
