-- Starting many rows at once

-- Reads keys that somebody named as the table spells them; MR002 where one is none.
create function millrace.keys_named(
  p_pipeline millrace.pipelines,
  p_entity_ids text[])
returns text[]
language plpgsql stable
as $$
declare
  v_keys text[];
begin
  if array_position(p_entity_ids, null) is not null or p_entity_ids is null then
    raise exception 'a key of table % is null', p_pipeline.entity_table
      using errcode = 'MR002',
        hint = format('Give values of the column %s.', p_pipeline.entity_key);
  end if;
  execute format('select array(select distinct k::%s::text from unnest($1) k)',
    millrace.key_type(p_pipeline))
  into v_keys
  using p_entity_ids;
  return v_keys;
exception
  when data_exception then
    raise exception 'a key of table % cannot be read as one: %', p_pipeline.entity_table, sqlerrm
      using errcode = 'MR002',
        hint = format('Give values of the column %s.', p_pipeline.entity_key);
end
$$;

-- Raises MR003 where some of these keys are not among the rows that were found.
create function millrace.refuse_missing_rows(
  p_pipeline millrace.pipelines,
  p_keys text[],
  p_found text[])
returns void
language plpgsql stable
set enable_hashjoin = on
as $$
begin
  if cardinality(p_found) < cardinality(p_keys) then
    raise exception 'table % has no row with these values of %, % in all: %',
      p_pipeline.entity_table, p_pipeline.entity_key,
      cardinality(p_keys) - cardinality(p_found),
      (select string_agg(millrace.cut_text(m, 100), ', ')
       from (
        select k from unnest(p_keys) k
        except
        select f from unnest(p_found) f
        order by 1
        limit 5) m(m))
      using errcode = 'MR003', hint = 'Leave them out, or insert the rows first; none was started.';
  end if;
end
$$;

-- Starts runs of many entities in one transaction and returns {started, under_way}: as
-- millrace.start() of one. What is under way is left as it is, unless p_restart.
create function millrace.start(
  p_pipeline text,
  p_entity_ids text[],
  p_stage text default null,
  p_priority int default null,
  p_restart boolean default false)
returns jsonb
language plpgsql
set millrace.plan = by_index
as $$
declare
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
  v_stage_id int;
  v_held text[];
  v_live text[] := '{}';
  v_new text[];
  v_runs bigint[];
begin
  v_stage_id := millrace.first_stage(v_pipeline.id);
  if p_stage is not null then
    v_stage_id := (millrace.stage_named(p_pipeline, p_stage)).id;
  end if;
  perform millrace.refuse_priority(p_priority);
  v_new := millrace.keys_named(v_pipeline, p_entity_ids);
  v_held := millrace.lock_rows_named(v_pipeline, v_new, true);
  perform millrace.refuse_missing_rows(v_pipeline, v_new, v_held);
  if p_restart is not true then
    -- Locked, so that a worker that ends one this moment goes first.
    v_live := array(
      select r.entity_id
      from millrace.runs r
      where r.pipeline_id = v_pipeline.id
        and r.entity_id = any (v_held)
        and r.status = 'running'
      order by r.id
      for no key update);
  end if;
  v_new := v_held;
  if cardinality(v_live) > 0 then
    v_new := array(
      select e.id
      from unnest(v_held) with ordinality e(id, place)
      where e.id not in (select l from unnest(v_live) l)
      order by e.place);
  end if;
  perform millrace.queue_stage(v_pipeline.id, v_stage_id, v_new, v_new, p_stage is not null,
    p_priority => coalesce(p_priority, 0));
  if p_priority is not null then
    with given as (
      update millrace.runs r
      set priority = p_priority
      where r.pipeline_id = v_pipeline.id
        and r.entity_id = any (v_held)
        and r.status = 'running'
        and r.priority <> p_priority
      returning r.id
    )
    select coalesce(array_agg(g.id), '{}') into v_runs from given g;
    perform millrace.assign_groups(s.id, v_runs)
    from millrace.stages s
    where s.pipeline_id = v_pipeline.id
      and s.has_groups;
  end if;
  perform millrace.note(case when p_restart then 'restart' else 'start' end, p_pipeline, p_stage,
    '{}', jsonb_build_object('runs', cardinality(v_new), 'outcome', jsonb_build_object(
      'started', cardinality(v_new), 'under_way', cardinality(v_live))));
  return jsonb_build_object(
    'started', cardinality(v_new), 'under_way', cardinality(v_live));
end
$$;
