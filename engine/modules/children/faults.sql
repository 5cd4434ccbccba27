-- Finds fan-outs that nobody will finish. Where the worker that spawns was lost, its successor
-- takes the fan-out over.
create view millrace.fan_out_faults (rule, run_id, attempt_id, detail) as
select
  'an attempt that waits for children has an open fan-out, and an open fan-out a live attempt',
  o.run_id, o.attempt_id, o.detail
from (
  select a.run_id, a.id as attempt_id, coalesce('fan-out ' || f.id, 'none') as detail
  from millrace.attempts a
  left join millrace.fan_outs f on f.attempt_id = a.id and f.state = 'open'
  where a.state = 'waiting'
    and a.service = 'children'
    and f.total is null
  union all
  select f.run_id, f.attempt_id, 'fan-out ' || f.id
  from millrace.fan_outs f
  where f.state = 'open'
    and not exists (
      select
      from millrace.attempts a
      where a.id = f.attempt_id
        and a.state = 'waiting'
        and a.service = 'children')
    and not exists (
      select
      from millrace.attempts s
      where s.run_id = f.run_id
        and s.stage_id = f.stage_id
        and s.state in ('queued', 'started')
        and not s.superseded)) o;

-- Finds sums that are not what the children came to, which it counts one by one.
create view millrace.sum_faults (rule, run_id, attempt_id, detail, children) as
select 'the sums of a fan-out and its tallies are what its children came to',
  f.run_id, f.attempt_id,
  format('fan-out %s: %s completed, %s failed, but %s and %s were counted',
    f.id, c.completed, c.failed, f.completed + t.completed, f.failed + t.failed),
  f.spawned
from millrace.fan_outs f
cross join lateral (
  select count(*) filter (where r.status = 'completed') as completed,
    count(*) filter (where r.status = 'failed') as failed
  from millrace.runs r
  where r.fan_out_id = f.id) c
cross join lateral (
  select coalesce(sum(t.completed), 0) as completed, coalesce(sum(t.failed), 0) as failed,
    coalesce(bool_or(t.recount), false) as recount
  from millrace.child_tallies t
  where t.fan_out_id = f.id) t
where f.state = 'open'
  and not t.recount
  and (c.completed <> f.completed + t.completed or c.failed <> f.failed + t.failed);
