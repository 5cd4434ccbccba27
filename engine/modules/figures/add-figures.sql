-- Adding pulses up: minutes, hours and totals
--
-- One statement deletes pulses and adds them to all three tables, hence one snapshot. A late pulse
-- goes to the minute in which it happened. The statements are built from one list of columns, since
-- each would name forty of them twice.

-- Lists the upper bounds of the first 15 of 16 buckets, in milliseconds; the last has none.
create function millrace.bucket_bounds() returns float8[]
language sql immutable
as $$
  select array[10, 30, 100, 300, 1000, 3000, 10000, 30000, 120000, 360000, 1200000, 3600000,
    7200000, 28800000, 86400000]::float8[]
$$;

-- Lists the columns of minutes, hours and totals that are added up.
create function millrace.figure_columns() returns text[]
language sql immutable
as $$
  select '{completed,ended,failed,retried,skipped,cancelled,copied,removed,dequeued,
      unstarted,cost_usd,input_tokens,output_tokens,run_ms,wait_ms}'::text[]
    || array(select 'r' || i from generate_series(0, 15) i)
    || array(select 'w' || i from generate_series(0, 15) i)
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

-- Writes as SQL how rows of figures (delta) are added to minutes, hours or totals. p_time is the
-- column that tells the time, null for totals.
create function millrace.adding_sql(p_table text, p_time text) returns text
language sql immutable
as $$
  select format($q$
    insert into millrace.%1$I as t (pipeline_id, stage_id, %2$s %3$s, codes)
    select s.pipeline_id, s.stage_id, %4$s %3$s, k.codes
    from (
      select d.pipeline_id, d.stage_id, %5$s as at, %6$s
      from delta d
      group by 1, 2, 3) s
    left join (%7$s) k using (pipeline_id, stage_id, at)
    order by s.pipeline_id, s.stage_id
    on conflict (%8$s) do update set %9$s, codes = coalesce(excluded.codes, t.codes)
    returning 1$q$,
    p_table, p_time || ',', string_agg(c, ', '), 's.at' || left(p_time, 0) || ',', a.at,
    string_agg(format('coalesce(sum(d.%1$s), 0) as %1$s', c), ', '),
    (
      select format($q$
        select f.pipeline_id, f.stage_id, f.at,
          case
            when count(*) <= 20 then jsonb_object_agg(f.code, f.n)
            else millrace.add_codes(array[jsonb_object_agg(f.code, f.n)])
          end as codes
        from (
          select k.pipeline_id, k.stage_id, k.at, k.code, sum(k.n) as n
          from (
            select d.pipeline_id, d.stage_id, %1$s as at, d.code, d.n
            from coded d
            union all
            select w.pipeline_id, w.stage_id, w.at, o.key, o.value::bigint
            from (select distinct d.pipeline_id, d.stage_id, %1$s as at from coded d) w
            cross join lateral (
              select t.codes
              from millrace.%2$I t
              where t.pipeline_id = w.pipeline_id
                and t.stage_id = w.stage_id
                %3$s
              limit 1) t
            cross join lateral jsonb_each_text(t.codes) o) k
          group by 1, 2, 3, 4) f
        group by 1, 2, 3$q$,
        a.at, p_table, 'and t.' || p_time || ' = w.at')),
    concat_ws(', ', 'pipeline_id', 'stage_id', p_time),
    string_agg(format('%1$s = t.%1$s + excluded.%1$s', c), ', '))
  from unnest(millrace.figure_columns()) c
  cross join lateral (
    select case
      when p_time is null then '0'
      else format('date_trunc(%L, d.minute, ''UTC'')', p_time)
    end as at) a
  group by a.at
$$;

-- Adds up to so many pulses to the figures; returns how many. It hashes, however its caller plans:
-- there may be some thousand groups. While another sweep does so it does nothing.
create function millrace.add_pulses(p_limit int default 3000) returns int
set enable_seqscan = on set enable_hashjoin = on set enable_sort = off set enable_memoize = off
set work_mem = '16MB' set jit = off
as $$
declare
  v_taken int;
begin
  if not pg_try_advisory_xact_lock(hashtext('millrace.add_pulses')) then
    return 0;
  end if;
  -- Times are counted by bucket first, those of the queue 16 places further on; then a row a stage
  -- and minute (delta) has what is added to each table.
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
      select t.pipeline_id, t.stage_id, t.minute, k.place, count(*) as n, sum(k.ms) as ms
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
      select b.pipeline_id, b.stage_id, b.minute,
        sum(greatest(b.ms, 0)) filter (where b.place < 16) as run_ms,
        sum(greatest(b.ms, 0)) filter (where b.place > 15) as wait_ms, %2$s
      from bucket b
      group by 1, 2, 3
    ), coded as materialized (
      select t.pipeline_id, t.stage_id, t.minute, u as code, count(*) as n
      from taken t
      cross join lateral unnest(t.codes) u
      group by 1, 2, 3, 4
    ), delta as materialized (
      select *
      from counted
      left join measured using (pipeline_id, stage_id, minute)
    ), minute_row as (%3$s), hour_row as (%4$s), total_row as (%5$s)
    select count(*) from taken$q$,
    (select string_agg(format('coalesce(sum(t.n) filter (where t.outcome = %1$L), 0) as %1$I', c),
        ', ')
      from unnest((millrace.figure_columns())[:10]) c),
    (select string_agg(format('sum(b.n) filter (where b.place = %s) as %I',
        i, case when i < 16 then 'r' || i else 'w' || i - 16 end), ', ')
      from generate_series(0, 31) i),
    millrace.adding_sql('minutes', 'minute'), millrace.adding_sql('hours', 'hour'),
    millrace.adding_sql('totals', null))
  into v_taken
  using p_limit;
  return v_taken;
end
$$;

-- Deletes figures older than the settings say, some thousand at a time, by the keys of the totals.
-- Not while another sweep does so.
create function millrace.prune_figures(p_limit int default 10000) returns int
as $$
declare
  v_now timestamptz := millrace.now();
  v_kept record;
  v_some int;
  v_most int := 0;
  v_gone int := 0;
begin
  perform
  from millrace.settings s
  where s.name = 'figures_pruned_at'
    and s.value::timestamptz <= v_now - interval '10 minutes'
  for update skip locked;
  if not found then
    return 0;
  end if;
  for v_kept in
    select o.unit, v_now - s.value::int * o.each as oldest
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
          limit $2) o
        limit $2))$q$, v_kept.unit || 's', v_kept.unit)
    using v_kept.oldest, p_limit;
    get diagnostics v_some = row_count;
    v_gone := v_gone + v_some;
    v_most := greatest(v_most, v_some);
  end loop;
  if v_most < p_limit then
    update millrace.settings s
    set value = trim('"' from to_jsonb(v_now)::text)
    where s.name = 'figures_pruned_at';
  end if;
  return v_gone;
end
$$;

-- Adds pulses up for a moment; of many it leaves what takes longer to the next sweep.
create function millrace.sweep_pulses() returns int
as $$
declare
  v_until timestamptz := millrace.now() + interval '100 milliseconds';
  v_pulses int := 0;
  v_taken int;
begin
  loop
    v_taken := millrace.add_pulses();
    v_pulses := v_pulses + v_taken;
    exit when v_taken < 3000 or millrace.now() > v_until;
  end loop;
  return v_pulses;
end
$$;
