-- Raises MR002 where a request lacks one of these fields.
create function millrace.need_fields(p_request jsonb, variadic p_fields text[])
immutable
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

-- Reads until when something is to hold; null where a request does not say.
create function millrace.request_end(p_request jsonb) returns timestamptz
stable
as $$
declare
  v_until timestamptz := coalesce((p_request ->> 'until')::timestamptz,
    v_now + make_interval(mins => (p_request -> 'minutes')::int));
begin
  if v_until <= v_now or v_until > v_now + interval '400 days' then
    raise exception 'until is %, but must be a time from now to 400 days from now', v_until
      using errcode = 'MR002', hint = 'Set until, or minutes.';
  end if;
  return v_until;
end
$$;

-- Does a verb to the run that a request names, or to the newest of its row.
create function millrace.act_on_run(p_caller millrace.caller, p_request jsonb)
returns jsonb
as $$
declare
  v_run bigint := (p_request ->> 'run')::numeric;
  v_pipeline text;
  v_did jsonb;
begin
  if not p_request ? 'run' then
    perform millrace.need_fields(p_request, 'pipeline', 'entity');
    v_run := millrace.run_of((millrace.pipeline_seen(p_caller, p_request ->> 'pipeline')).name,
      p_request ->> 'entity');
  end if;
  select p.name into v_pipeline
  from millrace.pipelines p
  where p.id = (millrace.run_seen(p_caller, v_run)).pipeline_id;
  perform millrace.stage_named(v_pipeline, p_request ->> 'stage')
  where p_request ->> 'stage' is not null;
  perform millrace.need_fields(p_request, 'stage')
  where p_request ->> 'verb'
    in ('skip', 'fail', 'start_stage', 'complete', 'reset_children');
  perform millrace.need_fields(p_request, 'result') where p_request ->> 'verb' = 'complete';
  v_did := millrace.do_to_runs(array[v_run], p_request);
  return jsonb_build_object(
    'pipeline', v_pipeline, 'stage', p_request -> 'stage', 'run_ids', array[v_run],
    'outcome', v_did || jsonb_strip_nulls(jsonb_build_object(
      'run', v_run, 'status', (select r.status from millrace.runs r where r.id = v_run))));
end
$$;

-- Pauses, throttles or bypasses a stage, or lets it go on; pauses a pipeline, throttles a shared
-- limit.
create function millrace.act_on_stage(p_caller millrace.caller, p_request jsonb, p_line bigint)
returns jsonb
as $$
declare
  v_verb text := p_request ->> 'verb';
  v_limit text := p_request ->> 'limit';
  v_until timestamptz := millrace.request_end(p_request);
  v_pipeline millrace.pipelines;
  v_stage millrace.stages;
  v_outcome jsonb := '{}';
begin
  if v_limit is null then
    perform millrace.need_fields(p_request, 'pipeline');
    v_pipeline := millrace.pipeline_seen(p_caller, p_request ->> 'pipeline');
    perform millrace.need_fields(p_request, 'stage') where v_verb not in ('pause', 'unpause');
    if p_request ->> 'stage' is not null then
      v_stage := millrace.stage_named(v_pipeline.name, p_request ->> 'stage');
    end if;
  elsif p_request ?| '{pipeline,stage}' or v_verb not in ('throttle', 'unthrottle') then
    raise exception 'limit stands beside what does not go with it'
      using errcode = 'MR002', hint = 'Name the limit alone, or the stage alone.';
  elsif p_caller.pipelines is not null then
    raise exception 'a shared limit is throttled by who sees all pipelines'
      using errcode = '42501', hint = 'Throttle a stage of yours, or ask one of them.';
  else
    v_outcome := jsonb_build_object('limit', v_limit);
  end if;
  perform millrace.need_fields(p_request || jsonb_build_object(
    'reason', nullif(btrim(p_request ->> 'reason'), '')), 'reason')
  where v_verb in ('throttle', 'bypass');
  case v_verb
    when 'pause', 'unpause' then
      v_outcome := jsonb_strip_nulls(jsonb_build_object('now',
        millrace.switch(v_pipeline, v_stage.id, v_verb = 'unpause', p_line)));
    when 'throttle' then
      perform millrace.put_throttle(
        v_stage, v_limit, p_request -> 'limits', v_until, p_request ->> 'reason', p_line);
      v_outcome := v_outcome || jsonb_build_object(
        'limits', p_request -> 'limits', 'until', v_until);
    when 'unthrottle' then
      if not millrace.end_throttle(
          millrace.lock_limit_named(v_stage.id, v_limit), v_limit is not null) then
        raise exception '%', coalesce(
            'shared limit ' || v_limit || ' has no throttle, and no service has paused it',
            format('stage %s of pipeline %s has no throttle', v_stage.name, v_pipeline.name))
          using errcode = 'MR004', hint = 'Those there are: select * from millrace.throttles.';
      end if;
    when 'bypass' then
      v_outcome := jsonb_build_object('until', v_until, 'skipped',
        millrace.begin_bypass(v_stage, p_request ->> 'reason', v_until, p_line));
    when 'end_bypass' then perform millrace.finish_bypass(v_stage);
    when 'take_up' then
      v_outcome := jsonb_build_object('started',
        millrace.take_up_rows(v_stage, coalesce((p_request ->> 'count')::numeric::int, 1000)));
  end case;
  return jsonb_build_object('pipeline', v_pipeline.name, 'stage', v_stage.name,
    'runs', v_outcome -> 'started', 'outcome', v_outcome);
end
$$;

-- Does a request in the name of a caller (null: of this session), and writes its line.
create function millrace.act(p_request jsonb, p_caller millrace.caller default null) returns jsonb
set millrace.plan = by_index
as $$
declare
  v_caller millrace.caller := coalesce(p_caller, millrace.caller());
  v_line bigint := nextval('millrace.journal_id_seq');
  v_verb text := p_request ->> 'verb';
  v_said jsonb;
begin
  if v_verb in ('pause', 'unpause', 'throttle', 'unthrottle', 'bypass', 'end_bypass',
      'take_up') then
    v_said := millrace.act_on_stage(v_caller, p_request, v_line);
  elsif v_verb in ('silence', 'unsilence') then
    v_said := millrace.act_on_alert(v_caller, p_request, v_line);
  elsif v_verb in ('preview', 'begin', 'continue', 'abort') then
    v_said := millrace.act_in_bulk(v_caller, p_request);
  elsif v_verb = 'test_channel' then
    perform millrace.need_fields(p_request, 'channel');
    v_said := jsonb_build_object('outcome', jsonb_build_object('channel', p_request -> 'channel',
      'message', millrace.write_test(p_request ->> 'channel')));
  else
    v_said := millrace.act_on_run(v_caller, p_request);
  end if;
  if v_verb = 'continue' then
    return v_said -> 'outcome' || jsonb_build_object('verb', v_verb);
  end if;
  perform millrace.note(
    v_verb, v_said ->> 'pipeline', v_said ->> 'stage',
    array(select i::bigint from jsonb_array_elements_text(v_said -> 'run_ids') i),
    v_said || jsonb_build_object('id', v_line, 'subject', v_caller.subject, 'key', v_caller.key,
      'reason', p_request -> 'reason'));
  return v_said -> 'outcome' || jsonb_build_object('verb', v_verb, 'line', v_line);
end
$$;

-- Does a verb for an operator and writes it into the journal: {"verb": "retry", "run": 42}. A run
-- may be named by pipeline and entity, a shared limit to throttle by limit.
create function public.millrace_act(p_request jsonb) returns jsonb
as $$
declare
  v_caller millrace.caller := millrace.enter_to_act(p_request ->> 'operator');
begin
  perform millrace.check_request(p_request, '{
    "verb": ["retry", "cancel", "reset", "skip", "fail", "hurry",
      "pause", "unpause", "throttle", "unthrottle", "bypass", "end_bypass", "take_up",
      "silence", "unsilence", "test_channel", "preview", "begin", "continue", "abort"],
    "stage": "name", "message": "reason", "permanent": "boolean", "channel": "name",
    "reason": "reason", "operator": "text", "pipeline": "name", "run": "id", "entity": "key",
    "limits": "object", "limit": "name", "until": "time", "minutes": "minutes", "count": "count",
    "alert": "id", "silence": "id", "kind": "name", "bulk": "id", "do": "object",
    "filter": "object"}', 'p_request');
  perform millrace.need_fields(p_request, 'verb');
  return millrace.act(p_request, v_caller);
end
$$;
