-- Claims serve concurrency groups in turn, by name, beginning behind the group served last

-- Returns groups with queued or started attempts at a stage, in the order of their names. Begins
-- behind p_after, goes on with the first name after the last, and ends with p_after.
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

-- Returns up to p_limit groups that have room and a due attempt.
-- p_looks: after so many looks at 500 groups each, or half a second, the search is given up.
-- p_seen: attempts that do not count, since the caller has tried them.
-- behind: the group behind which the search begins (null: the group served last), and then the
-- group behind which the next call begins.
-- names: the groups; empty after a whole round without any, null when the search was given up.
-- shares: how many attempts each group may begin.
create function millrace.next_by_group(
  p_stage millrace.stages, p_limit int, p_looks int, p_seen bigint[], inout behind text,
  out names text[], out shares int[]
)
set enable_hashjoin = on
as $$
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
