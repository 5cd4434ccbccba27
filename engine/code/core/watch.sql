-- Watching it
--
-- Views and functions for Supabase Studio's table editor and SQL editor.

create or replace view millrace.queue_depth as
select p.name as pipeline, s.name as stage,
  count(a.id) filter (where a.state = 'queued' and a.queue_at <= millrace.now()) as ready,
  count(a.id) filter (where a.state = 'queued' and a.queue_at > millrace.now()) as in_backoff,
  count(a.id) filter (where a.state = 'started') as started,
  min(a.queue_at) filter (where a.state = 'queued') as oldest_due_at
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.attempts a on a.stage_id = s.id and a.queue_at is not null
group by p.name, s.id, s.name
order by p.name, s.id;
comment on view millrace.queue_depth is
  'How much is queued at each stage, from the queue''s own index.';

create or replace view millrace.stage_health as
select p.name as pipeline, s.name as stage, s.enabled and p.enabled as enabled,
  count(a.id) filter (where a.state = 'queued' and a.queue_at <= millrace.now()) as ready,
  count(a.id) filter (where a.state = 'queued' and a.queue_at > millrace.now()) as in_backoff,
  count(a.id) filter (where a.state = 'started') as started,
  count(a.id) filter (where a.state = 'waiting') as waiting,
  count(a.id) filter (where a.state = 'completed' and not a.superseded) as completed,
  count(distinct a.run_id) filter (
    where a.state = 'failed' and r.status = 'failed' and not a.superseded) as failed,
  count(a.id) filter (where a.retry_count > 0) as retries,
  millrace.now() - min(coalesce(a.queue_at, a.started_at)) filter (
    where a.state in ('queued', 'started', 'waiting')
      and coalesce(a.queue_at, a.started_at) <= millrace.now()) as oldest_age,
  millrace.live_workers(s.id)::bigint as live_workers,
  s.sla,
  case when s.sla is null then 0 else millrace.late_runs(s.id) end as late
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.attempts a on a.stage_id = s.id
left join millrace.runs r on r.id = a.run_id
group by p.name, p.enabled, s.id, s.name, s.enabled, s.sla
order by p.name, s.id;
comment on view millrace.stage_health is
  'One row a stage: what is ready, in work, waiting and failed, the oldest open attempt''s age, '
  'live workers, retries, and how many runs are late: longer at the stage than its bound, sla.';

-- Of each stage the last 1,000 jobs of the last hour, so that it reads as much after a year as on
-- the first day.
create or replace view millrace.job_outcomes as
select p.name as pipeline, s.name as stage, s.limits ->> 'max_in_flight' as max_in_flight,
  j.ended, j.completed, j.past_deadline
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
cross join lateral (
  select count(*) as ended,
    count(*) filter (where e.state = 'completed') as completed,
    count(*) filter (where e.state = 'failed' and e.error ->> 'code' = 'deadline') as past_deadline
  from (
    select a.state, a.error
    from millrace.attempts a
    where a.stage_id = s.id
      and a.job_id is not null
      -- A subselect, so that the hour bounds what the index is read for.
      and a.finished_at > (select millrace.now() - interval '1 hour')
    order by a.finished_at desc
    limit 1000
  ) e
) j
where s.kind in ('function', 'external')
  and s.deadline is not null
order by p.name, s.id;
comment on view millrace.job_outcomes is
  'One row a stage with external jobs: how many ended in the last hour (the last 1,000 at most), '
  'how many of them completed, and how many passed their deadline.';

-- Lists what a run has been through, attempt by attempt.
create or replace function millrace.timeline(p_run bigint)
returns table (
  attempt_id bigint, stage text, number int, state millrace.attempt_state, parent_id bigint,
  retry_count int, queued_at timestamptz, started_at timestamptz, finished_at timestamptz,
  took interval, service text, job_id text, error_code text, error_message text, usage jsonb,
  superseded boolean, error_stack text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select a.id, s.name, a.number, a.state, a.parent_id, a.retry_count,
    a.created_at, a.started_at, a.finished_at, a.finished_at - a.started_at,
    a.service, a.job_id,
    a.error ->> 'code', coalesce(a.error ->> 'detail', a.error ->> 'message'),
    a.usage, a.superseded, a.error ->> 'stack'
  from millrace.attempts a
  join millrace.stages s on s.id = a.stage_id
  where a.run_id = p_run
  order by a.id
$$;
comment on function millrace.timeline(bigint) is
  'Every attempt of a run in order, with times, errors, tokens and cost; of an error that nobody '
  'foresaw also where it was thrown.';
