-- Labels: the column of an entity by which people know a row, such as a URL or a title
--
-- The search looks for it over the user's own index, and only so far as that leads: one of trigrams
-- finds what a label contains, one of patterns (text_pattern_ops) how it begins, any other the
-- whole of it.

-- Says how labels of a pipeline can be searched by the indexes that there are: contains, prefix or
-- exact; null where there is none.
create function millrace.label_search(p_pipeline millrace.pipelines) returns text
language sql stable
as $$
  select s.how
  from (
    select case
        when o.opcname in ('gin_trgm_ops', 'gist_trgm_ops') then 'contains'
        when o.opcname in ('text_pattern_ops', 'varchar_pattern_ops') or l.collcollate = 'C'
          then 'prefix'
        else 'exact' end as how
    from pg_index i
    join pg_class c on c.oid = i.indexrelid
    join pg_am m on m.oid = c.relam
    join pg_opclass o on o.oid = i.indclass[0]
    left join pg_collation l on l.oid = i.indcollation[0]
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
    where i.indrelid = p_pipeline.entity_table
      and a.attname = p_pipeline.label_column
      and i.indpred is null
      and i.indisvalid
      and (m.amname = 'btree' or o.opcname in ('gin_trgm_ops', 'gist_trgm_ops'))) s
  order by array_position(array['contains', 'prefix', 'exact'], s.how)
  limit 1
$$;

-- Writes the statement that makes the index by which labels are searched; null where none is
-- missing.
create function millrace.missing_label_index(p_pipeline millrace.pipelines)
returns text
language plpgsql stable
as $$
begin
  if p_pipeline.label_column is null or millrace.label_search(p_pipeline) is not null then
    return null;
  end if;
  return format('create index concurrently on %s (%I text_pattern_ops);',
    p_pipeline.entity_table, p_pipeline.label_column);
end
$$;

-- Warns of a label by which nothing is found, and names the statement that makes its index.
create function millrace.warn_of_label(p_pipeline_id int) returns void
language plpgsql
as $$
declare
  v_pipeline millrace.pipelines;
  v_statement text;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  v_statement := millrace.missing_label_index(v_pipeline);
  if v_statement is not null then
    raise warning 'column % of table % has no index, so nothing is found by it',
      v_pipeline.label_column, v_pipeline.entity_table
      using hint = 'Make one: ' || v_statement;
  end if;
end
$$;

-- Looks for labels that no index leads to.
create function millrace.label_findings()
returns table (what text, ok boolean, detail text)
language sql stable
as $$
  select format('labels of pipeline %s are found by an index', p.name), i.missing is null,
    coalesce('nothing is found by them: ' || i.missing,
      format('%s, %s', p.label_column, millrace.label_search(p)))
  from millrace.pipelines p
  cross join lateral millrace.missing_label_index(p) i(missing)
  where p.label_column is not null
$$;
