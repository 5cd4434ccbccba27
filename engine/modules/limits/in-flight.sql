-- In flight: attempts that are started or waiting

-- Returns the attempts in flight at a stage with their keys, by leases and deadlines. Does not read
-- queued attempts.
-- p_groups: groups of the stage; null means all.
-- p_most: at most so many waiting attempts, or of each group; null means all.
create function millrace.in_flight_at(
  p_stage_id int, p_groups text[] default null, p_most int default null
)
returns table (attempt_id bigint, key text)
stable
set enable_seqscan = off
as $$
return query
select a.id, coalesce(substr(a.concurrency_group, 2), '')
from millrace.started_attempts a
where a.stage_id = p_stage_id
  and (p_groups is null or a.concurrency_group = any (p_groups))
union all
(select a.id, coalesce(substr(a.concurrency_group, 2), '')
 from millrace.attempts a
 where p_groups is null and a.stage_id = p_stage_id and a.deadline_at is not null
 limit p_most)
union all
select a.id, substr(g.name, 2)
from unnest(p_groups) g(name)
cross join lateral (
  select t.id
  from millrace.attempts t
  where t.stage_id = p_stage_id and t.concurrency_group = g.name
    and t.deadline_at is not null
  limit p_most) a;
$$;

-- Lists the attempts in flight at each stage, with the key of their group, or ''.
create view millrace.in_flight as
select s.id as stage_id, f.attempt_id, f.key
from millrace.stages s
cross join millrace.in_flight_at(s.id) f;
