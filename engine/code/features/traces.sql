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

-- Creates the __traces function of a pipeline, or drops it where none is declared. A column that
-- was renamed since must not make a user's own write fail.
create or replace function millrace.write_traces(p_pipeline millrace.pipelines, p_key_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  if p_pipeline.trace_column is null then
    execute format('drop function if exists millrace.%I(text[])', p_pipeline.name || '__traces');
    return;
  end if;
  perform millrace.write_function(
    format('%I(p_ids text[]) returns uuid[]', p_pipeline.name || '__traces'), format($f$
#variable_conflict use_variable
begin
  return array(
    select (select e.%4$I::uuid from %2$s e where e.%1$I = i.id::%3$s)
    from unnest(p_ids) with ordinality i(id, place) order by i.place);
exception
  when others then
    if millrace.error_kind(sqlstate) <> 'lasting' then
      raise;
    end if;
    perform millrace.report('error', 'trace_unreadable', %5$L || sqlerrm,
      jsonb_build_object('column', %4$L));
    return array_fill(null::uuid, array[cardinality(p_ids)]);
end $f$, p_pipeline.entity_key, p_pipeline.entity_table, p_key_type, p_pipeline.trace_column,
    format('The traces of pipeline %s cannot be read, so that each run starts with its own: ',
      p_pipeline.name)));
end
$write$;

-- Creates traces_of_entities(), which leads to the __traces functions of the pipelines that have
-- one.
create or replace function millrace.write_trace_dispatch() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_ids int[];
  v_names text[];
begin
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id)
  into v_ids, v_names
  from millrace.pipelines p
  where p.trace_column is not null;
  perform millrace.write_way('traces_of_entities',
    '(p_pipeline_id int, p_ids text[]) returns uuid[]', v_ids,
    array(select format('return millrace.%I(p_ids);', n || '__traces') from unnest(v_names) n),
    'the trace columns of a pipeline''s entities in the order of their keys; null where none is '
    'declared.');
end
$write$;
