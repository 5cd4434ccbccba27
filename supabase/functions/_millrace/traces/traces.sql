-- Traces: how far the runs of each pipeline were sent to a collector, and what goes next.
-- Runs again over an older text of its own, and keeps the table's rows.

-- Without this right trace_horizon() would not see the transactions of other roles, and runs that
-- they end late would be passed over.
do $$
begin
  if not pg_has_role('pg_read_all_stats', 'usage') then
    raise exception 'Role % may not see the transactions of others, which traces wait for',
      current_user
      using errcode = '42501', hint = format('As a superuser: grant pg_read_all_stats to %I. '
        'Supabase gives it to postgres.', current_user);
  end if;
end
$$;

create table if not exists public.trace_exports (
  pipeline text constraint trace_exports_pkey primary key,
  -- The part of all traces that is sent: 1 for all, 0 for none.
  share numeric not null default 1 constraint trace_exports_share_bounds check (
    share between 0 and 1),
  -- The last run that the collector took, by its end.
  sent_at timestamptz not null default millrace.now(),
  sent_run bigint not null default 0,
  -- Until when a call that is at work has the pipeline to itself, or a refusal is waited out.
  taken_until timestamptz not null default '-infinity',
  -- The last refusal by the collector; null once it has taken the runs.
  fault text
);
alter table public.trace_exports enable row level security;
revoke all on public.trace_exports from anon, authenticated, service_role;
comment on table public.trace_exports is
  'A row for each pipeline: the part of its traces that is sent, and how far it was sent.';

-- The time before which no run is still to appear as ended. A transaction that has written may
-- commit ends from its own beginning on; a statement that has not, from the statement's.
create or replace function public.trace_horizon() returns timestamptz
language sql volatile security definer set search_path = ''
as $$
select least(millrace.now() - interval '2 seconds', min(
  case when a.backend_xid is null then a.query_start else a.xact_start end))
from pg_catalog.pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid()
  and (a.backend_xid is not null
    or a.state = 'active' and a.query_start > clock_timestamp() - interval '1 minute')
$$;

-- Whether a pipeline has runs that ended after the last one sent and before p_until.
create or replace function public.trace_is_due(p_export public.trace_exports, p_until timestamptz)
returns boolean
language sql stable set search_path = ''
as $$
select exists (
  select from millrace.runs r
  where r.pipeline_id = (select p.id from millrace.pipelines p where p.name = (p_export).pipeline)
    and (r.finished_at, r.id) > ((p_export).sent_at, (p_export).sent_run)
    and r.finished_at < p_until)
$$;

-- A time as microseconds since 1970.
create or replace function public.trace_micros(p_at timestamptz) returns bigint
language sql immutable set search_path = ''
as $$
select (extract(epoch from p_at) * 1000000)::bigint
$$;

-- The attempts of a run for its spans, the newest 500, with up to 100 children each.
create or replace function public.trace_attempts(p_run bigint) returns json
language sql stable set search_path = ''
as $$
select coalesce(json_agg(json_build_object(
  'attempt', a.id, 'stage', s.name, 'number', a.number, 'state', a.state,
  'superseded', a.superseded, 'isolated', a.isolated, 'retry_of', a.parent_id,
  'created', public.trace_micros(a.created_at), 'started', public.trace_micros(a.started_at),
  'finished', public.trace_micros(a.finished_at),
  'job_started', public.trace_micros(a.job_started_at),
  'service', left(a.service, 200), 'job', left(a.job_id, 200),
  'code', left(a.error ->> 'code', 100), 'message', left(a.error ->> 'message', 300),
  -- Handlers report it: a text of any length would be sent with each attempt.
  'usage', (
    select jsonb_object_agg(u.key, u.value)
    from jsonb_each(case jsonb_typeof(a.usage) when 'object' then a.usage end) u
    where u.key <> 'log' and length(u.value::text) <= 300),
  'children', array(
    select json_build_object('run', c.id, 'trace', c.trace_id)
    from millrace.fan_outs f
    join millrace.runs c on c.fan_out_id = f.id
    where f.attempt_id = a.id
    order by c.item_key
    limit 100)) order by a.id), '[]')
from (
  select * from millrace.attempts o
  where o.run_id = p_run
  -- Not by the primary key from its end.
  order by o.id + 0 desc
  limit 500) a
join millrace.stages s on s.id = a.stage_id
$$;

-- A run for its spans, with the attempt of its parent that started it.
create or replace function public.trace_run(p_run millrace.runs) returns json
language sql stable set search_path = ''
as $$
select json_build_object(
  'run', (p_run).id, 'trace', (p_run).trace_id, 'entity', (p_run).entity_id,
  'status', (p_run).status, 'ended_as', (p_run).ended_as, 'code', (p_run).error_code,
  'created', public.trace_micros((p_run).created_at),
  'finished', public.trace_micros((p_run).finished_at),
  'ended_at', (p_run).finished_at,
  'writer', case when (p_run).fan_out_id is null then (
    select m.value ->> 'traceparent'
    from millrace.run_metadata m
    where m.id = (p_run).metadata_id) end,
  'parent', (
    select json_build_object('run', o.id, 'trace', o.trace_id, 'attempt', f.attempt_id)
    from millrace.fan_outs f
    join millrace.runs o on o.id = f.run_id
    where f.id = (p_run).fan_out_id),
  'attempts', public.trace_attempts((p_run).id))
$$;

-- Takes the next runs of one pipeline: {pipeline, from, to, runs}; null without any. It looks at
-- 1,000 runs at most, and returns at most p_runs of them with 1,000 attempts. Nobody else gets the
-- pipeline's runs for a minute. Looks runs up by an index alone: a plan made for few runs would
-- read them all.
create or replace function public.take_traces(p_runs int) returns json
language plpgsql volatile security definer set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off set enable_indexonlyscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  -- In a statement of its own: the next one sees all that was committed before.
  v_until timestamptz := public.trace_horizon();
  v_export public.trace_exports;
  v_pipeline int;
  v_answer json;
begin
  select e.* into v_export
  from public.trace_exports e
  where e.share > 0 and e.taken_until <= millrace.now()
    and public.trace_is_due(e, v_until)
  order by e.sent_at
  limit 1
  for update of e skip locked;
  if not found then
    return null;
  end if;
  update public.trace_exports e
  set taken_until = millrace.now() + interval '1 minute'
  where e.pipeline = v_export.pipeline;
  v_pipeline := (select p.id from millrace.pipelines p where p.name = v_export.pipeline);
  with looked as materialized (
    select r as run, r.id, r.finished_at, r.trace_id
    from millrace.runs r
    where r.pipeline_id = v_pipeline
      and (r.finished_at, r.id) > (v_export.sent_at, v_export.sent_run)
      and r.finished_at < v_until
    order by r.finished_at, r.id
    limit 1000
  ), sampled as materialized (
    -- By the trace, so that a run is sent together with its parent and children.
    select l.*
    from looked l
    where ('x' || left(md5(l.trace_id::text), 8))::bit(32)::bigint
      < v_export.share * 4294967296
    order by l.finished_at, l.id
    limit p_runs + 1
  ), weighed as materialized (
    select s.*, row_number() over w as n, sum(a.attempts) over w as attempts
    from sampled s
    cross join lateral (
      select count(*) as attempts
      from (select from millrace.attempts o where o.run_id = s.id limit 500) o) a
    window w as (order by s.finished_at, s.id)
  ), fits as materialized (
    select * from weighed w
    where w.n = 1 or w.n <= p_runs and w.attempts <= 1000
  ), last as (
    -- All that was looked at, unless a sampled run has to wait for the next call.
    select l.finished_at, l.id
    from looked l
    where (select count(*) from fits) = (select count(*) from weighed)
      or (l.finished_at, l.id) <= (
        select f.finished_at, f.id from fits f order by f.finished_at desc, f.id desc limit 1)
    order by l.finished_at desc, l.id desc
    limit 1
  )
  select json_build_object('pipeline', v_export.pipeline, 'from',
    json_build_object('at', v_export.sent_at, 'run', v_export.sent_run),
    'to', (select json_build_object('at', l.finished_at, 'run', l.id) from last l),
    'runs', array(
      select public.trace_run(f.run) from fits f order by f.finished_at, f.id))
  into v_answer;
  return v_answer;
end
$$;

-- Records what a collector said of the runs after p_from_at and p_from_run. Taken: the next ones
-- come after p_to_at and p_to_run. Refused: p_to_at is null, and they come again after p_wait
-- seconds. A call that was overtaken by another changes nothing and returns false.
create or replace function public.note_traces(
  p_pipeline text, p_from_at timestamptz, p_from_run bigint, p_to_at timestamptz,
  p_to_run bigint, p_fault text, p_wait int
) returns boolean
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.trace_exports e
  set sent_at = coalesce(p_to_at, e.sent_at), sent_run = coalesce(p_to_run, e.sent_run),
    taken_until = case when p_to_at is null
      then millrace.now() + make_interval(secs => p_wait) else '-infinity' end,
    fault = left(p_fault, 500)
  where e.pipeline = p_pipeline and (e.sent_at, e.sent_run) = (p_from_at, p_from_run);
  if not found then
    return false;
  end if;
  if p_fault is not null then
    perform millrace.report('error', 'traces_refused',
      format('The traces of %s: %s', p_pipeline, left(p_fault, 500)),
      jsonb_build_object('pipeline', p_pipeline, 'run', p_to_run), interval '10 minutes',
      -- Refusals repeat, and have no run. Spans that are lost are each reported.
      jsonb_build_object('pipeline', p_pipeline, 'run', p_to_run));
  end if;
  return true;
end
$$;

-- Wakes the function that sends, where something is due. A pipeline that is new begins with what
-- ends from now on. Looks runs up by an index alone, as take_traces().
create or replace function public.wake_traces() returns boolean
language plpgsql volatile security definer set search_path = ''
set enable_seqscan = off set enable_bitmapscan = off set enable_indexonlyscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_until timestamptz := public.trace_horizon();
  v_late text;
begin
  insert into public.trace_exports (pipeline)
  select p.name
  from millrace.pipelines p
  on conflict do nothing;
  -- Runs that end under share 0 are not sent later.
  update public.trace_exports e
  set sent_at = v_until, sent_run = 0
  where e.share = 0 and public.trace_is_due(e, v_until);
  select string_agg(e.pipeline, ', ' order by e.pipeline) into v_late
  from public.trace_exports e
  where e.share > 0
    -- A refusal that is waited out has been reported.
    and (e.fault is null or e.taken_until < millrace.now() - interval '15 minutes')
    and public.trace_is_due(e, millrace.now() - interval '15 minutes');
  if v_late is not null then
    perform millrace.report('error', 'traces_late', format('Runs that ended over 15 minutes ago '
      'have not been sent to the collector yet: %s', left(v_late, 300)), '{}',
      interval '10 minutes');
  end if;
  return exists (
    select from public.trace_exports e
    where e.share > 0 and e.taken_until <= millrace.now() and public.trace_is_due(e, v_until))
    and millrace.post('millrace/traces', '{}');
end
$$;

revoke all on function public.trace_horizon(), public.trace_micros(timestamptz),
  public.trace_is_due(public.trace_exports, timestamptz), public.trace_attempts(bigint),
  public.trace_run(millrace.runs), public.wake_traces(), public.take_traces(int),
  public.note_traces(text, timestamptz, bigint, timestamptz, bigint, text, int)
  from public, anon, authenticated, service_role;
grant execute on function public.take_traces(int),
  public.note_traces(text, timestamptz, bigint, timestamptz, bigint, text, int) to service_role;

insert into public.trace_exports (pipeline) select p.name from millrace.pipelines p
on conflict do nothing;
select cron.schedule('millrace-traces', '15 seconds',
  'select public.wake_traces() /* pruned by millrace */');
