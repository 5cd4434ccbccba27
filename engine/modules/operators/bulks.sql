-- Bulks: a verb over all runs that match a filter
--
-- A preview writes a row of millrace.bulks with the filter, its times frozen, and counts what it
-- would meet. Whoever begins it owns it. Then it is worked off in slices of at most 500 runs, in
-- the order of their ids (bulk-slices.sql), by calls of `continue` and by the sweep. What has been
-- done stands in its row, which each slice changes in its own transaction: so it goes on from there
-- whatever ended the last one, and comes to no run twice.

-- Shows a bulk.
create function millrace.bulk_json(p_bulk millrace.bulks) returns jsonb
language sql stable
as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'bulk', p_bulk.id, 'state', p_bulk.state, 'do', p_bulk.args, 'filter', p_bulk.filter,
    'by', p_bulk.subject, 'reason', p_bulk.reason, 'preview', p_bulk.preview,
    'frozen_at', p_bulk.frozen_at, 'began_at', p_bulk.began_at, 'ended_at', p_bulk.ended_at,
    'why', p_bulk.why, 'slices', p_bulk.slices, 'done', p_bulk.done,
    'passed_over', p_bulk.passed_over, 'faults', p_bulk.faults,
    'held', cardinality(p_bulk.held),
    'faults_by_run', (
      select jsonb_agg(jsonb_build_object(
        'run', f.run_id, 'code', f.code, 'message', f.message) order by f.run_id)
      from (
        select o.*
        from millrace.bulk_faults o
        where o.bulk_id = p_bulk.id
        order by o.run_id
        limit 100) f)))
$$;

-- Raises MR002 unless a bulk is a verb over runs with its fields, and a filter of one pipeline.
-- Returns the filter with the status that the verb is for.
create function millrace.check_bulk(p_do jsonb, p_filter jsonb) returns jsonb
immutable
as $$
begin
  perform millrace.check_request(p_do, millrace.verb_fields() || '{
    "verb": ["retry", "cancel", "reset", "skip", "fail", "prioritise", "hurry"]}', 'do');
  perform millrace.need_fields(p_do, 'verb');
  perform millrace.check_verb(p_do);
  perform millrace.check_request(p_filter, millrace.filter_fields(), 'filter');
  if not p_filter ? 'pipeline' then
    raise exception 'filter.pipeline is missing, but a bulk is about one pipeline'
      using errcode = 'MR002', hint = 'Set it; nothing was done.';
  elsif not p_filter ? 'status' and p_do ->> 'verb' = 'reset' then
    raise exception 'filter.status is missing, but a reset takes up runs that are over, too'
      using errcode = 'MR002', hint = 'Say which: running, completed, failed or cancelled.';
  end if;
  return jsonb_build_object('status',
    case when p_do ->> 'verb' = 'retry' then 'failed' else 'running' end) || p_filter;
end
$$;

-- Makes the row of a bulk and says what it would meet. Nothing is done to any run.
create function millrace.preview_bulk(
  p_caller millrace.caller,
  p_do jsonb,
  p_filter jsonb,
  p_reason text)
returns millrace.bulks
as $$
declare
  v_now timestamptz := millrace.now();
  v_filter jsonb := millrace.check_bulk(p_do, p_filter);
  v_pipeline millrace.pipelines := millrace.pipeline_seen(p_caller, p_filter ->> 'pipeline');
  v_last bigint := coalesce((select r.id from millrace.runs r order by r.id desc limit 1), 0);
  v_bulk millrace.bulks;
  v_runs bigint[];
  v_next_id bigint;
  v_found record;
  v_cost numeric;
begin
  if p_do ? 'stage' then
    perform millrace.stage_named(v_pipeline.name, p_do ->> 'stage');
  end if;
  -- Up to now, this very moment included.
  v_filter := v_filter || jsonb_build_object('before', least(
    millrace.request_time(p_filter, 'before'), v_now + interval '1 microsecond'));
  v_bulk.conditions := millrace.read_filter(p_caller, v_filter)
    || jsonb_build_object('last_run_id', v_last);
  -- It looks at so many runs at most: whether there are more it may leave open.
  v_runs := '{}';
  v_next_id := 0;
  for v_look in 1 .. 25 loop
    v_found := millrace.find_runs(
      v_bulk.conditions, v_next_id, 10000 - cardinality(v_runs), p_up => true);
    v_runs := v_runs || v_found.run_ids;
    v_next_id := v_found.next;
    exit when v_next_id is null or cardinality(v_runs) >= 10000;
  end loop;
  v_cost := (
    with begun as (
      select r.version_id, b.stage_id, count(*) as runs
      from millrace.runs r
      cross join lateral (
        select vs.stage_id
        from millrace.version_stages vs
        join millrace.stages s on s.id = vs.stage_id
        where p_do ->> 'verb' in ('reset', 'skip')
          and vs.version_id = r.version_id
          and case when p_do ? 'stage' then s.name = p_do ->> 'stage' else vs.needs = '{}' end
        union
        select a.stage_id
        from millrace.attempts a
        where p_do ->> 'verb' = 'retry'
          and a.run_id = r.id
          and a.state in ('failed', 'cancelled')
          and not a.superseded) b
      where r.id = any (v_runs)
      group by r.version_id, b.stage_id
    )
    select round(sum(b.runs * c.cost_usd), 6)
    from begun b
    join millrace.version_stages vs on vs.version_id = b.version_id and vs.stage_id = b.stage_id
    join (
      select t.stage_id, t.cost_usd / t.completed as cost_usd
      from millrace.totals t
      where t.pipeline_id = v_pipeline.id
        and t.stage_id <> 0
        and t.completed > 0
        and t.cost_usd > 0) c
      on c.stage_id = any (vs.dependents)
      or (c.stage_id = b.stage_id and p_do ->> 'verb' <> 'skip'));
  insert into millrace.bulks (
    verb, args, filter, conditions, pipeline_id, subject, key, frozen_at, last_run_id, preview,
    reason, created_at)
  values (
    p_do ->> 'verb', p_do, v_filter, v_bulk.conditions, v_pipeline.id, p_caller.subject,
    p_caller.key, v_now, v_last, (
    select jsonb_build_object(
      'runs', case
        when v_next_id is not null then trim(to_char(count(*), '999,999')) || '+'
        else count(*)::text
      end,
      'oldest', min(coalesce(r.finished_at, r.created_at)),
      'newest', max(coalesce(r.finished_at, r.created_at)),
      'cost_usd', v_cost)
    from millrace.runs r
    where r.id = any (v_runs)),
    p_reason, v_now)
  returning * into v_bulk;
  return v_bulk;
end
$$;

-- Previews, begins, continues, aborts or shows a bulk. Whoever begins it is the operator of its
-- slices.
create function millrace.act_in_bulk(p_caller millrace.caller, p_request jsonb)
returns jsonb
as $$
declare
  v_verb text := p_request ->> 'verb';
  v_bulk millrace.bulks;
begin
  if v_verb = 'preview' then
    perform millrace.need_fields(p_request, 'do', 'filter');
    v_bulk := millrace.preview_bulk(
      p_caller, p_request -> 'do', p_request -> 'filter', p_request ->> 'reason');
  else
    perform millrace.need_fields(p_request, 'bulk');
    select b.* into v_bulk
    from millrace.bulks b
    join millrace.pipelines p on p.id = b.pipeline_id
    where b.id = (p_request ->> 'bulk')::bigint
      and millrace.sees(p_caller, p.name)
    for no key update of b;
  end if;
  if v_bulk.id is null then
    raise exception 'there is no bulk % that you see', coalesce(p_request ->> 'bulk', 'null')
      using errcode = 'MR003', hint = 'Those that run are in millrace_overview().';
  elsif not v_bulk.state = any (case v_verb
      when 'begin' then '{previewed}'
      when 'abort' then '{previewed,running}'
      when 'continue' then '{running,done}'
      else array[v_bulk.state]
    end::text[]) then
    raise exception 'bulk % cannot be %: it is %', v_bulk.id, case v_verb
        when 'begin' then 'begun'
        when 'abort' then 'aborted'
        else 'continued'
      end, v_bulk.state
      using errcode = 'MR004', hint = case v_bulk.state
        when 'previewed' then 'Begin it first.'
        when 'running' then 'It is under way: continue helps it on, abort ends it.'
        else 'Preview it anew.'
      end;
  end if;
  if v_verb = 'begin' then
    update millrace.bulks b
    set state = 'running', subject = p_caller.subject, key = p_caller.key, why = null,
      began_at = millrace.now(), reason = coalesce(p_request ->> 'reason', b.reason)
    where b.id = v_bulk.id
    returning b.* into v_bulk;
  elsif v_verb = 'abort' then
    update millrace.bulks b
    set state = 'aborted', ended_at = millrace.now(), why = p_request ->> 'reason'
    where b.id = v_bulk.id
    returning b.* into v_bulk;
  elsif v_verb = 'continue' then
    v_bulk := millrace.work_slice(v_bulk.id);
  end if;
  return jsonb_build_object(
    'pipeline', v_bulk.filter ->> 'pipeline', 'stage', v_bulk.args ->> 'stage',
    'filter', v_bulk.filter, 'bulk_id', v_bulk.id, 'outcome', millrace.bulk_json(v_bulk));
end
$$;

-- Lists bulks that nobody works on.
create function millrace.bulk_findings() returns setof millrace.finding
stable
as $$
begin
  return query
    select 'bulks go on until they are done', count(*) = 0,
      coalesce(string_agg(format(
        'bulk %s (%s of %s) has come no further since %s: look at millrace.log, or do '
          || 'millrace_act({"verb": "continue", "bulk": %1$s})', b.id, b.verb, p.name,
        to_char(greatest(b.worked_at, b.began_at), 'YYYY-MM-DD HH24:MI:SS')),
        '; ' order by b.id), 'all do')
    from millrace.bulks b
    join millrace.pipelines p on p.id = b.pipeline_id
    where b.state = 'running'
      and greatest(b.worked_at, b.began_at) <= millrace.now() - interval '5 minutes';
end
$$;
