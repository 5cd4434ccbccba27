-- Finds groups out of reach, limits that hold for other stages than name them, and work that a
-- shared limit does not count, which the sweep counts within a minute.
create view millrace.limit_faults (rule, run_id, attempt_id, detail) as
select 'a queued attempt''s concurrency group has a turn to come, or its key something in flight',
  a.run_id, a.id, a.concurrency_group
from millrace.attempts a
where a.queue_at is not null
  and a.state = 'queued'
  and a.concurrency_group is not null
  -- A subselect leaves the attempts of a slice to be found by their runs.
  and (
    select s.has_groups and s.kind <> 'gate'
    from millrace.stages s
    where s.id = a.stage_id)
  and not exists (
    select from millrace.concurrency_groups g
    where g.stage_id = a.stage_id and g.concurrency_group = a.concurrency_group)
  and not exists (
    select from millrace.arrivals n
    where n.stage_id = a.stage_id
      and n.concurrency_group in (a.concurrency_group, '0' || substr(a.concurrency_group, 2)))
  and not exists (
    select
    from millrace.stages s
    join millrace.in_flight f on f.stage_id = s.id and f.key = substr(a.concurrency_group, 2)
    where s.id = a.stage_id and s.limits ? 'concurrency')
union all
select 'a shared limit holds for the stages that name it', null, null,
  format('stage %s of %s', s.name, p.name)
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
where array(
    select l.name
    from millrace.limited_stages m
    join millrace.limits l on l.id = m.limit_id
    where m.stage_id = s.id and l.name is not null
    order by l.name)
  <> array(
    select n
    from jsonb_array_elements_text(s.limits -> 'shared') n
    order by n)
union all
select 'a stage''s limits are those of its own limit', null, null,
  format('stage %s of %s', s.name, p.name)
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.limits l on l.stage_id = s.id
where s.limits is distinct from nullif(l.limits, '{}')
  or (l.id is not null and not exists (
    select from millrace.limited_stages m where m.limit_id = l.id and m.stage_id = s.id))
union all
select 'what is at work under a shared limit is counted in flight', a.run_id, a.id,
  'stage ' || a.stage_id
from millrace.attempts a
where a.queue_at is not null
  and a.state = 'started'
  and (
    select a.started_at > min(m.since) + interval '1 minute'
    from millrace.limited_stages m
    join millrace.limits l on l.id = m.limit_id and l.name is not null
    where m.stage_id = a.stage_id)
  and not exists (
    select
    from millrace.in_flight f
    where f.attempt_id = a.id and f.token = a.token);
