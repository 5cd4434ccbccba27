-- Sweeping children: tallies that nobody has added up, and fan-outs that are over

-- Collects the children of one fan-out and wakes what became ready; false where somebody holds the
-- parent. It outlives and reports what else goes wrong, so that a parent which refuses to be
-- written keeps the sweep from none of the others.
create or replace function millrace.sweep_fan_out(p_fan_out_id bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
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

-- Forgets fan-outs whose parents were deleted, once they have no children left.
create or replace function millrace.forget_fan_outs(p_limit int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with forgotten as (
    delete from millrace.fan_outs f
    where f.id in (
      select o.id
      from millrace.fan_outs o
      where o.state = 'closed'
        and not exists (select from millrace.runs r where r.id = o.run_id)
      limit p_limit
      for update skip locked)
    returning f.id
  ), progress as (
    delete from millrace.fan_progress p
    using forgotten f
    where p.fan_out_id = f.id
  )
  delete from millrace.former_costs c
  using forgotten f
  where c.fan_out_id = f.id;
end
$$;

-- Collects what children reported and nobody has added up, and fan-outs that are due; then cancels
-- the children of those that were given up. Returns how many of each.
create or replace function millrace.sweep_children(out collected int, out cancelled int)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fan_out bigint;
  v_until timestamptz := millrace.now() + interval '5 seconds';
begin
  collected := 0;
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
    exit when collected >= 200 or millrace.now() >= v_until;
    -- Those that are being collected are left to whoever does so: waiting out of order might be
    -- waiting for each other.
    continue when not pg_try_advisory_xact_lock(
      hashtextextended('millrace.collect_children', v_fan_out));
    collected := collected + millrace.sweep_fan_out(v_fan_out)::int;
  end loop;
  cancelled := millrace.cancel_children(2000);
  perform millrace.forget_fan_outs(1000);
end
$$;
