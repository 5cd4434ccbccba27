-- What rules measure: a row where there is something to say, of which value is compared with above;
-- detail is what else an alert tells. Who shows it makes the sentence, in TypeScript.

-- Measures the engine by what doctor() finds, and by errors of the last ten minutes. What other
-- rules tell, what people have done, and alerts themselves do not count.
create function millrace.engine_values() returns table (value numeric, detail text)
stable
set enable_seqscan = off
as $$
begin
  return query
    select count(*)::numeric, millrace.plain_text(string_agg(f.what, '; ' order by f.what), 500)
    from (
      select case w.what when 'no invariant is violated' then w.what || ': ' || w.detail
        else 'not so: ' || w.what end as what
      from millrace.doctor() w
      where not w.ok
        and w.what <> all ('{the sweep has run in the last minute,nothing is paused,
          no stage is later than its bound,runs keep to their bounds,alerts reach somebody,
          no errors in the last hour}')
      union all
      select distinct l.message
      from millrace.log l
      where l.level = 'error'
        and l.at > (select millrace.now() - interval '10 minutes')
    ) f;
end
$$;

-- Measures a target by figures: the share of failures among ended tries, failures for good,
-- spending, or p95 in seconds; of failures it names the most frequent code. Of a pipeline as a
-- whole it reads the runs, but what all stages spent and why they failed.
create function millrace.figure_value(
  p_kind text, p_pipeline_id int, p_stage_id int, p_since timestamptz, p_least int,
  out value numeric, out detail text
)
stable
set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
as $$
declare
  v_sum record;
begin
  select
    sum(k.ended) filter (where m.stage_id = p_stage_id) as n,
    sum(k.failed) filter (where m.stage_id = p_stage_id) as failed,
    sum(k.dead) filter (where m.stage_id = p_stage_id) as dead, sum(m.cost_usd) as cost_usd,
    millrace.add_buckets(array_agg(m.runs) filter (where p_kind = 'p95')) as runs,
    millrace.add_codes(array_agg(m.codes) filter (where p_kind in ('error_share', 'dead'))) as codes
  into v_sum
  from (
    select p_stage_id
    union
    select o.id
    from millrace.stages o
    where p_kind in ('error_share', 'dead', 'spend')
      and p_stage_id = 0
      and o.pipeline_id = p_pipeline_id) s(id)
  -- What has just ended counts.
  cross join lateral millrace.figure_rows(
    p_pipeline_id, s.id, p_since, millrace.now() + interval '1 microsecond', true) m
  cross join lateral (
    select case when m.outcome in ('completed', 'ended', 'failed', 'retried') then m.n else 0 end,
      case when m.outcome in ('failed', 'retried') then m.n else 0 end,
      case when m.outcome = 'failed' then m.n else 0 end) k(ended, failed, dead);
  value := case
    when p_kind = 'dead' then v_sum.dead
    when p_kind = 'spend' then v_sum.cost_usd
    when v_sum.n < p_least then null
    when p_kind = 'error_share' then v_sum.failed / nullif(v_sum.n, 0)
    else millrace.bucket_quantile(v_sum.runs, 0.95) / 1000
  end;
  detail := (
    select millrace.plain_text(c.key, 60)
    from jsonb_each_text(v_sum.codes) c
    where c.key <> 'other'
    order by c.value::bigint desc, c.key
    limit 1);
end
$$;

-- Measures rules of one kind everywhere where they look.
create function millrace.rule_values(
  p_rules millrace.alert_rules[], p_now timestamptz
) returns table (
  rule_id int, pipeline_id int, stage_id int, value numeric, above numeric, detail text
)
stable
as $$
declare
  v_kind text := (p_rules[1]).kind;
begin
  return query
    select t.rule_id, t.pipeline_id, t.stage_id, v.value, coalesce(v.above, t.above), v.detail
    from millrace.rule_targets(p_rules, p_now) t
    cross join lateral (
      select e.value, 0::numeric, e.detail
      from millrace.engine_values() e
      where v_kind = 'engine'
      union all
      -- The estimate may be below a bound that the exact ages of live runs break.
      select greatest(b.seconds, b.bound + 0.001)::numeric, b.bound::numeric, s.broken
      from millrace.run_slas s
      cross join lateral (
        values ('p95', s.p95_seconds, s.p95_bound), ('the median', s.median_seconds, s.median_bound)
      ) b(name, seconds, bound)
      where v_kind = 'run_sla'
        and s.pipeline = t.pipeline
        and b.name = s.broken
      union all
      select sum(l.late), 0, min(l.longest)::text
      from millrace.late_counts() l
      where v_kind = 'late'
        and l.pipeline_id = t.pipeline_id
        and t.stage_id in (0, l.stage_id)
      union all
      select max(extract(epoch from k.until - k.since)), null,
        millrace.plain_text(string_agg(distinct millrace.pauses_in_words(k.name), '; '), 500)
      from millrace.stages s
      join millrace.limited_stages m on m.stage_id = s.id
      join millrace.limits l on l.id = m.limit_id
      join millrace.limit_pauses k on k.name = l.name
      where v_kind = 'refused'
        and s.pipeline_id = t.pipeline_id
        and t.stage_id in (0, s.id)
      union all
      select case v_kind when 'backlog' then sum(q.ready)
        else extract(epoch from p_now - min(q.oldest)) end, null, null
      from millrace.stages s
      cross join lateral (
        select count(*) as ready, min(a.queue_at) as oldest
        from (
          select o.queue_at
          from millrace.attempts o
          where o.stage_id = s.id
            and o.queue_at <= p_now
            and o.state = 'queued'
          order by o.queue_at
          limit case v_kind when 'backlog' then greatest(10001, t.above::bigint + 1) else 1 end
        ) a
      ) q
      where v_kind in ('backlog', 'oldest_ready')
        and s.pipeline_id = t.pipeline_id
        and t.stage_id in (0, s.id)
      union all
      select f.value, null, f.detail
      from millrace.figure_value(v_kind, t.pipeline_id, t.stage_id, t.since, t.fewest) f
      where v_kind in ('error_share', 'dead', 'spend', 'p95')
    ) v(value, above, detail);
end
$$;

-- Writes a text in one line of so many characters, without control characters or changes of
-- direction: it goes into subjects of e-mails and into chats.
create function millrace.plain_text(p_text text, p_most int) returns text
immutable
as $$
declare
  v_text text := trim(regexp_replace(left(p_text, p_most * 4),
    '[\u0001-\u0020\u007f-\u00a0\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+', ' ', 'g'));
begin
  return case when length(v_text) > p_most then left(v_text, p_most - 1) || '…' else v_text end;
end
$$;
