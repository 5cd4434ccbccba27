-- What workers say
--
-- A worker signs on with its first claim, then says complete again and again (each call records
-- results and claims the next batch, in one commit), renews on a timer, and leaves. Its calls carry
-- a sequence number, so that a call repeated after a lost answer gets the same batch again. The
-- public functions here are the whole surface of the engine for Edge Functions; only service_role
-- may call them, and each returns one JSON value.
--
-- The planner settings in the headers of public functions hold for all that these call: every
-- look-up goes by an index, row by row, and plans are made once a connection, and never compiled
-- (what must scan a small table looks dear enough for that). Left to itself the planner reads a
-- queue's tables by statistics that are minutes old, and now and then walks a whole index where it
-- wants fifty rows. An index-only scan is such a walk: while a table is small, it looks cheaper
-- than a look-up by the right key. The build writes them into each header that asks for the plan
-- by_key or by_index.

-- Finds the stage with this name; raises MR003 when there is none.
create function millrace.stage_named(p_pipeline text, p_stage text)
returns millrace.stages
language plpgsql stable
as $$
declare
  v_stage millrace.stages;
  v_known text;
begin
  select s.* into v_stage
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  where p.name = p_pipeline and s.name = p_stage;
  if not found then
    v_known := coalesce((
      select 'Its stages: ' || left(string_agg(s.name, ', ' order by s.id), 2000)
      from millrace.stages s
      join millrace.pipelines p on p.id = s.pipeline_id
      where p.name = p_pipeline), (
      select 'Pipelines: ' || string_agg(p.name, ', ' order by p.id)
      from millrace.pipelines p),
      'There is no pipeline: run `npm run pipelines:sync` and push the migrations');
    raise exception 'there is no stage % in a pipeline %',
      coalesce(p_stage, 'null'), coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = v_known || '.';
  end if;
  return v_stage;
end
$$;

-- Reads at once what a call of a worker has to know besides its worker, whose row the caller has
-- locked; null for one that is not let in.
create function millrace.call_of(p_worker millrace.workers, p_stage_id int)
returns millrace.call
language plpgsql volatile
as $$
declare
  v_call millrace.call;
begin
  select p_worker as worker, s as stage,
    s.enabled and p.enabled and s.kind <> 'gate' and not s.bypassed as open,
    p.is_child,
    (select o.value from millrace.settings o
     where o.name = 'batch_bytes') as batch_bytes,
    (select o.value from millrace.settings o
     where o.name = 'last_sweep_at') as last_sweep_at,
    (select c.cpu_ms from millrace.row_costs c
     where c.stage_id = s.id) as row_cpu_ms
  into v_call
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  where s.id = p_stage_id;
  return v_call;
end
$$;

-- Builds the answer to claim and complete alike: the batch, the functions that the worker should
-- wake now, and the fan-outs whose children have reported. p_wait_ms: how long a worker
-- that got nothing, because of limits, may wait before it asks again. p_cut: it got less than it
-- asked for and there was, since its batch has all the bytes that one may have. p_left: it said
-- goodbye with this call, and may go.
create function millrace.claim_answer(
  p_call millrace.call, p_status text, p_reason text, p_batch json, p_wake int[], p_verdicts json,
  p_wait_ms int default null, p_cut boolean default false, p_left boolean default false
) returns json
language plpgsql
as $$
declare
  v_stage millrace.stages := p_call.stage;
  v_wake jsonb := '[]';
  v_collect bigint[] := '{}';
begin
  if cardinality(p_wake) > 0 then
    v_wake := millrace.wake_list(p_wake);
  end if;
  if v_stage.kind = 'map' or p_call.is_child then
    v_collect := millrace.hook_to_collect();
  end if;
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
    'wake', v_wake,
    'items', p_verdicts,
    'wait_ms', p_wait_ms,
    'sweep_due', millrace.sweep_due(p_call.last_sweep_at),
    'cut', p_cut,
    'left', p_left,
    'collect', v_collect);
end
$$;

-- Says whether the last sweep, of which the setting last_sweep_at tells, is over a minute old.
-- pg_cron stalls now and then, so workers and callbacks look after the sweep as well: an answer
-- that says so has its receiver call millrace_sweep(), in a transaction of its own.
create function millrace.sweep_due(p_last_sweep_at text) returns boolean
language plpgsql volatile
as $$
begin
  return coalesce(p_last_sweep_at::timestamptz <= millrace.now() - interval '1 minute', true);
end
$$;

-- Says the same, having read the setting.
create function millrace.sweep_due() returns boolean
language plpgsql volatile
as $$
begin
  return millrace.sweep_due(
    (select s.value from millrace.settings s where s.name = 'last_sweep_at'));
end
$$;

-- Counts the places of a stage that a worker may fill now. As long as each worker holds a batch at
-- most, and they are no more than the maximum, there is nothing to count. But one that has left
-- finishes what it holds beside its successor, and the number that a definition gives may be no
-- multiple of a batch. Claims that count pass one at a time. wait_ms: places will become free soon,
-- for somebody is leaving.
create function millrace.free_places(
  p_stage millrace.stages, p_worker millrace.workers, p_may_wait boolean,
  out places int, out wait_ms int
)
language plpgsql volatile
as $$
declare
  v_since timestamptz := millrace.alive_since();
  v_others record;
  v_places int := coalesce(p_stage.concurrency, p_stage.batch_size * p_stage.max_workers);
begin
  places := 1000;
  if p_stage.concurrency is null and not exists (
      select
      from millrace.workers w
      where w.stage_id = p_stage.id
        and w.left_at is not null
        and w.held > 0
        and w.heartbeat_at > v_since) then
    return;
  elsif p_worker.left_at is not null then
    -- What runs alone in a retired isolate may be one too many for a moment.
    places := 1;
    return;
  elsif p_may_wait then
    perform pg_advisory_xact_lock(hashtext('millrace.places'), p_stage.id);
  elsif not pg_try_advisory_xact_lock(hashtext('millrace.places'), p_stage.id) then
    -- It holds rows, and so must not wait.
    places := 0;
    wait_ms := 50;
    return;
  end if;
  select coalesce(sum(w.held), 0) as held, bool_or(w.left_at is not null) as any_leaving
  into v_others
  from millrace.workers w
  where w.stage_id = p_stage.id
    and (w.left_at is null or w.held > 0)
    and w.id <> p_worker.id
    and w.heartbeat_at > v_since;
  places := greatest(0, v_places - p_worker.held - v_others.held);
  if places = 0 and v_others.any_leaving then
    wait_ms := 100;
  end if;
end
$$;

-- Claims what is queued, as far as the stage's limits and its tenants' quotas allow. p_may_wait:
-- its worker has nothing to hand in, and so may wait for its turn to claim. The token is null when
-- it got nothing.
create function millrace.claim_allowed(
  p_call millrace.call, p_limit int, p_may_wait boolean,
  out token uuid, out attempt_ids bigint[], out entity_ids text[], out items millrace.claimed[],
  out taken int, out wait_ms int
)
language plpgsql
as $$
declare
  v_stage millrace.stages := p_call.stage;
  v_limit int := case when p_call.open then p_limit else 0 end;
  v_free record;
  v_claim record;
begin
  if v_limit > 0 then
    v_free := millrace.free_places(v_stage, p_call.worker, p_may_wait);
    v_limit := least(v_limit, v_free.places);
  end if;
  if v_stage.limits is null then
    v_claim := millrace.claim(v_stage, p_call.worker, v_limit);
  else
    v_claim := millrace.hook_claim(v_stage, p_call.worker, v_limit, p_may_wait);
    wait_ms := v_claim.wait_ms;
  end if;
  token := v_claim.token;
  attempt_ids := v_claim.attempt_ids;
  entity_ids := v_claim.entity_ids;
  items := v_claim.items;
  taken := cardinality(attempt_ids);
  if token is null then
    if v_limit = 0 and p_limit > 0 and p_call.open then
      wait_ms := v_free.wait_ms;
    end if;
    return;
  end if;
  if v_stage.counted then
    items := millrace.hook_hold_back(v_stage, token, attempt_ids);
    attempt_ids := array(select i.attempt_id from unnest(items) i);
    entity_ids := array(select i.entity_id from unnest(items) i);
    if cardinality(items) = 0 then
      -- All of it was held back: there may be another tenant's work behind it.
      token := null;
      wait_ms := 0;
    end if;
  elsif items is null then
    items := millrace.held_items(token, attempt_ids);
    entity_ids := array(select i.entity_id from unnest(items) i);
  end if;
end
$$;

-- Builds the batch of a claim, gives back what it has no room for, and shows the rest on the
-- entities. Says how many it kept, and whether it gave any back.
create function millrace.hand_out(
  p_call millrace.call, p_token uuid, p_items millrace.claimed[], p_attempt_ids bigint[],
  p_entity_ids text[], out batch json, out kept int, out cut boolean
)
language plpgsql
as $$
declare
  v_stage millrace.stages := p_call.stage;
  v_bytes bigint := millrace.batch_bytes(p_call.batch_bytes);
  v_ids bigint[] := p_attempt_ids;
  v_filled record;
begin
  v_filled := millrace.fill_batch(v_stage, p_token, p_items, p_entity_ids, v_bytes);
  kept := v_filled.kept;
  cut := kept < cardinality(p_attempt_ids);
  if cut then
    v_ids := p_attempt_ids[:kept];
    perform millrace.give_back(v_stage, p_token, v_ids, p_attempt_ids[kept + 1:]);
  end if;
  perform millrace.project_started(v_stage, p_entity_ids[:kept]);
  -- A user's trigger may have ended one of them there and then.
  if kept > (
      select count(*) from millrace.attempts a where a.id = any (v_ids) and a.state = 'started')
  then
    v_filled := millrace.held_batch(v_stage, p_token, v_ids, v_bytes);
  end if;
  batch := v_filled.batch;
  kept := v_filled.kept;
end
$$;

-- Does the claiming half of millrace_claim and millrace_complete: claims for a signed-on worker,
-- shows that on the entities, remembers the claim for a repeat, and sees to scaling out. p_goodbye:
-- the worker leaves if there is nothing for it. One that has left stays so; when it reports, the
-- places that it frees may need somebody.
create function millrace.claim_next(
  p_call millrace.call, p_seq int, p_limit int, p_verdicts json, p_ready int[], p_goodbye boolean
) returns json
language plpgsql
as $$
declare
  v_stage millrace.stages := p_call.stage;
  v_worker millrace.workers := p_call.worker;
  v_claim record;
  v_out record;
  v_batch json := '[]';
  v_kept int := 0;
  v_cut boolean := false;
  v_left boolean;
  v_wake int[] := array_remove(p_ready, v_stage.id);
begin
  v_claim := millrace.claim_allowed(p_call, p_limit, p_verdicts is null);
  if v_claim.token is not null then
    v_out := millrace.hand_out(
      p_call, v_claim.token, v_claim.items, v_claim.attempt_ids, v_claim.entity_ids);
    v_batch := v_out.batch;
    v_kept := v_out.kept;
    v_cut := v_out.cut;
  end if;
  -- A full claim with more behind it: that is how a stage scales out. One that must be alone fills
  -- its host. Who has left frees places that may need somebody.
  if (case
      when v_worker.left_at is not null then millrace.has_ready_work(v_stage.id)
      when v_claim.taken >= p_limit or v_cut or (v_claim.items[1]).isolated
        then millrace.may_scale_out(v_stage)
    end) then
    v_wake := v_wake || v_stage.id;
  end if;
  if cardinality(v_wake) > 0 then
    v_wake := millrace.stages_to_wake(
      v_wake, case when v_worker.left_at is null then v_stage.id end);
  end if;
  -- After the wake-ups: who holds a stage's lock to leave it waits for no other's.
  v_left := p_goodbye and v_claim.token is null and v_claim.wait_ms is null
    and not millrace.must_stay(v_worker);
  update millrace.workers w
  set last_seq = p_seq, last_token = v_claim.token, heartbeat_at = millrace.now(),
    left_at = case when v_left then millrace.now() else w.left_at end,
    leave_tries = case when v_claim.token is null then w.leave_tries else 0 end,
    held = v_worker.held + v_kept, taken = w.taken + v_kept
  where w.id = v_worker.id;
  return millrace.claim_answer(p_call,
    case when not p_call.open then 'refused' when v_claim.token is null then 'empty'
      else 'working' end,
    case when v_stage.bypassed then 'the stage is bypassed'
      when not p_call.open then 'the stage or its pipeline is switched off' end,
    v_batch, v_wake, p_verdicts, v_claim.wait_ms, v_cut, v_left);
end
$$;

-- Answers a call that a worker repeats, since it may not have heard the first: with the same batch,
-- and rather a wake-up too many.
create function millrace.repeat_answer(p_call millrace.call, p_verdicts json)
returns json
language plpgsql
as $$
declare
  v_stage millrace.stages := p_call.stage;
  v_token uuid := (p_call.worker).last_token;
  v_held record;
begin
  v_held := millrace.held_batch(v_stage, v_token,
    (select c.attempt_ids from millrace.claims c where c.token = v_token),
    millrace.batch_bytes(p_call.batch_bytes));
  update millrace.workers w set heartbeat_at = millrace.now() where w.id = (p_call.worker).id;
  return millrace.claim_answer(p_call, case when v_held.kept = 0 then 'empty' else 'working' end,
    'repeated answer', v_held.batch, millrace.followers_with_work(v_stage.id), p_verdicts);
end
$$;

-- Lists the stages right after this one that have ready work.
create function millrace.followers_with_work(p_stage_id int) returns int[]
language plpgsql
as $$
begin
  return array(
    select distinct vs.stage_id
    from millrace.version_stages vs
    where p_stage_id = any (vs.needs) and millrace.has_ready_work(vs.stage_id));
end
$$;

-- Claims for the next call of a worker, or repeats the answer to its last. The next number is a new
-- call, the last one a repeat; anything else is an error.
create function millrace.answer_in_sequence(
  p_call millrace.call, p_seq int, p_limit int, p_verdicts json, p_ready int[],
  p_goodbye boolean default false
) returns json
language plpgsql
as $$
declare
  v_last_seq int := (p_call.worker).last_seq;
begin
  if p_seq = v_last_seq then
    return millrace.repeat_answer(p_call, p_verdicts);
  elsif p_seq is distinct from v_last_seq + 1 then
    raise exception 'p_seq is %, but the last call of this worker was %',
      coalesce(p_seq::text, 'null'), v_last_seq
      using errcode = 'MR006', hint = 'Count the claim and complete calls of a worker from 1 and '
        'repeat a number only to repeat a call.';
  end if;
  return millrace.claim_next(p_call, p_seq, p_limit, p_verdicts, p_ready, p_goodbye);
end
$$;
