-- Given: what a row brings along
--
-- A row's first run skips the stages whose output the row has already, by their own condition on
-- the row, asked when that run begins. A later run knows nothing of it, since by then what the row
-- holds is mostly the engine's own work.

-- Lists the stages that rows bring along if their first runs begin now, as texts of arrays; null of
-- those that had a run. Rows of which the conditions read the same are asked about once; one that
-- is larger than a worker takes brings nothing along. "limit" leaves a plan no choice: an older one
-- would compare each with all there are.
create function millrace.given_at_first(p_pipeline millrace.pipelines, p_entity_ids text[])
returns text[]
volatile
set enable_seqscan = off
as $$
declare
  v_most bigint := millrace.batch_bytes();
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
  v_asked := coalesce(millrace.asked_of_entities(p_pipeline.id, v_first, v_most), array(
    select case when r.entity is not null then jsonb_build_object('entity', r.entity::jsonb) end
    from unnest(millrace.rows_of_entities(p_pipeline.id, v_first, v_most))
      with ordinality r(entity, place)
    order by r.place));
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

-- Notes of new runs that their rows have been through all stages before one: they were adopted, or
-- their runs have been pruned.
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

-- Skips, in first runs that are to begin at a stage, the stages before it that their rows bring
-- along, and those whose condition does not hold. Returns the runs that are to begin still: a
-- user's trigger may have ended some.
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

-- Forgets of runs what their rows brought along of stages that start over: they are wanted anew.
create function millrace.forget_given(p_run_ids bigint[], p_stage_ids int[])
as $$
begin
  update millrace.runs r
  set given = array(select g from unnest(r.given) g where g <> all (p_stage_ids))
  where r.id = any (p_run_ids)
    and r.given && p_stage_ids;
end
$$;

-- Creates the __asked function of a pipeline, which builds of its rows what the conditions of given
-- stages read: of a column that is only compared with null, that much. It returns null where one
-- may read all of a row, or none a column.
create function millrace.write_asked(
  p_pipeline millrace.pipelines, p_key_type text, p_columns name[]
)
as $write$
declare
  v_asked record;
begin
  select bool_and(q.named) as named,
    string_agg(format('%s as asked_%s', q.read, q.place), ', ') filter (where q.known) as reads,
    string_agg(format('asked_%s', q.place), ', ') filter (where q.known) as names,
    string_agg(format('%L, asked_%s', q.name, q.place), ', ') filter (where q.known) as pairs
  into v_asked
  from (
    select bool_and(regexp_count(vs.given_path::text, '\$')
        = regexp_count(vs.given_path::text, '\$\."entity"\."(?:\\.|[^"\\])*"')) as named,
      n.name, n.name = any (p_columns) as known, row_number() over (order by n.name) as place,
      case when n.name is not null then format(
        case when bool_and(
            regexp_count(vs.given_path::text, '\."' || n.name || '"')
              = regexp_count(vs.given_path::text, '\."' || n.name || '" [!=]= null'))
          then 'case when x.%1$I is not null then true end' else 'to_jsonb(x.%1$I)'
        end, n.name) end as read
    from millrace.version_stages vs
    join millrace.versions v on v.id = vs.version_id and v.pipeline_id = p_pipeline.id
    left join lateral (
      select (m.found[1])::jsonb #>> '{}' as name
      from regexp_matches(vs.given_path::text, '\$\."entity"\.("(?:\\.|[^"\\])*")', 'g') m(found)
    ) n on true
    where vs.given_path is not null
    group by n.name) q;
  perform millrace.write_function(
    format('%I(p_ids text[], p_each bigint) returns jsonb[]', p_pipeline.name || '__asked'), case
    when v_asked.named is not true or v_asked.pairs is null then 'begin return null; end'
    else format($f$
#variable_conflict use_variable
begin
  return (
    with brought as materialized (
      select i.place, r.*
      from unnest(p_ids) with ordinality i(id, place)
      left join lateral (
        select (p_each < %s) is not true as fits, %s
        from %s x
        where x.%I = i.id::%s
        limit 1) r on true
    ), asked as (
      select array_agg(b.place) as places, case when b.fits then
          jsonb_build_object('entity', jsonb_build_object(%s)) end as asked
      from brought b
      group by b.fits, %s
    )
    select coalesce(array_agg(g.asked order by g.place), '{}')
    from (select a.asked, unnest(a.places) as place from asked a) g);
end $f$, millrace.size_expression(p_pipeline.entity_table, p_columns, p_at_most => true),
    v_asked.reads, p_pipeline.entity_table, p_pipeline.entity_key, p_key_type, v_asked.pairs,
    v_asked.names) end);
end
$write$;
