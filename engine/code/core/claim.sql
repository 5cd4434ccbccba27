-- Chapter 17: claims, and what workers say
--
-- A worker signs on with its first claim, then says complete again and again (each call records results and claims the
-- next batch, in one commit), renews on a timer, and leaves. Its calls carry a sequence number, so that a call repeated
-- after a lost answer gets the same batch again. The public functions here are the whole surface of the engine for
-- Edge Functions; only service_role may call them, and each returns one JSON value.
--
-- The planner settings in their headers hold for all that they call: every look-up goes by an index, row by row, and plans
-- are made once a connection, and never compiled (what must scan a small table looks dear enough for that). Left to itself
-- the planner reads a queue's tables by statistics that are minutes old, and now and then walks a whole index where it wants
-- fifty rows. An index-only scan is such a walk: while a table is small, it looks cheaper than a look-up by the right key.

create or replace function millrace.stage_named(p_pipeline text, p_stage text) returns millrace.stages
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
begin
  select s.* into v_stage from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id
  where p.name = p_pipeline and s.name = p_stage;
  if not found then
    raise exception 'there is no stage % in a pipeline %', coalesce(p_stage, 'null'), coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = 'Known: ' || coalesce((select string_agg(p.name || '.' || s.name, ', ' order by s.id) from millrace.stages s join millrace.pipelines p on p.id = s.pipeline_id), 'none, run `npm run pipelines:sync` and push the migrations') || '.';
  end if;
  return v_stage;
end
$$;
comment on function millrace.stage_named(text, text) is 'The stage with this name; MR003 when there is none.';

-- How many workers of a stage are alive: those that have not left and whose heartbeat is fresh.
create or replace function millrace.live_workers(p_stage_id int) returns int
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return (select count(*) from millrace.workers w
          where w.stage_id = p_stage_id and w.left_at is null and w.heartbeat_at > millrace.now() - interval '15 seconds');
end
$$;
comment on function millrace.live_workers(int) is 'Number of live workers of a stage, in a snapshot of its own.';

create or replace function millrace.has_ready_work(p_stage_id int) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return exists (
    select from millrace.attempts a
    where a.stage_id = p_stage_id and a.queue_at <= v_now and a.state = 'queued')
    and (select s.limits is null or millrace.may_claim(s) from millrace.stages s where s.id = p_stage_id);
end
$$;
comment on function millrace.has_ready_work(int) is 'Whether an attempt of this stage is queued and due, and its limits would let it be claimed.';

-- The claim proper: one statement for a stage without limits. The token is null when there is nothing to claim.
create or replace function millrace.claim(p_stage millrace.stages, p_worker_id uuid, p_host uuid, p_limit int, out token uuid, out attempt_ids bigint[], out entity_ids text[], out items millrace.claimed[])
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_token uuid := gen_random_uuid();
  v_isolated boolean;
  v_busy boolean;
begin
  -- Workers of one host claim by turns, so that one which must be alone sees every other.
  perform pg_advisory_xact_lock(hashtext('millrace.host'), hashtext(p_host::text));
  select count(*) > 0, bool_or(c.isolated) into v_busy, v_isolated
  from millrace.claims c where c.host = p_host and c.expires_at > v_now;
  if p_limit < 1 or v_isolated then
    return;
  end if;
  with picked as materialized (
    select a.id, a.ctid, a.isolated from millrace.attempts a
    where a.stage_id = p_stage.id and a.queue_at <= v_now and a.state = 'queued'
    order by a.queue_at, a.id limit p_limit for update skip locked
  ), head as materialized (
    select p.id, p.isolated from picked p limit 1
  ), chosen as (
    -- One that must be alone waits at the head until its host is idle; it never rides along behind others.
    select p.id, p.ctid from picked p
    where case when (select h.isolated from head h) then p.id = (select h.id from head h) and not v_busy else not p.isolated end
  ), taken as (
    update millrace.attempts a set state = 'started', token = v_token, started_at = v_now
    from chosen c where a.ctid = c.ctid
    returning a.id, a.run_id, a.isolated, a.retry_count, a.number, a.queue_at,
      coalesce(a.submission_id, a.id) as submission
  )
  select array_agg(t.id order by t.queue_at, t.id), array_agg(r.entity_id order by t.queue_at, t.id),
    array_agg(row(t.id, t.run_id, r.entity_id, r.trace_id, r.version_id, t.retry_count, t.submission,
      t.number, t.isolated)::millrace.claimed order by t.queue_at, t.id),
    bool_or(t.isolated)
  into attempt_ids, entity_ids, items, v_isolated
  from taken t join millrace.runs r on r.id = t.run_id;
  if attempt_ids is not null then
    token := v_token;
    insert into millrace.claims (token, worker_id, host, expires_at, isolated, attempt_ids)
    values (v_token, p_worker_id, p_host, v_now + p_stage.lease, v_isolated, attempt_ids);
  end if;
end
$$;
comment on function millrace.claim(millrace.stages, uuid, uuid, int) is 'queued → started for up to limit due attempts of a stage, under one lease.';

-- Only a worker (and the sweep, after expiry) deletes claims: whoever else ends an attempt leaves the lease alone.
create or replace function millrace.drop_claims(p_worker_id uuid) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  delete from millrace.claims c
  where c.worker_id = p_worker_id and not exists (
    select from millrace.attempts a where a.id = any (c.attempt_ids) and a.token = c.token and a.state = 'started');
end
$$;
comment on function millrace.drop_claims(uuid) is 'Deletes the leases of a worker under which nothing is started any more.';

-- Shows a claim on the entities as far as they are free; one that a user holds catches up when its stage completes.
create or replace function millrace.project_started(p_stage millrace.stages, p_entity_ids text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
as $$
declare
  v_context text;
begin
  perform millrace.write_entities(p_stage.pipeline_id, 'started', p_stage.name, null, p_entity_ids, null);
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    -- A user's own trigger that refuses one row, for now or for good, must not stop the stage for all; completing will name it.
    perform millrace.report('error', 'projection_failed', 'A claim could not be shown on its entities: ' || sqlerrm, jsonb_build_object('stage', p_stage.name));
end
$$;
comment on function millrace.project_started(millrace.stages, text[]) is 'Projects a claim onto those of its entities that nobody holds.';

create or replace function millrace.held_items(p_token uuid, p_attempt_ids bigint[]) returns millrace.claimed[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select row(a.id, a.run_id, r.entity_id, r.trace_id, r.version_id, a.retry_count,
      coalesce(a.submission_id, a.id), a.number, a.isolated)::millrace.claimed
    from unnest(p_attempt_ids) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    join millrace.runs r on r.id = a.run_id
    where a.token = p_token and a.state = 'started'
    order by i.place);
end
$$;
comment on function millrace.held_items(uuid, bigint[]) is 'Those attempts of a claim that are still under it, in its order.';

-- Built as json, not jsonb: it is read once, as text, by the function at the other end. What all or most of a batch have in
-- common, the version and its needs, is looked up once. Rows and results that measured_rows() has built already come along
-- with why some are too large; else each may have p_each bytes, and a batch in which one may have more is null.
create or replace function millrace.batch_of(
  p_stage millrace.stages, p_token uuid, p_items millrace.claimed[], p_entity_ids text[],
  p_each bigint, p_built millrace.built[] default null
) returns json
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows json[];
  v_version record;
  v_within boolean;
  v_batch json;
begin
  if p_built is null then
    v_rows := millrace.rows_of_entities(p_stage.pipeline_id, p_entity_ids, p_each);
  end if;
  select v.id, v.number, vs.needs, array(select s.name from unnest(vs.needs) with ordinality n(id, place) join millrace.stages s on s.id = n.id order by n.place) as names into v_version
  from millrace.version_stages vs join millrace.versions v on v.id = vs.version_id where vs.stage_id = p_stage.id order by v.id desc limit 1;
  -- Rows made JSON as a whole: naming each field in json_build_object costs half as much again.
  select json_agg(b), bool_and(b.entity is not null and b.needs is not null) into v_batch, v_within from (
    select i.attempt_id as attempt, p_token as token, i.run_id as run, i.trace_id, i.entity_id,
      case when i.version_id = v_version.id then v_version.number else (select v.number from millrace.versions v where v.id = i.version_id) end as version,
      coalesce(i.entity, i.built_entity) as entity, i.retry_count, i.submission, i.isolated,
      -- A retry goes on with the execution of the stage that the oldest attempt began.
      case when i.number = 1 then i.attempt_id else (
        select min(a.id) from millrace.attempts a
        where a.run_id = i.run_id and a.stage_id = p_stage.id and not a.superseded
      ) end as execution,
      case
        when p_built is not null then i.built_needs
        when i.version_id <> v_version.id then millrace.needs_of(i.run_id, i.version_id, p_stage.id, p_each)
        else (
          select case when bool_or(z.most > p_each) is not true then coalesce(
              json_object_agg(v_version.names[array_position(v_version.needs, n.stage_id)], n.output)
                filter (where (z.most > p_each) is not true), '{}') end
          from millrace.attempts n
          -- The most that its text may have, as in size_expression() of the chapter attaching.
          cross join lateral (values (pg_column_size(n.output)::bigint
            * case when pg_column_compression(n.output) is null then 8 else 100 end)) z(most)
          where n.run_id = i.run_id
            and n.stage_id = any (v_version.needs)
            and n.state in ('completed', 'skipped')
            and not n.superseded)
      end as needs,
      i.failure
    from rows from (unnest(p_items), unnest(v_rows), unnest(p_built)) as i(attempt_id, run_id, entity_id, trace_id,
      version_id, retry_count, submission, number, isolated, entity, built_entity, built_needs, failure)
    -- offset 0 keeps the planner from making the needs once for the JSON and once more to ask whether they are null.
    offset 0) b;
  if v_within then
    return v_batch;
  end if;
  return case when cardinality(p_items) > 0 then null else '[]' end;
end
$$;
comment on function millrace.batch_of(millrace.stages, uuid, millrace.claimed[], text[], bigint, millrace.built[]) is
  'Claimed attempts as their worker reads them, each with its entity''s row and the results of its needs; null where one may have more than p_each bytes.';

-- One row at a time. Of what is stored the size is known before it is fetched; what that leaves open shows once it is
-- built. The first row that the others leave no room for ends the batch.
create or replace function millrace.measured_rows(
  p_stage millrace.stages, p_items millrace.claimed[], p_entity_ids text[], p_bytes bigint
) returns millrace.built[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  -- What else the batch says of an item.
  c_frame constant int := 500;
  -- What is longer than Postgres can write out counts as a gigabyte.
  c_unwritable constant bigint := 1073741824;
  v_stored bigint[] := millrace.sizes_of_entities(p_stage.pipeline_id, p_entity_ids);
  v_used bigint := 0;
  v_size bigint;
  v_row millrace.built;
  v_rows millrace.built[] := '{}';
begin
  for v_i in 1 .. cardinality(p_items) loop
    v_size := c_frame + coalesce(v_stored[v_i], 0)
      + millrace.size_of_needs(p_items[v_i].run_id, p_items[v_i].version_id, p_stage.id);
    if v_size <= p_bytes then
      exit when v_used + v_size > p_bytes;
      v_row := millrace.built_row(p_stage, p_items[v_i]);
      v_size := c_frame + coalesce(
        octet_length(v_row.entity::text)::bigint + octet_length(v_row.needs::text), c_unwritable);
    end if;
    if v_size > p_bytes then
      v_row := row('{}', '{}', json_build_object('code', 'row_too_large', 'message', format(
        'the row and the results that stage %s needs have %s bytes, but a worker takes %s (setting batch_bytes); '
        'shorten the row, then retry it', p_stage.name, v_size, p_bytes)))::millrace.built;
      v_size := c_frame;
    end if;
    exit when v_used + v_size > p_bytes;
    v_used := v_used + v_size;
    v_rows[v_i] := v_row;
  end loop;
  return v_rows;
end
$$;
comment on function millrace.measured_rows(millrace.stages, millrace.claimed[], text[], bigint) is
  'The rows of as many items, from the first, as have p_bytes together, with the results of their needs; one that alone has more comes with the failure to report.';

create or replace function millrace.built_row(p_stage millrace.stages, p_item millrace.claimed) returns millrace.built
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return row(
    coalesce((millrace.rows_of_entities(p_stage.pipeline_id, array[p_item.entity_id], null))[1], '{}'),
    millrace.needs_of(p_item.run_id, p_item.version_id, p_stage.id, null),
    null)::millrace.built;
exception
  -- Postgres makes no text of over a gigabyte, which a number such as 1e100000 comes to when it is written out.
  when program_limit_exceeded or out_of_memory then
    return null;
end
$$;
comment on function millrace.built_row(millrace.stages, millrace.claimed) is
  'The row of an item and the results of its needs; null where Postgres cannot write them out.';

-- A batch whose rows are small, as nearly all are, is built in one go. Where that cannot be told beforehand, its rows are
-- measured one by one: a few per cent more work for rows of ten kilobytes, and a tenth of all for rows of one.
create or replace function millrace.fill_batch(
  p_stage millrace.stages, p_token uuid, p_items millrace.claimed[], p_entity_ids text[],
  out batch json, out kept int
)
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_bytes bigint := millrace.batch_bytes();
  v_built millrace.built[];
begin
  kept := cardinality(p_items);
  batch := millrace.batch_of(p_stage, p_token, p_items, p_entity_ids, v_bytes / (2 * greatest(kept, 1)));
  if pg_column_size(batch) <= v_bytes then
    return;
  end if;
  v_built := millrace.measured_rows(p_stage, p_items, p_entity_ids, v_bytes);
  kept := cardinality(v_built);
  batch := millrace.batch_of(p_stage, p_token, p_items[:kept], p_entity_ids[:kept], null, v_built);
end
$$;
comment on function millrace.fill_batch(millrace.stages, uuid, millrace.claimed[], text[]) is
  'The batch of as many items, from the first, as the setting batch_bytes allows; kept says how many.';

create or replace function millrace.needs_of(p_run_id bigint, p_version_id int, p_stage_id int, p_each bigint)
returns json
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  if 100 * millrace.size_of_needs(p_run_id, p_version_id, p_stage_id) > p_each then
    return null;
  end if;
  return coalesce((
    select json_object_agg(s.name, n.output)
    from millrace.version_stages vs
    join millrace.attempts n on n.run_id = p_run_id and n.stage_id = any (vs.needs) and n.state in ('completed', 'skipped') and not n.superseded
    join millrace.stages s on s.id = n.stage_id
    where vs.version_id = p_version_id and vs.stage_id = p_stage_id), '{}');
end
$$;
comment on function millrace.needs_of(bigint, int, int, bigint) is 'The results of what a stage of a run needs, by the names of the stages; null where they may have more than p_each bytes.';

create or replace function millrace.size_of_needs(p_run_id bigint, p_version_id int, p_stage_id int) returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select coalesce(sum(pg_column_size(n.output)), 0)
    from millrace.version_stages vs
    join millrace.attempts n on n.run_id = p_run_id
      and n.stage_id = any (vs.needs)
      and n.state in ('completed', 'skipped')
      and not n.superseded
    where vs.version_id = p_version_id and vs.stage_id = p_stage_id);
end
$$;
comment on function millrace.size_of_needs(bigint, int, int) is
  'The bytes of the results that a stage of a run needs, as they are stored.';

-- What its bytes kept out of a batch goes back as if it had never been claimed: at its place in the queue, and with what
-- the claim took of the stage's limits.
create or replace function millrace.give_back(p_stage millrace.stages, p_token uuid, p_kept bigint[], p_back bigint[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.attempts a
  set state = 'queued', token = null, started_at = null
  where a.id = any (p_back) and a.token = p_token and a.state = 'started';
  update millrace.claims c
  set attempt_ids = p_kept
  where c.token = p_token;
  if p_stage.limits is not null then
    perform millrace.give_back_limits(p_stage, p_kept, p_back);
  end if;
end
$$;
comment on function millrace.give_back(millrace.stages, uuid, bigint[], bigint[]) is
  'started → queued for those attempts of a claim, made in this transaction, that its batch has no room for.';

-- pg_cron stalls now and then, so workers and callbacks look after the sweep as well: an answer that says so has its
-- receiver call millrace_sweep(), in a transaction of its own.
create or replace function millrace.sweep_due() returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((
    select s.value::timestamptz <= millrace.now() - interval '1 minute'
    from millrace.settings s where s.name = 'last_sweep_at'), true);
end
$$;
comment on function millrace.sweep_due() is 'Whether the last sweep is over a minute old.';

-- The answer to claim and complete alike: the batch, the functions that the worker should wake now, and the parents that have
-- something to collect children.
create or replace function millrace.claim_answer(p_stage millrace.stages, p_status text, p_reason text, p_batch json, p_wake int[], p_items json, p_wait_ms int default null, p_cut boolean default false) returns json
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  return json_build_object(
    'status', p_status, 'reason', p_reason, 'lease_ms', (extract(epoch from p_stage.lease) * 1000)::int,
    'stage', json_build_object('batch_size', p_stage.batch_size, 'timeout_ms', (extract(epoch from p_stage.timeout) * 1000)::int, 'result_limit_bytes', p_stage.result_limit_bytes),
    'batch', p_batch, 'wake', case when cardinality(p_wake) > 0 then millrace.wake_list(p_wake) else '[]' end, 'items', p_items, 'wait_ms', p_wait_ms,
    'sweep_due', millrace.sweep_due(), 'cut', p_cut,
    'collect', case when p_stage.kind = 'map' or (select p.is_child from millrace.pipelines p where p.id = p_stage.pipeline_id) then millrace.parents_to_collect('{}') else '{}' end);
end
$$;
comment on function millrace.claim_answer(millrace.stages, text, text, json, int[], json, int, boolean) is 'Builds the answer to millrace_claim and millrace_complete. wait_ms: how long a worker that got nothing, because of limits, may wait before it asks again. cut: it got less than it asked for and there was, since its batch has all the bytes that one may have.';

create or replace function millrace.stage_open(p_stage millrace.stages) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return p_stage.enabled and (select p.enabled from millrace.pipelines p where p.id = p_stage.pipeline_id);
end
$$;
comment on function millrace.stage_open(millrace.stages) is 'Whether the stage and its pipeline are switched on.';

-- Claims for a signed-on worker, remembers the claim for a repeat, and sees to scaling out.
create or replace function millrace.claim_next(p_stage millrace.stages, p_worker millrace.workers, p_seq int, p_limit int, p_done record) returns json
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_claim record;
  v_wait_ms int;
  v_filled record;
  v_taken int;
  v_cut boolean := false;
  v_wake int[] := array_remove(p_done.ready, p_stage.id);
  v_open boolean := millrace.stage_open(p_stage);
begin
  select '[]'::json as batch, 0 as kept into v_filled;
  if p_stage.limits is null then
    v_claim := millrace.claim(p_stage, p_worker.id, p_worker.host, case when v_open then p_limit else 0 end);
  else
    v_claim := millrace.claim_limited(p_stage, p_worker.id, p_worker.host, case when v_open then p_limit else 0 end, p_done.verdicts is null);
    v_wait_ms := v_claim.wait_ms;
  end if;
  v_taken := cardinality(v_claim.attempt_ids);
  if p_stage.counted and v_claim.token is not null then
    v_claim.items := millrace.keep_to_quotas(p_stage, v_claim.token, v_claim.attempt_ids);
    v_claim.attempt_ids := array(select i.attempt_id from unnest(v_claim.items) i);
    v_claim.entity_ids := array(select i.entity_id from unnest(v_claim.items) i);
    if cardinality(v_claim.items) = 0 then
      -- All of it was held back: there may be another tenant's work behind it.
      v_claim.token := null;
      v_wait_ms := 0;
    end if;
  end if;
  if v_claim.token is not null then
    if v_claim.items is null then
      v_claim.items := millrace.held_items(v_claim.token, v_claim.attempt_ids);
      v_claim.entity_ids := array(select i.entity_id from unnest(v_claim.items) i);
    end if;
    v_filled := millrace.fill_batch(p_stage, v_claim.token, v_claim.items, v_claim.entity_ids);
    v_cut := v_filled.kept < cardinality(v_claim.attempt_ids);
    if v_cut then
      perform millrace.give_back(p_stage, v_claim.token, v_claim.attempt_ids[:v_filled.kept], v_claim.attempt_ids[v_filled.kept + 1:]);
      v_claim.attempt_ids := v_claim.attempt_ids[:v_filled.kept];
    end if;
    perform millrace.project_started(p_stage, v_claim.entity_ids[:v_filled.kept]);
    -- A user's trigger may have ended one of them there and then.
    if v_filled.kept > (select count(*) from millrace.attempts a where a.id = any (v_claim.attempt_ids) and a.state = 'started') then
      v_filled := millrace.held_batch(p_stage, v_claim.token, v_claim.attempt_ids);
    end if;
    -- A full claim with more behind it: that is how a stage scales out. One that must be alone
    -- fills its host.
    if (v_taken >= p_limit or v_cut or (v_claim.items[1]).isolated)
      and millrace.live_workers(p_stage.id) < p_stage.max_workers
      and millrace.has_ready_work(p_stage.id) then
      v_wake := v_wake || p_stage.id;
    end if;
  end if;
  update millrace.workers w set last_seq = p_seq, last_token = v_claim.token, heartbeat_at = millrace.now(), left_at = null,
    leave_tries = case when v_claim.token is null then w.leave_tries else 0 end where w.id = p_worker.id;
  if cardinality(v_wake) > 0 then
    v_wake := millrace.stages_to_wake(v_wake, p_stage.id);
  end if;
  return millrace.claim_answer(p_stage, case when not v_open then 'refused' when v_claim.token is null then 'empty' else 'working' end,
    case when not v_open then 'the stage or its pipeline is switched off' end, v_filled.batch, v_wake, p_done.verdicts, v_wait_ms, v_cut);
end
$$;
comment on function millrace.claim_next(millrace.stages, millrace.workers, int, int, record) is 'The claiming half of millrace_claim and millrace_complete.';

-- Of a batch that was handed out before. A row may have grown since: what has no room any more is released.
create or replace function millrace.held_batch(
  p_stage millrace.stages, p_token uuid, p_attempt_ids bigint[], out batch json, out kept int
)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_items millrace.claimed[] := millrace.held_items(p_token, p_attempt_ids);
begin
  select f.batch, f.kept into batch, kept
  from millrace.fill_batch(p_stage, p_token, v_items, array(select i.entity_id from unnest(v_items) i)) f;
  if kept < cardinality(v_items) then
    perform millrace.record_items(millrace.parse_items((
      select json_agg(json_build_object('attempt', i.attempt_id, 'token', p_token, 'outcome', 'released'))
      from unnest(v_items[kept + 1:]) i), 'attempt'));
  end if;
end
$$;
comment on function millrace.held_batch(millrace.stages, uuid, bigint[]) is
  'The batch of those attempts of a claim that are still under it, as far as the setting batch_bytes allows.';

create or replace function millrace.repeat_answer(p_stage millrace.stages, p_worker millrace.workers, p_done record) returns json
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_held record;
begin
  v_held := millrace.held_batch(p_stage, p_worker.last_token,
    (select c.attempt_ids from millrace.claims c where c.token = p_worker.last_token));
  update millrace.workers w set heartbeat_at = millrace.now() where w.id = p_worker.id;
  return millrace.claim_answer(p_stage, case when v_held.kept = 0 then 'empty' else 'working' end, 'repeated answer', v_held.batch,
    millrace.followers_with_work(p_stage.id), p_done.verdicts);
end
$$;
comment on function millrace.repeat_answer(millrace.stages, millrace.workers, record) is 'The answer to a call that a worker repeats, since it may not have heard the first: the same batch, and rather a wake-up too many.';

create or replace function millrace.followers_with_work(p_stage_id int) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  return array(select distinct vs.stage_id from millrace.version_stages vs where p_stage_id = any (vs.needs) and millrace.has_ready_work(vs.stage_id));
end
$$;
comment on function millrace.followers_with_work(int) is 'Stages right after this one that have ready work.';

-- The next number is a new call, the last one a repeat; anything else is an error.
create or replace function millrace.answer_in_sequence(p_stage millrace.stages, p_worker millrace.workers, p_seq int, p_limit int, p_done record) returns json
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if p_seq = p_worker.last_seq then
    return millrace.repeat_answer(p_stage, p_worker, p_done);
  elsif p_seq is distinct from p_worker.last_seq + 1 then
    raise exception 'p_seq is %, but the last call of this worker was %', coalesce(p_seq::text, 'null'), p_worker.last_seq
      using errcode = 'MR006', hint = 'Count the claim and complete calls of a worker from 1 and repeat a number only to repeat a call.';
  end if;
  return millrace.claim_next(p_stage, p_worker, p_seq, p_limit, p_done);
end
$$;
comment on function millrace.answer_in_sequence(millrace.stages, millrace.workers, int, int, record) is 'Claims for the next call of a worker, or repeats the answer to its last.';

create or replace function public.millrace_claim(p_pipeline text, p_stage text, p_worker uuid, p_host uuid, p_seq int, p_limit int) returns json
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_stage millrace.stages := millrace.stage_named(p_pipeline, p_stage);
  v_worker millrace.workers;
  v_done record;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  select null::json as verdicts, '{}'::int[] as ready into v_done;
  if p_worker is null or p_host is null or p_seq is null or p_limit is null or p_limit not between 0 and 1000 then
    raise exception 'p_worker, p_host and p_seq must be given and p_limit be from 0 to 1000; p_limit is %', coalesce(p_limit::text, 'null')
      using errcode = 'MR002', hint = 'Send a uuid for the worker and one for its process, a sequence number from 1, and the number of attempts to claim.';
  end if;
  select w.* into v_worker from millrace.workers w where w.id = p_worker for update;
  if not found then
    -- Signing on takes turns, so that two workers never both become the last one that the maximum allows.
    perform pg_advisory_xact_lock(hashtext('millrace.sign_on'), v_stage.id);
    -- The first try of this very call may have signed the worker on while this one waited.
    select w.* into v_worker from millrace.workers w where w.id = p_worker for update;
  end if;
  if v_worker.id is null then
    -- Its arrival answers every wake-up so far, also when it is sent home.
    delete from millrace.wake_ups r where r.id in (select u.id from millrace.wake_ups u where u.stage_id = v_stage.id for update skip locked);
    if millrace.live_workers(v_stage.id) >= v_stage.max_workers then
      return millrace.claim_answer(v_stage, 'refused', format('%s workers are live, which is the stage''s maximum', v_stage.max_workers), '[]', '{}', null);
    end if;
    insert into millrace.workers (id, stage_id, host, last_seq, signed_on_at, heartbeat_at)
    values (p_worker, v_stage.id, p_host, p_seq - 1, millrace.now(), millrace.now()) returning * into v_worker;
  end if;
  if v_worker.stage_id <> v_stage.id then
    raise exception 'worker % signed on for another stage', p_worker using errcode = 'MR006', hint = 'Use a new worker id for each stage and each drain.';
  end if;
  return millrace.answer_in_sequence(v_stage, v_worker, p_seq, p_limit, v_done);
end
$$;
comment on function public.millrace_claim(text, text, uuid, uuid, int, int) is 'A worker''s claim of up to p_limit attempts. The first call signs the worker on.';
revoke all on function public.millrace_claim(text, text, uuid, uuid, int, int)
  from public, anon, authenticated;
grant execute on function public.millrace_claim(text, text, uuid, uuid, int, int) to service_role;

create or replace function public.millrace_complete(p_worker uuid, p_seq int, p_items json, p_limit int) returns json
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_worker millrace.workers;
  v_stage millrace.stages;
  v_done record;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_limit is null or p_limit not between 0 and 1000 then
    raise exception 'p_limit is %, but must be from 0 to 1000', coalesce(p_limit::text, 'null') using errcode = 'MR002', hint = 'Send the number of attempts to claim next, 0 for none.';
  end if;
  select w.* into v_worker from millrace.workers w where w.id = p_worker for update;
  if not found then
    raise exception 'there is no worker %', coalesce(p_worker::text, 'null') using errcode = 'MR006', hint = 'Call millrace_claim first; it signs the worker on.';
  end if;
  select s.* into v_stage from millrace.stages s where s.id = v_worker.stage_id;
  v_done := millrace.record_items(millrace.parse_items(p_items, 'attempt'));
  if v_stage.kind = 'agent' then
    perform millrace.drop_turns(v_stage, v_done.verdicts);
  elsif v_stage.kind = 'map' then
    perform millrace.leave_children(v_stage, array(select v.attempt from json_to_recordset(v_done.verdicts) as v(attempt bigint)));
  end if;
  perform millrace.drop_claims(p_worker);
  return millrace.answer_in_sequence(v_stage, v_worker, p_seq, p_limit, v_done);
end
$$;
comment on function public.millrace_complete(uuid, int, json, int) is 'Records what became of a worker''s attempts (each with its token) and claims the next p_limit in the same transaction.';
revoke all on function public.millrace_complete(uuid, int, json, int)
  from public, anon, authenticated;
grant execute on function public.millrace_complete(uuid, int, json, int) to service_role;

create or replace function public.millrace_renew(p_worker uuid, p_attempts bigint[]) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := millrace.now();
  v_held bigint[];
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  update millrace.workers w set heartbeat_at = v_now where w.id = p_worker;
  with held as (select c.token from millrace.claims c where c.worker_id = p_worker order by c.token for update)
  update millrace.claims c set expires_at = v_now + s.lease
  from held, millrace.workers w join millrace.stages s on s.id = w.stage_id
  where c.token = held.token and w.id = p_worker;
  v_held := array(
    select a.id from millrace.claims c
    cross join lateral (select t.id from millrace.attempts t where t.id = any (c.attempt_ids) and t.token = c.token and t.state = 'started' offset 0) a
    where c.worker_id = p_worker);
  return jsonb_build_object('renewed', cardinality(v_held), 'lost', array(select p from unnest(p_attempts) p where p <> all (v_held)));
end
$$;
comment on function public.millrace_renew(uuid, bigint[]) is 'Heartbeat of a worker: renews all its leases. Of the attempts it names as still running, "lost" lists those that are no longer its own.';
revoke all on function public.millrace_renew(uuid, bigint[]) from public, anon, authenticated;
grant execute on function public.millrace_renew(uuid, bigint[]) to service_role;

create or replace function public.millrace_leave(p_worker uuid, p_hand_over boolean default false) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_worker millrace.workers;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  select w.* into v_worker from millrace.workers w where w.id = p_worker for update;
  if not found or v_worker.left_at is not null then
    return '{"left": true, "wake": []}';
  end if;
  perform millrace.drop_claims(p_worker);
  if p_hand_over then
    -- Its budget is used: it signs off first, so that its successor is not one worker too many.
    update millrace.workers w set left_at = millrace.now() where w.id = p_worker;
    -- Somebody may be about to enqueue, relying on this worker: then it wakes to be on the safe side.
    return jsonb_build_object('left', true, 'wake', case when not pg_try_advisory_xact_lock(hashtext('millrace.stage'), v_worker.stage_id) or millrace.has_ready_work(v_worker.stage_id)
      then millrace.wake_list(millrace.stages_to_wake(array[v_worker.stage_id])) else '[]' end);
  end if;
  -- After a third failed try it leaves all the same: the sweep wakes for whatever is ready without a worker.
  if v_worker.leave_tries < 2 and millrace.must_stay(v_worker) then
    update millrace.workers w set leave_tries = w.leave_tries + 1, heartbeat_at = millrace.now() where w.id = p_worker;
    return '{"left": false, "wake": []}';
  end if;
  update millrace.workers w set left_at = millrace.now() where w.id = p_worker;
  return '{"left": true, "wake": []}';
end
$$;
comment on function public.millrace_leave(uuid, boolean) is 'Signs a worker off, unless work has come meanwhile: then left is false and it should claim again. With p_hand_over it always leaves, and "wake" names its own stage if work is left there.';
revoke all on function public.millrace_leave(uuid, boolean) from public, anon, authenticated;
grant execute on function public.millrace_leave(uuid, boolean) to service_role;

-- Whoever enqueues holds the stage's lock in shared mode until it commits. If the leaving worker gets it, nobody is about
-- to rely on this worker, and the look at the queue, a later statement, sees all that was committed before.
create or replace function millrace.must_stay(p_worker millrace.workers) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  if not (select millrace.stage_open(s) from millrace.stages s where s.id = p_worker.stage_id) then
    return false;
  end if;
  if not pg_try_advisory_xact_lock(hashtext('millrace.stage'), p_worker.stage_id) then
    return true;
  end if;
  -- Work that must be alone may be left to the worker of the same host that is still busy: it looks again when done.
  return millrace.has_ready_work(p_worker.stage_id) and not exists (
    select from millrace.claims c join millrace.workers w on w.id = c.worker_id
    where c.host = p_worker.host and w.id <> p_worker.id and w.stage_id = p_worker.stage_id and c.expires_at > millrace.now());
end
$$;
comment on function millrace.must_stay(millrace.workers) is 'Whether a worker that wants to leave should look at its queue once more.';
