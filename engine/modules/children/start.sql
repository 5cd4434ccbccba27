-- Starting children
--
-- A child never touches its parent's rows, or a thousand that end at once would queue for one lock.
-- Who holds a child never takes its parent; from a parent's side children are taken in batches and
-- with skip locked only.

-- Makes runs of a child pipeline for held rows, each for a fan-out under a key, and begins them.
-- faults: by row, {code, message, remedy} of what keeps it from a run.
create function millrace.add_children(
  p_child millrace.pipelines, p_fan_outs bigint[], p_keys text[], p_entity_ids text[],
  out made int, out wake int[], out faults jsonb
)
as $$
declare
  v_free record;
  v_copied record;
  v_given text[];
  v_runs bigint[];
begin
  perform millrace.cancel_given_up(p_child.id, p_entity_ids);
  select coalesce(jsonb_object_agg(l.entity_id, jsonb_build_object('code', 'child_running',
    'message', format('row %s has a live run of pipeline %s that %s', l.entity_id, p_child.name,
      coalesce('is a child of run ' || f.run_id, 'was started by itself')),
    'remedy', 'Let it finish or cancel it, then retry this run.')), '{}')
  into faults
  from millrace.runs l
  left join millrace.fan_outs f on f.id = l.fan_out_id
  where l.pipeline_id = p_child.id
    and l.entity_id = any (p_entity_ids)
    and l.status = 'running';
  select coalesce(array_agg(c.entity_id), '{}') as entity_ids, array_agg(c.fan_out_id) as fan_outs,
    array_agg(c.key) as keys
  into v_free
  from unnest(p_fan_outs, p_keys, p_entity_ids) c(fan_out_id, key, entity_id)
  where not faults ? c.entity_id;
  v_copied := millrace.copy_metadata(p_child.id, v_free.entity_ids);
  if p_child.has_given then
    v_given := millrace.given_at_first(p_child, v_free.entity_ids);
  end if;
  with made as (
    insert into millrace.runs (pipeline_id, version_id, entity_id, trace_id, fan_out_id, item_key,
      metadata_id, given, quota_of, quota_key, created_at)
    select p_child.id, p_child.current_version_id, c.entity_id, r.trace_id, f.id, c.key,
      case when p_child.metadata_column is null then r.metadata_id else c.metadata_id end,
      c.given::int[], r.quota_of, r.quota_key, millrace.now()
    from unnest(v_free.fan_outs, v_free.keys, v_free.entity_ids, v_copied.ids, v_copied.faults,
      v_given) c(fan_out_id, key, entity_id, metadata_id, fault, given)
    join millrace.fan_outs f on f.id = c.fan_out_id
    join millrace.runs r on r.id = f.run_id
    where c.fault is null
    returning id
  )
  select coalesce(array_agg(m.id order by m.id), '{}') into v_runs from made m;
  faults := faults || coalesce((
    select jsonb_object_agg(c.entity_id, jsonb_build_object('code', 'metadata_too_large',
      'message', c.fault, 'remedy', 'Shorten it, then retry this run.'))
    from unnest(v_free.entity_ids, v_copied.faults) c(entity_id, fault)
    where c.fault is not null), '{}');
  made := cardinality(v_runs);
  wake := millrace.begin_branches(v_runs);
end
$$;

-- Begins a pipeline stage in held runs: an attempt waits for a child run over the same row. That of
-- an open fan-out goes on where it failed; where there is none one begins, or the stage fails.
create function millrace.start_child_runs(p_stage_id int, p_run_ids bigint[])
returns int[]
as $$
declare
  v_now timestamptz := millrace.now();
  v_child millrace.pipelines;
  v_former bigint[];
  v_new record;
  v_made record;
  v_failed millrace.work[];
begin
  select p.* into v_child
  from millrace.stages s
  join millrace.pipelines p on p.name = s.child ->> 'pipeline'
  where s.id = p_stage_id;
  perform millrace.refile_items(f.id, array['1'])
  from millrace.fan_outs f
  where f.run_id = any (p_run_ids)
    and f.stage_id = p_stage_id
    and f.state = 'open';
  v_former := array(
    select c.id
    from millrace.fan_outs f
    join millrace.runs c on c.fan_out_id = f.id
    where f.run_id = any (p_run_ids)
      and f.stage_id = p_stage_id
      and f.state = 'open'
    order by c.id + 0
    for no key update of c);
  with waiting as (
    insert into millrace.attempts (run_id, stage_id, number, parent_id, state, created_at,
      started_at, deadline_at, late_at, service, job_id)
    select r.id, p_stage_id, coalesce(l.number, 0) + 1, case when not l.superseded then l.id end,
      'waiting', v_now, v_now, v_now + s.deadline, v_now + s.sla, 'children', v_child.name
    from unnest(p_run_ids) r(id)
    join millrace.stages s on s.id = p_stage_id
    left join lateral (
      select a.id, a.number, a.superseded
      from millrace.attempts a
      where a.run_id = r.id
        and a.stage_id = p_stage_id
      order by a.number desc
      limit 1) l on true
    order by r.id
    returning id, run_id
  ), kept as (
    update millrace.fan_outs f
    set attempt_id = w.id, spawned = 1, total = 1, retry_children = false,
      child_pipeline_id = case when v_child.id <> f.child_pipeline_id and exists (
          select from millrace.runs c where c.fan_out_id = f.id)
        then f.child_pipeline_id else v_child.id end
    from waiting w
    where f.run_id = w.run_id
      and f.stage_id = p_stage_id
      and f.state = 'open'
    returning f.run_id
  )
  insert into millrace.fan_outs (run_id, stage_id, attempt_id, child_pipeline_id, spawned, total)
  select w.run_id, p_stage_id, w.id, v_child.id, 1, 1
  from waiting w
  where w.run_id not in (select k.run_id from kept k)
  order by w.id;
  perform millrace.show_stage(p_stage_id, p_run_ids, 'started', v_now, v_child.name);
  if v_former <> '{}' then
    perform millrace.retry_runs(v_former);
  end if;
  select array_agg(f.id) as fan_outs, array_agg(r.entity_id) as entity_ids,
    array_agg('1'::text) as keys
  into v_new
  from millrace.fan_outs f
  join millrace.runs r on r.id = f.run_id
  where f.run_id = any (p_run_ids)
    and f.stage_id = p_stage_id
    and f.state = 'open'
    and not exists (select from millrace.runs c where c.fan_out_id = f.id);
  v_made := millrace.add_children(v_child, v_new.fan_outs, v_new.keys, v_new.entity_ids);
  v_failed := array(
    select millrace.work_on(a, r.entity_id, 'failed',
      p_error => jsonb_build_object('permanent', true, 'code', e.value ->> 'code',
        'message', format('%s. %s', e.value ->> 'message', e.value ->> 'remedy')))
    from millrace.runs r
    join millrace.attempts a
      on a.run_id = r.id and a.stage_id = p_stage_id and a.state = 'waiting'
    join jsonb_each(v_made.faults) e on e.key = r.entity_id
    where r.id = any (p_run_ids)
    order by a.id);
  if v_failed = '{}' then
    return v_made.wake;
  end if;
  return v_made.wake || millrace.fail(p_stage_id, v_failed);
end
$$;
