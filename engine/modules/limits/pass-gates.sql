-- Passing gates by the sweep: set by set, the gate with the oldest attempt first, until their
-- limits are used up or a second is over. What somebody holds comes by in the next sweep.

-- Passes the next attempts of a gate behind a place in its queue, as far as its limits allow, which
-- is asked once for several sets. last_id: where it has come to; null where nothing more can be
-- passed now.
create function millrace.pass_next(
  p_stage_id int, p_after_at timestamptz, p_after_id bigint, p_limit int,
  out passed int, out last_at timestamptz, out last_id bigint, out ready int[]
)
language plpgsql
as $$
declare
  c_set constant int := 500;
  v_now timestamptz := millrace.now();
  v_stage millrace.stages;
  v_entered record;
  v_room int := p_limit;
  v_page record;
  v_set record;
begin
  passed := 0;
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  if v_stage.limits is not null then
    v_entered := millrace.enter_limits(p_stage_id, false);
    if v_entered.limits is null then
      return;
    end if;
    v_stage := v_entered.stage;
    v_room := (millrace.room_at(v_stage, v_entered.limits, p_limit)).room;
  end if;
  select array_agg(q.id) as ids, max(q.queue_at) as last_at into v_page
  from (
    select a.id, a.queue_at
    from millrace.attempts a
    where a.stage_id = p_stage_id
      and a.queue_at <= v_now
      and a.state = 'queued'
      and (a.queue_at, a.id) > (p_after_at, p_after_id)
    order by a.queue_at, a.id
    limit greatest(v_room, 0)) q;
  if v_page.ids is null then
    return;
  end if;
  last_at := v_page.last_at;
  last_id := v_page.ids[cardinality(v_page.ids)];
  for v_from in 1 .. cardinality(v_page.ids) by c_set loop
    v_set := millrace.pass_set(v_stage, v_page.ids[v_from:v_from + c_set - 1]);
    passed := passed + v_set.passed;
    ready := coalesce(ready, array[]::int[]) || v_set.ready;
  end loop;
  if v_stage.limits is not null then
    perform millrace.take_at_gate(v_stage, passed);
  end if;
end
$$;

-- Passes those of a set that nobody holds and that are queued at a gate still.
create function millrace.pass_set(
  p_stage millrace.stages, p_attempt_ids bigint[], out passed int, out ready int[]
)
language plpgsql
as $$
declare
  v_free bigint[] := millrace.lock_attempts(p_attempt_ids);
  v_items millrace.work[] := millrace.queued_at_gate(p_stage.id, array(
    select a.run_id from millrace.attempts a where a.id = any (v_free)));
  v_done record;
begin
  passed := 0;
  if cardinality(v_items) > 0 then
    v_done := millrace.pass(p_stage, v_items, true);
    passed := v_done.passed;
    ready := v_done.ready;
  end if;
end
$$;

-- Finds the gate whose next attempt, behind the place where its queue has been looked at, is the
-- oldest.
create function millrace.next_gate(
  p_stage_ids int[], p_after_at timestamptz[], p_after_ids bigint[]
) returns int
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return (
    select g.place
    from unnest(p_stage_ids, p_after_at, p_after_ids) with ordinality g(stage_id, at, id, place)
    cross join lateral (
      select a.queue_at, a.id
      from millrace.attempts a
      where a.stage_id = g.stage_id
        and a.queue_at <= v_now
        and a.state = 'queued'
        and (a.queue_at, a.id) > (g.at, g.id)
      order by a.queue_at, a.id
      limit 1) h
    order by h.queue_at, h.id
    limit 1);
end
$$;

-- Passes the gates of all pipelines, up to so many attempts. A fault at one gate, such as a dropped
-- table, keeps no other closed.
create function millrace.sweep_gates(p_limit int default 2000) returns jsonb
language plpgsql
as $$
declare
  v_until timestamptz := millrace.now() + interval '1 second';
  v_gates int[] := array(
    select s.id
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where s.kind = 'gate' and s.enabled and p.enabled
    order by s.id);
  v_at timestamptz[] := array_fill('-infinity'::timestamptz, array[cardinality(v_gates)]);
  v_ids bigint[] := array_fill(0::bigint, array[cardinality(v_gates)]);
  v_place int;
  v_set record;
  v_passed int := 0;
  v_ready int[] := '{}';
  v_context text;
begin
  while cardinality(v_gates) > 0 and v_passed < p_limit and millrace.now() < v_until loop
    v_place := millrace.next_gate(v_gates, v_at, v_ids);
    exit when v_place is null;
    begin
      v_set := millrace.pass_next(
        v_gates[v_place], v_at[v_place], v_ids[v_place], p_limit - v_passed);
      v_passed := v_passed + v_set.passed;
      v_ready := v_ready || v_set.ready;
      v_at[v_place] := coalesce(v_set.last_at, 'infinity');
      v_ids[v_place] := coalesce(v_set.last_id, 0);
    exception when query_canceled or assert_failure or others then
      get stacked diagnostics v_context = pg_exception_context;
      if not millrace.report_caught(sqlstate, v_context, 'sweep_failed', format(
          'Gate %s could not be passed: %s',
          (select s.name from millrace.stages s where s.id = v_gates[v_place]), sqlerrm)) then
        raise;
      end if;
      v_at[v_place] := 'infinity';
    end;
  end loop;
  perform millrace.wake(v_ready);
  return jsonb_strip_nulls(jsonb_build_object('passed', nullif(v_passed, 0)));
end
$$;
