-- Chapter 12: stages that begin under conditions
--
-- A plain stage is queued by advance() as soon as its needs are done. The others come through begin_stage(): a condition
-- may skip it, a threshold may hold it back, and its kind may make it wait for a person or for children instead of a worker.
-- A stage is done in a run when it has an attempt in state completed or skipped that is not superseded.
--
-- The callers hold the entities and the runs. begin_stage() shows on the entities what it does, and returns the stages
-- that have work for a worker now.

create or replace function millrace.is_done(p_run_id bigint, p_stage_id int) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (select from millrace.attempts a where a.run_id = p_run_id and a.stage_id = p_stage_id and a.state in ('completed', 'skipped') and not a.superseded);
end
$$;
comment on function millrace.is_done(bigint, int) is 'Whether a stage of a run was completed or skipped.';

-- Runs in which a stage could begin now: it has no attempt that counts, its needs are done and its thresholds hold.
create or replace function millrace.open_runs(p_stage_id int, p_run_ids bigint[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select r.id from millrace.runs r join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    where r.id = any (p_run_ids) and (r.status = 'running') is true
      and not exists (select from millrace.attempts a where a.run_id = r.id and a.stage_id = p_stage_id and not a.superseded)
      and cardinality(vs.needs) = (
        select count(*) from millrace.attempts n where n.run_id = r.id and n.stage_id = any (vs.needs) and n.state in ('completed', 'skipped') and not n.superseded)
      and (vs.after = '[]' or millrace.thresholds_hold(r.id, vs.after))
    order by r.id);
end
$$;
comment on function millrace.open_runs(int, bigint[]) is 'Those of the runs in which a stage may begin and has not.';

create or replace function millrace.running_of(p_run_ids bigint[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  return array(select r.id from millrace.runs r where r.id = any (p_run_ids) and (r.status = 'running') is true order by r.id);
end
$$;
comment on function millrace.running_of(bigint[]) is 'Those of the runs that are running.';

-- A user's trigger on what was shown last may have ended a run, deleted it, or begun the stage by itself. A run that ended before the
-- stage had an attempt left nothing to show as cancelled but this.
create or replace function millrace.runs_to_begin(p_stage_id int, p_run_ids bigint[]) returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_unbegun record;
begin
  select array_agg(r.id order by r.id) filter (where r.status = 'running') as runs,
    array_agg(row(r.entity_id, 'failed', null, null, 'cancelled', 0, null, null, null)::millrace.change)
      filter (where r.status <> 'running' and millrace.is_latest_run(r.id)) as over
  into v_unbegun
  from millrace.runs r
  where r.id = any (p_run_ids)
    and not exists (
      select
      from millrace.attempts a
      where a.run_id = r.id and a.stage_id = p_stage_id and not a.superseded);
  perform millrace.project(p_stage_id, v_unbegun.over);
  return coalesce(v_unbegun.runs, '{}');
end
$$;
comment on function millrace.runs_to_begin(int, bigint[]) is
  'Those of the runs that are running and have no attempt of the stage that counts; shows it as cancelled where the run has ended meanwhile.';

-- For runs that go on after they were over: their end may have come before some stage began.
create or replace function millrace.begin_open(p_run_ids bigint[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
  v_wake int[] := '{}';
begin
  for v_stage in
    select vs.stage_id, array_agg(r.id) as run_ids from millrace.runs r join millrace.version_stages vs on vs.version_id = r.version_id
    where r.id = any (p_run_ids) group by vs.stage_id, vs.position order by vs.position
  loop
    v_wake := v_wake || millrace.begin_stage(v_stage.stage_id, millrace.open_runs(v_stage.stage_id, v_stage.run_ids));
  end loop;
  return v_wake;
end
$$;
comment on function millrace.begin_open(bigint[]) is 'Begins whatever may begin in held runs and has not; returns the stages with work.';

create or replace function millrace.advance_others(p_stage_id int, p_run_ids bigint[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_follower record;
  v_awaited jsonb := jsonb_build_array(jsonb_build_object('map', p_stage_id));
  v_wake int[] := '{}';
begin
  if (select s.counted_by_parent from millrace.stages s where s.id = p_stage_id) then
    insert into millrace.child_tallies (fan_out_id, stage_id, done)
    select r.fan_out_id, p_stage_id, count(*) from millrace.runs r where r.id = any (p_run_ids) and r.fan_out_id is not null group by r.fan_out_id;
  end if;
  for v_follower in
    with run as materialized (
      select r.id, r.version_id from millrace.runs r where r.id = any (p_run_ids)
    ), follower as materialized (
      select f.version_id, f.stage_id, f.position from millrace.version_stages f
      where f.version_id in (select distinct r.version_id from run r) and not f.unconditional and (p_stage_id = any (f.needs) or f.after @> v_awaited)
    )
    select f.stage_id, array_agg(r.id) as run_ids from follower f join run r on r.version_id = f.version_id
    group by f.stage_id, f.position order by f.position
  loop
    v_wake := v_wake || millrace.begin_stage(v_follower.stage_id, millrace.open_runs(v_follower.stage_id, v_follower.run_ids));
  end loop;
  return v_wake;
end
$$;
comment on function millrace.advance_others(int, bigint[]) is 'What advance() leaves out when a stage is done: followers that are not plain (a map that is done satisfies every threshold on it), and the tally of a watched stage.';

-- The document that a condition is asked about. The engine's own columns are not part of the row. One that is larger than a worker
-- takes is not built, or a few of them would keep their neighbours from being recorded: its stage begins, and its claim refuses it.
create or replace function millrace.unmet_runs(p_stage_id int, p_run_ids bigint[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline_id int := (select s.pipeline_id from millrace.stages s where s.id = p_stage_id);
  v_asked record;
  v_rows json[];
begin
  select array_agg(r.id order by r.id) as runs,
    array_agg(r.entity_id order by r.id) as entity_ids,
    -- What names neither the row nor "all there is" does not look at the row.
    bool_or(vs.when_path::text ~ '"entity"|\*|keyvalue') as reads_rows
  into v_asked
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id
    and vs.stage_id = p_stage_id
    and vs.when_path is not null
  where r.id = any (p_run_ids);
  if v_asked.runs is null then
    return '{}';
  end if;
  v_rows := case
    when v_asked.reads_rows then
      millrace.rows_of_entities(v_pipeline_id, v_asked.entity_ids, millrace.batch_bytes())
    else array_fill('{}'::json, array[cardinality(v_asked.runs)])
  end;
  return array(
    select r.id
    from unnest(v_asked.runs, v_rows) u(id, entity)
    join millrace.runs r on r.id = u.id
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    cross join lateral (
      select jsonb_object_agg(s.name, n.output) as needs
      from millrace.attempts n join millrace.stages s on s.id = n.stage_id
      where n.run_id = r.id and n.stage_id = any (vs.needs) and n.state in ('completed', 'skipped') and not n.superseded
    ) n
    where u.entity is not null
      -- Unknown counts as false: a comparison with what is not there, or of a text with a number.
      and not coalesce(jsonb_path_match_tz(jsonb_build_object('entity', u.entity::jsonb, 'needs', coalesce(n.needs, '{}')), vs.when_path, '{}', true), false));
end
$$;
comment on function millrace.unmet_runs(int, bigint[]) is 'Those of the runs in which the condition of a stage does not hold.';

create or replace function millrace.begin_stage(p_stage_id int, p_run_ids bigint[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
  v_cascaded bigint[];
  v_unmet bigint[];
  v_wake int[] := '{}';
begin
  if cardinality(p_run_ids) = 0 then
    return '{}';
  end if;
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  v_cascaded := array(
    select distinct n.run_id from millrace.attempts n join millrace.runs r on r.id = n.run_id
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    where r.id = any (p_run_ids) and n.state = 'skipped' and not n.superseded and n.error -> 'dependents' = 'true'
      and (n.stage_id = any (vs.needs) or vs.after @> jsonb_build_array(jsonb_build_object('map', n.stage_id))));
  if cardinality(v_cascaded) > 0 then
    v_wake := v_wake || millrace.skip_stage(p_stage_id, v_cascaded, '{"code": "skipped", "message": "a stage it depends on was skipped", "dependents": true}');
    p_run_ids := array(select r from unnest(p_run_ids) r where r <> all (v_cascaded));
  end if;
  v_unmet := millrace.unmet_runs(p_stage_id, p_run_ids);
  if cardinality(v_unmet) > 0 then
    v_wake := v_wake || millrace.skip_stage(p_stage_id, v_unmet, '{"code": "skipped", "message": "its condition does not hold"}');
    p_run_ids := array(select r from unnest(p_run_ids) r where r <> all (v_unmet));
  end if;
  if cardinality(p_run_ids) = 0 then
    return v_wake;
  end if;
  case v_stage.kind
    when 'manual' then
      perform millrace.open_decisions(p_stage_id, p_run_ids);
      return v_wake;
    when 'pipeline' then
      return v_wake || millrace.start_child_runs(p_stage_id, p_run_ids);
    else
      perform millrace.queue_attempts(p_stage_id, p_run_ids);
      perform millrace.show_queued(p_stage_id, p_run_ids);
      return v_wake || p_stage_id;
  end case;
end
$$;
comment on function millrace.begin_stage(int, bigint[]) is 'Begins a stage whose needs are done: skips it where its condition does not hold, else queues it, asks a person or starts a child run. Returns the stages with work.';

create or replace function millrace.queue_attempts(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_again boolean := exists (select from millrace.attempts a where a.run_id = any (p_run_ids) and a.stage_id = p_stage_id);
begin
  insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at, late_at)
  select r.id, p_stage_id, coalesce((select max(a.number) from millrace.attempts a where v_again and a.run_id = r.id and a.stage_id = p_stage_id), 0) + 1, v_now, v_now, v_now + s.sla
  from unnest(p_run_ids) r(id), millrace.stages s where s.id = p_stage_id order by r.id;
  if (select s.has_groups from millrace.stages s where s.id = p_stage_id) then
    perform millrace.assign_groups(p_stage_id, p_run_ids);
  end if;
end
$$;
comment on function millrace.queue_attempts(int, bigint[]) is 'Adds a queued attempt of a stage to each of the runs.';

create or replace function millrace.show_queued(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.project(p_stage_id, array(
    select row(r.entity_id, 'queued', null, null, null, 0, null, null, null)::millrace.change from millrace.runs r where r.id = any (p_run_ids)));
end
$$;
comment on function millrace.show_queued(int, bigint[]) is 'Shows a stage as queued on the entities of these runs.';

create or replace function millrace.skip_stage(p_stage_id int, p_run_ids bigint[], p_why jsonb) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
begin
  insert into millrace.attempts (run_id, stage_id, number, state, created_at, finished_at, error)
  select r.id, p_stage_id, coalesce((select max(a.number) from millrace.attempts a where a.run_id = r.id and a.stage_id = p_stage_id), 0) + 1, 'skipped', v_now, v_now,
    p_why || case when vs.otherwise = 'skip_dependents' then '{"dependents": true}' else '{}'::jsonb end
  from millrace.runs r join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  where r.id = any (p_run_ids) order by r.id;
  perform millrace.project(p_stage_id, array(
    select row(r.entity_id, 'skipped', null, null, null, 0, null, v_now, null)::millrace.change
    from millrace.runs r
    where r.id = any (p_run_ids)));
  return millrace.continue_after_skip(p_stage_id, p_run_ids);
end
$$;
comment on function millrace.skip_stage(int, bigint[], jsonb) is 'Skips a stage in these runs, shows it as skipped, and goes on; returns the stages with work.';

-- As complete() does for the stage it completes. A user's trigger may have deleted or ended a run, or started the stage over, while
-- the skip was shown: then there is nothing to go on from.
create or replace function millrace.continue_after_skip(p_stage_id int, p_run_ids bigint[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_runs bigint[] := array(
    select r.id from millrace.runs r
    where r.id = any (p_run_ids) and (r.status = 'running') is true
      and exists (select from millrace.attempts a where a.run_id = r.id and a.stage_id = p_stage_id and a.state = 'skipped' and not a.superseded)
    order by r.id);
  v_ready record;
  v_wake int[] := '{}';
begin
  for v_ready in
    select r.stage_id, array_agg(r.run_id) as run_ids from unnest((millrace.advance(p_stage_id, v_runs)).ready) r group by r.stage_id order by r.stage_id
  loop
    perform millrace.assign_groups(v_ready.stage_id, v_ready.run_ids);
    perform millrace.show_queued(v_ready.stage_id, v_ready.run_ids);
    v_wake := v_wake || v_ready.stage_id;
  end loop;
  v_wake := v_wake || millrace.advance_others(p_stage_id, v_runs);
  perform millrace.finish_runs(p_stage_id, v_runs);
  return v_wake;
end
$$;
comment on function millrace.continue_after_skip(int, bigint[]) is 'Readies what follows a stage that was skipped, and finishes runs; returns the stages with work.';

-- A user's trigger may have started the stage over while its failure was shown: then there is nothing to go on from.
create or replace function millrace.skip_failed_stage(p_stage_id int, p_run_ids bigint[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_runs bigint[];
begin
  with skipped as (
    insert into millrace.attempts (run_id, stage_id, number, parent_id, state, created_at, finished_at, error)
    select a.run_id, a.stage_id, a.number + 1, a.id, 'skipped', v_now, v_now, '{"code": "failed", "message": "the stage failed, and the run goes on without it"}'
    from millrace.attempts a join millrace.runs r on r.id = a.run_id
    where a.run_id = any (p_run_ids) and a.stage_id = p_stage_id and a.state = 'failed' and not a.superseded and r.status = 'running'
      and not exists (select from millrace.attempts n where n.run_id = a.run_id and n.stage_id = a.stage_id and n.number > a.number)
    order by a.run_id
    returning run_id
  )
  select coalesce(array_agg(s.run_id), '{}') into v_runs from skipped s;
  return millrace.continue_after_skip(p_stage_id, v_runs);
end
$$;
comment on function millrace.skip_failed_stage(int, bigint[]) is 'Follows a failure for good with a skipped attempt, so that the run goes on; returns the stages with work.';
