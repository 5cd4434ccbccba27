-- Given: a row's first run skips the stages whose output the row has already, by their own
-- condition. A later run does not ask: what the row holds by then is mostly the engine's own work.

-- Lists the stages that rows bring along if their first runs begin now, as texts of arrays; null of
-- those that had a run. "limit" leaves a plan no choice but to look each up.
create function millrace.given_at_first(p_pipeline millrace.pipelines, p_entity_ids text[])
returns text[]
volatile
set enable_seqscan = off
as $$
declare
  v_begun boolean := exists (
    select from millrace.begun_rows b where b.pipeline_id = p_pipeline.id);
  v_first text[] := array(
    select case when (
        select r.id
        from millrace.runs r
        where r.entity_id = i.id
          and r.pipeline_id = p_pipeline.id
        limit 1) is null
      and (not v_begun or (
        select b.entity_id
        from millrace.begun_rows b
        where b.pipeline_id = p_pipeline.id
          and b.entity_id = i.id
        limit 1) is null) then i.id end
    from unnest(p_entity_ids) with ordinality i(id, place)
    order by i.place);
  v_asked jsonb[];
begin
  if array_remove(v_first, null) = '{}' then
    return null;
  end if;
  v_asked := millrace.asked_of_entities(p_pipeline.id, v_first, millrace.batch_bytes());
  return array(
    -- Materialized, or a set-returning function beside it would have each row asked about.
    with answer as materialized (
      select a.places, array(
        select vs.stage_id
        from millrace.version_stages vs
        where vs.version_id = p_pipeline.current_version_id
          and vs.given_path is not null
          and coalesce(jsonb_path_match_tz(a.asked, vs.given_path, '{}', true), false)
        order by vs.position)::text as given
      from (
        select u.asked, array_agg(u.place) as places
        from unnest(v_asked) with ordinality u(asked, place)
        group by u.asked) a
    )
    select case when v_first[g.place] is not null then g.given end
    from (select unnest(a.places) as place, a.given from answer a) g
    order by g.place);
end
$$;

-- Notes that rows of new runs have been through all stages before one: they were adopted, or their
-- runs have been pruned.
create function millrace.note_done_before(p_run_ids bigint[], p_stage_id int)
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
create function millrace.given_runs(p_stage_id int, p_run_ids bigint[])
returns bigint[]
volatile
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

-- Skips, before a stage at which first runs are to begin, what their rows bring along and what has
-- no condition that holds. Returns the runs that are to begin still.
create function millrace.skip_given_needs(p_run_ids bigint[], p_stage_id int)
returns bigint[]
as $$
declare
  v_earlier_id int;
  v_new bigint[];
  v_open bigint[];
  v_given bigint[];
  v_any boolean := false;
begin
  -- New runs are all of one version.
  for v_earlier_id in
    select vs.stage_id
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where r.id = p_run_ids[1]
      and p_stage_id = any (vs.dependents)
      and not vs.on_demand
    order by vs.position
  loop
    v_new := coalesce(v_new, array(
      select r.id
      from millrace.runs r
      where r.id = any (p_run_ids) and r.given is not null
      order by r.id));
    v_open := millrace.open_runs(v_earlier_id, v_new);
    v_given := millrace.given_runs(v_earlier_id, v_open);
    perform millrace.add_skipped(v_earlier_id, v_given, millrace.why_given());
    v_open := millrace.unmet_runs(v_earlier_id, millrace.without(v_open, v_given));
    perform millrace.add_skipped(v_earlier_id, v_open, millrace.why_unmet());
    v_any := v_any or cardinality(v_given || v_open) > 0;
  end loop;
  if v_any then
    return millrace.runs_to_begin(p_stage_id, p_run_ids);
  end if;
  return p_run_ids;
end
$$;

-- Says why a stage is skipped whose output the row brought along.
create function millrace.why_given() returns jsonb
language sql immutable
as $$
  select '{"code": "skipped", "message": "the row brought its result along"}'::jsonb
$$;

-- Forgets what rows brought along of stages that start over.
create function millrace.forget_given(p_run_ids bigint[], p_stage_ids int[])
as $$
begin
  update millrace.runs r
  set given = array(select g from unnest(r.given) g where g <> all (p_stage_ids))
  where r.id = any (p_run_ids)
    and r.given && p_stage_ids;
end
$$;
