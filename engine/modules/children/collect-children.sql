-- Collecting children: sums, thresholds and joins
--
-- collect_children() takes the parent alone, adds up the tallies of its children, and looks at
-- thresholds and at the fan-in rule. It runs in a transaction of its own or at the end of a
-- decision's. The worker whose call left tallies asks for it after its commit; the sweep collects
-- whatever is left.
--
-- Lock order: it takes the fan-out's advisory lock (and waits for other collectors only), then with
-- skip locked the parent's entity, the parent's run and the fan-out's row. Where somebody holds one
-- of them it answers busy, and its caller tries again.

-- Moves the tallies of a fan-out into its sums; where one of them asks for a recount, counts the
-- children anew. It deletes tallies and counts rows in one statement, hence in one snapshot: a
-- child whose tally is not in it is not counted either.
create function millrace.consume_child_tallies(p_fan_out_id bigint) returns void
language plpgsql
as $$
begin
  if exists (
      select from millrace.child_tallies t where t.fan_out_id = p_fan_out_id and t.recount) then
    perform millrace.recount_children(p_fan_out_id);
    return;
  end if;
  with taken as (
    delete from millrace.child_tallies t
    where t.fan_out_id = p_fan_out_id
      and not t.recount
    returning t.*
  ), progress as (
    insert into millrace.fan_progress as p (fan_out_id, stage_id, done)
    select p_fan_out_id, t.stage_id, sum(t.done)
    from taken t
    where t.stage_id is not null
    group by t.stage_id
    on conflict on constraint fan_progress_pkey do update set done = p.done + excluded.done
  )
  update millrace.fan_outs f
  set completed = f.completed + c.completed,
    failed = f.failed + c.failed,
    cancelled = f.cancelled + c.cancelled
  from (
    select coalesce(sum(t.completed), 0) as completed,
      coalesce(sum(t.failed), 0) as failed,
      coalesce(sum(t.cancelled), 0) as cancelled
    from taken t
  ) c
  where f.id = p_fan_out_id;
end
$$;

-- Counts the children of a fan-out anew and drops its tallies, in one snapshot.
create function millrace.recount_children(p_fan_out_id bigint) returns void
language plpgsql
as $$
begin
  with taken as (
    delete from millrace.child_tallies t where t.fan_out_id = p_fan_out_id
  ), progress as (
    insert into millrace.fan_progress as p (fan_out_id, stage_id, done)
    select p_fan_out_id, s.id, (
      select count(*)
      from millrace.runs r
      where r.fan_out_id = p_fan_out_id
        and exists (
          select
          from millrace.done_attempts a
          where a.run_id = r.id
            and a.stage_id = s.id))
    from millrace.fan_outs f
    join millrace.stages s on s.pipeline_id = f.child_pipeline_id and s.counted_by_parent
    where f.id = p_fan_out_id
    on conflict on constraint fan_progress_pkey
      do update set done = excluded.done, next_number = null
  )
  update millrace.fan_outs f
  set completed = c.completed,
    failed = c.failed,
    -- A child whose row was deleted is counted as cancelled.
    cancelled = greatest(f.spawned - c.completed - c.failed - c.running, 0)
  from (
    select count(*) filter (where r.status = 'completed') as completed,
      count(*) filter (where r.status = 'failed') as failed,
      count(*) filter (where r.status = 'running') as running
    from millrace.runs r
    where r.fan_out_id = p_fan_out_id
  ) c
  where f.id = p_fan_out_id;
end
$$;

-- Locks what collecting the children of a fan-out writes: the parent's entity and run while the
-- fan-out is open, and the fan-out. False when somebody holds one of them.
create function millrace.hold_fan_out(p_fan_out_id bigint) returns boolean
language plpgsql
as $$
declare
  v_fan_out millrace.fan_outs;
  v_run millrace.runs;
begin
  select f.* into v_fan_out from millrace.fan_outs f where f.id = p_fan_out_id;
  select r.* into v_run from millrace.runs r where r.id = v_fan_out.run_id;
  if v_fan_out.state = 'open' and v_run.id is not null then
    if millrace.writes_entities(v_run.pipeline_id)
       and cardinality(
         millrace.lock_entities(v_run.pipeline_id, array[v_run.entity_id], false)) = 0 then
      return false;
    end if;
    perform from millrace.runs r where r.id = v_run.id for no key update skip locked;
    if not found then
      return false;
    end if;
  end if;
  -- Whoever deletes, resets or retries the parent may hold the fan-out in a long transaction, or
  -- have opened it again since.
  perform
  from millrace.fan_outs f
  where f.id = p_fan_out_id
    and (f.state <> 'open' or v_fan_out.state = 'open')
  for no key update skip locked;
  return found or v_fan_out.id is null;
end
$$;

-- Adds up what the children of a fan-out have reported, begins what waited for a threshold, and
-- ends the waiting stage when its rule is met. busy: somebody holds the parent, or the database
-- said to try again.
create function millrace.collect_children(
  p_fan_out_id bigint, out wake int[], out busy boolean
)
language plpgsql
as $$
declare
  v_fan_out millrace.fan_outs;
  v_passed record;
  v_joined record;
begin
  wake := '{}';
  busy := false;
  perform pg_advisory_xact_lock(hashtextextended('millrace.collect_children', p_fan_out_id));
  -- The collector that this one waited for has mostly added up what this one was asked for.
  if not exists (
      select from millrace.child_tallies t where t.fan_out_id = p_fan_out_id) then
    return;
  end if;
  if not millrace.hold_fan_out(p_fan_out_id) then
    busy := true;
    return;
  end if;
  perform millrace.consume_child_tallies(p_fan_out_id);
  -- Read under the locks: a cancel may have given it up meanwhile.
  select f.* into v_fan_out from millrace.fan_outs f where f.id = p_fan_out_id;
  if v_fan_out.state = 'open'
     and (select r.status = 'running' from millrace.runs r where r.id = v_fan_out.run_id) then
    v_passed := millrace.pass_thresholds_guarded(v_fan_out);
    v_joined := millrace.join_children(v_fan_out);
    wake := v_passed.wake || v_joined.ready;
    busy := v_passed.busy or v_joined.busy;
    if busy then
      -- What the children reported is added up: this makes somebody look once more.
      insert into millrace.child_tallies (fan_out_id) values (p_fan_out_id);
    end if;
  end if;
end
$$;

-- A worker calls it after a commit that left tallies, so that the parents need not wait for the
-- sweep.
create function public.millrace_collect_children(p_fan_outs bigint[]) returns jsonb
language plpgsql security definer
set millrace.plan = by_key
as $$
declare
  v_fan_out bigint;
  v_done record;
  v_wake int[] := '{}';
  v_busy bigint[] := '{}';
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_fan_outs is null or cardinality(p_fan_outs) > 100 then
    raise exception 'p_fan_outs has % entries, but must be a list of at most 100',
        coalesce(cardinality(p_fan_outs)::text, 'no')
      using errcode = 'MR002',
        hint = 'Send the numbers that millrace_complete answered in "collect".';
  end if;
  for v_fan_out in select distinct f from unnest(p_fan_outs) f order by f loop
    v_done := millrace.collect_children(v_fan_out);
    v_wake := v_wake || v_done.wake;
    if v_done.busy then
      v_busy := v_busy || v_fan_out;
    end if;
  end loop;
  return jsonb_build_object(
    'wake', millrace.wake_list(millrace.stages_to_wake(v_wake)),
    'busy', v_busy,
    'collect', millrace.parents_to_collect(v_busy));
end
$$;
comment on function public.millrace_collect_children(bigint[]) is
  'Collects the children of fan-outs that have reported. busy: fan-outs whose parent somebody '
  'holds; collect: fan-outs, further up, whose children have reported now.';

-- Names fan-outs with tallies that nobody has added up, but for these. Collecting the children of a
-- fan-out may end a run that is a child itself, which leaves a tally with the grandparent.
create function millrace.parents_to_collect(p_except bigint[]) returns bigint[]
language plpgsql volatile
as $$
begin
  return array(
    select distinct t.fan_out_id
    from (
      select t.fan_out_id
      from millrace.child_tallies t
      where t.fan_out_id <> all (p_except)
      limit 1000
    ) t
    limit 20);
end
$$;
