-- Returns a journal entry as operators read it.
-- p_payloads: whether the outcome has the values before and after an edit.
create function millrace.entry_json(p_entry millrace.journal, p_payloads boolean) returns jsonb
immutable
as $$
select jsonb_strip_nulls(
  to_jsonb(p_entry) - '{id,subject,bulk_id}'::text[] || jsonb_build_object(
    'journal_entry', p_entry.id, 'by', coalesce(p_entry.subject, p_entry.session ->> 'user'),
    'run_ids', case when p_entry.runs > 0 then to_jsonb(p_entry.run_ids[:100]) end,
    'bulk', p_entry.bulk_id,
    'outcome', p_entry.outcome - case when p_payloads then '{}'
      else '{before,after}' end::text[]))
$$;

-- Returns since when, by whom and why a stage or a pipeline is paused, bypassed or throttled.
-- p_entry: the number of the journal entry. Without one, all three are null.
create function millrace.pause_json(p_entry bigint) returns jsonb
stable
as $$
select jsonb_build_object('at', j.at, 'reason', j.reason,
  'by', coalesce(j.subject, j.session ->> 'user'))
from (select) one
left join millrace.journal j on j.id = p_entry and j.verb in ('pause', 'bypass', 'throttle')
$$;

-- Returns the throttle of a limit with who set it, when and why; null without a throttle.
create function millrace.throttle_json(p_limit millrace.limits) returns jsonb
stable
as $$
select millrace.pause_json(p_limit.journal_entry) || jsonb_build_object('limits', p_limit.throttle,
  'until', p_limit.until, 'reason', p_limit.reason)
where p_limit.throttle is not null
$$;

-- Returns the stages of pipelines that have work, have failed runs, or are paused, throttled or
-- bypassed. Where one stage of a pipeline of up to twelve is returned, all of them are.
-- p_quiet: returns all stages, of which a project may have a thousand; each also has its function,
-- releases and costs.
create function millrace.stages_json(p_pipelines text[], p_quiet boolean) returns jsonb[]
stable
as $$
select array(
  select to_jsonb(k.h) - 'sla' || jsonb_strip_nulls(jsonb_build_object('unattended', u,
    'worker', case when (k.s).host is not null then coalesce((k.s).seen, '{}') end,
    'backoff', case when (k.h).in_backoff > 0 then (
      -- The error is the newest failure behind the ten attempts that are due first.
      select coalesce((array_agg(
          millrace.error_json(f.error, null) || jsonb_build_object('at', f.at) order by f.at desc)
          filter (where f.error is not null))[1], '{}')
        || jsonb_build_object('next_at', min(a.queue_at))
      from (
        select b.*
        from millrace.attempts b
        where b.stage_id = (k.s).id and b.queue_at > v_now
        order by b.queue_at, b.id
        limit 10) a
      left join millrace.attempts o on o.id = a.parent_id
      cross join lateral (
        select coalesce(a.error, o.error), coalesce(o.finished_at, a.created_at)) f(error, at))
    end)) || case when p_quiet then jsonb_build_object(
    'function', (k.s).function_name, 'releases', (k.s).seen -> 'releases', 'costs', (
      select to_jsonb(c) from millrace.row_costs c where c.stage_id = (k.s).id))
    else '{}' end || jsonb_build_object(
    'oldest_age', extract(epoch from (k.h).oldest_age),
    'paused', case when not (k.s).enabled then millrace.pause_json((k.s).switched_entry) end,
    'throttle', millrace.throttle_json(k.o),
    'bypass', (
      select millrace.pause_json(b.journal_entry) || jsonb_build_object('until', b.until)
      from millrace.bypasses b
      where b.stage_id = (k.s).id))
  from (
    select h, s, o, case when count(*) over pipeline <= 12 then bool_or(b.is_busy) over pipeline
      else b.is_busy end as is_listed
    from millrace.stage_health h
    join millrace.pipelines p on p.name = h.pipeline
    join millrace.stages s on s.pipeline_id = p.id and s.name = h.stage
    left join millrace.limits o on o.stage_id = s.id
    cross join lateral (
      select p_quiet or s.bypassed or o.throttle is not null or not h.enabled
        or h.ready + h.in_backoff + h.started + h.waiting + h.failed + h.late > 0) b(is_busy)
    where h.pipeline = any (p_pipelines)
    window pipeline as (partition by h.pipeline)) k
  left join millrace.unattended() u on u.stage_id = (k.s).id
  where k.is_listed
  order by (k.h).pipeline, (k.s).id)
$$;

-- Returns whether all is well, the pipelines that an operator sees, the running bulks, and the
-- stages that have work or are paused, throttled or bypassed.
-- quiet: true adds all other stages, and the last answers of functions.
create function public.millrace_overview(p_query jsonb default '{}')
set reads = '{"quiet": "boolean"}'
as $$
return jsonb_build_object(
  'now', v_now,
  'you', jsonb_build_object('subject', v_caller.subject, 'role', v_caller.role,
    'payloads', v_caller.payloads),
  'well', millrace.well(v_caller, false),
  'last_sweep_at', millrace.setting('last_sweep_at'),
  'installed_at', (select min(r.installed_at) from millrace.releases r),
  'pipelines', array(
    select jsonb_build_object(
      'pipeline', p.name, 'enabled', p.enabled,
      'paused', case when not p.enabled then millrace.pause_json(p.switched_entry) end,
      'stages', (select count(*) from millrace.stages s where s.pipeline_id = p.id),
      'open_alerts', (
        select count(*)::text
        from millrace.alerts a
        where a.pipeline_id = p.id and a.resolved_at is null))
    from millrace.pipelines p
    where millrace.sees(v_caller, p.name)
    order by p.name),
  'stages', millrace.stages_json(array(
    select p.name from millrace.pipelines p where millrace.sees(v_caller, p.name)),
    p_query -> 'quiet' = 'true' is true),
  'answers', case when p_query -> 'quiet' = 'true' then to_jsonb(array(
    select l
    from millrace.last_answers('6 hours') l
    where l.function_name in (
      select s.function_name
      from millrace.stages s
      join millrace.pipelines p on p.id = s.pipeline_id
      where millrace.sees(v_caller, p.name)))) end,
  'bulks', array(
    select millrace.bulk_json(b)
    from millrace.bulks b
    where b.state = 'running'
      and millrace.sees(v_caller, b.filter ->> 'pipeline')
    order by b.id));
$$;

-- Returns a pipeline, {"pipeline": "books"}, with its stages, their needs and their present work.
-- left_out: the rows that a bypass of the stage has left out, to 10,000.
create function public.millrace_pipeline(p_query jsonb)
set reads = '{"pipeline": "name"}'
as $$
return jsonb_build_object(
  'pipeline', v_pipeline.name, 'enabled', v_pipeline.enabled,
  'paused', case
    when not v_pipeline.enabled then millrace.pause_json(v_pipeline.switched_entry)
  end,
  'table', v_pipeline.entity_table::text,
  'version', (
    select v.number from millrace.versions v where v.id = v_pipeline.current_version_id),
  'health', millrace.stages_json(array[v_pipeline.name], true),
  'stages', array(
    select jsonb_strip_nulls(jsonb_build_object(
      'stage', s.name, 'kind', s.kind, 'function', s.function_name, 'enabled', s.enabled,
      'needs', array(
        select n.name from millrace.stages n where n.id = any (vs.needs) order by n.id),
      'left_out', (
        select count(*)
        from (select from millrace.bypassed b where b.stage_id = s.id limit 10000) l)))
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = v_pipeline.current_version_id
    order by vs.position));
$$;

-- Returns the figures of a pipeline, or of one of its stages, in steps of time, and the totals of
-- each stage: {"pipeline": "books", "stage": …, "from": …, "to": …, "step_seconds": …}.
-- from, to: null means the last hour. step_seconds: null means 60.
-- trends: a list of stages whose completed attempts are returned by the minute; for a time of three
-- hours or more by the hour.
create function public.millrace_series(p_query jsonb)
set reads = '{"pipeline": "name", "stage": "name",
  "from": "time", "to": "time", "step_seconds": "seconds", "trends": "any"}'
as $$
  v_to timestamptz := coalesce((p_query ->> 'to')::timestamptz, v_now);
  v_from timestamptz := coalesce((p_query ->> 'from')::timestamptz, v_to - interval '1 hour');

perform millrace.stage_named(v_pipeline.name, p_query ->> 'stage') where p_query ? 'stage';
return jsonb_build_object(
  'pipeline', v_pipeline.name,
  'points', array(
    select to_jsonb(s)
    from millrace.series(v_pipeline.name, p_query ->> 'stage', v_from, v_to,
      make_interval(secs => coalesce((p_query -> 'step_seconds')::int, 60))) s
    order by s.at),
  'stages', (
    select coalesce(json_object_agg(s.name, to_jsonb(f) || jsonb_build_object('trend', (
      select json_object_agg(m.at, m.n)
      from millrace.figure_rows(v_pipeline.id, s.id, v_from, v_to, v_to - v_from < '3h') m
      where m.outcome = 'completed' and p_query -> 'trends' ? s.name)))::jsonb, '{}')
    from millrace.stages s
    cross join millrace.figures(v_pipeline.name, s.name, v_from, v_to) f
    where s.pipeline_id = v_pipeline.id));
$$;

-- Returns how many dead letters there are by pipeline, stage and error code, to 10,000 each.
create function public.millrace_dead_letters(p_query jsonb default '{}')
set reads = '{"pipeline": "name"}'
as $$
return jsonb_build_object('groups', array(
  select to_jsonb(c) || jsonb_build_object('runs', millrace.capped(c.runs, 10000))
  from millrace.dead_letter_counts c
  where c.pipeline = coalesce(p_query ->> 'pipeline', c.pipeline)
    and millrace.sees(v_caller, c.pipeline)
  order by c.pipeline, c.stage, c.error_code));
$$;

-- Finds rows of the alerts or the journal, the newest first. Only callers who see all pipelines
-- find rows of no pipeline.
-- p_condition: SQL over r; p_request: its pipeline, cursor and limit (null means 50) apply.
-- next: the cursor of the next call; null at the end.
create function millrace.find_entries(
  p_caller millrace.caller, p_table text, p_condition text, p_request jsonb,
  out ids bigint[], out next text
)
stable
as $$
select f.ids, f.next::text
from millrace.scan_rows(
  format('select r.* from %s r where %s', p_table,
    coalesce('r.id < ' || split_part(p_request ->> 'cursor', '.', 1), 'true')),
  'r.id desc',
  concat_ws(' and ', 'true', p_condition,
    'r.pipeline = ' || quote_literal(p_request ->> 'pipeline'),
    'r.pipeline = any (' || quote_literal(p_caller.pipelines) || ')'),
  coalesce((p_request -> 'limit')::int, 50)) f
$$;

-- Returns alerts, the newest first. {"open": true} returns open alerts alone. {"cursor": next}
-- returns the following ones, while next is not null.
create function public.millrace_alerts(p_query jsonb default '{}')
set reads = '{"pipeline": "name", "open": "boolean", "cursor": "cursor", "limit": "size"}'
as $$
  v_found record;

v_found := millrace.find_entries(v_caller, 'millrace.alerts',
  case when p_query -> 'open' = 'true' then 'r.resolved_at is null' end, p_query);
return jsonb_build_object(
  'next', v_found.next, 'playbooks_url', millrace.playbooks_url(), 'alerts', array(
  select millrace.alert_json(l)
  from millrace.alerts l
  where l.id = any (v_found.ids)
  order by l.id desc));
$$;

-- Returns journal entries, the newest first. {"cursor": next} returns the following ones, while
-- next is not null.
create function public.millrace_journal(p_query jsonb default '{}')
set reads = '{"pipeline": "name", "run": "id",
  "bulk": "id", "verb": "name", "by": "key", "since": "time", "before": "time",
  "cursor": "cursor", "limit": "size"}'
as $$
  v_found record;

v_found := millrace.find_entries(v_caller, 'millrace.journal', concat_ws(' and ', 'true',
  'r.run_ids @> array[' || (p_query -> 'run')::bigint || ']::bigint[]',
  'r.bulk_id = ' || (p_query -> 'bulk')::bigint,
  'r.verb = ' || quote_literal(p_query ->> 'verb'),
  'coalesce(r.subject, r.session ->> ''user'') = ' || quote_literal(p_query ->> 'by'),
  'r.at >= ' || quote_literal(p_query ->> 'since'),
  'r.at < ' || quote_literal(p_query ->> 'before')), p_query);
return jsonb_build_object('next', v_found.next, 'entries', array(
  select millrace.entry_json(j, v_caller.payloads)
  from millrace.journal j
  where j.id = any (v_found.ids)
  order by j.id desc));
$$;
