-- Bounds for runs: how long they take from their start to their end
--
-- A definition may bound the median and the 95th percentile of a pipeline's runs. Runs that ended
-- in the last hour count by the figures, from the start of the row's first run that did not come to
-- its end; one that is under way, or waits for a bypassed stage, counts with its age once that is
-- past the shorter bound. So a pipeline where nothing ends is not taken for a fast one. The sweep
-- counts live runs some thousand at a time.

-- define() keeps the bounds of a definition. Under new ones the count begins anew.
create function millrace.save_run_sla(p_pipeline_id int, p_definition jsonb)
as $$
declare
  v_sla jsonb := nullif(p_definition -> 'sla', 'null');
begin
  update millrace.pipelines p
  set sla = v_sla
  where p.id = p_pipeline_id
    and p.sla is distinct from v_sla;
  if found then
    delete from millrace.run_ages a where a.pipeline_id = p_pipeline_id;
    insert into millrace.run_ages (pipeline_id)
    select p_pipeline_id
    where v_sla is not null;
  end if;
end
$$;

-- Lets the time of new runs count from where that of the row's former run does, if that failed, was
-- cancelled, or left a stage out by a bypass.
create function millrace.carry_since(p_run_ids bigint[])
as $$
begin
  update millrace.runs r
  set since = o.since
  from unnest(p_run_ids) i(id)
  join millrace.runs n on n.id = i.id
  cross join lateral (
    select coalesce(f.since, f.created_at) as since, f.id, f.status
    from millrace.runs f
    where f.entity_id = n.entity_id and f.pipeline_id = n.pipeline_id and f.id < n.id
    order by f.id desc
    limit 1) o
  where r.id = n.id
    and (o.status in ('failed', 'cancelled') or exists (
      select
      from millrace.attempts a
      where a.run_id = o.id
        and a.state = 'skipped'
        and a.error ->> 'code' = 'bypassed'
        and not a.superseded));
end
$$;

-- Goes on with the count of live runs, at each pipeline with bounds for so many runs.
create function millrace.follow_ages(p_limit int)
as $$
declare
  v_pipeline millrace.pipelines;
  v_held millrace.run_ages;
  v_counted record;
  v_sums bigint[];
  v_median float8;
  v_p95 float8;
  v_bounds float8[] := millrace.bucket_bounds();
begin
  for v_pipeline in
    select p.* from millrace.pipelines p where p.sla is not null order by p.id
  loop
    select a.* into v_held
    from millrace.run_ages a
    where a.pipeline_id = v_pipeline.id
    for update skip locked;
    continue when not found;
    v_median := (v_pipeline.sla ->> 'median_seconds')::float8 * 1000;
    v_p95 := (v_pipeline.sla ->> 'p95_seconds')::float8 * 1000;
    with run as materialized (
      select u.entity_id, date_part('epoch', millrace.now() - min(u.since)) * 1000 as age
      from (
        (select r.entity_id, coalesce(r.since, r.created_at) as since
         from millrace.runs r
         where r.pipeline_id = v_pipeline.id
           and r.status = 'running'
           and r.entity_id > v_held.last_key
         order by r.entity_id
         limit p_limit)
        union all
        (select b.entity_id, coalesce(r.since, r.created_at)
         from millrace.stages s
         cross join lateral (
           select o.entity_id, o.run_id
           from millrace.bypassed o
           where o.stage_id = s.id and o.entity_id > v_held.last_key
           order by o.entity_id
           limit p_limit) b
         join millrace.runs r on r.id = b.run_id
         where s.pipeline_id = v_pipeline.id)) u
      group by u.entity_id
      order by u.entity_id
      limit p_limit
    ), bucket as (
      select width_bucket(r.age, v_bounds) as place, count(*) as n
      from run r
      where r.age > least(v_median, v_p95)
      group by 1
    )
    select array(
        select coalesce(b.n, 0)
        from generate_series(0, 15) i
        left join bucket b on b.place = i
        order by i)
      || (select array[count(*) filter (where r.age > v_median),
          count(*) filter (where r.age > v_p95)] from run r) as ages,
      (select max(r.entity_id) from run r having count(*) = p_limit) as last_key
    into v_counted;
    v_sums := array(
      select coalesce(u.a, 0) + coalesce(u.b, 0)
      from unnest(v_held.counting, v_counted.ages) with ordinality u(a, b, place)
      order by u.place);
    update millrace.run_ages a
    set last_key = coalesce(v_counted.last_key, ''),
      counting = case when v_counted.last_key is null then array_fill(0, array[18])
        else v_sums end,
      ages = case when v_counted.last_key is null then v_sums else a.ages end,
      counted_at = case when v_counted.last_key is null then millrace.now()
        else a.counted_at end
    where a.pipeline_id = v_pipeline.id;
  end loop;
end
$$;

-- Estimates how many of those that the buckets count took longer than this (ms).
create function millrace.count_over(p_counts bigint[], p_ms float8) returns float8
immutable
as $$
declare
  v_bounds float8[] := millrace.bucket_bounds();
  v_place int := width_bucket(p_ms, v_bounds) + 1;
  v_share float8;
begin
  v_share := case v_place
    when 1 then 1 - p_ms / v_bounds[1]
    when 16 then 1
    else ln(v_bounds[v_place] / p_ms) / ln(v_bounds[v_place] / v_bounds[v_place - 1])
  end;
  return (select coalesce(sum(n), 0) from unnest(p_counts[v_place + 1:]) n)
    + v_share * p_counts[v_place];
end
$$;

-- One row a pipeline that bounds its runs: median and 95th percentile in seconds, from the start of
-- a row's first run to the end of the one that is whole, of those that came to their end in the
-- last hour and those under way that are overdue (past the shorter bound), which count with their
-- age. ok: both keep to their bounds. Up to one sweep late; with over 5000 live runs, as of
-- counted_at.
create view millrace.run_slas as
select p.name as pipeline, c.runs, c.overdue, q.median_seconds, q.p95_seconds,
  b.median_bound, b.p95_bound,
  coalesce(o.median_over, 0) <= 0.5 * c.runs and coalesce(o.p95_over, 0) <= 0.05 * c.runs as ok,
  a.counted_at
from millrace.pipelines p
join millrace.run_ages a on a.pipeline_id = p.id
cross join lateral (
  select (p.sla ->> 'median_seconds')::float8 as median_bound,
    (p.sla ->> 'p95_seconds')::float8 as p95_bound) b
cross join lateral (
  select array[coalesce(sum(m.r0), 0), coalesce(sum(m.r1), 0), coalesce(sum(m.r2), 0),
    coalesce(sum(m.r3), 0), coalesce(sum(m.r4), 0), coalesce(sum(m.r5), 0),
    coalesce(sum(m.r6), 0), coalesce(sum(m.r7), 0), coalesce(sum(m.r8), 0),
    coalesce(sum(m.r9), 0), coalesce(sum(m.r10), 0), coalesce(sum(m.r11), 0),
    coalesce(sum(m.r12), 0), coalesce(sum(m.r13), 0), coalesce(sum(m.r14), 0),
    coalesce(sum(m.r15), 0)] as ended
  from millrace.figure_rows(
    p.id, 0, millrace.now() - interval '1 hour', millrace.now() + interval '1 minute', true) m
) f
cross join lateral (
  select array_agg(e + g order by place) as counts, sum(e + g)::bigint as runs,
    sum(g)::bigint as overdue
  from unnest(f.ended, a.ages[:16]) with ordinality u(e, g, place)
) c
cross join lateral (
  select millrace.count_over(f.ended, b.median_bound * 1000) + a.ages[17] as median_over,
    millrace.count_over(f.ended, b.p95_bound * 1000) + a.ages[18] as p95_over
) o
cross join lateral (
  select millrace.bucket_quantile(c.counts, 0.5) / 1000 as median_seconds,
    millrace.bucket_quantile(c.counts, 0.95) / 1000 as p95_seconds
) q
where p.sla is not null
order by p.name;

-- Looks at pipelines whose runs take longer than their bounds.
create function millrace.run_sla_findings() returns setof millrace.finding
language sql stable
as $$
  select 'runs keep to their bounds', count(*) = 0,
    coalesce(string_agg(format(
      'of %s half take over %s s (bound: %s), one in twenty over %s s (bound: %s), '
        '%s are overdue: select * from millrace.stage_health where pipeline = %L',
      s.pipeline, round(s.median_seconds), coalesce(s.median_bound::text, 'none'),
      round(s.p95_seconds), coalesce(s.p95_bound::text, 'none'), s.overdue, s.pipeline), '; '
      order by s.pipeline), 'all do')
  from millrace.run_slas s
  where not s.ok
$$;
