-- Gates: stages that the database passes
--
-- A gate has no function. The transaction that queues an attempt there completes it with the result
-- null where nothing waits before it, else the sweep does. A person's own write leaves a gate with
-- limits to the sweep: its locks last until the commit, and nobody knows when a person commits.

-- Passes attempts that were just queued at a gate and are the first there; at one with limits only
-- if p_limited. Returns the stages that got work.
create function millrace.pass_at_once(p_stage_id int, p_run_ids bigint[], p_limited boolean)
returns int[]
as $$
declare
  v_now timestamptz := millrace.now();
begin
  if exists (
      select
      from millrace.stages s
      join millrace.pipelines p on p.id = s.pipeline_id
      where s.id = p_stage_id and s.enabled and p.enabled and (p_limited or s.limits is null))
    and (
      select a.run_id
      from millrace.attempts a
      where a.stage_id = p_stage_id and a.queue_at <= v_now and a.state = 'queued'
      order by a.queue_at, a.id
      limit 1) = any (p_run_ids) then
    return (millrace.pass_gate(
      p_stage_id, cardinality(p_run_ids), v_now + interval '1 second')).ready;
  end if;
  return '{}';
end
$$;

-- Finds the attempts that a gate may pass next, but for p_held: the oldest, or a share of each
-- group. ids and behind are as in next_by_turns().
create function millrace.next_at_gate(
  p_stage millrace.stages, p_limit int, p_held bigint[], p_until timestamptz,
  inout behind text, out ids bigint[]
)
as $$
declare
  v_now timestamptz := millrace.now();
  v_next record;
begin
  if p_stage.has_groups then
    v_next := millrace.next_by_turns(p_stage, p_limit, 80, p_held, behind, p_until);
    behind := v_next.behind;
    select array_agg(a.id order by n.place, a.queue_at, a.id)
    into ids
    from unnest(v_next.names, v_next.shares) with ordinality n(name, share, place)
    cross join lateral (
      select q.id, q.queue_at
      from millrace.attempts q
      where q.stage_id = p_stage.id
        and q.concurrency_group = n.name
        and q.queue_at <= v_now
        and q.state = 'queued'
        and q.id <> all (p_held)
      order by q.queue_at, q.id
      limit n.share) a;
    return;
  end if;
  select array_agg(o.id)
  into ids
  from (
    select a.id
    from millrace.attempts a
    where a.stage_id = p_stage.id
      and a.queue_at <= v_now
      and a.state = 'queued'
      and a.id <> all (p_held)
    order by a.queue_at, a.id
    limit p_limit) o;
end
$$;

-- Passes a gate as far as its limits allow, until the time is up. More rounds are for what somebody
-- holds.
create function millrace.pass_gate(
  p_stage_id int, p_limit int, p_until timestamptz, out passed int, out ready int[]
)
as $$
declare
  v_stage millrace.stages;
  v_next record;
  v_behind text;
  v_held bigint[] := '{}';
  v_set record;
begin
  passed := 0;
  ready := '{}';
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  if v_stage.limits is not null then
    v_stage := millrace.enter_limits(p_stage_id, false);
    if v_stage.id is null then
      return;
    end if;
    p_limit := (millrace.room_at(v_stage, p_limit)).room;
  end if;
  for v_round in 1 .. 20 loop
    exit when passed >= p_limit or millrace.now() > p_until;
    v_next := millrace.next_at_gate(
      v_stage, least(p_limit - passed, 500), v_held, p_until, v_behind);
    v_behind := v_next.behind;
    exit when v_next.ids is null;
    v_set := millrace.pass(v_stage, v_next.ids);
    passed := passed + cardinality(v_set.passed);
    ready := ready || v_set.ready;
    v_held := v_held || v_next.ids;
  end loop;
  update millrace.limits l
  set last_group = v_behind
  where l.stage_id = p_stage_id and l.last_group <> v_behind;
  if v_stage.limits ? 'shared' then
    perform millrace.note_share(p_stage_id, null, null, passed);
  end if;
end
$$;

-- queued → completed at a gate, with a token of each key. One that the database refuses fails
-- alone, or is put off; a start that no tenant has paid for passes its charge on.
create function millrace.pass(
  p_stage millrace.stages, p_attempt_ids bigint[], out passed bigint[], out ready int[]
)
as $$
declare
  v_began_at timestamptz := millrace.now();
  v_items millrace.work[];
  v_uncounted bigint[];
  v_done record;
begin
  passed := '{}';
  ready := '{}';
  p_attempt_ids := millrace.lock_attempts(p_attempt_ids);
  select array_agg(millrace.work_on(a, r.entity_id, 'completed', 'null') order by a.id),
    array_agg(a.run_id) filter (where a.uncounted)
  into v_items, v_uncounted
  from millrace.attempts a
  join millrace.runs r on r.id = a.run_id and (r.status = 'running') is true
  where a.id = any (p_attempt_ids) and a.state = 'queued';
  if v_items is null then
    return;
  end if;
  v_done := millrace.apply_outcomes_guarded(v_items);
  ready := v_done.ready;
  passed := array(
    select i.attempt_id
    from unnest(v_done.items) i
    where i.verdict is null and i.outcome = 'completed');
  perform millrace.take_tokens(p_stage.id, passed, 1);
  if v_uncounted is not null then
    perform millrace.note_starts(v_uncounted, v_began_at);
  end if;
end
$$;

-- Passes up to so many attempts at all gates within a second, the gate with the oldest first. Each
-- has half of the time that is left, for thousands of keys may have no room.
create function millrace.sweep_gates(p_limit int default 2000) returns int
as $$
declare
  v_now timestamptz := millrace.now();
  v_until constant timestamptz := v_now + interval '1 second';
  v_gate record;
  v_set record;
  v_passed int := 0;
  v_ready int[] := '{}';
  v_context text;
begin
  for v_gate in
    select s.id, s.name
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    cross join lateral (
      select a.queue_at, a.id
      from millrace.attempts a
      where a.stage_id = s.id and a.queue_at <= v_now and a.state = 'queued'
      order by a.queue_at, a.id
      limit 1) h
    where s.kind = 'gate' and s.enabled and p.enabled
    order by h.queue_at, h.id
  loop
    exit when v_passed >= p_limit or millrace.now() >= v_until;
    begin
      v_set := millrace.pass_gate(
        v_gate.id, p_limit - v_passed, v_until - (v_until - millrace.now()) / 2);
      v_passed := v_passed + v_set.passed;
      v_ready := v_ready || v_set.ready;
    exception when query_canceled or assert_failure or others then
      get stacked diagnostics v_context = pg_exception_context;
      if not millrace.report_caught(sqlstate, v_context, 'sweep_failed', format(
          'Gate %s could not be passed: %s', v_gate.name, sqlerrm)) then
        raise;
      end if;
    end;
  end loop;
  perform millrace.wake(v_ready);
  return v_passed;
end
$$;
