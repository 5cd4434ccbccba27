-- The functions of this file return texts of users and services unescaped, and cut long ones. A
-- page must escape them.

-- Returns an error with its texts cut; null without an error.
-- p_detail: characters of detail and stack; null leaves both out.
create function millrace.error_json(p_error jsonb, p_detail int) returns jsonb
immutable
as $$
select jsonb_strip_nulls(
  json_object_agg(f.name, millrace.cut_text(p_error ->> f.name, f.most))::jsonb)
from (values ('code', 500), ('message', 2000), ('hint', 2000), ('detail', p_detail),
  ('stack', p_detail)) f(name, most)
where p_error is not null and f.most is not null
$$;

-- Returns runs in short, as lists show them, in the order of the ids.
-- p_payloads: whether errors have detail and stack.
create function millrace.runs_json(p_run_ids bigint[], p_payloads boolean default false)
returns jsonb
stable
as $$
select coalesce(json_agg(jsonb_strip_nulls(jsonb_build_object(
  'run', r.id, 'pipeline', p.name, 'entity', millrace.cut_text(millrace.key_of(r)),
  'label', millrace.cut_text(case when r.copy_key is null then '' else 'Copy of ' end
    || coalesce(millrace.label_of(p, millrace.key_of(r)), r.copy_key), 500),
  'copy_of', r.copy_of,
  'status', r.status, 'ended_as', r.ended_as, 'trace', r.trace_id,
  'began_at', r.created_at, 'ended_at', r.finished_at, 'parent', f.run_id,
  'item', millrace.cut_text(r.item_key),
  'at', case when r.status <> 'completed' then (
    select json_agg(jsonb_strip_nulls(jsonb_build_object(
      'stage', s.name, 'state', a.state, 'attempt', a.id, 'retries', a.retry_count,
      'due_at', a.queue_at,
      'error', millrace.error_json(coalesce(a.error, o.error),
        case when p_payloads then 500 end))) order by a.stage_id)::jsonb
    from (
      select t.*
      from millrace.attempts t
      where t.run_id = r.id
        and t.state not in ('completed', 'skipped')
        and millrace.is_newest_attempt(t)
      order by t.stage_id
      limit 5) a
    join millrace.stages s on s.id = a.stage_id
    left join millrace.attempts o on o.id = a.parent_id and a.state = 'queued') end))
  order by i.ordinal)::jsonb, '[]')
from unnest(p_run_ids) with ordinality i(id, ordinal)
join millrace.runs r on r.id = any (array[i.id])
join millrace.pipelines p on p.id = r.pipeline_id
left join millrace.fan_outs f on f.id = r.fan_out_id
$$;

-- Returns runs by a filter, the newest first; by their end where the filter names a status that is
-- over. {"text": …} finds runs that have the text anywhere in their key, label, errors' messages or
-- metadata. {"cursor": next} returns the following ones, while next is not null. {"count": true}
-- counts runs instead, to 2500: next is not null where there may be more.
create function public.millrace_runs(p_query jsonb default '{}')
stable
set plan = for_runs
as $$
  v_caller millrace.caller := millrace.authorize(p_query, millrace.filter_fields()
    || '{"text": "text", "count": "boolean", "cursor": "cursor", "limit": "size"}');
  v_counts boolean := p_query @> '{"count": true}';
  v_found record := millrace.find_runs(millrace.pipelines_seen(v_caller, p_query ->> 'pipeline'),
    p_query || jsonb_build_object('payloads', v_caller.payloads)
      || case when v_counts then '{"limit": 2501}' else '{}' end::jsonb);

if v_counts then
  return jsonb_build_object(
    'count', least(cardinality(v_found.run_ids), 2500), 'next', v_found.next);
end if;
return jsonb_build_object(
  'runs', millrace.runs_json(v_found.run_ids, v_caller.payloads), 'next', v_found.next);
$$;

-- Returns an attempt without its result.
-- p_payloads: whether log lines, and the detail and stack of an error, are included.
-- log: the last lines that the handler wrote, where the attempt keeps them.
-- deleted_after: the days after which prune() deleted result and log; null before.
create function millrace.attempt_json(p_attempt millrace.attempts, p_payloads boolean)
returns jsonb
stable
as $$
select jsonb_strip_nulls(to_jsonb(k))
from (
  select a.id as attempt, s.name as stage, a.number, a.state, a.parent_id as parent,
    a.retry_count as retries, a.created_at as queued_at, a.queue_at as due_at, a.started_at,
    a.finished_at as ended_at, a.deadline_at, a.service,
    millrace.error_json(a.error, case when p_payloads then 20000 end) as error,
    case when p_payloads then millrace.cut_text(a.usage ->> 'log', 5000) end as log, (
      select millrace.cut_text(string_agg(d #>> '{}', ' '))
      from jsonb_path_query(a.output, '$.doubts[*]') d) as doubts,
    a.deleted_after, nullif(a.superseded, false) as superseded
  from (select p_attempt.*) a
  join millrace.stages s on s.id = a.stage_id) k
$$;

-- Returns a run, {"run": 42}, with its stages and what made their results, attempts, children,
-- cost, turns, decisions and journal entries. The ten newest attempts have their log.
-- unreported: how many attempts lack reported tokens or a known price.
-- cost_usd: the sum of the costs that are known.
-- unattended: the stages whose ready attempt of this run no worker takes up, with the reason.
create function public.millrace_run(p_query jsonb)
set plan = for_runs
set reads = '{"run": "id"}'
as $$
  v_run millrace.runs := millrace.run_seen(v_caller, (p_query -> 'run')::bigint);

return (millrace.runs_json(array[v_run.id], v_caller.payloads) -> 0) || jsonb_build_object(
  'version', (select v.number from millrace.versions v where v.id = v_run.version_id),
  'stages', (
    select json_agg(jsonb_build_object(
      'stage', s.name, 'kind', s.kind, 'state', millrace.state_of(v_run.id, s.id), 'made_by', (
        select millrace.made_by(a) from millrace.newest_attempt(v_run.id, s.id) a
        where a.state = 'completed'),
      'needs', array(
        select n.name from millrace.stages n where n.id = any (vs.needs) order by n.id))
      order by vs.position)::jsonb
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = v_run.version_id),
  'children', array(
    select to_jsonb(k)
    from (
      select s.name as stage, p.name as pipeline, f.spawned, f.completed, f.failed, f.cancelled
      from millrace.fan_outs f
      join millrace.stages s on s.id = f.stage_id
      join millrace.pipelines p on p.id = f.child_pipeline_id
      where f.run_id = v_run.id
      -- by key
      order by f.id + 0 desc
      limit 50) k),
  'unattended', array(
    select to_jsonb(u)
    from millrace.unattended() u
    join millrace.attempts a on a.run_id = v_run.id and a.stage_id = u.stage_id
    where a.state = 'queued' and a.queue_at <= v_now),
  'attempts', array(
    select millrace.attempt_json(l.a, v_caller.payloads)
      - case when l.ordinal > 10 then 'log' else '' end
    from (
      select a, row_number() over (order by a.id desc) as ordinal
      from millrace.attempts a
      where a.run_id = v_run.id
      order by a.id desc
      limit 500) l
    order by (l.a).id),
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
    select jsonb_strip_nulls(to_jsonb(l) - case when v_caller.payloads then '{}'
      else '{asked,arguments,output}' end::text[])
    from (
      select g.stage, g.stage_run, g.seq as turn, g.kind, g.attempt_id as attempt,
        millrace.cut_text(g.what, 200) as what, millrace.cut_text(g.tool, 200) as tool,
        g.tokens, g.cost_usd, g.at,
        millrace.cut_text(g.asked) as asked, millrace.cut_text(g.arguments) as arguments,
        millrace.cut_text(g.output) as output
      from millrace.agent_log g
      where g.run_id = v_run.id
      order by g.at desc, g.seq desc
      limit 100) l
    order by l.at, l.stage, l.turn),
  'decisions', array(
    select jsonb_strip_nulls(to_jsonb(k))
    from (
      select o.attempt_id as attempt, o.stage, o.opened_at as asked_at, o.deadline_at,
        o.decided_at, o.decided_by, millrace.cut_text(o.closed_why, 500) as closed_why,
        o.closed_at, o.schema,
        case when v_caller.payloads then millrace.payload_json(o.decision) end as decision
      from public.millrace_decisions o
      where o.run_id = v_run.id
      order by o.attempt_id + 0 desc
      limit 20) k),
  'journal', array(
    select millrace.entry_json(j, v_caller.payloads)
    from millrace.journal j
    where j.run_ids @> array[v_run.id]
    order by j.id desc
    limit 50)) || (
  select jsonb_build_object(
    'cost_usd', sum(jsonb_path_query_first(a.usage, '$.cost_usd ? (@ >= 0)')::numeric),
    'unreported', count(*) filter (where a.usage ?| '{unreported,unpriced}'))
  from millrace.attempts a
  where a.run_id = v_run.id);
$$;

-- Returns an attempt, {"attempt": 42}. The result and the following are for operators who see
-- payloads.
-- form: the schemas that check an edit of the result or the row.
-- row: the row's columns that the form names.
-- usage: what the handler reported, such as model, tokens and cost.
create function public.millrace_attempt(p_query jsonb)
set plan = for_runs
set reads = '{"attempt": "id"}'
as $$
  v_attempt millrace.attempts := (
    select a from millrace.attempts a where a.id = (p_query -> 'attempt')::bigint);

perform millrace.run_seen(
  v_caller, v_attempt.run_id, 'attempt ' || (p_query ->> 'attempt'));
return millrace.attempt_json(v_attempt, v_caller.payloads) || jsonb_build_object(
  'payloads', v_caller.payloads,
  'output', case when v_caller.payloads and v_attempt.deleted_after is null
    then millrace.payload_json(v_attempt.output) end)
  || case when v_caller.payloads then (
    select jsonb_build_object('form', s.form, 'usage', v_attempt.usage - 'log',
      'row', millrace.row_part(r, s.form #> '{row,properties}'))
    from millrace.runs r
    join millrace.stages s on s.id = v_attempt.stage_id
    where r.id = v_attempt.run_id) else '{}' end;
$$;
