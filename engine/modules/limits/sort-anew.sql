-- Concurrency groups of attempts that were queued before a definition named or changed the groups

-- Returns up to p_limit attempts that are queued or started at a stage, and up to p_limit that
-- wait; null means all.
create function millrace.live_attempts(p_stage_id int, p_limit int) returns bigint[]
as $$
return array(
  (select a.id
   from millrace.attempts a
   where a.stage_id = p_stage_id and a.queue_at is not null
   order by a.queue_at, a.id
   limit p_limit)
  union all
  (select a.id
   from millrace.attempts a
   where a.stage_id = p_stage_id and a.deadline_at is not null
   limit p_limit));
$$;

-- Writes the groups of attempts that have none, at stages of a pipeline that have groups. Looks at
-- p_limit attempts of each stage, and as many waiting ones. Skips locked attempts.
create function millrace.sort_ungrouped(p_pipeline_id int, p_limit int)
set plan = by_index
as $$
with sorted as materialized (
  select u.*
  from (
    select s, array_agg(l.id) as ids, array_agg(l.run_id) as run_ids
    from millrace.stages s
    cross join lateral (
      select o.id, o.run_id
      from unnest(millrace.live_attempts(s.id, p_limit)) i
      cross join lateral (
        select q.id, q.run_id
        from millrace.attempts q
        where q.id = i and q.concurrency_group is null
        for update skip locked) o) l
    where s.pipeline_id = p_pipeline_id and s.has_groups
    group by s.id) n
  cross join unnest(n.ids, millrace.groups_of_runs(n.s, n.run_ids))
    u(id, concurrency_group)
)
update millrace.attempts a
set concurrency_group = u.concurrency_group
from sorted u
where a.id = u.id
  -- by key
  and a.id = any (array(select o.id from sorted o));
$$;

-- Deletes the groups of attempts at stages whose new definition names another column or part for
-- their groups. Skips locked attempts.
-- p_stages: the stages of the new definition.
create function millrace.forget_groups(p_id int, p_stages jsonb)
as $$
update millrace.attempts a
set concurrency_group = null
from (
  select o.id
  from millrace.stages t
  join jsonb_array_elements(p_stages) s on s ->> 'name' = t.name
  cross join unnest(millrace.live_attempts(t.id, null)) i
  join millrace.attempts o on o.id = i
  where t.pipeline_id = p_id and t.has_groups
    and millrace.key_in(t.limits) is distinct from millrace.key_in(s -> 'limits')
    and o.concurrency_group is not null
  order by o.id
  for update of o skip locked) t
where a.id = t.id;
$$;
