-- The sweep: recovery
--
-- pg_cron calls sweep() every ten seconds; when it stalls, workers and callbacks do. It makes good
-- whatever got lost: leases of dead workers, jobs that never came back, retries that fell due,
-- wake-ups that nobody heard. It also starts what is due. When idle it costs a few index probes a
-- stage.

-- Sweeps one pipeline. It reports a fault of that pipeline, such as a table that was dropped, which
-- must not end the recovery of the others.
create or replace function millrace.sweep_pipeline(
  p_pipeline_id int, out leases int, out deadlines int, out woken int
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_context text;
begin
  leases := millrace.sweep_leases(p_pipeline_id, 5000);
  deadlines := millrace.sweep_deadlines(p_pipeline_id, 5000);
  perform millrace.sweep_limits(p_pipeline_id);
  perform millrace.show_due(p_pipeline_id, 5000);
  woken := millrace.wake(array(
    select s.id
    from millrace.stages s
    where s.pipeline_id = p_pipeline_id
      and s.enabled
      and s.kind <> 'gate'
      and millrace.has_ready_work(s.id)));
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if not millrace.report_caught(sqlstate, v_context, 'sweep_failed', format(
        'The sweep of pipeline %s failed: %s',
        (select p.name from millrace.pipelines p where p.id = p_pipeline_id),
        sqlerrm)) then
      raise;
    end if;
end
$$;

-- Sweeps children and decisions; null where that failed, which ends no other part of the recovery.
create or replace function millrace.sweep_features() returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_children record;
  v_context text;
begin
  v_children := millrace.sweep_children();
  perform millrace.close_decisions(1000);
  return to_jsonb(v_children);
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if not millrace.report_caught(sqlstate, v_context, 'sweep_failed',
        'The sweep of children and decisions failed: ' || sqlerrm) then
      raise;
    end if;
    return null;
end
$$;

-- Checks the invariants of the next runs; a fault of the check itself ends no other part.
create or replace function millrace.sweep_checks() returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_context text;
begin
  return jsonb_strip_nulls(jsonb_build_object('faults', millrace.go_on_checking(500)));
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if not millrace.report_caught(sqlstate, v_context, 'sweep_failed',
        'The sweep of the invariants failed: ' || sqlerrm) then
      raise;
    end if;
    return '{}';
end
$$;

-- Deletes what nobody asks for any more: answered wake-ups, claims without started attempts,
-- workers that are gone, metadata without runs, and all but about the newest hundred posts.
create or replace function millrace.forget_leftovers() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_oldest_post timestamptz := (
    select p.posted_at from millrace.posts p order by p.posted_at desc offset 99 limit 1);
begin
  delete from millrace.wake_ups r
  where r.id in (
    select o.id
    from millrace.wake_ups o
    where o.woken_at < v_now - interval '10 seconds'
    for update skip locked);
  delete from millrace.claims c
  where c.token in (
    select o.token
    from millrace.claims o
    where o.expires_at <= v_now - interval '1 minute'
      and not exists (
        select
        from millrace.attempts a
        where a.id = any (o.attempt_ids) and a.token = o.token and a.state = 'started')
    for update skip locked);
  delete from millrace.workers w
  where w.id in (
    select o.id
    from millrace.workers o
    where o.heartbeat_at < v_now - interval '1 hour'
    for update skip locked);
  perform millrace.sweep_metadata(10000);
  delete from millrace.posts p
  where p.ctid = any (array(
    select o.ctid
    from millrace.posts o
    where o.posted_at < v_oldest_post
    for update skip locked));
end
$$;

-- Sweeps everything. Nothing that a user's trigger waits for holds it up for longer than two
-- seconds.
create or replace function millrace.sweep() returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_done jsonb;
begin
  perform millrace.sweep_quotas();
  select jsonb_build_object(
    'leases', coalesce(sum(s.leases), 0),
    'deadlines', coalesce(sum(s.deadlines), 0),
    'woken', coalesce(sum(s.woken), 0)) into v_done
  from millrace.pipelines p
  cross join lateral millrace.sweep_pipeline(p.id) s;
  v_done := v_done || coalesce(millrace.sweep_features(), '{}');
  v_done := v_done || (select to_jsonb(l) from millrace.sweep_alerts() l);
  v_done := v_done || jsonb_build_object('pulses', millrace.sweep_figures());
  perform millrace.sweep_rules();
  perform millrace.forget_leftovers();
  v_done := v_done || millrace.start_due();
  v_done := v_done || millrace.sweep_checks() || millrace.sweep_operators();
  perform millrace.sweep_shared_limits();
  perform millrace.schedule_polls();
  if exists (
      select
      from millrace.attempts a
      where a.poll_at <= millrace.now() - interval '1 minute') then
    perform millrace.wake_job_poll();
  end if;
  -- Near its end, since what it passes is held until the sweep commits.
  v_done := v_done || millrace.sweep_gates();
  -- In a form that reads the same in every session, whatever its DateStyle.
  update millrace.settings s
  set value = trim('"' from to_jsonb(millrace.now())::text)
  where s.name in (
    select o.name
    from millrace.settings o
    where o.name = 'last_sweep_at'
    for update skip locked);
  return v_done;
end
$$;
comment on function millrace.sweep() is
  'Makes good what got lost: expired leases, passed deadlines, due retries and unheard wake-ups; '
  'starts runs of rows that are due; raises alerts. Harmless at any time.';

-- Sweeps for a worker or a callback. The Data API's own eight seconds are not enough for all that
-- may have piled up.
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
