-- Finds what runs and attempts break of what must always hold, a row for each breach. Asked for the
-- runs between two ids, it answers from the indexes by run.
create view millrace.run_faults (rule, run_id, attempt_id, detail) as
select 'a running run owns a live attempt', r.id, null::bigint,
  'run of entity ' || r.entity_id || ' has none'
from millrace.runs r
where r.status = 'running'
  and not exists (
    select
    from millrace.attempts a
    where a.run_id = r.id
      and a.state in ('queued', 'started', 'waiting'))
union all
select 'a failed run, and no other, names the stage that failed it and the error', r.id, null,
  format('the run is %s', r.status)
from millrace.runs r
where (r.status = 'failed') <> (r.failed_stage_id is not null)
  or (r.status = 'failed') <> (r.error_code is not null)
  or (r.status = 'failed' and not exists (
    select
    from millrace.attempts a
    where a.run_id = r.id
      and a.stage_id = r.failed_stage_id
      and a.state = 'failed'
      and not a.superseded
      and not exists (
        select
        from millrace.attempts n
        where n.run_id = a.run_id
          and n.stage_id = a.stage_id
          and n.number > a.number)))
union all
select 'an attempt has a run, and one that is over has no live attempt', a.run_id, a.id,
  format('the run is %s, the attempt %s', coalesce(r.status::text, 'gone'), a.state)
from millrace.attempts a
left join millrace.runs r on r.id = a.run_id
where r.id is null
  or (a.state in ('queued', 'started', 'waiting') and r.status <> 'running')
union all
select 'a queued attempt has a due time, a started one a lease, a waiting one a deadline',
  a.run_id, a.id, a.state::text
from millrace.attempts a
left join millrace.claims c on c.token = a.token
where (a.state = 'queued' and (a.queue_at is null or a.token is not null))
  or (a.state = 'started'
    and (c.token is null or a.queue_at is null or not a.id = any (c.attempt_ids)))
  or (a.state = 'waiting'
    and (a.deadline_at is null or a.queue_at is not null or a.job_id is null))
  or (a.state not in ('queued', 'started') and a.queue_at is not null)
  or (a.state <> 'waiting' and (a.poll_at is not null or a.deadline_at is not null))
union all
select 'an attempt that is over cannot be late', a.run_id, a.id, a.state::text
from millrace.attempts a
where a.late_at is not null
  and a.state not in ('queued', 'started', 'waiting')
union all
select 'no worker is awaited for a stage that none runs', a.run_id, a.id, 'stage ' || s.name
from millrace.attempts a
join millrace.stages s on s.id = a.stage_id
where (s.kind in ('manual', 'pipeline') and a.state in ('queued', 'started'))
  or (s.kind = 'gate' and a.state in ('started', 'waiting'))
union all
select 'a superseded attempt is not live', a.run_id, a.id, a.state::text
from millrace.attempts a
where a.superseded
  and a.state in ('queued', 'started', 'waiting')
union all
select 'a completed attempt has its result, and no other has one', a.run_id, a.id,
  'stage ' || a.stage_id
from millrace.attempts a
where (a.state = 'completed') <> (a.output is not null)
union all
select 'a job is heard to run while its attempt waits', a.run_id, a.id, a.state::text
from millrace.attempts a
where a.job_started_at is not null
  and a.state in ('queued', 'started', 'skipped')

-- While a map is under way its collecting decides on thresholds.
union all
select 'a stage is completed once, and has one live attempt at most', a.run_id, max(a.id),
  format('%s attempts of stage %s', count(*), s.name)
from millrace.attempts a
join millrace.stages s on s.id = a.stage_id
where a.state in ('queued', 'started', 'waiting', 'completed', 'skipped')
  and not a.superseded
group by a.run_id, a.stage_id, s.name
having count(*) > 1
union all
select 'a live attempt has its needs done', a.run_id, a.id, 'stage ' || a.stage_id
from millrace.attempts a
join millrace.runs r on r.id = a.run_id
join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
where a.state in ('queued', 'started', 'waiting')
  and exists (
    select
    from unnest(vs.needs) n
    where not exists (
      select
      from millrace.done_attempts d
      where d.run_id = a.run_id
        and d.stage_id = n))
union all
select 'a completed run has all stages completed or skipped', r.id, null, 'stage ' || vs.stage_id
from millrace.runs r
join millrace.version_stages vs on vs.version_id = r.version_id
where r.status = 'completed'
  and not exists (
    select
    from millrace.done_attempts d
    where d.run_id = r.id
      and d.stage_id = vs.stage_id)
union all
select 'a stage whose needs are done has begun', r.id, null, 'stage ' || vs.stage_id
from millrace.runs r
join millrace.version_stages vs on vs.version_id = r.version_id
where r.status = 'running'
  and not exists (
    select
    from millrace.attempts a
    where a.run_id = r.id
      and a.stage_id = vs.stage_id
      and not a.superseded)
  and not exists (
    select
    from (
      select (t ->> 'map')::int from jsonb_array_elements(vs.after) t
      union all
      select n from unnest(vs.needs) n) n(id)
    where not exists (
      select
      from millrace.done_attempts d
      where d.run_id = r.id
        and d.stage_id = n.id));
