-- Returns the names of the seven columns that the projection writes for a stage.
create function millrace.stage_columns(p_stage text) returns text[]
immutable
as $$
return array[p_stage || '_status', p_stage || '_job_id', p_stage || '_result',
  p_stage || '_error', p_stage || '_retry_count', p_stage || '_started_at',
  p_stage || '_completed_at'];
$$;

-- Tells whether the entity table has the seven columns of a stage. A stage of a former version may
-- lack them.
create function millrace.has_columns(p_pipeline millrace.pipelines, p_stage text)
returns boolean
stable
as $$
return 7 = (
  select count(*)
  from pg_attribute a
  where a.attrelid = p_pipeline.entity_table and not a.attisdropped
    and a.attname = any ((select millrace.stage_columns(p_stage))::name[]));
$$;

-- Returns the names of the columns that the projection writes for a pipeline with one status
-- column.
create function millrace.status_columns(p_status jsonb) returns text[]
immutable
as $$
return array_remove(array[p_status ->> 'column', p_status #>> '{history,since}',
  p_status #>> '{history,changes}', p_status ->> 'attempts', p_status ->> 'retry_at',
  p_status ->> 'error'], null);
$$;

-- Locks entities by keys that a caller has named. Returns the keys of the rows that it locked.
-- Raises MR002 where a key is no value of the column's type, and MR003 where it is a copy's entity.
-- p_wait: waits for rows that another transaction has locked; false skips them.
create function millrace.lock_rows_named(
  p_pipeline millrace.pipelines, p_entity_ids text[], p_wait boolean
) returns text[]
as $$
perform millrace.refuse(i || ' is a copy, no row', 'Give the key with which it ends.', 'MR003')
from unnest(p_entity_ids) i
where millrace.row_key(p_pipeline.id, i) is distinct from i;
return millrace.lock_entities(p_pipeline.id, p_entity_ids, p_wait);
exception when data_exception then
  raise exception 'MR002: a key of table % cannot be read as one: %',
      p_pipeline.entity_table, sqlerrm
    using hint = format('Give values of the column %s.', p_pipeline.entity_key);
$$;

-- Returns the pipeline with this name. Raises MR003 where there is none, or the caller does not see
-- it.
-- p_seen: the pipelines that the caller sees; null for all.
create function millrace.pipeline_named(p_pipeline text, p_seen text[] default null)
returns millrace.pipelines
stable
as $$
  v_pipeline millrace.pipelines;

select p.* into v_pipeline
from millrace.pipelines p
where p.name = p_pipeline
  and (p_seen is null or p.name = any (p_seen));
if not found then
  raise exception 'MR003: there is no pipeline %', coalesce(p_pipeline, 'null')
    using hint = case
      when p_seen is null then millrace.known_pipelines()
      else 'Those that you see are in millrace_overview().'
    end;
end if;
return v_pipeline;
$$;
