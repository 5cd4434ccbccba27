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

-- Cancels a run.
create or replace function millrace.cancel_one(p_run bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status millrace.run_status;
begin
  perform millrace.hold_runs(array[p_run]);
  select r.status into v_status from millrace.runs r where r.id = p_run;
  if v_status is distinct from 'running' then
    raise exception 'run % cannot be cancelled: %', coalesce(p_run::text, 'null'),
      coalesce('it is ' || v_status, 'there is no such run')
      using errcode = case when v_status is null then 'MR003' else 'MR004' end,
        hint = 'Only a running run can be cancelled: '
          || 'select * from millrace.runs where status = ''running''.';
  end if;
  perform millrace.end_runs(array[p_run], 'cancelled');
  perform millrace.project_cancelled(millrace.cancel_attempts(array[p_run], null));
end
$$;

-- Cancels a run by a person's call.
create or replace function millrace.cancel(p_run bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  perform millrace.cancel_one(p_run);
  perform millrace.note_run('cancel', p_run);
end
$$;
comment on function millrace.cancel(bigint) is
  'running → cancelled: live attempts are cancelled, their tokens and jobs void, their columns '
  'failed with the error cancelled. Children are cancelled by the sweep, in batches.';
