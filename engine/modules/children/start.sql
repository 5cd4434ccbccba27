-- Starting children
--
-- A child never touches its parent's rows, or a thousand that end at once would queue for one lock.
-- Who holds a child never takes its parent; from a parent's side children are taken in batches and
-- with skip locked only.

-- Begins the first stages of new child runs on held rows; returns the stages with work.
create function millrace.begin_roots(p_pipeline_id int, p_run_ids bigint[])
returns int[]
as $$
declare
  v_shown boolean := (
    select p.projection <> 'none' from millrace.pipelines p where p.id = p_pipeline_id);
  v_root record;
  v_runs bigint[];
  v_wake int[] := '{}';
begin
  if exists (
      select from millrace.stages s where s.pipeline_id = p_pipeline_id and s.counted) then
    -- Children count against the quota of their parents.
    update millrace.runs c
    set quota_of = p.quota_of, quota_key = p.quota_key
    from millrace.fan_outs f
    join millrace.runs p on p.id = f.run_id
    where c.id = any (p_run_ids) and f.id = c.fan_out_id and p.quota_of is not null;
  end if;
  for v_root in
    -- The runs' own version: a definition may have been committed since.
    select vs.stage_id, vs.dependents, vs.unconditional, vs.on_demand, r.run_ids
    from (
      select r.version_id, array_agg(r.id order by r.id) as run_ids
      from millrace.runs r
      where r.id = any (p_run_ids)
      group by r.version_id
    ) r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where vs.needs = '{}'
      and vs.after = '[]'
    order by vs.version_id, vs.position
  loop
    -- A stage that failed as it began, since its own child could not, has ended its run.
    v_runs := millrace.running_of(v_root.run_ids);
    perform millrace.project_queued(p_pipeline_id,
      case when not v_root.on_demand then v_root.stage_id end,
      case when v_root.on_demand then array[v_root.stage_id] else '{}' end || v_root.dependents,
      array(select r.entity_id from millrace.runs r where r.id = any (v_runs)));
    if v_shown then
      v_runs := millrace.runs_to_begin(v_root.stage_id, v_runs);
    end if;
    if v_root.unconditional then
      perform millrace.queue_attempts(v_root.stage_id, v_runs);
      v_wake := v_wake || v_root.stage_id;
    else
      v_wake := v_wake || millrace.begin_stage(v_root.stage_id, v_runs);
    end if;
  end loop;
  return v_wake;
end
$$;

-- Makes runs of a child pipeline for held rows, each for a fan-out under a key; not where the row
-- has too much metadata. faults: why, in the order of the rows.
create function millrace.new_children(
  p_child millrace.pipelines, p_fan_outs bigint[], p_keys text[], p_entity_ids text[],
  out run_ids bigint[], out faults text[]
)
as $$
declare
  v_copied record := millrace.copy_metadata(p_child.id, p_entity_ids);
  v_given text[] := case
    when p_child.has_given then millrace.given_at_first(p_child, p_entity_ids)
  end;
begin
  faults := v_copied.faults;
  with made as (
    insert into millrace.runs (pipeline_id, version_id, entity_id, trace_id, fan_out_id, item_key,
      metadata_id, given, created_at)
    select p_child.id, p_child.current_version_id, c.entity_id, r.trace_id, f.id, c.key,
      case when p_child.metadata_column is null then r.metadata_id else c.metadata_id end,
      c.given::int[], millrace.now()
    from unnest(p_fan_outs, p_keys, p_entity_ids, v_copied.ids, v_copied.faults, v_given)
      c(fan_out_id, key, entity_id, metadata_id, fault, given)
    join millrace.fan_outs f on f.id = c.fan_out_id
    join millrace.runs r on r.id = f.run_id
    where c.fault is null
    returning id
  )
  select coalesce(array_agg(m.id order by m.id), '{}') into run_ids from made m;
end
$$;

-- Adds to each of these runs an attempt of a pipeline stage that waits for its child; returns them.
create function millrace.wait_for_child_runs(
  p_stage_id int, p_run_ids bigint[], p_at timestamptz
) returns bigint[]
as $$
declare
  v_attempts bigint[];
begin
  with waiting as (
    insert into millrace.attempts
      (run_id, stage_id, number, state, created_at, started_at, deadline_at, late_at,
        service, job_id)
    select r.id, p_stage_id,
      coalesce((
        select max(a.number)
        from millrace.attempts a
        where a.run_id = r.id
          and a.stage_id = p_stage_id), 0) + 1,
      'waiting', p_at, p_at, p_at + s.deadline, p_at + s.sla, 'children', s.child ->> 'pipeline'
    from unnest(p_run_ids) r(id), millrace.stages s
    where s.id = p_stage_id
    order by r.id
    returning id
  )
  select array_agg(w.id) into v_attempts from waiting w;
  return v_attempts;
end
$$;

-- Starts the child run of a pipeline stage in each of these runs, over the same row, which the
-- caller holds. A stage fails whose row has another live run, or too much metadata.
create function millrace.start_child_runs(p_stage_id int, p_run_ids bigint[])
returns int[]
as $$
declare
  v_now timestamptz := millrace.now();
  v_child millrace.pipelines;
  v_waiting bigint[];
  v_new record;
  v_made record;
  v_busy millrace.work[];
  v_wake int[];
begin
  select p.* into v_child
  from millrace.stages s
  join millrace.pipelines p on p.name = s.child ->> 'pipeline'
  where s.id = p_stage_id;
  perform millrace.cancel_given_up(v_child.id, array(
    select r.entity_id from millrace.runs r where r.id = any (p_run_ids)));
  v_waiting := millrace.wait_for_child_runs(p_stage_id, p_run_ids, v_now);
  with fan_out as (
    insert into millrace.fan_outs
      (run_id, stage_id, attempt_id, child_pipeline_id, spawned, total)
    select a.run_id, p_stage_id, a.id, v_child.id, 1, 1
    from millrace.attempts a
    where a.id = any (v_waiting)
    order by a.id
    returning id, run_id
  )
  select array_agg(f.id) as fan_outs, array_agg(r.entity_id) as entity_ids,
    array_agg('1'::text) as keys
  into v_new
  from fan_out f
  join millrace.runs r on r.id = f.run_id
  where not exists (
    select
    from millrace.runs l
    where l.pipeline_id = v_child.id
      and l.entity_id = r.entity_id
      and l.status = 'running');
  v_made := millrace.new_children(v_child, v_new.fan_outs, v_new.keys, v_new.entity_ids);
  perform millrace.show_stage(p_stage_id, p_run_ids, 'started', v_now, v_child.name);
  v_wake := millrace.begin_roots(v_child.id, v_made.run_ids);
  v_busy := array(
    select millrace.work_on(a, r.entity_id, 'failed',
      p_ord => (row_number() over (order by a.id))::int,
      p_error => case when e.fault is null then
        jsonb_build_object('code', 'child_running', 'permanent', true, 'message', format(
          'the row has a live run of pipeline %s that %s; '
          'let it finish or cancel it, then retry this run',
          v_child.name,
          millrace.whose_run(l)))
      else
        jsonb_build_object('code', 'metadata_too_large', 'permanent', true,
          'message', e.fault || '; shorten it, then retry this run')
      end)
    from millrace.fan_outs f
    join millrace.attempts a on a.id = f.attempt_id
    join millrace.runs r on r.id = a.run_id
    left join millrace.runs l
      on l.pipeline_id = v_child.id and l.entity_id = r.entity_id and l.status = 'running'
    left join unnest(v_new.entity_ids, v_made.faults) e(id, fault) on e.id = r.entity_id
    where f.run_id = any (p_run_ids)
      and f.stage_id = p_stage_id
      and f.state = 'open'
      and not exists (select from millrace.runs c where c.fan_out_id = f.id));
  if cardinality(v_busy) > 0 then
    v_wake := v_wake || millrace.fail(p_stage_id, v_busy);
  end if;
  return v_wake;
end
$$;

-- Says of a live run that stands in another's way whose it is.
create function millrace.whose_run(p_run millrace.runs) returns text
volatile
as $$
begin
  return coalesce(
    (select 'is a child of run ' || f.run_id
      from millrace.fan_outs f
      where f.id = p_run.fan_out_id),
    'was started by itself');
end
$$;
