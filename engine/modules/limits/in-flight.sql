-- In flight: a row for each attempt that counts against a limit of places
--
-- A claim inserts the rows of its attempts. The end of an attempt leaves its row alone: the next
-- claims and the sweep delete it.

-- Deletes what is no longer started or waiting from in_flight, and announces each freed key.
create function millrace.free_slots(p_attempt_ids bigint[])
as $$
begin
  with ended as (
    delete from millrace.in_flight f
    using (
      select o.attempt_id, o.token
      from millrace.in_flight o
      where o.attempt_id = any (p_attempt_ids)
        and not exists (
          select from millrace.attempts a
          where a.id = o.attempt_id and a.token = o.token and a.state in ('started', 'waiting'))
      for update of o skip locked) e
    where f.attempt_id = e.attempt_id and f.token = e.token
    returning f.stage_id, f.key
  )
  insert into millrace.arrivals (stage_id, concurrency_group)
  select distinct e.stage_id, '0' || e.key
  from ended e
  join millrace.stages s on s.id = e.stage_id and s.limits ? 'concurrency';
end
$$;

-- Frees the slots of ended attempts, and wakes stages that can go on without a live worker: theirs,
-- and those short of a limit shared with them. One whose lock somebody has, who may be queueing, is
-- woken in any case.
create function millrace.wakes_for_freed(p_attempt_ids bigint[]) returns int[]
as $$
declare
  v_stages int[] := array(
    select f.stage_id
    from millrace.in_flight f
    where f.attempt_id = any (p_attempt_ids)
    union
    select o.stage_id
    from millrace.in_flight f
    join millrace.limited_stages m on m.stage_id = f.stage_id
    join millrace.limited_stages o on o.limit_id = m.limit_id and o.short_at is not null
    where f.attempt_id = any (p_attempt_ids)
    order by 1);
  v_wakes int[] := '{}';
  v_stage_id int;
begin
  if cardinality(v_stages) > 0 then
    perform millrace.free_slots(p_attempt_ids);
  end if;
  foreach v_stage_id in array v_stages loop
    if not pg_try_advisory_xact_lock(hashtext('millrace.stage'), v_stage_id)
      or (millrace.live_workers(v_stage_id) = 0 and millrace.has_ready_work(v_stage_id)) then
      insert into millrace.wake_ups (stage_id, woken_at) values (v_stage_id, millrace.now());
      v_wakes := v_wakes || v_stage_id;
    end if;
  end loop;
  return v_wakes;
end
$$;

-- Says whether a stage with these limits counts what it has in flight.
create function millrace.counts_in_flight(p_limits jsonb) returns boolean
language sql immutable
as $$
  select coalesce(
    p_limits ?| array['max_in_flight', 'concurrency', 'back_pressure', 'shared'], false)
$$;

-- Lists so many attempts that are queued or in work at a stage, and so many that wait; null: all.
create function millrace.live_attempts(p_stage_id int, p_limit int) returns bigint[]
as $$
begin
  return array(
    (select a.id
     from millrace.attempts a
     where a.stage_id = p_stage_id and a.queue_at is not null
     order by a.queue_at, a.id
     limit p_limit)
    union all
    (select a.id
     from millrace.attempts a
     where a.stage_id = p_stage_id and a.deadline_at is not null
     limit p_limit));
end
$$;

-- Counts attempts of live_attempts() from before the limit; the next sweep does where a claim has
-- locked it.
create function millrace.count_attempts(p_stage millrace.stages, p_limit int)
as $$
declare
  v_ids bigint[];
begin
  if millrace.counts_in_flight(p_stage.limits) then
    v_ids := array(
      select a.id
      from unnest(millrace.live_attempts(p_stage.id, p_limit)) i
      join millrace.attempts a on a.id = i
      where a.state in ('started', 'waiting')
        and a.token is not null
        and not exists (
          select from millrace.in_flight f
          where f.attempt_id = a.id and f.token = a.token));
  end if;
  if cardinality(v_ids) > 0
    and millrace.lock_limit(p_stage.id, null, false) then
    insert into millrace.in_flight (attempt_id, token, stage_id, key, worker_id)
    select a.id, a.token, a.stage_id, coalesce(substr(a.concurrency_group, 2), ''), c.worker_id
    from unnest(v_ids) i
    join millrace.attempts a on a.id = i
    left join millrace.claims c on c.token = a.token
    where a.state in ('started', 'waiting') and a.token is not null;
  end if;
end
$$;

-- Deletes the slots of a stage that counts no more, but for what somebody holds.
create function millrace.forget_in_flight(p_stage_id int)
language sql
as $$
  delete from millrace.in_flight f
  using (
    select o.attempt_id, o.token
    from millrace.in_flight o
    where o.stage_id = p_stage_id
    for update skip locked) o
  where f.attempt_id = o.attempt_id and f.token = o.token
$$;
