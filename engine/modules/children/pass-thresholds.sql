-- Passing thresholds: stages of a parent that begin before all of its children have ended

-- Notes the first number, from the smallest on, whose child has not done a stage; looks no further
-- than is wanted. It starts where the last look ended, so each child is passed once.
create function millrace.count_consecutive(
  p_fan_out millrace.fan_outs, p_stage_id int, p_wanted int
) returns void
language plpgsql
as $$
declare
  v_next int := coalesce(
    (select p.next_number
      from millrace.fan_progress p
      where p.fan_out_id = p_fan_out.id
        and p.stage_id = p_stage_id),
    p_fan_out.first_number);
begin
  while v_next - p_fan_out.first_number < p_wanted
    and exists (
      select
      from millrace.runs r
      where r.fan_out_id = p_fan_out.id
        and r.item_key = v_next::text
        and millrace.is_done(r.id, p_stage_id))
  loop
    v_next := v_next + 1;
  end loop;
  update millrace.fan_progress p
  set next_number = v_next
  where p.fan_out_id = p_fan_out.id
    and p.stage_id = p_stage_id
    and p.next_number is distinct from v_next;
end
$$;

-- Begins the stages of a parent that wait for its children, whose thresholds hold now and that have
-- not begun; returns those with work.
create function millrace.pass_thresholds(p_fan_out millrace.fan_outs) returns int[]
language plpgsql
as $$
declare
  v_after record;
begin
  for v_after in
    select (a ->> 'stage')::int as stage_id, max((a ->> 'n')::int) as wanted
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id,
      jsonb_array_elements(vs.after) a
    where p_fan_out.total is not null
      and r.id = p_fan_out.run_id
      and a ->> 'kind' = 'consecutive'
      and (a ->> 'map')::int = p_fan_out.stage_id
      and not exists (
        select
        from millrace.attempts t
        where t.run_id = r.id
          and t.stage_id = vs.stage_id
          and not t.superseded)
    group by 1
  loop
    perform millrace.count_consecutive(p_fan_out, v_after.stage_id, v_after.wanted);
  end loop;
  return millrace.begin_followers(p_fan_out.stage_id, array[p_fan_out.run_id]);
end
$$;

-- Does what pass_thresholds() does, and goes on without the projection when the parent's row
-- refuses it, as apply_outcomes_unprojected() does: a user's trigger that refuses to show a stage
-- must not keep the parent waiting. It leaves what cannot begin even so to the end of the map,
-- which then fails with the reason. busy: the database said to try again.
create function millrace.pass_thresholds_guarded(
  p_fan_out millrace.fan_outs, out wake int[], out busy boolean
)
language plpgsql
set lock_timeout = '200ms'
as $$
declare
  v_context text;
begin
  busy := false;
  for v_try in 1 .. 2 loop
    begin
      perform set_config(
        'millrace.projection_off', case v_try when 2 then 'on' else '' end, true);
      wake := millrace.pass_thresholds(p_fan_out);
      perform set_config('millrace.projection_off', '', true);
      return;
    exception when query_canceled or assert_failure or others then
      get stacked diagnostics v_context = pg_exception_context;
      if millrace.error_kind(sqlstate, v_context) = 'fatal' then
        raise;
      end if;
      busy := millrace.error_kind(sqlstate, v_context) = 'transient';
      perform millrace.report('error', 'threshold_failed',
        'A stage that awaited a threshold could not begin: ' || sqlerrm,
        jsonb_build_object('run', p_fan_out.run_id, 'without_projection', v_try = 2));
    end;
    exit when busy;
  end loop;
  wake := '{}';
end
$$;
