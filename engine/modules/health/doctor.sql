-- The doctor: each function looks at one part of the engine, and says of each point whether all is
-- well, and if not what helps.

-- Looks at the settings. A Vault that cannot be read is a finding, not an error.
create function millrace.setting_findings() returns setof millrace.finding
stable
as $$
declare
  v_url text;
  v_headers jsonb;
  v_fault text := 'missing';
  v_create text :=
    ': select vault.create_secret(''https://REF.supabase.co'', ''millrace_project_url'')';
begin
  begin
    v_url := millrace.setting('project_url');
    v_headers := millrace.wake_headers();
  exception when others then
    v_fault := 'Vault cannot be read: ' || sqlerrm;
  end;
  return query
    select 'project_url is set', coalesce(v_url ~ '^https?://[^/ ]+$', false),
      case
        when v_url ~ '^https?://[^/ ]+$' then v_url
        when v_url is null then v_fault || v_create
        else format('%s is none; write it as https://REF.supabase.co, by the id in vault.secrets: '
          || 'select vault.update_secret(''…'', ''https://REF.supabase.co'')', v_url)
      end;
  return query
    select 'wake_secret is set', coalesce(v_headers ? 'x-millrace-wake-secret', false),
      case
        when v_headers ? 'x-millrace-wake-secret' then 'present'
        when v_headers is null then v_fault || ': ' || millrace.wake_secret_remedy()
        else 'the doorbell shows secret_key instead, which every SQL role can read in '
          || 'net.http_request_queue: ' || millrace.wake_secret_remedy() end;
end
$$;

-- Looks at what keeps the engine going by itself: pg_cron's jobs, the sweep, pg_net, and what the
-- functions answered to wake-ups.
create function millrace.doorbell_findings() returns setof millrace.finding
stable
as $$
declare
  v_swept timestamptz := (
    select s.value::timestamptz
    from millrace.settings s
    where s.name = 'last_sweep_at');
  -- An engine that has just been installed may not have swept yet.
  v_since timestamptz := case
    when v_swept = '-infinity' then (select min(r.installed_at) from millrace.releases r)
    else v_swept
  end;
begin
  return query
    select 'the sweep has run in the last minute',
      coalesce(v_since > millrace.now() - interval '1 minute', false),
      coalesce('last at ' || nullif(v_swept::text, '-infinity'),
        'never; it is due every ten seconds') || case
        when v_since > millrace.now() - interval '1 minute' then ''
        else ': cron.job_run_details says what became of millrace-sweep, select millrace.sweep() '
          || 'what it says itself'
      end;
  return query
    select 'the functions answered the last wake-ups', count(n.remedy) = 0,
      coalesce(
        string_agg(
          distinct n.function_name || ' answered ' || rtrim(n.said, '.') || '; ' || n.remedy, '. '),
        string_agg(distinct n.said, ', '), 'no wake-ups yet')
    from (
      -- A function's last answer counts, so that one that was mended is well.
      select distinct on (a.function_name)
        coalesce(a.function_name, 'a function') as function_name,
        coalesce(a.status_code || coalesce(
            ': ' || substring(a.content from '"message":"((?:[^"\\]|\\.)*)"'), ''),
          a.error_msg, 'nothing') as said,
        millrace.answer_remedy(coalesce(a.function_name, 'a function'), a.status_code) as remedy
      from millrace.last_answers(20) a
      order by a.function_name, a.posted_at desc) n;
  return query
    select 'pg_net''s worker runs', w.pid is not null,
      coalesce('process ' || w.pid,
        'it is not in pg_stat_activity: select net.worker_restart()')
    from (
      select min(a.pid) as pid
      from pg_stat_activity a
      where a.datname = current_database()
        and (a.backend_type ilike '%pg_net%' or a.application_name ilike 'pg_net %')) w;
end
$$;

-- Looks for functions that are not there, by what their last wake-up was answered, and counts, to
-- a cap, what is queued for them.
create function millrace.missing_function_finding() returns setof millrace.finding
stable
set enable_seqscan = off
as $$
begin
  return query
    select 'the functions that have work are there', count(*) = 0,
      coalesce(string_agg(
        format('function %s is not there%s: %s', f.function_name,
          case when s.id is not null then
            format(', with %s%s queued at stage %s of %s', least(q.queued, 1000),
              case when q.queued > 1000 then ' and more' end, s.name, p.name)
          end,
          millrace.answer_remedy(f.function_name, 404)), '; '
        order by f.function_name), 'none was missing')
    from (
      select distinct on (a.function_name) a.function_name, a.status_code
      from millrace.last_answers(100) a
      order by a.function_name, a.posted_at desc) f
    left join millrace.stages s on s.function_name = f.function_name
    left join millrace.pipelines p on p.id = s.pipeline_id
    left join lateral (
      select count(*) as queued
      from (
        select
        from millrace.attempts a
        where a.stage_id = s.id and a.state = 'queued'
        limit 1001) c) q on s.id is not null
    where f.status_code = 404;
end
$$;

-- Looks at work that nobody takes, but for what waits for its limits.
create function millrace.ready_work_finding() returns setof millrace.finding
language sql stable
as $$
  with waiting as materialized (
    select s, p.name as pipeline, w.since
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    cross join lateral (
      select min(a.queue_at) as since
      from millrace.attempts a
      where a.stage_id = s.id
        and a.queue_at <= millrace.now() - interval '1 minute'
        and a.state = 'queued') w
    where s.enabled
      and not s.bypassed
      and p.enabled
      and w.since is not null
  )
  select 'ready work is taken within a minute', count(*) = 0,
    coalesce(string_agg(format(
      'stage %s of %s waits since %s: look at the %s', (w.s).name, w.pipeline,
      to_char(w.since, 'YYYY-MM-DD HH24:MI:SS'), case (w.s).kind
        when 'gate' then 'sweep, which passes gates, and at who holds its rows'
        else 'logs of function ' || (w.s).function_name
      end),
      ', ' order by w.pipeline, (w.s).id), 'nothing waits')
  from waiting w
  where millrace.live_workers((w.s).id) = 0
    and ((w.s).limits is null or millrace.hook_has_room(w.s))
$$;

-- Tells why the functions of attach() no longer fit the entity table; null when they do. A dropped
-- or renamed column stops every claim; an added one is not sent to the stages.
create function millrace.attachment_fault(p_pipeline text) returns text
stable
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
        select
        from millrace.pipelines o
        join millrace.stages s on s.pipeline_id = o.id
        where o.entity_table = p.entity_table
          and a.attname = any (case o.projection
            when 'columns' then millrace.stage_columns(s.name)
            when 'status' then millrace.status_columns(o.status)
          end))
    having count(*) > 0);
exception when others then
  return sqlerrm;
end
$$;

-- Looks at what people set up: grants on entity tables, pauses, and tables that were changed.
create function millrace.pipeline_findings() returns setof millrace.finding
stable
as $$
begin
  return query
    select 'only the engine can write results', count(*) = 0,
      coalesce(string_agg(
        format('%s may %s %s in %s: %s', f.role, replace(f.verbs, ', ', ' and '), f.what,
          f.entity_table, f.remedy), ' '),
        'no role of the Data API can')
    from millrace.forgers f;
  return query
    select 'rows that are granted can be seen', count(*) = 0,
      coalesce(string_agg(format(
        'table %s has row-level security and no policy, so that %s, to whom it is granted, sees '
          || 'no row: create policy …, or revoke all on %1$s from %2$s',
        t.entity_table, t.roles), '; ' order by t.entity_table::text),
        'each table has its policies')
    from (
      select p.entity_table, string_agg(r.rolname, ', ' order by r.rolname) as roles
      from (select distinct o.entity_table from millrace.pipelines o) p
      join pg_class c on c.oid = p.entity_table and c.relrowsecurity
      join pg_roles r on r.rolname in ('anon', 'authenticated')
        and has_any_column_privilege(r.oid, c.oid, 'select')
      where not exists (select from pg_policy y where y.polrelid = c.oid)
      group by p.entity_table) t;
  return query
    select 'nothing is paused', count(*) = 0,
      coalesce(string_agg(
        coalesce('stage ' || d.stage || ' of ', 'pipeline ') || d.pipeline || ': ' || d.remedy,
        ' '), 'nothing is')
    from millrace.paused d;
  return query
    select 'pipeline ' || p.name || ' fits its table', f.fault is null,
      coalesce(f.fault || format(': select millrace.attach(%L)', p.name), p.entity_table::text)
    from millrace.pipelines p
    cross join lateral millrace.attachment_fault(p.name) f(fault);
end
$$;

-- Checks the engine's configuration and health, one line each with the remedy. It answers as fast
-- in a large database as in a small one; with p_deep it also checks the invariants of all runs,
-- which the sweep otherwise does in slices.
create function millrace.doctor(p_deep boolean default false) returns setof millrace.finding
stable
as $$
begin
  return query select * from millrace.setting_findings();
  return query select * from millrace.doorbell_findings();
  return query select * from millrace.missing_function_finding();
  return query select * from millrace.ready_work_finding();
  return query select * from millrace.pipeline_findings();
  return query select * from millrace.label_findings();
  return query select * from millrace.invariant_findings(p_deep);
  return query
    select 'no stage is later than its bound', count(*) = 0,
      coalesce(string_agg(format('%s of %s: %s', s.name, p.name, l.late), ', '
        order by p.name, s.id) || ': select * from millrace.late_runs', 'none')
    from millrace.late_counts() l
    join millrace.stages s on s.id = l.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id;
  return query select * from millrace.hook_findings();
  return query
    select 'no errors in the last hour', count(*) = 0,
      coalesce(string_agg(distinct l.message, '; ')
        || ': select * from millrace.log where level = ''error'' order by id desc tells more, '
        || 'docs/errors.md what helps', 'none')
    from millrace.log l
    where l.level = 'error'
      and l.at > (select millrace.now() - interval '1 hour');
end
$$;
