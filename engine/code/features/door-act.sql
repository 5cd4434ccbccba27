-- The operators' door: one function for every verb
--
-- millrace_act() asks who calls, reads the request, does the verb and writes the line of the
-- journal, all in one transaction. A request_id that the same operator has used before is answered
-- as it was, and nothing is done again.

-- Says which fields a request may have.
create or replace function millrace.act_fields() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'verb', '{"enum": ["retry", "cancel", "reset", "skip", "fail", "prioritise", "hurry",
      "pause", "unpause", "throttle", "unthrottle", "bypass", "end_bypass", "take_up",
      "acknowledge", "silence",
      "preview", "begin", "continue", "abort", "status", "grant", "revoke"]}'::jsonb,
    'reason', '{"type": "string", "maxLength": 2000}'::jsonb,
    'request_id', '{"type": "string", "minLength": 1, "maxLength": 200}'::jsonb,
    'operator', '{"type": "string", "minLength": 1, "maxLength": 500}'::jsonb,
    'pipeline', f.fields -> 'pipeline', 'stage', f.fields -> 'stage',
    'run', f.fields -> 'run', 'entity', f.fields -> 'entity',
    'message', '{"type": "string", "maxLength": 2000}'::jsonb,
    'permanent', '{"type": "boolean"}'::jsonb,
    'priority', '{"type": "integer", "minimum": 0, "maximum": 9}'::jsonb,
    'limits', '{"type": "object"}'::jsonb,
    'limit', f.fields -> 'stage',
    'key', '{"type": "string", "maxLength": 500}'::jsonb,
    'until', f.fields -> 'since',
    'minutes', '{"type": "integer", "minimum": 1, "maximum": 576000}'::jsonb,
    'count', '{"type": "integer", "minimum": 1, "maximum": 10000}'::jsonb,
    'alert', f.fields -> 'run',
    'kind', f.fields -> 'stage',
    'bulk', f.fields -> 'run',
    'do', '{"type": "object"}'::jsonb,
    'filter', '{"type": "object"}'::jsonb,
    'subject', '{"type": "string", "minLength": 1, "maxLength": 500}'::jsonb,
    'role', '{"enum": ["viewer", "operator", "admin"]}'::jsonb,
    'pipelines', '{"type": ["array", "null"], "maxItems": 1000,
      "items": {"type": "string", "maxLength": 100}}'::jsonb,
    'payloads', '{"type": "boolean"}'::jsonb)
  from (select millrace.filter_fields() as fields) f
$$;

-- Raises MR002 where a request lacks one of the fields that its verb needs.
create or replace function millrace.need_fields(p_request jsonb, variadic p_fields text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_field text;
begin
  foreach v_field in array p_fields loop
    if coalesce(p_request -> v_field, 'null') = 'null' then
      raise exception '% is missing, but % needs it', v_field, p_request ->> 'verb'
        using errcode = 'MR002', hint = format('Set %s; nothing was done.', v_field);
    end if;
  end loop;
end
$$;

-- Reads until when something is to hold: a time, or so many minutes from now.
create or replace function millrace.asked_end(p_request jsonb) returns timestamptz
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(millrace.asked_time(p_request, 'until'),
    millrace.now() + make_interval(mins => (p_request ->> 'minutes')::int))
$$;

-- Finds the answer to a request that the same operator has sent before; null where it is new.
-- Raises MR004 where its request_id was that of another request. Of two at once the second waits.
create or replace function millrace.answered_before(p_caller millrace.caller, p_request jsonb)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_line millrace.journal;
begin
  if not p_request ? 'request_id' then
    return null;
  end if;
  perform pg_advisory_xact_lock(hashtextextended(
    concat_ws(' ', 'millrace.request', p_caller.key, p_caller.subject, p_request ->> 'request_id'),
    0));
  select j.* into v_line
  from millrace.journal j
  where j.key = p_caller.key
    and j.subject is not distinct from p_caller.subject
    and j.request_id = p_request ->> 'request_id';
  if not found then
    return null;
  elsif v_line.request_print <> md5(p_request::text) then
    raise exception 'request_id % was that of another request, line % of the journal',
      millrace.short_json(p_request -> 'request_id'), v_line.id
      using errcode = 'MR004', hint = 'Make up a new one for each request; nothing was done.';
  end if;
  return v_line.outcome || jsonb_build_object('repeated', true);
end
$$;

-- Does a verb to the run that a request names, or to the newest of the row that it names. Returns
-- what the journal is to say of it.
create or replace function millrace.act_on_run(p_caller millrace.caller, p_request jsonb)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage text := p_request ->> 'stage';
  v_outcome jsonb := '{}';
  v_run millrace.runs;
  v_pipeline millrace.pipelines;
begin
  if p_request ? 'run' then
    v_run := millrace.run_seen(p_caller, (p_request ->> 'run')::bigint);
  else
    perform millrace.need_fields(p_request, 'pipeline', 'entity');
    v_run := millrace.run_seen(p_caller, millrace.run_of(
      (millrace.pipeline_seen(p_caller, p_request ->> 'pipeline')).name,
      p_request ->> 'entity'));
  end if;
  select p.* into v_pipeline from millrace.pipelines p where p.id = v_run.pipeline_id;
  if v_stage is not null then
    perform millrace.stage_seen(v_pipeline, v_stage);
  end if;
  perform millrace.do_to_run(v_run.id, p_request);
  if p_request ->> 'verb' in ('fail', 'prioritise') then
    v_outcome := p_request - array['verb', 'reason', 'request_id', 'operator', 'pipeline',
      'entity', 'run', 'stage'];
  end if;
  return jsonb_build_object('pipeline', v_pipeline.name, 'stage', v_stage,
    'run_ids', array[v_run.id],
    'outcome', v_outcome || jsonb_build_object('run', v_run.id, 'status', (
      select r.status from millrace.runs r where r.id = v_run.id)));
end
$$;

-- Does a verb to one run.
create or replace function millrace.do_to_run(p_run bigint, p_request jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage text := p_request ->> 'stage';
begin
  case p_request ->> 'verb'
    when 'retry' then
      perform millrace.retry_one(p_run, v_stage);
    when 'cancel' then
      perform millrace.cancel_one(p_run);
    when 'reset' then
      perform millrace.reset_one(p_run, v_stage);
    when 'skip' then
      perform millrace.need_fields(p_request, 'stage');
      perform millrace.skip_one(p_run, v_stage);
    when 'fail' then
      perform millrace.need_fields(p_request, 'stage');
      perform millrace.fail_one(p_run, v_stage, p_request ->> 'message',
        (p_request ->> 'permanent')::boolean);
    when 'prioritise' then
      perform millrace.need_fields(p_request, 'priority');
      perform millrace.prioritise_one(p_run, (p_request ->> 'priority')::int);
    when 'hurry' then
      perform millrace.hurry_one(p_run, v_stage);
  end case;
end
$$;

-- Pauses or throttles a pipeline or a stage, or lets it go on. Returns what the journal is to say
-- of it.
create or replace function millrace.act_on_stage(
  p_caller millrace.caller,
  p_request jsonb,
  p_line bigint)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
  v_stage millrace.stages;
  v_outcome jsonb := '{}';
begin
  perform millrace.need_fields(p_request, 'pipeline');
  v_pipeline := millrace.pipeline_seen(p_caller, p_request ->> 'pipeline');
  if p_request ->> 'verb' in ('throttle', 'unthrottle') then
    perform millrace.need_fields(p_request, 'stage');
  end if;
  if p_request ? 'stage' then
    v_stage := millrace.stage_seen(v_pipeline, p_request ->> 'stage');
  end if;
  case p_request ->> 'verb'
    when 'pause' then
      perform millrace.switch(v_pipeline.name, v_stage.name, false, p_line);
    when 'unpause' then
      v_outcome := jsonb_build_object('now',
        millrace.switch_on(v_pipeline.name, v_stage.name, p_line));
    when 'throttle' then
      perform millrace.throttle_stage(v_stage, p_request -> 'limits',
        millrace.asked_end(p_request), p_request ->> 'reason', p_line);
      v_outcome := jsonb_build_object('limits', p_request -> 'limits',
        'until', millrace.asked_end(p_request));
    when 'unthrottle' then
      if not millrace.take_throttle(millrace.own_limit(v_stage.id)) then
        raise exception 'stage % of pipeline % has no throttle', v_stage.name, v_pipeline.name
          using errcode = 'MR004', hint = 'Those there are, are in millrace_overview().';
      end if;
  end case;
  return jsonb_build_object('pipeline', v_pipeline.name, 'stage', v_stage.name,
    'outcome', v_outcome);
end
$$;

-- Adds an operator, changes or removes one; only an admin of all pipelines may. Returns what the
-- journal is to say of it.
create or replace function millrace.act_on_operator(
  p_caller millrace.caller,
  p_request jsonb,
  p_line bigint)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.need_fields(p_request, 'subject');
  if p_caller.role <> 'admin' or p_caller.pipelines is not null then
    raise exception 'only an admin of all pipelines says who is an operator'
      using errcode = '42501', hint = 'Ask one of them.';
  elsif p_request ->> 'verb' = 'grant' then
    perform millrace.need_fields(p_request, 'role');
    insert into millrace.operators as o (subject, role, line, pipelines, payloads)
    values (p_request ->> 'subject', p_request ->> 'role', p_line,
      case when jsonb_typeof(p_request -> 'pipelines') = 'array' then array(
        select (millrace.pipeline_seen(p_caller, n)).name
        from jsonb_array_elements_text(p_request -> 'pipelines') n) end,
      coalesce((p_request ->> 'payloads')::boolean, false))
    on conflict on constraint operators_pkey do update set
      role = excluded.role, pipelines = excluded.pipelines, payloads = excluded.payloads,
      line = excluded.line;
  else
    update millrace.operators o set line = p_line where o.subject = p_request ->> 'subject';
    delete from millrace.operators o where o.subject = p_request ->> 'subject';
    if not found then
      raise exception 'there is no operator %', millrace.short_json(p_request -> 'subject')
        using errcode = 'MR003', hint = 'Those there are: select * from millrace.operators.';
    end if;
  end if;
  return jsonb_build_object('outcome', p_request - array['verb', 'reason', 'request_id',
    'operator']);
end
$$;

-- Does what a request asks. Returns what the journal is to say of it.
create or replace function millrace.do_act(
  p_caller millrace.caller,
  p_request jsonb,
  p_line bigint)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  case
    when p_request ->> 'verb' in ('throttle', 'unthrottle') and p_request ? 'limit' then
      return millrace.act_on_limit(p_caller, p_request, p_line);
    when p_request ->> 'verb' in ('pause', 'unpause', 'throttle', 'unthrottle') then
      return millrace.act_on_stage(p_caller, p_request, p_line);
    when p_request ->> 'verb' in ('bypass', 'end_bypass', 'take_up') then
      return millrace.act_on_bypass(p_caller, p_request, p_line);
    when p_request ->> 'verb' in ('acknowledge', 'silence') then
      return millrace.act_on_alert(p_caller, p_request, p_line);
    when p_request ->> 'verb' in ('preview', 'begin', 'continue', 'abort', 'status') then
      return millrace.act_in_bulk(p_caller, p_request);
    when p_request ->> 'verb' in ('grant', 'revoke') then
      return millrace.act_on_operator(p_caller, p_request, p_line);
    else
      return millrace.act_on_run(p_caller, p_request);
  end case;
end
$$;

create or replace function public.millrace_act(p_request jsonb) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_caller millrace.caller := millrace.enter_to_act(p_request ->> 'operator');
  v_line bigint;
  v_answer jsonb;
  v_said jsonb;
begin
  perform millrace.check_asked(p_request, millrace.act_fields(), 'p_request');
  perform millrace.need_fields(p_request, 'verb');
  v_answer := millrace.answered_before(v_caller, p_request);
  if v_answer is not null then
    return v_answer;
  end if;
  v_line := nextval('millrace.journal_id_seq');
  v_said := millrace.do_act(v_caller, p_request, v_line);
  v_answer := v_said -> 'outcome' || jsonb_build_object('verb', p_request ->> 'verb');
  if p_request ->> 'verb' in ('status', 'continue') and not p_request ? 'request_id' then
    return v_answer;
  end if;
  v_answer := v_answer || jsonb_build_object('line', v_line);
  perform millrace.note(
    p_request ->> 'verb', v_said ->> 'pipeline', v_said ->> 'stage',
    array(select i::bigint from jsonb_array_elements_text(v_said -> 'run_ids') i),
    v_said || jsonb_build_object('id', v_line, 'subject', v_caller.subject, 'key', v_caller.key,
      'reason', p_request -> 'reason', 'request_id', p_request -> 'request_id',
      'request_print', md5(p_request::text), 'outcome', v_answer));
  return v_answer;
end
$$;
comment on function public.millrace_act(jsonb) is
  'Does a verb for an operator and writes it into the journal: {"verb": "retry", "run": 42, '
  '"reason": "…", "request_id": "…"}. Verbs: retry, cancel, reset, skip, fail, prioritise, hurry, '
  'pause, unpause, throttle, unthrottle, bypass, end_bypass, take_up, acknowledge, silence; '
  'preview, begin, continue, abort and status of a bulk; grant and revoke. A run may be named by '
  'pipeline and entity; throttle and unthrottle take a stage of a pipeline, or a shared limit as '
  '"limit".';
revoke all on function public.millrace_act(jsonb) from public, anon, authenticated, service_role;
grant execute on function public.millrace_act(jsonb) to authenticated, service_role;
