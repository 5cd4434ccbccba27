-- Chapter 12: recovery
--
-- pg_cron calls sweep() every ten seconds. It makes good whatever got lost: leases of dead workers, jobs that never
-- came back, retries that fell due, rings that nobody heard. When idle it costs a few index probes a stage.

create function pipeline.sweep_leases(p_limit int) returns int
language plpgsql set search_path = ''
as $$
declare
  v_now timestamptz := pipeline.now();
  v_ids bigint[];
  v_tokens uuid[];
  v_items pipeline.work[];
begin
  v_ids := array(
    select i from pipeline.claims c, unnest(c.attempt_ids) i join pipeline.attempts a on a.id = i
    where c.expires_at <= v_now and a.token = c.token and a.state = 'started' limit p_limit);
  if cardinality(v_ids) = 0 then
    delete from pipeline.claims c where c.token in (select o.token from pipeline.claims o where o.expires_at <= v_now for update skip locked);
    return 0;
  end if;
  v_ids := pipeline.lock_attempts(v_ids);
  -- A worker may have renewed meanwhile: the claims are locked too and read once more. One that its worker is renewing or
  -- dropping this very moment is not lost.
  v_tokens := array(select c.token from pipeline.claims c where c.expires_at <= v_now for update skip locked);
  v_items := array(
    select row(row_number() over (order by a.id), a.id, a.token, null, 'failed', null, null,
      '{"code": "lost_lease", "message": "the worker ended without a word and its lease expired"}'::jsonb,
      null, null, a.run_id, a.stage_id, r.entity_id, a.state, null, null)::pipeline.work
    from pipeline.attempts a join pipeline.claims c on c.token = a.token join pipeline.runs r on r.id = a.run_id
    where a.id = any (v_ids) and a.state = 'started' and c.token = any (v_tokens));
  perform pipeline.ring((select s.ready from pipeline.settle(v_items) s));
  return cardinality(v_items);
end
$$;
comment on function pipeline.sweep_leases(int) is 'Fails started attempts whose lease expired, as lost_lease; returns how many.';

create function pipeline.sweep_deadlines(p_limit int) returns int
language plpgsql set search_path = ''
as $$
declare
  v_now timestamptz := pipeline.now();
  v_ids bigint[];
  v_items pipeline.work[];
begin
  v_ids := array(select a.id from pipeline.attempts a where a.deadline_at <= v_now order by a.deadline_at limit p_limit);
  if cardinality(v_ids) = 0 then
    return 0;
  end if;
  v_ids := pipeline.lock_attempts(v_ids);
  v_items := array(
    select row(row_number() over (order by a.id), a.id, null, null, 'failed', null, null,
      '{"code": "deadline", "message": "the external job did not end before its deadline"}'::jsonb,
      a.service, a.job_id, a.run_id, a.stage_id, r.entity_id, a.state, null, null)::pipeline.work
    from pipeline.attempts a join pipeline.runs r on r.id = a.run_id
    where a.id = any (v_ids) and a.state = 'waiting' and a.deadline_at <= v_now);
  perform pipeline.ring((select s.ready from pipeline.settle(v_items) s));
  return cardinality(v_items);
end
$$;
comment on function pipeline.sweep_deadlines(int) is 'Fails waiting attempts whose deadline has passed, as deadline; returns how many.';

create function pipeline.sweep() returns jsonb
language plpgsql set search_path = '' set enable_seqscan = off set enable_mergejoin = off set enable_hashjoin = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_leases int := pipeline.sweep_leases(5000);
  v_deadlines int := pipeline.sweep_deadlines(5000);
  v_rung int;
begin
  delete from pipeline.rings r where r.id in (select o.id from pipeline.rings o where o.rung_at < pipeline.now() - interval '10 seconds' for update skip locked);
  v_rung := pipeline.ring(array(select s.id from pipeline.stages s where s.enabled and pipeline.has_ready_work(s.id)));
  delete from pipeline.workers w where w.id in (select o.id from pipeline.workers o where o.heartbeat_at < pipeline.now() - interval '1 hour' for update skip locked);
  insert into pipeline.settings as s (name, value, comment) values ('last_sweep_at', pipeline.now()::text, 'Written by pipeline.sweep(); pipeline.doctor() reads it.')
  on conflict on constraint settings_pkey do update set value = excluded.value;
  return jsonb_build_object('leases', v_leases, 'deadlines', v_deadlines, 'rung', v_rung);
end
$$;
comment on function pipeline.sweep() is 'Makes good what got lost: expired leases, passed deadlines, due retries and unheard rings. Harmless at any time.';

create function pipeline.ring_polls() returns boolean
language plpgsql set search_path = '' set enable_seqscan = off set enable_mergejoin = off set enable_hashjoin = off set jit = off set plan_cache_mode = force_generic_plan
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

create function pipeline.prune() returns jsonb
language plpgsql set search_path = '' set enable_seqscan = off set enable_mergejoin = off set enable_hashjoin = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_before timestamptz := pipeline.now() - make_interval(days => pipeline.setting('retention_days')::int);
  v_runs bigint[];
begin
  v_runs := array(
    select r.id from (
      select r.id from pipeline.runs r where r.status <> 'running' and r.finished_at < v_before order by r.id limit 10000 for update skip locked) r);
  perform pipeline.delete_runs(v_runs);
  delete from pipeline.log l where l.at < v_before;
  delete from cron.job_run_details d using cron.job j where j.jobid = d.jobid and j.jobname like 'millrace-%' and d.end_time < pipeline.now() - interval '1 day';
  return jsonb_build_object('runs', cardinality(v_runs));
end
$$;
comment on function pipeline.prune() is 'Deletes finished runs older than retention_days (10,000 a call), old log lines, and the engine''s own rows of cron.job_run_details.';

revoke all on all functions in schema pipeline from public;
