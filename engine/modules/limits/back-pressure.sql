-- Back-pressure: a stage takes no more than a later stage has room for. Attempts that are due or in
-- flight at the later stage, or on the way to it, take room. So do the attempts in flight at the
-- stages that the later stage holds back.

-- Returns the column, and the part of its value, by which a stage's limits sort its queue into
-- groups.
create function millrace.key_in(p_limits jsonb) returns jsonb
immutable
as $$
select '{"part": "value"}' || (p_limits -> 'concurrency') - 'limit'
$$;

-- Returns how many more attempts a stage, or each of its keys, may take before a later stage is
-- full; no row where no later stage holds it back. Only a gate is held back by key, and only where
-- all stages on the way have its key. All counts are of one snapshot, so that an attempt which
-- moves on meanwhile is counted once.
-- p_keys: keys of a gate; the default asks for the stage as a whole.
create function millrace.room_before_later(p_stage_id int, p_keys text[] default array[null])
returns table (key text, room int)
as $$
  v_groups text[] := case
    when p_keys[1] is not null then array(select '0' || k from unnest(p_keys) k)
  end;

return query
with pressures as materialized (
  select b.later_id, b.backlog
  from millrace.back_pressures b
  where b.stage_id = p_stage_id
    and (v_groups is not null) = (
      select bool_and((g.kind = 'gate'
        and millrace.key_in(s.limits) = millrace.key_in(g.limits)) is true)
      from millrace.backlogs c
      join millrace.stages s on s.id = c.stage_id and (c.with_due or s.kind <> 'gate')
      join millrace.stages g on g.id = p_stage_id
      where c.later_id = b.later_id)
), found as materialized (
  select h.later_id, case when v_groups is null then '' else n.key end as key,
    count(*) as many
  from pressures h
  -- by key
  cross join lateral (
    select o.stage_id, o.with_due
    from millrace.backlogs o
    where o.later_id = h.later_id
    offset 0) c
  cross join lateral (
    select f.key
    from millrace.in_flight_at(c.stage_id, v_groups, h.backlog) f
    union all
    select d
    from millrace.due_at(c.stage_id, v_groups, h.backlog) d
    where c.with_due) n
  group by 1, 2
)
select k.name, min(greatest(h.backlog - coalesce(f.many, 0), 0))::int
from pressures h
cross join unnest(p_keys) k(name)
left join found f on f.later_id = h.later_id and f.key = coalesce(k.name, '')
group by k.name;
$$;

-- Returns a row for each attempt that is due at a stage, with its key, or '' for the whole stage.
-- For the whole stage it leaves out attempts whose key is paused, since a service refuses the key.
-- p_groups: groups of the stage; null means the whole stage.
-- p_most: at most so many rows for each group, or for the whole stage.
create function millrace.due_at(p_stage_id int, p_groups text[], p_most int) returns setof text
stable
set enable_seqscan = off
as $$
return query
select substr(g.name, 2)
from unnest(p_groups) g(name)
cross join lateral (
  select from millrace.attempts q
  where q.stage_id = p_stage_id and q.concurrency_group = g.name
    and q.queue_at <= v_now and q.state = 'queued'
  order by q.queue_at, q.id
  limit p_most) a
union all
(select ''
 from millrace.attempts a
 where p_groups is null and a.stage_id = p_stage_id and a.queue_at <= v_now
   and a.state = 'queued'
   and substr(a.concurrency_group, 2) = any (array(
     select u.key
     from millrace.limited_stages m
     join millrace.limit_uses u on u.limit_id = m.limit_id
     where m.stage_id = p_stage_id and u.kind = 'pause' and u.during @> v_now)) is not true
 limit p_most);
$$;

-- Lists for each later stage the stages whose attempts take its room.
-- with_due: whether due attempts take room, besides those in flight.
create view millrace.backlogs as
select b.later_id, b.later_id as stage_id, true as with_due
from millrace.back_pressures b
union
select b.later_id, w, true
from millrace.back_pressures b
cross join unnest(b.on_the_way) w
union all
select b.later_id, b.stage_id, false from millrace.back_pressures b;
