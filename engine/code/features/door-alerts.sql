-- The operators' door: alerts acknowledged and silenced

-- Says for a rule of alerts whether somebody has silenced it: its pipeline, its stage, or its kind.
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
      and (s.kind is null or s.kind = p_kind));
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
  v_alert record;
begin
  perform millrace.need_fields(p_request, 'alert');
  select l.* into v_alert
  from millrace.all_alerts l
  where l.id = (p_request ->> 'alert')::bigint
    and millrace.sees(p_caller, l.pipeline);
  if not found then
    raise exception 'there is no alert % that you see', p_request ->> 'alert'
      using errcode = 'MR003', hint = 'Open ones: millrace_alerts({"open": true}).';
  elsif v_alert.resolved_at is not null or v_alert.acknowledged_at is not null then
    raise exception 'alert % cannot be acknowledged: %', v_alert.id,
      case when v_alert.resolved_at is not null then 'it is over'
        else v_alert.acknowledged_by || ' looks after it' end
      using errcode = 'MR004', hint = 'Open ones: millrace_alerts({"open": true}).';
  end if;
  perform millrace.mark_acknowledged(v_alert.id, coalesce(p_caller.subject, session_user));
  return jsonb_build_object('pipeline', v_alert.pipeline, 'stage', v_alert.stage,
    'run_ids', array_remove(array[v_alert.run_id], null),
    'outcome', jsonb_build_object('alert', v_alert.id));
end
$$;

-- Acknowledges an alert, or silences alerts for a while. What is silenced is that of an alert that
-- the request names, or the pipeline, stage and kind in it.
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
  v_silence.pipeline := p_request ->> 'pipeline';
  v_silence.stage := p_request ->> 'stage';
  v_silence.kind := p_request ->> 'kind';
  if p_request ? 'alert' then
    select l.pipeline, l.stage, l.kind
    into v_silence.pipeline, v_silence.stage, v_silence.kind
    from millrace.all_alerts l
    where l.id = (p_request ->> 'alert')::bigint;
  end if;
  if v_silence.pipeline is not null or p_caller.pipelines is not null then
    v_silence.pipeline := (millrace.pipeline_seen(p_caller, v_silence.pipeline)).name;
  end if;
  if v_until is null or v_until <= millrace.now()
      or v_until > millrace.now() + interval '400 days' then
    raise exception 'until is %, but must be a time from now to 400 days from now',
      coalesce(v_until::text, 'missing')
      using errcode = 'MR002', hint = 'Set until, or minutes.';
  end if;
  delete from millrace.silences s where s.until < millrace.now();
  insert into millrace.silences (pipeline, stage, kind, until, reason, line)
  values (v_silence.pipeline, v_silence.stage, v_silence.kind, v_until, p_request ->> 'reason',
    p_line)
  returning * into v_silence;
  return jsonb_build_object('pipeline', v_silence.pipeline, 'stage', v_silence.stage,
    'outcome', jsonb_build_object('silence', v_silence.id, 'until', v_until));
end
$$;
