-- Waiting and releasing: attempts that leave their worker without an end

-- Lets attempts wait for an external job: started → waiting. Sets the stage's deadline, ten minutes
-- if it has none, and its poll interval.
create function millrace.wait(p_stage_id int, p_items millrace.work[])
as $$
  v_changes millrace.change[];

with waiting as (
  update millrace.attempts a
  set state = 'waiting', queue_at = null, service = i.service, job_id = i.job_id,
    deadline_at = v_now + coalesce(s.deadline, interval '10 minutes'),
    poll_at = v_now + s.poll_every
  from unnest(p_items) i, millrace.stages s
  where a.id = any (array[i.attempt_id]) and a.state = i.was and s.id = p_stage_id
  returning i.entity_id, a.job_id, a.retry_count, a.started_at
)
select array_agg(millrace.change_of(w.entity_id, 'started', w.job_id,
  p_retry_count => w.retry_count, p_started_at => w.started_at))
into v_changes
from waiting w;
perform millrace.project(p_stage_id, v_changes);
$$;

-- Adds attempts of a stage that wait for children or for a person's decision. Returns them.
-- p_service: `children` or `decision`.
-- p_job_id: the job's id; null for the attempt's own.
create function millrace.add_waiting(
  p_stage_id int, p_run_ids bigint[], p_service text, p_job_id text default null
) returns setof millrace.attempts
as $$
return query
insert into millrace.attempts (id, run_id, stage_id, number, parent_id, state, created_at,
  started_at, deadline_at, late_at, service, job_id)
overriding system value
select i.id, i.run_id, p_stage_id, coalesce(l.number, 0) + 1,
  case when not l.superseded then l.id end, 'waiting', v_now, v_now, v_now + s.deadline,
  v_now + s.sla, p_service, coalesce(p_job_id, i.id::text)
from (
  select r.id as run_id, nextval('millrace.attempts_id_seq') as id
  from (select u.id from unnest(p_run_ids) u(id) order by u.id) r) i
join millrace.stages s on s.id = p_stage_id
left join lateral (
  select a.id, a.number, a.superseded
  from millrace.attempts a
  where a.run_id = i.run_id and a.stage_id = p_stage_id
  order by a.number desc
  limit 1) l on true
returning *;
$$;

-- Puts attempts back into the queue: started → queued. A release costs no attempt of the policy.
-- The third release in a row fails the attempt, since a row could otherwise be released for ever. A
-- release with an error says that the function reached its limit of CPU or memory. The attempt then
-- runs isolated; if it did already, it fails. Returns the stage, which has work.
create function millrace.release(p_stage_id int, p_items millrace.work[]) returns int[]
as $$
  v_changes millrace.change[];
  v_grouped bigint[];
  v_tired millrace.work[];

with released as (
  update millrace.attempts a
  set state = 'queued', token = null, started_at = null, queue_at = v_now,
    isolated = a.isolated or i.error is not null,
    releases = a.releases + (i.error is null)::int
  from unnest(p_items) i
  where a.id = any (array[i.attempt_id])
    and a.state = i.was
    and case when i.error is null then a.releases < 2 else not a.isolated end
  returning i.entity_id, a.retry_count, a.run_id, a.concurrency_group
)
select array_agg(millrace.change_of(
    r.entity_id, 'queued', p_retry_count => r.retry_count)),
  array_agg(r.run_id) filter (where r.concurrency_group is not null)
into v_changes, v_grouped
from released r;
if v_grouped is not null then
  perform millrace.assign_groups(p_stage_id, v_grouped);
end if;
perform millrace.project(p_stage_id, v_changes);
v_tired := array(
  select jsonb_populate_record(i, jsonb_build_object('outcome', 'failed', 'result', null,
    'service', null, 'job_id', null, 'error', coalesce(i.error, '{"code": "released",
      "message": "released by three workers in a row without a result"}')))
  from unnest(p_items) i
  join millrace.attempts a on a.id = any (array[i.attempt_id])
  where a.state = 'started');
if v_tired <> '{}' then
  perform millrace.fail(p_stage_id, v_tired);
end if;
return array[p_stage_id];
$$;
