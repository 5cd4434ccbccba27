-- The calls of a worker
--
-- A worker signs on with its first claim. Each millrace_complete() records results and claims the
-- next batch. A timer renews the leases, and millrace_leave() signs the worker off. A call that
-- repeats the last number gets the same batch again.
--
-- The plan of a public function holds for all functions that it calls. It allows only look-ups by
-- an index, planned once a connection, since a queue's statistics are always wrong.

-- Claims up to p_limit attempts for a worker. The first call signs the worker on.
-- p_host: the isolate or process of the worker.
-- p_seq: the number of the call, from 1. A repeated number repeats the answer.
create function public.millrace_claim(
  p_pipeline text, p_stage text, p_worker uuid, p_host uuid, p_seq int, p_limit int
) returns json
as $$
  v_stage millrace.stages;
  v_worker millrace.workers;
  v_release text := left(split_part(split_part(
    current_setting('request.headers', true), '"x-millrace-release":"', 2), '"', 1), 100);
  v_known jsonb;

if p_worker is null or p_host is null or p_seq is null
  or (p_limit between 0 and 1000) is not true then
  raise exception
    'MR002: p_worker, p_host and p_seq must be given and p_limit be from 0 to 1000; '
    'p_limit is %', coalesce(p_limit::text, 'null')
    using hint = 'Send a uuid for the worker and one for its process, '
      'a sequence number from 1, and the number of attempts to claim.';
end if;
-- Two workers sign on one after the other, so that they never exceed max_workers together. The
-- stage and the worker are read under the lock. While this call waits for the lock, the first try
-- of a repeated call may sign the worker on, or a person may pause the stage.
if p_seq = 1 or not exists (select from millrace.workers w where w.id = p_worker) then
  perform pg_advisory_xact_lock(
    hashtext('millrace.sign_on'), hashtext(concat_ws('.', p_pipeline, p_stage)));
end if;
v_stage := millrace.stage_named(p_pipeline, p_stage);
v_known := coalesce(v_stage.seen -> 'releases', '[]');
select w.* into v_worker from millrace.workers w where w.id = p_worker for update;
if v_worker.id is null then
  -- A worker's arrival answers all wake-ups of its stage, even where the worker is refused.
  delete from millrace.wake_ups r
  where r.id in (
    select u.id from millrace.wake_ups u
    where u.stage_id = v_stage.id for update skip locked);
  if millrace.live_workers(v_stage.id) >= v_stage.max_workers then
    return millrace.claim_answer(millrace.call_of(null, v_stage), 'refused',
      format('the stage has its maximum of live workers, %s', v_stage.max_workers),
      '[]', '{}', null);
  end if;
  insert into millrace.workers (id, stage_id, host, last_seq, heartbeat_at)
  values (p_worker, v_stage.id, p_host, p_seq - 1, millrace.now())
  returning * into v_worker;
  -- Writes the moment at which a new release begins to work at the stage, and keeps the 20 newest
  -- releases. Where another transaction has locked the stage's row, the next worker that signs on
  -- writes the release.
  update millrace.stages s
  set seen = coalesce(s.seen, '{}') || jsonb_build_object('releases', jsonb_path_query_array(
    jsonb_build_object('release', v_release, 'at', v_now) || v_known, '$[0 to 19]'))
  where v_release <> '' and not v_known @> jsonb_build_array(
      jsonb_build_object('release', v_release))
    and s.id in (
      select o.id from millrace.stages o where o.id = v_stage.id for update skip locked);
end if;
if v_worker.stage_id <> v_stage.id then
  raise exception 'MR006: worker % signed on for another stage', p_worker
    using hint = 'Use a new worker id for each stage and each drain.';
end if;
return millrace.claim_next(
  millrace.call_of(v_worker, v_stage), p_seq, p_limit, null, '{}');
$$;

-- Records the outcomes of a worker's attempts and claims up to p_limit others.
-- p_seq: the number of the call. A repeated number repeats the answer.
-- p_items: a list of {attempt, token, outcome, …}, 1,000 at most.
-- p_goodbye: signs the worker off where nothing was claimed and no work is left.
create function public.millrace_complete(
  p_worker uuid, p_seq int, p_items json, p_limit int, p_goodbye boolean default false
) returns json
as $$
  v_worker millrace.workers;
  v_stage millrace.stages;
  v_items millrace.work[];
  v_done record;
  v_dropped boolean;

-- Gates with limits may pass rows: no user keeps this transaction open.
perform set_config('millrace.commits_soon', 'on', true);
if (p_limit between 0 and 1000) is not true then
  raise exception 'MR002: p_limit is %, but must be from 0 to 1000', coalesce(p_limit::text, 'null')
    using hint = 'Send the number of attempts to claim next, 0 for none.';
end if;
select w.* into v_worker from millrace.workers w
where w.id = p_worker for update;
if not found then
  raise exception 'MR006: there is no worker %', coalesce(p_worker::text, 'null')
    using hint = 'Call millrace_claim first; it signs the worker on.';
end if;
v_items := millrace.parse_items(p_items, 'attempt');
v_done := millrace.record_items(v_items);
v_worker.in_work := case
  when v_done.uniform then greatest(0, v_worker.in_work - cardinality(v_items))
  else cardinality(millrace.attempts_in_work(p_worker))
end;
select s.* into v_stage from millrace.stages s where s.id = v_worker.stage_id;
if v_stage.kind in ('agent', 'map') then
  perform millrace.hook_reported(v_stage, v_done.verdicts);
end if;
v_dropped := millrace.drop_claims(p_worker,
  case when v_done.uniform then v_items[1].token end, cardinality(v_items));
return millrace.claim_next(millrace.call_of(v_worker, v_stage), p_seq, p_limit,
  v_done.verdicts, v_done.ready, p_goodbye is true);
$$;

-- Repeats the answer to a worker's last call. May wake a function twice. A row may have grown
-- since; attempts that no longer fit into the batch are reported as released.
create function millrace.answer_again(p_call millrace.call, p_verdicts json) returns json
as $$
  v_worker millrace.workers := p_call.worker;
  v_stage millrace.stages := p_call.stage;
  v_items millrace.claimed[] := millrace.claimed_items(v_worker.last_token, (
    select c.attempt_ids from millrace.claims c where c.token = v_worker.last_token));
  v_filled record;

v_filled := millrace.fill_batch(v_stage, v_worker.last_token, v_items,
  array(select i.entity_id from unnest(v_items) i),
  millrace.batch_bytes());
if v_filled.kept < cardinality(v_items) then
  perform millrace.record_items(millrace.parse_items((
    select json_agg(json_build_object(
      'attempt', i.attempt_id, 'token', v_worker.last_token, 'outcome', 'released'))
    from unnest(v_filled.p_items[v_filled.kept + 1:]) i), 'attempt'));
end if;
update millrace.workers w set heartbeat_at = v_now where w.id = v_worker.id;
return millrace.claim_answer(p_call,
  case when v_filled.kept = 0 then 'empty' else 'working' end,
  'repeated answer', v_filled.batch, array(
    select distinct f.stage_id
    from millrace.version_stages f
    -- The first call has posted to processes of the project itself.
    join millrace.stages s on s.id = f.stage_id and s.host is null
    where v_stage.id = any (f.needs) and millrace.has_ready_work(f.stage_id)), p_verdicts);
$$;

-- Claims for a worker's next call, records the call for a repeat, and wakes a further worker where
-- more work is due. A worker that has left stays so; the slots that it frees may need another
-- worker.
-- p_seq: the number of the call.
-- p_verdicts: the answer to the call's items; null for millrace_claim().
-- p_ready: the stages that got work by the call.
-- p_goodbye: signs the worker off where nothing was claimed and no work is left.
create function millrace.claim_next(
  p_call millrace.call, p_seq int, p_limit int, p_verdicts json, p_ready int[],
  p_goodbye boolean default false
) returns json
as $$
  v_stage millrace.stages := p_call.stage;
  v_worker millrace.workers := p_call.worker;
  v_claim record;
  v_out record;
  v_batch json := '[]';
  v_kept int := 0;
  v_cut boolean := false;
  v_left boolean;
  v_wake int[] := array_remove(p_ready, v_stage.id);

if p_seq is not distinct from v_worker.last_seq then
  return millrace.answer_again(p_call, p_verdicts);
elsif p_seq is distinct from v_worker.last_seq + 1 then
  raise exception 'MR006: p_seq is %, but the last call of this worker was %',
    coalesce(p_seq::text, 'null'), v_worker.last_seq
    using hint = 'Count the claim and complete calls of a worker from 1 and '
      'repeat a number only to repeat a call.';
end if;
v_claim := millrace.claim_allowed(p_call, p_limit, p_verdicts is null);
if v_claim.token is not null then
  v_out := millrace.hand_out(p_call, v_claim.token, v_claim.items, v_claim.entity_ids);
  v_batch := v_out.batch;
  v_kept := v_out.kept;
  v_cut := v_out.cut;
  -- Where no attempt was kept, the rows of all attempts are gone.
  v_claim.token := case when v_kept > 0 then v_claim.token end;
end if;
-- Behind a full claim there may be work for one more worker. An isolated attempt fills its host, so
-- other work needs another host. has_ready_work() comes last, since its index search passes over
-- all started attempts.
if (case
    when v_worker.left_at is not null then millrace.has_ready_work(v_stage.id)
    when v_claim.taken >= p_limit or v_cut or (v_claim.items[1]).isolated
      then not exists (
        select from millrace.wake_ups r
        where r.stage_id = v_stage.id
          and r.woken_at > v_now - interval '2 seconds')
        and v_stage.max_workers > millrace.live_workers(v_stage.id)
        and millrace.has_ready_work(v_stage.id)
  end) then
  v_wake := v_wake || v_stage.id;
end if;
if v_wake <> '{}' then
  v_wake := millrace.stages_to_wake(
    v_wake, case when v_worker.left_at is null then v_stage.id end);
end if;
-- Comes after the wake-ups, so that a worker which has the stage's lock exclusively waits for no
-- other lock.
v_left := p_goodbye and v_claim.token is null and v_claim.wait_ms is null
  and not millrace.must_stay(v_worker);
update millrace.workers w
set last_seq = p_seq, last_token = v_claim.token, heartbeat_at = v_now,
  left_at = case when v_left then v_now else w.left_at end,
  leave_tries = case when v_claim.token is null then w.leave_tries else 0 end,
  in_work = v_worker.in_work + v_kept, taken = w.taken + v_kept
where w.id = v_worker.id;
return millrace.claim_answer(p_call,
  case when not p_call.open then 'refused' when v_claim.token is null then 'empty'
    else 'working' end,
  case when v_stage.bypassed then 'the stage is bypassed'
    when not p_call.open then 'the stage or its pipeline is switched off' end,
  v_batch, v_wake, p_verdicts, v_claim.wait_ms, v_cut, v_left);
$$;

-- Claims as many attempts as the stage's slots, its limits and quotas allow.
-- p_may_wait: the call has no rows locked yet, so it may wait for locks.
-- token: null where nothing was claimed.
-- taken: how many attempts the claim took, those included that a quota put back.
-- wait_ms: after how many milliseconds to ask again; null where waiting does not help.
create function millrace.claim_allowed(
  p_call millrace.call, p_limit int, p_may_wait boolean,
  out token uuid, out entity_ids text[], out items millrace.claimed[], out taken int,
  out wait_ms int
)
as $$
  v_stage millrace.stages := p_call.stage;
  v_limit int := case when p_call.open then p_limit else 0 end;
  v_free record;

-- Rows in work are added up in two cases: where the stage has a concurrency, which may be no
-- multiple of the batch size, or where a worker that has left still finishes its batch.
if v_limit > 0 and (v_stage.concurrency is not null or exists (
    select from millrace.workers w
    where w.stage_id = v_stage.id and w.working and w.left_at is not null
      and w.heartbeat_at > (select millrace.alive_since()))) then
  v_free := millrace.free_slots(v_stage, p_call.worker, p_may_wait);
  v_limit := least(v_limit, v_free.slots);
end if;
if v_limit = 0 and p_limit > 0 and p_call.open then
  wait_ms := v_free.wait_ms;
elsif v_stage.limits is null and not v_stage.has_quota then
  select c.token, c.entity_ids, c.items, cardinality(c.attempt_ids)
  into token, entity_ids, items, taken
  from millrace.claim(v_stage, p_call.worker, v_limit) c;
else
  select c.* into token, entity_ids, items, taken, wait_ms
  from millrace.hook_claim(v_stage, p_call.worker, v_limit, p_may_wait) c;
end if;
$$;

-- Returns how many slots of a stage a worker may fill now. An advisory lock lets one claim at a
-- time count and fill them.
-- p_may_wait: waits for the lock; false returns no slots where another claim has it.
-- wait_ms: after how many milliseconds to ask again; null where slots do not become free soon.
create function millrace.free_slots(
  p_stage millrace.stages, p_worker millrace.workers, p_may_wait boolean,
  out slots int, out wait_ms int
)
as $$
  v_others record;

if p_worker.left_at is not null then
  -- An isolated attempt may exceed the slots by one for a moment.
  slots := 1;
  return;
elsif p_may_wait then
  perform pg_advisory_xact_lock(hashtext('millrace.slots'), p_stage.id);
elsif not pg_try_advisory_xact_lock(hashtext('millrace.slots'), p_stage.id) then
  -- The call still has rows locked, so it must not wait for the lock.
  slots := 0;
  wait_ms := 50;
  return;
end if;
select coalesce(sum(w.in_work), 0) as in_work, bool_or(w.left_at is not null) as any_leaving
into v_others
from millrace.workers w
where w.stage_id = p_stage.id and w.working and w.id <> p_worker.id
  and w.heartbeat_at > (select millrace.alive_since());
slots := greatest(0, coalesce(p_stage.concurrency, p_stage.batch_size * p_stage.max_workers)
  - p_worker.in_work - v_others.in_work);
if slots = 0 and v_others.any_leaving then
  wait_ms := 100;
end if;
$$;

-- Builds the batch of a claim and writes onto its rows that they are started. Attempts for which
-- the batch's bytes leave no room go back into the queue, and their tokens back to the limits.
-- kept: how many attempts the batch has.
-- cut: whether some were put back.
create function millrace.hand_out(
  p_call millrace.call, p_token uuid, p_items millrace.claimed[], p_entity_ids text[],
  out batch json, out kept int, out cut boolean
)
as $$
  v_stage millrace.stages := p_call.stage;
  v_ids bigint[];
  v_back bigint[];
  v_is_projected boolean;

select f.* into p_items, p_entity_ids, batch, kept
from millrace.fill_batch(v_stage, p_token, p_items, p_entity_ids,
  millrace.batch_bytes()) f;
cut := kept < cardinality(p_items);
if cut then
  v_ids := array(select i.attempt_id from unnest(p_items[:kept]) i);
  v_back := array(select i.attempt_id from unnest(p_items[kept + 1:]) i);
  update millrace.attempts a
  set state = 'queued', token = null, started_at = null
  where a.id = any (v_back) and a.token = p_token and a.state = 'started';
  update millrace.claims c
  set attempt_ids = v_ids
  where c.token = p_token;
  if v_stage.limits is not null then
    perform millrace.hook_put_back(v_stage, v_ids, v_back);
  end if;
end if;
v_is_projected := millrace.project_guarded(v_stage, 'started', null, p_entity_ids[:kept]);
$$;

-- Builds the answer to millrace_claim() and millrace_complete().
-- p_cut: the bytes of the batch left no room for all claimed attempts.
-- p_left: the worker was signed off.
create function millrace.claim_answer(
  p_call millrace.call, p_status text, p_reason text, p_batch json, p_wake int[], p_verdicts json,
  p_wait_ms int default null, p_cut boolean default false, p_left boolean default false
) returns json
as $$
  v_stage millrace.stages := p_call.stage;

return json_build_object(
  'status', p_status,
  'reason', p_reason,
  'lease_ms', (extract(epoch from v_stage.lease) * 1000)::int,
  'stage', json_build_object(
    'batch_size', v_stage.batch_size,
    'timeout_ms', (extract(epoch from v_stage.timeout) * 1000)::int,
    'result_limit_bytes', v_stage.result_limit_bytes,
    'row_cpu_ms', p_call.row_cpu_ms),
  'batch', p_batch,
  'wake', case when p_wake <> '{}' then millrace.wake_list(p_wake) else '[]' end,
  'items', p_verdicts,
  'wait_ms', p_wait_ms,
  'sweep_due', p_call.sweep_due,
  'cut', p_cut,
  'left', p_left,
  'collect', case when v_stage.kind = 'map' or p_call.is_child
    then millrace.parents_to_collect('{}') else '{}' end);
$$;

-- Returns up to 20 fan-outs that have child tallies.
-- p_except: fan-outs that are left out.
create function millrace.parents_to_collect(p_except bigint[]) returns bigint[]
as $$
return array(
  select distinct t.fan_out_id
  from (
    select t.fan_out_id
    from millrace.child_tallies t
    where t.fan_out_id <> all (p_except)
    limit 1000
  ) t
  limit 20);
$$;

-- Returns a worker and its stage with the settings that the worker's call needs.
create function millrace.call_of(p_worker millrace.workers, p_stage millrace.stages)
returns millrace.call
as $$
  v_call millrace.call;

select p_worker as worker, p_stage as stage,
  p_stage.enabled and p.enabled and p_stage.kind <> 'gate' and not p_stage.bypassed as open,
  p.is_child,
  -- Computes what sweep_due() returns, without the cost of a call.
  coalesce((
    select o.value::timestamptz <= v_now - interval '1 minute'
      or o.value::timestamptz >= v_now + interval '1 minute'
    from millrace.settings o
    where o.name = 'last_sweep_at'), true) as sweep_due,
  millrace.hook_row_cpu_ms(p_stage.id) as row_cpu_ms
into v_call
from millrace.pipelines p
where p.id = p_stage.pipeline_id;
return v_call;
$$;

-- Returns the names of the pipelines, for a hint.
create function millrace.known_pipelines() returns text
stable
as $$
return format('Those there are: %s. A new one comes by npx millrace sync and its migration.', (
  select coalesce(left(string_agg(p.name, ', ' order by p.name), 1000), 'none')
  from millrace.pipelines p));
$$;

-- Returns the stage with this name. Raises MR003 where there is none.
create function millrace.stage_named(p_pipeline text, p_stage text)
returns millrace.stages
stable
as $$
  v_stage millrace.stages;

select s.* into v_stage
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
where p.name = p_pipeline and s.name = p_stage;
if not found then
  raise exception 'MR003: there is no stage % in a pipeline %',
    coalesce(p_stage, 'null'), coalesce(p_pipeline, 'null')
    using hint = coalesce((
      select 'Its stages: ' || left(string_agg(s.name, ', ' order by s.id), 2000) || '.'
      from millrace.stages s
      join millrace.pipelines p on p.id = s.pipeline_id
      where p.name = p_pipeline), millrace.known_pipelines());
end if;
return v_stage;
$$;

-- Renews all leases of a worker, as its heartbeat.
-- p_attempts: the attempts that the worker has in work.
-- Returns {renewed, lost}: how many attempts the worker still has, and those of p_attempts that it
-- has no more.
create function public.millrace_renew(p_worker uuid, p_attempts bigint[])
as $$
  v_in_work bigint[];

-- Each call of a worker locks the worker's row first, so that two calls never wait for each other.
perform from millrace.workers w where w.id = p_worker for update;
update millrace.claims c
set expires_at = v_now + s.lease
from millrace.workers w
join millrace.stages s on s.id = w.stage_id
where w.id = p_worker and c.worker_id = w.id;
v_in_work := millrace.attempts_in_work(p_worker);
update millrace.workers w
set heartbeat_at = v_now, in_work = cardinality(v_in_work)
where w.id = p_worker;
return jsonb_build_object('renewed', cardinality(v_in_work),
  'lost', array(select p from unnest(p_attempts) p where p <> all (v_in_work)));
$$;

-- Signs a worker off, unless work has come meanwhile. Then left is false, and the worker should
-- claim again. The third such call in a row signs the worker off in any case.
-- p_hand_over: signs off in any case, and wakes the stage for a successor where work is left.
-- p_row_cpu_ms: the worker's estimate of a row's CPU time in milliseconds; null for none.
-- p_row_bytes: its estimate of a row's memory in bytes; null for none.
create function public.millrace_leave(
  p_worker uuid, p_hand_over boolean default false, p_row_cpu_ms real default null,
  p_row_bytes bigint default null
)
as $$
  v_worker millrace.workers;

select w.* into v_worker from millrace.workers w
where w.id = p_worker for update;
if not found or v_worker.left_at is not null then
  return '{"left": true, "wake": []}';
end if;
perform millrace.drop_claims(p_worker);
if p_row_cpu_ms is not null then
  perform millrace.hook_left(v_worker.stage_id, p_row_cpu_ms, p_row_bytes);
end if;
-- At the third call the worker leaves without a look: the sweep wakes the stage where work is
-- ready.
if not p_hand_over and v_worker.leave_tries < 2 and millrace.must_stay(v_worker) then
  update millrace.workers w
  set leave_tries = w.leave_tries + 1, heartbeat_at = v_now
  where w.id = p_worker;
  return '{"left": false, "wake": []}';
end if;
-- Signs off before the wake-up, since stages_to_wake() would count the worker as live.
update millrace.workers w
set left_at = v_now, in_work = cardinality(millrace.attempts_in_work(p_worker))
where w.id = p_worker;
-- Where another transaction has the lock, it may be queueing work and rely on this worker.
return jsonb_build_object('left', true, 'wake', case when p_hand_over and (
    not pg_try_advisory_xact_lock(hashtext('millrace.stage'), v_worker.stage_id)
    or millrace.has_ready_work(v_worker.stage_id))
  then millrace.wake_list(millrace.stages_to_wake(array[v_worker.stage_id])) else '[]' end);
$$;

-- Tells whether a worker that wants to leave should look at its queue once more: where another
-- transaction is queueing, or work is ready. The header of wake.sql says why.
create function millrace.must_stay(p_worker millrace.workers) returns boolean
as $$
if not (
    select s.enabled and p.enabled and not s.bypassed
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where s.id = p_worker.stage_id) then
  return false;
end if;
if not pg_try_advisory_xact_lock(hashtext('millrace.stage'), p_worker.stage_id) then
  return true;
end if;
-- Another worker of the host that is at work looks at the queue again when it is done.
return millrace.has_ready_work(p_worker.stage_id) and not exists (
  select from millrace.claims c
  join millrace.workers w on w.id = c.worker_id
  where c.host = p_worker.host and w.id <> p_worker.id and w.left_at is null
    and w.stage_id = p_worker.stage_id
    and c.expires_at > v_now);
$$;
