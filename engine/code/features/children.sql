-- Chapter 13: children
--
-- A map stage starts runs of another pipeline for many rows, a pipeline stage one run for its own row. Its attempt waits
-- meanwhile. A child never touches its parent's rows, or a thousand children that end at once would queue for one lock:
-- it adds a tally, one row a batch (chapters transitions and advancing), which the next chapter adds up.
--
-- Whoever holds a child never takes its parent, and children are taken from a parent's side only with skip locked, in
-- batches. A parent that is cancelled, fails or starts over only gives its fan-out up; the sweep cancels the children.

create or replace function millrace.abandon_fan_outs(p_run_ids bigint[], p_stage_ids int[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.fan_outs f set state = 'abandoned'
  where f.run_id = any (p_run_ids) and (p_stage_ids is null or f.stage_id = any (p_stage_ids)) and f.state = 'open';
end
$$;
comment on function millrace.abandon_fan_outs(bigint[], int[]) is 'Gives up the children of these runs: the sweep cancels them, in batches.';

-- The roots of new child runs, whose entities the caller holds.
create or replace function millrace.begin_roots(p_pipeline_id int, p_run_ids bigint[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_shown boolean := (select p.projection <> 'none' from millrace.pipelines p where p.id = p_pipeline_id);
  v_root record;
  v_runs bigint[];
  v_wake int[] := '{}';
begin
  if exists (
      select from millrace.stages s where s.pipeline_id = p_pipeline_id and s.counted) then
    perform millrace.inherit_quotas(p_run_ids);
  end if;
  for v_root in
    -- By the runs' own version: a definition may have been committed since they were made.
    select vs.stage_id, vs.dependents, vs.unconditional, r.run_ids
    from (select r.version_id, array_agg(r.id order by r.id) as run_ids from millrace.runs r where r.id = any (p_run_ids) group by r.version_id) r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where vs.needs = '{}' and vs.after = '[]' order by vs.version_id, vs.position
  loop
    -- A stage that failed as it began, since its own child could not, has ended its run.
    v_runs := millrace.running_of(v_root.run_ids);
    perform millrace.project_queued(p_pipeline_id, v_root.stage_id, v_root.dependents, array(select r.entity_id from millrace.runs r where r.id = any (v_runs)));
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
comment on function millrace.begin_roots(int, bigint[]) is 'Begins the first stages of new runs; returns the stages with work.';

-- What a fan-out that was given up left running on these rows, where the sweep has not come by yet.
create or replace function millrace.end_given_up(p_pipeline_id int, p_entity_ids text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_runs bigint[] := array(
    select r.id from millrace.runs r join millrace.fan_outs f on f.id = r.fan_out_id and f.state in ('abandoned', 'closed')
    where r.pipeline_id = p_pipeline_id and r.entity_id = any (p_entity_ids) and r.status = 'running' order by r.id for no key update of r);
begin
  if cardinality(v_runs) > 0 then
    perform millrace.end_runs(v_runs, 'cancelled');
    perform millrace.cancel_attempts(v_runs, null);
  end if;
end
$$;
comment on function millrace.end_given_up(int, text[]) is 'Cancels children on held rows whose parents have given them up; what starts there next is shown in their stead.';

-- A row that has a live run of the child's pipeline keeps it; one with too much metadata gets none.
create or replace function millrace.parents_without_child(
  p_child millrace.pipelines, p_stage_id int, p_run_ids bigint[], p_free text[], p_faults text[]
) returns millrace.work[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select row(row_number() over (order by a.id), a.id, null, null, 'failed', null, null,
      case when e.fault is null then
        jsonb_build_object('code', 'child_running', 'permanent', true, 'message', format(
          'the row has a live run of pipeline %s that %s; '
          'let it finish or cancel it, then retry this run',
          p_child.name,
          coalesce('is a child of run ' || o.run_id, 'was started by itself')))
      else
        jsonb_build_object('code', 'metadata_too_large', 'permanent', true,
          'message', e.fault || '; shorten it, then retry this run')
      end,
      null, null, a.run_id, a.stage_id, r.entity_id, a.state,
      null, null, null, null)::millrace.work
    from millrace.fan_outs f
    join millrace.attempts a on a.id = f.attempt_id
    join millrace.runs r on r.id = a.run_id
    left join millrace.runs l
      on l.pipeline_id = p_child.id and l.entity_id = r.entity_id and l.status = 'running'
    left join millrace.fan_outs o on o.id = l.fan_out_id
    left join unnest(p_free, p_faults) e(id, fault) on e.id = r.entity_id
    where f.run_id = any (p_run_ids)
      and f.stage_id = p_stage_id
      and f.state = 'open'
      and not exists (select from millrace.runs c where c.fan_out_id = f.id));
end
$$;
comment on function
  millrace.parents_without_child(millrace.pipelines, int, bigint[], text[], text[]) is
  'Attempts of a pipeline stage whose child run could not start, as failures that say why.';

-- A stage of kind pipeline: one child run over the same row, which the caller holds.
create or replace function millrace.start_child_runs(p_stage_id int, p_run_ids bigint[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_child millrace.pipelines;
  v_free text[];
  v_copied record;
  v_children bigint[];
  v_busy millrace.work[];
  v_wake int[];
begin
  select p.* into v_child from millrace.stages s join millrace.pipelines p on p.name = s.child ->> 'pipeline' where s.id = p_stage_id;
  perform millrace.end_given_up(v_child.id, array(select r.entity_id from millrace.runs r where r.id = any (p_run_ids)));
  v_free := array(
    select r.entity_id from millrace.runs r
    where r.id = any (p_run_ids) and not exists (
      select from millrace.runs l
      where l.pipeline_id = v_child.id and l.entity_id = r.entity_id and l.status = 'running'));
  v_copied := millrace.copy_metadata(v_child.id, v_free);
  with waiting as (
    insert into millrace.attempts (run_id, stage_id, number, state, created_at, started_at, deadline_at, late_at, service, job_id)
    select r.id, p_stage_id, coalesce((select max(a.number) from millrace.attempts a where a.run_id = r.id and a.stage_id = p_stage_id), 0) + 1, 'waiting', v_now, v_now, v_now + s.deadline, v_now + s.sla,
      'children', v_child.name
    from unnest(p_run_ids) r(id), millrace.stages s where s.id = p_stage_id order by r.id
    returning id, run_id
  ), fan_out as (
    insert into millrace.fan_outs (run_id, stage_id, attempt_id, child_pipeline_id, spawned, total, created_at)
    select w.run_id, p_stage_id, w.id, v_child.id, 1, 1, v_now from waiting w returning id, run_id
  ), added as (
    insert into millrace.runs (pipeline_id, version_id, entity_id, trace_id, fan_out_id, item_key,
      priority, metadata_id, created_at)
    select v_child.id, v_child.current_version_id, r.entity_id, r.trace_id, f.id, '1', r.priority,
      case when v_child.metadata_column is null then r.metadata_id else e.metadata_id end, v_now
    from fan_out f
    join millrace.runs r on r.id = f.run_id
    join unnest(v_free, v_copied.ids, v_copied.faults) e(id, metadata_id, fault)
      on e.id = r.entity_id and e.fault is null
    returning id
  )
  select coalesce(array_agg(a.id order by a.id), '{}') into v_children from added a;
  perform millrace.project(p_stage_id, array(
    select row(r.entity_id, 'started', v_child.name, null, null, 0, v_now, null, null)::millrace.change from millrace.runs r where r.id = any (p_run_ids)));
  v_wake := millrace.begin_roots(v_child.id, v_children);
  v_busy := millrace.parents_without_child(v_child, p_stage_id, p_run_ids, v_free, v_copied.faults);
  if cardinality(v_busy) > 0 then
    v_wake := v_wake || millrace.fail(p_stage_id, v_busy);
  end if;
  return v_wake;
end
$$;
comment on function millrace.start_child_runs(int, bigint[]) is 'Starts the child run of a pipeline stage in each of these runs, whose attempt waits for it; returns the stages with work.';

-- What the stage's apply function refused is not completed: then the fan-out stays open for the next attempt.
create or replace function millrace.leave_children(p_stage millrace.stages, p_attempt_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.fan_outs f set state = case when p_stage.fan_in ->> 'late_children' = 'cancel' then 'abandoned' else 'finished' end
  from millrace.attempts a where a.id = any (p_attempt_ids) and a.state = 'completed' and f.attempt_id = a.id and f.state = 'open';
end
$$;
comment on function millrace.leave_children(millrace.stages, bigint[]) is 'Closes the fan-outs of attempts that were completed; children that still run go on, or are cancelled by the sweep, as the stage says.';

-- A person's retry of a parent: its fan-out opens again, and the children that failed go on.
create or replace function millrace.reopen_fan_outs(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  -- Rows that were deleted meanwhile are no children any more.
  update millrace.fan_outs f set state = 'open', total = null, retry_children = true, spawned = (select count(*) from millrace.runs r where r.fan_out_id = f.id)
  where f.id in (select max(o.id) from millrace.fan_outs o where o.run_id = any (p_run_ids) and o.stage_id = p_stage_id group by o.run_id)
    and f.state in ('abandoned', 'closed', 'finished');
  insert into millrace.child_tallies (fan_out_id, recount) select f.id, true from millrace.fan_outs f where f.run_id = any (p_run_ids) and f.stage_id = p_stage_id and f.state = 'open';
end
$$;
comment on function millrace.reopen_fan_outs(int, bigint[]) is 'Opens the latest fan-outs of a stage again. A map spawns once more, which retries the children that failed.';

-- A row that was queued by itself since has a later run than the one that is filed as the child.
create or replace function millrace.follow_later_runs(p_fan_out_id bigint, p_item_keys text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.inherit_place(array(
    select max(l.id) from millrace.runs c join millrace.runs l on l.entity_id = c.entity_id and l.pipeline_id = c.pipeline_id and l.id > c.id and l.fan_out_id is null
    where c.fan_out_id = p_fan_out_id and c.item_key = any (p_item_keys) group by c.id));
end
$$;
comment on function millrace.follow_later_runs(bigint, text[]) is 'Files the latest runs of these items'' rows, which the caller holds, as the children of a fan-out.';

-- A row that another parent has run since: the former run cannot go on behind the later one, so its item gets a new one.
create or replace function millrace.drop_overtaken(p_fan_out_id bigint, p_item_keys text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_dropped bigint[] := array(
    select r.id from millrace.runs r
    where r.fan_out_id = p_fan_out_id and r.item_key = any (p_item_keys) and r.status in ('failed', 'cancelled') and not millrace.is_latest_run(r.id));
begin
  if cardinality(v_dropped) > 0 then
    perform millrace.keep_costs(v_dropped);
    update millrace.runs r set fan_out_id = null, item_key = null where r.id = any (v_dropped);
    update millrace.fan_outs f set spawned = f.spawned - cardinality(v_dropped) where f.id = p_fan_out_id;
    insert into millrace.child_tallies (fan_out_id, recount) values (p_fan_out_id, true);
  end if;
end
$$;
comment on function millrace.drop_overtaken(bigint, text[]) is 'Takes runs that ended without success, and whose rows, which the caller holds, have had later runs, out of a fan-out.';

create or replace function millrace.retry_child_runs(p_stage_id int, p_run_ids bigint[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_children bigint[];
  v_without bigint[];
  v_retried int;
  v_wake int[];
begin
  perform millrace.reopen_fan_outs(p_stage_id, p_run_ids);
  perform millrace.follow_later_runs(f.id, array['1']), millrace.drop_overtaken(f.id, array['1'])
  from millrace.fan_outs f where f.run_id = any (p_run_ids) and f.stage_id = p_stage_id and f.state = 'open';
  v_children := array(
    select r.id from millrace.fan_outs f join millrace.runs r on r.fan_out_id = f.id
    where f.run_id = any (p_run_ids) and f.stage_id = p_stage_id and f.state = 'open' order by r.id for no key update of r);
  v_without := array(select p from unnest(p_run_ids) p where not exists (
    select from millrace.runs c join millrace.fan_outs f on f.id = c.fan_out_id where c.id = any (v_children) and f.run_id = p));
  with waiting as (
    insert into millrace.attempts (run_id, stage_id, number, parent_id, state, created_at, started_at, deadline_at, late_at, service, job_id)
    select a.run_id, a.stage_id, a.number + 1, a.id, 'waiting', v_now, v_now, v_now + s.deadline, v_now + s.sla, 'children', s.child ->> 'pipeline'
    from millrace.attempts a join millrace.stages s on s.id = a.stage_id
    -- Superseded or not: reset_children() has put the stage back to pending.
    where a.run_id = any (p_run_ids) and a.run_id <> all (v_without) and a.stage_id = p_stage_id
      and not exists (select from millrace.attempts n where n.run_id = a.run_id and n.stage_id = a.stage_id and n.number > a.number) order by a.run_id
    returning id, run_id
  )
  update millrace.fan_outs f set attempt_id = w.id, total = 1, retry_children = false from waiting w where f.run_id = w.run_id and f.stage_id = p_stage_id and f.state = 'open';
  v_retried := millrace.retry_runs(v_children);
  perform millrace.project(p_stage_id, array(
    select row(r.entity_id, 'started', null, null, null, 0, v_now, null, null)::millrace.change from millrace.runs r where r.id = any (p_run_ids)));
  -- Where no child had begun, one begins now.
  update millrace.fan_outs f set state = 'closed' where f.run_id = any (v_without) and f.stage_id = p_stage_id and f.state = 'open';
  if cardinality(v_without) = 0 then
    return '{}';
  end if;
  v_wake := millrace.start_child_runs(p_stage_id, v_without);
  perform millrace.name_parents(p_stage_id, v_without);
  return v_wake;
end
$$;
comment on function millrace.retry_child_runs(int, bigint[]) is 'A new attempt of a pipeline stage that waits for the same child run, which goes on where it failed; returns the stages with work.';

-- One row whose own trigger refuses to show it must not keep the others from being cancelled. It is cancelled unseen, or left to
-- the next call where the database says to try again.
create or replace function millrace.cancel_held(p_run_ids bigint[], p_until timestamptz) returns int
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
as $$
declare
  -- A user's trigger on what was cancelled before may have ended some.
  v_runs bigint[] := millrace.running_of(p_run_ids);
  v_half int := cardinality(v_runs) / 2;
  v_context text;
  v_transient boolean;
  v_why text;
  v_count int;
begin
  begin
    perform millrace.end_runs(v_runs, 'cancelled');
    perform millrace.project_cancelled(millrace.cancel_attempts(v_runs, null));
    return cardinality(v_runs);
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    v_transient := millrace.error_kind(sqlstate, v_context) = 'transient';
    v_why := sqlerrm;
  end;
  if v_half > 0 then
    v_count := millrace.cancel_held(v_runs[:v_half], p_until);
    return v_count + case
      when v_transient and millrace.now() >= p_until then 0
      else millrace.cancel_held(v_runs[v_half + 1:], p_until)
    end;
  elsif v_transient then
    perform millrace.report_passed_over(p.name, null, r.entity_id, v_why)
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id
    where r.id = v_runs[1];
    return 0;
  end if;
  perform millrace.report('error', 'projection_failed',
    'A cancelled child could not be shown on its row: ' || v_why,
    jsonb_build_object('run', v_runs[1]));
  perform millrace.end_runs(v_runs, 'cancelled');
  perform millrace.cancel_attempts(v_runs, null);
  return 1;
end
$$;
comment on function millrace.cancel_held(bigint[], timestamptz) is
  'Cancels runs that the caller holds and shows it on their rows; returns how many it cancelled.';

-- Children of fan-outs that were given up. Those whose row somebody holds are left to the next call.
create or replace function millrace.cancel_children(p_limit int) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
  v_fan_outs bigint[];
  v_runs bigint[];
  v_until timestamptz := millrace.now() + interval '2 seconds';
  v_count int := 0;
begin
  -- A person's retry, which opens them again, waits for this batch.
  v_fan_outs := array(select f.id from millrace.fan_outs f where f.state = 'abandoned' order by f.id for update skip locked);
  for v_group in
    select p.id, p.projection <> 'none' as projected, array_agg(c.id) as run_ids, array_agg(c.entity_id) as entity_ids
    from (select r.id, r.pipeline_id, r.entity_id from millrace.runs r where r.fan_out_id = any (v_fan_outs) and r.status = 'running'
          -- In no order, or the same rows, held or refused, would come first for ever.
          order by random() limit p_limit) c
    join millrace.pipelines p on p.id = c.pipeline_id group by p.id order by p.id
  loop
    if v_group.projected then
      v_group.entity_ids := millrace.lock_entities(v_group.id, v_group.entity_ids, false);
    end if;
    v_runs := array(select r.id from millrace.runs r where r.id = any (v_group.run_ids) and r.entity_id = any (v_group.entity_ids) and r.status = 'running' order by r.id for no key update skip locked);
    v_count := v_count + millrace.cancel_held(v_runs, v_until);
  end loop;
  update millrace.fan_outs f set state = 'closed' where f.id = any (v_fan_outs) and not exists (select from millrace.runs r where r.fan_out_id = f.id and r.status = 'running');
  return v_count;
end
$$;
comment on function millrace.cancel_children(int) is 'Cancels up to so many children of fan-outs that were given up; returns how many.';
