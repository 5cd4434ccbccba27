-- Uses: what was used of a limit in a window of time. Windows are counted from the epoch.

-- Returns the window of time that is open now for an amount; null for a null amount.
-- p_amount: an object whose per_seconds is the length of a window.
create function millrace.window_of(p_amount jsonb) returns tstzrange
strict
as $$
  v_seconds numeric := (p_amount ->> 'per_seconds')::numeric;
  v_since timestamptz :=
    to_timestamp(floor(extract(epoch from millrace.now()) / v_seconds) * v_seconds);

return tstzrange(v_since, v_since + make_interval(secs => v_seconds::float8));
$$;

-- Returns the budgets of a shared limit, one row for usd and one for tokens. Reads one snapshot,
-- since the end of an attempt inserts its spending and deletes its reservation.
-- p_stage_id: the stage whose mean and is_spent are returned; null returns both kinds, declared or
-- not.
-- reserved: what the attempts in flight will use, by the means of their stages.
-- unspent: what is left of the budget, reserved amounts included.
-- average: what an attempt of the stage uses in the mean; null while nothing is known.
-- is_spent: whether the rest does not pay for one more attempt.
create function millrace.budgets_of(p_limit millrace.limits, p_stage_id int)
returns table (
  kind text, spent numeric, reserved numeric, unspent numeric, average numeric, is_spent boolean)
as $$
  v_window tstzrange := millrace.window_of(p_limit.limits -> 'spending');

return query
with stage as materialized (
  select m.stage_id, f.many,
    coalesce(t.usd / nullif(t.ended, 0), (s.limits ->> 'expected_usd')::numeric) as usd,
    t.tokens / nullif(t.ended, 0) as tokens
  from millrace.limited_stages m
  join millrace.stages s on s.id = m.stage_id
  cross join lateral (select count(*) as many from millrace.in_flight_at(m.stage_id)) f
  -- No row where no attempt has named cost or tokens: the mean is unknown then.
  left join lateral (
    select sum(u.cost_usd) as usd, sum(u.input_tokens + u.output_tokens) as tokens,
      sum(u.n) filter (where u.outcome in ('completed', 'failed', 'retried')) as ended
    from millrace.sums u
    where u.unit = 'total' and u.pipeline_id = s.pipeline_id and u.stage_id = s.id
    having sum(u.cost_usd + u.input_tokens + u.output_tokens) > 0) t on true
  where m.limit_id = p_limit.id and v_window is not null
)
select k.kind, k.spent, k.reserved, k.allowed - k.spent, k.average,
  k.allowed - k.spent <= 0 or k.allowed - k.spent + 1e-9 < coalesce(k.average, 0)
from (
  select b.kind, (p_limit.limits #>> array['spending', b.kind])::numeric as allowed, (
      select coalesce(sum(u.used), 0)
      from millrace.limit_uses u
      where u.limit_id = p_limit.id and u.key = '' and u.kind = b.kind
        and u.during = v_window) as spent,
    coalesce(sum(t.many * a.average), 0) as reserved,
    max(a.average) filter (where t.stage_id = p_stage_id) as average
  from unnest(array['usd', 'tokens']) b(kind)
  left join stage t on true
  cross join lateral (select case b.kind when 'usd' then t.usd else t.tokens end as average) a
  group by b.kind) k
where p_stage_id is null or k.allowed is not null;
$$;

-- Returns whether a budget does not pay for one more attempt of a stage in the present window.
create function millrace.is_spent(p_stage millrace.stages) returns boolean
as $$
return exists (
  select from millrace.limited_stages m
  join millrace.limits l on l.id = m.limit_id and l.limits ? 'spending'
  cross join millrace.budgets_of(l, p_stage.id) b
  where m.stage_id = p_stage.id and b.is_spent);
$$;

-- Replaces the uses of each window by their sum, in one statement, and deletes windows that are
-- over. A pause is deleted ten minutes after its end: a pause that begins before extends it.
-- p_most: how many uses are looked at.
create function millrace.sum_uses(p_most int)
as $$
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
  where upper(o.during) <= v_now
    and (o.kind <> 'pause' or upper(o.during) <= v_now - interval '10 minutes')
  order by upper(o.during)
  limit p_most
  for update skip locked);
$$;
