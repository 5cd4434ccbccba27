-- Records the end of external jobs, by a verified callback or by polling: the first one wins.
-- Items: {submission, stage, trace_id, service, job_id, outcome, result | error, usage}.
create function public.millrace_resume(p_items json) returns jsonb
set lock_timeout = '2s'
as $$
declare
  v_items millrace.work[];
  v_item millrace.work;
  v_locked bigint[];
  v_moved bigint[] := '{}';
  v_to record;
  v_late int[] := '{}';
  v_done record;

-- Gates with limits may pass rows, since nobody keeps this transaction open.
perform set_config('millrace.commits_soon', 'on', true);
v_items := millrace.parse_items(p_items, 'submission');
-- The run to lock is known before the attempt is, which a sweep may replace meanwhile.
v_locked := millrace.lock_attempts(
  array(select i.attempt_id from unnest(v_items) i where i.verdict is null));
for v_i in 1 .. cardinality(v_items) loop
  v_item := v_items[v_i];
  continue when v_item.verdict is not null or (v_item.attempt_id = any (v_locked)) is not true;
  -- The end is about the newest attempt under its submission. Late, after a lost lease or a
  -- deadline, it is about the newest of the stage, if that has the same job or this one ended well,
  -- unless a person has cancelled or ended the stage since.
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
  -- Offset 0 keeps the planner from walking all attempts backwards for max().
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
-- Once more, for those that are queued, which a claim might take otherwise.
v_done := millrace.apply_outcomes_guarded(
  millrace.check_fencing(v_items, millrace.lock_attempts(v_moved), v_late));
return jsonb_build_object(
  'items', coalesce(millrace.verdicts_of(v_done.items), '[]'),
  'wake', millrace.wake_list(millrace.stages_to_wake(
    -- Stages with work that may go on since attempts have ended: theirs, and those short of a
    -- limit shared with them.
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

-- Takes waiting jobs whose poll is due. p_poll_ms overrides the stages' own poll intervals.
create function public.millrace_poll(p_limit int, p_poll_ms int default null)
returns jsonb
as $$
declare
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
    p.name as pipeline, t.stage, t.function_name as function, t.service, t.job_id, r.entity_id,
    t.deadline_at, t.job_started_at is null as awaits_start
  from taken t
  join millrace.pipelines p on p.id = t.pipeline_id
  join millrace.runs r on r.id = t.run_id) j;
return jsonb_build_object('jobs', coalesce(v_jobs, '[]'),
  'more', coalesce(jsonb_array_length(v_jobs), 0) = p_limit);
$$;

-- Notes what services say of jobs that have not ended: [{attempt, service, job_id, state}]. While
-- one is queued its deadline does not run: it moves once half of it has passed.
create function public.millrace_note_jobs(p_jobs jsonb) returns jsonb
as $$
declare
  v_noted int;

with locked as (
  select w.id, w.deadline, t.state
  from jsonb_to_recordset(p_jobs) as t(attempt bigint, service text, job_id text, state text)
  -- A lateral look-up, or the planner would walk the attempts of a stage.
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
