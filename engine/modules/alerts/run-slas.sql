-- Returns the ages in milliseconds of a pipeline's live runs that are older than p_ms. Reads 10,000
-- live runs, in the order of their rows' keys.
create function millrace.ages_over(p_pipeline_id int, p_ms float8) returns float8[]
stable
set plan = in_order
as $$
return array(
  select g.age
  from (
    select date_part('epoch', v_now - r.created_at) * 1000 as age
    from millrace.runs r
    where r.pipeline_id = p_pipeline_id and r.status = 'running'
    order by r.entity_id
    limit 10000) g
  where g.age > p_ms);
$$;

-- Lists each pipeline that has bounds for its runs, with how long its runs take from start to end,
-- as of the last sweep. Runs are those that ended in the last hour, and overdue runs with their
-- age: live ones that are past the shorter bound.
-- median_seconds, p95_seconds: the median and the 95th percentile, estimated by buckets.
-- ok: whether the runs keep to the bounds. broken: the bound that is broken; null when ok.
create view millrace.run_slas as
select p.name as pipeline, c.runs, cardinality(l.ages)::bigint as overdue, q.median_seconds,
  q.p95_seconds, b.median_bound, b.p95_bound, o.broken is null as ok, o.broken
from millrace.pipelines p
cross join lateral (
  select (p.sla ->> 'median_seconds')::float8 as median_bound,
    (p.sla ->> 'p95_seconds')::float8 as p95_bound) b
cross join lateral (
  select millrace.ages_over(p.id, least(b.median_bound, b.p95_bound) * 1000) as ages) l
cross join lateral (
  select array_agg(n.n order by n.ordinal) as counts, sum(n.n)::bigint as runs
  from (
    select u.ordinal, u.n + (
      select count(*)
      from unnest(l.ages) a
      where width_bucket(a, millrace.bucket_bounds()) = u.ordinal - 1) as n
    from unnest((
      select millrace.add_buckets(array_agg(m.runs) || array_fill(0::bigint, '{1,16}'))
      from millrace.figure_rows(p.id, 0, v_now - interval '1 hour',
        v_now + interval '1 minute', true) m)) with ordinality u(n, ordinal)) n
) c
cross join lateral (
  select millrace.bucket_quantile(c.counts, 0.5) / 1000 as median_seconds,
    millrace.bucket_quantile(c.counts, 0.95) / 1000 as p95_seconds) q
cross join lateral (
  select min(k.name) as broken
  from (
    values ('p95', q.p95_seconds, b.p95_bound, 0.05),
      ('the median', q.median_seconds, b.median_bound, 0.5)
  ) k(name, seconds, bound, share)
  -- Ages of live runs are compared exactly, not by buckets.
  where k.seconds > k.bound
    or (select count(*) from unnest(l.ages) a where a > k.bound * 1000) > k.share * c.runs
) o
where p.sla is not null
order by p.name;
