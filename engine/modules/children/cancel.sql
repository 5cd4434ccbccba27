-- Cancels up to p_limit children of abandoned fan-outs, and returns how many. Skips children whose
-- row or run is locked. Closes fan-outs without running children, and deletes those of deleted
-- parents.
create function millrace.cancel_children(p_limit int) returns int
as $$
  v_group record;
  v_done record;
  v_until timestamptz := clock_timestamp() + interval '2 seconds';
  v_count int := 0;
  -- The lock makes a person's retry, which opens a fan-out again, wait for this batch.
  v_fan_outs bigint[] := array(
    select f.id
    from millrace.fan_outs f
    where f.state = 'abandoned'
    order by f.id
    for update skip locked);

for v_group in
  select p.id, p.name, p.projection <> 'none' as projected,
    array_agg(c.id) as run_ids, array_agg(c.entity_id) as entity_ids
  from (
    select r.id, r.pipeline_id, r.entity_id
    from millrace.runs r
    where r.fan_out_id = any (v_fan_outs) and r.status = 'running'
    -- In random order: otherwise the same locked or refused rows would always come first.
    order by random()
    limit p_limit
  ) c
  join millrace.pipelines p on p.id = c.pipeline_id
  group by p.id
  order by p.id
loop
  v_group.entity_ids := case when v_group.projected
    then millrace.lock_present(v_group.id, v_group.entity_ids)
    else v_group.entity_ids end;
  v_done := millrace.in_halves(array(
    select r.id::text
    from millrace.runs r
    where r.id = any (v_group.run_ids) and r.entity_id = any (v_group.entity_ids)
      and r.status = 'running'
    order by r.id
    for no key update skip locked),
    'select millrace.cancel_runs($1::bigint[], true)', v_until);
  perform millrace.report_passed_over(v_group.name, null, r.entity_id, f.why)
  from unnest(v_done.refused) f
  join millrace.runs r on r.id = f.key::bigint
  where f.later;
  -- Where cancelling a child raises an error, as where a trigger on its row refuses the projection,
  -- the child is cancelled without a projection, unless a later try may succeed.
  v_count := v_count + v_done.done + millrace.cancel_runs(array(
    select f.key::bigint
    from unnest(v_done.refused) f
    cross join millrace.report('error', 'projection_failed',
      'A cancelled child could not be shown on its row: ' || f.why,
      jsonb_build_object('run', f.key::bigint))
    where f.others = 0
      and not f.later), false);
end loop;
update millrace.fan_outs f
set state = 'closed'
where f.id = any (v_fan_outs)
  and not exists (
    select from millrace.runs r where r.fan_out_id = f.id and r.status = 'running');
with forgotten as (
  delete from millrace.fan_outs f
  where f.id = any (v_fan_outs)
    -- by key
    and v_fan_outs <> '{}'
    and f.state = 'closed'
    and not exists (select from millrace.runs r where r.id = f.run_id)
  returning f.id
), progress as (
  delete from millrace.fan_progress p using forgotten f where p.fan_out_id = f.id
)
delete from millrace.former_costs c using forgotten f where c.fan_out_id = f.id;
return v_count;
$$;
