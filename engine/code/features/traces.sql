-- Traces: the uuid column of an entity that is the trace id of all its runs
--
-- Each run has a trace id of its own unless its row brings one along. So what was done for a row,
-- here and at every service, is found by one id, however often it was started. A child run has its
-- parent's, whatever its own pipeline declares: it is part of what the parent does.

-- Raises MR001 unless the column that is to be the trace of an entity is of type uuid.
create or replace function millrace.check_trace(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_entity jsonb := p_definition -> 'entity';
  v_type text;
begin
  if not v_entity ? 'trace' then
    return;
  end if;
  select format_type(a.atttypid, null)
  into v_type
  from pg_attribute a
  where a.attrelid = to_regclass(v_entity ->> 'table')
    and a.attname = v_entity ->> 'trace'
    and a.attnum > 0
    and not a.attisdropped;
  if v_type is distinct from 'uuid' then
    raise exception 'entity.trace is %, which is %', v_entity -> 'trace',
      coalesce('of type ' || v_type, format('no column of %s', v_entity ->> 'table'))
      using errcode = 'MR001',
        hint = format('Name a column of type uuid: alter table %s add column trace_id uuid not '
        'null default gen_random_uuid(); or leave it out.', v_entity ->> 'table');
  end if;
end
$$;

-- define() keeps which column is the trace of the rows of a pipeline.
create or replace function millrace.save_trace(p_pipeline_id int, p_definition jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update millrace.pipelines p
  set trace_column = p_definition #>> '{entity,trace}'
  where p.id = p_pipeline_id
    and p.trace_column is distinct from p_definition #>> '{entity,trace}'
$$;
