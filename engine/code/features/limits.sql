-- Chapter 19: limits
--
-- How much of a stage may be in work, how fast, for which keys at once, and in which order. All limits of a stage hold
-- across all workers, since each is decided here, in the claim. A stage that declares none never comes to this chapter.
--
-- A limited claim passes the stage's gate: one at a time, so that what it counts stays true until it commits. A worker that
-- records results in the same call holds entities, and therefore never waits at the gate; it is told to come again.
--
--   max_in_flight, concurrency   in_flight has a row for each attempt taken. Who ends an attempt leaves its row alone: the
--                                next claims and the sweep delete rows of attempts that are no longer started or waiting.
--   rate                         a token bucket in the gate's row
--   concurrency, priority        the queue is sorted into groups (the next chapter), from which a claim takes by turns
--   back_pressure                nothing is taken while a later stage has more queued than its threshold
--
-- No step looks at the whole queue: a claim reads the groups whose turn it is, the rows it takes, and counts up to a limit.
-- Who enqueues only inserts arrivals, which the next claim reads, and waits for nobody.

create or replace function millrace.free_slots(p_attempt_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  with ended as (
    delete from millrace.in_flight f using (
      select o.attempt_id, o.token from millrace.in_flight o
      where o.attempt_id = any (p_attempt_ids)
        and not exists (select from millrace.attempts a where a.id = o.attempt_id and a.token = o.token and a.state in ('started', 'waiting'))
      for update of o skip locked) e
    where f.attempt_id = e.attempt_id and f.token = e.token
    returning f.stage_id, f.key
  )
  -- Whether its groups are parked nobody but a claim can tell, so each freed key is announced.
  insert into millrace.arrivals (stage_id, concurrency_group, due_at)
  select distinct e.stage_id, '*' || e.key, millrace.now() from ended e join millrace.stages s on s.id = e.stage_id and s.limits ? 'concurrency';
end
$$;
comment on function millrace.free_slots(bigint[]) is 'Takes those of these attempts out of in_flight that are no longer started or waiting.';

-- The stage's lock makes the look at the queue a safe one, as for a leaving worker (chapter claims): if somebody enqueues at this
-- moment, who may have found the stage full, it is woken to be on the safe side. Nothing is waited for while it is held.
create or replace function millrace.wakes_for_freed(p_attempt_ids bigint[]) returns int[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_stages int[] := array(select distinct f.stage_id from millrace.in_flight f where f.attempt_id = any (p_attempt_ids) order by 1);
  v_wakes int[] := '{}';
  v_stage_id int;
begin
  if cardinality(v_stages) > 0 then
    perform millrace.free_slots(p_attempt_ids);
  end if;
  foreach v_stage_id in array v_stages loop
    if not pg_try_advisory_xact_lock(hashtext('millrace.stage'), v_stage_id)
       or (millrace.live_workers(v_stage_id) = 0 and millrace.has_ready_work(v_stage_id)) then
      insert into millrace.wake_ups (stage_id, rung_at) values (v_stage_id, millrace.now());
      v_wakes := v_wakes || v_stage_id;
    end if;
  end loop;
  return v_wakes;
end
$$;
comment on function millrace.wakes_for_freed(bigint[]) is 'Frees the slots of attempts that have just ended; returns (and notes as woken) their own stages that can now go on and have no live worker.';

create or replace function millrace.pass_limiter(p_stage_id int, p_may_wait boolean) returns millrace.limiters
language plpgsql set search_path = pg_catalog, pg_temp
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
    exception when lock_not_available then
      return null;
    end;
  end if;
  select g.* into v_limiter from millrace.limiters g where g.stage_id = p_stage_id for update;
  if not found then
    insert into millrace.limiters (stage_id) values (p_stage_id) returning * into v_limiter;
  end if;
  return v_limiter;
end
$$;
comment on function millrace.pass_limiter(int, boolean) is 'Makes the caller the only one who claims at this stage until it commits; null when another does.';

create or replace function millrace.tokens_of(p_rate jsonb, p_limiter millrace.limiters) returns float8
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return least(coalesce((p_rate ->> 'burst')::float8, (p_rate ->> 'count')::float8), coalesce(p_limiter.tokens, 'infinity')
    + greatest(extract(epoch from millrace.now() - p_limiter.refilled_at)::float8, 0) * (p_rate ->> 'count')::float8 / (p_rate ->> 'per_seconds')::float8);
end
$$;
comment on function millrace.tokens_of(jsonb, millrace.limiters) is 'What the token bucket holds now.';

-- The stage that back pressure looks at: "stage" of the same pipeline or "millrace.stage".
create or replace function millrace.pressing_stage(p_stage millrace.stages) returns int
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text[] := string_to_array(p_stage.limits #>> '{back_pressure,stage}', '.');
begin
  if cardinality(v_path) = 1 then
    return (select s.id from millrace.stages s where s.pipeline_id = p_stage.pipeline_id and s.name = v_path[1]);
  end if;
  return (select s.id from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id where p.name = v_path[1] and s.name = v_path[2]);
end
$$;
comment on function millrace.pressing_stage(millrace.stages) is 'The later stage whose backlog holds this one back; null when there is none of that name any more.';

-- How many of p_wanted attempts the stage may take now; when none, after how many milliseconds to ask again (null: not by waiting).
create or replace function millrace.room_at(p_stage millrace.stages, p_limiter millrace.limiters, p_wanted int, out room int, out wait_ms int)
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_limits jsonb := p_stage.limits;
  v_max int := (v_limits ->> 'max_in_flight')::int;
  v_backlog int := (v_limits #>> '{back_pressure,backlog}')::int;
  v_pressing int;
  v_tokens float8;
begin
  room := p_wanted;
  if v_max is not null then
    room := least(room, v_max - (select count(*) from (select from millrace.in_flight f where f.stage_id = p_stage.id limit v_max) f));
  end if;
  if room > 0 and v_limits ? 'rate' then
    v_tokens := millrace.tokens_of(v_limits -> 'rate', p_limiter);
    -- What the clock's rounding took away must not cost another round.
    room := least(room, floor(v_tokens + 1e-6));
    if room = 0 then
      wait_ms := ceil((1 - v_tokens) * 1000 * (v_limits #>> '{rate,per_seconds}')::float8 / (v_limits #>> '{rate,count}')::float8);
    end if;
  end if;
  if room > 0 and v_backlog is not null then
    v_pressing := millrace.pressing_stage(p_stage);
    if (select count(*) from (
          select from millrace.attempts a where a.stage_id = v_pressing and a.queue_at is not null and a.state = 'queued' limit v_backlog + 1) a) > v_backlog then
      room := 0;
      wait_ms := 1000;
    end if;
  end if;
end
$$;
comment on function millrace.room_at(millrace.stages, millrace.limiters, int) is 'How many attempts max_in_flight, rate and back pressure let a stage take now.';

create or replace function millrace.may_claim(p_stage millrace.stages) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_limiter millrace.limiters;
  v_room int;
begin
  select g.* into v_limiter from millrace.limiters g where g.stage_id = p_stage.id;
  v_room := (millrace.room_at(p_stage, v_limiter, 1)).room;
  return v_room > 0 and (not p_stage.has_groups
    or exists (select from millrace.concurrency_groups l where l.stage_id = p_stage.id and l.turn is not null)
    or exists (select from millrace.concurrency_groups l where l.stage_id = p_stage.id and l.due_at <= millrace.now())
    or exists (select from millrace.arrivals a where a.stage_id = p_stage.id)
    or exists (select from millrace.attempts a where a.stage_id = p_stage.id and a.isolated and a.queue_at <= millrace.now() and a.state = 'queued'
      and coalesce(millrace.free_of_key(p_stage, a.concurrency_group) > 0, true)));
end
$$;
comment on function millrace.may_claim(millrace.stages) is 'Whether a stage''s limits would let a claim take something now, if it is queued.';

create or replace function millrace.note_in_flight(p_stage millrace.stages, p_attempt_ids bigint[], p_groups text[], p_token uuid, p_worker_id uuid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if p_stage.limits ?| array['max_in_flight', 'concurrency'] then
    insert into millrace.in_flight (attempt_id, token, stage_id, key, worker_id)
    select u.id, p_token, p_stage.id, coalesce(substr(u.concurrency_group, 2), ''), p_worker_id from unnest(p_attempt_ids, p_groups) u(id, concurrency_group);
  end if;
end
$$;
comment on function millrace.note_in_flight(millrace.stages, bigint[], text[], uuid, uuid) is 'Counts attempts just taken against max_in_flight and their keys.';

-- What a worker took who did not know of the limit, mostly before it was defined.
create or replace function millrace.uncounted_attempts(p_stage millrace.stages, p_limit int) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select a.id from (
      (select r.id from millrace.runs r where p_limit is null and r.pipeline_id = p_stage.pipeline_id and r.status = 'running')
      union
      select h.run_id from (
        select q.run_id from millrace.attempts q where p_limit is not null and q.stage_id = p_stage.id and q.queue_at is not null order by q.queue_at, q.id limit p_limit) h) r(id)
    join millrace.attempts a on a.run_id = r.id and a.stage_id = p_stage.id and a.state in ('started', 'waiting') and a.token is not null
    where p_stage.limits ?| array['max_in_flight', 'concurrency']
      and not exists (select from millrace.in_flight f where f.attempt_id = a.id and f.token = a.token));
end
$$;
comment on function millrace.uncounted_attempts(millrace.stages, int) is 'Attempts in work that count against max_in_flight or concurrency and are not counted: of all live runs, or of so many oldest in the queue.';

create or replace function millrace.count_attempts(p_attempt_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  insert into millrace.in_flight (attempt_id, token, stage_id, key, worker_id)
  select a.id, a.token, a.stage_id, coalesce(substr(a.concurrency_group, 2), ''), c.worker_id
  from unnest(p_attempt_ids) i join millrace.attempts a on a.id = i left join millrace.claims c on c.token = a.token
  where a.state in ('started', 'waiting') and a.token is not null;
end
$$;
comment on function millrace.count_attempts(bigint[]) is 'Counts uncounted attempts in work against the limits of their stage. The caller holds its gate.';

-- Before the table's lock, which a claim that holds a gate may be waiting for.
create or replace function millrace.lock_limiters(p_pipeline text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtext('millrace.limiter'), s.id)
  from (select s.id from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id where p.name = p_pipeline and s.limits is not null order by s.id) s;
end
$$;
comment on function millrace.lock_limiters(text) is 'Waits for the claims under way at a pipeline''s stages with limits, and keeps others out until the transaction ends.';

-- Deletes from in_flight what this worker has ended, and what has ended among the next few hundred of the stage.
create or replace function millrace.check_slots(p_stage_id int, p_worker_id uuid, p_checked_to bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_next bigint[] := array(select f.attempt_id from millrace.in_flight f where f.stage_id = p_stage_id and f.attempt_id > p_checked_to order by f.attempt_id limit 200);
begin
  perform millrace.free_slots(v_next || array(select f.attempt_id from millrace.in_flight f where f.worker_id = p_worker_id));
  return case when cardinality(v_next) < 200 then 0 else v_next[200] end;
end
$$;
comment on function millrace.check_slots(int, uuid, bigint) is 'Frees slots before a claim; returns up to which attempt it has looked.';

create or replace function millrace.claim_limited(p_stage millrace.stages, p_worker_id uuid, p_host uuid, p_limit int, p_may_wait boolean, out token uuid, out attempt_ids bigint[], out entity_ids text[], out items millrace.claimed[], out wait_ms int)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_limiter millrace.limiters;
  v_room record;
  v_claim record;
begin
  if p_limit < 1 then
    perform millrace.check_slots(p_stage.id, p_worker_id, 0);
    return;
  end if;
  -- First the host's lock, as claim() takes it: the order is the same for all.
  perform pg_advisory_xact_lock(hashtext('millrace.host'), hashtext(p_host::text));
  v_limiter := millrace.pass_limiter(p_stage.id, p_may_wait);
  if v_limiter.stage_id is null then
    wait_ms := 50;
    return;
  end if;
  -- A definition that this claim waited for may have changed the limits.
  select s.* into p_stage from millrace.stages s where s.id = p_stage.id;
  v_limiter.checked_to := millrace.check_slots(p_stage.id, p_worker_id, v_limiter.checked_to);
  v_room := millrace.room_at(p_stage, v_limiter, p_limit);
  wait_ms := v_room.wait_ms;
  if v_room.room > 0 and p_stage.has_groups then
    v_claim := millrace.claim_groups(p_stage, p_worker_id, p_host, v_room.room, v_limiter);
    v_limiter := v_claim.limiter;
    wait_ms := v_claim.wait_ms;
  elsif v_room.room > 0 then
    v_claim := millrace.claim(p_stage, p_worker_id, p_host, v_room.room);
    items := v_claim.items;
    perform millrace.note_in_flight(p_stage, v_claim.attempt_ids, null, v_claim.token, p_worker_id);
  end if;
  if v_room.room > 0 then
    token := v_claim.token;
    attempt_ids := v_claim.attempt_ids;
    entity_ids := v_claim.entity_ids;
  end if;
  update millrace.limiters g set checked_to = v_limiter.checked_to, last_turn = v_limiter.last_turn, arrivals_to = v_limiter.arrivals_to,
    tokens = case when p_stage.limits ? 'rate' then millrace.tokens_of(p_stage.limits -> 'rate', v_limiter) - coalesce(cardinality(attempt_ids), 0) else g.tokens end,
    refilled_at = millrace.now()
  where g.stage_id = p_stage.id;
end
$$;
comment on function millrace.claim_limited(millrace.stages, uuid, uuid, int, boolean) is 'claim() for a stage with limits. When it takes nothing, wait_ms says after how long to ask again; null: not by waiting.';

-- The claim has passed the stage's gate, so that nobody else writes this row or the stage's groups.
create or replace function millrace.give_back_limits(p_stage millrace.stages, p_kept bigint[], p_back bigint[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.free_slots(p_back);
  update millrace.limiters g
  set tokens = g.tokens + cardinality(p_back)
  where g.stage_id = p_stage.id and p_stage.limits ? 'rate';
  if p_stage.has_groups then
    perform millrace.give_back_turns(p_stage, p_kept, p_back);
  end if;
end
$$;
comment on function millrace.give_back_limits(millrace.stages, bigint[], bigint[]) is
  'Gives back the slots, tokens and turns of attempts that a claim of this transaction took and does not keep.';

create or replace function millrace.sweep_limits(p_pipeline_id int) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
  v_uncounted bigint[];
begin
  for v_stage in select s.* from millrace.stages s where s.pipeline_id = p_pipeline_id and s.limits is not null order by s.id loop
    perform millrace.free_slots(array(select f.attempt_id from millrace.in_flight f where f.stage_id = v_stage.id order by f.attempt_id limit 5000));
    if v_stage.has_groups then
      perform millrace.adopt_attempts(v_stage, 1000);
    end if;
    v_uncounted := millrace.uncounted_attempts(v_stage, 1000);
    if cardinality(v_uncounted) > 0 and pg_try_advisory_xact_lock(hashtext('millrace.limiter'), v_stage.id) then
      perform millrace.count_attempts(v_uncounted);
    end if;
  end loop;
end
$$;
comment on function millrace.sweep_limits(int) is 'Frees the slots of what was cancelled or lost, sorts what was queued without a group, and counts what was taken without a limit.';
