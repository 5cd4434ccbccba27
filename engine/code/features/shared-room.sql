-- Shared limits: how much room a claim has under them

-- Makes the caller the only one who claims under the shared limits of a stage, until it commits;
-- false where another does, and it may not wait or has waited long enough. It has passed the
-- stage's own limiter, and passes these by their ids. It waits for less than a second, after which
-- Postgres would look for a deadlock: a migration may hold a limit and wait for the stage.
create or replace function millrace.pass_shared(p_stage_id int, p_may_wait boolean)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit_id int;
  v_timeout text := current_setting('lock_timeout');
begin
  for v_limit_id in
    select m.limit_id
    from millrace.limited_stages m
    where m.stage_id = p_stage_id
    order by m.limit_id
  loop
    continue when pg_try_advisory_xact_lock(hashtext('millrace.shared_limit'), v_limit_id);
    if not p_may_wait then
      return false;
    end if;
    begin
      perform set_config('lock_timeout', '800ms', true);
      perform millrace.lock_shared_limit(v_limit_id);
      perform set_config('lock_timeout', v_timeout, true);
    exception
      when lock_not_available then
        return false;
    end;
  end loop;
  perform millrace.learn(m.limit_id)
  from millrace.limited_stages m
  where m.stage_id = p_stage_id
    and exists (select from millrace.limit_refusals r where r.limit_id = m.limit_id);
  return true;
end
$$;

-- Says what the token bucket of a shared limit holds now: infinity without a rate. While a service
-- has asked for patience it does not fill; and its rate and its burst are those that it learned.
create or replace function millrace.bucket_of(p_limit millrace.shared_limits) returns float8
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rate jsonb := p_limit.limits -> 'rate';
  v_count float8 := (v_rate ->> 'count')::float8;
  v_share float8;
  v_seconds float8;
begin
  if v_count is null then
    return 'infinity';
  end if;
  v_share := millrace.share_of(p_limit);
  v_seconds := extract(epoch from millrace.now() - p_limit.refilled_at);
  return least(
    greatest(coalesce((v_rate ->> 'burst')::float8, v_count) * v_share, 1),
    p_limit.tokens
      + greatest(v_seconds, 0) * v_count * v_share / (v_rate ->> 'per_seconds')::float8);
end
$$;

-- Says how many attempts are in flight at all stages of a shared limit, up to a number.
create or replace function millrace.in_flight_under(p_limit_id int, p_most int) returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select count(*)
    from (
      select
      from millrace.limited_stages m
      join millrace.in_flight f on f.stage_id = m.stage_id
      where m.limit_id = p_limit_id
      limit p_most) f);
end
$$;

-- Says how many attempts of one stage are in flight, up to a number.
create or replace function millrace.in_flight_at(p_stage_id int, p_most int) returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select count(*)
    from (
      select from millrace.in_flight f
      where f.stage_id = p_stage_id
      limit p_most) f);
end
$$;

-- Says how many of p_wanted attempts of a stage one shared limit lets it take now. Where it may
-- take none, wait_ms says when to ask again. A gate takes nothing in work: only the rate is for it.
create or replace function millrace.room_under(
  p_limit millrace.shared_limits,
  p_stage millrace.stages,
  p_wanted int,
  out room int,
  out wait_ms int)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_max int := (p_limit.limits ->> 'max_in_flight')::numeric;
  v_rate jsonb := p_limit.limits -> 'rate';
  v_tokens float8;
  v_share record;
begin
  room := p_wanted;
  v_share := millrace.rivals_of(p_limit.id, p_stage.id);
  if p_stage.function_name is not null then
    if v_max is not null then
      room := least(room, v_max - millrace.in_flight_under(p_limit.id, v_max));
      if room > 0 and v_share.rivals > 1 then
        room := least(room, millrace.share_for(v_max, v_share.rivals, true)
          - millrace.in_flight_at(p_stage.id, v_max));
      end if;
    end if;
    if room > 0 and p_limit.limits ? 'spending' then
      room := millrace.room_in_budget(p_limit, p_stage, room);
    end if;
    -- Another stage may make room, which wakes nobody.
    wait_ms := case when room <= 0 then 1000 end;
  end if;
  if room > 0 and v_rate is not null then
    v_tokens := case
      when p_limit.refused_until > millrace.now() then 0
      else millrace.bucket_of(p_limit)
    end;
    -- What the clock's rounding took away must not cost another round.
    v_tokens := floor(v_tokens + 1e-6);
    room := least(room, millrace.share_for(v_tokens, v_share.rivals, v_share.is_next));
    if room = 0 and v_tokens > 0 then
      -- It is another stage's turn, which may have no worker at this moment.
      wait_ms := 1000;
    elsif room = 0 then
      -- A worker that is told of more than a day is gone long before.
      wait_ms := ceil(1000 * least(86400,
        greatest(extract(epoch from p_limit.refused_until - millrace.now()), 0)
          + greatest(1 - millrace.bucket_of(p_limit), 0) * (v_rate ->> 'per_seconds')::float8
            / ((v_rate ->> 'count')::float8 * millrace.share_of(p_limit))));
    end if;
  end if;
end
$$;

-- Says how many of p_wanted attempts all shared limits of a stage let it take now, as room_at()
-- does of its own, and which of them allows the least.
create or replace function millrace.shared_room(
  p_stage millrace.stages,
  p_wanted int,
  out room int,
  out wait_ms int,
  out short_of int)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit millrace.shared_limits;
  v_one record;
begin
  room := p_wanted;
  for v_limit in
    select l.*
    from millrace.limited_stages m
    join millrace.shared_limits l on l.id = m.limit_id
    where m.stage_id = p_stage.id
    order by l.id
  loop
    v_one := millrace.room_under(v_limit, p_stage, room);
    if v_one.room < room then
      short_of := v_limit.id;
    end if;
    room := v_one.room;
    wait_ms := v_one.wait_ms;
    exit when room <= 0;
  end loop;
end
$$;

-- A claim, or a gate, takes of the token buckets of a stage's shared limits what it took; a
-- negative number gives it back. It has passed them, so nobody else writes their rows.
create or replace function millrace.take_shared(p_stage_id int, p_taken int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.shared_limits l
  set tokens = millrace.bucket_of(l) - p_taken,
    refilled_at = greatest(millrace.now(), l.refused_until)
  from millrace.limited_stages m
  where m.stage_id = p_stage_id
    and l.id = m.limit_id
    and l.limits ? 'rate'
    -- A clock that was set back must not keep the bucket from filling.
    and (p_taken <> 0 or l.refilled_at > greatest(millrace.now(), l.refused_until));
end
$$;
