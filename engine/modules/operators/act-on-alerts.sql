-- Acting on alerts: acknowledging and silencing them

-- Acknowledges an alert, silences alerts for a while, or ends a silence. Raises MR003 for a missing
-- alert and for one that the caller does not see alike.
create function millrace.act_on_alert(
  p_caller millrace.caller,
  p_request jsonb,
  p_line bigint)
returns jsonb
as $$
declare
  v_seen jsonb;
  v_silence millrace.silences;
begin
  if p_request ->> 'verb' = 'acknowledge' then
    perform millrace.need_fields(p_request, 'alert');
  end if;
  if p_request ? 'alert' then
    select jsonb_strip_nulls(to_jsonb(l)) into v_seen
    from millrace.alerts l
    where l.id = (p_request ->> 'alert')::bigint
      and millrace.sees(p_caller, l.pipeline);
    if not found then
      raise exception 'there is no alert % that you see', p_request ->> 'alert'
        using errcode = 'MR003', hint = 'Open ones: millrace_alerts({"open": true}).';
    end if;
  end if;
  if p_request ->> 'verb' = 'silence' then
    return millrace.begin_silence(p_caller, p_request, coalesce(v_seen, p_request), p_line);
  elsif p_request ->> 'verb' = 'acknowledge' and v_seen ?| '{resolved_at,acknowledged_at}' then
    raise exception 'alert % cannot be acknowledged: %', p_request ->> 'alert',
      case when v_seen ? 'resolved_at' then 'it is over'
        else v_seen ->> 'acknowledged_by' || ' looks after it' end
      using errcode = 'MR004',
        hint = 'Open ones: select * from millrace.alerts where resolved_at is null.';
  elsif p_request ->> 'verb' = 'acknowledge' then
    update millrace.alerts a
    set acknowledged_at = millrace.now(), acknowledged_by = coalesce(p_caller.subject, session_user)
    where a.id = (v_seen ->> 'id')::bigint
      and a.resolved_at is null;
    return jsonb_build_object('pipeline', v_seen -> 'pipeline', 'stage', v_seen -> 'stage',
      'outcome', jsonb_build_object('alert', v_seen -> 'id'));
  end if;
  perform millrace.need_fields(p_request, 'silence');
  update millrace.silences s
  set until = millrace.now()
  where s.id = (p_request ->> 'silence')::bigint
    and s.until > millrace.now()
    and (p_caller.pipelines is null or s.pipeline = any (p_caller.pipelines))
  returning s.* into v_silence;
  if not found then
    raise exception 'silence % is over, or there was none', p_request ->> 'silence'
      using errcode = 'MR003',
        hint = 'Look it up: select * from millrace.silences where until > now().';
  end if;
  return jsonb_build_object('pipeline', v_silence.pipeline, 'stage', v_silence.stage,
    'outcome', jsonb_build_object('silence', v_silence.id));
end
$$;

-- Silences alerts like p_like, an alert or the request itself: of a pipeline, a stage, a kind; all
-- of them only for a caller who sees all pipelines.
create function millrace.begin_silence(
  p_caller millrace.caller,
  p_request jsonb,
  p_like jsonb,
  p_line bigint)
returns jsonb
as $$
declare
  v_until timestamptz := millrace.request_end(p_request);
  v_reason text := millrace.plain_text(coalesce(p_request ->> 'reason', ''), 500);
  v_id bigint;
begin
  if not p_request ? 'alert'
    and (p_like ->> 'stage' is not null or p_caller.pipelines is not null) then
    perform millrace.need_fields(p_request, 'pipeline');
  end if;
  if v_until is null then
    perform millrace.need_fields(p_request, 'until');
  elsif v_reason = '' then
    raise exception 'reason is empty'
      using errcode = 'MR002', hint = 'Say why: whoever looks next will want to know.';
  elsif p_like ->> 'kind' is not null and not exists (
      select from millrace.alert_rules r where r.kind = p_like ->> 'kind') then
    raise exception 'there is no rule of kind %', millrace.short_json(p_like -> 'kind')
      using errcode = 'MR003', hint = 'Look it up: select kind from millrace.alert_rules.';
  elsif p_like ->> 'pipeline' is not null then
    perform millrace.pipeline_seen(p_caller, p_like ->> 'pipeline');
  end if;
  if p_like ->> 'stage' is not null then
    perform millrace.stage_named(p_like ->> 'pipeline', p_like ->> 'stage');
  end if;
  delete from millrace.silences s where s.until < millrace.now();
  insert into millrace.silences (pipeline, stage, kind, until, reason, line)
  values (p_like ->> 'pipeline', p_like ->> 'stage', p_like ->> 'kind', v_until, v_reason, p_line)
  returning id into v_id;
  return jsonb_build_object('pipeline', p_like -> 'pipeline', 'stage', p_like -> 'stage',
    'outcome', jsonb_build_object('silence', v_id, 'until', v_until));
end
$$;
