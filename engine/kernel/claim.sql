-- Claiming: starting due attempts of a stage under one lease, which is a row of claims

-- Returns the time after which a worker's last heartbeat must be for the worker to count as live.
create function millrace.alive_since() returns timestamptz
as $$
return millrace.now() - interval '15 seconds';
$$;

-- Returns how many live workers a stage has. Being volatile, the function reads a fresh snapshot.
create function millrace.live_workers(p_stage_id int) returns int
as $$
return (
  select count(*)
  from millrace.workers w
  where w.stage_id = p_stage_id and w.working and w.left_at is null
    and w.heartbeat_at > (select millrace.alive_since()));
$$;

-- Tells whether a stage has a due attempt that its limits let a claim take.
create function millrace.has_ready_work(p_stage_id int) returns boolean
as $$
return (
  select exists (
      select from millrace.attempts a
      where a.stage_id = s.id and a.queue_at <= v_now and a.state = 'queued')
    and (s.limits is null or millrace.hook_has_room(s))
  from millrace.stages s
  where s.id = p_stage_id);
$$;

-- Locks and returns the next due attempt of a stage that has to run alone on its host; null for
-- none.
-- p_first: only takes an attempt that was lost alone before, or one that has been due for a minute.
-- False: takes any isolated attempt.
-- p_retired: the worker has left, so its isolate gets no new request. Such a worker takes no
-- attempt that was lost alone.
create function millrace.next_alone(
  p_stage millrace.stages, p_first boolean, p_retired boolean
) returns bigint
as $$
return (
  select a.id
  from millrace.attempts a
  where a.stage_id = p_stage.id and a.isolated and a.queue_at <= v_now
    and a.state = 'queued'
    and (a.lost_alone or not p_first or a.queue_at < v_now - interval '1 minute')
    and not (a.lost_alone and p_retired)
    and (not p_stage.has_groups or millrace.hook_has_room(p_stage, a.concurrency_group))
  order by a.lost_alone desc, a.queue_at, a.id
  limit 1
  for update skip locked);
$$;

-- Claims up to p_limit due attempts under one lease: queued → started. An advisory lock lets
-- workers of one host claim one after the other. A host with attempts in work gets no isolated
-- attempt, and a host with an isolated attempt gets no other.
-- token: null where nothing was claimed.
-- items: null where the attempts were claimed group by group.
-- wait_ms: after how many milliseconds to ask again; null where waiting does not help.
create function millrace.claim(
  p_stage millrace.stages, p_worker millrace.workers, p_limit int,
  out token uuid, out attempt_ids bigint[], out entity_ids text[], out items millrace.claimed[],
  out wait_ms int
)
as $$
  v_now timestamptz;
  v_token uuid := gen_random_uuid();
  v_retired boolean := p_worker.left_at is not null;
  v_host record;
  v_alone bigint;

if p_limit < 1 then
  return;
end if;
perform pg_advisory_xact_lock(hashtext('millrace.host'), hashtext(p_worker.host::text));
v_now := millrace.now();
-- Where the stage has no isolated attempt, the host counts as busy. The search for one is then
-- skipped.
select count(*) > 0 or not exists (
    select from millrace.attempts a
    where a.stage_id = p_stage.id and a.isolated and a.queue_at <= v_now and a.state = 'queued')
  as busy, coalesce(bool_or(c.isolated), false) as alone
into v_host
from millrace.claims c
where c.host = p_worker.host and c.expires_at > v_now;
if v_host.alone then
  return;
end if;
if not v_host.busy then
  v_alone := millrace.next_alone(p_stage, not v_retired, v_retired);
end if;
if v_alone is null and not v_retired and p_stage.has_groups then
  select c.token, c.attempt_ids, c.wait_ms into token, attempt_ids, wait_ms
  from millrace.hook_claim_by_group(p_stage, p_worker, p_limit) c;
elsif v_alone is null and not v_retired then
  with picked as materialized (
    select a.id, a.ctid
    from millrace.attempts a
    where a.stage_id = p_stage.id and a.queue_at <= v_now and a.state = 'queued'
      and not a.isolated
    order by a.queue_at, a.id
    limit p_limit
    for update skip locked
  ), taken as (
    update millrace.attempts a
    set state = 'started', token = v_token, started_at = v_now
    from picked c where a.ctid = c.ctid
    returning a.id, a.run_id, a.retry_count, a.number,
      coalesce(a.submission_id, a.id) as submission
  )
  -- by key
  select array_agg(c.attempt_id), array_agg(c.entity_id), array_agg(c::millrace.claimed)
  into attempt_ids, entity_ids, items
  from (
    -- The columns stand in the order of the type. A constructor would cost a hundredth of a
    -- transition.
    select t.id as attempt_id, t.run_id, r.entity_id, r.trace_id, r.version_id, t.retry_count,
      t.submission, t.number, false as isolated
    from taken t
    cross join lateral (
      select o.entity_id, o.trace_id, o.version_id
      from millrace.runs o where o.id = t.run_id offset 0) r) c;
end if;
if v_alone is null and token is null and items is null and not v_host.busy
  and not v_retired then
  v_alone := millrace.next_alone(p_stage, false, false);
end if;
if v_alone is not null then
  update millrace.attempts a
  set state = 'started', token = v_token, started_at = v_now
  where a.id = v_alone;
  attempt_ids := array[v_alone];
  items := millrace.claimed_items(v_token, attempt_ids);
  entity_ids := array[items[1].entity_id];
end if;
-- hook_claim_by_group() has written the row of claims itself.
if items is null then
  return;
end if;
token := v_token;
insert into millrace.claims (
  token, worker_id, stage_id, host, expires_at, isolated, attempt_ids)
values (v_token, p_worker.id, p_stage.id, p_worker.host, v_now + p_stage.lease,
  v_alone is not null, attempt_ids);
$$;

-- Deletes a worker's claims that have no started attempt left. Returns whether it deleted any.
-- p_ended: how many attempts of the claim p_token this transaction has ended. If these are all of
-- them, the claim is deleted without a look at the attempts.
create function millrace.drop_claims(
  p_worker_id uuid, p_token uuid default null, p_ended int default null
) returns boolean
as $$
delete from millrace.claims c
where c.worker_id = p_worker_id
  and (c.token = p_token and cardinality(c.attempt_ids) = p_ended
    or not exists (
      select from millrace.attempts a
      where a.id = any (c.attempt_ids) and a.token = c.token and a.state = 'started'));
return found;
$$;

-- The attempts that are started under a claim.
create view millrace.started_attempts as
select c.worker_id, c.stage_id, c.expires_at, a.id, a.concurrency_group
from millrace.claims c
-- by key
cross join lateral (
  select t.id, t.concurrency_group
  from millrace.attempts t
  where t.id = any (c.attempt_ids) and t.token = c.token and t.state = 'started'
  offset 0) a;

-- Returns the attempts that are started under a claim of the worker.
create function millrace.attempts_in_work(p_worker_id uuid) returns bigint[]
as $$
return array(
  select a.id from millrace.started_attempts a where a.worker_id = p_worker_id);
$$;

-- Returns those of the attempts that are still started under the token, in the order of
-- p_attempt_ids.
create function millrace.claimed_items(p_token uuid, p_attempt_ids bigint[])
returns millrace.claimed[]
as $$
return array(
  select c::millrace.claimed
  from unnest(p_attempt_ids) with ordinality i(id, ordinal)
  cross join lateral (
    select a.id, a.run_id, r.entity_id, r.trace_id, r.version_id, a.retry_count,
      coalesce(a.submission_id, a.id) as submission, a.number, a.isolated
    from millrace.attempts a
    cross join lateral (select o.* from millrace.runs o where o.id = a.run_id offset 0) r
    where a.id = i.id and a.token = p_token and a.state = 'started'
    offset 0) c
  order by i.ordinal);
$$;
