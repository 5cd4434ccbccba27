-- Silences alerts until a time, or ends a silence, and returns what the journal entry needs. A
-- request with an alert silences its kind at its pipeline and stage. Any other names pipeline,
-- stage or kind; without these it silences all alerts.
-- p_entry: the number of the journal entry.
create function millrace.act_on_alert(p_caller millrace.caller, p_request jsonb, p_entry bigint)
returns jsonb
as $$
  v_like jsonb := p_request;
  v_reason text := nullif(millrace.plain_text(p_request ->> 'reason', 500), '');
  v_silence millrace.silences;

if p_request ->> 'verb' = 'unsilence' then
  update millrace.silences s
  set until = v_now
  where s.id = (p_request -> 'silence')::bigint
    and s.until > v_now
    and millrace.sees(p_caller, s.pipeline)
  returning s.* into v_silence;
else
  if p_request ? 'alert' then
    select to_jsonb(l) into v_like
    from millrace.alerts l
    where l.id = (p_request -> 'alert')::bigint
      and millrace.sees(p_caller, l.pipeline);
  elsif p_request ? 'stage' or p_caller.pipelines is not null then
    perform millrace.need_fields(p_request, 'pipeline');
  end if;
  perform millrace.need_fields(
    p_request || jsonb_build_object('reason', v_reason), 'until', 'reason');
  if v_like ->> 'kind' is not null and not exists (
      select from millrace.alert_rules r where r.kind = v_like ->> 'kind') then
    raise exception 'MR003: there is no rule of kind %',
      millrace.cut_text((v_like -> 'kind')::text, 100)
      using hint = 'Look it up: select kind from millrace.alert_rules.';
  end if;
  perform millrace.pipeline_named(v_like ->> 'pipeline', p_caller.pipelines)
  where v_like ->> 'pipeline' is not null;
  perform millrace.stage_named(v_like ->> 'pipeline', v_like ->> 'stage')
  where v_like ->> 'stage' is not null;
  delete from millrace.silences s where s.until < v_now;
  insert into millrace.silences (pipeline, stage, kind, until, reason, journal_entry)
  select v_like ->> 'pipeline', v_like ->> 'stage', v_like ->> 'kind',
    (p_request ->> 'until')::timestamptz, v_reason, p_entry
  where v_like is not null
  returning * into v_silence;
end if;
if v_silence.id is null then
  raise exception 'MR003: there is no % that you see',
    coalesce('alert ' || (p_request ->> 'alert'), 'silence ' || (p_request ->> 'silence'))
    using hint = case
      when p_request ? 'alert' then 'Open ones: millrace_alerts({"open": true}).'
      else 'Look it up: select * from millrace.silences where until > now().'
    end;
end if;
return jsonb_build_object('pipeline', v_silence.pipeline, 'stage', v_silence.stage,
  'outcome', jsonb_build_object('silence', v_silence.id, 'until', v_silence.until));
$$;
