-- Chapter 31: recovery
--
-- pg_cron calls sweep() every ten seconds; when it stalls, workers and callbacks do. It makes good whatever got lost: leases of dead workers, jobs that never
-- came back, retries that fell due, rings that nobody heard. When idle it costs a few index probes a stage.

create function pipeline.sweep_leases(p_pipeline_id int, p_limit int) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := pipeline.now();
  v_stages int[] := array(select s.id from pipeline.stages s where s.pipeline_id = p_pipeline_id);
  v_ids bigint[];
  v_tokens uuid[];
  v_items pipeline.work[];
begin
  v_ids := array(
    select a.id from pipeline.claims c
    cross join lateral (select t.id, t.stage_id from pipeline.attempts t where t.id = any (c.attempt_ids) and t.token = c.token and t.state = 'started' offset 0) a
    where c.expires_at <= v_now and a.stage_id = any (v_stages) limit p_limit);
  if cardinality(v_ids) = 0 then
    return 0;
  end if;
  v_ids := pipeline.lock_attempts(v_ids);
  -- A worker may have renewed meanwhile: the claims are locked too and read once more. One that its worker is renewing or
  -- dropping this very moment is not lost.
  v_tokens := array(select c.token from pipeline.claims c where c.expires_at <= v_now for update skip locked);
  v_items := array(
    select row(row_number() over (order by a.id), a.id, a.token, null, 'failed', null, null,
      '{"code": "lost_lease", "message": "the worker ended without a word and its lease expired"}'::jsonb,
      null, null, a.run_id, a.stage_id, r.entity_id, a.state, null, null, null, null)::pipeline.work
    from pipeline.attempts a join pipeline.claims c on c.token = a.token join pipeline.runs r on r.id = a.run_id
    where a.id = any (v_ids) and a.state = 'started' and c.token = any (v_tokens));
  perform pipeline.ring((select s.ready from pipeline.settle_guarded(v_items) s));
  return cardinality(v_items);
end
$$;
comment on function pipeline.sweep_leases(int, int) is 'Fails started attempts whose lease expired, as lost_lease; returns how many.';

create function pipeline.sweep_deadlines(p_pipeline_id int, p_limit int) returns int
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := pipeline.now();
  v_stages int[] := array(select s.id from pipeline.stages s where s.pipeline_id = p_pipeline_id);
  v_ids bigint[];
  v_items pipeline.work[];
begin
  v_ids := array(
    select a.id from pipeline.attempts a join pipeline.stages s on s.id = a.stage_id
    -- A map that finishes with what there is at its deadline is the fold's to end.
    where a.deadline_at <= v_now and a.stage_id = any (v_stages) and coalesce(s.fan_in ->> 'at_deadline', 'fail') <> 'finish' order by a.deadline_at limit p_limit);
  if cardinality(v_ids) = 0 then
    return 0;
  end if;
  v_ids := pipeline.lock_attempts(v_ids);
  v_items := array(
    select row(row_number() over (order by a.id), a.id, null, null, 'failed', null, null,
      jsonb_build_object('code', 'deadline', 'permanent', a.service in ('children', 'decision'), 'message', case a.service
        when 'children' then 'the children did not end before the deadline' when 'decision' then 'nobody decided before the deadline' else 'the external job did not end before its deadline' end),
      a.service, a.job_id, a.run_id, a.stage_id, r.entity_id, a.state, null, null, null, null)::pipeline.work
    from pipeline.attempts a join pipeline.runs r on r.id = a.run_id
    where a.id = any (v_ids) and a.state = 'waiting' and a.deadline_at <= v_now);
  perform pipeline.ring((select s.ready from pipeline.settle_guarded(v_items) s));
  return cardinality(v_items);
end
$$;
comment on function pipeline.sweep_deadlines(int, int) is 'Fails waiting attempts whose deadline has passed, as deadline; returns how many.';

-- A fault of one pipeline, such as a table that was dropped, must not end the recovery of the others.
create function pipeline.sweep_pipeline(p_pipeline_id int, out leases int, out deadlines int, out rung int)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  leases := pipeline.sweep_leases(p_pipeline_id, 5000);
  deadlines := pipeline.sweep_deadlines(p_pipeline_id, 5000);
  perform pipeline.sweep_limits(p_pipeline_id);
  rung := pipeline.ring(array(select s.id from pipeline.stages s where s.pipeline_id = p_pipeline_id and s.enabled and pipeline.has_ready_work(s.id)));
exception
  when query_canceled then raise;
  when others then
    perform pipeline.report('error', 'sweep_failed', format('The sweep of pipeline %s failed: %s', (select p.name from pipeline.pipelines p where p.id = p_pipeline_id), sqlerrm));
end
$$;
comment on function pipeline.sweep_pipeline(int) is 'The sweep of one pipeline; its faults are reported in pipeline.log.';

-- Whatever children reported and nobody has added up, fan-outs that are due, and children that are to be cancelled.
create function pipeline.sweep_children(out folded int, out cancelled int)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_fan_out bigint;
  v_done record;
begin
  folded := 0;
  insert into pipeline.tallies (fan_out_id)
  select f.id from pipeline.attempts a join pipeline.stages s on s.id = a.stage_id join pipeline.fan_outs f on f.attempt_id = a.id and f.state = 'open'
  where a.deadline_at <= pipeline.now() and a.state = 'waiting' and s.fan_in ->> 'at_deadline' = 'finish';
  for v_fan_out in select distinct t.fan_out_id from pipeline.tallies t order by t.fan_out_id loop
    exit when folded >= 200;
    begin
      v_done := pipeline.fold(v_fan_out);
      perform pipeline.ring(v_done.ring);
      folded := folded + (not v_done.busy)::int;
    exception
      when query_canceled then raise;
      when others then
        perform pipeline.report('error', 'fold_failed', format('The children of fan-out %s cannot be added up: %s', v_fan_out, sqlerrm));
    end;
  end loop;
  cancelled := pipeline.cancel_children(2000);
  -- Parents that were deleted, once they have no children left.
  with forgotten as (
    delete from pipeline.fan_outs f where f.id in (
      select o.id from pipeline.fan_outs o where o.state = 'closed' and not exists (select from pipeline.runs r where r.id = o.run_id) limit 1000 for update skip locked)
    returning f.id
  ), progress as (
    delete from pipeline.fan_progress p using forgotten f where p.fan_out_id = f.id
  )
  delete from pipeline.former_costs c using forgotten f where c.fan_out_id = f.id;
end
$$;
comment on function pipeline.sweep_children() is 'Folds fan-outs with tallies left and cancels the children of those that were given up; returns how many.';

-- Whoever gives metadata to one more run holds a run that has it. So no run that is not to be seen
-- here can have it, unless one that is to be seen has it too.
create function pipeline.sweep_metadata(p_limit int) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  with dropped as (
    delete from pipeline.dropped_metadata d where d.id in (
      select o.id from pipeline.dropped_metadata o
      order by o.id limit p_limit for update skip locked)
    returning d.metadata_id
  )
  delete from pipeline.run_metadata m
  where m.id in (select d.metadata_id from dropped d)
    and not exists (select from pipeline.runs r where r.metadata_id = m.id);
end
$$;
comment on function pipeline.sweep_metadata(int) is
  'Deletes metadata that runs have dropped and no run has.';

create function pipeline.sweep() returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_done jsonb;
  v_children record;
begin
  delete from pipeline.rings r where r.id in (select o.id from pipeline.rings o where o.rung_at < pipeline.now() - interval '10 seconds' for update skip locked);
  perform pipeline.sweep_quotas();
  select jsonb_build_object('leases', coalesce(sum(s.leases), 0), 'deadlines', coalesce(sum(s.deadlines), 0), 'rung', coalesce(sum(s.rung), 0)) into v_done
  from pipeline.pipelines p, pipeline.sweep_pipeline(p.id) s;
  begin
    v_children := pipeline.sweep_children();
    v_done := v_done || to_jsonb(v_children);
    perform pipeline.close_decisions(1000);
  exception
    when query_canceled then raise;
    -- As in sweep_pipeline(): no part of the recovery may end the others.
    when others then
      perform pipeline.report('error', 'sweep_failed', 'The sweep of children and decisions failed: ' || sqlerrm);
  end;
  v_done := v_done || (select to_jsonb(l) from pipeline.sweep_alerts() l);
  delete from pipeline.claims c where c.token in (
    select o.token from pipeline.claims o where o.expires_at <= pipeline.now() - interval '1 minute' and not exists (
      select from pipeline.attempts a where a.id = any (o.attempt_ids) and a.token = o.token and a.state = 'started') for update skip locked);
  delete from pipeline.workers w where w.id in (select o.id from pipeline.workers o where o.heartbeat_at < pipeline.now() - interval '1 hour' for update skip locked);
  perform pipeline.sweep_metadata(10000);
  perform pipeline.forget_posts(100);
  perform pipeline.schedule_polls();
  if exists (
    select from pipeline.attempts a where a.poll_at <= pipeline.now() - interval '1 minute') then
    perform pipeline.ring_polls();
  end if;
  -- In a form that reads the same in every session, whatever its DateStyle.
  update pipeline.settings s set value = trim('"' from to_jsonb(pipeline.now())::text)
  where s.name in (select o.name from pipeline.settings o where o.name = 'last_sweep_at' for update skip locked);
  return v_done;
end
$$;
comment on function pipeline.sweep() is 'Makes good what got lost: expired leases, passed deadlines, due retries and unheard rings; raises alerts. Harmless at any time.';

-- The API's own eight seconds are not enough for all that may have piled up.
create function public.pipeline_sweep() returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set statement_timeout = '60s'
as $$
begin
  if not pg_try_advisory_xact_lock(hashtext('pipeline.sweep')) then
    return jsonb_build_object('swept', false);
  end if;
  -- In a statement after the lock: whoever held it may just have swept.
  if not pipeline.sweep_due() then
    return jsonb_build_object('swept', false);
  end if;
  perform pipeline.sweep();
  return jsonb_build_object('swept', true);
end
$$;
comment on function public.pipeline_sweep() is
  'Sweeps if the last sweep is over a minute old and nobody else does so now.';
revoke all on function public.pipeline_sweep() from public, anon, authenticated;
grant execute on function public.pipeline_sweep() to service_role;

create function pipeline.ring_polls() returns boolean
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := pipeline.now();
begin
  if exists (select from pipeline.attempts a where a.poll_at <= v_now) then
    return pipeline.post('job-poll', '{}');
  end if;
  return false;
end
$$;
comment on function pipeline.ring_polls() is 'Rings the completion poller if a waiting job is due to be asked for; one index probe otherwise.';

create function pipeline.lock_prunable(p_before timestamptz, p_after bigint, p_limit int) returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select r.id
    from pipeline.runs r
    where r.id > coalesce(p_after, 0) and r.status <> 'running' and r.finished_at < p_before
      -- A parent that still waits counts its children, and one that is over may have late ones.
      and not exists (
        select from pipeline.fan_outs f where f.id = r.fan_out_id and f.state = 'open')
      and not exists (
        select from pipeline.fan_outs f
        join pipeline.runs c on c.fan_out_id = f.id and c.status = 'running'
        where f.run_id = r.id)
    order by r.id limit p_limit for update of r skip locked);
end
$$;
comment on function pipeline.lock_prunable(timestamptz, bigint, int) is
  'Locks and returns the next so many runs, by id, that ended before this time and that nobody needs.';

create function pipeline.prune() returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_before timestamptz := pipeline.now() - make_interval(days => pipeline.setting('retention_days')::int);
  v_ends timestamptz := pipeline.now() + interval '2 seconds';
  v_batch bigint[];
  v_runs int := 0;
  v_more boolean;
begin
  loop
    v_batch := pipeline.lock_prunable(v_before, v_batch[cardinality(v_batch)], 1000);
    perform pipeline.delete_runs(v_batch);
    v_runs := v_runs + cardinality(v_batch);
    v_more := cardinality(v_batch) = 1000;
    exit when not v_more or pipeline.now() >= v_ends;
  end loop;
  perform pipeline.prune_decisions();
  v_more := pipeline.prune_alerts(v_before) = 10000 or v_more;
  delete from pipeline.log l where l.at < v_before;
  -- By command: a job that was unscheduled has left its history behind.
  delete from cron.job_run_details d
  where d.command ~ '^select pipeline\.(sweep|ring_polls|prune)\(\)$'
    and d.end_time < pipeline.now() - interval '1 day';
  perform pipeline.schedule_pruning(v_more);
  return jsonb_build_object('runs', v_runs, 'more', v_more);
end
$$;
comment on function pipeline.prune() is
  'Deletes finished runs older than retention_days, for about two seconds a call, old log lines and alerts, '
  'and the engine''s own rows of cron.job_run_details. When there is more, pg_cron goes on until it is done.';

revoke all on all functions in schema pipeline from public;
