-- Corrects times that were written before the clock was set back, and returns how many attempts it
-- corrected. Otherwise workers would seem alive, leases valid and attempts not due until the clock
-- shows the old time again. An attempt's times keep their distances from its creation.
-- p_limit: how many attempts are corrected.
create function millrace.follow_clock(p_limit int) returns int
as $$
  v_late timestamptz := v_now + interval '1 minute';
  v_done int;

delete from millrace.wake_ups r where r.woken_at > v_late;
update millrace.workers w set heartbeat_at = v_now where w.heartbeat_at > v_late;
with late as materialized (
  select a.ctid, a.created_at - v_now as by
  from millrace.stages s
  cross join lateral (
    select o.id
    from millrace.attempts o
    where o.stage_id = s.id and o.queue_at > v_late and o.state = 'queued'
    union all
    select o.id
    from millrace.attempts o
    where o.stage_id = s.id and o.deadline_at > v_late and o.state = 'waiting') i
  join millrace.attempts a on a.id = i.id and a.created_at > v_late
  limit p_limit
  for update of a skip locked
)
update millrace.attempts a
set created_at = v_now, queue_at = a.queue_at - l.by, poll_at = a.poll_at - l.by,
  deadline_at = a.deadline_at - l.by, late_at = a.late_at - l.by
from late l
where a.ctid = l.ctid;
get diagnostics v_done = row_count;
update millrace.claims c
set expires_at = v_now + s.lease
from millrace.stages s
where s.id = c.stage_id and c.expires_at > v_late + s.lease;
return v_done;
$$;
