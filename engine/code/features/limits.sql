-- Limits: how much of a stage may be in work, how fast, for which keys at once, and in which order.
--
-- The limits of a stage hold across all its workers, since the claim decides each of them. A stage
-- that declares none never comes here.
--
-- A limited claim passes the stage's limiter, one claim at a time, so that what it counts stays
-- true until it commits. A worker that records results in the same call holds entities, and
-- therefore never waits for the limiter; it is told to come again.
--
--   max_in_flight, concurrency   counted in in_flight (in-flight.sql)
--   rate                         a token bucket in the limiter's row
--   concurrency, priority        the queue is sorted into groups (sort-into-groups.sql), which have
--                                turns (group-turns.sql), by which a claim takes from them
--                                (claim-by-groups.sql)
--   back_pressure                no more is taken than a later stage has room for
--                                (back-pressure.sql)
--   shared                       limits over several stages (shared-limits.sql), passed after the
--                                stage's own
--
-- No step looks at the whole queue: a claim reads the groups whose turn it is and the rows that it
-- takes, and counts up to a limit. Whoever enqueues only inserts arrivals, which the next claim
-- reads, and waits for nobody.

-- Makes the caller the only one who claims at this stage until it commits; null when another does.
create or replace function millrace.pass_limiter(p_stage_id int, p_may_wait boolean)
returns millrace.limiters
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limiter millrace.limiters;
  v_timeout text := current_setting('lock_timeout');
begin
  if not pg_try_advisory_xact_lock(hashtext('millrace.limiter'), p_stage_id) then
    if not p_may_wait then
      return null;
    end if;
    begin
      perform set_config('lock_timeout', '2s', true);
      perform pg_advisory_xact_lock(hashtext('millrace.limiter'), p_stage_id);
      perform set_config('lock_timeout', v_timeout, true);
    exception
      when lock_not_available then
        return null;
    end;
  end if;
  select g.*
  into v_limiter
  from millrace.limiters g
  where g.stage_id = p_stage_id
  for update;
  if not found then
    insert into millrace.limiters (stage_id) values (p_stage_id) returning * into v_limiter;
  end if;
  return v_limiter;
end
$$;

-- Says what the token bucket holds now.
create or replace function millrace.tokens_of(p_rate jsonb, p_limiter millrace.limiters)
returns float8
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count float8 := (p_rate ->> 'count')::float8;
  v_seconds float8 := extract(epoch from millrace.now() - p_limiter.refilled_at);
begin
  return least(
    coalesce((p_rate ->> 'burst')::float8, v_count),
    coalesce(p_limiter.tokens, 'infinity')
      + greatest(v_seconds, 0) * v_count / (p_rate ->> 'per_seconds')::float8);
end
$$;

-- Says how many of p_wanted attempts max_in_flight, rate, back pressure and shared limits let a
-- stage take now. Where it may take none, wait_ms says when to ask again; null: not by waiting.
-- short_of: the shared limit but for which it might take more.
create or replace function millrace.room_at(
  p_stage millrace.stages,
  p_limiter millrace.limiters,
  p_wanted int,
  out room int,
  out wait_ms int,
  out short_of int)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limits jsonb := p_stage.limits;
  v_max int := (v_limits ->> 'max_in_flight')::numeric;
  v_tokens float8;
  v_shared record;
begin
  room := p_wanted;
  if v_max is not null then
    room := least(room, v_max - (
      select count(*)
      from (
        select from millrace.in_flight f
        where f.stage_id = p_stage.id
        limit v_max) f));
  end if;
  if room > 0 and v_limits ? 'rate' then
    v_tokens := millrace.tokens_of(v_limits -> 'rate', p_limiter);
    -- What the clock's rounding took away must not cost another round.
    room := least(room, floor(v_tokens + 1e-6));
    if room = 0 then
      wait_ms := ceil((1 - v_tokens) * 1000
        * (v_limits #>> '{rate,per_seconds}')::float8 / (v_limits #>> '{rate,count}')::float8);
    end if;
  end if;
  if room > 0 and v_limits ? 'back_pressure' then
    room := least(room, millrace.room_before_later(p_stage.id));
    if room = 0 then
      wait_ms := 1000;
    end if;
  end if;
  if room > 0 and v_limits ? 'shared' then
    v_shared := millrace.shared_room(p_stage, room);
    room := v_shared.room;
    wait_ms := v_shared.wait_ms;
    short_of := v_shared.short_of;
  end if;
end
$$;

-- Says whether a stage's limits would let a claim take something now, if it is queued.
create or replace function millrace.may_claim(p_stage millrace.stages) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limiter millrace.limiters;
begin
  select g.*
  into v_limiter
  from millrace.limiters g
  where g.stage_id = p_stage.id;
  if (millrace.room_at(p_stage, v_limiter, 1)).room <= 0 then
    return false;
  end if;
  return not p_stage.has_groups
    or exists (
      select from millrace.concurrency_groups g
      where g.stage_id = p_stage.id and g.turn is not null)
    or exists (
      select from millrace.concurrency_groups g
      where g.stage_id = p_stage.id and g.due_at <= millrace.now())
    or exists (select from millrace.arrivals a where a.stage_id = p_stage.id)
    or exists (
      select from millrace.attempts a
      where a.stage_id = p_stage.id
        and a.isolated
        and a.queue_at <= millrace.now()
        and a.state = 'queued'
        and coalesce(millrace.free_of_key(p_stage, a.concurrency_group) > 0, true));
end
$$;

-- define() waits for the claims under way at a pipeline's stages with limits, and keeps others out
-- until its transaction ends. It does so before it locks the table, which a claim that has passed a
-- limiter may be waiting for.
create or replace function millrace.lock_limiters(p_pipeline text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtext('millrace.limiter'), s.id)
  from (
    select s.id
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where p.name = p_pipeline and s.limits is not null
    order by s.id) s;
end
$$;

-- Claims as claim() does, for a stage with limits. When it takes nothing, wait_ms says after how
-- long to ask again; null: not by waiting.
create or replace function millrace.claim_limited(
  p_stage millrace.stages,
  p_worker millrace.workers,
  p_limit int,
  p_may_wait boolean,
  out token uuid,
  out attempt_ids bigint[],
  out entity_ids text[],
  out items millrace.claimed[],
  out wait_ms int)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limiter millrace.limiters;
  v_room record;
  v_claim record;
begin
  if p_limit < 1 then
    perform millrace.check_slots(p_stage.id, p_worker.id, 0);
    return;
  end if;
  -- The host's lock comes first, as claim() takes it, so that all have the same order.
  perform pg_advisory_xact_lock(hashtext('millrace.host'), hashtext(p_worker.host::text));
  v_limiter := millrace.pass_limiter(p_stage.id, p_may_wait);
  if v_limiter.stage_id is null then
    wait_ms := 50;
    return;
  end if;
  -- A definition that this claim waited for may have changed the limits.
  select s.* into p_stage from millrace.stages s where s.id = p_stage.id;
  if (p_stage.limits ? 'back_pressure' and not millrace.pass_back_pressure(p_stage.id))
    or (p_stage.limits ? 'shared' and not millrace.pass_shared(p_stage.id, p_may_wait)) then
    wait_ms := 50;
    return;
  end if;
  v_limiter.checked_to := millrace.check_slots(p_stage.id, p_worker.id, v_limiter.checked_to);
  v_room := millrace.room_at(p_stage, v_limiter, p_limit);
  wait_ms := v_room.wait_ms;
  if v_room.room > 0 and p_stage.has_groups then
    v_claim := millrace.claim_groups(p_stage, p_worker, v_room.room, v_limiter);
    v_limiter := v_claim.limiter;
    wait_ms := v_claim.wait_ms;
  elsif v_room.room > 0 then
    v_claim := millrace.claim(p_stage, p_worker, v_room.room);
    items := v_claim.items;
    perform millrace.note_in_flight(
      p_stage, v_claim.attempt_ids, null, v_claim.token, p_worker.id);
  end if;
  if v_room.room > 0 then
    token := v_claim.token;
    attempt_ids := v_claim.attempt_ids;
    entity_ids := v_claim.entity_ids;
  end if;
  perform millrace.save_limiter(p_stage, v_limiter, coalesce(cardinality(attempt_ids), 0),
    v_room.room, v_room.short_of);
end
$$;

-- A claim writes how far it has looked at its stage's limits, and what it took of token buckets.
-- p_room and p_short_of are what room_at() has told it, for the limits that the stage shares.
create or replace function millrace.save_limiter(
  p_stage millrace.stages,
  p_limiter millrace.limiters,
  p_taken int,
  p_room int default null,
  p_short_of int default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.limiters g
  set checked_to = p_limiter.checked_to,
    last_turn = p_limiter.last_turn,
    arrivals_to = p_limiter.arrivals_to,
    tokens = case
      when p_stage.limits ? 'rate'
        then millrace.tokens_of(p_stage.limits -> 'rate', p_limiter) - p_taken
      else g.tokens
    end,
    refilled_at = millrace.now()
  where g.stage_id = p_stage.id;
  if p_stage.limits ? 'shared' then
    perform millrace.take_shared(p_stage.id, p_taken);
    perform millrace.note_share(p_stage.id, p_room, p_short_of, p_taken);
  end if;
end
$$;

-- Gives back the slots, tokens and turns of attempts that a claim of this transaction took and does
-- not keep. The claim has passed the limiter, so nobody else writes its row or the stage's groups.
create or replace function millrace.give_back_limits(
  p_stage millrace.stages,
  p_kept bigint[],
  p_back bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.free_slots(p_back);
  update millrace.limiters g
  set tokens = g.tokens + cardinality(p_back)
  where g.stage_id = p_stage.id and p_stage.limits ? 'rate';
  if p_stage.limits ? 'shared' then
    perform millrace.take_shared(p_stage.id, -cardinality(p_back));
    perform millrace.take_of_keys(p_stage.id, array(
      select a.concurrency_group from millrace.attempts a where a.id = any (p_back)), -1);
  end if;
  if p_stage.has_groups then
    perform millrace.give_back_turns(p_stage, p_kept, p_back);
  end if;
end
$$;

-- Lets the token buckets of a pipeline's stages fill on after the clock was set back: a stage whose
-- bucket is empty is not woken, so that no claim would come to write that. A bucket that a claim
-- passes this moment is left to it.
create or replace function millrace.heed_clock(p_pipeline_id int) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update millrace.limiters g
  set refilled_at = millrace.now()
  from millrace.stages s
  where s.pipeline_id = p_pipeline_id
    and s.limits ? 'rate'
    and g.stage_id = s.id
    and case
      when g.refilled_at > millrace.now()
        then pg_try_advisory_xact_lock(hashtext('millrace.limiter'), g.stage_id)
    end
$$;

-- Deletes news of a stage's groups that no claim comes to read, since nothing is queued there: all
-- of it took its former result, or was left out. One statement, hence one snapshot: who queues
-- something commits it together with its news.
create or replace function millrace.drop_old_news(p_stage_id int) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  delete from millrace.arrivals n
  where (n.stage_id, n.concurrency_group, n.id) in (
    select o.stage_id, o.concurrency_group, o.id
    from millrace.arrivals o
    where o.stage_id = p_stage_id
      and not exists (
        select
        from millrace.attempts a
        where a.stage_id = p_stage_id and a.queue_at is not null and a.state = 'queued')
    order by o.concurrency_group, o.id
    limit 10000
    for update skip locked)
$$;

-- The sweep frees the slots of what was cancelled or lost, sorts what was queued without a group,
-- counts what was taken without a limit, and drops news that nobody reads.
create or replace function millrace.sweep_limits(p_pipeline_id int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
begin
  perform millrace.heed_clock(p_pipeline_id);
  for v_stage in
    select s.*
    from millrace.stages s
    where s.pipeline_id = p_pipeline_id and s.limits is not null
    order by s.id
  loop
    perform millrace.free_slots(array(
      select f.attempt_id
      from millrace.in_flight f
      where f.stage_id = v_stage.id
      order by f.attempt_id
      limit 5000));
    if v_stage.has_groups then
      perform millrace.adopt_attempts(v_stage, millrace.portion());
      perform millrace.drop_old_news(v_stage.id);
    end if;
    perform millrace.count_attempts(v_stage, 1000);
  end loop;
end
$$;
