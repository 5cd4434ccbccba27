-- Chapter 14: collecting children: what children came to, thresholds and joins
--
-- collect_children(), in a transaction of its own or at the end of a decision's, takes the parent alone, adds the tallies of its children
-- up and looks at thresholds and at the fan-in rule. The worker whose call left tallies asks for it after its commit; the
-- sweep collects whatever is left.
--
-- Lock order: a collection of children takes its fan-out's advisory lock (it waits for other collects only), then the parent's entity and run
-- and the fan-out's row with skip locked: who holds one of them is answered busy, and it is tried again.

-- Whether thresholds on fan-outs of a run hold. A map that is done (finished, skipped, gone on without) satisfies them all.
create or replace function millrace.thresholds_hold(p_run_id bigint, p_after jsonb) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_after record;
  v_fan_out millrace.fan_outs;
  v_progress millrace.fan_progress;
begin
  for v_after in select a.* from jsonb_to_recordset(p_after) as a(map int, stage int, kind text, n int) loop
    continue when millrace.is_done(p_run_id, v_after.map);
    select f.* into v_fan_out from millrace.fan_outs f where f.run_id = p_run_id and f.stage_id = v_after.map and f.state = 'open';
    if not found then
      return false;
    end if;
    select p.* into v_progress from millrace.fan_progress p where p.fan_out_id = v_fan_out.id and p.stage_id = v_after.stage;
    continue when v_after.kind = 'count' and v_progress.done >= v_after.n;
    -- Which number is the smallest is known once all items are.
    continue when v_after.kind = 'consecutive' and v_fan_out.total is not null and v_progress.next_number - v_fan_out.first_number >= v_after.n;
    -- The sums rule most cases out before anything is read; a child that failed after this stage is in both of them.
    if v_fan_out.total is null or coalesce(v_progress.done, 0) + v_fan_out.failed + v_fan_out.cancelled < v_fan_out.total or exists (
      select from millrace.runs r where r.fan_out_id = v_fan_out.id and r.status = 'running' and not millrace.is_done(r.id, v_after.stage)) then
      return false;
    end if;
  end loop;
  return true;
end
$$;
comment on function millrace.thresholds_hold(bigint, jsonb) is 'Whether all thresholds of a stage hold in a run. Where fewer children exist than a number asks for, all of them will do.';

-- Adds up what the children have reported. Deleting tallies and counting rows is one statement, hence one snapshot: a
-- child whose tally is not in it is not counted either.
create or replace function millrace.consume_child_tallies(p_fan_out_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from millrace.child_tallies t where t.fan_out_id = p_fan_out_id and t.recount) then
    with taken as (
      delete from millrace.child_tallies t where t.fan_out_id = p_fan_out_id
    ), progress as (
      insert into millrace.fan_progress as p (fan_out_id, stage_id, done)
      select p_fan_out_id, s.id, (
        select count(*) from millrace.runs r where r.fan_out_id = p_fan_out_id
          and exists (select from millrace.attempts a where a.run_id = r.id and a.stage_id = s.id and a.state in ('completed', 'skipped') and not a.superseded))
      from millrace.fan_outs f join millrace.stages s on s.pipeline_id = f.child_pipeline_id and s.counted_by_parent where f.id = p_fan_out_id
      on conflict on constraint fan_progress_pkey do update set done = excluded.done, next_number = null
    )
    update millrace.fan_outs f set completed = c.completed, failed = c.failed,
      -- A child whose row was deleted is counted as cancelled.
      cancelled = greatest(f.spawned - c.completed - c.failed - c.running, 0)
    from (select count(*) filter (where r.status = 'completed') as completed, count(*) filter (where r.status = 'failed') as failed, count(*) filter (where r.status = 'running') as running
          from millrace.runs r where r.fan_out_id = p_fan_out_id) c
    where f.id = p_fan_out_id;
  else
    with taken as (
      delete from millrace.child_tallies t where t.fan_out_id = p_fan_out_id and not t.recount returning t.*
    ), progress as (
      insert into millrace.fan_progress as p (fan_out_id, stage_id, done)
      select p_fan_out_id, t.stage_id, sum(t.done) from taken t where t.stage_id is not null group by t.stage_id
      on conflict on constraint fan_progress_pkey do update set done = p.done + excluded.done
    )
    update millrace.fan_outs f set completed = f.completed + c.completed, failed = f.failed + c.failed, cancelled = f.cancelled + c.cancelled
    from (select coalesce(sum(t.completed), 0) as completed, coalesce(sum(t.failed), 0) as failed, coalesce(sum(t.cancelled), 0) as cancelled from taken t) c
    where f.id = p_fan_out_id;
  end if;
end
$$;
comment on function millrace.consume_child_tallies(bigint) is 'Moves the tallies of a fan-out into its sums.';

-- From where the last look ended, number by number: each child is passed once.
create or replace function millrace.count_consecutive(p_fan_out millrace.fan_outs, p_stage_id int, p_wanted int) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_next int := coalesce((select p.next_number from millrace.fan_progress p where p.fan_out_id = p_fan_out.id and p.stage_id = p_stage_id), p_fan_out.first_number);
begin
  while v_next - p_fan_out.first_number < p_wanted
    and exists (select from millrace.runs r where r.fan_out_id = p_fan_out.id and r.item_key = v_next::text and millrace.is_done(r.id, p_stage_id))
  loop
    v_next := v_next + 1;
  end loop;
  update millrace.fan_progress p set next_number = v_next where p.fan_out_id = p_fan_out.id and p.stage_id = p_stage_id and p.next_number is distinct from v_next;
end
$$;
comment on function millrace.count_consecutive(millrace.fan_outs, int, int) is 'Notes the first number, from the smallest on, whose child has not done a stage; no further than is wanted.';

-- Stages of the parent that wait for its children and may begin now.
create or replace function millrace.pass_thresholds(p_fan_out millrace.fan_outs) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_after record;
  v_wake int[] := '{}';
begin
  for v_after in
    select (a ->> 'stage')::int as stage_id, max((a ->> 'n')::int) as wanted
    from millrace.runs r join millrace.version_stages vs on vs.version_id = r.version_id, jsonb_array_elements(vs.after) a
    where p_fan_out.total is not null and r.id = p_fan_out.run_id and a ->> 'kind' = 'consecutive' and (a ->> 'map')::int = p_fan_out.stage_id
      and not exists (select from millrace.attempts t where t.run_id = r.id and t.stage_id = vs.stage_id and not t.superseded)
    group by 1
  loop
    perform millrace.count_consecutive(p_fan_out, v_after.stage_id, v_after.wanted);
  end loop;
  for v_after in
    select vs.stage_id from millrace.runs r join millrace.version_stages vs on vs.version_id = r.version_id
    where r.id = p_fan_out.run_id and exists (select from jsonb_array_elements(vs.after) a where (a ->> 'map')::int = p_fan_out.stage_id)
    order by vs.position
  loop
    v_wake := v_wake || millrace.begin_stage(v_after.stage_id, millrace.open_runs(v_after.stage_id, array[p_fan_out.run_id]));
  end loop;
  return v_wake;
end
$$;
comment on function millrace.pass_thresholds(millrace.fan_outs) is 'Begins the stages of a parent whose thresholds hold now and that have not begun; returns those with work.';

create or replace function millrace.child_failure(p_fan_out millrace.fan_outs) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_first record;
begin
  select r.item_key, r.status, millrace.owner_message(a.error, a.id) as message, s.name as stage into v_first
  from millrace.runs r left join millrace.attempts a on a.run_id = r.id and a.state = 'failed' and not a.superseded left join millrace.stages s on s.id = a.stage_id
  where r.fan_out_id = p_fan_out.id and r.status in ('failed', 'cancelled') order by r.status, r.id, a.id desc limit 1;
  return jsonb_build_object('permanent', true, 'code', case when p_fan_out.failed > 0 then 'child_failed' else 'child_cancelled' end,
    'message', format('%s of %s children failed and %s were cancelled; the first: %s, %s', p_fan_out.failed, coalesce(p_fan_out.total, p_fan_out.spawned), p_fan_out.cancelled,
      coalesce(v_first.item_key, 'one that was deleted'), coalesce(v_first.stage || ': ' || v_first.message, v_first.status::text, 'gone')));
end
$$;
comment on function millrace.child_failure(millrace.fan_outs) is 'The error of a stage whose children failed, with the first of them.';

-- What the fan-in rule says now: null (go on waiting), completed or failed, with the reason.
create or replace function millrace.fan_in_verdict(p_fan_out millrace.fan_outs, p_fan_in jsonb, p_deadline_at timestamptz, out outcome text, out error jsonb)
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_over boolean := p_fan_out.completed + p_fan_out.failed + p_fan_out.cancelled >= p_fan_out.total;
  v_wanted int := case p_fan_in ->> 'rule' when 'at_least' then (p_fan_in ->> 'count')::int
    when 'share' then ceil((p_fan_in ->> 'share')::numeric * p_fan_out.total) end;
begin
  -- A rule that is met counts, whichever of its last children was added up first.
  if p_fan_out.completed >= v_wanted then
    outcome := 'completed';
  elsif coalesce(p_fan_in ->> 'failed_children', 'fail') = 'fail' and p_fan_out.failed + p_fan_out.cancelled > 0 then
    outcome := 'failed';
    error := millrace.child_failure(p_fan_out);
  elsif v_over and (v_wanted is null or p_fan_out.completed >= p_fan_out.total) then
    outcome := 'completed';
  elsif v_over then
    outcome := 'failed';
    error := millrace.child_failure(p_fan_out) || jsonb_build_object('code', 'too_few_children',
      'message', format('%s of %s children were completed, but the fan-in rule asks for %s; %s', p_fan_out.completed, p_fan_out.total, v_wanted, millrace.child_failure(p_fan_out) ->> 'message'));
  elsif p_deadline_at <= millrace.now() and p_fan_in ->> 'at_deadline' = 'finish' then
    outcome := 'completed';
  end if;
end
$$;
comment on function millrace.fan_in_verdict(millrace.fan_outs, jsonb, timestamptz) is 'Whether a fan-out is complete or has failed by its rule. A rule that asks for more children than there are is satisfied by all of them.';

create or replace function millrace.fan_in_output(p_fan_out millrace.fan_outs, p_kind text) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  if p_kind = 'map' then
    return jsonb_build_object('total', coalesce(p_fan_out.total, p_fan_out.spawned), 'completed', p_fan_out.completed, 'failed', p_fan_out.failed, 'cancelled', p_fan_out.cancelled);
  end if;
  return (
    select coalesce(jsonb_object_agg(s.name, a.output), '{}')
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.is_sink
    join millrace.stages s on s.id = vs.stage_id
    join millrace.attempts a on a.run_id = r.id and a.stage_id = s.id and a.state in ('completed', 'skipped') and not a.superseded
    where r.fan_out_id = p_fan_out.id);
end
$$;
comment on function millrace.fan_in_output(millrace.fan_outs, text) is 'The result of a map stage (how many children came to what) or of a pipeline stage (the results of the child''s last stages).';

create or replace function millrace.join_children(
  p_fan_out millrace.fan_outs, out ready int[], out busy boolean
)
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
as $$
declare
  v_attempt millrace.attempts;
  v_stage millrace.stages;
  v_verdict record;
  v_done record;
begin
  ready := '{}';
  busy := false;
  select a.* into v_attempt from millrace.attempts a where a.id = p_fan_out.attempt_id;
  if v_attempt.state is distinct from 'waiting' then
    return;
  end if;
  select s.* into v_stage from millrace.stages s where s.id = p_fan_out.stage_id;
  v_verdict := millrace.fan_in_verdict(p_fan_out, coalesce(v_stage.fan_in, '{}'), v_attempt.deadline_at);
  if v_verdict.outcome is null then
    return;
  end if;
  v_done := millrace.apply_outcomes_guarded(array[row(1, v_attempt.id, null, null, v_verdict.outcome,
    case when v_verdict.outcome = 'completed' then millrace.fan_in_output(p_fan_out, v_stage.kind) end, null, v_verdict.error,
    v_attempt.service, v_attempt.job_id, v_attempt.run_id, v_attempt.stage_id, (select r.entity_id from millrace.runs r where r.id = v_attempt.run_id),
    v_attempt.state, null, null, null, null)::millrace.work]);
  ready := v_done.ready;
  busy := (v_done.items)[1].verdict is not distinct from 'busy';
  perform millrace.leave_children(v_stage, array[v_attempt.id]);
end
$$;
comment on function millrace.join_children(millrace.fan_outs) is 'Completes or fails the waiting attempt of a fan-out as its rule says; returns the stages with work. busy: the database said to try again.';

-- A user's trigger that refuses to show a stage must not keep the parent waiting: as apply_outcomes_unprojected() does, and what
-- cannot begin even so is left to the end of the map, which then fails with the reason.
create or replace function millrace.pass_thresholds_guarded(
  p_fan_out millrace.fan_outs, out wake int[], out busy boolean
)
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
as $$
declare
  v_context text;
begin
  busy := false;
  for v_try in 1 .. 2 loop
    begin
      perform set_config('millrace.projection_off', case v_try when 2 then 'on' else '' end, true);
      wake := millrace.pass_thresholds(p_fan_out);
      perform set_config('millrace.projection_off', '', true);
      return;
    exception when query_canceled or assert_failure or others then
      get stacked diagnostics v_context = pg_exception_context;
      if millrace.error_kind(sqlstate, v_context) = 'fatal' then
        raise;
      end if;
      busy := millrace.error_kind(sqlstate, v_context) = 'transient';
      perform millrace.report('error', 'threshold_failed',
        'A stage that has_conditional_followers a threshold could not begin: ' || sqlerrm,
        jsonb_build_object('run', p_fan_out.run_id, 'without_projection', v_try = 2));
    end;
    exit when busy;
  end loop;
  wake := '{}';
end
$$;
comment on function millrace.pass_thresholds_guarded(millrace.fan_outs) is 'pass_thresholds() that goes on without the projection when the parent''s row refuses it, and reports that. busy: the database said to try again.';

create or replace function millrace.collect_children(p_fan_out_id bigint, out wake int[], out busy boolean)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_fan_out millrace.fan_outs;
  v_run millrace.runs;
  v_passed record;
  v_joined record;
begin
  wake := '{}';
  busy := false;
  perform pg_advisory_xact_lock(hashtextextended('millrace.collect_children', p_fan_out_id));
  -- The collect children that this one waited for has mostly added up what this one was asked for.
  if not exists (select from millrace.child_tallies t where t.fan_out_id = p_fan_out_id) then
    return;
  end if;
  select f.* into v_fan_out from millrace.fan_outs f where f.id = p_fan_out_id;
  select r.* into v_run from millrace.runs r where r.id = v_fan_out.run_id;
  if v_fan_out.state = 'open' and v_run.id is not null then
    if millrace.writes_entities(v_run.pipeline_id)
       and cardinality(millrace.lock_entities(v_run.pipeline_id, array[v_run.entity_id], false)) = 0 then
      busy := true;
      return;
    end if;
    perform from millrace.runs r where r.id = v_run.id for no key update skip locked;
    if not found then
      busy := true;
      return;
    end if;
  end if;
  -- Whoever deletes, resets or retries the parent may hold the fan-out in a long transaction, or have opened it again since.
  perform from millrace.fan_outs f where f.id = p_fan_out_id and (f.state <> 'open' or v_fan_out.state = 'open') for no key update skip locked;
  if not found and v_fan_out.id is not null then
    busy := true;
    return;
  end if;
  perform millrace.consume_child_tallies(p_fan_out_id);
  -- Read under the locks: a cancel may have given it up meanwhile.
  select f.* into v_fan_out from millrace.fan_outs f where f.id = p_fan_out_id;
  if v_fan_out.state = 'open' and (select r.status = 'running' from millrace.runs r where r.id = v_run.id) then
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
comment on function millrace.collect_children(bigint) is 'Adds up what the children of a fan-out have reported, begins what waited for a threshold, and ends the waiting stage when its rule is met. busy: somebody holds the parent, or the database said to try again.';

create or replace function public.millrace_collect_children(p_fan_outs bigint[]) returns jsonb
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
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
    raise exception 'p_fan_outs has % entries, but must be a list of at most 100', coalesce(cardinality(p_fan_outs)::text, 'no') using errcode = 'MR002', hint = 'Send the numbers that millrace_complete answered in "collect".';
  end if;
  for v_fan_out in select distinct f from unnest(p_fan_outs) f order by f loop
    v_done := millrace.collect_children(v_fan_out);
    v_wake := v_wake || v_done.wake;
    if v_done.busy then
      v_busy := v_busy || v_fan_out;
    end if;
  end loop;
  return jsonb_build_object('wake', millrace.wake_list(millrace.stages_to_wake(v_wake)), 'busy', v_busy, 'collect', millrace.parents_to_collect(v_busy));
end
$$;
comment on function public.millrace_collect_children(bigint[]) is 'Folds fan-outs whose children have reported. busy: those whose parent somebody holds; collect children: fan-outs, further up, that have something to collect children now.';
revoke all on function public.millrace_collect_children(bigint[]) from public, anon, authenticated;
grant execute on function public.millrace_collect_children(bigint[]) to service_role;

-- A collect children that ends a run of a child pipeline leaves a tally with the grandparent.
create or replace function millrace.parents_to_collect(p_except bigint[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return array(select distinct t.fan_out_id from (select t.fan_out_id from millrace.child_tallies t where t.fan_out_id <> all (p_except) limit 1000) t limit 20);
end
$$;
comment on function millrace.parents_to_collect(bigint[]) is 'Fan-outs with tallies that nobody has added up, but for these.';
