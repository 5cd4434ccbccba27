-- Shared limits: a rate for each key
--
-- A limit with a key_rate bounds how fast the attempts of one key begin, at all its stages
-- together. A stage's key is that of its limit concurrency, such as the host of a URL. A key has a
-- row while it has less than its whole rate; what a service refuses is learned of its key alone. A
-- key that has nothing left sends its groups to sleep (group-turns.sql), so that others have their
-- turns. Claims write the rows under the limit's lock.

-- Says how a shared limit is for one key: as a limit of its own, of which adaptive.sql and
-- bucket_of() know all. A key without a row (null) has its whole rate.
create or replace function millrace.keyed(
  p_limit millrace.shared_limits,
  p_key millrace.limit_keys)
returns millrace.shared_limits
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  p_limit.limits := jsonb_build_object('rate', p_limit.limits -> 'key_rate');
  p_limit.tokens := coalesce(p_key.tokens, 'infinity');
  p_limit.refilled_at := coalesce(p_key.refilled_at, millrace.now());
  p_limit.share := coalesce(p_key.share, 1);
  p_limit.lowered_at := p_key.lowered_at;
  p_limit.lowered_since := p_key.lowered_since;
  p_limit.heed_from := p_key.heed_from;
  p_limit.refused_until := p_key.refused_until;
  p_limit.refused_by := p_key.refused_by;
  return p_limit;
end
$$;

-- Writes what became of a limit as keyed() gave it.
create or replace function millrace.save_limit_key(p_limit millrace.shared_limits, p_key text)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update millrace.limit_keys k
  set (tokens, refilled_at, share, lowered_at, lowered_since, heed_from, refused_until, refused_by)
    = (p_limit.tokens, p_limit.refilled_at, p_limit.share, p_limit.lowered_at,
      p_limit.lowered_since, p_limit.heed_from, p_limit.refused_until, p_limit.refused_by)
  where k.limit_id = p_limit.id and k.key = p_key
$$;

-- Says how many attempts of a key the shared limits of a stage let begin now, infinity where none
-- has a rate for each key; and when there is room again where there is none.
create or replace function millrace.room_of_key(
  p_stage_id int,
  p_key text,
  out room float8,
  out opens_at timestamptz)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit millrace.shared_limits;
  v_key millrace.limit_keys;
  v_now timestamptz := millrace.now();
  v_tokens float8;
begin
  room := 'infinity';
  for v_limit in
    select l.*
    from millrace.limited_stages m
    join millrace.shared_limits l on l.id = m.limit_id
    where m.stage_id = p_stage_id and l.limits ? 'key_rate'
  loop
    select k.*
    into v_key
    from millrace.limit_keys k
    where k.limit_id = v_limit.id and k.key = p_key;
    v_limit := millrace.keyed(v_limit, v_key);
    v_tokens := millrace.bucket_of(v_limit);
    -- What the clock's rounding took away must not cost another round.
    room := least(room, case
      when v_limit.refused_until > v_now then 0
      else floor(v_tokens + 1e-6)
    end);
    opens_at := greatest(opens_at, greatest(v_now, v_limit.refused_until) + make_interval(
      secs => greatest(1 - v_tokens, 0) * (v_limit.limits #>> '{rate,per_seconds}')::float8
        / ((v_limit.limits #>> '{rate,count}')::float8 * millrace.share_of(v_limit))));
  end loop;
  if room >= 1 then
    opens_at := null;
  end if;
end
$$;

-- A claim takes from the rates of the keys what it took of their groups, each named once for each
-- attempt; p_each of -1 gives it back.
create or replace function millrace.take_of_keys(p_stage_id int, p_groups text[], p_each int)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into millrace.limit_keys as o (limit_id, key, tokens, refilled_at)
  select l.id, g.key, millrace.bucket_of(v.one) - g.taken,
    greatest(millrace.now(), k.refused_until)
  from (
    select coalesce(substr(n, 2), '') as key, p_each * count(*) as taken
    from unnest(p_groups) n
    group by 1) g
  join millrace.limited_stages m on m.stage_id = p_stage_id
  join millrace.shared_limits l on l.id = m.limit_id and l.limits ? 'key_rate'
  left join millrace.limit_keys k on k.limit_id = l.id and k.key = g.key
  cross join lateral (select millrace.keyed(l, k) as one) v
  order by l.id, g.key
  on conflict on constraint limit_keys_pkey do update
  set tokens = excluded.tokens, refilled_at = excluded.refilled_at
$$;

-- Announces the sleeping groups of a limit's stages, or of one key of it, so that the next claim
-- looks at them: what they sleep for may be over.
create or replace function millrace.wake_keys(p_limit_id int, p_key text) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into millrace.arrivals (stage_id, concurrency_group, due_at)
  select g.stage_id, g.concurrency_group, millrace.now()
  from millrace.limited_stages m
  join millrace.concurrency_groups g on g.stage_id = m.stage_id
  where m.limit_id = p_limit_id
    and g.due_at < 'infinity'
    and (p_key is null or substr(g.concurrency_group, 2) = p_key)
$$;

-- Learns a refusal of one key. The caller has locked the limit.
create or replace function millrace.learn_of_key(
  p_limit millrace.shared_limits,
  p_refusal millrace.limit_refusals)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key millrace.limit_keys;
begin
  insert into millrace.limit_keys (limit_id, key) values (p_limit.id, p_refusal.key)
  on conflict on constraint limit_keys_pkey do nothing;
  select k.*
  into v_key
  from millrace.limit_keys k
  where k.limit_id = p_limit.id and k.key = p_refusal.key;
  perform millrace.save_limit_key(
    millrace.lowered(millrace.on_the_clock(millrace.keyed(p_limit, v_key)), p_refusal),
    p_refusal.key);
end
$$;

-- Brings the keys of a limit to the clock where that was set back, and forgets those that have
-- their whole rate. The caller has locked the limit.
create or replace function millrace.sweep_limit_keys(p_limit_id int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_ahead record;
begin
  for v_ahead in
    select k.key, millrace.keyed(l, k) as one
    from millrace.limit_keys k
    join millrace.shared_limits l on l.id = k.limit_id
    where k.limit_id = p_limit_id
      and (k.lowered_at > v_now or k.refilled_at > greatest(v_now, k.refused_until))
    order by k.key
  loop
    perform millrace.save_limit_key(millrace.on_the_clock(v_ahead.one), v_ahead.key);
    perform millrace.wake_keys(p_limit_id, v_ahead.key);
  end loop;
  delete from millrace.limit_keys k
  where k.limit_id = p_limit_id
    and (
      select not l.limits ? 'key_rate'
        or (millrace.share_of(v) >= 1 and millrace.bucket_of(v) >= coalesce(
          l.limits #>> '{key_rate,burst}', l.limits #>> '{key_rate,count}')::float8)
      from millrace.shared_limits l
      cross join lateral millrace.keyed(l, k) v
      where l.id = p_limit_id);
end
$$;

-- Forgets what a shared limit has learned, of one key where that is named, and wakes its stages;
-- false where there was nothing. The caller has locked the limit.
create or replace function millrace.forget_refusals(p_limit millrace.shared_limits, p_key text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_keys bigint;
begin
  perform millrace.learn(p_limit.id);
  select l.* into p_limit from millrace.shared_limits l where l.id = p_limit.id;
  update millrace.limit_keys k
  set tokens = 'infinity', refilled_at = millrace.now(), share = 1, lowered_at = null,
    lowered_since = null, heed_from = null, refused_until = null, refused_by = null
  where k.limit_id = p_limit.id
    and k.lowered_at is not null
    and (p_key is null or k.key = p_key);
  get diagnostics v_keys = row_count;
  if v_keys = 0 and (p_key is not null or p_limit.lowered_at is null) then
    return false;
  end if;
  if p_key is null then
    p_limit := millrace.whole(p_limit);
  end if;
  perform millrace.wake_keys(p_limit.id, p_key);
  perform millrace.set_shared_limit(p_limit, p_limit.limits);
  return true;
end
$$;

-- Raises MR001 unless the stages under a limit with a rate for each key have one.
create or replace function millrace.check_key_rate(p_name text, p_limits jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_without text;
begin
  v_without := (
    select string_agg(p.name || '.' || s.name, ', ' order by s.id)
    from millrace.shared_limits l
    join millrace.limited_stages m on m.limit_id = l.id
    join millrace.stages s on s.id = m.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    where l.name = p_name
      and p_limits ? 'key_rate'
      and not s.limits ? 'concurrency');
  if v_without is not null then
    raise exception 'shared limit %: limits.key_rate needs a key, but % has no limits.concurrency',
      p_name, v_without
      using errcode = 'MR001', hint = 'Set limits.concurrency at each of these stages: its column '
        || 'is the key.';
  end if;
end
$$;

create or replace view millrace.learned_limits as
select l.name, v.key, round(millrace.share_of(v.one)::numeric, 3) as learned_share,
  (v.one).refused_by as learned_from, (v.one).lowered_since as learned_since,
  case when (v.one).refused_until > millrace.now() then (v.one).refused_until end as refused_until,
  extract(epoch from greatest((v.one).refused_until, millrace.now()) - (v.one).lowered_since)
    as seconds
from millrace.shared_limits l
cross join lateral (
  select null::text as key, l as one
  union all
  select k.key, millrace.keyed(l, k)
  from millrace.limit_keys k
  where k.limit_id = l.id and k.lowered_at is not null) v
where millrace.share_of(v.one) < 1
order by l.name, v.key nulls first;
comment on view millrace.learned_limits is
  'Which shared limits, and which keys of theirs, have less than their rate, since a service asked '
  'for patience: who, since when, and until when nothing is taken. seconds: how long that is in '
  'all, as far as is known. key is null for a limit as a whole.';
