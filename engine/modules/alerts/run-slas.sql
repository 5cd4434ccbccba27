-- Lists the ages (ms) above this of the pipeline's first 10,000 live runs by their keys.
create function millrace.ages_over(p_pipeline_id int, p_ms float8) returns float8[]
stable
set millrace.plan = in_order
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

-- A row for each pipeline that bounds its runs: median and 95th percentile in seconds, from start
-- to end, of those that ended in the last hour and, with their age, those under way that are
-- overdue (past the shorter bound). broken: the bound that they do not keep to. Up to one sweep
-- late.
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
      from millrace.figure_rows(p.id, 0, millrace.now() - interval '1 hour',
        millrace.now() + interval '1 minute', true) m)) with ordinality u(n, ordinal)) n
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
  -- Ages are exact, whatever their bucket.
  where k.seconds > k.bound
    or (select count(*) from unnest(l.ages) a where a > k.bound * 1000) > k.share * c.runs
) o
where p.sla is not null
order by p.name;
