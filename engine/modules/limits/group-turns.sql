-- Concurrency groups: whose turn it is, and how a claim takes from them
--
-- Groups come one after the other, round by round. A group sleeps while nothing of it is due or its
-- key has no token. One whose key is at its limit is dropped until a freed slot of the key is
-- announced, so what cannot go on costs a claim nothing. Only claims write groups, under the lock
-- of the stage's own limit.

-- Lists groups of which a stage has news, or in which something is queued at a gate, by a loose
-- scan that begins behind one and comes round to it.
create function millrace.groups_behind(p_stage millrace.stages, p_after text, p_most int)
returns text[]
as $$
declare
  v_at_gate boolean := p_stage.kind = 'gate';
begin
  return array(
    with recursive seen(name, is_group, again) as (
      select p_after, false, false
      union all
      select coalesce(n.concurrency_group, ''), n.concurrency_group is not null,
        s.again or n.concurrency_group is null
      from seen s
      left join lateral (
        (select a.concurrency_group
         from millrace.arrivals a
         where not v_at_gate and a.stage_id = p_stage.id and a.concurrency_group > s.name
         order by a.concurrency_group
         limit 1)
        union all
        (select a.concurrency_group
         from millrace.attempts a
         where v_at_gate
           and a.stage_id = p_stage.id
           and a.concurrency_group > s.name
           and a.queue_at is not null
         order by a.concurrency_group
         limit 1)) n on true
      where not s.again or n.concurrency_group <= p_after
    )
    select s.name
    from seen s
    where s.is_group
    limit p_most);
end
$$;

-- Reads arrivals before a claim, at least as many as it may take. Groups of their keys with
-- something queued, and those that have slept until now, come in turn behind the others.
create function millrace.admit_arrivals(p_stage millrace.stages, p_room int)
as $$
declare
  v_now timestamptz := millrace.now();
  v_many int := 100 + 2 * p_room;
  v_groups text[] := millrace.groups_behind(p_stage, (
    select l.arrivals_to from millrace.limits l where l.stage_id = p_stage.id), v_many);
begin
  if cardinality(v_groups) > 0 then
    update millrace.limits l
    set arrivals_to = coalesce(v_groups[v_many], '')
    where l.stage_id = p_stage.id and l.arrivals_to <> coalesce(v_groups[v_many], '');
    delete from millrace.arrivals a
    using (
      select b.concurrency_group, b.id
      from unnest(v_groups) u(concurrency_group)
      cross join lateral (
        select n.concurrency_group, n.id
        from millrace.arrivals n
        where n.stage_id = p_stage.id and n.concurrency_group = u.concurrency_group
        order by n.id
        limit (1 + 10 * v_many / cardinality(v_groups))) b) d
    where a.stage_id = p_stage.id and a.concurrency_group = d.concurrency_group and a.id = d.id;
    insert into millrace.concurrency_groups (stage_id, concurrency_group, turn, due_at)
    select p_stage.id, g.name,
      case when n.queue_at <= v_now then nextval('millrace.arrivals_id_seq') end,
      case when n.queue_at > v_now then n.queue_at end
    from unnest(v_groups) g(name)
    cross join lateral (
      select a.queue_at
      from millrace.attempts a
      where a.stage_id = p_stage.id
        and a.concurrency_group = g.name
        and a.queue_at is not null
        and a.state = 'queued'
      order by a.queue_at, a.id
      limit 1) n
    where not exists (
      select
      from millrace.concurrency_groups o
      where o.stage_id = p_stage.id and o.concurrency_group = g.name and o.turn is not null)
    order by g.name
    on conflict on constraint concurrency_groups_pkey do update
    set turn = excluded.turn, due_at = excluded.due_at;
  end if;
  update millrace.concurrency_groups g
  set turn = nextval('millrace.arrivals_id_seq'), due_at = null
  from (
    select o.concurrency_group
    from millrace.concurrency_groups o
    where o.stage_id = p_stage.id and o.due_at <= v_now
    order by o.due_at
    limit v_many) w
  where g.stage_id = p_stage.id and g.concurrency_group = w.concurrency_group;
end
$$;

-- queued → started for up to p_room attempts that may share an isolate, in rounds: each takes a
-- share from every group in turn. wait_ms as in claim_limited().
create function millrace.claim_by_turns(
  p_stage millrace.stages, p_worker millrace.workers, p_room int,
  out token uuid, out attempt_ids bigint[], out wait_ms int
)
as $$
declare
  v_now timestamptz := millrace.now();
  v_token uuid := gen_random_uuid();
  v_taken bigint[] := '{}';
  v_groups text[];
  v_share int;
  v_got record;
begin
  perform millrace.admit_arrivals(p_stage, p_room);
  -- More rounds are for groups that turn out to be empty.
  for v_round in 1 .. 50 loop
    v_groups := array(
      select g.concurrency_group
      from millrace.concurrency_groups g
      where g.stage_id = p_stage.id
        and g.turn is not null
      order by g.turn
      limit p_room - cardinality(v_taken));
    exit when cardinality(v_groups) = 0;
    v_share := greatest((p_room - cardinality(v_taken)) / cardinality(v_groups), 1);
    with picked as materialized (
      select a.id, v.concurrency_group
      from millrace.room_of_keys(p_stage, v_groups) v
      cross join lateral (
        select q.id
        from millrace.attempts q
        where q.stage_id = p_stage.id
          and q.concurrency_group = v.concurrency_group
          and q.queue_at <= v_now
          and q.state = 'queued'
          and not q.isolated
        order by q.queue_at, q.id
        limit greatest(least(v_share, v.room), 0)::int
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
    perform millrace.end_turns(p_stage, v_groups, v_got.groups, v_now);
    v_taken := v_taken || v_got.ids;
    exit when cardinality(v_taken) >= p_room;
  end loop;
  if v_taken = '{}' then
    wait_ms := case
      when exists (
        select from millrace.concurrency_groups g
        where g.stage_id = p_stage.id and g.turn is not null) then 0
      when exists (select from millrace.arrivals a where a.stage_id = p_stage.id) then 0
      -- More waits behind one of the keys that began last, which are at their limit.
      when exists (
        select
        from (
          select f.key
          from millrace.in_flight f
          where f.stage_id = p_stage.id
          order by f.attempt_id desc
          limit 20) f
        where not exists (
            select from millrace.concurrency_groups g
            where g.stage_id = p_stage.id and g.concurrency_group = '0' || f.key)
          and exists (
            select from millrace.attempts a
            where a.stage_id = p_stage.id and a.concurrency_group = '0' || f.key
              and a.queue_at <= v_now and a.state = 'queued')) then 1000
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
  insert into millrace.claims (token, worker_id, host, expires_at, isolated, attempt_ids)
  values (token, p_worker.id, p_worker.host, v_now + p_stage.lease, false, v_taken);
end
$$;

-- Moves groups that had their turn to the end, or to sleep; drops one that is empty or full.
create function millrace.end_turns(
  p_stage millrace.stages, p_groups text[], p_served text[], p_now timestamptz
)
as $$
begin
  with looked as materialized (
    select concurrency_group, n.queue_at, u.concurrency_group = any (p_served) as served,
      n.queue_at is null or r.is_full as is_over, r.opens_at,
      nextval('millrace.arrivals_id_seq') as turn
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
    order by u.place
  ), gone as (
    delete from millrace.concurrency_groups g
    using looked k
    where g.stage_id = p_stage.id and g.concurrency_group = k.concurrency_group and k.is_over
  )
  update millrace.concurrency_groups g
  set turn = case
      when k.queue_at <= p_now and k.served and k.opens_at is null then k.turn
    end,
    due_at = case
      when k.queue_at > p_now or k.opens_at is not null then greatest(k.queue_at, k.opens_at)
      -- What is due and was not taken is locked or isolated.
      when not k.served then p_now + interval '1 second'
    end
  from looked k
  where g.stage_id = p_stage.id
    and g.concurrency_group = k.concurrency_group
    and not k.is_over;
end
$$;

-- Puts groups in turn of which a claim gives something back: one that got nothing at the front, so
-- that one with large rows is served in the end, the others as arrivals.
create function millrace.give_back_turns(
  p_stage millrace.stages, p_kept bigint[], p_back bigint[]
)
as $$
declare
  v_first bigint := coalesce((
    select min(g.turn)
    from millrace.concurrency_groups g
    where g.stage_id = p_stage.id and g.turn is not null), 0);
begin
  with back as materialized (
    select a.concurrency_group, min(u.place) as place,
      a.concurrency_group in (
        select k.concurrency_group
        from millrace.attempts k
        where k.id = any (p_kept)) as served
    from unnest(p_back) with ordinality u(id, place)
    join millrace.attempts a on a.id = u.id
    where a.concurrency_group is not null
    group by a.concurrency_group
  ), announced as (
    insert into millrace.arrivals (stage_id, concurrency_group)
    select p_stage.id, b.concurrency_group
    from back b
    where b.served
  )
  insert into millrace.concurrency_groups as g (stage_id, concurrency_group, turn)
  select p_stage.id, b.concurrency_group, v_first - row_number() over (order by b.place desc)
  from back b
  where not b.served
  on conflict on constraint concurrency_groups_pkey do update
  set turn = excluded.turn, due_at = null;
end
$$;
