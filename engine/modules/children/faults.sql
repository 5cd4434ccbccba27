-- Lists fan-outs that no collector will finish. A fan-out whose worker was lost is no fault while
-- its stage has an attempt queued or started, which takes the fan-out over.
create view millrace.fan_out_faults (rule, run_id, attempt_id, detail) as
select
  'an attempt that waits for children has an open fan-out, and an open fan-out a live attempt',
  o.run_id, o.attempt_id, o.detail
from (
  select a.run_id, a.id as attempt_id, coalesce('fan-out ' || f.id, 'none') as detail
  from millrace.attempts a
  left join millrace.fan_outs f on f.attempt_id = a.id and f.state = 'open'
  where a.state = 'waiting' and a.service = 'children' and f.total is null
  union all
  select f.run_id, f.attempt_id, 'fan-out ' || f.id
  from millrace.fan_outs f
  where f.state = 'open'
    and not exists (
      select from millrace.attempts a
      where a.id = f.attempt_id and a.state = 'waiting' and a.service = 'children')
    and not exists (
      select from millrace.attempts s
      where s.run_id = f.run_id and s.stage_id = f.stage_id
        and s.state in ('queued', 'started')
        and not s.superseded)) o;

-- Lists open fan-outs whose sums and tallies differ from the states of their children.
create view millrace.sum_faults (rule, run_id, attempt_id, detail, children) as
select 'the sums of a fan-out and its tallies are what its children came to',
  f.run_id, f.attempt_id,
  format('fan-out %s: %s completed and failed, but %s were counted', f.id, c.ended, t.ended),
  f.spawned
from millrace.fan_outs f
cross join lateral (
  select array[count(*) filter (where r.status = 'completed'),
    count(*) filter (where r.status = 'failed')] as ended
  from millrace.runs r
  where r.fan_out_id = f.id) c
cross join lateral (
  select array[f.completed + coalesce(sum(t.completed), 0),
    f.failed + coalesce(sum(t.failed), 0)] as ended, bool_or(t.recount) as recount
  from millrace.child_tallies t
  where t.fan_out_id = f.id) t
where f.state = 'open'
  and t.recount is not true
  and c.ended <> t.ended;
