-- Chapter 21: starting, starting over, cancelling
--
-- These are the calls that a person makes, by SQL or by writing a status column (chapter intake). They hold or wait for the
-- entities, then lock the runs, as the lock order says.

create or replace function millrace.ways_of(p_pipeline_id int) returns int[]
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return array_remove(array[p_pipeline_id, (select p.replaces_id from millrace.pipelines p where p.id = p_pipeline_id),
    (select p.id from millrace.pipelines p where p.replaces_id = p_pipeline_id)], null);
end
$$;
comment on function millrace.ways_of(int) is 'A pipeline, and the one that it replaces or that replaces it (chapter cut-over).';

create or replace function millrace.first_stage(p_pipeline_id int) returns int
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select vs.stage_id from millrace.pipelines p join millrace.version_stages vs on vs.version_id = p.current_version_id and vs.needs = '{}' and vs.after = '[]'
    where p.id = p_pipeline_id order by vs.position limit 1);
end
$$;
comment on function millrace.first_stage(int) is 'The stage at which a pipeline starts unless another is named.';

-- Results of stages that are not about to run come over from the entity's latest run, as finished attempts of the new one.
create or replace function millrace.copy_earlier_results(p_run_ids bigint[], p_keep int[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_ways int[];
begin
  if cardinality(p_keep) = 0 or cardinality(p_run_ids) = 0 then
    return;
  end if;
  -- A run that went the other way since has made them out of date.
  v_ways := millrace.ways_of((select r.pipeline_id from millrace.runs r where r.id = p_run_ids[1]));
  with source as (
    select r.id as run_id, a.id as attempt_id, a.stage_id, a.state, a.error, a.retry_count, a.started_at, a.finished_at, a.created_at, a.output
    from millrace.runs r
    cross join lateral (
      select o.id from millrace.runs o where o.entity_id = r.entity_id and o.pipeline_id = any (v_ways) and o.id < r.id order by o.id desc limit 1) o
    join millrace.attempts a on a.run_id = o.id and a.state in ('completed', 'skipped') and not a.superseded and a.stage_id = any (p_keep)
    where r.id = any (p_run_ids)
  )
  insert into millrace.attempts (run_id, stage_id, number, parent_id, state, error, retry_count, created_at, started_at, finished_at, output)
  select s.run_id, s.stage_id, 1, s.attempt_id, s.state, s.error, s.retry_count, s.created_at, s.started_at, s.finished_at, s.output from source s;
end
$$;
comment on function millrace.copy_earlier_results(bigint[], int[]) is 'Copies the results of these stages from the previous run of each entity into its new run.';

-- Begins one stage of locked runs; raises when a run lacks the result of one of its needs.
create or replace function millrace.enqueue_stage(p_run_ids bigint[], p_stage_id int) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_lacking record;
begin
  select count(distinct r.id) as runs, min(r.id) as run_id, min(r.entity_id) as entity_id, min(s.name) as need into v_lacking
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  cross join lateral unnest(vs.needs) n
  join millrace.stages s on s.id = n
  where r.id = any (p_run_ids)
    and not exists (select from millrace.attempts a where a.run_id = r.id and a.stage_id = n and a.state in ('completed', 'skipped') and not a.superseded);
  if v_lacking.runs > 0 then
    raise exception 'stage % cannot start for % entities (%, …): its need % has no result', (select s.name from millrace.stages s where s.id = p_stage_id),
      v_lacking.runs, v_lacking.entity_id, v_lacking.need
      using errcode = 'MR005', hint = format('Queue %s instead; the stages after it follow by themselves.', (
        -- Its need may lack a need of its own.
        select s.name from millrace.runs r join millrace.version_stages vs on vs.version_id = r.version_id and p_stage_id = any (vs.dependents) join millrace.stages s on s.id = vs.stage_id
        where r.id = v_lacking.run_id and not millrace.is_done(r.id, vs.stage_id) order by vs.position limit 1));
  end if;
  if (select bool_and(vs.unconditional) from millrace.runs r join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id where r.id = any (p_run_ids)) then
    perform millrace.queue_attempts(p_stage_id, p_run_ids);
    return array[p_stage_id];
  end if;
  return millrace.begin_stage(p_stage_id, p_run_ids);
end
$$;
comment on function millrace.enqueue_stage(bigint[], int) is 'Begins a stage of locked runs, whatever its thresholds say; MR005 when a need has no result. Returns the stages with work.';

-- Each start copies it once more, and whoever lists runs reads it: the limit keeps one tenant's
-- rows from filling the engine's tables.
create or replace function millrace.copy_metadata(
  p_pipeline_id int, p_entity_ids text[], out ids bigint[], out faults text[]
)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit constant int := 65536;
  v_values jsonb[] := millrace.metadata_of_entities(p_pipeline_id, p_entity_ids);
begin
  if v_values is null then
    return;
  end if;
  with given as materialized (
    select g.place, g.value, z.size,
      case when z.size <= v_limit then nextval('millrace.run_metadata_id_seq') end as id
    from unnest(v_values) with ordinality g(value, place)
    cross join lateral (select octet_length(g.value::text) as size offset 0) z
  ), copied as (
    insert into millrace.run_metadata (id, value)
    select g.id, g.value from given g where g.id is not null
  )
  select array_agg(g.id order by g.place),
    array_agg(case when g.size > v_limit then format(
      'row %s of table %s has %s bytes in its column %s, but metadata may have at most %s',
      p_entity_ids[g.place], p.entity_table, g.size, p.metadata_column, v_limit) end
      order by g.place)
  into ids, faults
  from given g, millrace.pipelines p
  where p.id = p_pipeline_id;
end
$$;
comment on function millrace.copy_metadata(int, text[]) is
  'Copies what the metadata column of each entity holds, for runs that start now. ids: the copies, '
  'in the order of the entities; faults: where one is too large, why. Both null without a column.';

create or replace function millrace.refuse_metadata(p_faults text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault text := (select f from unnest(p_faults) f where f is not null limit 1);
begin
  if v_fault is not null then
    raise exception '%', v_fault
      using errcode = 'MR002',
        hint = 'Keep what is large in another column or in Storage, and its name in the metadata.';
  end if;
end
$$;
comment on function millrace.refuse_metadata(text[]) is
  'Raises the first fault of copy_metadata(), as MR002.';

-- New runs of the current version for entities that the caller holds and that have no live run; returns the runs.
create or replace function millrace.new_runs(p_pipeline_id int, p_entity_ids text[], p_stage_id int) returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_version_id int := (select p.current_version_id from millrace.pipelines p where p.id = p_pipeline_id);
  v_copied record := millrace.copy_metadata(p_pipeline_id, p_entity_ids);
  v_runs bigint[];
  v_stage millrace.version_stages;
begin
  perform millrace.refuse_metadata(v_copied.faults);
  with added as (
    insert into millrace.runs (pipeline_id, version_id, entity_id, metadata_id, created_at)
    select p_pipeline_id, v_version_id, e.id, e.metadata_id, v_now
    from unnest(p_entity_ids, v_copied.ids) e(id, metadata_id)
    returning id
  )
  select coalesce(array_agg(a.id), '{}') into v_runs from added a;
  select vs.* into v_stage from millrace.version_stages vs where vs.version_id = v_version_id and vs.stage_id = p_stage_id;
  if not found then
    raise exception 'stage % is not part of the pipeline''s current version', (select s.name from millrace.stages s where s.id = p_stage_id)
      using errcode = 'MR004', hint = 'It was dropped from the definition; queue another stage.';
  end if;
  if (select p.is_child from millrace.pipelines p where p.id = p_pipeline_id) then
    perform millrace.inherit_place(v_runs);
  end if;
  perform millrace.copy_earlier_results(v_runs, array(
    select vs.stage_id from millrace.version_stages vs
    where vs.version_id = v_stage.version_id and vs.stage_id <> p_stage_id and vs.stage_id <> all (v_stage.dependents) and not millrace.is_only_root(v_stage)));
  return v_runs;
end
$$;
comment on function millrace.new_runs(int, text[], int) is 'Makes new runs of held entities, for a start at a stage, with the results of earlier stages taken over.';

create or replace function millrace.is_only_root(p_stage millrace.version_stages) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return p_stage.needs = '{}' and p_stage.after = '[]' and (select count(*) from millrace.version_stages vs where vs.version_id = p_stage.version_id and vs.needs = '{}' and vs.after = '[]') = 1;
end
$$;
comment on function millrace.is_only_root(millrace.version_stages) is 'Whether a stage is the one with which every run of its version begins.';

-- A child that starts anew takes the place of its former run, while its parent still waits.
create or replace function millrace.inherit_place(p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_former record;
begin
  for v_former in
    select distinct on (r.id) r.id as run_id, o.id as former_id, o.fan_out_id, o.item_key,
      case when p.metadata_column is null then o.metadata_id else r.metadata_id end as metadata_id
    from millrace.runs r join millrace.runs o on o.entity_id = r.entity_id and o.pipeline_id = r.pipeline_id and o.id < r.id
    join millrace.fan_outs f on f.id = o.fan_out_id and f.state = 'open' join millrace.pipelines p on p.id = r.pipeline_id
    where r.id = any (p_run_ids) order by r.id, o.id desc
  loop
    update millrace.runs r set fan_out_id = null, item_key = null where r.id = v_former.former_id;
    -- Pruned this moment.
    continue when not found;
    update millrace.runs r
    set fan_out_id = v_former.fan_out_id, item_key = v_former.item_key,
      took_place_of = v_former.former_id, metadata_id = v_former.metadata_id
    where r.id = v_former.run_id;
    insert into millrace.child_tallies (fan_out_id, recount) values (v_former.fan_out_id, true);
  end loop;
end
$$;
comment on function millrace.inherit_place(bigint[]) is 'Gives new runs of children the places of their rows'' former runs in fan-outs that are open.';

-- A stage and all that depends on it goes back to the start in live runs that the caller has locked.
create or replace function millrace.start_over(p_run_ids bigint[], p_stage_id int) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_version record;
  v_closure int[];
  v_strange record;
  v_wake int[] := '{}';
begin
  select count(*) as runs, min(r.entity_id) as entity_id into v_strange from millrace.runs r
  where r.id = any (p_run_ids) and not exists (select from millrace.version_stages vs where vs.version_id = r.version_id and vs.stage_id = p_stage_id);
  if v_strange.runs > 0 then
    raise exception 'stage % is not part of the version that % live runs began with (entity %, …)', (select s.name from millrace.stages s where s.id = p_stage_id), v_strange.runs, v_strange.entity_id
      using errcode = 'MR005', hint = 'Let the runs finish, or cancel them first: select millrace.cancel(run).';
  end if;
  for v_version in
    select r.pipeline_id, vs.dependents, array_agg(r.id order by r.id) as runs, array_agg(r.entity_id) as entity_ids
    from millrace.runs r join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    where r.id = any (p_run_ids) group by r.pipeline_id, vs.version_id, vs.dependents order by vs.version_id
  loop
    v_closure := v_version.dependents || p_stage_id;
    -- Not projected: what is shown next is the fresh start.
    perform millrace.cancel_attempts(v_version.runs, v_closure);
    update millrace.attempts a set superseded = true
    where a.run_id = any (v_version.runs) and a.stage_id = any (v_closure) and not a.superseded;
    update millrace.fan_outs f set state = 'abandoned' where f.run_id = any (v_version.runs) and f.stage_id = any (v_closure) and f.state = 'finished';
    perform millrace.project_queued(v_version.pipeline_id, p_stage_id, v_version.dependents, v_version.entity_ids);
    v_wake := v_wake || millrace.enqueue_stage(millrace.runs_to_begin(p_stage_id, v_version.runs), p_stage_id);
  end loop;
  insert into millrace.child_tallies (fan_out_id, recount) select r.fan_out_id, true from millrace.runs r where r.id = any (p_run_ids) and r.fan_out_id is not null;
  return v_wake;
end
$$;
comment on function millrace.start_over(bigint[], int) is 'Starts a stage and its dependents over in live runs; what they had is kept as history. Returns the stages with work.';

-- Branches beside the stage that a new run starts at, which the previous run left unfinished, go on too: or it could never end.
create or replace function millrace.start_sibling_branches(p_pipeline_id int, p_stage_id int, p_run_ids bigint[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_other record;
  v_open bigint[];
  v_wake int[] := '{}';
begin
  for v_other in
    select o.stage_id, o.dependents, exists (select from millrace.version_stages t where t.version_id = o.version_id and t.after <> '[]') as thresholds
    from millrace.pipelines p
    join millrace.version_stages vs on vs.version_id = p.current_version_id and vs.stage_id = p_stage_id and not millrace.is_only_root(vs)
    join millrace.version_stages o on o.version_id = vs.version_id and o.stage_id <> p_stage_id and o.stage_id <> all (vs.dependents)
    where p.id = p_pipeline_id order by o.position
  loop
    v_open := millrace.open_runs(v_other.stage_id, p_run_ids);
    -- A stage that had begun by a threshold was taken over, though the map that it awaited begins again.
    perform millrace.project_queued(p_pipeline_id, v_other.stage_id, g.pending, g.entity_ids)
    from (
      select array_agg(r.entity_id) as entity_ids, case when v_other.thresholds then array(
          select d from unnest(v_other.dependents) d where not exists (select from millrace.attempts a where a.run_id = r.id and a.stage_id = d and not a.superseded))
        else v_other.dependents end as pending
      from millrace.runs r where r.id = any (v_open) group by 2) g;
    v_wake := v_wake || millrace.enqueue_stage(millrace.runs_to_begin(v_other.stage_id, v_open), v_other.stage_id);
  end loop;
  return v_wake;
end
$$;
comment on function millrace.start_sibling_branches(int, int, bigint[]) is 'Begins what may begin beside the stage that new runs start at; returns the stages with work.';

-- What writing `queued` means, for entities that the caller holds: a new run, or starting over in a live one.
create or replace function millrace.queue_here(p_pipeline_id int, p_stage_id int, p_entity_ids text[], p_dirty_ids text[]) returns int[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_began_at timestamptz := millrace.now();
  v_counted boolean := (select s.counted from millrace.stages s where s.id = p_stage_id);
  v_live record;
  v_new bigint[];
  v_wake int[] := '{}';
begin
  -- Locked before it is decided who has none: without a projection, a worker that ends a run does not hold its row.
  select coalesce(array_agg(l.id), '{}') as runs, array_agg(l.entity_id) as entity_ids into v_live from (
    select r.id, r.entity_id from millrace.runs r
    where r.pipeline_id = p_pipeline_id and r.entity_id = any (p_entity_ids) and r.status = 'running' order by r.id for no key update) l;
  if v_counted then
    perform millrace.name_payers(p_pipeline_id, v_live.runs);
  end if;
  if cardinality(v_live.runs) = 0 then
    v_new := millrace.new_runs(p_pipeline_id, p_entity_ids, p_stage_id);
  else
    v_new := millrace.new_runs(p_pipeline_id, array(select e from unnest(p_entity_ids) e where e not in (select l from unnest(v_live.entity_ids) l)), p_stage_id);
    v_wake := millrace.start_over(v_live.runs, p_stage_id);
    p_dirty_ids := array(select d from unnest(p_dirty_ids) d where d not in (select l from unnest(v_live.entity_ids) l));
  end if;
  if v_counted then
    perform millrace.name_payers(p_pipeline_id, v_new);
  end if;
  if cardinality(p_dirty_ids) > 0 then
    perform millrace.project_queued(p_pipeline_id, p_stage_id, vs.dependents, p_dirty_ids)
    from millrace.pipelines p join millrace.version_stages vs on vs.version_id = p.current_version_id and vs.stage_id = p_stage_id where p.id = p_pipeline_id;
    v_new := millrace.runs_to_begin(p_stage_id, v_new);
  end if;
  if cardinality(v_new) > 0 then
    v_wake := v_wake || millrace.enqueue_stage(v_new, p_stage_id) || millrace.start_sibling_branches(p_pipeline_id, p_stage_id, v_new);
  end if;
  if v_counted then
    perform millrace.note_starts(v_live.runs || v_new, v_began_at);
  end if;
  return v_wake;
end
$$;
comment on function millrace.queue_here(int, int, text[], text[]) is 'Queues a stage for held entities: new runs where none is live, else starting over. Dirty are the entities with columns that a new run must clear. Returns the stages with work.';

create or replace function millrace.queue_stage(p_pipeline_id int, p_stage_id int, p_entity_ids text[], p_dirty_ids text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_ways int[] := millrace.ways_of(p_pipeline_id);
begin
  perform millrace.wake(case when cardinality(v_ways) = 1 then millrace.queue_here(p_pipeline_id, p_stage_id, p_entity_ids, p_dirty_ids)
    else millrace.queue_one_way(p_pipeline_id, v_ways[2], p_stage_id, p_entity_ids, p_dirty_ids) end);
end
$$;
comment on function millrace.queue_stage(int, int, text[], text[]) is 'Queues a stage for held entities and wake-ups; where a pipeline replaces another, each entity goes one of the two ways (chapter cut-over).';

create or replace function millrace.lock_rows_named(p_pipeline millrace.pipelines, p_entity_ids text[], p_wait boolean) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  return millrace.lock_entities(p_pipeline.id, p_entity_ids, p_wait);
exception
  when data_exception then
    raise exception 'a key of table % cannot be read as one: %', p_pipeline.entity_table, sqlerrm
      using errcode = 'MR002', hint = format('Give values of the column %s.', p_pipeline.entity_key);
end
$$;
comment on function millrace.lock_rows_named(millrace.pipelines, text[], boolean) is 'lock_entities() of keys that somebody outside has named; MR002 where one is no value of the key''s type.';

-- The run that starting an entity would come upon. Where one pipeline replaces another it may be one of the other, unless the
-- caller named a way that it has not gone: queue_stage() refuses that.
create or replace function millrace.run_under_way(
  p_pipeline_id int,
  p_stage_id int,
  p_entity_id text)
returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
  v_ways int[] := array[p_pipeline_id];
begin
  select p.* into v_pipeline
  from millrace.pipelines p
  where p.id = p_pipeline_id;
  if v_pipeline.replaces_id is not null and exists (
      select
      from millrace.version_stages vs
      where vs.version_id = v_pipeline.current_version_id
        and vs.stage_id = p_stage_id
        and vs.needs = '{}'
        and vs.after = '[]') then
    v_ways := millrace.ways_of(p_pipeline_id);
  end if;
  -- Locked, so that a worker that ends it this moment goes first.
  return (
    select r.id
    from millrace.runs r
    where r.pipeline_id = any (v_ways)
      and r.entity_id = p_entity_id
      and r.status = 'running'
    order by r.id
    limit 1
    for no key update);
end
$$;
comment on function millrace.run_under_way(int, int, text) is
  'The live run of a held entity that start() returns, locked; null where there is none.';

create or replace function millrace.start(
  p_pipeline text,
  p_entity_id text,
  p_stage text default null,
  p_priority int default null,
  p_restart boolean default false)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_pipeline millrace.pipelines;
  v_stage_id int;
  v_held text[];
  v_run bigint;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.name = p_pipeline;
  if not found then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null')
      using errcode = 'MR003',
        hint = 'Define it: npm run pipelines:sync, then push the migrations.';
  end if;
  -- The row's own spelling of its key goes on, however the caller wrote it.
  v_held := millrace.lock_rows_named(v_pipeline, array[p_entity_id], true);
  if cardinality(v_held) = 0 then
    raise exception 'table % has no row with % %',
      v_pipeline.entity_table, v_pipeline.entity_key, coalesce(p_entity_id, 'null')
      using errcode = 'MR003', hint = 'Insert the row first.';
  end if;
  if p_stage is null then
    v_stage_id := millrace.first_stage(v_pipeline.id);
  else
    v_stage_id := (millrace.stage_named(p_pipeline, p_stage)).id;
  end if;
  if p_restart is not true then
    v_run := millrace.run_under_way(v_pipeline.id, v_stage_id, v_held[1]);
  end if;
  if v_run is null then
    perform millrace.queue_stage(v_pipeline.id, v_stage_id, v_held, v_held);
    -- A run whose stages are all skipped is over already.
    v_run := (
      select max(r.id)
      from millrace.runs r
      where r.pipeline_id = any (millrace.ways_of(v_pipeline.id))
        and r.entity_id = v_held[1]);
  end if;
  if p_priority is not null
    and (select r.status = 'running' from millrace.runs r where r.id = v_run) then
    perform millrace.prioritise(v_run, p_priority);
  end if;
  return v_run;
end
$$;
comment on function millrace.start(text, text, text, int, boolean) is
  'Starts a run of an entity, at the first stage or the one named, and returns it. A run that is '
  'under way is returned as it is; with p_restart it starts over from that stage. '
  'p_priority (0 to 9) counts at stages that declare priority.';

create or replace function millrace.project_queued(p_pipeline_id int, p_stage_id int, p_dependents int[], p_entity_ids text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_entity_ids) > 0 then
    perform millrace.write_entities(p_pipeline_id, 'queued', (select s.name from millrace.stages s where s.id = p_stage_id), null, p_entity_ids,
      array(select s.name from millrace.stages s where s.id = any (p_dependents)));
  end if;
end
$$;
comment on function millrace.project_queued(int, int, int[], text[]) is 'Shows a stage as queued and its dependents as pending, with their columns cleared.';

-- Locks the entities and the runs given, waiting for both.
create or replace function millrace.hold_runs(p_run_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
begin
  for v_group in
    select r.pipeline_id, array_agg(r.entity_id) as entity_ids from millrace.runs r where r.id = any (p_run_ids) group by r.pipeline_id order by r.pipeline_id
  loop
    perform millrace.lock_entities(v_group.pipeline_id, v_group.entity_ids, true);
  end loop;
  perform from millrace.runs r where r.id = any (p_run_ids) order by r.id for no key update;
end
$$;
comment on function millrace.hold_runs(bigint[]) is 'Locks runs and their entities in the lock order.';

create or replace function millrace.cancel(p_run bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_status millrace.run_status;
begin
  perform millrace.hold_runs(array[p_run]);
  select r.status into v_status from millrace.runs r where r.id = p_run;
  if v_status is distinct from 'running' then
    raise exception 'run % cannot be cancelled: %', coalesce(p_run::text, 'null'), coalesce('it is ' || v_status, 'there is no such run')
      using errcode = case when v_status is null then 'MR003' else 'MR004' end, hint = 'Only a running run can be cancelled: select * from millrace.runs where status = ''running''.';
  end if;
  perform millrace.end_runs(array[p_run], 'cancelled');
  perform millrace.project_cancelled(millrace.cancel_attempts(array[p_run], null));
end
$$;
comment on function millrace.cancel(bigint) is 'running → cancelled: live attempts are cancelled, their tokens and jobs void, their columns failed with the error cancelled. Children are cancelled by the sweep, in batches.';
