-- The operators' reads: runs, one run, one attempt
--
-- Results, metadata and the details of errors are for those who see payloads. What users and
-- services wrote is shown as it is, cut where it is long: a page must escape it.

-- Shows a payload, or the beginning of its text where it has more than 100 kB.
create function millrace.payload_json(p_value jsonb) returns jsonb
immutable
as $$
declare
  v_text text := p_value::text;
begin
  if octet_length(v_text) > 100000 then
    return jsonb_build_object('cut', left(v_text, 20000), 'bytes', octet_length(v_text));
  end if;
  return jsonb_build_object('value', p_value);
end
$$;

-- Shows an error; its detail and stack to who sees payloads.
create function millrace.error_json(p_error jsonb, p_payloads boolean) returns jsonb
language sql immutable
as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'code', millrace.cut_text(p_error ->> 'code', 500),
    'message', millrace.cut_text(p_error ->> 'message'),
    'hint', millrace.cut_text(p_error ->> 'hint'),
    'detail', case when p_payloads then millrace.cut_text(p_error ->> 'detail', 20000) end,
    'stack', case when p_payloads then millrace.cut_text(p_error ->> 'stack', 4000) end))
  where p_error is not null
$$;

-- Shows runs as a list has them, in the order of these ids.
create function millrace.runs_json(p_run_ids bigint[], p_payloads boolean default false)
returns jsonb
language sql stable
as $$
  select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
    'run', r.id, 'pipeline', p.name, 'entity', millrace.cut_text(r.entity_id),
    'label', millrace.cut_text(millrace.label_of(p, r.entity_id), 500),
    'status', r.status, 'ended_as', r.ended_as, 'trace', r.trace_id,
    'began_at', r.created_at, 'ended_at', r.finished_at, 'parent', f.run_id,
    'item', millrace.cut_text(r.item_key),
    'at', case when r.status <> 'completed' then (
      select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'stage', s.name, 'state', a.state, 'attempt', a.id, 'retries', a.retry_count,
        'due_at', a.queue_at,
        'error', millrace.error_json(e.error, false) || jsonb_build_object('detail',
          case when p_payloads then millrace.cut_text(e.error ->> 'detail', 500) end)))
        order by a.stage_id)
      from (
        select t.*
        from millrace.attempts t
        where t.run_id = r.id
          and not t.superseded
          and t.state in ('queued', 'started', 'waiting', 'failed', 'cancelled')
          and not exists (
            select
            from millrace.attempts n
            where n.run_id = t.run_id
              and n.stage_id = t.stage_id
              and n.number > t.number)
        order by t.stage_id
        limit 5) a
      join millrace.stages s on s.id = a.stage_id
      left join millrace.attempts o on o.id = a.parent_id and a.state = 'queued'
      cross join lateral (select coalesce(a.error, o.error)) e(error)) end))
    order by i.place), '[]')
  from unnest(p_run_ids) with ordinality i(id, place)
  join millrace.runs r on r.id = i.id
  join millrace.pipelines p on p.id = r.pipeline_id
  left join millrace.fan_outs f on f.id = r.fan_out_id
$$;

-- Runs by a filter, the newest first, or the newest end where their status is over. A call looks at
-- 20,000 at most: while next is not null there may be more, from {"cursor": next} on. For
-- operators.
create function public.millrace_runs(p_query jsonb default '{}') returns jsonb
stable
set millrace.plan = for_runs
as $$
declare
  v_caller millrace.caller := millrace.enter();
  v_found record;
begin
  perform millrace.check_request(p_query,
    millrace.filter_fields() || '{"cursor": "cursor", "limit": "size"}', 'p_query');
  v_found := millrace.find_runs(millrace.read_filter(v_caller, p_query), p_query ->> 'cursor',
    coalesce((p_query ->> 'limit')::int, 50));
  return jsonb_build_object(
    'runs', millrace.runs_json(v_found.run_ids, v_caller.payloads), 'next', v_found.next);
end
$$;

-- Shows an attempt.
create function millrace.attempt_json(p_attempt millrace.attempts, p_payloads boolean)
returns jsonb
language sql stable
as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'attempt', p_attempt.id, 'stage', s.name, 'number', p_attempt.number,
    'state', p_attempt.state, 'parent', p_attempt.parent_id, 'retries', p_attempt.retry_count,
    'queued_at', p_attempt.created_at, 'due_at', p_attempt.queue_at,
    'started_at', p_attempt.started_at, 'ended_at', p_attempt.finished_at,
    'deadline_at', p_attempt.deadline_at, 'service', p_attempt.service,
    'job', millrace.cut_text(p_attempt.job_id, 500), 'usage', p_attempt.usage,
    'error', millrace.error_json(p_attempt.error, p_payloads),
    'superseded', nullif(p_attempt.superseded, false)))
  from millrace.stages s
  where s.id = p_attempt.stage_id
$$;

-- One run, {"run": 42}: its stages, newest attempts, children in numbers, cost, agents' turns, what
-- people were asked and what they did to it. For operators.
create function public.millrace_run(p_query jsonb) returns jsonb
stable
set millrace.plan = for_runs
as $$
declare
  v_caller millrace.caller := millrace.enter();
  v_run millrace.runs;
begin
  perform millrace.check_request(p_query, '{"run": "id"}', 'p_query');
  v_run := millrace.run_seen(v_caller, (p_query ->> 'run')::bigint);
  return (millrace.runs_json(array[v_run.id], v_caller.payloads) -> 0) || jsonb_build_object(
    'version', (
      select v.number from millrace.versions v where v.id = v_run.version_id),
    'stages', (
      select jsonb_agg(jsonb_build_object(
        'stage', s.name, 'kind', s.kind, 'state', millrace.state_of(v_run.id, s.id),
        'needs', array(select n.name
          from millrace.stages n where n.id = any (vs.needs)
          order by n.id)) order by vs.position)
      from millrace.version_stages vs
      join millrace.stages s on s.id = vs.stage_id
      where vs.version_id = v_run.version_id),
    'children', array(
      select jsonb_build_object(
        'stage', s.name, 'pipeline', p.name, 'state', f.state, 'spawned', f.spawned,
        'total', f.total, 'completed', f.completed, 'failed', f.failed, 'cancelled', f.cancelled)
      from (
        select o.*
        from millrace.fan_outs o
        where o.run_id = v_run.id
        order by o.id desc
        limit 50) f
      join millrace.stages s on s.id = f.stage_id
      join millrace.pipelines p on p.id = f.child_pipeline_id
      order by f.id),
    'attempts', array(
      select millrace.attempt_json(a, v_caller.payloads)
      from millrace.attempts a
      where a.id in (
        select o.id
        from millrace.attempts o
        where o.run_id = v_run.id
        order by o.id desc
        limit 500)
      order by a.id),
    'cost_usd', (
      select sum((a.usage ->> 'cost_usd')::numeric)
      from millrace.attempts a
      where a.run_id = v_run.id
        and jsonb_typeof(a.usage -> 'cost_usd') = 'number'),
    'metadata', case when v_caller.payloads then (
      select millrace.payload_json(m.value)
      from millrace.run_metadata m
      where m.id = v_run.metadata_id) end,
    'table', (
      select jsonb_build_object('name', p.entity_table::text, 'id', p.entity_table::oid::bigint,
        'key', p.entity_key)
      from millrace.pipelines p
      where p.id = v_run.pipeline_id),
    'turns', array(
      select jsonb_strip_nulls(jsonb_build_object(
        'stage', l.stage, 'execution', l.execution, 'turn', l.seq, 'kind', l.kind,
        'what', millrace.cut_text(l.what, 200), 'tool', millrace.cut_text(l.tool, 200),
        'tokens', l.tokens, 'cost_usd', l.cost_usd, 'at', l.at,
        'asked', case when v_caller.payloads then millrace.cut_text(l.asked, 2000) end,
        'arguments', case when v_caller.payloads then millrace.cut_text(l.arguments, 2000) end,
        'output', case when v_caller.payloads then millrace.cut_text(l.output, 2000) end))
      from (
        select g.*
        from millrace.agent_log g
        where g.run_id = v_run.id
        order by g.at desc, g.seq desc
        limit 100) l
      order by l.at, l.stage, l.seq),
    'decisions', array(
      select jsonb_strip_nulls(jsonb_build_object(
        'attempt', d.attempt_id, 'stage', d.stage, 'asked_at', d.opened_at,
        'deadline_at', d.deadline_at, 'decided_at', d.decided_at, 'decided_by', d.decided_by,
        'closed_why', millrace.cut_text(d.closed_why, 500), 'closed_at', d.closed_at,
        'schema', d.schema,
        'decision', case when v_caller.payloads then millrace.payload_json(d.decision) end))
      from (
        select o.*
        from public.millrace_decisions o
        where o.run_id = v_run.id
        order by o.attempt_id desc
        limit 20) d
      order by d.attempt_id desc),
    'journal', array(
      select millrace.line_json(j)
      from (
        select o.*
        from millrace.journal o
        where o.run_ids @> array[v_run.id]
        order by o.id desc
        limit 50) j
      order by j.id desc));
end
$$;

-- One attempt, {"attempt": 42}, with its result for operators who see payloads. For operators.
create function public.millrace_attempt(p_query jsonb) returns jsonb
stable
set millrace.plan = for_runs
as $$
declare
  v_caller millrace.caller := millrace.enter();
  v_attempt millrace.attempts;
begin
  perform millrace.check_request(p_query, '{"attempt": "id"}', 'p_query');
  select a.* into v_attempt
  from millrace.attempts a
  join millrace.runs r on r.id = a.run_id
  join millrace.pipelines p on p.id = r.pipeline_id
  where a.id = (p_query ->> 'attempt')::bigint
    and millrace.sees(v_caller, p.name);
  if not found then
    raise exception 'there is no attempt % that you see', coalesce(p_query ->> 'attempt', 'null')
      using errcode = 'MR003', hint = 'Those of a run are in millrace_run({"run": …}).';
  end if;
  return millrace.attempt_json(v_attempt, v_caller.payloads) || jsonb_build_object(
    'run', millrace.runs_json(array[v_attempt.run_id]) -> 0,
    'payloads', v_caller.payloads,
    'output', case when v_caller.payloads and v_attempt.output is not null
      then millrace.payload_json(v_attempt.output) end);
end
$$;
