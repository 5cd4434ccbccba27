-- Finds shared limits that hold for other stages than name them, that are not as declared and
-- throttled, or that contradict what they learned; and work under one that it does not count. A
-- stage that has just come under a limit is counted by the next sweep.
create or replace view millrace.shared_limit_faults (rule, run_id, attempt_id, detail) as
select 'a shared limit holds for the stages that name it', null::bigint, null::bigint,
  format('stage %s of %s', s.name, p.name)
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
where array(
    select l.name
    from millrace.limited_stages m
    join millrace.shared_limits l on l.id = m.limit_id
    where m.stage_id = s.id
    order by l.name)
  <> array(
    select n
    from jsonb_array_elements_text(s.limits -> 'shared') n
    order by n)
union all
select 'a shared limit is what was declared, with its throttle over it', null, null, l.name
from millrace.shared_limits l
where l.limits <> millrace.throttled(l.declared, coalesce(l.throttle, '{}'))
union all
select 'a shared limit has its whole rate, or says since when it has not', null, null, l.name
from millrace.shared_limits l
where l.share not between 0 and 1
  or (l.lowered_at is null and l.share <> 1)
  or num_nulls(l.lowered_at, l.lowered_since, l.heed_from, l.refused_by) not in (0, 4)
  or l.lowered_since > l.lowered_at
union all
select 'a key of a shared limit has its whole rate, or says since when it has not', null, null,
  format('%s of %s', k.key, l.name)
from millrace.limit_keys k
join millrace.shared_limits l on l.id = k.limit_id
where k.share not between 0 and 1
  or (k.lowered_at is null and k.share <> 1)
  or num_nulls(k.lowered_at, k.lowered_since, k.heed_from, k.refused_by) not in (0, 4)
  or k.lowered_since > k.lowered_at
union all
select 'what is at work under a shared limit is counted in flight', a.run_id, a.id,
  format('stage %s', s.name)
from millrace.limited_stages m
join millrace.stages s on s.id = m.stage_id
join millrace.attempts a on a.stage_id = m.stage_id
where a.queue_at is not null
  and a.state = 'started'
  and a.started_at > m.since + interval '1 minute'
  and not exists (
    select
    from millrace.in_flight f
    where f.attempt_id = a.id and f.token = a.token);
comment on view millrace.shared_limit_faults is
  'Shared limits that do not hold what they say, for check_invariants().';
