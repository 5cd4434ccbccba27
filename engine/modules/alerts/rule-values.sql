-- What rules measure: a row where there is something to say, of which value is compared with above;
-- detail is what else an alert tells. Who shows it makes the sentence, in TypeScript.

-- Measures figures: the share of failures among ended tries, failures for good, spending, or p95 in
-- seconds. Of a pipeline as a whole it reads the runs, but what all stages spent.
create function millrace.figure_values(
  p_rules millrace.alert_rules[], p_now timestamptz
) returns table (
  rule_id int, pipeline_id int, stage_id int, value numeric, above numeric, detail text
)
stable
set enable_seqscan = off set enable_bitmapscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
as $$
declare
  -- What has just ended counts.
  v_to timestamptz := p_now + interval '1 microsecond';
begin
  return query
    select f.rule_id, f.pipeline_id, f.stage_id,
      case f.kind
        when 'error_share' then f.failed / nullif(f.n, 0)::numeric
        when 'dead' then f.dead
        when 'spend' then f.cost_usd
        else (millrace.bucket_quantile(f.runs, 0.95) / 1000)::numeric
      end,
      f.above, null
    from (
      select t.rule_id, t.kind, t.pipeline_id, t.stage_id, t.above, t.fewest,
        sum(m.completed + m.ended + m.failed + m.retried) as n,
        sum(m.failed + m.retried) as failed, sum(m.failed) as dead, sum(m.cost_usd) as cost_usd,
        millrace.add_buckets(array_agg(m.runs) filter (where t.kind = 'p95')) as runs
      from millrace.rule_targets(p_rules, p_now) t
      cross join lateral (
        select t.stage_id as id
        where t.kind <> 'spend' or t.stage_id <> 0
        union all
        select o.id
        from millrace.stages o
        where t.kind = 'spend'
          and t.stage_id = 0
          and o.pipeline_id = t.pipeline_id) s
      cross join lateral millrace.figure_rows(t.pipeline_id, s.id, t.since, v_to, true) m
      group by t.rule_id, t.kind, t.pipeline_id, t.stage_id, t.above, t.fewest) f
    where f.kind in ('dead', 'spend') or f.n >= f.fewest;
end
$$;

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
  if v_kind = 'engine' then
    return query
      select r.id, 0, 0, e.value, 0::numeric, e.detail
      from unnest(p_rules) r
      cross join millrace.engine_values() e;
  elsif v_kind = 'run_sla' then
    return query
      -- The estimate may be below a bound that the exact ages of live runs break.
      select t.rule_id, t.pipeline_id, t.stage_id, greatest(b.seconds, b.bound + 0.001)::numeric,
        b.bound::numeric, s.broken
      from millrace.rule_targets(p_rules, p_now) t
      join millrace.run_slas s on s.pipeline = t.pipeline
      join lateral (
        values ('p95', s.p95_seconds, s.p95_bound), ('the median', s.median_seconds, s.median_bound)
      ) b(name, seconds, bound) on b.name = s.broken;
  elsif v_kind = 'late' then
    return query
      select t.rule_id, t.pipeline_id, t.stage_id, sum(l.late), 0::numeric,
        min(l.longest)::text
      from millrace.rule_targets(p_rules, p_now) t
      join millrace.late_counts() l
        on l.pipeline_id = t.pipeline_id and t.stage_id in (0, l.stage_id)
      group by t.rule_id, t.pipeline_id, t.stage_id;
  elsif v_kind = 'refused' then
    return query
      select t.rule_id, t.pipeline_id, t.stage_id,
        max(extract(epoch from k.until - k.since)), t.above,
        millrace.plain_text(string_agg(distinct millrace.pauses_in_words(k.name), '; '), 500)
      from millrace.rule_targets(p_rules, p_now) t
      join millrace.stages s on s.pipeline_id = t.pipeline_id and t.stage_id in (0, s.id)
      join millrace.limited_stages m on m.stage_id = s.id
      join millrace.limits l on l.id = m.limit_id
      join millrace.limit_pauses k on k.name = l.name
      group by t.rule_id, t.pipeline_id, t.stage_id, t.above;
  elsif v_kind in ('backlog', 'oldest_ready') then
    return query
      select t.rule_id, t.pipeline_id, t.stage_id,
        case t.kind
          when 'backlog' then sum(q.ready)
          else extract(epoch from p_now - min(q.oldest))
        end,
        t.above, null
      from millrace.rule_targets(p_rules, p_now) t
      join millrace.stages s on s.pipeline_id = t.pipeline_id and t.stage_id in (0, s.id)
      cross join lateral (
        select count(*) as ready, min(a.queue_at) as oldest
        from (
          select o.queue_at
          from millrace.attempts o
          where o.stage_id = s.id
            and o.queue_at <= p_now
            and o.state = 'queued'
          order by o.queue_at
          limit case t.kind when 'backlog' then greatest(10001, t.above::bigint + 1) else 1 end
        ) a
      ) q
      group by t.rule_id, t.kind, t.pipeline_id, t.stage_id, t.above;
  else
    return query select * from millrace.figure_values(p_rules, p_now);
  end if;
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

-- Tells what else there is to say where a rule is above its bound: of failures the most frequent
-- code.
create function millrace.alert_detail(
  p_rule millrace.alert_rules, p_state millrace.rule_states, p_now timestamptz
) returns text
stable
as $$
begin
  if p_rule.kind not in ('error_share', 'dead') then
    return p_state.detail;
  end if;
  return (
    select millrace.plain_text(c.key, 60)
    from millrace.stages s
    cross join lateral millrace.figure_rows(
      s.pipeline_id, s.id, p_now - p_rule.span, p_now + interval '1 microsecond', true) m
    cross join lateral jsonb_each_text(m.codes) c
    where s.pipeline_id = p_state.pipeline_id
      and p_state.stage_id in (0, s.id)
      and c.key <> 'other'
    group by c.key
    order by sum(c.value::bigint) desc, c.key
    limit 1);
end
$$;
