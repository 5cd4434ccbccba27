-- Ten views of Millrace for Supabase's SQL editor, Reports and Grafana. Each reads a bounded part of
-- the history, by its indexes. The schema is not exposed to the Data API, and is not to be.
--
-- Each view reads a function of the same name. A function's text names the engine only when it is
-- called, so an upgrade of the engine may replace what it reads. The text runs over an older one,
-- and the rights that roles of the project have been given since then stay.

create schema if not exists millrace_watch;
revoke all on schema millrace_watch from public;
grant usage on schema millrace_watch to service_role;
comment on schema millrace_watch is 'Views of Millrace for dashboards; drop it as you please.';

-- The findings of doctor(), faults first.
create or replace function millrace_watch.findings() returns table (
  what text,
  ok boolean,
  detail text
)
language sql volatile security definer set search_path = ''
as $$
select d.what, d.ok, d.detail from millrace.doctor() d order by d.ok, d.what
$$;
create or replace view millrace_watch.findings with (security_invoker = true) as
select * from millrace_watch.findings();
comment on view millrace_watch.findings is
  'The findings of doctor(), faults first.';
comment on column millrace_watch.findings.what is
  'What was looked at.';
comment on column millrace_watch.findings.ok is
  'Whether it is in order.';
comment on column millrace_watch.findings.detail is
  'What is wrong, with the remedy.';

-- Stages that have work and do not get on with it: paused, without a worker, or late.
create or replace function millrace_watch.stuck() returns table (
  pipeline text,
  stage text,
  why text,
  remedy text,
  ready bigint,
  in_backoff bigint,
  started bigint,
  waiting bigint,
  late bigint,
  oldest_age interval
)
language sql volatile security definer set search_path = ''
as $$
select h.pipeline, h.stage,
  concat_ws('; ', case when not h.enabled then 'paused' end, u.why,
    case when h.late > 0 then h.late || ' late' end),
  coalesce(u.remedy, z.remedy), h.ready, h.in_backoff, h.started, h.waiting, h.late, h.oldest_age
from millrace.stage_health h
left join millrace.unattended() u on u.pipeline = h.pipeline and u.stage = h.stage
left join lateral (
  select min(p.remedy) as remedy
  from millrace.paused p
  where not h.enabled and p.pipeline = h.pipeline
    and coalesce(p.stage, h.stage) = h.stage) z on true
where u.stage is not null or h.late > 0
  or not h.enabled and h.ready + h.in_backoff + h.started + h.waiting > 0
order by h.oldest_age desc nulls last
$$;
create or replace view millrace_watch.stuck with (security_invoker = true) as
select * from millrace_watch.stuck();
comment on view millrace_watch.stuck is
  'Stages that have work and do not get on with it: paused, without a worker, or late.';
comment on column millrace_watch.stuck.pipeline is
  'The pipeline.';
comment on column millrace_watch.stuck.stage is
  'The stage.';
comment on column millrace_watch.stuck.why is
  'Why it stands still.';
comment on column millrace_watch.stuck.remedy is
  'What to do; null where the reason says it.';
comment on column millrace_watch.stuck.ready is
  'Rows that a worker could take now.';
comment on column millrace_watch.stuck.in_backoff is
  'Rows that wait for a retry.';
comment on column millrace_watch.stuck.started is
  'Rows in work.';
comment on column millrace_watch.stuck.waiting is
  'Rows that wait for a job, children or a person.';
comment on column millrace_watch.stuck.late is
  'Rows that are longer at the stage than its bound.';
comment on column millrace_watch.stuck.oldest_age is
  'Age of the oldest open attempt that is due.';

-- Dead runs by cause: at most 1,000 causes, each counted to 10,000.
create or replace function millrace_watch.dead() returns table (
  pipeline text,
  stage text,
  error_code text,
  runs bigint,
  oldest timestamptz,
  newest timestamptz
)
language sql volatile security definer set search_path = ''
as $$
select d.pipeline, d.stage, d.error_code, d.runs, d.oldest, d.newest
from millrace.dead_letter_counts d
order by d.runs desc, d.newest desc
$$;
create or replace view millrace_watch.dead with (security_invoker = true) as
select * from millrace_watch.dead();
comment on view millrace_watch.dead is
  'Dead runs by cause: at most 1,000 causes, each counted to 10,000.';
comment on column millrace_watch.dead.pipeline is
  'The pipeline.';
comment on column millrace_watch.dead.stage is
  'The stage that failed.';
comment on column millrace_watch.dead.error_code is
  'The code of the failure.';
comment on column millrace_watch.dead.runs is
  'How many runs; 10000 means 10,000 or more.';
comment on column millrace_watch.dead.oldest is
  'When the first of them failed.';
comment on column millrace_watch.dead.newest is
  'When the last of them failed.';

-- The newest 200 dead runs.
create or replace function millrace_watch.dead_runs() returns table (
  run_id bigint,
  pipeline text,
  stage text,
  entity_id text,
  label text,
  error_code text,
  error_message text,
  failed_at timestamptz
)
language sql volatile security definer set search_path = ''
as $$
select r.id, p.name, s.name, coalesce(r.copy_key, r.entity_id),
  millrace.label_of(p, coalesce(r.copy_key, r.entity_id)), r.error_code, (
    select a.error ->> 'message'
    from millrace.attempts a
    where a.run_id = r.id and a.stage_id = r.failed_stage_id
    order by a.number desc
    limit 1), r.finished_at
from (
  select n.*
  from millrace.pipelines o
  cross join lateral (
    select f.*
    from millrace.runs f
    where f.pipeline_id = o.id and f.status = 'failed'
    order by f.finished_at desc, f.id desc
    limit 200) n
  order by n.finished_at desc, n.id desc
  limit 200) r
join millrace.pipelines p on p.id = r.pipeline_id
join millrace.stages s on s.id = r.failed_stage_id
order by r.finished_at desc, r.id desc
$$;
create or replace view millrace_watch.dead_runs with (security_invoker = true) as
select * from millrace_watch.dead_runs();
comment on view millrace_watch.dead_runs is
  'The newest 200 dead runs.';
comment on column millrace_watch.dead_runs.run_id is
  'The run.';
comment on column millrace_watch.dead_runs.pipeline is
  'The pipeline.';
comment on column millrace_watch.dead_runs.stage is
  'The stage that failed.';
comment on column millrace_watch.dead_runs.entity_id is
  'The key of the row.';
comment on column millrace_watch.dead_runs.label is
  'The label of the row; null without one.';
comment on column millrace_watch.dead_runs.error_code is
  'The code of the failure.';
comment on column millrace_watch.dead_runs.error_message is
  'The message of the failure.';
comment on column millrace_watch.dead_runs.failed_at is
  'When the run failed.';

-- The first 1,000 runs that are longer at a stage than its bound.
create or replace function millrace_watch.late() returns table (
  run_id bigint,
  pipeline text,
  stage text,
  entity_id text,
  state text,
  bound interval,
  late_at timestamptz
)
language sql volatile security definer set search_path = ''
as $$
select a.run_id, p.name, s.name, (
    select r.entity_id from millrace.runs r where r.id = a.run_id),
  a.state::text, s.sla, a.late_at
from millrace.late_attempts(1000) a
join millrace.stages s on s.id = a.stage_id
join millrace.pipelines p on p.id = s.pipeline_id
order by a.late_at
$$;
create or replace view millrace_watch.late with (security_invoker = true) as
select * from millrace_watch.late();
comment on view millrace_watch.late is
  'The first 1,000 runs that are longer at a stage than its bound.';
comment on column millrace_watch.late.run_id is
  'The run.';
comment on column millrace_watch.late.pipeline is
  'The pipeline.';
comment on column millrace_watch.late.stage is
  'The stage.';
comment on column millrace_watch.late.entity_id is
  'The key of the row.';
comment on column millrace_watch.late.state is
  'The state of the stage.';
comment on column millrace_watch.late.bound is
  'How long the stage should take.';
comment on column millrace_watch.late.late_at is
  'When the bound was over.';

-- How long stages take in the last 24 hours, beside the 24 hours before.
create or replace function millrace_watch.slow() returns table (
  pipeline text,
  stage text,
  completed bigint,
  run_p50_ms double precision,
  run_p95_ms double precision,
  before_p95_ms double precision,
  wait_p95_ms double precision
)
language sql volatile security definer set search_path = ''
as $$
select p.name, s.name, f.completed, millrace.bucket_quantile(f.runs, 0.5),
  millrace.bucket_quantile(f.runs, 0.95), millrace.bucket_quantile(f.before, 0.95),
  millrace.bucket_quantile(f.waits, 0.95)
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
cross join lateral (
  select sum(m.n) filter (where m.outcome = 'completed' and d.today)::bigint as completed,
    millrace.add_buckets(array_agg(m.runs) filter (where d.today)) as runs,
    millrace.add_buckets(array_agg(m.runs) filter (where not d.today)) as before,
    millrace.add_buckets(array_agg(m.waits) filter (where d.today)) as waits
  from millrace.sums m
  cross join lateral (select m.at > millrace.now() - interval '1 day' as today) d
  where m.unit = 'hour' and m.pipeline_id = p.id and m.stage_id = s.id
    and m.at > (select millrace.now() - interval '2 days')) f
where f.completed > 0
order by 5 desc nulls last
$$;
create or replace view millrace_watch.slow with (security_invoker = true) as
select * from millrace_watch.slow();
comment on view millrace_watch.slow is
  'How long stages take in the last 24 hours, beside the 24 hours before.';
comment on column millrace_watch.slow.pipeline is
  'The pipeline.';
comment on column millrace_watch.slow.stage is
  'The stage.';
comment on column millrace_watch.slow.completed is
  'Rows that were completed.';
comment on column millrace_watch.slow.run_p50_ms is
  'Median of the time in work, in milliseconds.';
comment on column millrace_watch.slow.run_p95_ms is
  '95th percentile of the time in work, in milliseconds.';
comment on column millrace_watch.slow.before_p95_ms is
  'The same in the 24 hours before.';
comment on column millrace_watch.slow.wait_p95_ms is
  '95th percentile of the wait for a worker, in milliseconds.';

-- The cost of stages in the last 24 hours, beside the 24 hours before.
create or replace function millrace_watch.dear() returns table (
  pipeline text,
  stage text,
  cost_usd numeric,
  before_usd numeric,
  completed bigint,
  usd_a_row numeric,
  input_tokens numeric,
  output_tokens numeric
)
language sql volatile security definer set search_path = ''
as $$
select p.name, s.name, f.cost_usd, f.before_usd, f.completed,
  f.cost_usd / nullif(f.completed, 0), f.input_tokens, f.output_tokens
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
cross join lateral (
  select coalesce(sum(m.cost_usd) filter (where d.today), 0) as cost_usd,
    coalesce(sum(m.cost_usd) filter (where not d.today), 0) as before_usd,
    coalesce(sum(m.n) filter (where m.outcome = 'completed' and d.today), 0)::bigint as completed,
    coalesce(sum(m.input_tokens) filter (where d.today), 0) as input_tokens,
    coalesce(sum(m.output_tokens) filter (where d.today), 0) as output_tokens
  from millrace.sums m
  cross join lateral (select m.at > millrace.now() - interval '1 day' as today) d
  where m.unit = 'hour' and m.pipeline_id = p.id and m.stage_id = s.id
    and m.at > (select millrace.now() - interval '2 days')) f
where f.cost_usd > 0 or f.before_usd > 0
order by f.cost_usd desc, f.before_usd desc
$$;
create or replace view millrace_watch.dear with (security_invoker = true) as
select * from millrace_watch.dear();
comment on view millrace_watch.dear is
  'The cost of stages in the last 24 hours, beside the 24 hours before.';
comment on column millrace_watch.dear.pipeline is
  'The pipeline.';
comment on column millrace_watch.dear.stage is
  'The stage.';
comment on column millrace_watch.dear.cost_usd is
  'Cost in US dollars.';
comment on column millrace_watch.dear.before_usd is
  'Cost in the 24 hours before.';
comment on column millrace_watch.dear.completed is
  'Rows that were completed.';
comment on column millrace_watch.dear.usd_a_row is
  'Cost by completed row; null without any.';
comment on column millrace_watch.dear.input_tokens is
  'Tokens that models read.';
comment on column millrace_watch.dear.output_tokens is
  'Tokens that models wrote.';

-- Each pipeline's runs today (UTC), beside yesterday until the same time.
create or replace function millrace_watch.today() returns table (
  pipeline text,
  completed bigint,
  completed_yesterday bigint,
  failed bigint,
  failed_yesterday bigint,
  retried bigint,
  retried_yesterday bigint,
  cost_usd numeric,
  cost_yesterday_usd numeric
)
language sql volatile security definer set search_path = ''
as $$
select p.name, t.completed + t.ended, y.completed + y.ended, t.failed, y.failed,
  t.retried, y.retried, t.cost_usd, y.cost_usd
from millrace.pipelines p
cross join (select date_trunc('day', millrace.now(), 'UTC') as day) d
cross join lateral millrace.figures(p.name, null, d.day, null) t
cross join lateral millrace.figures(p.name, null, d.day - interval '1 day',
  millrace.now() - interval '1 day' + interval '1 minute') y
order by p.name
$$;
create or replace view millrace_watch.today with (security_invoker = true) as
select * from millrace_watch.today();
comment on view millrace_watch.today is
  'Each pipeline''s runs today (UTC), beside yesterday until the same time.';
comment on column millrace_watch.today.pipeline is
  'The pipeline.';
comment on column millrace_watch.today.completed is
  'Runs that were completed or ended early.';
comment on column millrace_watch.today.completed_yesterday is
  'The same, yesterday.';
comment on column millrace_watch.today.failed is
  'Runs that failed.';
comment on column millrace_watch.today.failed_yesterday is
  'The same, yesterday.';
comment on column millrace_watch.today.retried is
  'Attempts that were tried again.';
comment on column millrace_watch.today.retried_yesterday is
  'The same, yesterday.';
comment on column millrace_watch.today.cost_usd is
  'Cost in US dollars.';
comment on column millrace_watch.today.cost_yesterday_usd is
  'The same, yesterday.';

-- Each pipeline's last 48 hours, hour by hour, for charts.
create or replace function millrace_watch.hours() returns table (
  pipeline text,
  at timestamptz,
  completed bigint,
  failed bigint,
  retried bigint,
  run_p95_ms double precision,
  cost_usd numeric
)
language sql volatile security definer set search_path = ''
as $$
select p.name, f.at, f.completed + f.ended, f.failed, f.retried, f.run_p95_ms, f.cost_usd
from millrace.pipelines p
cross join lateral millrace.series(p.name, null,
  date_trunc('hour', millrace.now(), 'UTC') - interval '47 hours',
  date_trunc('hour', millrace.now(), 'UTC') + interval '1 hour', '1 hour') f
order by p.name, f.at
$$;
create or replace view millrace_watch.hours with (security_invoker = true) as
select * from millrace_watch.hours();
comment on view millrace_watch.hours is
  'Each pipeline''s last 48 hours, hour by hour, for charts.';
comment on column millrace_watch.hours.pipeline is
  'The pipeline.';
comment on column millrace_watch.hours.at is
  'The beginning of the hour.';
comment on column millrace_watch.hours.completed is
  'Runs that were completed or ended early.';
comment on column millrace_watch.hours.failed is
  'Runs that failed.';
comment on column millrace_watch.hours.retried is
  'Attempts that were tried again.';
comment on column millrace_watch.hours.run_p95_ms is
  '95th percentile of a run from start to end, in milliseconds.';
comment on column millrace_watch.hours.cost_usd is
  'Cost in US dollars.';

-- The newest 100 runs, each with its row's label and the state of each stage.
create or replace function millrace_watch.rows() returns table (
  run_id bigint,
  pipeline text,
  entity_id text,
  label text,
  status text,
  stages jsonb,
  error text,
  began_at timestamptz,
  ended_at timestamptz
)
language sql volatile security definer set search_path = ''
as $$
select r.id, p.name, coalesce(r.copy_key, r.entity_id),
  millrace.label_of(p, coalesce(r.copy_key, r.entity_id)), r.status::text, g.stages,
  g.error, r.created_at, r.finished_at
from (select n.* from millrace.runs n order by n.id desc limit 100) r
join millrace.pipelines p on p.id = r.pipeline_id
cross join lateral (
  select json_object_agg(s.name, coalesce(a.state::text, 'pending') order by vs.position)::jsonb
      as stages,
    (array_agg(a.error ->> 'message' order by a.id desc)
      filter (where a.error ? 'message'))[1] as error
  from millrace.version_stages vs
  join millrace.stages s on s.id = vs.stage_id
  left join lateral millrace.newest_attempt(r.id, s.id) a on true
  where vs.version_id = r.version_id) g
order by r.id desc
$$;
create or replace view millrace_watch.rows with (security_invoker = true) as
select * from millrace_watch.rows();
comment on view millrace_watch.rows is
  'The newest 100 runs, each with its row''s label and the state of each stage.';
comment on column millrace_watch.rows.run_id is
  'The run.';
comment on column millrace_watch.rows.pipeline is
  'The pipeline.';
comment on column millrace_watch.rows.entity_id is
  'The key of the row.';
comment on column millrace_watch.rows.label is
  'The label of the row; null without one.';
comment on column millrace_watch.rows.status is
  'The status of the run.';
comment on column millrace_watch.rows.stages is
  'The state of each stage by its name.';
comment on column millrace_watch.rows.error is
  'The message of the newest failure; null without one.';
comment on column millrace_watch.rows.began_at is
  'When the run began.';
comment on column millrace_watch.rows.ended_at is
  'When it ended; null while it goes on.';

revoke all on all functions in schema millrace_watch from public, anon, authenticated, service_role;
revoke all on all tables in schema millrace_watch from public, anon, authenticated, service_role;
grant execute on all functions in schema millrace_watch to service_role;
grant select on all tables in schema millrace_watch to service_role;
