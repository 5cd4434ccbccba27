-- Collecting children: sums, thresholds and fan-in. A worker whose report left tallies collects
-- after its commit. The sweep collects the others.

-- Collects the children of fan-outs, and returns the stages to wake.
-- busy: the fan-outs to collect again, since another transaction has locked the parent.
-- collect: other fan-outs whose children have reported.
create function public.millrace_collect_children(p_fan_outs bigint[])
as $$
  v_fan_out bigint;
  v_done record;
  v_wake int[] := '{}';
  v_busy bigint[] := '{}';

-- Gates with limits may pass rows here, since this transaction commits soon.
perform set_config('millrace.commits_soon', 'on', true);
for v_fan_out in select distinct f from unnest(p_fan_outs) f order by f loop
  v_done := millrace.collect_children(v_fan_out);
  v_wake := v_wake || v_done.wake;
  v_busy := v_busy || case when v_done.busy then array[v_fan_out] end;
end loop;
return jsonb_build_object(
  'wake', millrace.wake_list(millrace.stages_to_wake(v_wake)),
  'busy', v_busy,
  'collect', millrace.parents_to_collect(v_busy));
$$;

-- Collects the children of up to p_limit fan-outs with tallies. Returns how many were not busy.
create function millrace.collect_reported(p_limit int) returns int
as $$
  v_until timestamptz := clock_timestamp() + interval '5 seconds';
  v_done record;

v_done := millrace.in_halves(array(
  select f.id::text
  from (
    select t.fan_out_id as id
    from millrace.child_tallies t
    group by t.fan_out_id
    -- In random order: otherwise a parent whose row refuses each write would always come first.
    order by random()
    limit p_limit) f
  -- Takes the locks without waiting: two sweeps in random order could wait for each other.
  where pg_try_advisory_xact_lock(hashtextextended('millrace.collect_children', f.id))),
  -- After five seconds the rest is left to the next portion.
  format($q$
    select count(*) filter (where not c.busy)
    from unnest($1::bigint[]) f
    cross join millrace.collect_children(
      case when extract(epoch from clock_timestamp()) < %s then f end) c
    cross join millrace.wake(c.wake)$q$, extract(epoch from v_until)), v_until);
perform millrace.report('error', 'collect_failed',
  format('The children of fan-out %s cannot be added up: %s', f.key, f.why))
from unnest(v_done.refused) f
where f.others = 0;
return v_done.done;
$$;

-- Adds up the tallies of a fan-out's children, begins stages whose thresholds hold now, and
-- completes or fails the waiting attempt by the stage's fan-in rule.
-- busy: whether the parent is locked, so that the caller must try again.
create function millrace.collect_children(
  p_fan_out_id bigint, out wake int[], out busy boolean
)
as $$
  v_fan_out millrace.fan_outs;
  v_passed record;
  v_joined record;

wake := '{}';
busy := false;
perform pg_advisory_xact_lock(hashtextextended('millrace.collect_children', p_fan_out_id));
-- A collector for whose lock this one waited has often added up all tallies.
if not exists (
  select from millrace.child_tallies t where t.fan_out_id = p_fan_out_id) then
  return;
end if;
select f.* into v_fan_out from millrace.fan_outs f where f.id = p_fan_out_id;
if found then
  -- Another transaction may delete, reset or retry the parent: then the parent or the fan-out is
  -- locked, or the fan-out is open since this call read its state.
  busy := v_fan_out.state = 'open'
    and cardinality(millrace.lock_attempts(array[v_fan_out.attempt_id])) = 0
    or not exists (
      select from millrace.fan_outs f
      where f.id = p_fan_out_id and (f.state <> 'open' or v_fan_out.state = 'open')
      for no key update skip locked);
end if;
if busy then
  return;
end if;
-- Deletes the tallies and counts in one statement, hence one snapshot. Otherwise a recount could
-- include a child whose tally is added once more later.
with taken as (
  delete from millrace.child_tallies t where t.fan_out_id = p_fan_out_id
  returning t.*
), collected as (
  select bool_or(t.recount) as recount, sum(t.completed) as completed, sum(t.failed) as failed,
    sum(t.cancelled) as cancelled
  from taken t
), progress as (
  insert into millrace.fan_progress as p (fan_out_id, stage_id, done)
  select f.id, s.id, case when n.recount then (
      select count(*)
      from millrace.runs r
      where r.fan_out_id = f.id
        and (
          select d.id
          from millrace.done_attempts d
          where d.run_id = r.id and d.stage_id = s.id
          limit 1) is not null)
    else (select sum(t.done) from taken t where t.stage_id = s.id) end
  from collected n
  join millrace.fan_outs f on f.id = p_fan_out_id
  join millrace.stages s on s.pipeline_id = f.child_pipeline_id and s.reports_to_parent
  where n.recount
    or s.id in (select t.stage_id from taken t)
  on conflict on constraint fan_progress_pkey do update
  set done = excluded.done + case when (select n.recount from collected n) then 0 else p.done end
)
update millrace.fan_outs f
set completed = c.completed + case when n.recount then 0 else f.completed + n.completed end,
  failed = c.failed + case when n.recount then 0 else f.failed + n.failed end,
  -- A recount takes children whose rows were deleted for cancelled ones.
  cancelled = case
    when n.recount then greatest(f.spawned - c.completed - c.failed - c.running, 0)
    else f.cancelled + n.cancelled
  end
from collected n
cross join lateral (
  select count(*) filter (where r.status = 'completed') as completed,
    count(*) filter (where r.status = 'failed') as failed,
    count(*) filter (where r.status = 'running') as running
  from millrace.runs r
  where n.recount and r.fan_out_id = p_fan_out_id) c
where f.id = p_fan_out_id;
-- Reads the fan-out again under the locks: a cancel of the parent may have abandoned it meanwhile.
select f.* into v_fan_out
from millrace.fan_outs f
where f.id = p_fan_out_id
  and (f.state = 'open') is true
  and (select r.status from millrace.runs r where r.id = f.run_id) = 'running';
if found then
  perform millrace.hook_entities_changed(r.pipeline_id, array[r.entity_id])
  from millrace.runs r
  where r.id = v_fan_out.run_id;
  v_passed := millrace.pass_thresholds(v_fan_out);
  v_joined := millrace.join_children(v_fan_out);
  wake := v_passed.wake || v_joined.wake;
  busy := v_passed.busy or v_joined.busy;
  -- The empty tally makes the next collector try again.
  insert into millrace.child_tallies (fan_out_id) select p_fan_out_id where busy;
end if;
$$;

-- Begins the stages of a parent whose thresholds hold now. Where that raises an error, as where a
-- user's trigger refuses the projection, the stages begin without a projection. A stage that still
-- cannot begin waits until the map is done; the map's attempt then fails with the reason.
-- busy: whether a transient error asks for another try.
create function millrace.pass_thresholds(
  p_fan_out millrace.fan_outs, out wake int[], out busy boolean
)
set lock_timeout = '200ms'
as $$
wake := '{}';
busy := false;
for v_try in 1 .. 2 loop
  begin
    perform set_config('millrace.projection_off', 'on', true) where v_try = 2;
    wake := millrace.begin_followers(p_fan_out.stage_id, array[p_fan_out.run_id]);
    perform set_config('millrace.projection_off', '', true);
    return;
  exception when anything then
    if not millrace.report_caught(sqlstate, v_context, 'threshold_failed',
        'A stage that awaited a threshold could not begin: ' || sqlerrm,
        jsonb_build_object('run', p_fan_out.run_id)) then
      raise;
    end if;
    busy := millrace.error_kind(sqlstate, v_context) = 'transient';
  end;
  exit when busy;
end loop;
$$;

-- Completes or fails the waiting attempt of a fan-out by the stage's fan-in rule. Does nothing
-- while the rule still awaits children.
-- busy: whether the outcome could not be recorded now.
create function millrace.join_children(
  p_fan_out millrace.fan_outs, out wake int[], out busy boolean
)
set lock_timeout = '200ms'
as $$
  v_lost int := p_fan_out.failed + p_fan_out.cancelled;
  v_total int := coalesce(p_fan_out.total, p_fan_out.spawned);
  v_on record;
  v_result jsonb;
  v_error jsonb;
  v_done record;

wake := '{}';
busy := false;
select a as attempt, r.entity_id, s.kind,
  v_lost > 0 and (s.fan_in ->> 'failed_children' = 'ignore') is not true as fails
into v_on
from millrace.attempts a
join millrace.runs r on r.id = a.run_id
join millrace.stages s on s.id = a.stage_id
where a.id = p_fan_out.attempt_id and a.state = 'waiting';
if not found
    or (v_on.fails or p_fan_out.completed + v_lost >= p_fan_out.total) is not true then
  return;
elsif v_on.fails then
  v_error := jsonb_build_object('permanent', true,
    'code', case when p_fan_out.failed > 0 then 'child_failed' else 'child_cancelled' end,
    'message', format('%s of %s child%s failed and %s %s cancelled; the first: %s',
      p_fan_out.failed, v_total, case when v_total <> 1 then 'ren' end, p_fan_out.cancelled,
      case p_fan_out.cancelled when 1 then 'was' else 'were' end, coalesce((
        select format('%s, %s', r.item_key, coalesce(
          s.name || ': ' || millrace.owner_message(a.error, a.id), r.status::text))
        from millrace.runs r
        left join millrace.attempts a
          on a.run_id = r.id and a.state = 'failed' and not a.superseded
        left join millrace.stages s on s.id = a.stage_id
        where r.fan_out_id = p_fan_out.id
          and r.status in ('failed', 'cancelled')
        order by r.status, r.id, a.id desc
        limit 1), 'one that was deleted, gone')));
elsif v_on.kind = 'map' then
  v_result := jsonb_build_object('total', v_total, 'completed', p_fan_out.completed,
    'failed', p_fan_out.failed, 'cancelled', p_fan_out.cancelled);
else
  v_result := (
    select coalesce(json_object_agg(s.name, a.output)::jsonb, '{}')
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.is_sink
    join millrace.stages s on s.id = vs.stage_id
    cross join lateral (
      select d.output
      from millrace.done_attempts d
      where d.run_id = r.id and d.stage_id = s.id
      limit 1) a
    where r.fan_out_id = p_fan_out.id);
end if;
v_done := millrace.apply_outcomes_guarded(array[millrace.work_on(v_on.attempt, v_on.entity_id,
  case when v_on.fails then 'failed' else 'completed' end, v_result, v_error)]);
wake := v_done.ready;
busy := (v_done.items)[1].verdict is not distinct from 'busy';
update millrace.fan_outs f
set state = 'finished'
where f.id = p_fan_out.id and (f.state = 'open') is true
  and (select a.state from millrace.attempts a where a.id = f.attempt_id) = 'completed';
$$;
