-- Counts the live attempts, failed runs and live workers of each stage. A view in its place could
-- not set the planner.
-- p_most: up to how many ready attempts, attempts in backoff or failed runs are counted at a stage.
-- Up to 50,000 waiting attempts are counted in all.
-- oldest_due_at: when the oldest queued attempt is due.
-- oldest_open_at: the same, with attempts that are started or waiting.
-- at_least: the counts that stopped at their bound, so that there are more; null: all are exact.
create function millrace.live_counts(p_most int default 10000)
returns table (
  stage_id int, ready bigint, in_backoff bigint, started bigint, waiting bigint, failed bigint,
  oldest_due_at timestamptz, oldest_open_at timestamptz, at_least text[], live_workers bigint
)
set plan = in_order
as $$
  v_since timestamptz := millrace.alive_since();
  v_waiting text := case when exists (
    select from millrace.attempts a
    where a.deadline_at is not null
    offset 50000) then 'waiting' end;

return query
select s.id, least(greatest(r.n - coalesce(h.started, 0), 0), p_most), least(b.n, p_most),
  coalesce(h.started, 0), coalesce(h.waiting, 0), least(d.n, p_most), o.queue_at,
  least(o.queue_at, h.since), nullif(array_remove(array[
    case when r.n - coalesce(h.started, 0) > p_most then 'ready' end,
    case when b.n > p_most then 'in_backoff' end, v_waiting,
    case when d.n > p_most then 'failed' end], null), '{}'), coalesce(w.n, 0)
from millrace.stages s
left join (
  select o.stage_id, count(*) as n
  from millrace.workers o
  where o.working and o.left_at is null and o.heartbeat_at > v_since
  group by o.stage_id) w on w.stage_id = s.id
left join (
  select k.stage_id, count(k.queue_at) as started, count(*) - count(k.queue_at) as waiting,
    min(coalesce(k.queue_at, k.started_at)) as since
  from (
    select a.stage_id, a.queue_at, a.started_at
    from millrace.claims c
    cross join unnest(c.attempt_ids) i(id)
    -- A lateral look-up for each attempt: a join could read all attempts.
    cross join lateral (
      select o.stage_id, o.queue_at, o.started_at
      from millrace.attempts o
      where o.id = i.id and o.token = c.token and o.state = 'started'
      limit 1) a
    union all
    (select a.stage_id, a.queue_at, a.started_at
     from millrace.attempts a
     where a.deadline_at is not null
     limit 50000)) k
  group by k.stage_id) h on h.stage_id = s.id
cross join lateral (
  select count(*) as n
  from (
    select from millrace.attempts a
    where a.stage_id = s.id and a.queue_at <= v_now
    limit p_most + coalesce(h.started, 0) + 1) k) r
cross join lateral (
  select count(*) as n
  from (
    select from millrace.attempts a
    where a.stage_id = s.id and a.queue_at > v_now
    limit p_most + 1) k) b
cross join lateral (
  select count(*) as n
  from (
    select from millrace.runs f
    where f.pipeline_id = s.pipeline_id and f.failed_stage_id = s.id and f.status = 'failed'
    order by f.error_code
    limit p_most + 1) k) d
left join lateral (
  select a.queue_at
  from millrace.attempts a
  where a.stage_id = s.id and a.queue_at is not null and a.state = 'queued'
  order by a.queue_at, a.id
  limit 1) o on true;
$$;

-- Lists each stage with its work. A paused pipeline makes all its stages not enabled.
-- ready, in_backoff, started, waiting: the live attempts.
-- failed: the runs that failed at the stage.
-- completed, retries: totals since the beginning.
-- oldest_age: the age of the oldest live attempt that is due or has begun.
-- late: the runs that are past the stage's bound; sla: the bound.
-- at_once: how many rows may be in work at the same time.
-- row_cpu_ms: the CPU milliseconds that a row takes, as workers have reckoned.
-- at_least: the counts of this row that stopped at their bound, so that there are more; null: all
-- are exact. The bounds are 10,000 a stage, and over all stages 50,000 waiting and 10,000 late.
create view millrace.stage_health as
with total as materialized (
  select u.stage_id, sum(u.n) filter (where u.outcome = 'completed') as completed,
    sum(u.n) filter (where u.outcome = 'retried') as retried
  from (
    select c.stage_id, c.outcome, c.n
    from millrace.sums c
    where c.unit = 'total'
    union all
    (select o.stage_id, o.outcome, o.n
     from millrace.pulses o
     limit 10000)) u
  group by u.stage_id
)
select p.name as pipeline, s.name as stage, s.enabled and p.enabled as enabled,
  c.ready, c.in_backoff, c.started, c.waiting,
  coalesce(t.completed, 0)::bigint as completed, c.failed,
  coalesce(t.retried, 0)::bigint as retries,
  case when c.oldest_open_at <= v_now then v_now - c.oldest_open_at end as oldest_age,
  c.live_workers, s.sla,
  coalesce(l.late, 0) as late,
  coalesce(f.concurrency, f.batch_size * f.max_workers) as at_once, f.batch_size, f.max_workers,
  round(k.cpu_ms::numeric, 1) as row_cpu_ms,
  case when sum(l.late) over () > 10000 then c.at_least || '{late}'::text[] else c.at_least end
    as at_least
from millrace.live_counts() c
join millrace.stages s on s.id = c.stage_id
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.stages f on f.id = s.id and f.function_name is not null
left join total t on t.stage_id = s.id
left join millrace.late_counts l on l.stage_id = s.id
left join millrace.row_costs k on k.stage_id = s.id
order by p.name, s.id;

-- Returns every attempt of a run in the order of creation, with times, errors, tokens and cost.
create function millrace.timeline(p_run bigint)
returns table (
  attempt_id bigint, stage text, number int, state millrace.attempt_state, parent_id bigint,
  retry_count int, queued_at timestamptz, started_at timestamptz, finished_at timestamptz,
  took interval, service text, job_id text, error_code text, error_message text, usage jsonb,
  superseded boolean, error_stack text
)
stable
set plan = for_runs
as $$
select a.id, s.name, a.number, a.state, a.parent_id, a.retry_count,
  a.created_at, a.started_at, a.finished_at, a.finished_at - a.started_at,
  a.service, a.job_id,
  a.error ->> 'code', nullif(concat_ws(' ', a.error ->> 'message', a.error ->> 'detail'), ''),
  a.usage, a.superseded, a.error ->> 'stack'
from millrace.attempts a
join millrace.stages s on s.id = a.stage_id
where a.run_id = p_run
order by a.id
$$;

-- Lists paused pipelines and stages.
-- stage: null for a pipeline.
-- remedy: the statement that ends the pause.
create view millrace.paused as
select
  p.name as pipeline,
  s.name as stage,
  format('select millrace.unpause(%s);',
    concat_ws(', ', quote_literal(p.name), quote_literal(s.name))) as remedy
from millrace.pipelines p
cross join lateral (
  select null::text as name, 0 as position
  where not p.enabled
  union all
  select t.name, vs.position
  from millrace.version_stages vs
  join millrace.stages t on t.id = vs.stage_id
  where vs.version_id = p.current_version_id and not t.enabled) s
order by p.name, s.position;

-- Returns three findings on all pipelines: whether workers take ready work, whether a role of the
-- Data API could write results, and whether something is paused.
create view millrace.pipeline_findings (what, ok, detail) as
with forged as (
  select c.oid::regclass as entity_table, r.rolname as role,
    string_agg(distinct v.name, ', ') as verbs
  from (
    -- Grouped by table: otherwise each column would cost a search through all columns of its table.
    select w.table_id, array_agg(distinct w.name) as names, bool_or(w.name = '*') as whole
    from millrace.pipelines p
    cross join lateral (
      select p.entity_table::oid, c
      from millrace.stages s
      cross join unnest(millrace.stage_columns(s.name)) c
      where p.projection = 'columns' and s.pipeline_id = p.id
        and c not like '%\_status'
      union all
      select p.entity_table::oid, p.status ->> f
      from unnest('{attempts,retry_at,error}'::text[]) f
      union all
      select to_regclass(t), '*'
      from unnest(array[p.status #>> '{history,table}', p.status ->> 'lookup']) t
    ) w(table_id, name)
    group by w.table_id) k
  join pg_class c on c.oid = k.table_id
  join pg_roles api on api.rolname = 'authenticator'
  join pg_roles r on pg_has_role(api.oid, r.oid, 'member')
    and r.oid <> api.oid and not r.rolbypassrls and not r.rolsuper
  cross join (values ('delete', 'd'), ('insert', 'a'), ('update', 'w')) v(name, policy)
  where case
      when v.name = 'delete' then k.whole and has_table_privilege(r.oid, c.oid, 'delete')
      else has_any_column_privilege(r.oid, c.oid, v.name) and exists (
        select from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          and (k.whole or a.attname = any (k.names))
          and has_column_privilege(r.oid, c.oid, a.attnum, v.name))
    end
    and (not c.relrowsecurity or exists (
      select from pg_policy y
      cross join unnest(y.polroles) o
      where y.polrelid = c.oid and y.polpermissive
        and y.polcmd in ('*', v.policy)
        and (o = 0 or pg_has_role(r.oid, o, 'usage'))))
  group by c.oid, r.rolname
)
select 'ready work is taken within 30 seconds', count(*) = 0, coalesce(
  string_agg(format('%s of %s: %s; %s', u.stage, u.pipeline, u.why, u.remedy), '. '),
  'nothing waits')
from (select * from millrace.unattended() limit 10) u
union all
select 'only the engine can write results', count(*) = 0,
  coalesce(string_agg(format('%s may %s what the engine writes in %s: revoke %2$s on %3$s from '
    'public, %1$I; and grant it its own columns by name', f.role, f.verbs, f.entity_table),
    '. ' order by f.entity_table, f.role), 'no role of the Data API can')
from forged f
union all
select 'nothing is paused', count(*) = 0,
  coalesce(string_agg(
    coalesce('stage ' || d.stage || ' of ', 'pipeline ') || d.pipeline || ': ' || d.remedy,
    ' '), 'nothing is')
from millrace.paused d;
