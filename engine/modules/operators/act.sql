-- Raises MR002 where a request lacks one of the fields, or has null for it.
create function millrace.need_fields(p_request jsonb, variadic p_fields text[])
immutable
as $$
perform millrace.refuse(
  format('%s is missing, but %s needs it', f, coalesce(p_request ->> 'verb', 'a call')),
  format('Set %s; nothing was done.', f), 'MR002')
from unnest(p_fields) f
where coalesce(p_request -> f, 'null') = 'null';
$$;

-- Does a verb to the run that the request names, or to the newest run of the row that it names.
-- Returns what the journal entry needs, with the answer as outcome.
create function millrace.act_on_run(p_caller millrace.caller, p_request jsonb) returns jsonb
as $$
  v_run bigint := (p_request ->> 'run')::numeric;
  v_pipeline text;
  v_did jsonb;

if not p_request ? 'run' then
  perform millrace.need_fields(p_request, 'pipeline', 'entity');
  v_run := millrace.run_of((
    millrace.pipeline_named(p_request ->> 'pipeline', p_caller.pipelines)).name,
    p_request ->> 'entity');
end if;
select p.name into v_pipeline
from millrace.pipelines p
where p.id = (millrace.run_seen(p_caller, v_run)).pipeline_id;
perform millrace.stage_named(v_pipeline, p_request ->> 'stage')
where p_request ->> 'stage' is not null;
if p_request ->> 'verb' = 'edit' and not p_caller.payloads then
  raise exception '42501: you may not see results, and so edit none'
    using hint = 'Ask whoever runs this project for the right to payloads.';
end if;
perform millrace.refuse('copy is true, but only an edit makes one', 'Leave it out.', 'MR002')
where p_request @> '{"copy": true}' and p_request ->> 'verb' <> 'edit';
v_did := millrace.do_to_runs(array[v_run], p_request);
return jsonb_build_object(
  'pipeline', v_pipeline, 'stage', p_request -> 'stage',
  'run_ids', array_remove(array[v_run, (v_did -> 'copy')::bigint], null),
  'outcome', v_did || jsonb_strip_nulls(jsonb_build_object(
    'run', v_run, 'status', (select r.status from millrace.runs r where r.id = v_run))));
$$;

-- Does a verb to a stage, a pipeline or a shared limit. Returns what the journal entry needs, with
-- the answer as outcome.
-- p_entry: the number of the journal entry.
-- p_does: the call, as millrace.verbs has it.
create function millrace.act_on_stage(
  p_caller millrace.caller, p_request jsonb, p_entry bigint, p_does text
) returns jsonb
as $$
  v_pipeline millrace.pipelines;
  v_stage millrace.stages;
  v_outcome jsonb;

if p_request ->> 'limit' is null then
  v_pipeline := millrace.pipeline_named(p_request ->> 'pipeline', p_caller.pipelines);
  if p_request ->> 'stage' is not null then
    v_stage := millrace.stage_named(v_pipeline.name, p_request ->> 'stage');
  end if;
elsif p_request ?| '{pipeline,stage}'
    or p_request ->> 'verb' not in ('throttle', 'unthrottle') then
  raise exception 'MR002: limit stands beside what does not go with it'
    using hint = 'Name the limit alone, or the stage alone.';
elsif p_caller.pipelines is not null then
  raise exception '42501: a shared limit is throttled by who sees all pipelines'
    using hint = 'Throttle a stage of yours, or ask one of them.';
end if;
execute 'select ' || p_does
into v_outcome
using v_pipeline, v_stage, p_request, p_entry;
return jsonb_build_object('pipeline', v_pipeline.name, 'stage', v_stage.name,
  'runs', v_outcome -> 'started', 'outcome', v_outcome);
$$;

-- Does a request for a caller, writes its journal entry and returns its outcome. Slices of a bulk
-- write their own entries, so the verb continue writes none.
-- p_caller: null means the user of this session.
create function millrace.act(p_request jsonb, p_caller millrace.caller default null) returns jsonb
set plan = by_index
as $$
  v_caller millrace.caller := coalesce(p_caller, millrace.caller());
  v_entry bigint := nextval('millrace.journal_id_seq');
  v_verb record;
  v_until timestamptz;
  v_said jsonb;

select v.* into v_verb from millrace.verbs v where v.verb = p_request ->> 'verb';
perform millrace.need_fields(p_request || jsonb_build_object('reason',
    nullif(btrim(p_request ->> 'reason'), '')),
  variadic case when p_request ->> 'limit' is null then v_verb.needs
    else array_remove(array_remove(v_verb.needs, 'pipeline'), 'stage') end);
if v_verb.about in ('stage', 'alert') then
  v_until := coalesce((p_request ->> 'until')::timestamptz,
    v_now + make_interval(mins => (p_request -> 'minutes')::int));
end if;
if v_until <= v_now or v_until > v_now + interval '400 days' then
  raise exception 'MR002: until is %, but must be a time from now to 400 days from now', v_until
    using hint = 'Set until, or minutes.';
end if;
execute 'select ' || v_verb.acts
into v_said
using v_caller, p_request || jsonb_strip_nulls(jsonb_build_object('until', v_until)), v_entry,
  v_verb.does;
if v_verb.verb = 'continue' then
  return v_said -> 'outcome' || jsonb_build_object('verb', v_verb.verb);
end if;
perform millrace.note(
  v_verb.verb, v_said ->> 'pipeline', v_said ->> 'stage',
  array(select i::bigint from jsonb_array_elements_text(v_said -> 'run_ids') i),
  v_said || jsonb_build_object('id', v_entry, 'subject', v_caller.subject, 'key', v_caller.key,
    'reason', p_request -> 'reason'));
return v_said -> 'outcome' || jsonb_build_object('verb', v_verb.verb, 'journal_entry', v_entry);
$$;

-- Does a verb for an operator and writes a journal entry: {"verb": "retry", "run": 42}. A request
-- names a run by run, or by pipeline and entity, and a shared limit by limit.
create function public.millrace_act(p_request jsonb)
as $$
  v_caller millrace.caller := millrace.caller();

-- Locks the operator's row, so that a person who revokes the operator's rights waits for this call.
perform from millrace.operators o where o.subject = v_caller.subject for share;
v_caller := millrace.authorize();
if v_caller.role = 'viewer' then
  raise exception '42501: you may read here, but not act'
    using hint = 'Ask whoever runs this project for the role operator.';
elsif v_caller.key = 'user' and millrace.setting('operators_need_aal2') = 'true'
  and nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'aal'
    is distinct from 'aal2' then
  raise exception
    '42501: you have not shown a second factor, which this project asks of whoever acts'
    using hint = 'Sign in with your second factor, and try again.';
elsif v_caller.key = 'secret' then
  if p_request ->> 'operator' is null then
    raise exception 'MR002: operator is missing, but a secret key must say for whom it acts'
      using hint = 'Set operator to the id of the person, or of the program.';
  end if;
  v_caller.subject := p_request ->> 'operator';
end if;
perform millrace.check_request(p_request, jsonb_build_object('verb', array(
  select v.verb from millrace.verbs v where v.is_open)) || '{
  "stage": "name", "message": "reason", "permanent": "boolean", "channel": "name",
  "attempt": "id", "last": "id", "result": "any", "row": "object", "copy": "boolean",
  "reason": "reason", "operator": "text", "pipeline": "name", "run": "id", "entity": "key",
  "limits": "object", "limit": "name", "until": "time", "minutes": "minutes", "count": "count",
  "alert": "id", "silence": "id", "kind": "name", "bulk": "id", "do": "object",
  "filter": "object"}', 'p_request');
perform millrace.need_fields(p_request, 'verb');
return millrace.act(p_request, v_caller);
$$;
