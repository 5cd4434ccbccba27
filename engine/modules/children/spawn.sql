-- Spawning: the worker of a map stage hands over its items
--
-- It does so in chunks that fit the Data API's time limit. An item is known by its key: a worker
-- that dies half-way is followed by one that sends everything again.

-- Starts the runs of children for a chunk of items {key, …} of a map attempt; p_last closes the
-- total. Idempotent by key. busy: rows that somebody holds, to be sent again.
create function public.millrace_spawn(
  p_worker uuid, p_attempt bigint, p_token uuid, p_items jsonb, p_last boolean
) returns jsonb
set millrace.plan = by_key
as $$
declare
  v_malformed jsonb;
  v_attempt millrace.attempts;
  v_stage millrace.stages;
  v_reason text;
  v_done record;
begin
  if jsonb_typeof(p_items) is distinct from 'array' or jsonb_array_length(p_items) > 5000 then
    raise exception 'p_items is %, but must be a list of at most 5000',
        case
          when jsonb_typeof(p_items) = 'array' then jsonb_array_length(p_items) || ' items'
          else coalesce(jsonb_typeof(p_items), 'null')
        end
      using errcode = 'MR002',
        hint = 'Send the items in several chunks, and say p_last with the last one.';
  end if;
  select i into v_malformed
  from jsonb_array_elements(p_items) i
  where jsonb_typeof(i) <> 'object'
    or coalesce(jsonb_typeof(i -> 'key') not in ('string', 'number'), true)
    or length(i ->> 'key') not between 1 and 200
  limit 1;
  if found then
    raise exception 'an item has the key %, but must be an object with a "key" '
        'of 1 to 200 characters',
        coalesce(v_malformed -> 'key', 'null')
      using errcode = 'MR002', hint = 'Give each item a key that is its own, such as its number.';
  elsif p_last is null then
    raise exception 'p_last is null, but must be true or false'
      using errcode = 'MR002',
        hint = 'Send true with the last chunk of the items, which may be empty.';
  end if;
  perform public.millrace_renew(p_worker, '{}');
  select a.* into v_attempt from millrace.attempts a where a.id = p_attempt;
  select s.* into v_stage from millrace.stages s where s.id = v_attempt.stage_id;
  if v_stage.kind <> 'map' then
    raise exception 'attempt % is of stage %, which is no map', p_attempt, v_stage.name
      using errcode = 'MR004', hint = 'Only a stage of kind map has children to spawn.';
  end if;
  -- Whoever cancels the parent, starts it over or deletes it waits for this chunk, or this chunk
  -- hears of it.
  if not millrace.hold_parent(v_attempt.run_id) and v_attempt.id is not null then
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

-- Locks a run and its entity; false when somebody keeps them for longer than 200 ms: collectors of
-- children hold a parent again and again for a moment.
create function millrace.hold_parent(p_run_id bigint) returns boolean
set lock_timeout = '200ms'
as $$
begin
  -- The row too, which children may refer to: who deletes it holds it before the run.
  perform millrace.hold_runs(array[p_run_id]);
  return exists (select from millrace.runs r where r.id = p_run_id);
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
-- attempt. Where a person retried the parent, failed children are retried; after a lost lease they
-- stay as they are.
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
    insert into millrace.fan_outs (run_id, stage_id, attempt_id, child_pipeline_id, created_at)
    values (p_attempt.run_id, p_attempt.stage_id, p_attempt.id, v_child.id, millrace.now())
    returning * into fan_out;
  end if;
  if fan_out.child_pipeline_id <> v_child.id then
    raise exception 'the children of stage % are to be runs of pipeline % now, '
        'but this fan-out began with another', v_stage.name, v_child.name
      using errcode = 'MR004', hint = 'Reset the stage: select millrace.reset(run, stage).';
  end if;
  v_rows := millrace.rows_for_items(v_stage,
    (select r.entity_id from millrace.runs r where r.id = p_attempt.run_id), p_items);
  if cardinality(millrace.item_numbers(v_rows.item_keys)) < cardinality(v_rows.item_keys)
    and exists (
      select
      from millrace.runs r
      join millrace.version_stages vs on vs.version_id = r.version_id
      cross join jsonb_array_elements(vs.after) a
      where r.id = p_attempt.run_id
        and a ->> 'kind' = 'consecutive'
        and (a ->> 'map')::int = p_attempt.stage_id) then
    raise exception 'an item has the key %, but a threshold counts consecutive numbers',
        (
          select k
          from unnest(v_rows.item_keys) k
          where millrace.item_numbers(array[k]) = '{}'
          limit 1)
      using errcode = 'MR002',
        hint = 'Use whole numbers up to 999999999, without leading zeros, as keys, '
          'or a threshold of the kind count.';
  end if;
  v_held := millrace.lock_rows_named(v_child, v_rows.entity_ids, false);
  if array(select h from unnest(v_held) h order by h)
     <> array(select e from unnest(v_rows.entity_ids) e order by e) then
    perform millrace.check_rows_exist(v_child, v_rows.item_keys, v_rows.entity_ids);
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
  v_malformed record;
begin
  if p_stage.child ->> 'insert' is null then
    item_keys := array(
      select k
      from (select distinct i ->> 'key' as k from jsonb_array_elements(p_items) i) d
      order by length(k), k);
    entity_ids := item_keys;
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
      when a.asked is null then 'was not asked for'
      when r.place is null then 'is missing'
      else 'has no entity_id'
    end as fault
  into v_malformed
  from (
    select distinct i ->> 'key' as key, true as asked
    from jsonb_array_elements(p_items) i) a
  full join (
    select u.key, u.entity_id, u.place
    from unnest(item_keys, entity_ids) with ordinality u(key, entity_id, place)
  ) r using (key)
  where a.asked is null
    or r.entity_id is null
  limit 1;
  if found then
    raise exception 'the insert function % answered % rows for % items: item % %',
        v_insert::regproc, cardinality(item_keys),
        (select count(distinct i ->> 'key') from jsonb_array_elements(p_items) i),
        coalesce(v_malformed.key, 'null'), v_malformed.fault
      using errcode = 'MR004',
        hint = 'Return one (item_key, entity_id) for each item, '
          'also for those whose row exists already.';
  end if;
end
$$;

-- Picks the keys that are numbers a threshold can count, in their one spelling.
create function millrace.item_numbers(p_keys text[]) returns int[]
immutable
as $$
begin
  return array(select k::int from unnest(p_keys) k where k ~ '^(0|[1-9][0-9]{0,8})$');
end
$$;

-- Raises MR003 when an item has no row, and MR002 when it names its row in another spelling: runs
-- are filed under the row's own.
create function millrace.check_rows_exist(
  p_child millrace.pipelines, p_item_keys text[], p_entity_ids text[]
)
as $$
declare
  v_malformed record;
begin
  select i.key, i.entity_id, i.entity ->> p_child.entity_key as spelling into v_malformed
  from unnest(
    p_item_keys, p_entity_ids, millrace.rows_of_entities(p_child.id, p_entity_ids, null)
  ) i(key, entity_id, entity)
  where i.entity is null
    or i.entity ->> p_child.entity_key <> i.entity_id
  limit 1;
  if v_malformed.spelling is not null then
    raise exception 'item % names the row % of table %, whose own spelling is %',
        v_malformed.key, v_malformed.entity_id, p_child.entity_table, v_malformed.spelling
      using errcode = 'MR002', hint = 'Spell it as the table does.';
  elsif v_malformed.key is not null then
    raise exception 'table % has no row % for item %',
        p_child.entity_table, v_malformed.entity_id, v_malformed.key
      using errcode = 'MR003',
        hint = 'Insert the rows first, or name an insert function in the definition.';
  end if;
end
$$;

-- Starts runs for the items that have none in this fan-out: adopts one that is live, or makes one.
-- Returns the stages with work. Raises MR004 when two items have one row.
create function millrace.add_children(
  p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]
) returns int[]
as $$
declare
  v_child millrace.pipelines := (
    select p from millrace.pipelines p where p.id = p_fan_out.child_pipeline_id);
  v_twice record;
  v_joined int := 0;
  v_new record;
  v_made record;
  v_spawned int;
begin
  select min(i.key) as key, max(i.key) as other, i.entity_id into v_twice
  from unnest(p_item_keys, p_entity_ids) i(key, entity_id)
  group by i.entity_id
  having count(*) > 1
  limit 1;
  if not found then
    select i.key, r.item_key as other, i.entity_id into v_twice
    from unnest(p_item_keys, p_entity_ids) i(key, entity_id)
    cross join lateral (
      select o.item_key
      from millrace.runs o
      where o.entity_id = i.entity_id
        and o.pipeline_id = p_fan_out.child_pipeline_id
        and o.fan_out_id = p_fan_out.id
        and o.item_key <> i.key
      offset 0) r
    limit 1;
  end if;
  if found then
    raise exception 'the items % and % have the same row, %',
        v_twice.key, v_twice.other, v_twice.entity_id
      using errcode = 'MR004',
        hint = 'Each item needs a row of its own: let the insert function key them apart.';
  end if;
  if exists (
    select
    from unnest(p_entity_ids) i(entity_id)
    cross join lateral (
      select
      from millrace.runs r
      where r.pipeline_id = p_fan_out.child_pipeline_id
        and r.entity_id = i.entity_id
        and r.status = 'running'
        and r.fan_out_id is distinct from p_fan_out.id
      offset 0) r) then
    v_joined := millrace.adopt_runs(p_fan_out, p_item_keys, p_entity_ids);
  end if;
  select coalesce(array_agg(i.key), '{}') as keys,
    coalesce(array_agg(i.entity_id), '{}') as entity_ids
  into v_new
  from unnest(p_item_keys, p_entity_ids) i(key, entity_id)
  where not exists (
    -- "offset 0" keeps it a look-up for each item: as a join it would read all children again.
    select from millrace.runs o
    where o.fan_out_id = p_fan_out.id and o.item_key = i.key offset 0);
  v_made := millrace.new_children(v_child, array(select p_fan_out.id from unnest(v_new.keys)),
    v_new.keys, v_new.entity_ids);
  perform millrace.refuse_metadata(v_made.faults);
  v_joined := v_joined + cardinality(v_made.run_ids);
  if v_joined = 0 then
    return '{}';
  end if;
  -- What comes after a predecessor's last chunk opens the total again, until this worker's own last
  -- chunk.
  update millrace.fan_outs f
  set total = null,
    spawned = f.spawned + v_joined,
    first_number = least(f.first_number,
      (select min(n) from unnest(millrace.item_numbers(p_item_keys)) n))
  where f.id = p_fan_out.id
  returning f.spawned into v_spawned;
  if v_spawned > 100000 then
    raise exception 'the fan-out has % children, but one may have at most 100000', v_spawned
      using errcode = 'MR002', hint = 'Spawn groups, whose runs spawn their members.';
  end if;
  return millrace.begin_roots(v_child.id, v_made.run_ids);
end
$$;

-- Makes live runs of these rows, which began by themselves or are late children, children of this
-- fan-out. What they have done already was tallied for nobody, so the children are counted anew.
create function millrace.adopt_runs(
  p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]
) returns int
as $$
declare
  v_other record;
  v_count int;
begin
  select r.entity_id, f.run_id into v_other
  from millrace.runs r
  join millrace.fan_outs f on f.id = r.fan_out_id
  where r.pipeline_id = p_fan_out.child_pipeline_id
    and r.entity_id = any (p_entity_ids)
    and r.status = 'running'
    and r.fan_out_id <> p_fan_out.id
    and f.state = 'open'
  limit 1;
  if found then
    raise exception 'row % is a child of run % already', v_other.entity_id, v_other.run_id
      using errcode = 'MR004',
        hint = 'A row has one live run a pipeline: let that one finish, or cancel it, '
          'then retry this run.';
  end if;
  perform millrace.cancel_given_up(p_fan_out.child_pipeline_id, p_entity_ids);
  with adopted as (
    update millrace.runs r
    set fan_out_id = p_fan_out.id, item_key = i.key,
      metadata_id = case when c.metadata_column is null then o.metadata_id else r.metadata_id end
    from unnest(p_item_keys, p_entity_ids) i(key, entity_id), millrace.pipelines c, millrace.runs o
    where c.id = p_fan_out.child_pipeline_id
      and o.id = p_fan_out.run_id
      and r.pipeline_id = p_fan_out.child_pipeline_id
      and r.entity_id = i.entity_id
      and r.status = 'running'
      and r.fan_out_id is distinct from p_fan_out.id
      and not exists (
        select from millrace.runs o
        where o.fan_out_id = p_fan_out.id and o.item_key = i.key offset 0)
    returning r.id
  ), dropped as (
    -- What they had before: no part of a statement sees what another part writes.
    insert into millrace.dropped_metadata (metadata_id)
    select distinct r.metadata_id
    from adopted a
    join millrace.runs r on r.id = a.id
    where r.metadata_id is not null
  )
  select count(*) into v_count from adopted;
  if v_count > 0 then
    insert into millrace.child_tallies (fan_out_id, recount) values (p_fan_out.id, true);
  end if;
  return v_count;
end
$$;
