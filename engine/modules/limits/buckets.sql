-- Buckets: how fast work begins, as a whole or for each key, and how a refusal changes that
--
-- A bucket is what is left of a rate: of a limit (limits.bucket), or of a key of a limit with a
-- key_rate (limit_keys). A key has a row while it has less than its whole rate; the groups of one
-- with nothing left sleep (group-turns.sql). The holder of a limit's lock writes its buckets.
--
-- A refusal (rate_limited, or any failure that names a time to wait) halves the rate of the stage's
-- adaptive limits, or of the refused key where there is a key_rate. Nothing is taken until the time
-- that the service named. Then the rate creeps back by a tenth of the declared one a minute: it
-- follows from the bucket and the clock, so that nobody has to raise it.

-- Makes the bucket of a rate that nothing was taken of.
create function millrace.full_bucket() returns millrace.bucket
as $$
declare
  v_bucket millrace.bucket;
begin
  v_bucket.tokens := 'infinity';
  v_bucket.refilled_at := millrace.now();
  v_bucket.share := 1;
  return v_bucket;
end
$$;

-- Says which part of its rate a bucket has now.
create function millrace.share_now(p_bucket millrace.bucket) returns float8
as $$
begin
  if p_bucket.lowered_at is null then
    return 1;
  end if;
  return least(1, p_bucket.share + 0.1 * greatest(0, floor(extract(epoch from
    millrace.now() - greatest(p_bucket.lowered_at, p_bucket.refused_until)) / 60)));
end
$$;

-- Counts the tokens of a bucket now: infinity without a rate. It does not fill while a service has
-- asked for patience, and its rate and burst are those that it learned.
create function millrace.tokens_in(p_rate jsonb, p_bucket millrace.bucket)
returns float8
as $$
declare
  v_count float8 := (p_rate ->> 'count')::float8;
  v_share float8;
  v_seconds float8;
begin
  if v_count is null then
    return 'infinity';
  end if;
  v_share := millrace.share_now(p_bucket);
  v_seconds := extract(epoch from millrace.now() - p_bucket.refilled_at);
  return least(
    greatest(coalesce((p_rate ->> 'burst')::float8, v_count) * v_share, 1),
    p_bucket.tokens
      + greatest(v_seconds, 0) * v_count * v_share / (p_rate ->> 'per_seconds')::float8);
end
$$;

-- Says how many whole tokens may be taken of a bucket now; and where that is none, when there is
-- one.
create function millrace.room_in(
  p_rate jsonb, p_bucket millrace.bucket, out room float8, out opens_at timestamptz
)
as $$
declare
  v_now timestamptz := millrace.now();
  v_tokens float8 := millrace.tokens_in(p_rate, p_bucket);
begin
  -- What the clock's rounding took away must not cost another round.
  room := case when p_bucket.refused_until > v_now then 0 else floor(v_tokens + 1e-6) end;
  if room < 1 then
    opens_at := greatest(v_now, p_bucket.refused_until) + make_interval(
      secs => greatest(1 - v_tokens, 0) * (p_rate ->> 'per_seconds')::float8
        / ((p_rate ->> 'count')::float8 * millrace.share_now(p_bucket)));
  end if;
end
$$;

-- Takes tokens of a bucket; a negative number gives them back.
create function millrace.bucket_after(p_rate jsonb, p_bucket millrace.bucket, p_taken int)
returns millrace.bucket
as $$
begin
  p_bucket.tokens := millrace.tokens_in(p_rate, p_bucket) - p_taken;
  p_bucket.refilled_at := greatest(millrace.now(), p_bucket.refused_until);
  return p_bucket;
end
$$;

-- Moves the times of a bucket to the clock where that was set back: it fills, its rate creeps back,
-- and a refusal counts for as long as the service asked.
create function millrace.bucket_at_clock(p_bucket millrace.bucket)
returns millrace.bucket
as $$
declare
  v_now timestamptz := millrace.now();
  v_ahead interval := p_bucket.lowered_at - v_now;
begin
  if v_ahead > interval '0' then
    p_bucket.lowered_at := v_now;
    p_bucket.lowered_since := least(p_bucket.lowered_since, v_now);
    p_bucket.heed_from := p_bucket.heed_from - v_ahead;
    p_bucket.refused_until := p_bucket.refused_until - v_ahead;
  end if;
  p_bucket.refilled_at := least(p_bucket.refilled_at, greatest(v_now, p_bucket.refused_until));
  return p_bucket;
end
$$;

-- Makes a bucket forget what it learned.
create function millrace.bucket_unlearned(p_bucket millrace.bucket) returns millrace.bucket
immutable
as $$
begin
  p_bucket.share := 1;
  p_bucket.lowered_at := null;
  p_bucket.lowered_since := null;
  p_bucket.heed_from := null;
  p_bucket.refused_until := null;
  p_bucket.refused_by := null;
  return p_bucket;
end
$$;

-- Halves the rate of a bucket by a refusal, unless the refused call began before the last halving,
-- and closes it until the service's time is over. One token stays, to find out how the service is
-- by then.
create function millrace.bucket_lowered(
  p_rate jsonb, p_bucket millrace.bucket, p_refusal millrace.limit_refusals
) returns millrace.bucket
as $$
declare
  v_share float8 := millrace.share_now(p_bucket);
begin
  -- The clock may have been set back since.
  p_refusal.at := least(p_refusal.at, millrace.now());
  p_bucket.tokens := millrace.tokens_in(p_rate, p_bucket);
  if p_bucket.heed_from is null or p_refusal.at >= p_bucket.heed_from then
    p_bucket.tokens := least(p_bucket.tokens, 1);
    p_bucket.share := greatest(v_share / 2, 0.01);
    p_bucket.lowered_since := case
      when v_share < 1 then p_bucket.lowered_since
      else p_refusal.at
    end;
    p_bucket.lowered_at := p_refusal.at;
    p_bucket.heed_from := p_refusal.at + greatest(p_refusal.retry_after, interval '10 seconds');
    p_bucket.refused_by := p_refusal.refused_by;
  end if;
  p_bucket.refused_until := greatest(
    p_bucket.refused_until, p_refusal.at + p_refusal.retry_after);
  p_bucket.refilled_at := greatest(millrace.now(), p_bucket.refused_until);
  return p_bucket;
end
$$;

-- Notes the refusals of attempts that have ended, for each adaptive limit of their stage. Of a
-- batch, the one that asks for the longest, of each key where the limit has a rate for each.
create function millrace.note_refusals(p_stage_id int, p_items millrace.work[])
as $$
begin
  if not exists (select from unnest(p_items) i where i.error is not null) then
    return;
  end if;
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
end
$$;

-- Applies the refusals of a limit since it last learned, and ends its learning once it has its
-- whole rate back. The caller has locked the limit.
create function millrace.learn(p_limit_id int)
as $$
declare
  v_limit millrace.limits;
  v_refusal millrace.limit_refusals;
begin
  select l.* into v_limit from millrace.limits l where l.id = p_limit_id;
  v_limit.bucket := millrace.bucket_at_clock(v_limit.bucket);
  for v_refusal in
    with read as (
      delete from millrace.limit_refusals r
      where r.limit_id = p_limit_id
      returning r.*
    )
    select * from read order by at, id
  loop
    continue when v_limit.limits -> 'adaptive' is distinct from 'true';
    if v_refusal.key is not null and v_limit.limits ? 'key_rate' then
      insert into millrace.limit_keys as k (limit_id, key, bucket)
      values (p_limit_id, v_refusal.key,
        millrace.bucket_lowered(v_limit.limits -> 'key_rate', millrace.full_bucket(), v_refusal))
      on conflict on constraint limit_keys_pkey do update
      set bucket = millrace.bucket_lowered(
        v_limit.limits -> 'key_rate', millrace.bucket_at_clock(k.bucket), v_refusal);
    elsif v_limit.limits ? 'rate' then
      v_limit.bucket := millrace.bucket_lowered(
        v_limit.limits -> 'rate', v_limit.bucket, v_refusal);
    end if;
  end loop;
  if (v_limit.bucket).lowered_at is not null and millrace.share_now(v_limit.bucket) >= 1 then
    v_limit.bucket := millrace.bucket_unlearned(v_limit.bucket);
  end if;
  update millrace.limits l
  set bucket = v_limit.bucket
  where l.id = p_limit_id and l.bucket is distinct from v_limit.bucket;
end
$$;

-- Announces the sleeping groups of a limit's stages, or of one key of it, so that the next claim
-- looks at them: what they sleep for may be over.
create function millrace.wake_keys(p_limit_id int, p_key text)
language sql
as $$
  insert into millrace.arrivals (stage_id, concurrency_group)
  select g.stage_id, g.concurrency_group
  from millrace.limited_stages m
  join millrace.concurrency_groups g on g.stage_id = m.stage_id
  where m.limit_id = p_limit_id
    and g.due_at is not null
    and (p_key is null or substr(g.concurrency_group, 2) = p_key)
$$;

-- Which shared limits, and which keys of theirs, have less than their rate, since a service asked
-- for patience: who, since when, and until when nothing is taken. seconds: how long that is in all,
-- as far as is known. key is null for a limit as a whole.
create view millrace.learned_limits as
select l.name, v.key, round(millrace.share_now(v.bucket)::numeric, 3) as learned_share,
  (v.bucket).refused_by as learned_from, (v.bucket).lowered_since as learned_since,
  case when (v.bucket).refused_until > millrace.now() then (v.bucket).refused_until end
    as refused_until,
  extract(epoch from greatest((v.bucket).refused_until, millrace.now())
    - (v.bucket).lowered_since) as seconds
from millrace.limits l
cross join lateral (
  select null::text as key, l.bucket
  union all
  select k.key, k.bucket
  from millrace.limit_keys k
  where k.limit_id = l.id and (k.bucket).lowered_at is not null) v
where (v.bucket).lowered_at is not null and millrace.share_now(v.bucket) < 1
order by l.name, v.key nulls first;
