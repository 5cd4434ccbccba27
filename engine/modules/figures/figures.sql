-- Figures: how many, how long, how dear. They are read from minutes and hours alone, so that an
-- answer takes as long after ten million attempts, up to one sweep late.

-- Estimates the time (ms) below which a share of the counted ones lies; null where there are none.
-- Within a bucket times count as even on a logarithmic scale, in the last as its lower bound.
create function millrace.bucket_quantile(p_counts bigint[], p_share float8)
returns float8
immutable
as $$
declare
  v_bounds float8[];
  v_count bigint;
  v_wanted float8 := 0;
  v_below float8 := 0;
begin
  foreach v_count in array coalesce(p_counts, '{}') loop
    v_wanted := v_wanted + coalesce(v_count, 0);
  end loop;
  if v_wanted = 0 then
    return null;
  end if;
  v_bounds := millrace.bucket_bounds();
  v_wanted := v_wanted * p_share;
  for v_i in 1 .. 16 loop
    v_count := p_counts[v_i];
    if v_count > 0 and v_below + v_count >= v_wanted then
      return case v_i
        when 1 then v_bounds[1] * (v_wanted - v_below) / v_count
        when 16 then v_bounds[15]
        else v_bounds[v_i - 1] * power(
          v_bounds[v_i] / v_bounds[v_i - 1], (v_wanted - v_below) / v_count)
      end;
    end if;
    v_below := v_below + v_count;
  end loop;
  return v_bounds[15];
end
$$;

-- Reads the figures of a stage: whole hours by the hour, both ends by the minute, or by their hours
-- where minutes are no longer kept. p_by_minute: by the minute wherever minutes are kept.
create function millrace.figure_rows(
  p_pipeline_id int, p_stage_id int, p_from timestamptz, p_to timestamptz, p_by_minute boolean
) returns setof millrace.minutes
stable
set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  -- From here on all minutes are kept.
  v_kept timestamptz := date_trunc('hour', millrace.now() - make_interval(hours => (
    select s.value::int - 1 from millrace.settings s where s.name = 'minutes_hours')), 'UTC');
  v_first_hour timestamptz := case
    when p_from < v_kept then date_trunc('hour', p_from, 'UTC')
    else date_trunc('hour', p_from + interval '1 hour' - interval '1 microsecond', 'UTC') end;
  v_last_hour timestamptz := greatest(v_first_hour, case
    when p_to < v_kept then p_to
    when p_by_minute then v_kept
    else date_trunc('hour', p_to, 'UTC') end);
begin
  return query
    select h.*
    from millrace.hours h
    where h.pipeline_id = p_pipeline_id
      and h.stage_id = p_stage_id
      and h.hour >= v_first_hour
      and h.hour < v_last_hour;
  return query
    select m.*
    from millrace.minutes m
    where m.pipeline_id = p_pipeline_id
      and m.stage_id = p_stage_id
      and m.minute >= date_trunc('minute', p_from, 'UTC')
      and m.minute < least(v_first_hour, p_to);
  return query
    select m.*
    from millrace.minutes m
    where m.pipeline_id = p_pipeline_id
      and m.stage_id = p_stage_id
      and m.minute >= v_last_hour
      and m.minute < p_to;
end
$$;

-- Adds the figures of a stage up (0: of the runs), a row for each step from p_from to before p_to.
create function millrace.summed_figures(
  p_pipeline_id int, p_stage_id int, p_from timestamptz, p_to timestamptz, p_step interval
) returns setof millrace.figure
stable
as $$
begin
  return query
    select b.at, coalesce(s.completed, 0), coalesce(s.ended, 0), coalesce(s.failed, 0),
      coalesce(s.retried, 0), coalesce(s.skipped, 0), coalesce(s.cancelled, 0),
      millrace.bucket_quantile(s.runs, 0.5), millrace.bucket_quantile(s.runs, 0.95),
      millrace.bucket_quantile(s.waits, 0.5), millrace.bucket_quantile(s.waits, 0.95),
      coalesce(s.cost_usd, 0), coalesce(s.input_tokens, 0), coalesce(s.output_tokens, 0),
      coalesce(s.codes, '{}')
    from generate_series(p_from, p_to - interval '1 microsecond', p_step) b(at)
    left join (
      select date_bin(p_step, greatest(m.minute, p_from), p_from) as at,
        sum(m.completed) as completed, sum(m.ended) as ended, sum(m.failed) as failed,
        sum(m.retried) as retried, sum(m.skipped) as skipped, sum(m.cancelled) as cancelled,
        sum(m.cost_usd) as cost_usd, sum(m.input_tokens) as input_tokens,
        sum(m.output_tokens) as output_tokens,
        case when count(m.codes) > 0 then millrace.add_codes(array_agg(m.codes)) end as codes,
        array[sum(m.r0), sum(m.r1), sum(m.r2), sum(m.r3), sum(m.r4), sum(m.r5), sum(m.r6),
          sum(m.r7), sum(m.r8), sum(m.r9), sum(m.r10), sum(m.r11), sum(m.r12), sum(m.r13),
          sum(m.r14), sum(m.r15)] as runs,
        array[sum(m.w0), sum(m.w1), sum(m.w2), sum(m.w3), sum(m.w4), sum(m.w5), sum(m.w6),
          sum(m.w7), sum(m.w8), sum(m.w9), sum(m.w10), sum(m.w11), sum(m.w12), sum(m.w13),
          sum(m.w14), sum(m.w15)] as waits
      from millrace.figure_rows(p_pipeline_id, p_stage_id, p_from, p_to,
        p_step < least(p_to - p_from, interval '1 hour')) m
      group by 1) s on s.at = b.at
    order by b.at;
end
$$;

-- What a stage came to from p_from to before p_to (left out: the last hour), to the minute: how
-- many attempts by outcome, the median and the 95th percentile of run and wait in milliseconds,
-- cost, tokens, failures by code. Without a stage: the runs, from their start to their end. Up to
-- one sweep late; by the hour where the minutes are no longer kept.
create function millrace.figures(
  p_pipeline text, p_stage text default null, p_from timestamptz default null,
  p_to timestamptz default null
) returns setof millrace.figure
stable
as $$
declare
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
  -- To the end of the present minute, so that what has just happened is in it.
  v_to timestamptz := coalesce(p_to,
    date_trunc('minute', millrace.now(), 'UTC') + interval '1 minute');
  v_from timestamptz := date_trunc('minute', coalesce(p_from, v_to - interval '1 hour'), 'UTC');
begin
  if v_from >= v_to or not isfinite(v_from) or not isfinite(v_to) then
    raise exception 'p_from is %, but must be before p_to, %', p_from, v_to
      using errcode = 'MR002', hint = 'Leave both out for the last hour.';
  end if;
  return query
    select *
    from millrace.summed_figures(v_pipeline.id, case when p_stage is null then 0
      else (millrace.stage_named(p_pipeline, p_stage)).id end, v_from, v_to, v_to - v_from);
end
$$;

-- What millrace.figures() tells, one row for each p_step from p_from to before p_to, empty ones
-- too. A step of whole hours or days begins on the hour or at midnight UTC.
create function millrace.series(
  p_pipeline text, p_stage text, p_from timestamptz, p_to timestamptz, p_step interval
) returns setof millrace.figure
stable
as $$
declare
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
  v_seconds numeric := extract(epoch from p_step);
begin
  if p_from is null or p_to is null or p_from >= p_to
    or not isfinite(p_from) or not isfinite(p_to) then
    raise exception 'p_from is %, but must be before p_to, %', p_from, p_to
      using errcode = 'MR002', hint = 'Name both times.';
  elsif p_step is null or not isfinite(p_step) or extract(month from p_step) <> 0
    or extract(year from p_step) <> 0 or v_seconds < 60 or v_seconds % 60 <> 0 then
    raise exception 'p_step is %, but must be whole minutes, hours or days', p_step
      using errcode = 'MR002', hint = 'Such as 5 minutes, 1 hour, 1 day.';
  elsif extract(epoch from p_to - p_from) / v_seconds > 2000 then
    raise exception 'a step of % is too short for % to %: that is over 2000 rows',
      p_step, p_from, p_to
      using errcode = 'MR002', hint = 'Take a longer step, or ask for less.';
  end if;
  return query
    select *
    from millrace.summed_figures(v_pipeline.id, case when p_stage is null then 0
        else (millrace.stage_named(p_pipeline, p_stage)).id end,
      date_trunc(case
        when v_seconds % 86400 = 0 then 'day'
        when v_seconds % 3600 = 0 then 'hour'
        else 'minute' end, p_from, 'UTC'),
      p_to, make_interval(secs => v_seconds::float8));
end
$$;
