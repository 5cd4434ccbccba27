-- Spawning: the worker of a map stage hands over its items
--
-- It does so in chunks, each in a transaction of its own that fits the Data API's time limit. An
-- item is known by its key: the engine passes over one that is there already, so a worker that dies
-- half-way is followed by one that sends everything again. The total closes with the chunk that is
-- said to be the last.

-- Returns keys and entity ids of the items of a chunk, one each: what the definition's insert
-- function makes of them, or rows that exist under these keys. Even "on conflict do nothing" waits
-- for whoever holds the row, so an insert function leaves out what exists already.
create function millrace.rows_for_items(
  p_stage millrace.stages,
  p_parent text,
  p_items jsonb,
  out item_keys text[],
  out entity_ids text[]
)
language plpgsql
as $$
declare
  v_insert regprocedure := to_regprocedure((p_stage.child ->> 'insert') || '(text,jsonb)');
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
  perform millrace.check_inserted(v_insert, p_items, item_keys, entity_ids);
end
$$;

-- Returns the open fan-out of a map attempt, taken over from a lost worker or made anew.
create function millrace.fan_out_of(
  p_attempt millrace.attempts, p_child_pipeline_id int
) returns millrace.fan_outs
language plpgsql
as $$
declare
  v_fan_out millrace.fan_outs;
begin
  update millrace.fan_outs f
  set attempt_id = p_attempt.id
  where f.run_id = p_attempt.run_id
    and f.stage_id = p_attempt.stage_id
    and f.state = 'open'
  returning f.* into v_fan_out;
  if not found then
    insert into millrace.fan_outs (run_id, stage_id, attempt_id, child_pipeline_id, created_at)
    values (p_attempt.run_id, p_attempt.stage_id, p_attempt.id, p_child_pipeline_id, millrace.now())
    returning * into v_fan_out;
  end if;
  return v_fan_out;
end
$$;

-- Starts the runs of a chunk of items whose rows could be had. Names an item whose row somebody
-- holds in busy, to be sent again.
create function millrace.spawn_chunk(
  p_attempt millrace.attempts,
  p_items jsonb,
  p_last boolean,
  out fan_out millrace.fan_outs,
  out wake int[],
  out busy text[]
)
language plpgsql
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
  fan_out := millrace.fan_out_of(p_attempt, v_child.id);
  if fan_out.child_pipeline_id <> v_child.id then
    raise exception 'the children of stage % are to be runs of pipeline % now, '
        'but this fan-out began with another', v_stage.name, v_child.name
      using errcode = 'MR004', hint = 'Reset the stage: select millrace.reset(run, stage).';
  end if;
  v_rows := millrace.rows_for_items(v_stage,
    (select r.entity_id from millrace.runs r where r.id = p_attempt.run_id), p_items);
  perform millrace.check_numbers(fan_out, v_rows.item_keys);
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
  perform millrace.retry_items(fan_out, v_rows.item_keys);
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

-- Locks a run and its entity; false when somebody keeps them for longer than 200 ms. Whoever
-- collects children holds the parent's run for a moment, again and again while children end. That
-- is worth a short wait, for the worker would come back much later.
create function millrace.hold_parent(p_run_id bigint) returns boolean
language plpgsql
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

-- The worker of a map stage calls it for each chunk of its items.
create function public.millrace_spawn(
  p_worker uuid, p_attempt bigint, p_token uuid, p_items jsonb, p_last boolean
) returns jsonb
language plpgsql security definer
set millrace.plan = by_key
as $$
declare
  v_attempt millrace.attempts;
  v_stage millrace.stages;
  v_reason text;
  v_done record;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  perform millrace.check_items(p_items);
  if p_last is null then
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
comment on function public.millrace_spawn(uuid, bigint, uuid, jsonb, boolean) is
  'Starts the runs of children for a chunk of items {key, …} of a map attempt; p_last closes the '
  'total. Idempotent by key. busy: rows that somebody holds, to be sent again.';

-- Says why a worker that shows this token may not speak for the attempt any more; null when it may.
create function millrace.void_reason(p_attempt millrace.attempts, p_token uuid)
returns text
language plpgsql immutable
as $$
begin
  if p_attempt.state = 'started' and p_attempt.token = p_token then
    return null;
  end if;
  return millrace.stale_reason(p_attempt.state, p_attempt.error);
end
$$;
