-- Writes that a process of the project's own works at stages, and returns for each stage whether it
-- has work: ready or idle, function where an Edge Function runs the stage, or unknown.
-- p_stages: [{"pipeline": "…", "stage": "…"}].
-- p_release: the release of the process.
-- p_url: the address at which the engine wakes the process; null for a process that asks for work.
create function public.millrace_attend(
  p_stages jsonb, p_release text default null, p_url text default null
)
as $$
  v_states text[];
  v_ids int[];
  v_seen jsonb := jsonb_strip_nulls(jsonb_build_object(
    'seen_at', date_trunc('second', v_now), 'release', left(p_release, 200), 'url', p_url,
    'woken_at', case when p_url is not null then v_now end));

perform millrace.require_list('p_stages', jsonb_typeof(p_stages),
  'Send [{"pipeline": "…", "stage": "…"}].');
select array_agg(case
    when s.id is null then 'unknown'
    when s.host is null then 'function'
    when s.enabled and p.enabled and not s.bypassed and millrace.has_ready_work(s.id)
      then 'ready'
    else 'idle'
  end order by i.ordinality), array_agg(s.id) filter (where s.host = 'worker')
into v_states, v_ids
from jsonb_array_elements(p_stages) with ordinality i(named, ordinality)
left join millrace.pipelines p on p.name = i.named ->> 'pipeline'
left join millrace.stages s on s.pipeline_id = p.id and s.name = i.named ->> 'stage';
-- A process asks up to five times a second, so a stage's row is written every four seconds at most.
-- The address at which a process is woken stays for a week, even if processes without one ask.
update millrace.stages s
set seen = case
  when (s.seen ->> 'woken_at')::timestamptz > v_now - interval '7 days'
    then s.seen - 'release'
  else jsonb_strip_nulls(jsonb_build_object('releases', s.seen -> 'releases')) end || v_seen
where s.id in (
  select o.id
  from millrace.stages o
  where o.id = any (v_ids)
    and ((o.seen ->> 'seen_at')::timestamptz >= v_now - interval '4 seconds' is not true
      or o.seen ->> 'url' <> p_url)
  for update skip locked);
return jsonb_build_object('stages', v_states);
$$;
