-- Chapter 9: claims, and what workers say
--
-- A worker signs on with its first claim, then says complete again and again (each call records results and claims the
-- next batch, in one commit), renews on a timer, and leaves. Its calls carry a sequence number, so that a call repeated
-- after a lost answer gets the same batch again. The public functions here are the whole surface of the engine for
-- Edge Functions; only service_role may call them, and each returns one jsonb.

create function pipeline.stage_named(p_pipeline text, p_stage text) returns pipeline.stages
language plpgsql stable set search_path = ''
as $$
declare
  v_stage pipeline.stages;
begin
  select s.* into v_stage from pipeline.stages s join pipeline.pipelines p on p.id = s.pipeline_id
  where p.name = p_pipeline and s.name = p_stage;
  if not found then
    raise exception 'there is no stage % in a pipeline %', coalesce(p_stage, 'null'), coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = 'Known: ' || coalesce((select string_agg(p.name || '.' || s.name, ', ' order by s.id) from pipeline.stages s join pipeline.pipelines p on p.id = s.pipeline_id), 'none, run `npm run pipelines:sync` and push the migrations') || '.';
  end if;
  return v_stage;
end
$$;
comment on function pipeline.stage_named(text, text) is 'The stage with this name; MR003 when there is none.';

-- How many workers of a stage are alive: those that have not left and whose heartbeat is fresh.
create function pipeline.live_workers(p_stage_id int) returns int
language plpgsql volatile set search_path = ''
as $$
begin
  return (select count(*) from pipeline.workers w
          where w.stage_id = p_stage_id and w.left_at is null and w.heartbeat_at > pipeline.now() - interval '15 seconds');
end
$$;
comment on function pipeline.live_workers(int) is 'Number of live workers of a stage, in a snapshot of its own.';

create function pipeline.has_ready_work(p_stage_id int) returns boolean
language plpgsql volatile set search_path = '' set enable_seqscan = off
as $$
declare
  v_now timestamptz := pipeline.now();
begin
  return exists (
    select from pipeline.attempts a
    where a.stage_id = p_stage_id and a.queue_at <= v_now and a.state = 'queued');
end
$$;
comment on function pipeline.has_ready_work(int) is 'Whether an attempt of this stage is queued and due.';

-- The claim proper: one statement for a stage without limits. Returns the claim's token, or null when there is nothing.
create function pipeline.claim(p_stage pipeline.stages, p_worker_id uuid, p_host uuid, p_limit int) returns uuid
language plpgsql set search_path = '' set enable_seqscan = off set enable_bitmapscan = off
as $$
declare
  v_now timestamptz := pipeline.now();
  v_token uuid := gen_random_uuid();
  v_ids bigint[];
  v_alone boolean;
  v_busy boolean := exists (select from pipeline.claims c join pipeline.workers w on w.id = c.worker_id where w.host = p_host and c.expires_at > v_now);
begin
  -- While its host runs an attempt that must be alone, a worker takes nothing.
  if p_limit < 1 or (v_busy and exists (select from pipeline.claims c join pipeline.workers w on w.id = c.worker_id where w.host = p_host and c.alone and c.expires_at > v_now)) then
    return null;
  end if;
  with picked as materialized (
    select a.id, a.alone, row_number() over () as place from (
      select a.id, a.alone from pipeline.attempts a
      where a.stage_id = p_stage.id and a.queue_at <= v_now and a.state = 'queued'
      order by a.queue_at, a.id limit p_limit for update skip locked) a
  ), chosen as (
    -- One that must be alone waits at the head until its host is idle; it never rides along behind others.
    select p.id from picked p
    where case when (select f.alone from picked f where f.place = 1) then p.place = 1 and not v_busy else not p.alone end
  ), taken as (
    update pipeline.attempts a set state = 'started', token = v_token, started_at = v_now
    from chosen c where a.id = c.id
    returning a.id, a.alone
  )
  select array_agg(t.id), bool_or(t.alone) into v_ids, v_alone from taken t;
  if v_ids is null then
    return null;
  end if;
  insert into pipeline.claims (token, worker_id, expires_at, open, alone, attempt_ids)
  values (v_token, p_worker_id, v_now + p_stage.lease, cardinality(v_ids), v_alone, v_ids);
  return v_token;
end
$$;
comment on function pipeline.claim(pipeline.stages, uuid, uuid, int) is 'queued → started for up to limit due attempts of a stage, under one lease; returns its token or null.';

-- Shows the claim on the entities as far as they are free; one that a user holds catches up when its stage completes.
create function pipeline.project_started(p_stage pipeline.stages, p_token uuid) returns void
language plpgsql set search_path = '' set enable_seqscan = off
as $$
declare
  v_pipeline record;
begin
  select p.name, p.projection into v_pipeline from pipeline.pipelines p where p.id = p_stage.pipeline_id;
  if v_pipeline.projection <> 'none' then
    perform set_config('pipeline.projecting', pg_trigger_depth()::text, true);
    execute format('select pipeline.%I($1, $2, $3)', v_pipeline.name || '__started')
      using p_stage.name, pipeline.now(), array(select r.entity_id from pipeline.claims c, unnest(c.attempt_ids) i join pipeline.attempts a on a.id = i join pipeline.runs r on r.id = a.run_id where c.token = p_token);
    perform set_config('pipeline.projecting', '', true);
  end if;
end
$$;
comment on function pipeline.project_started(pipeline.stages, uuid) is 'Projects a claim onto those of its entities that nobody holds.';

create function pipeline.batch_of(p_stage pipeline.stages, p_token uuid) returns jsonb
language plpgsql set search_path = '' set enable_seqscan = off
as $$
declare
  v_pipeline text := (select p.name from pipeline.pipelines p where p.id = p_stage.pipeline_id);
  v_ids bigint[] := (select c.attempt_ids from pipeline.claims c where c.token = p_token);
  v_rows jsonb;
  v_needs jsonb;
  v_batch jsonb;
begin
  execute format('select pipeline.%I($1)', v_pipeline || '__rows') into v_rows
    using array(select r.entity_id from pipeline.attempts a join pipeline.runs r on r.id = a.run_id where a.id = any (v_ids));
  -- The results of all needs of the batch in one set: {attempt: {stage: result}}.
  select coalesce(jsonb_object_agg(n.id, n.results), '{}') into v_needs from (
    select a.id, jsonb_object_agg(s.name, o.output) as results
    from pipeline.attempts a
    join pipeline.runs r on r.id = a.run_id
    join pipeline.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
    join pipeline.attempts n on n.run_id = a.run_id and n.stage_id = any (vs.needs) and n.state = 'completed' and not n.superseded
    join pipeline.results o on o.attempt_id = n.id
    join pipeline.stages s on s.id = n.stage_id
    where a.id = any (v_ids)
    group by a.id
  ) n;
  select jsonb_agg(jsonb_build_object(
      'attempt', a.id, 'token', a.token, 'run', a.run_id, 'trace_id', r.trace_id, 'version', v.number, 'entity_id', r.entity_id,
      'entity', coalesce(v_rows -> r.entity_id, '{}'), 'retry_count', a.retry_count, 'submission', coalesce(a.submission_id, a.id), 'alone', a.alone,
      'needs', coalesce(v_needs -> a.id::text, '{}')) order by a.queue_at, a.id) into v_batch
  from pipeline.attempts a
  join pipeline.runs r on r.id = a.run_id
  join pipeline.versions v on v.id = r.version_id
  where a.id = any (v_ids) and a.token = p_token and a.state = 'started';
  return coalesce(v_batch, '[]');
end
$$;
comment on function pipeline.batch_of(pipeline.stages, uuid) is 'The attempts of a claim that are still under it, each with its entity''s row and the results of its needs.';

-- The answer to claim and complete alike: the batch, and the functions that the worker should ring now.
create function pipeline.claim_answer(p_stage pipeline.stages, p_status text, p_reason text, p_batch jsonb, p_ring int[]) returns jsonb
language plpgsql set search_path = ''
as $$
begin
  return jsonb_build_object(
    'status', p_status, 'reason', p_reason, 'lease_ms', (extract(epoch from p_stage.lease) * 1000)::int,
    'stage', jsonb_build_object('batch_size', p_stage.batch_size, 'timeout_ms', (extract(epoch from p_stage.timeout) * 1000)::int, 'result_limit_bytes', p_stage.result_limit_bytes),
    'batch', p_batch, 'ring', case when cardinality(p_ring) > 0 then pipeline.ring_list(p_ring) else '[]' end);
end
$$;
comment on function pipeline.claim_answer(pipeline.stages, text, text, jsonb, int[]) is 'Builds the answer to pipeline_claim and pipeline_complete.';

create function pipeline.stage_open(p_stage pipeline.stages) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return p_stage.enabled and (select p.enabled from pipeline.pipelines p where p.id = p_stage.pipeline_id);
end
$$;
comment on function pipeline.stage_open(pipeline.stages) is 'Whether the stage and its pipeline are switched on.';

-- Claims for a signed-on worker, remembers the claim for a repeat, and sees to scaling out.
create function pipeline.claim_next(p_stage pipeline.stages, p_worker pipeline.workers, p_seq int, p_limit int, p_ready int[]) returns jsonb
language plpgsql set search_path = ''
as $$
declare
  v_token uuid;
  v_batch jsonb := '[]';
  v_ring int[] := array(select r from unnest(p_ready) r where r <> p_stage.id);
  v_status text := 'empty';
begin
  if not pipeline.stage_open(p_stage) then
    v_status := 'refused';
  elsif p_limit > 0 then
    v_token := pipeline.claim(p_stage, p_worker.id, p_worker.host, p_limit);
    if v_token is not null then
      v_status := 'working';
      perform pipeline.project_started(p_stage, v_token);
      v_batch := pipeline.batch_of(p_stage, v_token);
      -- A full claim with more behind it: that is how a stage scales out.
      if jsonb_array_length(v_batch) >= p_limit and pipeline.live_workers(p_stage.id) < p_stage.max_workers and pipeline.has_ready_work(p_stage.id) then
        v_ring := v_ring || p_stage.id;
      end if;
    end if;
  end if;
  update pipeline.workers w set last_seq = p_seq, last_token = v_token, heartbeat_at = pipeline.now(), left_at = null,
    leave_tries = case when v_token is null then w.leave_tries else 0 end where w.id = p_worker.id;
  return pipeline.claim_answer(p_stage, v_status, case when v_status = 'refused' then 'the stage or its pipeline is switched off' end, v_batch,
    pipeline.take_rings(v_ring, p_stage.id));
end
$$;
comment on function pipeline.claim_next(pipeline.stages, pipeline.workers, int, int, int[]) is 'The claiming half of pipeline_claim and pipeline_complete.';

create function public.pipeline_claim(p_pipeline text, p_stage text, p_worker uuid, p_host uuid, p_seq int, p_limit int) returns jsonb
language plpgsql security definer set search_path = ''
as $$
declare
  v_stage pipeline.stages := pipeline.stage_named(p_pipeline, p_stage);
  v_worker pipeline.workers;
begin
  if p_worker is null or p_host is null or p_seq is null or p_limit is null or p_limit not between 0 and 1000 then
    raise exception 'p_worker, p_host and p_seq must be given and p_limit be from 0 to 1000; p_limit is %', coalesce(p_limit::text, 'null')
      using errcode = 'MR002', hint = 'Send a uuid for the worker and one for its process, a sequence number from 1, and the number of attempts to claim.';
  end if;
  select w.* into v_worker from pipeline.workers w where w.id = p_worker for update;
  if not found then
    -- Signing on takes turns, so that two workers never both become the last one that the maximum allows.
    perform pg_advisory_xact_lock(hashtext('pipeline.sign_on'), v_stage.id);
    -- Its arrival answers every ring so far, also when it is sent home.
    delete from pipeline.rings r where r.id in (select u.id from pipeline.rings u where u.stage_id = v_stage.id for update skip locked);
    if pipeline.live_workers(v_stage.id) >= v_stage.max_workers then
      return pipeline.claim_answer(v_stage, 'refused', format('%s workers are live, which is the stage''s maximum', v_stage.max_workers), '[]', '{}');
    end if;
    insert into pipeline.workers (id, stage_id, host, last_seq, signed_on_at, heartbeat_at)
    values (p_worker, v_stage.id, p_host, p_seq - 1, pipeline.now(), pipeline.now()) returning * into v_worker;
  end if;
  if v_worker.stage_id <> v_stage.id then
    raise exception 'worker % signed on for another stage', p_worker using errcode = 'MR006', hint = 'Use a new worker id for each stage and each drain.';
  end if;
  return pipeline.answer_in_sequence(v_stage, v_worker, p_seq, p_limit, '{}');
end
$$;
comment on function public.pipeline_claim(text, text, uuid, uuid, int, int) is 'A worker''s claim of up to p_limit attempts. The first call signs the worker on.';

-- A repeat of the last call is answered with the same batch (and rings rather once too often, since the first answer may
-- have been lost with its rings); anything but the next number is an error.
create function pipeline.answer_in_sequence(p_stage pipeline.stages, p_worker pipeline.workers, p_seq int, p_limit int, p_ready int[]) returns jsonb
language plpgsql set search_path = ''
as $$
begin
  if p_seq = p_worker.last_seq then
    update pipeline.workers w set heartbeat_at = pipeline.now() where w.id = p_worker.id;
    return pipeline.claim_answer(p_stage, case when p_worker.last_token is null then 'empty' else 'working' end, 'repeated answer',
      pipeline.batch_of(p_stage, p_worker.last_token), pipeline.followers_with_work(p_stage.id));
  elsif p_seq <> p_worker.last_seq + 1 then
    raise exception 'p_seq is %, but the last call of this worker was %', p_seq, p_worker.last_seq
      using errcode = 'MR006', hint = 'Count the claim and complete calls of a worker from 1 and repeat a number only to repeat a call.';
  end if;
  return pipeline.claim_next(p_stage, p_worker, p_seq, p_limit, p_ready);
end
$$;
comment on function pipeline.answer_in_sequence(pipeline.stages, pipeline.workers, int, int, int[]) is 'Claims for the next call of a worker, or repeats the answer to its last.';

create function pipeline.followers_with_work(p_stage_id int) returns int[]
language sql set search_path = ''
as $$
  select coalesce(array_agg(distinct vs.stage_id), '{}') from pipeline.version_stages vs
  where p_stage_id = any (vs.needs) and pipeline.has_ready_work(vs.stage_id)
$$;
comment on function pipeline.followers_with_work(int) is 'Stages right after this one that have ready work.';

create function public.pipeline_complete(p_worker uuid, p_seq int, p_items json, p_limit int) returns jsonb
language plpgsql security definer set search_path = ''
as $$
declare
  v_worker pipeline.workers;
  v_stage pipeline.stages;
  v_done record;
begin
  if p_limit is null or p_limit not between 0 and 1000 then
    raise exception 'p_limit is %, but must be from 0 to 1000', coalesce(p_limit::text, 'null') using errcode = 'MR002', hint = 'Send the number of attempts to claim next, 0 for none.';
  end if;
  select w.* into v_worker from pipeline.workers w where w.id = p_worker for update;
  if not found then
    raise exception 'there is no worker %', coalesce(p_worker::text, 'null') using errcode = 'MR006', hint = 'Call pipeline_claim first; it signs the worker on.';
  end if;
  select s.* into v_stage from pipeline.stages s where s.id = v_worker.stage_id;
  v_done := pipeline.record_reports(p_items);
  return pipeline.answer_in_sequence(v_stage, v_worker, p_seq, p_limit, v_done.ready) || jsonb_build_object('items', v_done.verdicts);
end
$$;
comment on function public.pipeline_complete(uuid, int, json, int) is 'Records what became of a worker''s attempts (each with its token) and claims the next p_limit in the same transaction.';

create function public.pipeline_renew(p_worker uuid, p_attempts bigint[]) returns jsonb
language plpgsql security definer set search_path = ''
as $$
declare
  v_now timestamptz := pipeline.now();
  v_held bigint[];
begin
  update pipeline.workers w set heartbeat_at = v_now where w.id = p_worker;
  with held as (select c.token from pipeline.claims c where c.worker_id = p_worker order by c.token for update)
  update pipeline.claims c set expires_at = v_now + s.lease
  from held, pipeline.workers w join pipeline.stages s on s.id = w.stage_id
  where c.token = held.token and w.id = p_worker;
  v_held := array(
    select a.id from pipeline.claims c, unnest(c.attempt_ids) i join pipeline.attempts a on a.id = i
    where c.worker_id = p_worker and a.token = c.token and a.state = 'started');
  return jsonb_build_object('renewed', cardinality(v_held), 'lost', array(select p from unnest(p_attempts) p where p <> all (v_held)));
end
$$;
comment on function public.pipeline_renew(uuid, bigint[]) is 'Heartbeat of a worker: renews all its leases. Of the attempts it names as still running, "lost" lists those that are no longer its own.';

create function public.pipeline_leave(p_worker uuid, p_hand_over boolean default false) returns jsonb
language plpgsql security definer set search_path = ''
as $$
declare
  v_worker pipeline.workers;
begin
  select w.* into v_worker from pipeline.workers w where w.id = p_worker for update;
  if not found or v_worker.left_at is not null then
    return '{"left": true, "ring": []}';
  end if;
  if p_hand_over then
    -- Its budget is used: it signs off first, so that its successor is not one worker too many.
    update pipeline.workers w set left_at = pipeline.now() where w.id = p_worker;
    -- Somebody may be about to enqueue, relying on this worker: then it rings to be on the safe side.
    return jsonb_build_object('left', true, 'ring', case when not pg_try_advisory_xact_lock(hashtext('pipeline.stage'), v_worker.stage_id) or pipeline.has_ready_work(v_worker.stage_id)
      then pipeline.ring_list(pipeline.take_rings(array[v_worker.stage_id])) else '[]' end);
  end if;
  -- After a third failed try it leaves all the same: the sweep rings for whatever is ready without a worker.
  if v_worker.leave_tries < 2 and pipeline.must_stay(v_worker) then
    update pipeline.workers w set leave_tries = w.leave_tries + 1, heartbeat_at = pipeline.now() where w.id = p_worker;
    return '{"left": false, "ring": []}';
  end if;
  update pipeline.workers w set left_at = pipeline.now() where w.id = p_worker;
  return '{"left": true, "ring": []}';
end
$$;
comment on function public.pipeline_leave(uuid, boolean) is 'Signs a worker off, unless work has come meanwhile: then left is false and it should claim again. With p_hand_over it always leaves, and "ring" names its own stage if work is left there.';

-- Whoever enqueues holds the stage's lock in shared mode until it commits. If the leaving worker gets it, nobody is about
-- to rely on this worker, and the look at the queue, a later statement, sees all that was committed before.
create function pipeline.must_stay(p_worker pipeline.workers) returns boolean
language plpgsql volatile set search_path = ''
as $$
begin
  if not (select pipeline.stage_open(s) from pipeline.stages s where s.id = p_worker.stage_id) then
    return false;
  end if;
  if not pg_try_advisory_xact_lock(hashtext('pipeline.stage'), p_worker.stage_id) then
    return true;
  end if;
  -- Work that must be alone may be left to the worker of the same host that is still busy: it looks again when done.
  return pipeline.has_ready_work(p_worker.stage_id) and not exists (
    select from pipeline.claims c join pipeline.workers w on w.id = c.worker_id
    where w.host = p_worker.host and w.id <> p_worker.id and w.stage_id = p_worker.stage_id and c.expires_at > pipeline.now());
end
$$;
comment on function pipeline.must_stay(pipeline.workers) is 'Whether a worker that wants to leave should look at its queue once more.';

revoke all on all functions in schema pipeline from public;
