-- Spawning: the worker of a map stage hands over its items
--
-- In chunks that fit the Data API's time limit. An item is known by its key: a worker that dies
-- half-way is followed by one that sends everything again.

-- Starts the runs of children for a chunk of items {key, …} of a map attempt; p_last closes the
-- total. Idempotent by key. busy: rows that somebody holds, to be sent again.
create function public.millrace_spawn(
  p_worker uuid, p_attempt bigint, p_token uuid, p_items jsonb, p_last boolean
) returns jsonb
set millrace.plan = by_key
as $$
declare
  v_fault text := case
    when jsonb_typeof(p_items) is distinct from 'array'
      then 'p_items is ' || coalesce(jsonb_typeof(p_items), 'null')
    when jsonb_array_length(p_items) > 5000
      then format('p_items has %s items', jsonb_array_length(p_items))
    when p_last is null then 'p_last is null'
    else (
      select format('an item has the key %s', coalesce(i -> 'key', 'null'))
      from jsonb_array_elements(p_items) i
      where jsonb_typeof(i) <> 'object'
        or coalesce(jsonb_typeof(i -> 'key') not in ('string', 'number'), true)
        or length(i ->> 'key') not between 1 and 200
      limit 1)
  end;
  v_attempt millrace.attempts;
  v_stage millrace.stages;
  v_reason text;
  v_done record;
begin
  if v_fault is not null then
    raise exception 'these children cannot begin: %', v_fault
      using errcode = 'MR002',
        hint = 'Send a list of at most 5000 objects, each with a "key" of 1 to 200 characters '
          'that is its own, and say with p_last whether they are the last.';
  end if;
  perform public.millrace_renew(p_worker, '{}');
  select a.* into v_attempt from millrace.attempts a where a.id = p_attempt;
  select s.* into v_stage from millrace.stages s where s.id = v_attempt.stage_id;
  if v_stage.kind <> 'map' then
    raise exception 'attempt % is of stage %, which is no map', p_attempt, v_stage.name
      using errcode = 'MR004', hint = 'Only a stage of kind map has children to spawn.';
  end if;
  -- Who cancels, resets or deletes the parent waits for this chunk, or this chunk hears of it.
  if not millrace.hold_parent(v_attempt.run_id) then
    return jsonb_build_object('status', 'busy', 'wake', '[]'::jsonb,
      'reason', 'the run or its row is locked by another transaction');
  end if;
  select a.* into v_attempt from millrace.attempts a where a.id = p_attempt;
  v_reason := millrace.void_reason(v_attempt, p_token);
  if v_reason is not null then
    return jsonb_build_object('status', 'stale', 'reason', v_reason, 'wake', '[]'::jsonb);
  end if;
  v_done := millrace.spawn_chunk(v_attempt, p_items, p_last);
  return jsonb_build_object(
    'status', case when v_done.busy is null then 'spawned' else 'busy' end,
    'fan_out', (v_done.fan_out).id,
    'spawned', (v_done.fan_out).spawned,
    'total', (v_done.fan_out).total,
    'busy', coalesce(v_done.busy, '{}'),
    'wake', millrace.wake_list(millrace.stages_to_wake(v_done.wake)));
end
$$;

-- Locks a run and its entity, to which children may refer; false when somebody keeps them for
-- longer than 200 ms: collectors hold a parent again and again for a moment.
create function millrace.hold_parent(p_run_id bigint) returns boolean
set lock_timeout = '200ms'
as $$
begin
  perform millrace.hold_runs(array[p_run_id]);
  return true;
exception
  when lock_not_available then
    return false;
end
$$;

-- Says why a worker that shows this token may not speak for the attempt; null when it may.
create function millrace.void_reason(p_attempt millrace.attempts, p_token uuid) returns text
language sql immutable
as $$
  select millrace.stale_reason(p_attempt.state, p_attempt.error)
  where (p_attempt.state = 'started' and p_attempt.token = p_token) is not true
$$;

-- Starts the runs of a chunk of items whose rows could be had, in the open fan-out of a map
-- attempt. Failed children are retried where a person retried the parent.
create function millrace.spawn_chunk(
  p_attempt millrace.attempts, p_items jsonb, p_last boolean,
  out fan_out millrace.fan_outs, out wake int[], out busy text[]
)
as $$
declare
  v_stage millrace.stages;
  v_child millrace.pipelines;
  v_rows record;
  v_held text[];
  v_whole boolean;
  v_lacking record;
begin
  select s.* into v_stage from millrace.stages s where s.id = p_attempt.stage_id;
  select p.* into v_child
  from millrace.pipelines p
  where p.name = v_stage.child ->> 'pipeline';
  update millrace.fan_outs f
  set attempt_id = p_attempt.id
  where f.run_id = p_attempt.run_id
    and f.stage_id = p_attempt.stage_id
    and f.state = 'open'
  returning f.* into fan_out;
  if not found then
    insert into millrace.fan_outs (run_id, stage_id, attempt_id, child_pipeline_id)
    values (p_attempt.run_id, p_attempt.stage_id, p_attempt.id, v_child.id)
    returning * into fan_out;
  end if;
  if fan_out.child_pipeline_id <> v_child.id then
    raise exception 'the children of stage % are to be runs of pipeline % now, '
        'but this fan-out began with another', v_stage.name, v_child.name
      using errcode = 'MR004', hint = 'Reset the stage: select millrace.reset(run, stage).';
  end if;
  v_rows := millrace.rows_for_items(v_stage,
    (select r.entity_id from millrace.runs r where r.id = p_attempt.run_id), p_items);
  select k as key into v_lacking
  from unnest(v_rows.item_keys) k
  where k !~ '^(0|[1-9][0-9]{0,8})$'
    and exists (
      select
      from millrace.runs r
      join millrace.version_stages vs on vs.version_id = r.version_id
      where r.id = p_attempt.run_id
        and vs.after @> jsonb_build_array(jsonb_build_object(
          'kind', 'consecutive', 'map', p_attempt.stage_id)))
  limit 1;
  if found then
    raise exception 'an item has the key %, but a threshold counts consecutive numbers',
        v_lacking.key
      using errcode = 'MR002',
        hint = 'Use whole numbers up to 999999999, without leading zeros, as keys, '
          'or a threshold of the kind count.';
  end if;
  v_held := millrace.lock_rows_named(v_child, v_rows.entity_ids, false);
  v_whole := not exists (select unnest(v_rows.entity_ids) except select unnest(v_held));
  select i.key, i.entity_id, i.entity ->> v_child.entity_key as spelling into v_lacking
  from unnest(v_rows.item_keys, v_rows.entity_ids,
    millrace.rows_of_entities(v_child.id, v_rows.entity_ids, null)) i(key, entity_id, entity)
  where not v_whole
    and (i.entity ->> v_child.entity_key = i.entity_id) is not true
  limit 1;
  if found then
    raise exception 'table % has no row % for item %',
        v_child.entity_table, v_lacking.entity_id, v_lacking.key
      using errcode = 'MR003', hint = coalesce(
        'Spell it as the table does: ' || v_lacking.spelling || '.',
        'Insert the rows first, or name an insert function in the definition.');
  elsif not v_whole then
    select array_agg(i.key) filter (where i.entity_id <> all (v_held)),
      array_agg(i.key) filter (where i.entity_id = any (v_held)),
      array_agg(i.entity_id) filter (where i.entity_id = any (v_held))
    into busy, v_rows.item_keys, v_rows.entity_ids
    from unnest(v_rows.item_keys, v_rows.entity_ids) i(key, entity_id);
  end if;
  if fan_out.retry_children then
    perform millrace.refile_items(fan_out.id, v_rows.item_keys);
    perform millrace.retry_runs(array(
      select r.id
      from millrace.runs r
      where r.fan_out_id = fan_out.id
        and r.item_key = any (v_rows.item_keys)
        and r.status in ('failed', 'cancelled')
      order by r.id
      for no key update));
  end if;
  wake := millrace.add_children(fan_out, v_rows.item_keys, v_rows.entity_ids);
  if p_last and busy is null then
    update millrace.fan_outs f
    set total = f.spawned, retry_children = false
    where f.id = fan_out.id;
    insert into millrace.child_tallies (fan_out_id) values (fan_out.id);
  end if;
  select f.* into fan_out from millrace.fan_outs f where f.id = fan_out.id;
end
$$;

-- Names the rows of the items of a chunk: those under their keys, or the answer of the definition's
-- insert function. Even "on conflict do nothing" waits for the holder of a row, so such a function
-- leaves out what exists already.
create function millrace.rows_for_items(
  p_stage millrace.stages, p_parent text, p_items jsonb,
  out item_keys text[], out entity_ids text[]
)
as $$
declare
  v_insert regprocedure := to_regprocedure((p_stage.child ->> 'insert') || '(text,jsonb)');
  v_asked text[] := array(
    select k
    from (select distinct i ->> 'key' as k from jsonb_array_elements(p_items) i) d
    order by length(k), k);
  v_malformed record;
begin
  if p_stage.child ->> 'insert' is null then
    item_keys := v_asked;
    entity_ids := v_asked;
    return;
  elsif v_insert is null then
    raise exception 'the stage''s insert function %(text, jsonb) does not exist',
        p_stage.child ->> 'insert'
      using errcode = 'MR004', hint = 'Create it again, then retry the run.';
  end if;
  execute format($query$
    select coalesce(array_agg(f.item_key order by length(f.item_key), f.item_key), '{}'),
      coalesce(array_agg(f.entity_id order by length(f.item_key), f.item_key), '{}')
    from (select distinct on (item_key) item_key, entity_id from %s($1, $2)) f
    $query$, v_insert::regproc)
  into item_keys, entity_ids
  using p_parent, p_items;
  select key,
    case
      when a.place is null then 'was not asked for'
      when r.place is null then 'is missing'
      else 'has no entity_id'
    end as fault
  into v_malformed
  from unnest(v_asked) with ordinality a(key, place)
  full join unnest(item_keys, entity_ids) with ordinality r(key, entity_id, place) using (key)
  where a.place is null
    or r.entity_id is null
  limit 1;
  if found then
    raise exception 'the insert function % answered % rows for % items: item % %',
        v_insert::regproc, cardinality(item_keys), cardinality(v_asked),
        coalesce(v_malformed.key, 'null'), v_malformed.fault
      using errcode = 'MR004',
        hint = 'Return one (item_key, entity_id) for each item, '
          'also for those whose row exists already.';
  end if;
end
$$;

-- Starts runs for the items that have none in this fan-out; children that no parent waits for make
-- way. Returns the stages with work. Raises MR004 when a row has another live run, or two items.
create function millrace.add_children(
  p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]
) returns int[]
as $$
declare
  v_child millrace.pipelines := (
    select p from millrace.pipelines p where p.id = p_fan_out.child_pipeline_id);
  v_other record;
  v_new record;
  v_made record;
  v_spawned int;
begin
  -- "offset 0" keeps it a look-up for each item: as a join it would read all children again.
  select i.key, o.key as other, i.entity_id into v_other
  from (
    select u.key, u.entity_id, min(u.key) over (partition by u.entity_id) as first
    from unnest(p_item_keys, p_entity_ids) u(key, entity_id)) i
  cross join lateral (
    select i.first as key
    where i.first <> i.key
    union all
    select r.item_key
    from millrace.runs r
    where r.entity_id = i.entity_id
      and r.pipeline_id = v_child.id
      and r.fan_out_id = p_fan_out.id
      and r.item_key <> i.key
    offset 0) o
  limit 1;
  if found then
    raise exception 'the items % and % have the same row, %',
        v_other.other, v_other.key, v_other.entity_id
      using errcode = 'MR004',
        hint = 'Each item needs a row of its own: let the insert function key them apart.';
  end if;
  select coalesce(array_agg(i.key), '{}') as keys,
    coalesce(array_agg(i.entity_id), '{}') as entity_ids
  into v_new
  from unnest(p_item_keys, p_entity_ids) i(key, entity_id)
  where not exists (
    select from millrace.runs o
    where o.fan_out_id = p_fan_out.id and o.item_key = i.key offset 0);
  perform millrace.cancel_given_up(v_child.id, v_new.entity_ids);
  select r.entity_id, millrace.whose_run(r) as whose into v_other
  from millrace.runs r
  where r.pipeline_id = v_child.id
    and r.entity_id = any (v_new.entity_ids)
    and r.status = 'running'
  limit 1;
  if found then
    raise exception 'row % has a live run of pipeline % that %',
        v_other.entity_id, v_child.name, v_other.whose
      using errcode = 'MR004', hint = 'Let it finish or cancel it, then retry this run.';
  end if;
  v_made := millrace.new_children(v_child, array(select p_fan_out.id from unnest(v_new.keys)),
    v_new.keys, v_new.entity_ids);
  perform millrace.refuse_metadata(v_made.faults);
  if cardinality(v_made.run_ids) = 0 then
    return '{}';
  end if;
  -- What comes after a predecessor's last chunk opens the total again.
  update millrace.fan_outs f
  set total = null,
    spawned = f.spawned + cardinality(v_made.run_ids),
    first_number = least(f.first_number, (
      select min(k::int) from unnest(p_item_keys) k where k ~ '^(0|[1-9][0-9]{0,8})$'))
  where f.id = p_fan_out.id
  returning f.spawned into v_spawned;
  if v_spawned > 100000 then
    raise exception 'the fan-out has % children, but one may have at most 100000', v_spawned
      using errcode = 'MR002', hint = 'Spawn groups, whose runs spawn their members.';
  end if;
  return millrace.begin_roots(v_child.id, v_made.run_ids);
end
$$;
