-- Watching it
--
-- Views and functions for Supabase Studio's table editor and SQL editor.

-- What is counted in live rows is counted to a cap, so that a queue of a million is told as fast as
-- one of ten.

-- What is started, by stage: read from the leases, of which there are as many as workers at work.
create or replace view millrace.started_work as
select a.stage_id, count(*) as started, min(a.queue_at) as oldest_due_at
from millrace.claims c
cross join lateral unnest(c.attempt_ids) i(id)
join millrace.attempts a on a.id = i.id and a.token = c.token and a.state = 'started'
group by a.stage_id;

create or replace view millrace.queue_depth as
with moment as materialized (
  select millrace.now() as now
), started as materialized (
  select w.stage_id, w.started from millrace.started_work w
)
select p.name as pipeline, s.name as stage,
  -- Those that are started stand at the head of the queue's index.
  greatest(r.n - coalesce(w.started, 0), 0) as ready, b.n as in_backoff,
  coalesce(w.started, 0) as started, o.queue_at as oldest_due_at
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
cross join moment m
left join started w on w.stage_id = s.id
cross join lateral (
  select count(*) as n
  from (
    select
    from millrace.attempts a
    where a.stage_id = s.id
      and a.queue_at <= m.now
    limit 1000 + coalesce(w.started, 0)) k) r
cross join lateral (
  select count(*) as n
  from (
    select
    from millrace.attempts a
    where a.stage_id = s.id
      and a.queue_at > m.now
    limit 1000) k) b
left join lateral (
  select a.queue_at
  from millrace.attempts a
  where a.stage_id = s.id
    and a.queue_at is not null
    and a.state = 'queued'
  order by a.queue_at, a.id
  limit 1) o on true
order by p.name, s.id;
comment on view millrace.queue_depth is
  'How much is queued at each stage, from the queue''s own index. ready and in_backoff are exact '
  'up to 1000, which stands for that many or more.';

create or replace view millrace.stage_health as
with moment as materialized (
  select millrace.now() as now, millrace.alive_since() as alive_since
), depth as materialized (
  select q.pipeline, q.stage, q.ready, q.in_backoff, q.started, q.oldest_due_at
  from millrace.queue_depth q
), waiting as materialized (
  select a.stage_id, count(*) as n, min(a.started_at) as since
  from (
    select o.stage_id, o.started_at
    from millrace.attempts o
    where o.deadline_at is not null
    limit 50000) a
  group by a.stage_id
), working as materialized (
  select w.stage_id, w.oldest_due_at as since from millrace.started_work w
), worker as materialized (
  select w.stage_id, count(*) as n
  from millrace.workers w
  where w.left_at is null
    and w.heartbeat_at > (select m.alive_since from moment m)
  group by w.stage_id
), told as materialized (
  select t.stage_id, sum(t.n) filter (where t.outcome = 'completed') as completed,
    sum(t.n) filter (where t.outcome = 'retried') as retried
  from (
    select t.stage_id, o.outcome, o.n
    from millrace.totals t
    cross join lateral (
      values ('completed', t.completed), ('retried', t.retried)) o(outcome, n)
    union all
    (select p.stage_id, p.outcome, p.n from millrace.pulses p limit 10000)) t
  group by t.stage_id
), late as materialized (
  select l.stage_id, l.late from millrace.late_counts() l
)
select p.name as pipeline, s.name as stage, s.enabled and p.enabled as enabled,
  d.ready, d.in_backoff, d.started, coalesce(w.n, 0) as waiting,
  coalesce(t.completed, 0)::bigint as completed, f.n as failed,
  coalesce(t.retried, 0)::bigint as retries,
  case when o.since <= m.now then m.now - o.since end as oldest_age,
  coalesce(k.n, 0) as live_workers, s.sla,
  case when s.sla is null then 0 else coalesce(l.late, 0) end as late
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
cross join moment m
join depth d on d.pipeline = p.name and d.stage = s.name
left join waiting w on w.stage_id = s.id
left join working g on g.stage_id = s.id
left join worker k on k.stage_id = s.id
left join told t on t.stage_id = s.id
left join late l on l.stage_id = s.id
cross join lateral (
  select least(d.oldest_due_at, w.since, g.since) as since) o
cross join lateral (
  select count(*) as n
  from (
    select
    from millrace.runs r
    where r.pipeline_id = s.pipeline_id
      and r.failed_stage_id = s.id
      and r.status = 'failed'
    limit 1000) u) f
order by p.name, s.id;
comment on view millrace.stage_health is
  'One row a stage. ready, in_backoff, started, waiting: attempts that are live now. failed: runs '
  'that failed at the stage and that nobody has taken up since. These are exact up to 1000, '
  'waiting up to 50000 over all stages. completed and retries: totals of what happened since the '
  'beginning, attempts of deleted runs included. oldest_age: of the oldest open attempt that is '
  'due. late: how many runs are longer at the stage than its bound, sla.';

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
  superseded boolean
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select a.id, s.name, a.number, a.state, a.parent_id, a.retry_count,
    a.created_at, a.started_at, a.finished_at, a.finished_at - a.started_at,
    a.service, a.job_id,
    a.error ->> 'code', coalesce(a.error ->> 'detail', a.error ->> 'message'),
    a.usage, a.superseded
  from millrace.attempts a
  join millrace.stages s on s.id = a.stage_id
  where a.run_id = p_run
  order by a.id
$$;
comment on function millrace.timeline(bigint) is
  'Every attempt of a run in order, with times, errors, tokens and cost.';
