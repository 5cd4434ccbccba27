-- Copies the metadata of entities for runs that start now, given or read. faults: where one is too
-- large, why; of given ones it raises the first as MR002. The limit keeps one tenant's rows from
-- filling the engine's tables.
create function millrace.copy_metadata(
  p_pipeline_id int, p_entity_ids text[], p_values jsonb[] default null,
  out ids bigint[], out faults text[]
)
as $$
declare
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

-- Reads what the metadata column of a run's row (a child's: of its parent's) held when it started.
create function millrace.metadata_of(p_run bigint) returns jsonb
stable
as $$
select m.value
from millrace.runs r
join millrace.run_metadata m on m.id = r.metadata_id
where r.id = p_run
$$;
