-- Concurrency groups are served in turn by name, behind the one that was served last

-- Lists groups with something queued or started at a stage, behind one and round to it.
create function millrace.groups_behind(p_stage_id int, p_after text, p_most int) returns text[]
as $$
return array(
  with recursive seen(name, is_group, again) as (
    select p_after, false, false
    union all
    select coalesce(n.concurrency_group, ''), n.concurrency_group is not null,
      s.again or n.concurrency_group is null
    from seen s
    left join lateral (
      select a.concurrency_group
      from millrace.attempts a
      where a.stage_id = p_stage_id and a.concurrency_group > s.name
        and a.queue_at is not null
      order by a.concurrency_group
      limit 1) n on true
    where not s.again or n.concurrency_group <= p_after
  )
  select s.name from seen s where s.is_group limit p_most);
$$;

-- Finds up to p_limit groups behind one with room and something due but p_seen, and how much each
-- may take. names: empty after a whole round, null after p_looks at 500 groups each, or half a
-- second; behind: where the next call begins.
create function millrace.next_by_group(
  p_stage millrace.stages, p_limit int, p_looks int, p_seen bigint[], inout behind text,
  out names text[], out shares int[]
)
set enable_hashjoin = on
as $$
declare
  v_most int := least(p_limit, 500);
  v_groups text[];
  v_first text;

behind := coalesce(behind, (
  select l.last_group from millrace.limits l where l.stage_id = p_stage.id));
for v_look in 1 .. p_looks loop
  v_groups := millrace.groups_behind(p_stage.id, behind, v_most);
  select coalesce(array_agg(d.name order by d.ordinal), '{}'),
    array_agg(d.share order by d.ordinal)
  into names, shares
  from (
    select g.name, g.ordinal,
      least(r.room, greatest(p_limit / count(*) over (), 1))::int as share
    from unnest(v_groups) with ordinality g(name, ordinal)
    join millrace.room_of_keys(p_stage, v_groups) r on r.concurrency_group = g.name
    where r.room >= 1
      and exists (
        select from millrace.attempts a
        where a.stage_id = p_stage.id and a.concurrency_group = g.name
          and a.queue_at <= v_now and a.state = 'queued' and not a.isolated
          and a.id <> all (p_seen))
    order by g.ordinal
    limit p_limit) d;
  behind := coalesce(names[cardinality(names)], behind);
  exit when names <> '{}' or cardinality(v_groups) < v_most or v_first = any (v_groups);
  v_first := coalesce(v_first, v_groups[1]);
  behind := v_groups[v_most];
  v_most := 500;
  names := null;
  exit when millrace.now() > v_now + interval '500 milliseconds';
end loop;
$$;

-- queued → started for up to p_room attempts that may share an isolate, by turns.
create function millrace.claim_by_group(
  p_stage millrace.stages, p_worker millrace.workers, p_room int,
  out token uuid, out attempt_ids bigint[], out wait_ms int
)
as $$
declare
  v_token uuid := gen_random_uuid();
  v_behind text;
  v_next record;
  v_ids bigint[];

attempt_ids := '{}';
-- More rounds are for what shares leave over and what somebody holds.
for v_round in 1 .. 20 loop
  exit when millrace.now() > v_now + interval '1 second';
  v_next := millrace.next_by_group(
    p_stage, p_room - cardinality(attempt_ids), 50, '{}', v_behind);
  v_behind := v_next.behind;
  exit when coalesce(v_next.names, '{}') = '{}';
  with picked as materialized (
    select a.id, n.ordinal
    from unnest(v_next.names, v_next.shares) with ordinality n(name, share, ordinal)
    cross join lateral (
      select q.id
      from millrace.attempts q
      where q.stage_id = p_stage.id and q.concurrency_group = n.name
        and q.queue_at <= v_now and q.state = 'queued' and not q.isolated
      order by q.queue_at, q.id
      limit n.share
      for update skip locked) a
  ), taken as (
    update millrace.attempts a
    set state = 'started', token = v_token, started_at = v_now
    from picked p
    -- by key
    where a.id = any (array[p.id])
    returning a.id, a.queue_at, p.ordinal
  )
  select array_agg(t.id order by t.ordinal, t.queue_at, t.id) into v_ids from taken t;
  continue when v_ids is null;
  attempt_ids := attempt_ids || v_ids;
  -- Here, since the next round counts what is in flight.
  insert into millrace.claims (
    token, worker_id, stage_id, host, expires_at, isolated, attempt_ids)
  values (v_token, p_worker.id, p_stage.id, p_worker.host, v_now + p_stage.lease, false, v_ids)
  on conflict on constraint claims_pkey do update
  set attempt_ids = claims.attempt_ids || excluded.attempt_ids;
  perform millrace.take_tokens(p_stage.id, v_ids, 1);
  exit when cardinality(attempt_ids) >= p_room;
end loop;
update millrace.limits l
set last_group = v_behind
where l.stage_id = p_stage.id and l.last_group <> v_behind;
if attempt_ids <> '{}' then
  token := v_token;
  return;
end if;
-- A worker is quicker than the sweep where a key is full or short of its rate.
wait_ms := (
  select min(case
    when r.is_full then 1000
    else ceil(1000 * extract(epoch from r.opens_at - v_now))
  end)
  from millrace.room_of_keys(p_stage, millrace.groups_behind(p_stage.id, v_behind, 100)) r
  where (r.is_full or r.opens_at <= v_now + interval '10 seconds')
    and exists (
      select from millrace.attempts a
      where a.stage_id = p_stage.id and a.concurrency_group = r.concurrency_group
        and a.queue_at <= v_now and a.state = 'queued'));
$$;
