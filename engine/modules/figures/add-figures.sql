-- Returns the upper bounds of the first 15 of 16 buckets, in milliseconds. The last bucket has no
-- upper bound.
create function millrace.bucket_bounds() returns float8[]
immutable
as $$
select array[10, 30, 100, 300, 1000, 3000, 10000, 30000, 120000, 360000, 1200000, 3600000,
  7200000, 28800000, 86400000]::float8[]
$$;

-- Returns how many of some times fall into each of the 16 buckets.
-- p_times: milliseconds.
create function millrace.count_buckets(p_times real[]) returns bigint[]
immutable
as $$
select array(
  select count(u.ms)
  from generate_series(0, 15) i
  left join unnest(p_times) u(ms)
    on width_bucket(u.ms::float8, millrace.bucket_bounds()) = i
  group by i
  order by i)
$$;

-- Returns the sums by bucket of several rows of 16 counts.
create function millrace.add_buckets(p_counts bigint[]) returns bigint[]
immutable
as $$
select array(
  select sum(u.n)::bigint
  from unnest(p_counts) with ordinality u(n, ordinal)
  group by (u.ordinal - 1) % 16
  order by (u.ordinal - 1) % 16)
$$;

-- Returns the sums by error code of several counts. Keeps the 20 most frequent codes, and adds up
-- the others as "other".
create function millrace.add_codes(p_counts jsonb[]) returns jsonb
immutable
as $$
-- Most calls have no codes: this check is faster than a query.
if coalesce(array_remove(p_counts, null), '{}') = '{}' then
  return null;
end if;
return (
  with code as (
    select k.key, sum(k.value::numeric) as n,
      row_number() over (order by k.key = 'other', sum(k.value::numeric) desc, k.key) as ordinal
    from unnest(p_counts) c
    cross join jsonb_each_text(c) k
    group by k.key
  )
  select json_object_agg(f.key, f.n)::jsonb
  from (
    select case when c.ordinal <= 20 then c.key else 'other' end as key, sum(c.n) as n
    from code c
    group by 1) f);
$$;

-- Adds up to p_limit pulses to the sums and costs, deletes them in the same statement, and returns
-- how many. Returns 0 while another sweep does so. Hash joins are allowed, since there may be some
-- thousand groups.
create function millrace.add_pulses(p_limit int default 3000) returns int
set enable_seqscan = on set enable_hashjoin = on set enable_sort = off set enable_memoize = off
set work_mem = '16MB' set jit = off
as $$
  v_taken int;

if not pg_try_advisory_xact_lock(hashtext('millrace.add_pulses')) then
  return 0;
end if;
with taken as materialized (
  delete from millrace.pulses p
  where p.ctid = any (array(select o.ctid from millrace.pulses o limit p_limit))
  returning p.*
), delta as materialized (
  select t.pipeline_id, t.stage_id, t.outcome, date_trunc('minute', t.at, 'UTC') as minute,
    sum(u.n) as n, coalesce(sum(t.cost_usd), 0) as cost_usd,
    coalesce(sum(t.input_tokens), 0) as input_tokens,
    coalesce(sum(t.output_tokens), 0) as output_tokens,
    sum(greatest(u.run_ms::float8, 0)) as run_ms, sum(greatest(u.wait_ms::float8, 0)) as wait_ms,
    millrace.count_buckets(array_agg(u.run_ms)) as runs,
    millrace.count_buckets(array_agg(u.wait_ms)) as waits, (
      select json_object_agg(k.code, k.n)::jsonb
      from (
        select c as code, count(*) as n
        from unnest(array_agg(u.code)) c
        where c is not null
        group by c) k) as codes
  from taken t
  -- Unnests the arrays side by side: n stands in the row of the first time. A pulse with cost or
  -- tokens has no times, and so is one row.
  cross join unnest(array[t.n], t.run_ms, t.wait_ms, t.codes) u(n, run_ms, wait_ms, code)
  group by 1, 2, 3, 4
), added as (
  insert into millrace.sums as s (unit, pipeline_id, stage_id, at, outcome, n, cost_usd,
    input_tokens, output_tokens, run_ms, wait_ms, runs, waits, codes)
  select u.unit, d.pipeline_id, d.stage_id, u.at, d.outcome, sum(d.n), sum(d.cost_usd),
    sum(d.input_tokens), sum(d.output_tokens), sum(d.run_ms), sum(d.wait_ms),
    millrace.add_buckets(array_agg(d.runs)), millrace.add_buckets(array_agg(d.waits)),
    millrace.add_codes(array_agg(d.codes))
  from delta d
  cross join lateral (values ('minute', d.minute),
    ('hour', date_trunc('hour', d.minute, 'UTC')), ('total', '-infinity')) u(unit, at)
  group by 1, 2, 3, 4, 5
  order by 1, 2, 3, 4, 5
  on conflict on constraint sums_pkey do update
  set n = s.n + excluded.n, cost_usd = s.cost_usd + excluded.cost_usd,
    input_tokens = s.input_tokens + excluded.input_tokens,
    output_tokens = s.output_tokens + excluded.output_tokens,
    run_ms = s.run_ms + excluded.run_ms, wait_ms = s.wait_ms + excluded.wait_ms,
    runs = millrace.add_buckets(array[s.runs, excluded.runs]),
    waits = millrace.add_buckets(array[s.waits, excluded.waits]),
    codes = millrace.add_codes(array[s.codes, excluded.codes])
), spent as (
  insert into millrace.costs as s (unit, at, stage_id, model, tenant, usd)
  select u, date_trunc(u, t.at, 'UTC'), t.stage_id, coalesce(t.model, ''),
    coalesce(t.tenant, ''), sum(t.cost_usd)
  from taken t
  cross join unnest('{hour,day}'::text[]) u
  where t.cost_usd > 0
  group by 1, 2, 3, 4, 5
  order by 1, 2, 3, 4, 5
  on conflict on constraint costs_pkey do update set usd = s.usd + excluded.usd
)
select count(*) into v_taken from taken;
return v_taken;
$$;

-- Writes how many attempts are ready at each stage and in each pipeline, to 10,000 a stage, and the
-- age of the oldest. Minutes and hours keep the highest of their samples. Where nothing was ready
-- there is no row.
create function millrace.sample_backlog()
as $$
insert into millrace.sums as m (unit, pipeline_id, stage_id, at, outcome, n, wait_ms)
select u, s.pipeline_id, coalesce(s.id, 0), date_trunc(u, v_now, 'UTC'), 'ready', sum(k.n),
  extract(epoch from v_now - min(k.since)) * 1000
from millrace.stages s
cross join lateral (
  select count(*) as n, min(a.queue_at) as since
  from (
    select o.queue_at
    from millrace.attempts o
    where o.stage_id = s.id and o.queue_at <= v_now and o.state = 'queued'
    order by o.queue_at
    limit 10000) a) k
cross join unnest('{minute,hour}'::text[]) u
where k.n > 0
group by u, s.pipeline_id, rollup(s.id)
order by 1, 2, 3
on conflict on constraint sums_pkey do update
set n = greatest(m.n, excluded.n), wait_ms = greatest(m.wait_ms, excluded.wait_ms);
$$;

-- Lists the totals of each stage by outcome, and the pulses that are not yet added to them.
create view millrace.counted_figures as
select t.pipeline_id, t.stage_id, t.outcome, t.n
from millrace.sums t
where t.unit = 'total'
union all
select p.pipeline_id, p.stage_id, p.outcome, p.n from millrace.pulses p;
