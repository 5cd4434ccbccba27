-- The operators' door: alerts acknowledged and silenced

-- Says for a rule of alerts whether somebody has silenced it: its pipeline, its stage, or its kind.
-- Of late runs (sla) the rule late tells, so whoever silences the one silences the other.
create or replace function millrace.is_silenced(p_pipeline text, p_stage text, p_kind text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from millrace.silences s
    where s.until > millrace.now()
      and (s.pipeline is null or s.pipeline = p_pipeline)
      and (s.stage is null or s.stage = p_stage)
      and (s.kind is null or s.kind = p_kind or s.kind = 'sla' and p_kind = 'late'));
end
$$;

-- Finds an alert of either kind that a caller sees; raises MR003 for one that there is not and for
-- one of somebody else's alike.
create or replace function millrace.alert_seen(p_caller millrace.caller, p_alert bigint)
returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alert jsonb;
begin
  select to_jsonb(l) into v_alert
  from millrace.all_alerts l
  where l.id = p_alert
    and millrace.sees(p_caller, l.pipeline);
  if not found then
    raise exception 'there is no alert % that you see', p_alert
      using errcode = 'MR003', hint = 'Open ones: millrace_alerts({"open": true}).';
  end if;
  return v_alert;
end
$$;

-- Notes that somebody looks after an alert. Returns what the journal is to say of it.
create or replace function millrace.acknowledge_alert(
  p_caller millrace.caller,
  p_request jsonb)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alert jsonb;
begin
  perform millrace.need_fields(p_request, 'alert');
  v_alert := jsonb_strip_nulls(
    millrace.alert_seen(p_caller, (p_request ->> 'alert')::bigint));
  if v_alert ?| array['resolved_at', 'acknowledged_at'] then
    raise exception 'alert % cannot be acknowledged: %', v_alert ->> 'id',
      case when v_alert ? 'resolved_at' then 'it is over'
        else v_alert ->> 'acknowledged_by' || ' looks after it' end
      using errcode = 'MR004', hint = 'Open ones: millrace_alerts({"open": true}).';
  end if;
  perform millrace.mark_acknowledged(
    (p_request ->> 'alert')::bigint, coalesce(p_caller.subject, session_user));
  return jsonb_build_object('pipeline', v_alert -> 'pipeline', 'stage', v_alert -> 'stage',
    'run_ids', case
      when v_alert ? 'run_id' then jsonb_build_array(v_alert -> 'run_id') else '[]' end,
    'outcome', jsonb_build_object('alert', v_alert -> 'id'));
end
$$;

-- Reads which alerts a request silences: those like the one that it names, or those of the
-- pipeline, stage and kind in it. All of them only where whoever asks sees all pipelines.
create or replace function millrace.asked_silence(p_caller millrace.caller, p_request jsonb)
returns millrace.silences
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alert jsonb;
  v_silence millrace.silences;
begin
  if p_request ? 'alert' then
    v_alert := millrace.alert_seen(p_caller, (p_request ->> 'alert')::bigint);
    v_silence.pipeline := v_alert ->> 'pipeline';
    v_silence.stage := v_alert ->> 'stage';
    v_silence.kind := v_alert ->> 'kind';
    return v_silence;
  elsif p_request ? 'stage' or p_caller.pipelines is not null then
    perform millrace.need_fields(p_request, 'pipeline');
  end if;
  if p_request ? 'pipeline' then
    v_silence.pipeline := (millrace.pipeline_seen(p_caller, p_request ->> 'pipeline')).name;
  end if;
  if p_request ? 'stage' then
    v_silence.stage := (millrace.stage_seen(
      millrace.pipeline_seen(p_caller, v_silence.pipeline), p_request ->> 'stage')).name;
  end if;
  v_silence.kind := p_request ->> 'kind';
  if v_silence.kind <> 'sla' and not exists (
      select from millrace.alert_rules r where r.kind = v_silence.kind) then
    raise exception 'there is no rule of kind %', millrace.short_json(p_request -> 'kind')
      using errcode = 'MR003', hint = 'The kinds of alerts are in millrace_alerts().';
  end if;
  return v_silence;
end
$$;

-- Acknowledges an alert, or silences alerts for a while. Returns what the journal is to say of it.
create or replace function millrace.act_on_alert(
  p_caller millrace.caller,
  p_request jsonb,
  p_line bigint)
returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_until timestamptz := millrace.asked_end(p_request);
  v_silence millrace.silences;
begin
  if p_request ->> 'verb' = 'acknowledge' then
    return millrace.acknowledge_alert(p_caller, p_request);
  end if;
  perform millrace.need_fields(p_request, 'reason');
  v_silence := millrace.asked_silence(p_caller, p_request);
  v_silence.reason := millrace.plain_text(p_request ->> 'reason', 500);
  if v_until is null or v_until <= millrace.now()
      or v_until > millrace.now() + interval '400 days' then
    raise exception 'until is %, but must be a time from now to 400 days from now',
      coalesce(v_until::text, 'missing')
      using errcode = 'MR002', hint = 'Set until, or minutes.';
  elsif v_silence.reason = '' then
    raise exception 'reason is empty'
      using errcode = 'MR002', hint = 'Say why: whoever looks next will want to know.';
  end if;
  delete from millrace.silences s where s.until < millrace.now();
  insert into millrace.silences (pipeline, stage, kind, until, reason, line)
  values (v_silence.pipeline, v_silence.stage, v_silence.kind, v_until, v_silence.reason, p_line)
  returning * into v_silence;
  return jsonb_build_object('pipeline', v_silence.pipeline, 'stage', v_silence.stage,
    'outcome', jsonb_build_object('silence', v_silence.id, 'until', v_until));
end
$$;
