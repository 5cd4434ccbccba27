-- Chapter 32: watching it
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
comment on view millrace.queue_depth is 'How much is queued at each stage, from the queue''s own index.';

create or replace view millrace.stage_health as
select p.name as pipeline, s.name as stage, s.enabled and p.enabled as enabled,
  count(a.id) filter (where a.state = 'queued' and a.queue_at <= millrace.now()) as ready,
  count(a.id) filter (where a.state = 'queued' and a.queue_at > millrace.now()) as in_backoff,
  count(a.id) filter (where a.state = 'started') as started,
  count(a.id) filter (where a.state = 'waiting') as waiting,
  count(a.id) filter (where a.state = 'completed' and not a.superseded) as completed,
  count(distinct a.run_id) filter (where a.state = 'failed' and r.status = 'failed' and not a.superseded) as failed,
  count(a.id) filter (where a.retry_count > 0) as retries,
  millrace.now() - min(coalesce(a.queue_at, a.started_at)) filter (where a.state in ('queued', 'started', 'waiting') and coalesce(a.queue_at, a.started_at) <= millrace.now()) as oldest_age,
  (select count(*) from millrace.workers w where w.stage_id = s.id and w.left_at is null and w.heartbeat_at > millrace.now() - interval '15 seconds') as live_workers,
  s.sla, case when s.sla is null then 0 else millrace.late_runs(s.id) end as late
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.attempts a on a.stage_id = s.id
left join millrace.runs r on r.id = a.run_id
group by p.name, p.enabled, s.id, s.name, s.enabled, s.sla
order by p.name, s.id;
comment on view millrace.stage_health is 'One row a stage: what is ready, in work, waiting and failed, the oldest open attempt''s age, live workers, retries, and how many runs are late: longer at the stage than its bound, sla.';

create or replace function millrace.timeline(p_run bigint)
returns table (attempt_id bigint, stage text, number int, state millrace.attempt_state, parent_id bigint, retry_count int, queued_at timestamptz, started_at timestamptz, finished_at timestamptz,
  took interval, service text, job_id text, error_code text, error_message text, usage jsonb, superseded boolean)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select a.id, s.name, a.number, a.state, a.parent_id, a.retry_count, a.created_at, a.started_at, a.finished_at, a.finished_at - a.started_at,
    a.service, a.job_id, a.error ->> 'code', coalesce(a.error ->> 'detail', a.error ->> 'message'), a.usage, a.superseded
  from millrace.attempts a join millrace.stages s on s.id = a.stage_id
  where a.run_id = p_run order by a.id
$$;
comment on function millrace.timeline(bigint) is 'Every attempt of a run in order, with times, errors, tokens and cost.';

-- Of each stage the last 1,000 jobs of the last hour, so that it reads as much after a year as on the first day.
create or replace view millrace.job_outcomes as
select p.name as pipeline, s.name as stage, s.limits ->> 'max_in_flight' as max_in_flight, j.ended, j.completed, j.past_deadline
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
cross join lateral (
  select count(*) as ended,
    count(*) filter (where e.state = 'completed') as completed,
    count(*) filter (where e.state = 'failed' and e.error ->> 'code' = 'deadline') as past_deadline
  from (
    select a.state, a.error
    from millrace.attempts a
    -- A subselect, so that the hour bounds what the index is read for.
    where a.stage_id = s.id and a.job_id is not null and a.finished_at > (select millrace.now() - interval '1 hour')
    order by a.finished_at desc
    limit 1000
  ) e
) j
where s.kind in ('function', 'external') and s.deadline is not null
order by p.name, s.id;
comment on view millrace.job_outcomes is 'One row a stage with external jobs: how many ended in the last hour (the last 1,000 at most), how many of them completed, and how many passed their deadline.';

create or replace function millrace.metadata_of(p_run bigint) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select m.value
  from millrace.runs r join millrace.run_metadata m on m.id = r.metadata_id
  where r.id = p_run
$$;
comment on function millrace.metadata_of(bigint) is
  'What the metadata column of a run''s row (a child''s: of its parent''s) held when it started.';

create or replace function millrace.metadata_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select 'a run''s metadata is kept', r.id, null::bigint, 'metadata ' || r.metadata_id
  from millrace.runs r
  where r.metadata_id is not null
    and not exists (select from millrace.run_metadata m where m.id = r.metadata_id)
  union all
  select 'metadata has a run, or is to be deleted', null, null, 'metadata ' || m.id
  from millrace.run_metadata m
  where not exists (select from millrace.runs r where r.metadata_id = m.id)
    and not exists (select from millrace.dropped_metadata d where d.metadata_id = m.id)
$$;
comment on function millrace.metadata_faults() is
  'What millrace.check_invariants() finds in metadata.';

-- What the entity tables and the runs say of each other. A row that never had a run was not written by the engine: a restored
-- dump, or an insert under triggers that were switched off. Stable, so all of it is read in the caller's snapshot. A table that
-- was dropped, or a key that was renamed, is doctor()'s to name.
create or replace function millrace.row_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline record;
begin
  for v_pipeline in
    select p.id, p.entity_key, c.oid::regclass as entity_table,
      format_type(a.atttypid, a.atttypmod) as key_type,
      (select string_agg('e.' || quote_ident(s.name || '_status'), ', ')
       from millrace.stages s
       where s.pipeline_id = p.id and p.projection = 'columns' and millrace.has_columns(p, s.name)) as statuses
    from millrace.pipelines p
    join pg_class c on c.oid = p.entity_table
    join pg_attribute a on a.attrelid = c.oid and a.attname = p.entity_key and not a.attisdropped
    order by p.id
  loop
    return query execute format($q$
      select 'a live run has its row', r.id, null::bigint, format('%%s has no row %%s', %1$L, r.entity_id)
      from millrace.runs r
      where r.pipeline_id = $1
        and r.status = 'running'
        and not exists (select from %1$s e where e.%2$I = r.entity_id::%3$s)$q$,
      v_pipeline.entity_table, v_pipeline.entity_key, v_pipeline.key_type)
    using v_pipeline.id;
    continue when v_pipeline.statuses is null;
    return query execute format($q$
      select 'a row that shows queued or started has a live run', l.id, null::bigint,
        format('row %%s of %%s, whose last run is %%s', e.%2$I, %1$L, l.status)
      from %1$s e
      cross join lateral (
        select r.id, r.status
        from millrace.runs r
        where r.entity_id = e.%2$I::text and r.pipeline_id = any ($1)
        order by r.status = 'running' desc, r.id desc
        limit 1) l
      where ('queued' in (%3$s) or 'started' in (%3$s)) and l.status <> 'running'$q$,
      v_pipeline.entity_table, v_pipeline.entity_key, v_pipeline.statuses)
    using millrace.ways_of(v_pipeline.id);
  end loop;
end
$$;
comment on function millrace.row_faults() is
  'Rows that show work which no run does, and live runs without a row; part of check_invariants().';

create or replace function millrace.check_invariants() returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select 'a running run owns a live attempt', r.id, null::bigint, 'run of entity ' || r.entity_id || ' has none'
  from millrace.runs r where r.status = 'running' and not exists (select from millrace.attempts a where a.run_id = r.id and a.state in ('queued', 'started', 'waiting'))
  union all
  select 'an attempt has a run, and one that is over has no live attempt', a.run_id, a.id, format('the run is %s, the attempt %s', coalesce(r.status::text, 'gone'), a.state)
  from millrace.attempts a left join millrace.runs r on r.id = a.run_id
  where r.id is null or (a.state in ('queued', 'started', 'waiting') and r.status <> 'running')
  union all
  select 'no entity is under way both in a pipeline and in the one that replaces it', n.id, null, format('entity %s, and run %s of the other', n.entity_id, o.id)
  from millrace.pipelines p join millrace.runs n on n.pipeline_id = p.id and n.status = 'running'
  join millrace.runs o on o.pipeline_id = p.replaces_id and o.entity_id = n.entity_id and o.status = 'running'
  union all
  select 'a queued attempt has a due time, a started one a lease, a waiting one a deadline', a.run_id, a.id, a.state::text
  from millrace.attempts a left join millrace.claims c on c.token = a.token
  where (a.state = 'queued' and (a.queue_at is null or a.token is not null))
     or (a.state = 'started' and (c.token is null or a.queue_at is null or not a.id = any (c.attempt_ids)))
     or (a.state = 'waiting' and (a.deadline_at is null or a.queue_at is not null or a.job_id is null))
     or (a.state not in ('queued', 'started') and a.queue_at is not null)
     or (a.state <> 'waiting' and (a.poll_at is not null or a.deadline_at is not null))
  union all
  select 'a job is heard to run while its attempt waits, and overtaken by one that completes it', a.run_id, a.id, a.state::text
  from millrace.attempts a
  where (a.job_started_at is not null and a.state in ('queued', 'started', 'skipped'))
     or (a.overtaken_job_id is not null and (a.state <> 'completed' or a.overtaken_job_id = a.job_id))
     -- The result that completed it is that of a job whose deadline had passed, or whose worker was lost.
     or (a.overtaken_job_id is not null and not exists (
       select from millrace.attempts e
       where e.run_id = a.run_id
         and e.stage_id = a.stage_id
         and e.number < a.number
         and e.state = 'failed'
         and e.error ->> 'code' in ('deadline', 'lost_lease')
         and coalesce(e.job_id = a.job_id, true)
         and (a.superseded or not e.superseded)))
  union all
  select 'an attempt that is over cannot be late', a.run_id, a.id, a.state::text
  from millrace.attempts a where a.late_at is not null and a.state not in ('queued', 'started', 'waiting')
  union all
  select 'an attempt that waits for a person has its open question', a.run_id, a.id, 'stage ' || s.name
  from millrace.attempts a join millrace.stages s on s.id = a.stage_id and s.kind = 'manual'
  where a.state = 'waiting' and not exists (select from public.millrace_decisions d where d.attempt_id = a.id and d.closed_at is null)
  union all
  select 'no worker is has_conditional_followers for a stage that none runs', a.run_id, a.id, 'stage ' || s.name
  from millrace.attempts a join millrace.stages s on s.id = a.stage_id and s.kind in ('manual', 'pipeline')
  where a.state in ('queued', 'started')
  union all
  select 'a superseded attempt is not live', a.run_id, a.id, a.state::text
  from millrace.attempts a where a.superseded and a.state in ('queued', 'started', 'waiting')
  union all
  select 'a stage is completed once, and has one live attempt at most', a.run_id, max(a.id), format('%s attempts of stage %s', count(*), s.name)
  from millrace.attempts a join millrace.stages s on s.id = a.stage_id
  where a.state in ('queued', 'started', 'waiting', 'completed', 'skipped') and not a.superseded
  group by a.run_id, a.stage_id, s.name having count(*) > 1
  union all
  select 'a completed attempt has its result, and no other has one', a.run_id, a.id, 'stage ' || a.stage_id
  from millrace.attempts a where (a.state = 'completed') <> (a.output is not null)
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.limit_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.metadata_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.row_faults() f
  union all
  select 'a live attempt has its needs done', a.run_id, a.id, 'stage ' || a.stage_id
  from millrace.attempts a join millrace.runs r on r.id = a.run_id
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
  where a.state in ('queued', 'started', 'waiting') and exists (
    select from unnest(vs.needs) n where not exists (select from millrace.attempts d where d.run_id = a.run_id and d.stage_id = n and d.state in ('completed', 'skipped') and not d.superseded))
  union all
  select 'a completed run has all stages completed or skipped', r.id, null, 'stage ' || vs.stage_id
  from millrace.runs r join millrace.version_stages vs on vs.version_id = r.version_id
  where r.status = 'completed' and not exists (select from millrace.attempts a where a.run_id = r.id and a.stage_id = vs.stage_id and a.state in ('completed', 'skipped') and not a.superseded)
  union all
  select 'a stage whose needs are done has begun', r.id, null, 'stage ' || vs.stage_id
  from millrace.runs r join millrace.version_stages vs on vs.version_id = r.version_id
  where r.status = 'running' and not exists (select from millrace.attempts a where a.run_id = r.id and a.stage_id = vs.stage_id and not a.superseded)
    -- While a map is under way its thresholds decide, when it is collected; once it is done they hold.
    and not exists (
      select from jsonb_array_elements(vs.after) t
      where not exists (select from millrace.attempts d where d.run_id = r.id and d.stage_id = (t ->> 'map')::int and d.state in ('completed', 'skipped') and not d.superseded))
    and not exists (
      select from unnest(vs.needs) n where not exists (select from millrace.attempts d where d.run_id = r.id and d.stage_id = n and d.state in ('completed', 'skipped') and not d.superseded))
  union all
  select 'an attempt that waits for children has an open fan-out, and an open fan-out a live attempt', coalesce(a.run_id, f.run_id), coalesce(a.id, f.attempt_id), coalesce('fan-out ' || f.id, 'none')
  from (select a.* from millrace.attempts a where a.state = 'waiting' and a.service = 'children') a
  full join (select f.* from millrace.fan_outs f where f.state = 'open') f on f.attempt_id = a.id
  where f.id is null or (a.id is not null and f.total is null) or (a.id is null and not exists (
    -- The worker that spawns may have been lost: its successor takes the fan-out over.
    select from millrace.attempts s where s.run_id = f.run_id and s.stage_id = f.stage_id and s.state in ('queued', 'started') and not s.superseded))
  union all
  select 'the sums of a fan-out and its tallies are what its children came to', f.run_id, f.attempt_id,
    format('fan-out %s: %s completed, %s failed, but %s and %s were counted', f.id, c.completed, c.failed, f.completed + t.completed, f.failed + t.failed)
  from millrace.fan_outs f
  cross join lateral (select count(*) filter (where r.status = 'completed') as completed, count(*) filter (where r.status = 'failed') as failed from millrace.runs r where r.fan_out_id = f.id) c
  cross join lateral (
    select coalesce(sum(t.completed), 0) as completed, coalesce(sum(t.failed), 0) as failed, coalesce(bool_or(t.recount), false) as recount from millrace.child_tallies t where t.fan_out_id = f.id) t
  where f.state = 'open' and not t.recount and (c.completed <> f.completed + t.completed or c.failed <> f.failed + t.failed)
$$;
comment on function millrace.check_invariants() is 'Proves that nothing is stuck or recorded twice: returns no row when all is well. One statement, hence one snapshot; safe in production.';

-- attach() wrote the table's columns into a function. One that was dropped or renamed since stops every claim; one that was
-- added is not sent to the stages, which matters to nobody where it belongs to a stage.
create or replace function millrace.fault_of(p_pipeline text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  execute format('select millrace.%I(''{}'', null)', p_pipeline || '__rows');
  return (
    select format('stages are not given the column %s, which was added later', min(a.attname))
    from millrace.pipelines p
    join pg_attribute a on a.attrelid = p.entity_table and a.attnum > 0 and not a.attisdropped
    join pg_proc f on f.pronamespace = 'millrace'::regnamespace and f.proname = p.name || '__rows'
    where p.name = p_pipeline
      and position(format('e.%I,', a.attname) in f.prosrc) = 0
      and position(format('e.%I ', a.attname) in f.prosrc) = 0
      and not exists (
        select from millrace.pipelines o
        join millrace.stages s on s.pipeline_id = o.id
        where o.entity_table = p.entity_table
          and o.projection = 'columns'
          and a.attname = any (millrace.stage_columns(s.name)))
    having count(*) > 0);
exception when others then
  return sqlerrm;
end
$$;
comment on function millrace.fault_of(text) is 'Why the functions that attach() wrote no longer fit the entity table; null when they do.';

-- The roles of the Data API that may write what only the engine should: results and the other columns of stages but their
-- statuses, on which intake keeps watch. A role that no policy lets write is left out.
create or replace view millrace.forgers as
with role as (
  select r.oid, r.rolname as name
  from pg_roles a
  join pg_roles r on pg_has_role(a.oid, r.oid, 'member')
  where a.rolname = 'authenticator'
    and r.oid <> a.oid
    and not r.rolbypassrls
    and not r.rolsuper
), entity as (
  select c.oid, c.relrowsecurity as guarded, array_agg(n.name) as columns
  from millrace.pipelines p
  join pg_class c on c.oid = p.entity_table
  join millrace.stages s on s.pipeline_id = p.id
  cross join lateral unnest(millrace.stage_columns(s.name)) n(name)
  where p.projection = 'columns'
  group by c.oid, c.relrowsecurity
), forged as (
  select e.oid as table_id, r.oid as role_id, r.name as role, k.name as verb, e.columns
  from entity e
  cross join role r
  cross join (values ('insert', 'a'), ('update', 'w')) k(name, policy)
  where exists (
      select
      from pg_attribute a
      where a.attrelid = e.oid
        and a.attname = any (e.columns)
        and a.attname not like '%\_status'
        and has_column_privilege(r.oid, e.oid, a.attnum, k.name))
    and (not e.guarded or exists (
      select
      from pg_policy y
      where y.polrelid = e.oid
        and y.polpermissive
        and y.polcmd in ('*', k.policy)
        and exists (
          select
          from unnest(y.polroles) o
          where o = 0 or pg_has_role(r.oid, o, 'usage'))))
), allowed as (
  -- What stays to the role: the user's own columns, and statuses that were granted one by one.
  select f.table_id, f.role, f.verb,
    has_any_column_privilege('public', f.table_id, f.verb) as by_all,
    string_agg(quote_ident(a.attname), ', ' order by a.attnum) filter (
      where a.attgenerated = ''
        and a.attidentity <> 'a'
        and has_column_privilege(f.role_id, f.table_id, a.attnum, f.verb)
        and (a.attname <> all (f.columns) or (a.attname like '%\_status' and exists (
          select
          from aclexplode(a.attacl) x
          where x.grantee = f.role_id
            and x.privilege_type = upper(f.verb))))) as columns
  from forged f
  join pg_attribute a on a.attrelid = f.table_id and a.attnum > 0 and not a.attisdropped
  group by f.table_id, f.role_id, f.role, f.verb
)
select
  w.table_id::regclass as entity_table,
  w.role::text as role,
  string_agg(w.verb, ', ' order by w.verb) as verbs,
  format('revoke %s on %s from %s;', string_agg(w.verb, ', ' order by w.verb), w.table_id::regclass,
    case when bool_or(w.by_all) then 'public, ' else '' end || quote_ident(w.role))
  || coalesce(format(' grant %s on %s to %I;',
    string_agg(w.verb || ' (' || w.columns || ')', ', ' order by w.verb), w.table_id::regclass, w.role), '')
    as remedy
from allowed w
group by w.table_id, w.role
order by 1, 2;
comment on view millrace.forgers is
  'Which roles of the Data API could write results by hand, with the statements that leave them their own columns.';

create or replace function millrace.doctor() returns table (what text, ok boolean, detail text)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_url text;
  v_ring_headers jsonb;
  v_flag text;
  v_fault text := 'missing';
  v_swept timestamptz := (select s.value::timestamptz from millrace.settings s where s.name = 'last_sweep_at');
begin
  begin
    v_url := millrace.setting('project_url');
    v_ring_headers := millrace.wake_headers();
    v_flag := coalesce(millrace.setting('use_new_pipeline'), 'false');
  exception when others then
    v_fault := 'Vault cannot be read: ' || sqlerrm;
  end;
  return query select 'project_url is set', coalesce(v_url ~ '^https?://[^/ ]+$', false), coalesce(v_url, v_fault || ': select vault.create_secret(''https://REF.supabase.co'', ''millrace_project_url'')');
  return query
    select 'wake_secret is set', coalesce(v_ring_headers ? 'x-millrace-wake-secret', false), case
      when v_ring_headers ? 'x-millrace-wake-secret' then 'present'
      when v_ring_headers is null then v_fault || ': ' || millrace.wake_secret_remedy()
      else 'the doorbell shows secret_key instead, which every SQL role can read in '
        || 'net.http_request_queue: ' || millrace.wake_secret_remedy() end;
  return query select 'use_new_pipeline is true or false', coalesce(v_flag in ('true', 'false'), false), coalesce(v_flag, v_fault);
  return query select 'pg_cron job ' || j, exists (select from cron.job c where c.jobname = j and c.active), coalesce((select c.schedule from cron.job c where c.jobname = j), 'missing: see the chapter on schedules')
    from unnest(array['millrace-sweep', 'millrace-prune']) j;
  return query select 'the sweep has run in the last minute', coalesce(v_swept > millrace.now() - interval '1 minute', false), coalesce(v_swept::text, 'never; it is due every ten seconds');
  return query select 'the functions answered the last wakes', coalesce(bool_and(n.status_code between 200 and 299), true),
    coalesce(string_agg(distinct coalesce(n.status_code || coalesce(': ' || substring(n.content from '"message":"((?:[^"\\]|\\.)*)"'), ''), n.error_msg, 'no answer'), ', '), 'no wakes yet')
    from millrace.last_answers(20) n;
  return query
    select 'pg_net''s worker runs', w.pid is not null,
      coalesce('process ' || w.pid, 'it is not in pg_stat_activity: select net.worker_restart()')
    from (
      select min(a.pid) as pid
      from pg_stat_activity a
      where a.datname = current_database()
        and (a.backend_type ilike '%pg_net%' or a.application_name ilike 'pg_net %')) w;
  -- But for those that wait for their limits.
  return query select 'ready work is taken within a minute', count(*) = 0,
    coalesce(string_agg(format('stage %s of %s waits since %s: look at the logs of function %s', s.name, p.name, to_char(w.since, 'YYYY-MM-DD HH24:MI:SS'), s.function_name), ', ' order by p.name, s.id), 'nothing waits')
    from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id
    cross join lateral (select min(a.queue_at) as since from millrace.attempts a where a.stage_id = s.id and a.queue_at <= millrace.now() - interval '1 minute' and a.state = 'queued') w
    where s.enabled and p.enabled and w.since is not null and millrace.live_workers(s.id) = 0 and (s.limits is null or millrace.may_claim(s));
  return query
  select 'only the engine can write results', count(*) = 0,
    coalesce(string_agg(
      format('%s may %s results in %s: %s', f.role, replace(f.verbs, ', ', ' and '),
        f.entity_table, f.remedy), ' '),
      'no role of the Data API can')
  from millrace.forgers f;
  return query
  select 'nothing is paused', count(*) = 0,
    coalesce(string_agg(
      coalesce('stage ' || d.stage || ' of ', 'pipeline ') || d.pipeline || ': ' || d.remedy, ' '),
      'nothing is')
  from millrace.paused d;
  return query select 'pipeline ' || p.name || ' fits its table', f.fault is null, coalesce(f.fault || format(': select millrace.attach(%L)', p.name), p.entity_table::text)
    from millrace.pipelines p, lateral millrace.fault_of(p.name) f(fault);
  return query select 'no invariant is violated', not exists (select from millrace.check_invariants()), coalesce((select string_agg(distinct i.rule, '; ') from millrace.check_invariants() i), 'none');
  return query select 'jobs at services can be asked after and finished', millrace.faulty_jobs() is null,
    coalesce(millrace.faulty_jobs(), 'none is in trouble');
  return query select 'no stage is later than its bound', coalesce(sum(l.late), 0) = 0,
    coalesce(string_agg(format('%s of %s: %s', l.stage, l.pipeline, l.late), ', ' order by l.pipeline, l.id) || ': select * from millrace.alerts where resolved_at is null', 'none')
    from (select s.id, s.name as stage, p.name as pipeline, millrace.late_runs(s.id) as late from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id where s.sla is not null) l where l.late > 0;
  return query select 'external jobs end before their deadlines', count(*) = 0,
    coalesce(string_agg(format(
      'stage %s of %s: of the last %s jobs %s passed their deadline and %s completed: set limits.maxInFlight (now %s) to what the service works on at once, or completion.deadlineSeconds to more',
      j.stage, j.pipeline, j.ended, j.past_deadline, j.completed, coalesce(j.max_in_flight, 'none')), ', '), 'none passed more often than jobs completed')
    from millrace.job_outcomes j where j.past_deadline > j.completed;
  return query select 'no errors in the last hour', not exists (select from millrace.log l where l.level = 'error' and l.at > millrace.now() - interval '1 hour'),
    coalesce((select string_agg(distinct l.message, '; ') from millrace.log l where l.level = 'error' and l.at > millrace.now() - interval '1 hour'), 'none');
end
$$;
comment on function millrace.doctor() is 'Checks the engine''s configuration and health, one line each with the remedy.';
