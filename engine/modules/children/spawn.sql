-- Starts children for a chunk of a map stage's items, {"key": …}. An item whose key has a child
-- already starts none, since the successor of a lost worker sends all items again. Raises MR002
-- for malformed items, and MR003 where an item has no row.
-- p_last: true says that no further items follow, so that the total is known.
-- status: spawned; busy, to be sent again; stale, where the attempt no longer runs under the token.
-- busy: the keys of items whose rows other transactions have locked.
create function public.millrace_spawn(
  p_worker uuid, p_attempt bigint, p_token uuid, p_items jsonb, p_last boolean
)
as $$
  v_attempt millrace.attempts;
  v_reason text;
  v_done record;

perform millrace.refuse('these children cannot begin: ' || case
  when jsonb_typeof(p_items) is distinct from 'array' or p_last is null then format(
    'p_items is %s, p_last is %s', jsonb_typeof(p_items), coalesce(p_last::text, 'null'))
  when jsonb_array_length(p_items) > 5000
    then format('p_items has %s items', jsonb_array_length(p_items))
  else (
    select format('an item has the key %s', coalesce(i -> 'key', 'null'))
    from jsonb_array_elements(p_items) i
    where jsonb_typeof(i) <> 'object'
      or coalesce(jsonb_typeof(i -> 'key') not in ('string', 'number'), true)
      or length(i ->> 'key') not between 1 and 200
    limit 1)
end, 'Send a list of at most 5000 objects, each with a "key" of 1 to 200 characters '
  'that is its own, and say with p_last whether they are the last.', 'MR002');
perform public.millrace_renew(p_worker, '{}');
-- Locks the parent. A concurrent cancel, reset or delete either waits or makes this chunk stale.
if not millrace.lock_parent((
    select a.run_id from millrace.attempts a where a.id = p_attempt)) then
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
$$;

-- Locks a run and its entity, and returns true. Returns false where another transaction keeps them
-- locked for over 200 ms, which is longer than collectors do.
create function millrace.lock_parent(p_run_id bigint) returns boolean
set lock_timeout = '200ms'
as $$
perform millrace.lock_runs(array[p_run_id]);
return true;
exception when lock_not_available then
  return false;
$$;

-- Starts a child for each item whose row is not locked, in the open fan-out of a map attempt. Opens
-- a fan-out where the run has none at this stage.
-- busy: the keys of the other items; null without any.
create function millrace.spawn_chunk(
  p_attempt millrace.attempts, p_items jsonb, p_last boolean,
  out fan_out millrace.fan_outs, out wake int[], out busy text[]
)
as $$
  v_stage millrace.stages;
  v_child millrace.pipelines;
  v_rows record;
  v_locked text[];
  v_items record;
  v_made record;
  v_fault jsonb;

select s.* into v_stage from millrace.stages s where s.id = p_attempt.stage_id;
if v_stage.kind <> 'map' then
  raise exception 'MR004: attempt % is of stage %, which is no map', p_attempt.id, v_stage.name
    using hint = 'Only a stage of kind map has children to spawn.';
end if;
perform millrace.refuse_copies(array[p_attempt.run_id], v_stage.id);
insert into millrace.fan_outs as f (run_id, stage_id, attempt_id, child_pipeline_id)
select p_attempt.run_id, v_stage.id, p_attempt.id, p.id
from millrace.pipelines p
where p.name = v_stage.child ->> 'pipeline'
on conflict (run_id, stage_id) where state = 'open' do update
set attempt_id = excluded.attempt_id
returning f.* into fan_out;
-- A fan-out keeps its child pipeline, even if the stage names another one by now.
select p.* into v_child from millrace.pipelines p where p.id = fan_out.child_pipeline_id;
v_rows := millrace.rows_for_items(fan_out, v_stage, p_items);
v_locked := millrace.lock_rows_named(v_child, v_rows.entity_ids, false);
select array_agg(i.key) filter (where not i.locked) as busy,
  array_agg(i.id) filter (where not i.locked) as busy_ids,
  array_agg(i.key) filter (where i.locked) as keys,
  array_agg(i.id) filter (where i.locked) as ids,
  array_agg(fan_out.id) filter (where i.locked) as fan_outs
into v_items
from (
  select u.key, u.id, u.id in (select unnest(v_locked)) as locked
  from unnest(v_rows.item_keys, v_rows.entity_ids) u(key, id)) i;
busy := v_items.busy;
perform millrace.refuse(
  format('table %s has no row %s for item %s', v_child.entity_table, i.id, i.key),
  'Insert the rows first, spell their keys as the table does, or name an insert function.',
  'MR003')
from unnest(busy, v_items.busy_ids,
  millrace.rows_of_entities(v_child.id, v_items.busy_ids, null)) i(key, id, entity)
where (i.entity ->> v_child.entity_key = i.id) is not true;
v_made := millrace.begin_children(
  v_child, v_items.fan_outs, v_items.keys, v_items.ids, fan_out.retry_children);
wake := v_made.wake;
select f.value into v_fault from jsonb_each(v_made.faults) f limit 1;
if found then
  raise exception '%', v_fault ->> 'message'
    using errcode = case v_fault ->> 'code' when 'child_running' then 'MR004' else 'MR002' end;
end if;
-- New children after a lost worker's last chunk make the total unknown again.
update millrace.fan_outs f
set spawned = f.spawned + v_made.made,
  total = case when p_last and busy is null then f.spawned + v_made.made
    when v_made.made = 0 then f.total end,
  retry_children = f.retry_children and not (p_last and busy is null),
  first_number = least(f.first_number, (
    select min(k::int) from unnest(v_items.keys) k where k ~ '^(0|[1-9][0-9]{0,8})$'))
where f.id = fan_out.id
returning f.* into fan_out;
if fan_out.spawned > 100000 then
  raise exception 'MR002: the fan-out has % children, but one may have at most 100000',
      fan_out.spawned
    using hint = 'Spawn groups, whose runs spawn their members.';
end if;
insert into millrace.child_tallies (fan_out_id) select fan_out.id where p_last and busy is null;
$$;

-- Returns the keys of the rows for a chunk's items: the items' own keys, or the keys that the
-- stage's insert function returns. Raises MR004 where that function is gone, or does not return one
-- row of its own for each item. Hash joins are allowed, since the function may join a large table.
create function millrace.rows_for_items(
  p_fan_out millrace.fan_outs, p_stage millrace.stages, p_items jsonb,
  out item_keys text[], out entity_ids text[]
)
set enable_hashjoin = on
as $$
  v_insert text := p_stage.child ->> 'insert';
  v_function regprocedure := to_regprocedure(v_insert || '(text,jsonb)');
  v_fault text;

item_keys := array(
  select k
  from (select distinct i ->> 'key' as k from jsonb_array_elements(p_items) i) d
  order by length(k), k);
entity_ids := item_keys;
if v_function is not null then
  execute format($query$
    select coalesce(array_agg(f.entity_id order by a.ordinal), '{}'), min(case
      when a.ordinal is null then coalesce(f.item_key, 'null') || ' was not asked for'
      when f.item_key is null then a.key || ' is missing'
      when f.entity_id is null then a.key || ' has no entity_id' end)
    from unnest($3) with ordinality a(key, ordinal)
    full join (select distinct on (item_key) item_key, entity_id from %s($1, $2)) f
      on f.item_key = a.key
    $query$, v_function::regproc)
  into entity_ids, v_fault
  using (select r.entity_id from millrace.runs r where r.id = p_fan_out.run_id), p_items,
    item_keys;
elsif v_insert is not null then
  raise exception 'MR004: the stage''s insert function %(text, jsonb) does not exist', v_insert
    using hint = 'Create it again, then retry the run.';
end if;
v_fault := coalesce('item ' || v_fault, (
  select format('the items %s and %s have the same row, %s',
    coalesce(o.item_key, i.first), i.key, i.id)
  from (
    select u.key, u.id, min(u.key) over (partition by u.id) as first
    from unnest(item_keys, entity_ids) u(key, id)) i
  left join lateral (
    select r.item_key
    from millrace.runs r
    where r.entity_id = i.id and r.pipeline_id = p_fan_out.child_pipeline_id
      -- by key
      and r.fan_out_id + 0 = p_fan_out.id
      and r.item_key <> i.key
    limit 1) o on true
  where o.item_key is not null
    or i.first <> i.key
  limit 1));
perform millrace.refuse(format('the insert function %s does not give each item a row of its own: '
    '%s', v_insert, v_fault), 'Return one (item_key, entity_id) for each item, '
  'also for those whose row exists already.', 'MR004')
where v_fault is not null;
perform millrace.refuse(
  format('an item has the key %s, but a threshold counts consecutive numbers', k),
  'Use whole numbers without leading zeros as keys, or a threshold of the kind count.', 'MR002')
from unnest(item_keys) k
where k !~ '^(0|[1-9][0-9]{0,8})$'
  and exists (
    select from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where r.id = p_fan_out.run_id
      and vs.after @> jsonb_build_array(jsonb_build_object(
        'kind', 'consecutive', 'map', p_fan_out.stage_id)));
$$;
