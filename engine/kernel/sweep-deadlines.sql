-- Sweeping deadlines: jobs, children and people that never answered

-- Fails those of the waiting attempts whose deadline has passed and whose rows are free, as
-- deadline; returns how many. One that the database refuses for now comes by again in a minute,
-- behind the others.
create function millrace.fail_overdue(p_ids bigint[]) returns int
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_ids bigint[] := millrace.lock_attempts(p_ids);
  v_refused bigint[];
  v_done record;
begin
  v_done := millrace.apply_outcomes_guarded(array(
    select jsonb_populate_record(null::millrace.work, jsonb_build_object(
      'ord', row_number() over (order by a.id),
      'attempt_id', a.id,
      'outcome', 'failed',
      'error', jsonb_build_object(
        'code', 'deadline',
        'permanent', a.service in ('children', 'decision'),
        'message', case a.service
          when 'children' then 'the children did not end before the deadline'
          when 'decision' then 'nobody decided before the deadline'
          else 'the external job did not end before its deadline' end),
      'service', a.service,
      'job_id', a.job_id,
      'run_id', a.run_id,
      'stage_id', a.stage_id,
      'entity_id', r.entity_id,
      'was', a.state))
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (v_ids)
      and a.state = 'waiting'
      and a.deadline_at <= v_now));
  perform millrace.wake(v_done.ready);
  v_refused := array(
    select i.attempt_id from unnest(v_done.items) i where i.verdict = 'busy');
  update millrace.attempts a
  set deadline_at = v_now + interval '1 minute'
  where a.id in (
    select o.id
    from millrace.attempts o
    where o.id = any (v_refused) and o.state = 'waiting'
    for update skip locked);
  return cardinality(v_done.items) - cardinality(v_refused);
end
$$;

-- Fails waiting attempts of a pipeline whose deadline has passed; returns how many. A map that
-- finishes with what there is at its deadline is left to the collection of children.
create function millrace.sweep_deadlines(p_pipeline_id int, p_limit int) returns int
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_stages int[] := array(
    select s.id from millrace.stages s where s.pipeline_id = p_pipeline_id);
  v_page record;
  v_last_at timestamptz := '-infinity';
  v_last_id bigint := 0;
  v_failed int := 0;
begin
  loop
    select array_agg(d.id) as ids, max(d.deadline_at) as last_at into v_page
    from (
      select a.id, a.deadline_at
      from millrace.attempts a
      join millrace.stages s on s.id = a.stage_id
      where a.deadline_at <= v_now
        and (a.deadline_at, a.id) > (v_last_at, v_last_id)
        and a.stage_id = any (v_stages)
        and coalesce(s.fan_in ->> 'at_deadline', 'fail') <> 'finish'
      order by a.deadline_at, a.id
      limit p_limit) d;
    exit when v_page.ids is null;
    v_last_at := v_page.last_at;
    v_last_id := v_page.ids[cardinality(v_page.ids)];
    v_failed := v_failed + millrace.fail_overdue(v_page.ids);
    exit when cardinality(v_page.ids) < p_limit or v_failed >= p_limit;
  end loop;
  return v_failed;
end
$$;
