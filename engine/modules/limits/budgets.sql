-- Budgets: what may be spent under a shared limit in a window of time
--
-- A budget is asked before a claim. What is in flight counts as what an attempt of its stage has
-- cost on average, and a claim takes what the rest pays for by its own stage's average. A stage
-- without an average has one attempt in flight at a time. So no more is overspent than attempts
-- differ from their average.
--
-- Windows are counted from the epoch: an hour begins on the hour, a day at midnight UTC. A use of a
-- budget has its time, since a throttle may change the window; one of a quota (quotas.sql) has the
-- end of its window, by which a claim finds it in one look. Hence two tables.

-- Averages what an attempt of a stage uses, of usd or tokens; null where none has named anything.
-- Where one named tokens and no price, it costs no dollars.
create function millrace.average_use(p_stage_id int, p_kind text) returns numeric
language plpgsql
as $$
begin
  return (
    select case p_kind when 'usd' then t.cost_usd else t.input_tokens + t.output_tokens end
      / nullif(t.completed + t.failed + t.retried, 0)
    from millrace.totals t
    join millrace.stages s on s.pipeline_id = t.pipeline_id and s.id = t.stage_id
    where s.id = p_stage_id
      and t.cost_usd + t.input_tokens + t.output_tokens > 0);
end
$$;

-- Says when the present window of so much in per_seconds began.
create function millrace.window_start(p_amount jsonb) returns timestamptz
language plpgsql
as $$
declare
  v_seconds numeric := (p_amount ->> 'per_seconds')::numeric;
begin
  return to_timestamp(floor(extract(epoch from millrace.now()) / v_seconds) * v_seconds);
end
$$;

-- Says when the present window of so much in per_seconds is over.
create function millrace.window_end(p_amount jsonb) returns timestamptz
language plpgsql
as $$
begin
  return millrace.window_start(p_amount)
    + make_interval(secs => (p_amount ->> 'per_seconds')::float8);
end
$$;

-- Lists the budgets of a shared limit, or both kinds where p_stage_id is null: what was spent in
-- the present window, what is in flight will cost (bound), what is left, and what an attempt of the
-- stage uses. One statement, hence one snapshot: the end of an attempt inserts the one and deletes
-- the other.
create function millrace.budgets_of(p_limit millrace.limits, p_stage_id int)
returns table (kind text, spent numeric, bound numeric, unspent numeric, average numeric)
language plpgsql
as $$
declare
  v_since timestamptz := millrace.window_start(p_limit.limits -> 'spending');
  -- What was noted before the clock was set back may be of a window to come.
  v_until timestamptz := millrace.window_end(p_limit.limits -> 'spending');
begin
  return query
    select k.kind, s.spent, f.bound,
      (p_limit.limits #>> array['spending', k.kind])::numeric - s.spent,
      millrace.average_use(p_stage_id, k.kind)
    from unnest(array['usd', 'tokens']) k(kind)
    cross join lateral (
      select coalesce(sum(case k.kind when 'usd' then u.usd else u.tokens end), 0) as spent
      from millrace.limit_uses u
      where u.limit_id = p_limit.id and u.at >= v_since and u.at < v_until) s
    cross join lateral (
      select coalesce(sum(n.many * coalesce(
        millrace.average_use(n.stage_id, k.kind), 0)), 0) as bound
      from (
        select m.stage_id, count(*) as many
        from millrace.limited_stages m
        join millrace.in_flight i on i.stage_id = m.stage_id
        where m.limit_id = p_limit.id
        group by m.stage_id) n) f
    where p_stage_id is null or p_limit.limits -> 'spending' ? k.kind;
end
$$;

-- Tells whether a shared limit's budget pays for no more attempt of a stage, by what was spent
-- alone: what is in flight may turn out cheaper.
create function millrace.is_spent_under(p_limit millrace.limits, p_stage_id int)
returns boolean
language plpgsql
as $$
begin
  return (
    select coalesce(bool_or(b.unspent <= 0 or b.unspent + 1e-9 < b.average), false)
    from millrace.budgets_of(p_limit, p_stage_id) b);
end
$$;

-- Says whether a budget pays for nothing more of a stage in this window.
create function millrace.is_spent(p_stage millrace.stages) returns boolean
language plpgsql
as $$
begin
  return coalesce(p_stage.limits ? 'shared', false)
    and exists (
      select
      from millrace.limited_stages m
      join millrace.limits l on l.id = m.limit_id
      where m.stage_id = p_stage.id
        and l.limits ? 'spending'
        and millrace.is_spent_under(l, p_stage.id));
end
$$;

-- Notes the usage and the refusals of attempts that have ended under each shared limit of their
-- stage. Insert-only: an outcome waits for no claim.
create function millrace.note_shared(p_stage_id int, p_items millrace.work[])
returns void
language plpgsql
as $$
declare
  v_usages jsonb[] := array(
    select i.usage
    from unnest(p_items) i
    where i.usage is not null);
  v_usd numeric := coalesce(millrace.sum_usage(v_usages, 'cost_usd'), 0);
  v_tokens numeric := coalesce(millrace.sum_usage(v_usages, 'input_tokens'), 0)
    + coalesce(millrace.sum_usage(v_usages, 'output_tokens'), 0);
begin
  if v_usd > 0 or v_tokens > 0 then
    insert into millrace.limit_uses (limit_id, at, usd, tokens)
    select l.id, millrace.now(), v_usd, v_tokens
    from millrace.limited_stages m
    join millrace.limits l on l.id = m.limit_id
    where m.stage_id = p_stage_id and l.limits ? 'spending'
    order by l.id;
  end if;
  if exists (
      select
      from unnest(p_items) i
      where i.error is not null) then
    -- Of a batch, the one that asks for the longest, of each key where the limit has a rate for
    -- each.
    insert into millrace.limit_refusals (limit_id, key, at, retry_after, refused_by)
    select l.id, o.key, millrace.now(), make_interval(secs => o.seconds),
      format('%s.%s: %s', p.name, s.name, o.code)
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    join millrace.limited_stages m on m.stage_id = s.id
    join millrace.limits l on l.id = m.limit_id
    cross join lateral (
      select distinct on (r.key) r.key, r.seconds, i.error ->> 'code' as code
      from unnest(p_items) i
      left join millrace.attempts a on a.id = i.attempt_id and l.limits ? 'key_rate'
      cross join lateral (
        select case when l.limits ? 'key_rate' then coalesce(substr(a.concurrency_group, 2), '') end
            as key,
          coalesce(least(greatest((i.error ->> 'retry_after_ms')::float8, 0) / 1000, 86400), 0)
            as seconds) r
      where i.error ->> 'code' = 'rate_limited' or i.error ? 'retry_after_ms'
      order by r.key, r.seconds desc) o
    where s.id = p_stage_id and l.limits -> 'adaptive' = 'true'
    order by l.id, o.key;
  end if;
end
$$;

-- The sweep adds up the uses of a window, and deletes those of windows that are over: today's, and
-- the declared one, which holds again when a throttle ends. One statement deletes and adds, so
-- nothing is lost or counted twice. A sum has the latest time of its parts, so that a shorter
-- window rather counts too much.
create function millrace.sum_limit_uses(p_limit int) returns void
language plpgsql
as $$
declare
  v_limit millrace.limits;
  v_today timestamptz;
  v_declared timestamptz;
begin
  for v_limit in
    select l.* from millrace.limits l where l.name is not null order by l.id
  loop
    v_today := millrace.window_start(v_limit.limits -> 'spending');
    v_declared := millrace.window_start(v_limit.declared -> 'spending');
    delete from millrace.limit_uses u
    where u.id in (
      select o.id
      from millrace.limit_uses o
      where o.limit_id = v_limit.id
        and o.at < coalesce(least(v_today, v_declared), 'infinity')
      order by o.at
      limit p_limit
      for update skip locked);
    continue when not exists (
      select from millrace.limit_uses u where u.limit_id = v_limit.id and not u.summed);
    with gone as (
      delete from millrace.limit_uses u
      where u.id in (
        select o.id
        from millrace.limit_uses o
        where o.limit_id = v_limit.id
          and o.at between least(v_today, v_declared) and millrace.now()
        order by o.at
        limit p_limit
        for update skip locked)
      returning u.at, u.usd, u.tokens
    )
    insert into millrace.limit_uses (limit_id, at, usd, tokens, summed)
    select v_limit.id, max(g.at), sum(g.usd), sum(g.tokens), true
    from gone g
    group by g.at >= v_today, g.at >= v_declared;
  end loop;
end
$$;
