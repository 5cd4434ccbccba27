-- Adding pulses up: minutes, hours and totals. One statement deletes pulses and adds them to all
-- three tables. A late pulse goes to the minute in which it happened.

-- Lists the upper bounds of the first 15 of 16 buckets, in milliseconds; the last has none.
create function millrace.bucket_bounds() returns float8[]
language sql immutable
as $$
  select array[10, 30, 100, 300, 1000, 3000, 10000, 30000, 120000, 360000, 1200000, 3600000,
    7200000, 28800000, 86400000]::float8[]
$$;

-- Adds up counts by bucket, 16 a row.
create function millrace.add_buckets(p_counts bigint[]) returns bigint[]
language sql immutable
as $$
  select array(
    select sum(u.n)::bigint
    from unnest(p_counts) with ordinality u(n, place)
    group by (u.place - 1) % 16
    order by (u.place - 1) % 16)
$$;

-- Adds up counts by error code: the 20 most frequent codes keep theirs, the rest is "other".
create function millrace.add_codes(p_counts jsonb[]) returns jsonb
language sql immutable
as $$
  with code as (
    select k.key, sum(k.value::numeric) as n,
      row_number() over (order by k.key = 'other', sum(k.value::numeric) desc, k.key) as place
    from unnest(p_counts) c
    cross join lateral jsonb_each_text(c) k
    group by k.key
  )
  select jsonb_object_agg(f.key, f.n)
  from (
    select case when c.place <= 20 then c.key else 'other' end as key, sum(c.n) as n
    from code c
    group by 1) f
$$;

-- Writes as SQL how figures by the minute (delta) are added to minutes, hours or totals. p_time is
-- the column that tells the time, null for totals.
create function millrace.adding_sql(p_table text, p_time text, p_columns text[]) returns text
language sql immutable
as $$
  select format($q$
    insert into millrace.%1$I as t (%2$s, %3$s, runs, waits, codes)
    select d.pipeline_id, d.stage_id, %4$s %5$s,
      millrace.add_buckets(array_agg(d.runs)), millrace.add_buckets(array_agg(d.waits)),
      millrace.add_codes(array_agg(d.codes))
    from delta d
    group by %6$s
    order by %6$s
    on conflict (%2$s) do update
    set %7$s, runs = millrace.add_buckets(array[t.runs, excluded.runs]),
      waits = millrace.add_buckets(array[t.waits, excluded.waits]),
      codes = case when excluded.codes is null then t.codes
        else millrace.add_codes(array[t.codes, excluded.codes]) end
    returning 1$q$,
    p_table, concat_ws(', ', 'pipeline_id', 'stage_id', p_time), string_agg(c, ', '),
    'date_trunc(' || quote_literal(p_time) || ', d.minute, ''UTC''),',
    string_agg(format('sum(d.%I)', c), ', '), concat_ws(', ', '1, 2', '3' || left(p_time, 0)),
    string_agg(format('%1$I = t.%1$I + excluded.%1$I', c), ', '))
  from unnest(p_columns) c
$$;

-- Adds up to so many pulses to the figures; returns how many. It hashes, however its caller plans:
-- there may be some thousand groups. While another sweep does so it does nothing.
create function millrace.add_pulses(p_limit int default 3000) returns int
set enable_seqscan = on set enable_hashjoin = on set enable_sort = off set enable_memoize = off
set work_mem = '16MB' set jit = off
as $$
declare
  c_outcomes constant text[] := '{completed,ended,failed,retried,skipped,cancelled,copied,removed,
    dequeued,unstarted}';
  c_columns constant text[] := c_outcomes
    || '{cost_usd,input_tokens,output_tokens,run_ms,wait_ms}'::text[];
  v_taken int;
begin
  if not pg_try_advisory_xact_lock(hashtext('millrace.add_pulses')) then
    return 0;
  end if;
  -- Times are counted by bucket first, those of the queue 16 places further on.
  execute format($q$
    with taken as materialized (
      delete from millrace.pulses p
      where p.ctid = any (array(select o.ctid from millrace.pulses o limit $1))
      returning p.*, date_trunc('minute', p.at, 'UTC') as minute
    ), counted as (
      select t.pipeline_id, t.stage_id, t.minute, %1$s,
        coalesce(sum(t.cost_usd), 0) as cost_usd,
        coalesce(sum(t.input_tokens), 0) as input_tokens,
        coalesce(sum(t.output_tokens), 0) as output_tokens
      from taken t
      group by 1, 2, 3
    ), bucket as (
      select t.pipeline_id, t.stage_id, t.minute, k.place, count(*) as n,
        sum(greatest(k.ms, 0)) as ms
      from taken t
      cross join lateral (
        select width_bucket(u::float8, millrace.bucket_bounds()) as place, u::float8 as ms
        from unnest(t.run_ms) u
        where u is not null
        union all
        select 16 + width_bucket(u::float8, millrace.bucket_bounds()), u::float8
        from unnest(t.wait_ms) u
        where u is not null) k
      group by 1, 2, 3, 4
    ), measured as (
      select c.pipeline_id, c.stage_id, c.minute,
        coalesce(sum(b.ms) filter (where i < 16), 0) as run_ms,
        coalesce(sum(b.ms) filter (where i > 15), 0) as wait_ms,
        array_agg(coalesce(b.n, 0) order by i) filter (where i < 16) as runs,
        array_agg(coalesce(b.n, 0) order by i) filter (where i > 15) as waits
      from counted c
      cross join generate_series(0, 31) i
      left join bucket b on (b.pipeline_id, b.stage_id, b.minute, b.place)
        = (c.pipeline_id, c.stage_id, c.minute, i)
      group by 1, 2, 3
    ), coded as (
      select k.pipeline_id, k.stage_id, k.minute, jsonb_object_agg(k.code, k.n) as codes
      from (
        select t.pipeline_id, t.stage_id, t.minute, u as code, count(*) as n
        from taken t
        cross join lateral unnest(t.codes) u
        group by 1, 2, 3, 4) k
      group by 1, 2, 3
    ), delta as materialized (
      select *
      from counted
      join measured using (pipeline_id, stage_id, minute)
      left join coded using (pipeline_id, stage_id, minute)
    ), minute_row as (%2$s), hour_row as (%3$s), total_row as (%4$s)
    select count(*) from taken$q$,
    (select string_agg(format('coalesce(sum(t.n) filter (where t.outcome = %1$L), 0) as %1$I', c),
        ', ')
      from unnest(c_outcomes) c),
    millrace.adding_sql('minutes', 'minute', c_columns),
    millrace.adding_sql('hours', 'hour', c_columns), millrace.adding_sql('totals', null, c_columns))
  into v_taken
  using p_limit;
  return v_taken;
end
$$;

-- Deletes figures older than the settings say, 20,000 of each unit at most, by the keys of totals.
create function millrace.prune_figures()
as $$
declare
  v_kept record;
begin
  for v_kept in
    select o.unit, millrace.now() - s.value::int * o.each as oldest
    from (values ('minute', interval '1 hour', 'minutes_hours'),
      ('hour', interval '1 day', 'hours_days')) o(unit, each, setting)
    join millrace.settings s on s.name = o.setting
  loop
    execute format($q$
      delete from millrace.%1$I m
      where m.ctid = any (array(
        select o.ctid
        from millrace.totals t
        cross join lateral (
          select k.ctid
          from millrace.%1$I k
          where k.pipeline_id = t.pipeline_id
            and k.stage_id = t.stage_id
            and k.%2$I < $1
          limit 20000) o
        limit 20000))$q$, v_kept.unit || 's', v_kept.unit)
    using v_kept.oldest;
  end loop;
end
$$;
