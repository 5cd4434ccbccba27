-- Uses: what was used of a limit in a window of time, counted from the epoch

-- Finds the present window of so much in per_seconds.
create function millrace.window_of(p_amount jsonb) returns tstzrange
strict
as $$
declare
  v_seconds numeric := (p_amount ->> 'per_seconds')::numeric;
  v_since timestamptz :=
    to_timestamp(floor(extract(epoch from millrace.now()) / v_seconds) * v_seconds);
begin
  return tstzrange(v_since, v_since + make_interval(secs => v_seconds::float8));
end
$$;

-- Lists the budgets of a shared limit, or both kinds where p_stage_id is null. One snapshot: the
-- end of an attempt inserts what is spent and deletes what is bound.
create function millrace.budgets_of(p_limit millrace.limits, p_stage_id int)
returns table (
  kind text, spent numeric, bound numeric, unspent numeric, average numeric, is_spent boolean)
as $$
declare
  v_window tstzrange := millrace.window_of(p_limit.limits -> 'spending');
begin
  return query
    with stage as materialized (
      select m.stage_id, f.many, t.usd / nullif(t.ended, 0) as usd,
        t.tokens / nullif(t.ended, 0) as tokens
      from millrace.limited_stages m
      join millrace.stages s on s.id = m.stage_id
      cross join lateral (select count(*) as many from millrace.in_flight_at(m.stage_id)) f
      -- Without a row where none has named anything.
      left join lateral (
        select sum(u.cost_usd) as usd, sum(u.input_tokens + u.output_tokens) as tokens,
          sum(u.n) filter (where u.outcome in ('completed', 'failed', 'retried')) as ended
        from millrace.sums u
        where u.unit = 'total' and u.pipeline_id = s.pipeline_id and u.stage_id = s.id
        having sum(u.cost_usd + u.input_tokens + u.output_tokens) > 0) t on true
      where m.limit_id = p_limit.id and v_window is not null
    )
    select k.kind, k.spent, k.bound, k.allowed - k.spent, k.average,
      k.allowed - k.spent <= 0 or k.allowed - k.spent + 1e-9 < coalesce(k.average, 0)
    from (
      select b.kind, (p_limit.limits #>> array['spending', b.kind])::numeric as allowed, (
          select coalesce(sum(u.used), 0)
          from millrace.limit_uses u
          where u.limit_id = p_limit.id
            and u.key = ''
            and u.kind = b.kind
            and u.during = v_window) as spent,
        coalesce(sum(t.many * a.average), 0) as bound,
        max(a.average) filter (where t.stage_id = p_stage_id) as average
      from unnest(array['usd', 'tokens']) b(kind)
      left join stage t on true
      cross join lateral (
        select case b.kind when 'usd' then t.usd else t.tokens end as average) a
      group by b.kind) k
    where p_stage_id is null or k.allowed is not null;
end
$$;

-- Says whether a budget pays for nothing more of a stage in this window.
create function millrace.is_spent(p_stage millrace.stages) returns boolean
as $$
begin
  return exists (
    select from millrace.limited_stages m
    join millrace.limits l on l.id = m.limit_id and l.limits ? 'spending'
    cross join millrace.budgets_of(l, p_stage.id) b
    where m.stage_id = p_stage.id and b.is_spent);
end
$$;

-- Notes what ended attempts used of budgets and quotas, and pauses the shared rates for which a
-- service asked for patience. A budget counts in the declared window too, for when a throttle ends.
create function millrace.note_uses(p_stage millrace.stages, p_items millrace.work[])
as $$
declare
  v_usages jsonb[] := array(
    select i.usage
    from unnest(p_items) i
    where i.usage is not null);
begin
  if p_stage.limits ? 'shared' then
    insert into millrace.limit_uses (limit_id, key, kind, during, used, summed)
    select l.id, k.key, 'pause',
      tstzrange(least(min(p.since), millrace.now()), millrace.now() + make_interval(secs => least(
        max((i.error ->> 'retry_after_ms')::float8) / 1000, 86400))), 1, true
    from unnest(p_items) i
    left join millrace.attempts a on a.id = any (array[i.attempt_id])
    join millrace.limited_stages m on m.stage_id = p_stage.id
    join millrace.limits l
      on l.id = m.limit_id and l.name is not null and l.limits ?| array['rate', 'key_rate']
    cross join lateral (
      select case when l.limits ? 'key_rate' then coalesce(substr(a.concurrency_group, 2), '')
        else '' end) k(key)
    -- One that follows soon after another goes on with it, so that alerts hear of both.
    left join lateral (
      select min(lower(u.during)) as since
      from millrace.limit_uses u
      where u.limit_id = l.id and u.key = k.key and u.kind = 'pause') p on true
    where i.error ->> 'code' = 'rate_limited' and (i.error ->> 'retry_after_ms')::float8 > 0
    group by l.id, k.key;
  end if;
  if cardinality(v_usages) = 0 then
    return;
  end if;
  if p_stage.limits ? 'shared' then
    insert into millrace.limit_uses (limit_id, kind, during, used)
    select l.id, k.kind, w.during, k.used
    from millrace.limited_stages m
    join millrace.limits l on l.id = m.limit_id and l.limits ? 'spending'
    cross join (values
      ('usd', millrace.sum_usage(v_usages, 'cost_usd')),
      ('tokens', coalesce(millrace.sum_usage(v_usages, 'input_tokens'), 0)
        + coalesce(millrace.sum_usage(v_usages, 'output_tokens'), 0))) k(kind, used)
    cross join lateral (
      select millrace.window_of(l.limits -> 'spending') as during
      union
      select millrace.window_of(l.declared -> 'spending')) w
    where m.stage_id = p_stage.id and k.used > 0 and w.during is not null
    order by l.id;
  end if;
  if p_stage.counted then
    insert into millrace.limit_uses (limit_id, key, kind, during, used)
    select l.id, r.quota_key, 'spending', millrace.window_of(l.limits -> 'spending'), sum(c.usd)
    from unnest(p_items) i
    cross join lateral (
      select (i.usage ->> 'cost_usd')::numeric as usd
      where jsonb_typeof(i.usage -> 'cost_usd') = 'number') c
    join millrace.runs r on r.id = any (array[i.run_id])
    join millrace.limits l on l.pipeline_id = r.quota_of
    where l.limits ? 'spending' and c.usd > 0
    group by l.id, r.quota_key;
  end if;
end
$$;

-- Adds up the uses of each window in the statement that deletes them, and deletes what is over.
create function millrace.sum_uses(p_most int)
as $$
begin
  with gone as (
    delete from millrace.limit_uses u
    using (
      select o.id
      from (
        select distinct i.limit_id, i.key, i.kind, i.during
        from (
          select n.*
          from millrace.limit_uses n
          where not n.summed
          order by n.id
          limit p_most) i) f
      join millrace.limit_uses o using (limit_id, key, kind, during)
      for update of o skip locked) f
    where u.id = f.id
    returning u.*
  )
  insert into millrace.limit_uses (limit_id, key, kind, during, used, summed)
  select g.limit_id, g.key, g.kind, g.during, sum(g.used), true
  from gone g
  group by g.limit_id, g.key, g.kind, g.during;
  delete from millrace.limit_uses u
  where u.id in (
    select o.id
    from millrace.limit_uses o
    where upper(o.during) <= (select millrace.now())
      and (o.kind <> 'pause' or upper(o.during) <= (select millrace.now()) - interval '10 minutes')
    order by upper(o.during)
    limit p_most
    for update skip locked);
end
$$;
