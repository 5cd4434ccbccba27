-- Chapter 10: transitions
--
-- The functions here are the only writers of state, and each takes a set. One call to apply_outcomes() (the next chapter) records
-- what a batch of attempts came to, readies the next stages, finishes runs and projects all of it onto the entities, in the
-- caller's one transaction.
--
-- Lock order, the same everywhere: worker, entities, runs, attempts, claims; rows of one table in id order.
--   * A transition takes entities and runs with `for no key update skip locked` and answers `busy` for an attempt whose
--     entity or run somebody holds: it never waits for a user. Only calls that a person makes (cancel, retry, start) wait.
--   * It does so before it reads their state, so siblings that complete at once, or a completion and a cancel, see one
--     another. The run's lock guards its attempts too: the one writer without it is a claim, which touches queued
--     attempts alone, so only those need a lock of their own.
--   * Claims (leases) are written by their worker and by the sweep alone, since one lease covers a whole batch: a user who
--     holds one entity of it must not hold up the others.

create or replace function millrace.writes_entities(p_pipeline_id int) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select p.projection <> 'none' or exists (select from millrace.stages s where s.pipeline_id = p.id and (s.kind = 'pipeline' or s.apply is not null))
    from millrace.pipelines p where p.id = p_pipeline_id);
end
$$;
comment on function millrace.writes_entities(int) is 'Whether transitions of a pipeline may lock its entities: for its projection, that of a child run over the same row, or what an apply function writes.';

-- Locks entities, runs and queued attempts in the one order, and returns the attempts that were got.
create or replace function millrace.lock_attempts(p_attempt_ids bigint[]) returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
  v_entities text[];
  v_wanted bigint[] := '{}';
  v_runs bigint[];
  v_locked bigint[] := '{}';
  v_queued boolean := false;
begin
  for v_group in
    select r.pipeline_id, array_agg(distinct r.entity_id collate "C") as entity_ids, array_agg(a.id) as attempt_ids, array_agg(distinct r.id) as run_ids, bool_or(a.state = 'queued') as any_queued
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (p_attempt_ids)
    group by r.pipeline_id order by r.pipeline_id
  loop
    if millrace.writes_entities(v_group.pipeline_id) then
      v_entities := millrace.lock_entities(v_group.pipeline_id, v_group.entity_ids, false);
      if cardinality(v_entities) < cardinality(v_group.entity_ids) then
        select coalesce(array_agg(a.id), '{}'), coalesce(array_agg(distinct r.id), '{}') into v_group.attempt_ids, v_group.run_ids
        from millrace.attempts a join millrace.runs r on r.id = a.run_id
        where a.id = any (v_group.attempt_ids) and r.entity_id = any (v_entities);
      end if;
    end if;
    v_locked := v_locked || v_group.attempt_ids;
    v_wanted := v_wanted || v_group.run_ids;
    v_queued := v_queued or v_group.any_queued;
  end loop;
  v_runs := array(select r.id from millrace.runs r where r.id = any (v_wanted) order by r.id for no key update skip locked);
  if cardinality(v_runs) < cardinality(v_wanted) then
    v_locked := array(select a.id from millrace.attempts a where a.id = any (v_locked) and a.run_id = any (v_runs));
  end if;
  if v_queued then
    perform from millrace.attempts a where a.id = any (v_locked) and a.state = 'queued' order by a.id for update;
  end if;
  return v_locked;
end
$$;
comment on function millrace.lock_attempts(bigint[]) is 'Locks the entities, runs and queued attempts of a batch; returns the attempts for which all were free.';

-- Whoever may read a row reads its errors. So an error has a message for the row's owner and, where there is more to say, a detail
-- for operators (an address, a constraint, a stack), whom the attempt's number leads to it.
create or replace function millrace.owner_message(p_error jsonb, p_attempt_id bigint) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select (p_error ->> 'message')
    || case when p_error ->> 'detail' is null then '' else format(' (attempt %s)', p_attempt_id) end
$$;
comment on function millrace.owner_message(jsonb, bigint) is 'An attempt''s error as the owner of its row reads it.';

create or replace function millrace.project(p_stage_id int, p_changes millrace.change[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
begin
  if cardinality(p_changes) > 0 and current_setting('millrace.projection_off', true) is distinct from 'on' then
    select s.pipeline_id, s.name into v_stage from millrace.stages s where s.id = p_stage_id;
    perform millrace.write_entities(v_stage.pipeline_id, 'settle', v_stage.name, p_changes, null, null);
  end if;
end
$$;
comment on function millrace.project(int, millrace.change[]) is 'Writes a batch of changes of one stage into its entities'' columns, where the pipeline has a projection.';

-- Seconds to wait before the retry with this count (0: the first), by a policy of the definition.
create or replace function millrace.backoff_seconds(p_backoff jsonb, p_retry_count int) returns float8
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_jitter float8;
begin
  if p_backoff ->> 'kind' = 'list' then
    return (p_backoff -> 'seconds' ->> least(p_retry_count, jsonb_array_length(p_backoff -> 'seconds') - 1))::float8;
  end if;
  v_jitter := coalesce((p_backoff ->> 'jitter')::float8, 0.2);
  return least(
      coalesce((p_backoff ->> 'base_seconds')::float8, 5) * power(coalesce((p_backoff ->> 'factor')::float8, 2), least(p_retry_count, 60)),
      coalesce((p_backoff ->> 'cap_seconds')::float8, 300))
    * (1 + v_jitter * (2 * random() - 1));
end
$$;
comment on function millrace.backoff_seconds(jsonb, int) is 'Seconds until the next retry; retry_count 0 asks for the first.';

create or replace function millrace.retry_due(p_stage_id int, p_error jsonb, p_retry_count int) returns timestamptz
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  -- What waits for a person or for a child run is not asked again by itself.
  v_retry jsonb := (select case when s.kind in ('manual', 'pipeline') then '{"max_attempts": 1}' else s.retry end from millrace.stages s where s.id = p_stage_id);
  v_policy jsonb := v_retry || coalesce(v_retry -> 'by_code' -> (p_error ->> 'code'), '{}');
begin
  if coalesce((p_error ->> 'permanent')::boolean, false) or p_retry_count + 1 >= coalesce((v_policy ->> 'max_attempts')::int, 3) then
    return null;
  end if;
  return millrace.now() + make_interval(secs => greatest(
    millrace.backoff_seconds(coalesce(v_policy -> 'backoff', '{}'), p_retry_count),
    least(coalesce((p_error ->> 'retry_after_ms')::float8, 0) / 1000, 86400)));
end
$$;
comment on function millrace.retry_due(int, jsonb, int) is 'When a failed attempt is to be tried again, or null when it is permanent or exhausted.';

-- Plain followers of a stage that is done now, where all their other needs are done already; the chapter on advancing sees to the others.
create or replace function millrace.advance(p_stage_id int, p_run_ids bigint[], out ready millrace.ready[], out followers int[], out names text[], out has_groups boolean)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_versions int[] := array(select distinct r.version_id from millrace.runs r where r.id = any (p_run_ids));
  v_simple boolean;
begin
  -- Mostly the runs are of one version, no follower has other needs, and none has begun before: then no run is looked at on its own.
  select coalesce(array_agg(distinct s.id), '{}'), coalesce(array_agg(distinct s.name), '{}'), coalesce(bool_or(s.has_groups), false), cardinality(v_versions) = 1
    and not bool_or(cardinality(f.needs) > 1 or exists (select from millrace.attempts a where a.run_id = any (p_run_ids) and a.stage_id = s.id))
  into followers, names, has_groups, v_simple
  from millrace.version_stages f join millrace.stages s on s.id = f.stage_id where f.version_id = any (v_versions) and p_stage_id = any (f.needs) and f.unconditional;
  ready := '{}';
  if cardinality(followers) = 0 then
    return;
  elsif v_simple then
    with added as (
      insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at, late_at)
      select r.id, s.id, 1, v_now, v_now, v_now + s.sla from millrace.stages s cross join unnest(p_run_ids) r(id) where s.id = any (followers) order by r.id
      returning run_id, stage_id
    )
    select array_agg(row(a.run_id, a.stage_id)::millrace.ready) into ready from added a;
    return;
  end if;
  with run as materialized (
    select r.id, r.version_id from millrace.runs r where r.id = any (p_run_ids)
  ), follower as materialized (
    select f.version_id, f.stage_id, f.needs, v_now + s.sla as late_at from millrace.version_stages f join millrace.stages s on s.id = f.stage_id
    where f.version_id = any (v_versions) and p_stage_id = any (f.needs) and f.unconditional
  ), added as (
    insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at, late_at)
    select r.id, f.stage_id, coalesce(h.number, 0) + 1, v_now, v_now, f.late_at
    from run r join follower f on f.version_id = r.version_id
    cross join lateral (select max(a.number) as number, bool_or(not a.superseded) as begun from millrace.attempts a where a.run_id = r.id and a.stage_id = f.stage_id) h
    where h.begun is not true and (cardinality(f.needs) = 1 or cardinality(f.needs) - 1 = (
      select count(*) from millrace.attempts n
      where n.run_id = r.id and n.stage_id = any (f.needs) and n.stage_id <> p_stage_id and n.state in ('completed', 'skipped') and not n.superseded))
    order by r.id
    returning run_id, stage_id
  )
  select coalesce(array_agg(row(a.run_id, a.stage_id)::millrace.ready), '{}') into ready from added a;
end
$$;
comment on function millrace.advance(int, bigint[]) is 'Enqueues the stages that the completion of this stage readies and that have not begun: ready. followers, with their names: all plain ones, and whether any is grouped.';

create or replace function millrace.finish_runs(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  -- Only the end of a sink can end a run; with one sink nothing else needs a look.
  with ended as (
    update millrace.runs r set status = 'completed', finished_at = millrace.now()
    from millrace.version_stages vs
    -- "is true" keeps the planner from walking the index of live runs.
    where r.id = any (p_run_ids) and (r.status = 'running') is true and vs.version_id = r.version_id and vs.stage_id = p_stage_id and vs.is_sink
      and not exists (
        select from millrace.version_stages o
        where o.version_id = r.version_id and o.is_sink and o.stage_id <> p_stage_id
          and not exists (select from millrace.attempts a where a.run_id = r.id and a.stage_id = o.stage_id and a.state in ('completed', 'skipped') and not a.superseded))
    returning r.fan_out_id
  )
  insert into millrace.child_tallies (fan_out_id, completed)
  select e.fan_out_id, count(*) from ended e where e.fan_out_id is not null group by e.fan_out_id;
end
$$;
comment on function millrace.finish_runs(int, bigint[]) is 'Completes the runs whose last sink this stage was.';

create or replace function millrace.complete(p_stage_id int, p_items millrace.work[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_runs bigint[] := array(select i.run_id from unnest(p_items) i);
  v_next record;
  v_stages int[];
  v_alike boolean;
  v_changes millrace.change[];
  v_stage record;
begin
  v_next := millrace.advance(p_stage_id, v_runs);
  -- Mostly every run readied all followers.
  v_alike := cardinality(v_next.ready) = cardinality(v_next.followers) * cardinality(v_runs);
  v_stages := case when v_alike then v_next.followers else array(select distinct r.stage_id from unnest(v_next.ready) r) end;
  if v_next.has_groups then
    perform millrace.assign_groups(s, array(select r.run_id from unnest(v_next.ready) r where r.stage_id = s)) from unnest(v_stages) s;
  end if;
  with done as (
    update millrace.attempts a
    set state = 'completed', finished_at = v_now, started_at = coalesce(a.started_at, v_now), queue_at = null, poll_at = null, deadline_at = null, late_at = null,
        -- The job that brought the result, which may be that of an earlier submission.
        service = coalesce(i.service, a.service), job_id = coalesce(i.job_id, a.job_id),
        overtaken_job_id = case when a.job_id <> i.job_id then a.job_id end,
        output = i.result, usage = i.usage, error = null
    from unnest(p_items) i where a.id = i.attempt_id and a.state = i.was
    returning i.entity_id, a.job_id, i.result, a.retry_count, a.started_at, a.run_id
  )
  select array_agg(row(d.entity_id, 'completed', d.job_id, d.result, null, d.retry_count, d.started_at, v_now, case when v_alike then v_next.names else (
      select array_agg(s.name) from unnest(v_next.ready) r join millrace.stages s on s.id = r.stage_id where r.run_id = d.run_id) end)::millrace.change) into v_changes
  from done d;
  -- Runs that went on cannot be over; in a chain that spares the look for all stages but the last.
  if cardinality(v_stages) = 0 or not v_alike then
    perform millrace.finish_runs(p_stage_id, v_runs);
  end if;
  perform millrace.project(p_stage_id, v_changes);
  select s.counted_by_parent or s.has_conditional_followers as followed, s.counted into v_stage
  from millrace.stages s
  where s.id = p_stage_id;
  if v_stage.counted then
    perform millrace.note_spending(p_items);
  end if;
  if v_stage.followed then
    return v_stages || millrace.advance_others(p_stage_id, v_runs);
  end if;
  return v_stages;
end
$$;
comment on function millrace.complete(int, millrace.work[]) is 'started | waiting | queued → completed, with results, next stages, runs and projection; returns the stages that got work.';

-- The user's own function for the stage, in the same transaction: rows it writes commit with the completion.
create or replace function millrace.apply_results(p_stage_id int, p_items millrace.work[]) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_apply text := (select s.apply from millrace.stages s where s.id = p_stage_id);
begin
  if v_apply is not null then
    if to_regprocedure(v_apply || '(jsonb)') is null then
      raise exception 'the stage''s apply function %(jsonb) does not exist', v_apply
        using errcode = 'MR004', hint = 'Create it again, or define the pipeline without it; then replay the dead letters.';
    end if;
    execute format('select %s($1)', to_regprocedure(v_apply || '(jsonb)')::regproc)
      using (select jsonb_agg(jsonb_build_object('attempt', i.attempt_id, 'run', i.run_id, 'entity_id', i.entity_id, 'result', i.result) order by i.ord) from unnest(p_items) i);
  end if;
  return v_apply is not null;
end
$$;
comment on function millrace.apply_results(int, millrace.work[]) is 'Calls the stage''s apply function with a jsonb list of {attempt, run, entity_id, result}; false when it has none.';

create or replace function millrace.fail(p_stage_id int, p_items millrace.work[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
  v_dead bigint[];
  v_cancelled millrace.cancelled[] := '{}';
  v_due_now boolean;
  v_laned bigint[];
  v_ready int[];
  v_stage millrace.stages;
begin
  with failed as (
    update millrace.attempts a
    set state = 'failed', finished_at = v_now, queue_at = null, poll_at = null, deadline_at = null, late_at = null, error = i.error,
        service = coalesce(a.service, i.service), job_id = coalesce(a.job_id, i.job_id), usage = i.usage
    from unnest(p_items) i where a.id = i.attempt_id and a.state = i.was
    returning a.*, i.entity_id, i.was, i.job_id as reported_job, millrace.retry_due(a.stage_id, i.error, a.retry_count) as due
  ), again as (
    -- The id of an earlier submission is kept until its job is known to have ended: a crash after submitting buys no second job.
    -- What a person failed by hand is submitted anew. When it is late is read from the row as it was before this statement.
    insert into millrace.attempts (run_id, stage_id, number, parent_id, retry_count, queue_at, created_at, late_at, isolated, submission_id)
    select f.run_id, f.stage_id, f.number + 1, f.id, f.retry_count + 1, f.due, v_now,
      (select o.late_at from millrace.attempts o where o.id = f.id),
      coalesce(f.error ->> 'code' in ('lost_lease', 'resource_limit')
        or f.isolated and f.error ->> 'code' = 'released', false),
      case when f.was = 'started' and f.reported_job is null and f.service is distinct from 'by_hand' then coalesce(f.submission_id, f.id) end
    from failed f where f.due is not null order by f.run_id
  )
  select array_agg(row(f.entity_id, case when f.due is null then 'failed' else 'queued' end, null, null, millrace.owner_message(f.error, f.id),
      f.retry_count + case when f.due is null then 0 else 1 end, case when f.due is null then f.started_at end, null, null)::millrace.change),
    coalesce(array_agg(f.run_id order by f.run_id) filter (where f.due is null), '{}'), coalesce(bool_or(f.due <= v_now), false),
    array_agg(f.run_id) filter (where f.due is not null and f.concurrency_group is not null)
  into v_changes, v_dead, v_due_now, v_laned from failed f;
  if v_laned is not null then
    perform millrace.assign_groups(p_stage_id, v_laned);
  end if;
  perform millrace.note_spending(p_items)
  from millrace.stages s
  where s.id = p_stage_id and s.counted;
  v_ready := case when v_due_now then array[p_stage_id] else '{}' end;
  if cardinality(v_dead) = 0 then
    perform millrace.project(p_stage_id, v_changes);
    return v_ready;
  end if;
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  if v_stage.kind in ('map', 'pipeline') then
    perform millrace.abandon_fan_outs(v_dead, array[p_stage_id]);
  end if;
  if v_stage.on_failure = 'continue' then
    perform millrace.project(p_stage_id, v_changes);
    return v_ready || millrace.skip_failed_stage(p_stage_id, v_dead);
  end if;
  -- All of it before the first projection: a user's trigger on the entity may queue a stage anew there and then.
  perform millrace.end_runs(v_dead, 'failed');
  v_cancelled := millrace.cancel_attempts(v_dead, null);
  perform millrace.project(p_stage_id, v_changes);
  perform millrace.project_cancelled(v_cancelled);
  return v_ready;
end
$$;
comment on function millrace.fail(int, millrace.work[]) is 'started | waiting | queued → failed, with a retry row when the policy allows one; else the run fails, or goes on without the stage. Returns the stages that got work.';

create or replace function millrace.end_runs(p_run_ids bigint[], p_status millrace.run_status) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  with ended as (
    update millrace.runs r set status = p_status, finished_at = millrace.now() where r.id = any (p_run_ids) returning r.fan_out_id
  )
  insert into millrace.child_tallies (fan_out_id, failed, cancelled)
  select e.fan_out_id, count(*) filter (where p_status = 'failed'), count(*) filter (where p_status = 'cancelled')
  from ended e where e.fan_out_id is not null group by e.fan_out_id;
end
$$;
comment on function millrace.end_runs(bigint[], millrace.run_status) is 'running → failed | cancelled for locked runs; a child''s end is tallied for its parent.';

create or replace function millrace.wait(p_stage_id int, p_items millrace.work[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
begin
  with waiting as (
    update millrace.attempts a
    set state = 'waiting', queue_at = null, service = i.service, job_id = i.job_id, deadline_at = v_now + coalesce(s.deadline, interval '10 minutes'), poll_at = v_now + s.poll_every
    from unnest(p_items) i, millrace.stages s where a.id = i.attempt_id and a.state = i.was and s.id = p_stage_id
    returning i.entity_id, a.job_id, a.retry_count, a.started_at
  )
  select array_agg(row(w.entity_id, 'started', w.job_id, null, null, w.retry_count, w.started_at, null, null)::millrace.change) into v_changes from waiting w;
  perform millrace.project(p_stage_id, v_changes);
  if (select s.poll_every is not null from millrace.stages s where s.id = p_stage_id) then
    perform millrace.schedule_polls();
  end if;
  -- Its children may all have ended while it was still spawning: the tally makes somebody look.
  insert into millrace.child_tallies (fan_out_id)
  select f.id from unnest(p_items) i join millrace.fan_outs f on f.attempt_id = i.attempt_id where i.service = 'children';
end
$$;
comment on function millrace.wait(int, millrace.work[]) is 'started → waiting for an external job, under the stage''s deadline and poll interval.';

-- An item with an error was in work when its function reached a limit of CPU or memory. Nobody
-- knows whose doing that was, so each of them runs alone from then on, which costs no attempt; one
-- that reaches the limit alone fails with that error.
create or replace function millrace.release(p_stage_id int, p_items millrace.work[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
  v_laned bigint[];
  v_tired millrace.work[];
begin
  with released as (
    update millrace.attempts a
    set state = 'queued', token = null, started_at = null, queue_at = v_now,
      isolated = a.isolated or i.error is not null,
      releases = a.releases + (i.error is null)::int
    from unnest(p_items) i
    where a.id = i.attempt_id and a.state = i.was
      and case when i.error is null then a.releases < 2 else not a.isolated end
    returning i.entity_id, a.retry_count, a.run_id, a.concurrency_group
  )
  select array_agg(row(r.entity_id, 'queued', null, null, null, r.retry_count, null, null, null)::millrace.change), array_agg(r.run_id) filter (where r.concurrency_group is not null)
  into v_changes, v_laned from released r;
  if v_laned is not null then
    perform millrace.assign_groups(p_stage_id, v_laned);
  end if;
  perform millrace.project(p_stage_id, v_changes);
  -- A third release in a row costs an attempt, or a row that always outlives its worker would go round for ever.
  v_tired := array(
    select row(i.ord, i.attempt_id, i.token, i.shown, 'failed', null, i.usage,
      coalesce(i.error, '{"code": "released",
        "message": "released by three workers in a row without a result"}'),
      null, null, i.run_id, i.stage_id, i.entity_id, i.was, i.verdict, i.reason, null, null)::millrace.work
    from unnest(p_items) i join millrace.attempts a on a.id = i.attempt_id where a.state = 'started');
  if cardinality(v_tired) > 0 then
    perform millrace.fail(p_stage_id, v_tired);
  end if;
  return array[p_stage_id];
end
$$;
comment on function millrace.release(int, millrace.work[]) is
  'started → queued without costing an attempt; the third release in a row fails an attempt. '
  'An item with an error runs alone from then on, or fails with it if it ran alone already.';

-- Cancels live attempts of locked runs: all of them, or those of some stages. The caller projects them when it is done.
create or replace function millrace.cancel_attempts(p_run_ids bigint[], p_stage_ids int[]) returns millrace.cancelled[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_cancelled millrace.cancelled[];
begin
  perform from millrace.attempts a
  where a.run_id = any (p_run_ids) and (p_stage_ids is null or a.stage_id = any (p_stage_ids)) and a.state = 'queued' order by a.id for update;
  with cancelled as (
    update millrace.attempts a
    set state = 'cancelled', finished_at = millrace.now(), queue_at = null, poll_at = null, deadline_at = null, late_at = null, error = '{"code": "cancelled", "message": "cancelled"}'
    from millrace.runs r
    where a.run_id = any (p_run_ids) and r.id = a.run_id and (p_stage_ids is null or a.stage_id = any (p_stage_ids)) and a.state in ('queued', 'started', 'waiting')
    returning a.stage_id, row(r.entity_id, 'failed', a.job_id, null, 'cancelled', a.retry_count, a.started_at, null, null)::millrace.change as change
  )
  select coalesce(array_agg(row(c.stage_id, c.change)::millrace.cancelled), '{}') into v_cancelled from cancelled c;
  perform millrace.abandon_fan_outs(p_run_ids, p_stage_ids);
  return v_cancelled;
end
$$;
comment on function millrace.cancel_attempts(bigint[], int[]) is 'queued | started | waiting → cancelled, for locked runs; their tokens and jobs are void. Returns what is left to project.';

create or replace function millrace.project_cancelled(p_cancelled millrace.cancelled[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
begin
  for v_stage in
    select c.stage_id, array_agg(c.change) as changes from unnest(p_cancelled) c group by c.stage_id order by c.stage_id
  loop
    perform millrace.project(v_stage.stage_id, v_stage.changes);
  end loop;
end
$$;
comment on function millrace.project_cancelled(millrace.cancelled[]) is 'Shows cancelled attempts on their entities.';
