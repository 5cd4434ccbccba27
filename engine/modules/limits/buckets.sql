-- Buckets: how fast work begins, as a whole or for each key
--
-- A bucket is what is left of a rate, of a limit or of a key, which has a row while it has less
-- than its whole rate. A service that answers rate_limited and names a time pauses the shared rates
-- of the stage, or that of the refused key: a use of the limit in a window (uses.sql).

-- Counts the tokens of a bucket now: infinity without a rate, all of them without a bucket, or
-- where the clock was set back.
create function millrace.tokens_in(p_rate jsonb, p_bucket millrace.bucket)
returns float8
as $$
declare
  v_count float8 := (p_rate ->> 'count')::float8;
begin
  return case
    when v_count is null then 'infinity'
    else least(coalesce((p_rate ->> 'burst')::float8, v_count), coalesce(p_bucket.tokens
      + abs(extract(epoch from millrace.now() - p_bucket.refilled_at)) * v_count
        / (p_rate ->> 'per_seconds')::float8, 'infinity'))
  end;
end
$$;

-- Says how many whole tokens may be taken of a bucket now, or when there is one; none while a
-- shared limit, or a key of it, is paused.
create function millrace.room_in(
  p_rate jsonb, p_bucket millrace.bucket, p_limit_id int, p_key text,
  out room float8, out opens_at timestamptz
)
as $$
declare
  v_tokens float8 := millrace.tokens_in(p_rate, p_bucket);
  v_paused_until timestamptz := (
    select max(upper(u.during))
    from millrace.limit_uses u
    where u.limit_id = p_limit_id
      and u.key = p_key
      and u.kind = 'pause'
      and u.during @> millrace.now());
begin
  -- The clock's rounding must not cost another round.
  room := case when v_paused_until is null then floor(v_tokens + 1e-6) else 0 end;
  if room < 1 then
    opens_at := greatest(v_paused_until, millrace.now() + make_interval(
      secs => greatest(1 - v_tokens, 0) * (p_rate ->> 'per_seconds')::float8
        / (p_rate ->> 'count')::float8));
  end if;
end
$$;

-- Takes tokens of a bucket; a negative number gives them back.
create function millrace.bucket_after(p_rate jsonb, p_bucket millrace.bucket, p_taken int)
returns millrace.bucket
as $$
begin
  return row(millrace.tokens_in(p_rate, p_bucket) - p_taken, millrace.now())::millrace.bucket;
end
$$;

-- Which shared limits, or which keys of theirs, take nothing since a service asked for patience.
create view millrace.limit_pauses as
select l.name, case when l.limits ? 'key_rate' then u.key end as key,
  min(lower(u.during)) as since, max(upper(u.during)) as until
from millrace.limit_uses u
join millrace.limits l on l.id = u.limit_id
where u.kind = 'pause' and u.during @> millrace.now()
group by 1, 2
order by 1, 2;
