-- Starting children. A transaction that holds a child never locks its parent: a thousand children
-- that end at once would otherwise queue for one lock.

-- Retries the failed and cancelled runs among these children. Returns those whose row has a later
-- run: these are not retried and leave their fan-outs.
create function millrace.retry_children(p_run_ids bigint[]) returns bigint[]
as $$
  v_failed bigint[] := array(
    select r.id
    from millrace.runs r
    where r.id = any (p_run_ids)
      and r.status in ('failed', 'cancelled')
    order by r.id
    for no key update);
  v_overtaken bigint[] := array(
    select id from unnest(v_failed) id where not millrace.is_latest_run(id));

if v_overtaken <> '{}' then
  perform millrace.keep_costs(v_overtaken);
  perform millrace.recount_parents(v_overtaken);
  update millrace.runs r
  set fan_out_id = null, item_key = null
  where r.id = any (v_overtaken);
end if;
perform millrace.retry_runs(v_failed) where v_failed <> '{}';
return v_overtaken;
$$;

-- Starts a child on each of some locked rows, for a fan-out and under a key. A key that has a child
-- already starts none.
-- p_fan_outs, p_keys, p_entity_ids: one element for each child.
-- p_retry: whether known children that failed or were cancelled are retried.
-- made: by how many the fan-outs' children grew.
-- faults: for each row without a child, {code, message} with the reason.
create function millrace.begin_children(
  p_child millrace.pipelines, p_fan_outs bigint[], p_keys text[], p_entity_ids text[],
  p_retry boolean, out made int, out wake int[], out faults jsonb
)
as $$
  -- by key
  v_known bigint[] := array(
    select (
      select c.id
      from millrace.runs c
      where c.fan_out_id = i.fan_out_id and c.item_key = i.key
      limit 1)
    from unnest(p_fan_outs, p_keys) with ordinality i(fan_out_id, key, ordinal)
    order by i.ordinal);
  v_overtaken bigint[] := case when p_retry then millrace.retry_children(v_known) else '{}' end;
  v_copied record;
  v_runs bigint[];

select array_agg(i.fan_out_id), array_agg(i.key), array_agg(i.entity_id)
into p_fan_outs, p_keys, p_entity_ids
from unnest(p_fan_outs, p_keys, p_entity_ids, v_known) i(fan_out_id, key, entity_id, known)
where i.known is null
  or i.known in (select unnest(v_overtaken));
-- Cancels live children of other parents that no longer wait for them, without a projection: the
-- row will show the new child.
perform millrace.cancel_runs(array(
  select r.id
  from millrace.runs r
  join millrace.fan_outs f on f.id = r.fan_out_id and f.state <> 'open'
  where r.pipeline_id = p_child.id and r.entity_id = any (p_entity_ids)
    -- by key
    and (r.status = 'running') is true
  order by r.id + 0
  for no key update of r), false);
select coalesce(json_object_agg(l.entity_id, jsonb_build_object('code', 'child_running',
  'message', format('row %s has a live run of pipeline %s that %s. Let it finish or cancel it, '
    'then retry this run.', l.entity_id, p_child.name,
    coalesce('is a child of run ' || f.run_id, 'was started by itself'))))::jsonb, '{}')
into faults
from millrace.runs l
left join millrace.fan_outs f on f.id = l.fan_out_id
where l.pipeline_id = p_child.id and l.entity_id = any (p_entity_ids)
  and l.status = 'running';
select array_agg(i.fan_out_id), array_agg(i.key), coalesce(array_agg(i.entity_id), '{}')
into p_fan_outs, p_keys, p_entity_ids
from unnest(p_fan_outs, p_keys, p_entity_ids) i(fan_out_id, key, entity_id)
where not faults ? i.entity_id;
v_copied := millrace.copy_metadata(p_child.id, p_entity_ids);
with made as (
  insert into millrace.runs (pipeline_id, version_id, entity_id, trace_id, fan_out_id, item_key,
    metadata_id, given, quota_of, quota_key, created_at)
  select p_child.id, p_child.current_version_id, i.entity_id, r.trace_id, f.id, i.key,
    case when p_child.metadata_column is null then r.metadata_id else i.metadata_id end,
    i.given::int[], r.quota_of, r.quota_key, v_now
  from unnest(p_fan_outs, p_keys, p_entity_ids, v_copied.ids, v_copied.faults,
    case when p_child.has_given then millrace.given_at_first(p_child, p_entity_ids) end)
    i(fan_out_id, key, entity_id, metadata_id, fault, given)
  join millrace.fan_outs f on f.id = any (array[i.fan_out_id])
  join millrace.runs r on r.id = any (array[f.run_id])
  where i.fault is null
  returning id
)
select array_agg(m.id order by m.id) into v_runs from made m;
faults := faults || coalesce((
  select json_object_agg(i.entity_id, jsonb_build_object('code', 'metadata_too_large',
    'message', i.fault || '. Shorten it, then retry this run.'))::jsonb
  from unnest(p_entity_ids, v_copied.faults) i(entity_id, fault)
  where i.fault is not null), '{}');
made := coalesce(cardinality(v_runs), 0) - cardinality(v_overtaken);
wake := millrace.begin_branches(v_runs);
$$;

-- Begins a stage of kind pipeline in locked runs: an attempt waits for a child run over the same
-- row. A child of an open fan-out is retried where it failed. Where no child can start, the stage
-- fails. Returns the stages to wake.
create function millrace.start_child_runs(p_stage_id int, p_run_ids bigint[])
returns int[]
as $$
  v_child millrace.pipelines;
  v_of record;
  v_made record;
  v_failed millrace.work[];

select p.* into v_child
from millrace.stages s
join millrace.pipelines p on p.name = s.child ->> 'pipeline'
where s.id = p_stage_id;
insert into millrace.fan_outs
  (run_id, stage_id, attempt_id, child_pipeline_id, spawned, total)
select a.run_id, p_stage_id, a.id, v_child.id, 1, 1
from millrace.add_waiting(p_stage_id, p_run_ids, 'children', v_child.name) a
on conflict (run_id, stage_id) where state = 'open' do update
set attempt_id = excluded.attempt_id, spawned = 1, total = 1, retry_children = false;
perform millrace.show_stage(p_stage_id, p_run_ids, 'started', v_now, v_child.name);
select array_agg(f.id) as fan_outs, array_agg('1'::text) as keys,
  array_agg(r.entity_id) as entity_ids
into v_of
from millrace.fan_outs f
join millrace.runs r on r.id = f.run_id
where f.run_id = any (p_run_ids) and f.stage_id = p_stage_id and f.state = 'open';
v_made := millrace.begin_children(v_child, v_of.fan_outs, v_of.keys, v_of.entity_ids, true);
if v_made.faults = '{}' then
  return v_made.wake;
end if;
v_failed := array(
  select millrace.work_on(a.attempt, r.entity_id, 'failed',
    p_error => '{"permanent": true}' || e.value)
  from millrace.runs r
  cross join lateral (
    select o as attempt
    from millrace.attempts o
    where o.run_id = r.id and o.stage_id = p_stage_id and o.state = 'waiting'
    offset 0) a
  join jsonb_each(v_made.faults) e on e.key = r.entity_id
  where r.id = any (p_run_ids)
  order by (a.attempt).id);
return v_made.wake || millrace.fail(p_stage_id, v_failed);
$$;
