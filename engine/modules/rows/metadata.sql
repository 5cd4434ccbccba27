-- Copies the metadata of entities for runs that start now. A value may have 64 kB, so that one
-- tenant's rows do not fill the engine's tables.
-- p_values: the values, in the order of p_entity_ids. The first that is too large then raises
-- MR002. Null reads them from the rows.
-- ids: the rows of run_metadata; null for a value that is too large.
-- faults: why a value was not copied; null where it was.
create function millrace.copy_metadata(
  p_pipeline_id int, p_entity_ids text[], p_values jsonb[] default null,
  out ids bigint[], out faults text[]
)
as $$
  v_limit constant int := 65536;
  v_given boolean := p_values is not null;

p_values := coalesce(p_values,
  (millrace.values_of_entities(p_pipeline_id, p_entity_ids, true, null)).metadata);
if p_values is null then
  return;
end if;
with given as materialized (
  select g.ordinal, g.value, z.size,
    case when z.size <= v_limit then nextval('millrace.run_metadata_id_seq') end as id
  from unnest(p_values) with ordinality g(value, ordinal)
  cross join lateral (select octet_length(g.value::text) as size offset 0) z
), copied as (
  insert into millrace.run_metadata (id, value)
  select g.id, g.value
  from given g
  where g.id is not null
)
select array_agg(g.id order by g.ordinal),
  array_agg(case when g.size > v_limit then format(
    'row %s of table %s has %s bytes in its column %s, but metadata may have at most %s',
    p_entity_ids[g.ordinal], p.entity_table, g.size, p.metadata_column, v_limit) end
    order by g.ordinal)
into ids, faults
from given g
cross join millrace.pipelines p
where p.id = p_pipeline_id;
if v_given and array_remove(faults, null) <> '{}' then
  raise exception 'MR002: %', (array_remove(faults, null))[1]
    using hint =
      'Keep what is large in another column or in Storage, and its name in the metadata.';
end if;
$$;

-- Returns the metadata that a run's row had when the run started. A child run without a metadata
-- column of its own has its parent's.
create function millrace.metadata_of(p_run bigint) returns jsonb
stable
as $$
select m.value
from millrace.runs r
join millrace.run_metadata m on m.id = r.metadata_id
where r.id = p_run
$$;
