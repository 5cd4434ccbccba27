-- Concurrency groups: whose turn it is, and how a claim takes from them
--
-- Groups come by turns: the higher class of priority first, in a class one round after the other. A
-- group sleeps while nothing of it is due or its key has no token; it is parked while its key has
-- no place. Only claims write groups, under the lock of the stage's own limit.

-- Reads arrivals before a claim, and puts the groups that are due, and the parked ones of freed
-- keys, in turn behind the others. It reads at least as many as the claim may take, so that none
-- waits for longer than a round. Returns the stage's own limit as it is then.
create function millrace.admit_arrivals(p_stage_id int, p_own millrace.limits, p_room int)
returns millrace.limits
language plpgsql
as $$
declare
  v_now timestamptz := millrace.now();
  v_many int := 100 + 2 * p_room;
  v_groups text[];
  v_freed text[];
begin
  -- A loose scan from group to group, which comes round to those before the last one read.
  v_groups := array(
    with recursive seen(name, is_group, again) as (
      select p_own.arrivals_to, false, false
      union all
      select coalesce(n.concurrency_group, ''), n.concurrency_group is not null,
        s.again or n.concurrency_group is null
      from seen s
      left join lateral (
        select a.concurrency_group
        from millrace.arrivals a
        where a.stage_id = p_stage_id and a.concurrency_group > s.name
        order by a.concurrency_group
        limit 1) n on true
      where not s.again or n.concurrency_group <= p_own.arrivals_to
    )
    select s.name
    from seen s
    where s.is_group
    limit v_many);
  p_own.arrivals_to := coalesce(v_groups[v_many], '');
  if cardinality(v_groups) > 0 then
    -- Returns the keys of which slots were freed.
    with gone as (
      delete from millrace.arrivals a
      using (
        select b.concurrency_group, b.id
        from unnest(v_groups) u(concurrency_group)
        cross join lateral (
          select n.concurrency_group, n.id
          from millrace.arrivals n
          where n.stage_id = p_stage_id and n.concurrency_group = u.concurrency_group
          order by n.id
          limit (1 + 10 * v_many / cardinality(v_groups))) b) d
      where a.stage_id = p_stage_id and a.concurrency_group = d.concurrency_group and a.id = d.id
      returning a.concurrency_group, a.due_at
    ), news as (
      select g.concurrency_group, min(g.due_at) as due_at,
        row_number() over (order by g.concurrency_group) as place
      from gone g
      where g.concurrency_group not like '*%'
      group by g.concurrency_group
    ), admitted as (
      insert into millrace.concurrency_groups as t
        (stage_id, concurrency_group, priority, turn, due_at)
      select p_stage_id, n.concurrency_group, left(n.concurrency_group, 1)::smallint,
        case when n.due_at <= v_now then p_own.last_turn + n.place end,
        case when n.due_at > v_now then n.due_at end
      from news n
      on conflict on constraint concurrency_groups_pkey do update
      set turn = coalesce(t.turn, excluded.turn),
        due_at = case
          when coalesce(t.turn, excluded.turn) is not null then null
          when t.due_at < 'infinity' then least(t.due_at, excluded.due_at)
          else t.due_at
        end
    )
    select array_agg(distinct substr(g.concurrency_group, 2))
    into v_freed
    from gone g
    where g.concurrency_group like '*%';
  end if;
  p_own.last_turn := p_own.last_turn + v_many;
  with woken as (
    select w.concurrency_group, row_number() over () as place
    from (
      (select g.concurrency_group
       from millrace.concurrency_groups g
       where g.stage_id = p_stage_id and g.due_at <= v_now
       order by g.due_at
       limit v_many)
      union all
      select g.concurrency_group
      from unnest(v_freed) k
      cross join generate_series(0, 9) c
      join millrace.concurrency_groups g on g.stage_id = p_stage_id
        and g.concurrency_group = c || k
        and g.due_at = 'infinity') w
  )
  update millrace.concurrency_groups g
  set turn = p_own.last_turn + w.place, due_at = null
  from woken w
  where g.stage_id = p_stage_id and g.concurrency_group = w.concurrency_group;
  p_own.last_turn := p_own.last_turn + 11 * v_many;
  return p_own;
end
$$;

-- queued → started at a stage with groups for up to p_room attempts that may share an isolate,
-- under one lease, in rounds: each takes a share from every group in turn of the highest class.
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
  v_taken bigint[] := '{}';
  v_groups text[];
  v_share int;
  v_got record;
begin
  own := millrace.admit_arrivals(p_stage.id, own, p_room);
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
      limit p_room - cardinality(v_taken));
    exit when cardinality(v_groups) = 0;
    v_share := greatest((p_room - cardinality(v_taken)) / cardinality(v_groups), 1);
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
          and q.queue_at <= v_now
          and q.state = 'queued'
          and not q.isolated
        order by q.queue_at, q.id
        limit greatest(v.share, 0)
        for update skip locked) a
    ), taken as (
      update millrace.attempts a
      set state = 'started', token = v_token, started_at = v_now
      from picked p
      where a.id = p.id
      returning a.id, p.concurrency_group
    )
    select coalesce(array_agg(t.id), '{}') as ids,
      coalesce(array_agg(t.concurrency_group), '{}') as groups
    into v_got
    from taken t;
    perform millrace.take_room(p_stage, v_got.ids, v_token, p_worker.id);
    perform millrace.end_turns(p_stage, v_groups, v_got.groups, own.last_turn, v_now);
    own.last_turn := own.last_turn + cardinality(v_groups);
    v_taken := v_taken || v_got.ids;
    exit when cardinality(v_taken) >= p_room;
  end loop;
  if v_taken = '{}' then
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
        select ceil(1000 * extract(epoch from min(g.due_at) - v_now))
        from millrace.concurrency_groups g
        where g.stage_id = p_stage.id and g.due_at <= v_now + interval '10 seconds')
    end;
    return;
  end if;
  token := v_token;
  attempt_ids := v_taken;
  entity_ids := array(
    select r.entity_id
    from unnest(v_taken) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    join millrace.runs r on r.id = a.run_id
    order by i.place);
  insert into millrace.claims (token, worker_id, host, expires_at, isolated, attempt_ids)
  values (token, p_worker.id, p_worker.host, v_now + p_stage.lease, false, v_taken);
end
$$;

-- Moves groups that had their turn to the end, to sleep until they are due, or to be parked. A
-- group with nothing queued is deleted.
create function millrace.end_turns(
  p_stage millrace.stages, p_groups text[], p_served text[], p_last_turn bigint,
  p_now timestamptz
) returns void
language plpgsql
as $$
begin
  with looked as materialized (
    select concurrency_group, u.place, n.queue_at,
      u.concurrency_group = any (p_served) as served,
      r.is_full, r.opens_at
    from unnest(p_groups) with ordinality u(concurrency_group, place)
    join millrace.room_of_keys(p_stage, p_groups) r using (concurrency_group)
    left join lateral (
      select a.queue_at
      from millrace.attempts a
      where a.stage_id = p_stage.id
        and a.concurrency_group = u.concurrency_group
        and a.queue_at is not null
        and a.state = 'queued'
      order by a.queue_at, a.id
      limit 1) n on true
  ), gone as (
    delete from millrace.concurrency_groups g
    using looked k
    where g.stage_id = p_stage.id
      and g.concurrency_group = k.concurrency_group
      and k.queue_at is null
  )
  update millrace.concurrency_groups g
  set turn = case
      when not k.is_full and k.queue_at <= p_now and k.served and k.opens_at is null
        then p_last_turn + k.place
    end,
    due_at = case
      when k.is_full then 'infinity'
      when k.queue_at > p_now or k.opens_at is not null then greatest(k.queue_at, k.opens_at)
      -- What is due and was not taken is locked, or isolated: it is left for a moment.
      when not k.served then p_now + interval '1 second'
    end
  from looked k
  where g.stage_id = p_stage.id
    and g.concurrency_group = k.concurrency_group
    and k.queue_at is not null;
end
$$;

-- Puts the groups of attempts that a claim gives back in turn. A group that got nothing goes to the
-- front, so that one with large rows is served in the end; one that got less than it might is
-- announced as an arrival.
create function millrace.give_back_turns(
  p_stage millrace.stages, p_kept bigint[], p_back bigint[]
) returns void
language plpgsql
as $$
declare
  v_first bigint := coalesce((
    select min(g.turn)
    from millrace.concurrency_groups g
    where g.stage_id = p_stage.id and g.turn is not null), 0);
begin
  with back as materialized (
    select a.concurrency_group, min(a.queue_at) as due_at, min(u.place) as place,
      a.concurrency_group in (
        select k.concurrency_group
        from millrace.attempts k
        where k.id = any (p_kept)) as served
    from unnest(p_back) with ordinality u(id, place)
    join millrace.attempts a on a.id = u.id
    where a.concurrency_group is not null
    group by a.concurrency_group
  ), announced as (
    insert into millrace.arrivals (stage_id, concurrency_group, due_at)
    select p_stage.id, b.concurrency_group, b.due_at
    from back b
    where b.served
  )
  insert into millrace.concurrency_groups as g (stage_id, concurrency_group, priority, turn)
  select p_stage.id, b.concurrency_group, left(b.concurrency_group, 1)::smallint,
    v_first - row_number() over (order by b.place desc)
  from back b
  where not b.served
  on conflict on constraint concurrency_groups_pkey do update
  set turn = excluded.turn, due_at = null;
end
$$;
