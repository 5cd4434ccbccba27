-- The values that rules measure, and the details from which TypeScript writes an alert

-- Returns how many faults the engine has: saved findings of doctor(), and different errors of the
-- last ten minutes. Leaves out the findings that other rules measure, pauses by people, and the
-- finding on alerts.
-- detail: the faults as text; null without any.
create function millrace.engine_values() returns table (value numeric, detail text)
stable
set enable_seqscan = off
as $$
return query
select count(*)::numeric, millrace.plain_text(string_agg(f.what, '; ' order by f.what), 500)
from (
  select case when w.what in ('no invariant is violated', 'no stage is misconfigured')
      then w.what || ': ' || w.detail
    else 'not so: ' || w.what end as what
  from millrace.last_findings w
  where w.what <> all ('{the sweep has run in the last minute,nothing is paused,
      ready work is taken within 30 seconds,alerts reach somebody,no errors in the last hour}')
  union all
  select distinct l.message
  from millrace.log l
  where l.level = 'error'
    and l.at > v_now - interval '10 minutes'
) f;
$$;

-- Measures a rule of the kind error_share (failures among ended tries), dead (failures for good) or
-- spend (dollars). For a pipeline as a whole the tries are the runs; dollars and error codes come
-- from all stages.
-- The newest tries are those of the last tenth of the span, or a minute, and older ones until they
-- make a fifth of p_rule.least. The share is null unless p_rule.least tries have ended, the share
-- of the newest tries is above the bound, too, and a try has ended in the last half of the span. So
-- a mended fault raises no alert, resolves an open one, and does not return when the traffic ends.
-- Failures for good are null once each failed run was retried or has a later run of its row.
-- p_stage_id: 0 means the pipeline as a whole.
-- detail: the most frequent error code of the newest tries, or of all if no newest try failed. A
-- rule of the kind dead ignores failures that were retried: they killed no run.
create function millrace.figure_value(
  p_rule millrace.alert_rules, p_now timestamptz, p_pipeline_id int, p_stage_id int,
  out value numeric, out detail text
)
stable
set plan = by_key
as $$
  v_sum record;

select sum(f.n) as n, sum(f.failed) as failed, sum(f.dead) as dead, max(f.last_at) as last_at,
  sum(f.cost_usd) as cost_usd,
  (array_agg(f.codes order by f.is_new desc) filter (where f.codes is not null))[1] as codes,
  max(f.failed / f.n) filter (where f.is_new) as new_share
into v_sum
from (
  select t.is_new, sum(t.ended) as n,
    coalesce(sum(t.ended) filter (where t.outcome in ('failed', 'retried')), 0) as failed,
    sum(t.ended) filter (where t.outcome = 'failed') as dead,
    max(t.at) filter (where t.ended > 0) as last_at, sum(t.cost_usd) as cost_usd,
    millrace.add_codes(array_agg(t.codes) filter (where p_rule.kind = 'error_share'
      or p_rule.kind = 'dead' and t.outcome = 'failed')) as codes
  from (
    select m.at, m.outcome, m.cost_usd, m.codes, e.ended, coalesce(m.at >= date_trunc('minute',
        p_now - greatest(p_rule.span / 10, interval '1 minute'), 'UTC')
      or coalesce(sum(e.ended) over (
        order by m.at desc
        groups between unbounded preceding and 1 preceding), 0) * 5 < p_rule.least, false) as is_new
    from (
      select p_stage_id
      union
      select o.id
      from millrace.stages o
      where p_stage_id = 0
        and o.pipeline_id = p_pipeline_id) s(id)
    -- The end of the range includes attempts that end at this very moment.
    cross join millrace.figure_rows(p_pipeline_id, s.id,
      date_trunc('minute', p_now - p_rule.span, 'UTC'),
      v_now + interval '1 microsecond', true) m
    left join lateral (
      select m.n as ended
      where m.stage_id = p_stage_id
        and m.outcome in ('completed', 'ended', 'failed', 'retried')) e on true) t
  group by 1) f;
value := case
  when p_rule.kind = 'dead' then (
    select v_sum.dead
    from millrace.runs r
    where v_sum.dead > p_rule.above
      and r.pipeline_id = p_pipeline_id and r.status = 'failed'
      and r.finished_at >= date_trunc('minute', p_now - p_rule.span, 'UTC')
      and p_stage_id in (0, r.failed_stage_id)
      and millrace.is_latest_run(r.id)
    limit 1)
  when p_rule.kind = 'spend' then v_sum.cost_usd
  when v_sum.n >= p_rule.least and v_sum.new_share > p_rule.above
      and v_sum.last_at >= p_now - p_rule.span / 2
    then v_sum.failed / nullif(v_sum.n, 0)
end;
detail := (
  select millrace.plain_text(c.key, 60)
  from jsonb_each_text(v_sum.codes) c
  where c.key <> 'other'
  order by c.value::bigint desc, c.key
  limit 1);
$$;

-- Measures a rule for each of its targets: the engine (pipeline_id 0), a pipeline as a whole
-- (stage_id 0), or a stage.
-- above: the bound; for run_sla, late and engine the kind's own.
create function millrace.rule_values(p_rule millrace.alert_rules, p_now timestamptz)
returns table (
  pipeline_id int, stage_id int, value numeric, above numeric, detail text
)
stable
set plan_cache_mode = force_generic_plan
as $$
return query
select t.pipeline_id, t.stage_id, v.value, coalesce(v.above, p_rule.above), v.detail
from (
  select coalesce(p.id, 0), p.name, coalesce(s.id, 0)
  from (select) one
  left join millrace.pipelines p
    on p_rule.kind <> 'engine' and p.name = coalesce(p_rule.pipeline, p.name)
  left join millrace.stages s on s.pipeline_id = p.id and p_rule.stage in ('*', s.name)
  where (p_rule.kind = 'engine' or p.id is not null)
    and (p_rule.stage is null or s.id is not null)
    and (p_rule.pipeline is not null or not exists (
      select from millrace.alert_rules o where o.pipeline = p.name and o.name = p_rule.name))
) t(pipeline_id, pipeline, stage_id)
cross join lateral (
  select e.value, 0::numeric, e.detail
  from millrace.engine_values() e
  where p_rule.kind = 'engine'
  union all
  -- The value is raised above the bound: the percentile is an estimate by buckets, and may be below
  -- a bound that the exact ages of live runs break.
  select greatest(b.seconds, b.bound + 0.001)::numeric, b.bound::numeric, s.broken
  from millrace.run_slas s
  cross join lateral (
    values ('p95', s.p95_seconds, s.p95_bound), ('the median', s.median_seconds, s.median_bound)
  ) b(name, seconds, bound)
  where p_rule.kind = 'run_sla' and s.pipeline = t.pipeline and b.name = s.broken
  union all
  select max(extract(epoch from p_now - u.since)), null,
    millrace.plain_text((array_agg(u.cause order by u.since))[1], 500)
  from millrace.unattended() u
  where p_rule.kind = 'unattended' and u.pipeline = t.pipeline
    and t.stage_id in (0, u.stage_id)
  union all
  select sum(l.late), 0, min(l.longest)::text
  from millrace.late_counts l
  where p_rule.kind = 'late' and l.pipeline_id = t.pipeline_id
    and t.stage_id in (0, l.stage_id)
  union all
  select max(extract(epoch from k.until - k.since)), null,
    millrace.plain_text(string_agg(
      distinct 'limit ' || k.name || ': ' || millrace.pauses_in_words(k.name), '; '), 500)
  from millrace.stages s
  join millrace.limited_stages m on m.stage_id = s.id
  join millrace.limits l on l.id = m.limit_id
  join millrace.limit_pauses k on k.name = l.name
  where p_rule.kind = 'refused' and s.pipeline_id = t.pipeline_id
    and t.stage_id in (0, s.id)
  union all
  select sum(q.ready), null, null
  from millrace.stages s
  cross join lateral (
    select count(*) as ready
    from (
      select from millrace.attempts a
      where a.stage_id = s.id and a.queue_at <= p_now and a.state = 'queued'
      order by a.queue_at
      limit greatest(10001, p_rule.above::bigint + 1)) a) q
  where p_rule.kind = 'backlog' and s.pipeline_id = t.pipeline_id
    and t.stage_id in (0, s.id)
  union all
  select f.value, null, f.detail
  from millrace.figure_value(p_rule, p_now, t.pipeline_id, t.stage_id) f
  where p_rule.kind in ('error_share', 'dead', 'spend')
) v(value, above, detail);
$$;

-- Returns a text as one line of up to p_most characters, without control characters or changes of
-- writing direction.
create function millrace.plain_text(p_text text, p_most int) returns text
immutable
as $$
  v_text text := trim(regexp_replace(left(p_text, p_most * 4),
    '[\u0001-\u0020\u007f-\u00a0\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+', ' ', 'g'));

return case when length(v_text) > p_most then left(v_text, p_most - 1) || '…' else v_text end;
$$;
