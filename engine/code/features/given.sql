-- Given: what a row brings along
--
-- A row's first run skips the stages whose output the row has already, by their own condition on
-- the row, asked when that run begins: what a stage writes into the row later changes nothing. A
-- later run knows nothing of it, since by then what the row holds is mostly the engine's own work.

-- Notes of new runs, whose entities the caller holds, which stages their rows bring along; of first
-- runs alone. A row that is larger than a worker takes is not read: it brings nothing along. The
-- queries leave a plan no choice (limit, + 0, ctid): one of a time when there were no runs would
-- compare each with all there are now.
create or replace function millrace.note_given(p_pipeline_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_ways int[];
  v_first record;
begin
  if cardinality(p_run_ids) = 0
      or not (select p.has_given from millrace.pipelines p where p.id = p_pipeline_id) then
    return;
  end if;
  v_ways := millrace.ways_of(p_pipeline_id);
  select array_agg(r.ctid order by r.id) as places,
    array_agg(r.entity_id order by r.id) as entity_ids
  into v_first
  from millrace.runs r
  where r.id = any (p_run_ids)
    and (
      select o.id
      from millrace.runs o
      where o.entity_id = r.entity_id
        and o.pipeline_id = any (v_ways)
        and o.id + 0 < r.id
      limit 1) is null
    and (
      select b.entity_id
      from millrace.begun_rows b
      where b.pipeline_id = any (v_ways)
        and b.entity_id = r.entity_id
      limit 1) is null;
  if v_first.places is null then
    return;
  end if;
  update millrace.runs r
  set given = array(
    select vs.stage_id
    from millrace.version_stages vs
    where vs.version_id = r.version_id
      and vs.given_path is not null
      and coalesce(jsonb_path_match_tz(u.asked, vs.given_path, '{}', true), false)
    order by vs.position)
  from (
    select u.place,
      case when u.entity is not null then jsonb_build_object('entity', u.entity::jsonb) end as asked
    from unnest(v_first.places, millrace.rows_of_entities(
      p_pipeline_id, v_first.entity_ids, millrace.batch_bytes())) u(place, entity)
    offset 0) u
  where r.ctid = u.place;
end
$$;

-- Notes of new runs that their rows have been through all stages before one, by another way than a
-- run that is known: they were adopted, or their runs have been pruned.
create or replace function millrace.note_done_before(p_run_ids bigint[], p_stage_id int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.runs r
  set given = coalesce(r.given, '{}') || array(
    select vs.stage_id
    from millrace.version_stages vs
    where vs.version_id = r.version_id
      and p_stage_id = any (vs.dependents)
      and vs.stage_id <> all (coalesce(r.given, '{}'))
    order by vs.position)
  where r.id = any (p_run_ids)
    and not exists (
      select
      from millrace.runs o
      where o.entity_id = r.entity_id
        and o.pipeline_id = r.pipeline_id
        and o.id < r.id);
end
$$;

-- Picks the runs whose rows brought the output of a stage along.
create or replace function millrace.given_runs(p_stage_id int, p_run_ids bigint[])
returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    where r.id = any (p_run_ids)
      and p_stage_id = any (r.given)
    order by r.id);
end
$$;

-- Skips, in first runs that are to begin at a stage, what they would skip by themselves before it:
-- stages that their rows bring along, and stages whose condition does not hold. So a row may begin
-- in mid-pipeline by what it brings; where a stage before it has work to do, the stage's need is
-- missing. Returns the runs that are to begin still: a user's trigger may have ended some.
create or replace function millrace.skip_given_needs(p_run_ids bigint[], p_stage_id int)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_earlier record;
  v_open bigint[];
  v_given bigint[];
  v_any boolean := false;
begin
  for v_earlier in
    select vs.stage_id, array_agg(r.id order by r.id) as run_ids
    from millrace.runs r
    join millrace.version_stages vs
      on vs.version_id = r.version_id
        and p_stage_id = any (vs.dependents)
        and not vs.on_demand
    where r.id = any (p_run_ids)
      and r.given is not null
    group by vs.stage_id, vs.position
    order by vs.position
  loop
    v_open := millrace.open_runs(v_earlier.stage_id, v_earlier.run_ids);
    v_given := millrace.given_runs(v_earlier.stage_id, v_open);
    perform millrace.add_skipped(v_earlier.stage_id, v_given, millrace.why_given());
    v_open := millrace.unmet_runs(v_earlier.stage_id, millrace.without(v_open, v_given));
    perform millrace.add_skipped(v_earlier.stage_id, v_open, millrace.why_unmet());
    v_any := v_any or cardinality(v_given || v_open) > 0;
  end loop;
  if v_any then
    return millrace.runs_to_begin(p_stage_id, p_run_ids);
  end if;
  return p_run_ids;
end
$$;

-- Says why a stage is skipped whose output the row brought along.
create or replace function millrace.why_given() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select '{"code": "skipped", "message": "the row brought its result along"}'::jsonb
$$;

-- Forgets of runs that start over what their rows brought along of these stages: whoever starts a
-- stage over wants it and what comes after it done anew.
create or replace function millrace.forget_given(p_run_ids bigint[], p_stage_ids int[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.runs r
  set given = array(select g from unnest(r.given) g where g <> all (p_stage_ids))
  where r.id = any (p_run_ids)
    and r.given && p_stage_ids;
end
$$;

-- Remembers the rows of runs that are about to be pruned, where it counts which run was the first.
create or replace function millrace.remember_begun(p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into millrace.begun_rows (pipeline_id, entity_id)
  select distinct r.pipeline_id, r.entity_id
  from millrace.runs r
  join millrace.pipelines p on p.id = r.pipeline_id and p.has_given
  where r.id = any (p_run_ids)
  order by 1, 2
  on conflict on constraint begun_rows_pkey do nothing;
end
$$;

-- Forgets that these rows, which are deleted, had runs; null: all rows of the pipeline.
create or replace function millrace.forget_begun(p_pipeline_id int, p_entity_ids text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from millrace.begun_rows b
  where b.pipeline_id = p_pipeline_id
    and (p_entity_ids is null or b.entity_id = any (p_entity_ids));
end
$$;
