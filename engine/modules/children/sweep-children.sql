-- Sweeping children: tallies that nobody has added up, and fan-outs that are over

-- Collects the children of one fan-out and wakes what became ready; false where somebody holds the
-- parent. It outlives and reports what else goes wrong, so that a parent which refuses to be
-- written keeps the sweep from none of the others.
create function millrace.sweep_fan_out(p_fan_out_id bigint) returns boolean
language plpgsql
as $$
declare
  v_done record;
  v_context text;
begin
  v_done := millrace.collect_children(p_fan_out_id);
  perform millrace.wake(v_done.wake);
  return not v_done.busy;
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if not millrace.report_caught(sqlstate, v_context, 'collect_failed', format(
        'The children of fan-out %s cannot be added up: %s', p_fan_out_id, sqlerrm)) then
      raise;
    end if;
    return false;
end
$$;

-- Collects what children reported and nobody has added up, and fan-outs that are due, up to so
-- many; returns how many.
create function millrace.collect_reported(p_limit int) returns int
language plpgsql
as $$
declare
  v_fan_out bigint;
  v_until timestamptz := millrace.now() + interval '5 seconds';
  v_collected int := 0;
begin
  insert into millrace.child_tallies (fan_out_id)
  select f.id
  from millrace.attempts a
  join millrace.stages s on s.id = a.stage_id
  join millrace.fan_outs f on f.attempt_id = a.id and f.state = 'open'
  where a.deadline_at <= millrace.now()
    and a.state = 'waiting'
    and s.fan_in ->> 'at_deadline' = 'finish';
  -- In no order, so that parents which refuse to be written keep it from none of the others.
  for v_fan_out in
    select t.fan_out_id
    from millrace.child_tallies t
    group by t.fan_out_id
    order by random()
  loop
    exit when v_collected >= p_limit or millrace.now() >= v_until;
    -- Those that are being collected are left to whoever does so: waiting out of order might be
    -- waiting for each other.
    continue when not pg_try_advisory_xact_lock(
      hashtextextended('millrace.collect_children', v_fan_out));
    v_collected := v_collected + millrace.sweep_fan_out(v_fan_out)::int;
  end loop;
  return v_collected;
end
$$;
