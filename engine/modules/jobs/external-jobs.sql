-- Records the ends of external jobs, by a verified callback or by polling. The first end of a job
-- wins.
-- p_items: a list of {submission, stage, trace_id, service, job_id, outcome, result | error,
-- usage}.
-- Answers {items: the verdicts, wake: the stages to wake, sweep_due, collect: the fan-outs to
-- collect}.
create function public.millrace_resume(p_items json)
set lock_timeout = '2s'
as $$
  v_items millrace.work[];
  v_item millrace.work;
  v_locked bigint[];
  v_moved bigint[] := '{}';
  v_to record;
  v_late int[] := '{}';
  v_done record;

-- Gates with limits may pass rows: no user keeps this transaction open.
perform set_config('millrace.commits_soon', 'on', true);
v_items := millrace.parse_items(p_items, 'submission');
-- Locks the runs first. The sweep may replace an attempt until its run is locked, so the attempt to
-- which a job's end belongs is looked up afterwards.
v_locked := millrace.lock_attempts(
  array(select i.attempt_id from unnest(v_items) i where i.verdict is null));
for v_i in 1 .. cardinality(v_items) loop
  v_item := v_items[v_i];
  continue when v_item.verdict is not null or (v_item.attempt_id = any (v_locked)) is not true;
  -- An end belongs to the newest attempt with its submission. After a lost lease or a deadline it
  -- is late. It then belongs to the stage's newest attempt, if that has the same job, or if this
  -- job was completed. It changes nothing where a person has cancelled or ended the stage since.
  select coalesce(n.id, o.id) as id, n.id is not null as late into v_to
  from millrace.attempts o
  left join lateral (
    select a.*, bool_or(a.state = 'cancelled' or a.service = 'by_hand') over () as is_overruled
    from millrace.attempts a
    where a.run_id = o.run_id and a.stage_id = o.stage_id and a.number > o.number
    order by a.number desc
    limit 1) n on o.state = 'failed'
      and not o.superseded
      and o.error ->> 'code' in ('deadline', 'lost_lease')
      and n.state <= 'completed' and not n.superseded
      and ((n.service, n.job_id) = (v_item.service, v_item.job_id)
        or v_item.outcome = 'completed'
          and coalesce((o.service, o.job_id) = (v_item.service, v_item.job_id), true))
      and n.is_overruled is not true
  -- Without offset 0 the planner would walk all attempts backwards for max().
  where o.id = coalesce((
      select max(c.id)
      from (
        select a.id from millrace.attempts a
        where a.submission_id = v_item.attempt_id
        offset 0) c), v_item.attempt_id);
  v_items[v_i].attempt_id := v_to.id;
  v_moved := v_moved || v_to.id;
  v_late := v_late || case when v_to.late then array[v_item.ord] end;
end loop;
-- Locks again, now also the attempts that are queued and that a claim could take.
v_done := millrace.apply_outcomes_guarded(
  millrace.check_fencing(v_items, millrace.lock_attempts(v_moved), v_late));
return jsonb_build_object(
  'items', coalesce(millrace.verdicts_of(v_done.items), '[]'),
  'wake', millrace.wake_list(millrace.stages_to_wake(
    -- Ended attempts may have made room in limits. Wakes their own stages and those that are short
    -- of a limit shared with them.
    v_done.ready || array(
      select distinct n.stage_id
      from unnest(v_done.items) i
      -- by key
      cross join lateral (
        select o.stage_id from millrace.attempts o where o.id = i.attempt_id offset 0) a
      join millrace.limited_stages m on m.stage_id = a.stage_id
      join millrace.limited_stages n on n.limit_id = m.limit_id
        and (n.stage_id = m.stage_id or n.short_at is not null)
      where i.verdict is null and i.reason is null and exists (
        select from millrace.attempts q
        where q.stage_id = n.stage_id and q.queue_at <= v_now and q.state = 'queued'
        offset 0)))),
  'sweep_due', millrace.sweep_due(),
  'collect', millrace.parents_to_collect('{}'));
$$;

-- Returns waiting jobs whose poll is due, and sets their next poll.
-- p_limit: how many jobs, 1,000 at most.
-- p_poll_ms: milliseconds until the next poll; null for the poll interval of each stage.
create function public.millrace_poll(p_limit int, p_poll_ms int default null)
as $$
  v_jobs jsonb;

if p_poll_ms not between 1 and 3600000 or (p_limit between 1 and 1000) is not true then
  raise exception 'MR002: p_limit is % and p_poll_ms is %, '
      'but they must be from 1 to 1000 and 3600000', p_limit, p_poll_ms
    using hint = 'Set COMPLETION_POLL_INTERVAL to a number of milliseconds, '
      'or leave it unset.';
end if;
with due as (
  select a.id from millrace.attempts a
  where a.poll_at <= v_now and a.state = 'waiting'
  order by a.poll_at
  limit p_limit
  for update skip locked
), taken as (
  -- The next poll is set at once, so that two pollers never ask for the same job.
  update millrace.attempts a
  set poll_at = v_now + coalesce(make_interval(secs => p_poll_ms / 1000.0), s.poll_every)
  from due, millrace.stages s
  where a.id = due.id and s.id = a.stage_id
  returning a.*, s.name as stage, s.function_name, s.pipeline_id
)
select json_agg(j order by j.attempt)::jsonb
into v_jobs
from (
  select t.id as attempt, coalesce(t.submission_id, t.id) as submission, r.trace_id,
    p.name as pipeline, t.stage, t.function_name as function, t.service, t.job_id,
    millrace.key_of(r) as entity_id, t.deadline_at, t.job_started_at is null as awaits_start
  from taken t
  join millrace.pipelines p on p.id = t.pipeline_id
  join millrace.runs r on r.id = t.run_id) j;
return jsonb_build_object('jobs', coalesce(v_jobs, '[]'),
  'more', coalesce(jsonb_array_length(v_jobs), 0) = p_limit);
$$;

-- Records the states that services report of jobs which have not ended. A job that its service has
-- queued gets its deadline anew once half of it has passed. A job that has begun to run gets its
-- deadline anew once.
-- p_jobs: a list of {attempt, service, job_id, state: queued | running}.
create function public.millrace_note_jobs(p_jobs jsonb)
as $$
  v_noted int;

with locked as (
  select w.id, w.deadline, t.state
  from jsonb_to_recordset(p_jobs) as t(attempt bigint, service text, job_id text, state text)
  -- Without the lateral look-up the planner would walk all attempts of a stage.
  cross join lateral (
    select a.id, s.deadline
    from millrace.attempts a
    join millrace.stages s on s.id = a.stage_id
    where a.id = t.attempt and a.state = 'waiting' and a.service = t.service
      and a.job_id = t.job_id and a.job_started_at is null
      and (t.state = 'running'
        or t.state = 'queued' and a.deadline_at < v_now + s.deadline / 2)
    limit 1
    for update of a skip locked
  ) w
), noted as (
  update millrace.attempts a
  set deadline_at = v_now + h.deadline,
    job_started_at = case when h.state = 'running' then v_now end
  from locked h
  where a.id = h.id
  returning a.id
)
select count(*) into v_noted from noted;
return jsonb_build_object('noted', v_noted);
$$;
