-- Concurrency groups: how a claim takes from those whose turn it is (group-turns.sql).

-- queued → started for up to p_room attempts, in rounds: each takes a share from every group in
-- turn of the highest class. Where it takes none, wait_ms says when to ask again.
create function millrace.take_by_turns(
  p_stage millrace.stages,
  p_worker_id uuid,
  p_room int,
  p_token uuid,
  p_now timestamptz,
  inout last_turn bigint,
  out attempt_ids bigint[],
  out wait_ms int)
language plpgsql
as $$
declare
  v_groups text[];
  v_share int;
  v_got record;
begin
  attempt_ids := '{}';
  -- The number of rounds is for groups that turn out to be empty; where it ends, the worker asks
  -- again.
  for v_round in 1 .. 50 loop
    v_groups := array(
      select g.concurrency_group
      from millrace.concurrency_groups g
      where g.stage_id = p_stage.id
        and g.turn is not null
        and g.priority = (
          select t.priority
          from millrace.concurrency_groups t
          where t.stage_id = p_stage.id and t.turn is not null
          order by t.priority desc, t.turn
          limit 1)
      order by g.turn
      limit p_room - cardinality(attempt_ids));
    exit when cardinality(v_groups) = 0;
    v_share := greatest((p_room - cardinality(attempt_ids)) / cardinality(v_groups), 1);
    with visited as materialized (
      select r.concurrency_group, least(v_share, r.room)::int as share
      from millrace.room_of_keys(p_stage, v_groups) r
    ), picked as materialized (
      select a.id, v.concurrency_group
      from visited v
      cross join lateral (
        select q.id
        from millrace.attempts q
        where q.stage_id = p_stage.id
          and q.concurrency_group = v.concurrency_group
          and q.queue_at <= p_now
          and q.state = 'queued'
          and not q.isolated
        order by q.queue_at, q.id
        limit greatest(v.share, 0)
        for update skip locked) a
    ), taken as (
      update millrace.attempts a
      set state = 'started', token = p_token, started_at = p_now
      from picked p
      where a.id = p.id
      returning a.id, p.concurrency_group
    )
    select coalesce(array_agg(t.id), '{}') as ids,
      coalesce(array_agg(t.concurrency_group), '{}') as groups
    into v_got
    from taken t;
    perform millrace.take_room(p_stage, v_got.ids, p_token, p_worker_id);
    perform millrace.end_turns(p_stage, v_groups, v_got.groups, last_turn, p_now);
    last_turn := last_turn + cardinality(v_groups);
    attempt_ids := attempt_ids || v_got.ids;
    exit when cardinality(attempt_ids) >= p_room;
  end loop;
  if cardinality(attempt_ids) = 0 then
    wait_ms := case
      when exists (
        select
        from millrace.concurrency_groups g
        where g.stage_id = p_stage.id and g.turn is not null) then 0
      when exists (select from millrace.arrivals a where a.stage_id = p_stage.id) then 0
      when exists (
        select from millrace.concurrency_groups g
        where g.stage_id = p_stage.id and g.due_at = 'infinity') then 1000
      -- A key that is short of its rate: a worker is quicker than the sweep.
      when p_stage.limits ? 'shared' then (
        select ceil(1000 * extract(epoch from min(g.due_at) - p_now))
        from millrace.concurrency_groups g
        where g.stage_id = p_stage.id and g.due_at <= p_now + interval '10 seconds')
    end;
  end if;
end
$$;

-- queued → started at a stage with groups, under one lease, for attempts that may share an isolate.
-- wait_ms: when to ask again, where it takes none; null: not by waiting.
create function millrace.claim_by_turns(
  p_stage millrace.stages, p_worker millrace.workers, p_room int, inout own millrace.limits,
  out token uuid, out attempt_ids bigint[], out entity_ids text[], out wait_ms int
)
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_token uuid := gen_random_uuid();
  v_turns record;
begin
  own := millrace.admit_arrivals(p_stage.id, own, p_room);
  v_turns := millrace.take_by_turns(p_stage, p_worker.id, p_room, v_token, v_now, own.last_turn);
  own.last_turn := v_turns.last_turn;
  wait_ms := v_turns.wait_ms;
  if cardinality(v_turns.attempt_ids) = 0 then
    return;
  end if;
  token := v_token;
  attempt_ids := v_turns.attempt_ids;
  entity_ids := array(
    select r.entity_id
    from unnest(attempt_ids) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    join millrace.runs r on r.id = a.run_id
    order by i.place);
  insert into millrace.claims (token, worker_id, host, expires_at, isolated, attempt_ids)
  values (token, p_worker.id, p_worker.host, v_now + p_stage.lease, false, attempt_ids);
end
$$;
