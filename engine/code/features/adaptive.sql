-- Shared limits: those that learn
--
-- A failure by which a service asks for patience (rate_limited, or any that names a time to wait)
-- halves the rate of the stage's adaptive limits: for all stages and workers at once, since the
-- next claim under the limit learns of it, whoever makes it. Nothing is taken until the time that
-- the service named is over. From then on the rate creeps back, by a tenth of what was declared a
-- minute. A limit with a rate for each key learns of the key that was refused, and leaves others
-- alone (limit-keys.sql). What it learned are columns of its row; its rate of today follows from
-- them and the clock, so that nobody has to raise it.

-- Says which part of its rate a shared limit has now.
create or replace function millrace.share_of(p_limit millrace.shared_limits) returns float8
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_limit.lowered_at is null then
    return 1;
  end if;
  return least(1, p_limit.share + 0.1 * greatest(0, floor(extract(epoch from
    millrace.now() - greatest(p_limit.lowered_at, p_limit.refused_until)) / 60)));
end
$$;

-- Notes that a service asked for patience, where a stage has an adaptive limit: insert-only, since
-- whoever ends attempts waits for no claim. Of a batch, the one that asks for the longest, of each
-- key where the limit has a rate for each.
create or replace function millrace.note_refusals(p_stage_id int, p_items millrace.work[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into millrace.limit_refusals (limit_id, key, at, retry_after, refused_by)
  select l.id, o.key, millrace.now(), make_interval(secs => o.seconds),
    format('%s.%s: %s', p.name, s.name, o.code)
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  join millrace.limited_stages m on m.stage_id = s.id
  join millrace.shared_limits l on l.id = m.limit_id
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

-- Halves the rate of a limit by a refusal, unless that is of a call that began before the last
-- halving; and takes nothing more until the service's time is over. What the bucket held is gone
-- but for one token, which finds out how the service is by then.
create or replace function millrace.lowered(
  p_limit millrace.shared_limits,
  p_refusal millrace.limit_refusals)
returns millrace.shared_limits
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_share float8 := millrace.share_of(p_limit);
begin
  -- The clock may have been set back since.
  p_refusal.at := least(p_refusal.at, millrace.now());
  p_limit.tokens := millrace.bucket_of(p_limit);
  if p_limit.heed_from is null or p_refusal.at >= p_limit.heed_from then
    p_limit.tokens := least(p_limit.tokens, 1);
    p_limit.share := greatest(v_share / 2, 0.01);
    p_limit.lowered_since := case
      when v_share < 1 then p_limit.lowered_since
      else p_refusal.at
    end;
    p_limit.lowered_at := p_refusal.at;
    p_limit.heed_from := p_refusal.at + greatest(p_refusal.retry_after, interval '10 seconds');
    p_limit.refused_by := p_refusal.refused_by;
  end if;
  p_limit.refused_until := greatest(
    p_limit.refused_until, p_refusal.at + p_refusal.retry_after);
  p_limit.refilled_at := greatest(millrace.now(), p_limit.refused_until);
  return p_limit;
end
$$;

-- Brings the times of a shared limit to the clock where that was set back: its bucket fills, its
-- rate creeps back, and a service is heeded for as long as it asked, from the clock's new time on.
create or replace function millrace.on_the_clock(p_limit millrace.shared_limits)
returns millrace.shared_limits
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_ahead interval := p_limit.lowered_at - v_now;
begin
  if v_ahead > interval '0' then
    p_limit.lowered_at := v_now;
    p_limit.lowered_since := least(p_limit.lowered_since, v_now);
    p_limit.heed_from := p_limit.heed_from - v_ahead;
    p_limit.refused_until := p_limit.refused_until - v_ahead;
  end if;
  p_limit.refilled_at := least(p_limit.refilled_at, greatest(v_now, p_limit.refused_until));
  return p_limit;
end
$$;

-- Makes a shared limit forget what it learned.
create or replace function millrace.whole(p_limit millrace.shared_limits)
returns millrace.shared_limits
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  p_limit.share := 1;
  p_limit.lowered_at := null;
  p_limit.lowered_since := null;
  p_limit.heed_from := null;
  p_limit.refused_until := null;
  p_limit.refused_by := null;
  return p_limit;
end
$$;

-- Reads the refusals that came for a limit since it last learned, and forgets what it learned
-- once it has its whole rate back. The caller has locked the limit.
create or replace function millrace.learn(p_limit_id int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit millrace.shared_limits;
  v_refusal millrace.limit_refusals;
begin
  select l.* into v_limit from millrace.shared_limits l where l.id = p_limit_id;
  v_limit := millrace.on_the_clock(v_limit);
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
      perform millrace.learn_of_key(v_limit, v_refusal);
    elsif v_limit.limits ? 'rate' then
      v_limit := millrace.lowered(v_limit, v_refusal);
    end if;
  end loop;
  if v_limit.lowered_at is not null and millrace.share_of(v_limit) >= 1 then
    v_limit := millrace.whole(v_limit);
  end if;
  update millrace.shared_limits l
  set (tokens, refilled_at, share, lowered_at, lowered_since, heed_from, refused_until, refused_by)
    = (v_limit.tokens, v_limit.refilled_at, v_limit.share, v_limit.lowered_at,
      v_limit.lowered_since, v_limit.heed_from, v_limit.refused_until, v_limit.refused_by)
  where l.id = p_limit_id;
end
$$;
