-- Returns an estimate of the time in milliseconds below which a share of all times lies; null
-- without times. Within a bucket times count as evenly spread on a logarithmic scale. Times in the
-- last bucket count as its lower bound.
-- p_counts: the times in each of the 16 buckets. p_share: from 0 to 1.
create function millrace.bucket_quantile(p_counts bigint[], p_share float8) returns float8
immutable
as $$
  v_bounds float8[] := millrace.bucket_bounds();
  v_wanted float8 := p_share * (select sum(n) from unnest(p_counts) n);
  v_ordinal int := 1;

if coalesce(v_wanted, 0) = 0 then
  return null;
end if;
while v_ordinal < 16 and p_counts[v_ordinal] < v_wanted loop
  v_wanted := v_wanted - p_counts[v_ordinal];
  v_ordinal := v_ordinal + 1;
end loop;
return case v_ordinal
  when 1 then v_bounds[1] * v_wanted / p_counts[1]
  when 16 then v_bounds[15]
  else v_bounds[v_ordinal - 1] * power(
    v_bounds[v_ordinal] / v_bounds[v_ordinal - 1], v_wanted / p_counts[v_ordinal])
end;
$$;

-- Returns the sums of a stage from p_from to before p_to: whole hours as hours, and the beginning
-- and the end as minutes, where minutes are kept.
-- p_stage_id: 0 means the pipeline's runs.
-- p_by_minute: true returns minutes for all the time for which they are kept.
create function millrace.figure_rows(
  p_pipeline_id int, p_stage_id int, p_from timestamptz, p_to timestamptz, p_by_minute boolean
) returns setof millrace.sums
stable
set plan = in_order
as $$
  -- The time from which on all minutes are kept.
  v_kept timestamptz := date_trunc('hour', v_now - make_interval(hours => (
    select s.value::int - 1 from millrace.settings s where s.name = 'minutes_hours')), 'UTC');
  v_first_hour timestamptz := case
    when p_from < v_kept then date_trunc('hour', p_from, 'UTC')
    else date_trunc('hour', p_from + interval '1 hour' - interval '1 microsecond', 'UTC') end;
  v_last_hour timestamptz := greatest(v_first_hour, case
    when p_to < v_kept then p_to
    when p_by_minute then v_kept
    else date_trunc('hour', p_to, 'UTC') end);

return query
select m.*
from (values ('minute', date_trunc('minute', p_from, 'UTC'), least(v_first_hour, p_to)),
  ('hour', v_first_hour, v_last_hour), ('minute', v_last_hour, p_to)) e(unit, first, before)
join millrace.sums m on m.unit = e.unit
  and m.pipeline_id = p_pipeline_id and m.stage_id = p_stage_id and m.at >= e.first
  and m.at < e.before;
$$;

-- Returns the figures of a stage, a row for each step from p_from to before p_to.
-- p_stage: null returns runs, with their times from start to end. Retries, waits, cost, tokens and
-- codes, which a run itself does not have, are then those of all stages.
create function millrace.summed_figures(
  p_pipeline text, p_stage text, p_from timestamptz, p_to timestamptz, p_step interval
) returns setof millrace.figure
stable
as $$
  v_pipeline_id int := (millrace.pipeline_named(p_pipeline)).id;
  v_stage_id int := case when p_stage is null then 0
    else (millrace.stage_named(p_pipeline, p_stage)).id end;

if (p_from < p_to and isfinite(p_from) and isfinite(p_to)) is not true then
  raise exception 'MR002: p_from is %, but must be before p_to, %', p_from, p_to
    using hint = 'Name both times.';
elsif extract(epoch from p_to - p_from) / extract(epoch from p_step) > 2000 then
  raise exception 'MR002: a step of % is too short for % to %: that is over 2000 rows',
    p_step, p_from, p_to
    using hint = 'Take a longer step, or ask for less.';
end if;
return query
select b.at, coalesce(s.completed, 0), coalesce(s.ended, 0), coalesce(s.failed, 0),
  coalesce(s.retried, 0), coalesce(s.skipped, 0), coalesce(s.cancelled, 0),
  millrace.bucket_quantile(s.runs, 0.5), millrace.bucket_quantile(s.runs, 0.95),
  millrace.bucket_quantile(s.waits, 0.5), millrace.bucket_quantile(s.waits, 0.95),
  coalesce(s.cost_usd, 0), coalesce(s.input_tokens, 0), coalesce(s.output_tokens, 0),
  coalesce(s.codes, '{}'), coalesce(s.ready, 0), s.oldest_ms
from generate_series(p_from, p_to - interval '1 microsecond', p_step) b(at)
left join (
  select date_bin(p_step, greatest(m.at, p_from), p_from) as at,
    sum(m.own) filter (where m.outcome = 'completed')::bigint as completed,
    sum(m.own) filter (where m.outcome = 'ended')::bigint as ended,
    sum(m.own) filter (where m.outcome = 'failed')::bigint as failed,
    sum(m.n) filter (where m.outcome = 'retried')::bigint as retried,
    sum(m.own) filter (where m.outcome = 'skipped')::bigint as skipped,
    sum(m.own) filter (where m.outcome = 'cancelled')::bigint as cancelled,
    max(m.own) filter (where m.outcome = 'ready') as ready,
    max(m.wait_ms) filter (where m.outcome = 'ready') as oldest_ms,
    sum(m.cost_usd) as cost_usd, sum(m.input_tokens) as input_tokens,
    sum(m.output_tokens) as output_tokens, millrace.add_codes(array_agg(m.codes)) as codes,
    millrace.add_buckets(array_agg(m.runs) filter (where m.own is not null)) as runs,
    millrace.add_buckets(array_agg(m.waits)) as waits
  from (
    select f.*, case when f.stage_id = v_stage_id then f.n end as own
    from (
      select v_stage_id
      union all
      select o.id
      from millrace.stages o
      where v_stage_id = 0
        and o.pipeline_id = v_pipeline_id) t(id)
    cross join millrace.figure_rows(v_pipeline_id, t.id, p_from, p_to,
      p_step < least(p_to - p_from, interval '1 hour')) f) m
  group by 1) s on s.at = b.at
order by b.at;
$$;

-- Returns the figures of a stage between two times, as of the last sweep: attempts by outcome,
-- median and 95th percentile of run and wait in milliseconds, cost, tokens, failures by code, the
-- most rows that were ready at once, and the highest age of a ready row. The sweep samples the last
-- two each minute.
-- p_stage: null returns the figures of whole runs, with retries, waits, cost, tokens, codes and
-- ready rows of all stages.
-- p_from: rounded down to the minute; null means an hour before p_to.
-- p_to: null means the end of the present minute.
create function millrace.figures(
  p_pipeline text, p_stage text default null, p_from timestamptz default null,
  p_to timestamptz default null
) returns setof millrace.figure
stable
as $$
  -- The end of the present minute includes attempts that have just ended.
  v_to timestamptz := coalesce(p_to,
    date_trunc('minute', v_now, 'UTC') + interval '1 minute');
  v_from timestamptz := date_trunc('minute', coalesce(p_from, v_to - interval '1 hour'), 'UTC');

return query
select * from millrace.summed_figures(p_pipeline, p_stage, v_from, v_to,
  -- Postgres subtracts no infinite times. summed_figures() refuses these.
  case when isfinite(v_from) and isfinite(v_to) then v_to - v_from end);
$$;

-- Returns the figures of millrace.figures(), a row for each p_step from p_from to before p_to, also
-- for steps in which nothing happened. A step of whole hours begins on the hour, a step of whole
-- days at midnight UTC.
create function millrace.series(
  p_pipeline text, p_stage text, p_from timestamptz, p_to timestamptz, p_step interval
) returns setof millrace.figure
stable
as $$
  v_seconds numeric := extract(epoch from p_step);

if (v_seconds >= 60 and v_seconds % 60 = 0
    and extract(month from p_step) = 0 and extract(year from p_step) = 0) is not true then
  raise exception 'MR002: p_step is %, but must be whole minutes, hours or days', p_step
    using hint = 'Such as 5 minutes, 1 hour, 1 day.';
end if;
return query
select *
from millrace.summed_figures(p_pipeline, p_stage, date_trunc(case
    when v_seconds % 86400 = 0 then 'day'
    when v_seconds % 3600 = 0 then 'hour'
    else 'minute' end, p_from, 'UTC'), p_to, make_interval(secs => v_seconds::float8));
$$;

-- Returns a finding on stages at which attempts failed as misconfigured in the last day. A stage is
-- named only while a run still has the error: a run that waits for a retry, or a failed one.
create view millrace.misconfigured_findings (what, ok, detail) as
select 'no stage is misconfigured', count(*) = 0, coalesce(
  string_agg(format('%s of %s since %s (attempts: %s): %s', s.name, p.name,
    -- Minutes may be kept for less than a day.
    case when h.minute < h.hour + interval '1 hour' then h.minute else h.hour end, h.n,
    rtrim(e.message, '.')), '. ' order by p.name, s.name)
  || '. Once it is set right, hurry or retry these runs', 'none is')
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
join lateral (
  select sum((m.codes ->> 'misconfigured')::bigint) filter (where m.unit = 'hour') as n,
    min(m.at) filter (where m.unit = 'hour') as hour,
    min(m.at) filter (where m.unit = 'minute') as minute
  from millrace.sums m
  where m.unit = any ('{minute,hour}')
    and (m.pipeline_id, m.stage_id) = (s.pipeline_id, s.id)
    and m.at > v_now - interval '1 day'
    and m.codes ? 'misconfigured') h on h.n > 0
cross join lateral (
  select f.error ->> 'message' as message
  from (
    -- Attempts in backoff come first in this order, since they are due last.
    (select a.parent_id as id
     from millrace.attempts a
     where a.stage_id = s.id and a.queue_at is not null
     order by a.queue_at desc, a.id desc
     limit 200)
    union all
    (select o.id
     from millrace.runs r
     join millrace.attempts o on o.run_id = r.id and o.stage_id = s.id
     where (r.pipeline_id, r.failed_stage_id) = (s.pipeline_id, s.id)
       and r.status = 'failed' and r.error_code = 'misconfigured'
       and r.finished_at > v_now - interval '1 day'
     order by r.finished_at desc
     limit 20)) c
  join millrace.attempts f on f.id = c.id
  where f.error ->> 'code' = 'misconfigured'
  limit 1) e
-- Most stages never failed as misconfigured, and their totals show that in one look. The code
-- "other" stands for codes that the totals do not list.
where s.id in (
  select m.stage_id
  from millrace.sums m
  where m.unit = 'total' and m.codes ?| '{misconfigured,other}');
