-- Chapter 31: recovery
--
-- pg_cron calls sweep() every ten seconds; when it stalls, workers and callbacks do. It makes good whatever got lost: leases of dead workers, jobs that never
-- came back, retries that fell due, wakes that nobody heard. When idle it costs a few index probes a stage.

create or replace function millrace.fail_lost(p_ids bigint[]) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[] := millrace.lock_attempts(p_ids);
  v_tokens uuid[];
  v_done record;
begin
  -- A worker may have renewed meanwhile: the claims are locked too and read once more. One that its worker is renewing or
  -- dropping this very moment is not lost.
  v_tokens := array(
    select c.token from millrace.claims c where c.expires_at <= millrace.now() for update skip locked);
  v_done := millrace.apply_outcomes_guarded(array(
    select row(row_number() over (order by a.id), a.id, a.token, null, 'failed', null, null,
      '{"code": "lost_lease", "message": "the worker ended without a word and its lease expired"}'::jsonb,
      null, null, a.run_id, a.stage_id, r.entity_id, a.state, null, null, null, null)::millrace.work
    from millrace.attempts a join millrace.claims c on c.token = a.token join millrace.runs r on r.id = a.run_id
    where a.id = any (v_ids) and a.state = 'started' and c.token = any (v_tokens)));
  perform millrace.wake(v_done.ready);
  return (select count(*) from unnest(v_done.items) i where i.verdict is distinct from 'busy');
end
$$;
comment on function millrace.fail_lost(bigint[]) is
  'Fails those of the attempts whose lease expired and whose rows are free, as lost_lease; returns how many.';

-- Page after page, so that rows which somebody holds, or which refuse to be written, keep it from none of the others.
create or replace function millrace.sweep_leases(p_pipeline_id int, p_limit int) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_stages int[] := array(select s.id from millrace.stages s where s.pipeline_id = p_pipeline_id);
  v_ids bigint[];
  v_failed int := 0;
begin
  loop
    v_ids := array(
      select a.id
      from millrace.claims c
      cross join lateral (
        select t.id, t.stage_id
        from millrace.attempts t
        where t.id = any (c.attempt_ids) and t.token = c.token and t.state = 'started'
        offset 0) a
      where c.expires_at <= v_now
        and a.stage_id = any (v_stages)
        and a.id > coalesce(v_ids[cardinality(v_ids)], 0)
      order by a.id
      limit p_limit);
    exit when cardinality(v_ids) = 0;
    v_failed := v_failed + millrace.fail_lost(v_ids);
    exit when cardinality(v_ids) < p_limit or v_failed >= p_limit;
  end loop;
  return v_failed;
end
$$;
comment on function millrace.sweep_leases(int, int) is 'Fails started attempts whose lease expired, as lost_lease; returns how many.';

-- One that the database refuses for now comes by again in a minute, behind the others.
create or replace function millrace.fail_overdue(p_ids bigint[]) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_ids bigint[] := millrace.lock_attempts(p_ids);
  v_refused bigint[];
  v_done record;
begin
  v_done := millrace.apply_outcomes_guarded(array(
    select row(row_number() over (order by a.id), a.id, null, null, 'failed', null, null,
      jsonb_build_object('code', 'deadline', 'permanent', a.service in ('children', 'decision'), 'message', case a.service
        when 'children' then 'the children did not end before the deadline' when 'decision' then 'nobody decided before the deadline' else 'the external job did not end before its deadline' end),
      a.service, a.job_id, a.run_id, a.stage_id, r.entity_id, a.state, null, null, null, null)::millrace.work
    from millrace.attempts a join millrace.runs r on r.id = a.run_id
    where a.id = any (v_ids) and a.state = 'waiting' and a.deadline_at <= v_now));
  perform millrace.wake(v_done.ready);
  v_refused := array(select i.attempt_id from unnest(v_done.items) i where i.verdict = 'busy');
  update millrace.attempts a
  set deadline_at = v_now + interval '1 minute'
  where a.id in (
    select o.id
    from millrace.attempts o
    where o.id = any (v_refused) and o.state = 'waiting'
    for update skip locked);
  return cardinality(v_done.items) - cardinality(v_refused);
end
$$;
comment on function millrace.fail_overdue(bigint[]) is
  'Fails those of the waiting attempts whose deadline has passed and whose rows are free, as deadline; returns how many.';

create or replace function millrace.sweep_deadlines(p_pipeline_id int, p_limit int) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_stages int[] := array(select s.id from millrace.stages s where s.pipeline_id = p_pipeline_id);
  v_page record;
  v_last_at timestamptz := '-infinity';
  v_last_id bigint := 0;
  v_failed int := 0;
begin
  loop
    select array_agg(d.id) as ids, max(d.deadline_at) as last_at into v_page
    from (
      select a.id, a.deadline_at
      from millrace.attempts a
      join millrace.stages s on s.id = a.stage_id
      where a.deadline_at <= v_now
        and (a.deadline_at, a.id) > (v_last_at, v_last_id)
        and a.stage_id = any (v_stages)
        -- A map that finishes with what there is at its deadline is the collection of children's to end.
        and coalesce(s.fan_in ->> 'at_deadline', 'fail') <> 'finish'
      order by a.deadline_at, a.id
      limit p_limit) d;
    exit when v_page.ids is null;
    v_last_at := v_page.last_at;
    v_last_id := v_page.ids[cardinality(v_page.ids)];
    v_failed := v_failed + millrace.fail_overdue(v_page.ids);
    exit when cardinality(v_page.ids) < p_limit or v_failed >= p_limit;
  end loop;
  return v_failed;
end
$$;
comment on function millrace.sweep_deadlines(int, int) is 'Fails waiting attempts whose deadline has passed, as deadline; returns how many.';

-- A fault of one pipeline, such as a table that was dropped, must not end the recovery of the others.
create or replace function millrace.sweep_pipeline(p_pipeline_id int, out leases int, out deadlines int, out woken int)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_context text;
begin
  leases := millrace.sweep_leases(p_pipeline_id, 5000);
  deadlines := millrace.sweep_deadlines(p_pipeline_id, 5000);
  perform millrace.sweep_limits(p_pipeline_id);
  woken := millrace.wake(array(select s.id from millrace.stages s where s.pipeline_id = p_pipeline_id and s.enabled and millrace.has_ready_work(s.id)));
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    perform millrace.report('error', 'sweep_failed', format('The sweep of pipeline %s failed: %s', (select p.name from millrace.pipelines p where p.id = p_pipeline_id), sqlerrm));
end
$$;
comment on function millrace.sweep_pipeline(int) is 'The sweep of one pipeline; its faults are reported in millrace.log.';

-- Whatever children reported and nobody has added up, fan-outs that are due, and children that are to be cancelled.
create or replace function millrace.sweep_children(out collected int, out cancelled int)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_fan_out bigint;
  v_done record;
  v_until timestamptz := millrace.now() + interval '5 seconds';
  v_context text;
begin
  collected := 0;
  insert into millrace.child_tallies (fan_out_id)
  select f.id from millrace.attempts a join millrace.stages s on s.id = a.stage_id join millrace.fan_outs f on f.attempt_id = a.id and f.state = 'open'
  where a.deadline_at <= millrace.now() and a.state = 'waiting' and s.fan_in ->> 'at_deadline' = 'finish';
  -- In no order, so that parents which refuse to be written keep it from none of the others; those that are being collected are
  -- left to whoever does so, since waiting out of order might be waiting for each other.
  for v_fan_out in select t.fan_out_id from millrace.child_tallies t group by t.fan_out_id order by random() loop
    exit when collected >= 200 or millrace.now() >= v_until;
    continue when not pg_try_advisory_xact_lock(hashtextextended('millrace.collect_children', v_fan_out));
    begin
      v_done := millrace.collect_children(v_fan_out);
      perform millrace.wake(v_done.wake);
      collected := collected + (not v_done.busy)::int;
    exception
      when query_canceled or assert_failure or others then
        get stacked diagnostics v_context = pg_exception_context;
        if millrace.error_kind(sqlstate, v_context) = 'fatal' then
          raise;
        end if;
        perform millrace.report('error', 'collect_failed', format('The children of fan-out %s cannot be added up: %s', v_fan_out, sqlerrm));
    end;
  end loop;
  cancelled := millrace.cancel_children(2000);
  -- Parents that were deleted, once they have no children left.
  with forgotten as (
    delete from millrace.fan_outs f where f.id in (
      select o.id from millrace.fan_outs o where o.state = 'closed' and not exists (select from millrace.runs r where r.id = o.run_id) limit 1000 for update skip locked)
    returning f.id
  ), progress as (
    delete from millrace.fan_progress p using forgotten f where p.fan_out_id = f.id
  )
  delete from millrace.former_costs c using forgotten f where c.fan_out_id = f.id;
end
$$;
comment on function millrace.sweep_children() is 'Folds fan-outs with tallies left and cancels the children of those that were given up; returns how many.';

-- Whoever gives metadata to one more run holds a run that has it. So no run that is not to be seen
-- here can have it, unless one that is to be seen has it too.
create or replace function millrace.sweep_metadata(p_limit int) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  with dropped as (
    delete from millrace.dropped_metadata d where d.id in (
      select o.id from millrace.dropped_metadata o
      order by o.id limit p_limit for update skip locked)
    returning d.metadata_id
  )
  delete from millrace.run_metadata m
  where m.id in (select d.metadata_id from dropped d)
    and not exists (select from millrace.runs r where r.metadata_id = m.id);
end
$$;
comment on function millrace.sweep_metadata(int) is
  'Deletes metadata that runs have dropped and no run has.';

-- Nothing that a user's trigger waits for holds it up for longer than two seconds.
create or replace function millrace.sweep() returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '2s' set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_done jsonb;
  v_children record;
  v_context text;
begin
  delete from millrace.wake_ups r where r.id in (select o.id from millrace.wake_ups o where o.rung_at < millrace.now() - interval '10 seconds' for update skip locked);
  perform millrace.sweep_quotas();
  select jsonb_build_object('leases', coalesce(sum(s.leases), 0), 'deadlines', coalesce(sum(s.deadlines), 0), 'woken', coalesce(sum(s.woken), 0)) into v_done
  from millrace.pipelines p, millrace.sweep_pipeline(p.id) s;
  begin
    v_children := millrace.sweep_children();
    v_done := v_done || to_jsonb(v_children);
    perform millrace.close_decisions(1000);
  exception
    -- As in sweep_pipeline(): no part of the recovery may end the others.
    when query_canceled or assert_failure or others then
      get stacked diagnostics v_context = pg_exception_context;
      if millrace.error_kind(sqlstate, v_context) = 'fatal' then
        raise;
      end if;
      perform millrace.report('error', 'sweep_failed', 'The sweep of children and decisions failed: ' || sqlerrm);
  end;
  v_done := v_done || (select to_jsonb(l) from millrace.sweep_alerts() l);
  delete from millrace.claims c where c.token in (
    select o.token from millrace.claims o where o.expires_at <= millrace.now() - interval '1 minute' and not exists (
      select from millrace.attempts a where a.id = any (o.attempt_ids) and a.token = o.token and a.state = 'started') for update skip locked);
  delete from millrace.workers w where w.id in (select o.id from millrace.workers o where o.heartbeat_at < millrace.now() - interval '1 hour' for update skip locked);
  perform millrace.sweep_metadata(10000);
  perform millrace.forget_posts(100);
  perform millrace.schedule_polls();
  if exists (
    select from millrace.attempts a where a.poll_at <= millrace.now() - interval '1 minute') then
    perform millrace.wake_job_poll();
  end if;
  -- In a form that reads the same in every session, whatever its DateStyle.
  update millrace.settings s set value = trim('"' from to_jsonb(millrace.now())::text)
  where s.name in (select o.name from millrace.settings o where o.name = 'last_sweep_at' for update skip locked);
  return v_done;
end
$$;
comment on function millrace.sweep() is 'Makes good what got lost: expired leases, passed deadlines, due retries and unheard wakes; raises alerts. Harmless at any time.';

-- The API's own eight seconds are not enough for all that may have piled up.
create or replace function public.millrace_sweep() returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set statement_timeout = '60s'
as $$
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if not pg_try_advisory_xact_lock(hashtext('millrace.sweep')) then
    return jsonb_build_object('swept', false);
  end if;
  -- In a statement after the lock: whoever held it may just have swept.
  if not millrace.sweep_due() then
    return jsonb_build_object('swept', false);
  end if;
  perform millrace.sweep();
  return jsonb_build_object('swept', true);
end
$$;
comment on function public.millrace_sweep() is
  'Sweeps if the last sweep is over a minute old and nobody else does so now.';
revoke all on function public.millrace_sweep() from public, anon, authenticated;
grant execute on function public.millrace_sweep() to service_role;

create or replace function millrace.wake_job_poll() returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := millrace.now();
begin
  if exists (select from millrace.attempts a where a.poll_at <= v_now) then
    return millrace.post('job-poll', '{}');
  end if;
  return false;
end
$$;
comment on function millrace.wake_job_poll() is 'Wakes the completion poller if a waiting job is due to be asked for; one index probe otherwise.';

create or replace function millrace.lock_prunable(p_before timestamptz, p_after bigint, p_limit int) returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    where r.id > coalesce(p_after, 0) and r.status <> 'running' and r.finished_at < p_before
      -- A parent that still waits counts its children, and one that is over may have late ones.
      and not exists (
        select from millrace.fan_outs f where f.id = r.fan_out_id and f.state = 'open')
      and not exists (
        select from millrace.fan_outs f
        join millrace.runs c on c.fan_out_id = f.id and c.status = 'running'
        where f.run_id = r.id)
    order by r.id limit p_limit for update of r skip locked);
end
$$;
comment on function millrace.lock_prunable(timestamptz, bigint, int) is
  'Locks and returns the next so many runs, by id, that ended before this time and that nobody needs.';

-- What a user's trigger on public.millrace_decisions refuses is left to the next night; the others go.
create or replace function millrace.prune_runs(p_run_ids bigint[]) returns int
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
as $$
declare
  v_half int := cardinality(p_run_ids) / 2;
  v_context text;
begin
  begin
    perform millrace.delete_runs(p_run_ids);
    return cardinality(p_run_ids);
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    if v_half = 0 then
      perform millrace.report('error', 'run_not_pruned',
        format('Run %s cannot be pruned: %s', p_run_ids[1], sqlerrm));
      return 0;
    end if;
  end;
  return millrace.prune_runs(p_run_ids[:v_half]) + millrace.prune_runs(p_run_ids[v_half + 1:]);
end
$$;
comment on function millrace.prune_runs(bigint[]) is
  'Deletes locked runs, but for those that cannot be; returns how many.';

create or replace function millrace.prune() returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_before timestamptz := millrace.now() - make_interval(days => millrace.setting('retention_days')::int);
  v_ends timestamptz := millrace.now() + interval '2 seconds';
  v_batch bigint[];
  v_runs int := 0;
  v_more boolean;
begin
  loop
    v_batch := millrace.lock_prunable(v_before, v_batch[cardinality(v_batch)], 1000);
    v_more := cardinality(v_batch) = 1000;
    exit when cardinality(v_batch) = 0;
    v_runs := v_runs + millrace.prune_runs(v_batch);
    exit when not v_more or millrace.now() >= v_ends;
  end loop;
  perform millrace.prune_decisions();
  v_more := millrace.prune_alerts(v_before) = 10000 or v_more;
  delete from millrace.log l where l.at < v_before;
  -- By command: a job that was unscheduled has left its history behind.
  delete from cron.job_run_details d
  where d.command ~ '^select millrace\.(sweep|wake_job_poll|prune)\(\)$'
    and d.end_time < millrace.now() - interval '1 day';
  perform millrace.schedule_pruning(v_more);
  return jsonb_build_object('runs', v_runs, 'more', v_more);
end
$$;
comment on function millrace.prune() is
  'Deletes finished runs older than retention_days, for about two seconds a call, old log lines and alerts, '
  'and the engine''s own rows of cron.job_run_details. When there is more, pg_cron goes on until it is done.';
