-- The columns of a row that the engine writes

-- Names the seven columns that the projection keeps for a stage on its entity.
create function millrace.stage_columns(p_stage text) returns text[]
language sql immutable
as $$
  select array[p_stage || '_status', p_stage || '_job_id', p_stage || '_result',
    p_stage || '_error', p_stage || '_retry_count', p_stage || '_started_at',
    p_stage || '_completed_at']
$$;

-- Says whether the entity table has the seven columns of a stage. One that was dropped may have
-- lost its columns since; the projection then leaves it out.
create function millrace.has_columns(p_pipeline millrace.pipelines, p_stage text)
returns boolean
language sql stable
as $$
  select 7 = (
    select count(*)
    from pg_attribute a
    where a.attrelid = p_pipeline.entity_table
      and not a.attisdropped
      and a.attname = any ((select millrace.stage_columns(p_stage))::name[]))
$$;

-- Names the columns of the entity that the projection keeps.
create function millrace.status_columns(p_status jsonb) returns text[]
language sql immutable
as $$
  select array_remove(array[p_status ->> 'column', p_status #>> '{history,since}',
    p_status #>> '{history,changes}', p_status ->> 'attempts', p_status ->> 'retry_at',
    p_status ->> 'error'], null)
$$;
