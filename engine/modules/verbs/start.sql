-- Starting runs by a person's call

-- Starts a run of an entity and returns the run's id. A start that names its stage ignores the
-- stage's conditions. A run that is under way goes on unchanged, and its id is returned.
-- p_stage: null means the first stage.
-- p_restart: true starts a run that is under way over from the stage.
create function millrace.start(
  p_pipeline text, p_entity_id text, p_stage text default null, p_restart boolean default false
) returns bigint
set plan = by_index
as $$
  v_pipeline millrace.pipelines := millrace.pipeline_named(p_pipeline);
  v_started record := millrace.start_rows(v_pipeline, array[p_entity_id], p_stage, p_restart);
  -- Looks for any run: a run whose stages are all skipped is over already.
  v_run bigint := (
    -- by key
    select max(r.id + 0)
    from millrace.runs r
    where r.pipeline_id = v_pipeline.id
      and r.entity_id = v_started.locked[1]);

perform millrace.note('restart', p_pipeline, p_stage, array[v_run]) where p_restart;
return v_run;
$$;

-- Starts runs of many entities, all or none, like start() of one entity. Returns
-- {"started": …, "under_way": …}, the numbers of new runs and of runs that went on unchanged.
create function millrace.start(
  p_pipeline text, p_entity_ids text[], p_stage text default null, p_restart boolean default false
) returns jsonb
set plan = by_index
as $$
  v_started record := millrace.start_rows(
    millrace.pipeline_named(p_pipeline), p_entity_ids, p_stage, p_restart);
  v_live int := cardinality(v_started.live);
  v_new int := cardinality(v_started.locked) - v_live;
  v_answer jsonb := jsonb_build_object('started', v_new, 'under_way', v_live);

perform millrace.note(case when p_restart then 'restart' else 'start' end, p_pipeline, p_stage,
  '{}', jsonb_build_object('runs', v_new, 'outcome', v_answer));
return v_answer;
$$;

-- Starts runs of the rows with these keys, all or none. Raises MR003 where a row is missing, and
-- MR002 for a null or a nested list.
-- locked: the keys as the table spells them. live: the keys whose run was under way.
create function millrace.start_rows(
  p_pipeline millrace.pipelines, p_keys text[], p_stage text, p_restart boolean,
  out locked text[], out live text[]
)
as $$
  v_stage_id int := case when p_stage is null then millrace.first_stage(p_pipeline.id)
    else (millrace.stage_named(p_pipeline.name, p_stage)).id end;
  v_new text[];
  v_missing text[];

if array_ndims(p_keys) > 1 then
  raise exception 'MR002: p_entity_ids is a list of lists, but must be one list of keys'
    using hint = format('Give values of the column %1$s, such as array(select '
      '%1$I::text from …).', p_pipeline.entity_key);
elsif p_keys is null or array_position(p_keys, null) is not null then
  raise exception 'MR002: a key of table % is null', p_pipeline.entity_table
    using hint = format('Give values of the column %s.', p_pipeline.entity_key);
end if;
locked := millrace.lock_rows_named(p_pipeline, p_keys, true);
execute format('select array(select k::%s::text from unnest($1) k '
  'except select unnest($2) order by 1)', millrace.key_type(p_pipeline))
into v_missing
using p_keys, locked;
if v_missing <> '{}' then
  raise exception 'MR003: table % has no row with % %',
      p_pipeline.entity_table, p_pipeline.entity_key,
    (select string_agg(millrace.cut_text(m, 100), ', ') from unnest(v_missing[:5]) m)
      || coalesce(', and ' || nullif(cardinality(v_missing[6:]), 0) || ' more', '')
    using hint = 'Leave them out, or insert the rows first; none was started.';
end if;
-- Locks the live runs: a worker that is just ending one of them commits first.
live := case when p_restart then '{}'
  else (millrace.lock_live_runs(p_pipeline.id, locked)).entity_ids end;
v_new := array(
  select e.id
  from unnest(locked) with ordinality e(id, ordinal)
  where e.id not in (select l from unnest(live) l)
  order by e.ordinal);
perform millrace.queue_stage(p_pipeline.id, v_stage_id, v_new, v_new,
  case when p_stage is null then 'due' else 'named' end);
$$;
