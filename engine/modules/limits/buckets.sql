-- Buckets: what is left of a rate, for the whole limit or for each key

-- Returns the tokens that a limit's rate, or the rate of a key, has now.
-- p_key: '' means the whole limit; else '0' and the key.
-- tokens: infinity without a rate. is_whole: whether the bucket is full.
-- room: how many starts the bucket allows now, none in a pause.
-- opens_at: when the bucket allows a start again; null where it does now.
create function millrace.room_in(
  p_limit millrace.limits, p_key text,
  out tokens float8, out is_whole boolean, out room float8, out opens_at timestamptz
)
as $$
  v_rate jsonb := p_limit.limits -> case p_key when '' then 'rate' else 'key_rate' end;
  v_count float8 := (v_rate ->> 'count')::float8;
  v_seconds float8 := (v_rate ->> 'per_seconds')::float8;
  v_burst float8 := coalesce((v_rate ->> 'burst')::float8, v_count, 'infinity');
  v_paused_until timestamptz := (
    select max(upper(u.during))
    from (
      select o.during
      from millrace.limit_uses o
      where o.limit_id = p_limit.id
        and o.key = substr(p_key, 2)
        and o.kind = 'pause'
        and o.during @> v_now
        and (p_key <> '' or not p_limit.limits ? 'key_rate')
      -- Without the offset Postgres could look for the maximum among the windows of all limits.
      offset 0) u);

-- The absolute value fills the bucket also after the clock was set back.
tokens := least(v_burst, (
  select b.tokens + abs(extract(epoch from v_now - b.refilled_at)) * v_count / v_seconds
  from millrace.buckets b
  where b.limit_id = p_limit.id and b.key = p_key));
is_whole := tokens >= v_burst;
-- Adds a millionth, since the clock's rounding could otherwise make a whole token look too small.
room := case when v_paused_until is null then floor(tokens + 1e-6) else 0 end;
if room < 1 then
  opens_at := greatest(v_paused_until, v_now + make_interval(
    secs => greatest(1 - tokens, 0) * v_seconds / v_count));
end if;
$$;

-- Takes tokens for attempts from the rates of their stage and of their keys.
-- p_each: tokens for each attempt: 1 takes one, -1 returns one.
create function millrace.take_tokens(p_stage_id int, p_attempt_ids bigint[], p_each int)
as $$
insert into millrace.buckets (limit_id, key, tokens, refilled_at)
select l.id, t.key, r.tokens - p_each * t.many, v_now
from millrace.limited_stages m
join millrace.limits l on l.id = m.limit_id and l.limits ?| '{rate,key_rate}'
cross join lateral (
  select '' as key, cardinality(p_attempt_ids) as many
  where l.limits ? 'rate'
  union all
  select coalesce(a.concurrency_group, '0'), count(*)
  from millrace.attempts a
  where l.limits ? 'key_rate' and a.id = any (p_attempt_ids)
  group by 1) t
cross join millrace.room_in(l, t.key) r
where m.stage_id = p_stage_id and t.many > 0
order by l.id, t.key
on conflict on constraint buckets_pkey do update
set tokens = excluded.tokens, refilled_at = excluded.refilled_at;
$$;

-- Lists the shared limits, or their keys, that are paused since a service asked for patience.
-- key: null for a limit without a key rate. since, until: begin and end of the pause.
create view millrace.limit_pauses as
select l.name, case when l.limits ? 'key_rate' then u.key end as key,
  min(lower(u.during)) as since, max(upper(u.during)) as until
from millrace.limit_uses u
join millrace.limits l on l.id = u.limit_id
where u.kind = 'pause' and u.during @> v_now
group by 1, 2
order by 1, 2;
