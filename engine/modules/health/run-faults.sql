-- Lists each breach, by runs and attempts, of what must always hold. For runs between two ids
-- Postgres reads the view by the indexes on runs.
create view millrace.run_faults (rule, run_id, attempt_id, detail) as
select 'a running run owns a live attempt', r.id, null::bigint,
  'run of entity ' || r.entity_id || ' has none'
from millrace.runs r
where r.status = 'running'
  and not exists (
    select from millrace.attempts a where a.run_id = r.id and a.state < 'completed')
union all
select 'a failed run, and no other, names the stage that failed it and the error', r.id, null,
  format('the run is %s', r.status)
from millrace.runs r
where (r.status = 'failed') <> (r.failed_stage_id is not null)
  or (r.status = 'failed') <> (r.error_code is not null)
  -- by key
  or (r.status = 'failed' and (
    select a.state = 'failed' and not a.superseded
    from millrace.attempts a
    where a.run_id = r.id and a.stage_id = r.failed_stage_id
    order by a.number desc
    limit 1) is not true)
union all
select f.rule, a.run_id, a.id,
  format('stage %s is %s, the run %s', s.name, a.state, coalesce(r.status::text, 'gone'))
from millrace.attempts a
join millrace.stages s on s.id = a.stage_id
left join millrace.runs r on r.id = a.run_id
left join millrace.claims c on c.token = a.token
cross join lateral (select a.state < 'completed' as live) l
cross join lateral (
  values
    ('an attempt has a run, and one that is over has no live attempt',
      r.id is null or l.live and r.status <> 'running'),
    ('a queued attempt has a due time, a started one a lease, a waiting one a deadline',
      case a.state
        when 'queued' then a.queue_at is null or a.token is not null
        when 'started' then c.token is null or a.queue_at is null or a.id <> all (c.attempt_ids)
        when 'waiting' then a.deadline_at is null or a.queue_at is not null or a.job_id is null
        else a.queue_at is not null
      end
      or a.state <> 'waiting' and (a.poll_at is not null or a.deadline_at is not null)),
    ('an attempt that is over cannot be late', a.late_at is not null and not l.live),
    ('no worker is awaited for a stage that none runs',
      s.kind in ('manual', 'pipeline') and a.state in ('queued', 'started')
        or s.kind = 'gate' and a.state in ('started', 'waiting')),
    ('a superseded attempt is not live', a.superseded and l.live),
    ('a completed attempt has its result, and no other has one',
      (a.state = 'completed') <> (a.output is not null)),
    ('a job is heard to run while its attempt waits',
      a.job_started_at is not null and a.state in ('queued', 'started', 'skipped'))
) f(rule, broken)
where f.broken
union all
select 'a stage is completed once, and has one live attempt at most', a.run_id, max(a.id),
  format('%s attempts of stage %s', count(*), s.name)
from millrace.attempts a
join millrace.stages s on s.id = a.stage_id
where a.state not in ('failed', 'cancelled')
  and not a.superseded
group by a.run_id, a.stage_id, s.name
having count(*) > 1
union all
select 'a live attempt has its needs done', a.run_id, a.id, 'stage ' || a.stage_id
from millrace.attempts a
join millrace.runs r on r.id = a.run_id
join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
where a.state < 'completed'
  and exists (
    select from unnest(vs.needs) n
    where not exists (
      select from millrace.done_attempts d
      where d.run_id = a.run_id and d.stage_id = n))
union all
select 'a completed run has all stages completed or skipped', r.id, null, 'stage ' || vs.stage_id
from millrace.runs r
join millrace.version_stages vs on vs.version_id = r.version_id
where r.status = 'completed'
  and not exists (
    select from millrace.done_attempts d
    where d.run_id = r.id and d.stage_id = vs.stage_id)
union all
select 'a stage whose needs are done has begun', r.id, null, 'stage ' || vs.stage_id
from millrace.runs r
join millrace.version_stages vs on vs.version_id = r.version_id
where r.status = 'running'
  and not exists (
    select from millrace.attempts a
    where a.run_id = r.id and a.stage_id = vs.stage_id and not a.superseded)
  and not exists (
    -- A stage with a threshold must have begun once its map is done. While the map is under way,
    -- the collector of its children decides.
    select from (
      select (t ->> 'map')::int from jsonb_array_elements(vs.after) t
      union all
      select n from unnest(vs.needs) n) n(id)
    where not exists (
      select from millrace.done_attempts d where d.run_id = r.id and d.stage_id = n.id));
