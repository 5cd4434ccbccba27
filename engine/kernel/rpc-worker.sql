-- The calls of a worker, as PostgREST serves them (worker-calls.sql has what they
-- share)

create function public.millrace_claim(
  p_pipeline text, p_stage text, p_worker uuid, p_host uuid, p_seq int, p_limit int
) returns json
language plpgsql security definer
set millrace.plan = by_key
as $$
declare
  v_stage millrace.stages;
  v_worker millrace.workers;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  v_stage := millrace.stage_named(p_pipeline, p_stage);
  if p_worker is null or p_host is null or p_seq is null
    or p_limit is null or p_limit not between 0 and 1000 then
    raise exception 'p_worker, p_host and p_seq must be given and p_limit be from 0 to 1000; '
      'p_limit is %', coalesce(p_limit::text, 'null')
      using errcode = 'MR002', hint = 'Send a uuid for the worker and one for its process, '
        'a sequence number from 1, and the number of attempts to claim.';
  end if;
  select w.* into v_worker from millrace.workers w where w.id = p_worker for update;
  if not found then
    -- Signing on takes turns, so that two workers never both become the last one that the maximum
    -- allows.
    perform pg_advisory_xact_lock(hashtext('millrace.sign_on'), v_stage.id);
    -- The first try of this very call may have signed the worker on while this one waited.
    select w.* into v_worker from millrace.workers w where w.id = p_worker for update;
  end if;
  if v_worker.id is null then
    -- Its arrival answers every wake-up so far, also when it is sent home.
    delete from millrace.wake_ups r
    where r.id in (
      select u.id from millrace.wake_ups u
      where u.stage_id = v_stage.id for update skip locked);
    if millrace.live_workers(v_stage.id) >= v_stage.max_workers then
      return millrace.claim_answer(millrace.call_of(null, v_stage.id), 'refused',
        format('%s workers are live, which is the stage''s maximum', v_stage.max_workers),
        '[]', '{}', null);
    end if;
    insert into millrace.workers (id, stage_id, host, last_seq, signed_on_at, heartbeat_at)
    values (p_worker, v_stage.id, p_host, p_seq - 1, millrace.now(), millrace.now())
    returning * into v_worker;
  end if;
  if v_worker.stage_id <> v_stage.id then
    raise exception 'worker % signed on for another stage', p_worker
      using errcode = 'MR006', hint = 'Use a new worker id for each stage and each drain.';
  end if;
  return millrace.answer_in_sequence(
    millrace.call_of(v_worker, v_stage.id), p_seq, p_limit, null, '{}');
end
$$;
comment on function public.millrace_claim(text, text, uuid, uuid, int, int) is
  'A worker''s claim of up to p_limit attempts. The first call signs the worker on.';

create function public.millrace_complete(
  p_worker uuid, p_seq int, p_items json, p_limit int, p_goodbye boolean default false
) returns json
language plpgsql security definer
set millrace.plan = by_key
as $$
declare
  v_worker millrace.workers;
  v_call millrace.call;
  v_stage millrace.stages;
  v_items millrace.work[];
  v_done record;
  v_dropped boolean;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_limit is null or p_limit not between 0 and 1000 then
    raise exception 'p_limit is %, but must be from 0 to 1000', coalesce(p_limit::text, 'null')
      using errcode = 'MR002',
        hint = 'Send the number of attempts to claim next, 0 for none.';
  end if;
  select w.* into v_worker from millrace.workers w
  where w.id = p_worker for update;
  if not found then
    raise exception 'there is no worker %', coalesce(p_worker::text, 'null')
      using errcode = 'MR006', hint = 'Call millrace_claim first; it signs the worker on.';
  end if;
  v_items := millrace.parse_items(p_items, 'attempt');
  v_done := millrace.record_items(v_items);
  v_worker.held := case
    when v_done.uniform then greatest(0, v_worker.held - cardinality(v_items))
    else cardinality(millrace.held_by(p_worker))
  end;
  v_call := millrace.call_of(v_worker, v_worker.stage_id);
  v_stage := v_call.stage;
  if v_stage.kind in ('agent', 'map') then
    perform millrace.hook_reported(v_stage, v_done.verdicts);
  end if;
  v_dropped := millrace.drop_claims(p_worker,
    case when v_done.uniform then v_items[1].token end, cardinality(v_items));
  return millrace.answer_in_sequence(
    v_call, p_seq, p_limit, v_done.verdicts, v_done.ready, coalesce(p_goodbye, false));
end
$$;
comment on function public.millrace_complete(uuid, int, json, int, boolean) is
  'Records what became of a worker''s attempts (each with its token) and claims the next p_limit '
  'in the same transaction. With p_goodbye it signs the worker off if there is nothing to claim.';

-- Lists the attempts that a worker has in work.
create function millrace.held_by(p_worker_id uuid) returns bigint[]
language plpgsql volatile
as $$
begin
  return array(
    select a.id
    from millrace.claims c
    cross join lateral (
      select t.id
      from millrace.attempts t
      where t.id = any (c.attempt_ids) and t.token = c.token and t.state = 'started'
      offset 0) a
    where c.worker_id = p_worker_id);
end
$$;

create function public.millrace_renew(p_worker uuid, p_attempts bigint[])
returns jsonb
language plpgsql security definer
set millrace.plan = by_key
as $$
declare
  v_now timestamptz := millrace.now();
  v_held bigint[];
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  -- First, as every call of a worker does, so that no two wait for each other.
  perform from millrace.workers w where w.id = p_worker for update;
  with held as (
    select c.token from millrace.claims c
    where c.worker_id = p_worker order by c.token for update
  )
  update millrace.claims c
  set expires_at = v_now + s.lease
  from held, millrace.workers w
  join millrace.stages s on s.id = w.stage_id
  where c.token = held.token and w.id = p_worker;
  v_held := millrace.held_by(p_worker);
  update millrace.workers w
  set heartbeat_at = v_now, held = cardinality(v_held)
  where w.id = p_worker;
  return jsonb_build_object('renewed', cardinality(v_held),
    'lost', array(select p from unnest(p_attempts) p where p <> all (v_held)));
end
$$;
comment on function public.millrace_renew(uuid, bigint[]) is
  'Heartbeat of a worker: renews all its leases. Of the attempts it names as still running, "lost" '
  'lists those that are no longer its own.';

create function public.millrace_leave(
  p_worker uuid, p_hand_over boolean default false, p_row_cpu_ms real default null,
  p_row_bytes bigint default null
) returns jsonb
language plpgsql security definer
set millrace.plan = by_key
as $$
declare
  v_worker millrace.workers;
  v_wake jsonb := '[]';
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  select w.* into v_worker from millrace.workers w
  where w.id = p_worker for update;
  if not found or v_worker.left_at is not null then
    return '{"left": true, "wake": []}';
  end if;
  perform millrace.drop_claims(p_worker);
  if p_row_cpu_ms is not null then
    perform millrace.hook_left(v_worker.stage_id, p_row_cpu_ms, p_row_bytes);
  end if;
  -- After a third failed try it leaves all the same: the sweep wakes for whatever is ready without
  -- a worker.
  if not p_hand_over and v_worker.leave_tries < 2 and millrace.must_stay(v_worker) then
    update millrace.workers w
    set leave_tries = w.leave_tries + 1, heartbeat_at = millrace.now()
    where w.id = p_worker;
    return '{"left": false, "wake": []}';
  end if;
  update millrace.workers w
  set left_at = millrace.now(), held = cardinality(millrace.held_by(p_worker))
  where w.id = p_worker;
  -- One whose budget is used has signed off first, so that its successor is not one worker too
  -- many. Somebody may be about to enqueue, relying on this worker: then it wakes to be on the safe
  -- side.
  if p_hand_over and (
      not pg_try_advisory_xact_lock(hashtext('millrace.stage'), v_worker.stage_id)
      or millrace.has_ready_work(v_worker.stage_id)) then
    v_wake := millrace.wake_list(millrace.stages_to_wake(array[v_worker.stage_id]));
  end if;
  return jsonb_build_object('left', true, 'wake', v_wake);
end
$$;
comment on function public.millrace_leave(uuid, boolean, real, bigint) is
  'Signs a worker off, unless work has come meanwhile: then left is false and it should claim '
  'again. With p_hand_over it always leaves, and "wake" names its own stage if work is left there. '
  'p_row_cpu_ms and p_row_bytes: what it reckons that a row of its stage takes of an isolate.';

-- Says whether a worker that wants to leave should look at its queue once more. Whoever enqueues
-- holds the stage's lock in shared mode until it commits. If the leaving worker gets it, nobody is
-- about to rely on this worker, and the look at the queue, a later statement, sees all that was
-- committed before.
create function millrace.must_stay(p_worker millrace.workers) returns boolean
language plpgsql volatile
as $$
begin
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
  -- Work that must be alone may be left to the worker of the same host that is still busy: it looks
  -- again when done.
  return millrace.has_ready_work(p_worker.stage_id) and not exists (
    select from millrace.claims c
    join millrace.workers w on w.id = c.worker_id
    where c.host = p_worker.host
      and w.id <> p_worker.id
      and w.left_at is null
      and w.stage_id = p_worker.stage_id
      and c.expires_at > millrace.now());
end
$$;
