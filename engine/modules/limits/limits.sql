-- Limits: so much of something, by a key, in a window or at a time
--
-- A claim locks the stage's limits, so that what it counts stays true until it commits.

-- Locks a limit until the transaction ends, and returns true. Returns false where another
-- transaction has locked it and p_may_wait is false.
-- p_key: the id of a shared limit, or the negative id of a stage for the stage's own limit.
create function millrace.lock_limit(p_key int, p_may_wait boolean) returns boolean
as $$
if p_may_wait then
  perform pg_advisory_xact_lock(hashtext('millrace.limit'), p_key);
  return true;
end if;
return pg_try_advisory_xact_lock(hashtext('millrace.limit'), p_key);
$$;

-- Locks the limits of a stage, and returns the stage as it is under the locks. Returns null where
-- another transaction has one of them. A wait ends after 800 ms, before Postgres looks for
-- deadlocks: a migration may wait for the stage.
create function millrace.enter_limits(p_stage_id int, p_may_wait boolean)
returns millrace.stages
set lock_timeout = '800ms'
as $$
  v_stage millrace.stages;

if not millrace.lock_limit(-p_stage_id, p_may_wait) then
  return null;
end if;
select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
-- The offset makes Postgres sort before it takes the locks.
if v_stage.limits ? 'shared' and exists (
    select from (
      select l.id
      from millrace.limited_stages m
      join millrace.limits l on l.id = m.limit_id and l.name is not null
      where m.stage_id = p_stage_id
      order by l.id
      offset 0) o
    where not millrace.lock_limit(o.id, p_may_wait))
  or v_stage.limits ? 'back_pressure' and exists (
    select from (
      select b.later_id
      from millrace.back_pressures b
      where b.stage_id = p_stage_id
      order by b.later_id
      offset 0) o
    where not pg_try_advisory_xact_lock(hashtext('millrace.back_pressure'), o.later_id)) then
  return null;
end if;
return v_stage;
exception when lock_not_available then
  return null;
$$;

-- Returns how many of p_wanted attempts one limit lets a stage take now. At a gate only rate and
-- back-pressure apply.
-- p_rivals: how many stages share the limit now, this one included.
-- p_is_next: whether the stage may take the token that does not divide among the rivals.
-- wait_ms: milliseconds after which there may be room; null where there is room now, or where
-- waiting does not help.
create function millrace.room_in(
  p_limit millrace.limits, p_stage millrace.stages, p_wanted int, p_rivals bigint,
  p_is_next boolean, out room int, out wait_ms int
)
as $$
  v_in_work boolean := p_stage.function_name is not null;
  v_max int := case when v_in_work then (p_limit.limits ->> 'max_in_flight')::numeric end;
  v_busy boolean;
  v_free float8;
  v_opens_at timestamptz;
  v_behind int;

room := p_wanted;
if v_max is not null then
  select least(room, v_max - sum(f.many), ceil(v_max::float8 / nullif(p_rivals, 1))
    - sum(f.many) filter (where m.stage_id = p_stage.id))
  into room
  from millrace.limited_stages m
  cross join lateral (
    select count(*) as many from millrace.in_flight_at(m.stage_id, null, v_max)) f
  where m.limit_id = p_limit.id;
end if;
if v_in_work and room > 0 and p_limit.limits ? 'spending' then
  -- Reads the attempts in flight before the budget: an attempt that ends in between has spent by
  -- the time that the budget is read.
  v_busy := exists (select from millrace.in_flight_at(p_stage.id, null, 1));
  room := least(room, (
    select min(case
      when b.unspent <= b.reserved then 0
      when b.average = 0 then room
      when b.average > 0 then floor((b.unspent - b.reserved) / b.average + 1e-9)
      when v_busy then 0
      else 1
    end)
    from millrace.budgets_of(p_limit, p_stage.id) b));
end if;
if room > 0 and p_limit.limits ? 'rate' then
  select r.free, r.opens_at
  into v_free, v_opens_at
  from millrace.room_in(p_limit, '') r(tokens, is_whole, free, opens_at);
  room := least(room, case
    when p_is_next then ceil(v_free / p_rivals)
    else floor(v_free / p_rivals)
  end);
end if;
if room > 0 and p_limit.limits ? 'back_pressure' then
  v_behind := (select b.free from millrace.room_before_later(p_stage.id) b(key, free));
  room := least(room, v_behind);
end if;
wait_ms := case
  when room > 0 then null
  when v_free < 1
    then ceil(1000 * least(86400, extract(epoch from v_opens_at - v_now)))
  -- Room depends on another stage, which wakes no worker of this one.
  when v_free > 0 or v_behind = 0 or v_in_work and p_limit.stage_id is null then 1000
end;
$$;

-- Returns how many of p_wanted attempts all limits of a stage let it take now, and wait_ms as
-- room_in() does. Reads the stage's own limit first.
-- short_of: the shared limit that allows the fewest; null where none allows fewer than wanted.
create function millrace.room_at(
  p_stage millrace.stages, p_wanted int, out room int, out wait_ms int, out short_of int
)
as $$
  v_each record;
  v_one record;

room := p_wanted;
for v_each in
  select l, l.id, l.stage_id, o.rivals, o.is_next
  from millrace.limited_stages m
  join millrace.limits l on l.id = m.limit_id
  -- A stage counts as a rival for 15 seconds after it was short: it may lack a worker until the
  -- sweep wakes it.
  cross join lateral (
    select 1 + count(*) as rivals, coalesce(bool_and(coalesce(n.taken_at, '-infinity')
      >= coalesce(m.taken_at, '-infinity')), true) as is_next
    from millrace.limited_stages n
    where n.limit_id = l.id and n.stage_id <> m.stage_id
      and n.short_at > v_now - interval '15 seconds') o
  where m.stage_id = p_stage.id
  order by l.stage_id is null, l.id
loop
  v_one := millrace.room_in(v_each.l, p_stage, room, v_each.rivals, v_each.is_next);
  short_of := case
    when v_one.room < room and v_each.stage_id is null then v_each.id
    else short_of
  end;
  room := v_one.room;
  wait_ms := v_one.wait_ms;
  exit when room <= 0;
end loop;
$$;

-- Returns for each group of a stage how many attempts may begin now. Hash joins are allowed, since
-- there may be 500 groups.
-- is_full: whether the group has as many attempts in flight as concurrency allows.
-- opens_at: when the key's rate allows a start again; null where it does now.
create function millrace.room_of_keys(p_stage millrace.stages, p_groups text[])
returns table (concurrency_group text, room float8, is_full boolean, opens_at timestamptz)
set enable_hashjoin = on
as $$
  v_most int := (p_stage.limits #>> '{concurrency,limit}')::int;

return query
select g.name, least(v_most - coalesce(f.many, 0), t.room, b.room, 'infinity'),
  v_most <= f.many is true, t.opens_at
from unnest(p_groups) g(name)
left join (
  select '0' || i.key as name, count(*) as many
  from millrace.in_flight_at(p_stage.id, p_groups, v_most) i
  where v_most is not null
  group by i.key) f on f.name = g.name
cross join lateral (
  select min(r.room) as room, max(r.opens_at) as opens_at
  from millrace.limited_stages m
  join millrace.limits l on l.id = m.limit_id and l.limits ? 'key_rate'
  cross join millrace.room_in(l, g.name) r
  where p_stage.limits ? 'shared' and m.stage_id = p_stage.id) t
left join (
  select '0' || o.key as name, o.room
  from millrace.room_before_later(p_stage.id, array(
    select substr(n, 2) from unnest(p_groups) n)) o
  where p_stage.kind = 'gate'
  -- The offset keeps the function out of the join, so that Postgres calls it at gates alone.
  offset 0) b on b.name = g.name;
$$;

-- Writes that a stage is short of a shared limit, or that it took attempts while another stage was
-- short. For 15 seconds the stages then share the limit: each has as many attempts in flight, and
-- they take the tokens of a rate in turn.
-- p_room: how many attempts the limits allowed; p_taken: how many the stage took.
create function millrace.note_share(p_stage_id int, p_room int, p_short_of int, p_taken int)
as $$
  v_short_of int := case
    when p_taken >= p_room and (p_room > 0 or exists (
      select from millrace.attempts a
      where a.stage_id = p_stage_id and a.queue_at <= v_now and a.state = 'queued'))
      then p_short_of
  end;

update millrace.limited_stages m
set short_at = case when m.limit_id = v_short_of then v_now end,
  taken_at = case when p_taken > 0 then v_now else m.taken_at end
where m.stage_id = p_stage_id
  and exists (
    select from millrace.limited_stages o
    where o.limit_id = m.limit_id and o.stage_id <> p_stage_id
      and (m.limit_id = v_short_of
        or m.short_at is not null
        or p_taken > 0 and o.short_at > v_now - interval '15 seconds'));
$$;

-- Deletes buckets that are full, and ends throttles whose time is over.
create function millrace.sweep_limits()
as $$
  v_limit millrace.limits;

delete from millrace.buckets d
using (
  select b.limit_id, b.key
  from millrace.buckets b
  join millrace.limits l on l.id = b.limit_id
  where (millrace.room_in(l, b.key)).is_whole
  for update of b skip locked) o
where d.limit_id = o.limit_id and d.key = o.key;
for v_limit in
  select l.* from millrace.limits l where l.until <= v_now order by l.id
loop
  continue when not millrace.lock_limit(coalesce(-v_limit.stage_id, v_limit.id), false);
  perform millrace.end_throttle(l, false)
  from millrace.limits l
  where l.id = v_limit.id and l.until <= v_now;
end loop;
$$;
