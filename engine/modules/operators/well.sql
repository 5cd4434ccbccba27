-- Returns whether all is well in the pipelines that a caller sees, and the faults, the most urgent
-- first: a stopped sweep, unattended stages, open alerts, and findings of doctor(). An alert that
-- is silenced, or whose rule is no longer above its bound, is no fault. Pages, commands, /health
-- and assistants all read "well" here.
-- p_anew: true asks doctor() now; false takes the findings that the sweep keeps each minute, so
-- that a page which polls costs little.
-- faults: the first 20. more: how many others there are.
-- quiet_alerts: the open alerts that are no fault.
-- dead_last_day: the runs that failed within a day and have no later run of their row, to 1,000.
create function millrace.well(p_caller millrace.caller, p_anew boolean) returns jsonb
stable
set plan = for_lists
as $$
  v_faults jsonb;

with stuck as materialized (
  select * from millrace.unattended()
), fault as materialized (
  select 1 as ordinal, 'sweep' as kind, 'the sweep does not run' as what,
    'retries, deadlines and lost wake-ups wait for it; millrace.doctor() says why' as detail,
    null as pipeline, null as stage, s.at as since, null::jsonb as alert
  from nullif(millrace.last_sweep(), '-infinity') s(at)
  where coalesce(s.at, (select min(r.installed_at) from millrace.releases r))
    <= v_now - interval '1 minute'
  union all
  select 2, 'stage', u.stage || ' of ' || u.pipeline, u.why || '; ' || u.remedy, u.pipeline,
    u.stage, u.since, null
  from stuck u
  union all
  select 3, 'alert', 'alert ' || a.rule, null, a.pipeline, a.stage, a.raised_at, j.alert
  from millrace.alerts a
  cross join millrace.alert_json(a) j(alert)
  where a.resolved_at is null
    and j.alert ->> 'below_since' is null
    and not millrace.is_silenced(a, v_now)
  union all
  select 4, 'finding', f.what, f.detail, null, null, null, null
  from (
    select d.what, d.detail from millrace.doctor() d where p_anew and not d.ok
    union all
    select l.* from millrace.last_findings l
    where not p_anew and l.what <> 'no stage is misconfigured'
    union all
    -- These findings are read anew: a minute-old one would still blame a function that is mended.
    select m.what, m.detail from millrace.misconfigured_findings m
    where not p_anew and not m.ok) f
  where f.what not in (
      'the sweep has run in the last minute', 'ready work is taken within 30 seconds')
    -- The finding may name a function whose stage is unattended by now, and so in the list already.
    and (f.what <> 'the functions answered the last wake-ups'
      or not exists (select from stuck)
      or exists (
        select from millrace.stages s
        where position(s.function_name || ' ' in f.detail) > 0
          and s.function_name not in (select u.function_name from stuck u)))
)
select json_agg(json_strip_nulls(row_to_json(f)) order by f.ordinal, f.since, f.what)
into v_faults
from fault f
where (f.ordinal = 1 or millrace.sees(p_caller, f.pipeline))
  -- An alert is left out where its cause is in the list as a stage or a finding.
  and not exists (
    select from fault o
    where case f.alert ->> 'kind'
      when 'unattended' then o.ordinal = 2 and (o.pipeline, o.stage) = (f.pipeline, f.stage)
      when 'engine' then o.ordinal = 4 end);
return jsonb_build_object(
  'ok', v_faults is null,
  'faults', jsonb_path_query_array(coalesce(v_faults, '[]'), '$[0 to 19]'),
  'more', greatest(coalesce(jsonb_array_length(v_faults), 0) - 20, 0),
  'quiet_alerts', (
    select count(*)
    from millrace.alerts a
    where a.resolved_at is null
      and (millrace.is_silenced(a, v_now) or millrace.alert_json(a) ->> 'below_since' is not null)
      and millrace.sees(p_caller, a.pipeline)),
  'dead_last_day', (
    select coalesce(millrace.capped(sum(k.n)::bigint, 1000), '0')
    from millrace.pipelines p
    cross join lateral (
      select count(*) as n
      from (
        select from millrace.runs r
        where r.pipeline_id = p.id and r.status = 'failed'
          and r.finished_at > v_now - interval '1 day'
          -- by key
          and not exists (
            select from millrace.runs o
            where o.entity_id = any (array[r.entity_id])
              and o.pipeline_id = r.pipeline_id and o.id + 0 > r.id)
        limit 1000) r) k
    where millrace.sees(p_caller, p.name)));
$$;
