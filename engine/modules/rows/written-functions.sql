-- Returns the type of a table's column; null where the table has no such column.
create function millrace.column_type(p_table regclass, p_column text) returns text
stable
as $$
return (
  select format_type(a.atttypid, a.atttypmod)
  from pg_attribute a
  where a.attrelid = p_table and a.attname = p_column and a.attnum > 0);
$$;

-- Returns the type of a pipeline's key.
create function millrace.key_type(p_pipeline millrace.pipelines) returns text
stable
as $$
return millrace.column_type(p_pipeline.entity_table, p_pipeline.entity_key);
$$;

-- Creates or replaces a function that attach() or another part of the engine writes. The body is a
-- literal, since the name of a table or column may contain the end of any dollar quote.
-- p_pipeline: null for a function that all pipelines share.
-- p_head: name, parameters and result.
create function millrace.write_function(p_pipeline text, p_head text, p_body text)
as $$
execute format('create or replace function millrace.%s '
  'language plpgsql set search_path = pg_catalog, pg_temp as %L',
  concat_ws('__', p_pipeline, p_head),
  E'-- Written for a pipeline; see modules/definitions/attach.sql.\n'
    '#variable_conflict use_variable\n' || ltrim(p_body, E'\n'));
$$;

-- Inserts rows of JSON into a table of the engine. Updates the rows that have the same key.
-- p_key: the columns of a unique index.
-- p_columns: the other columns to write.
create function millrace.put_rows(p_table text, p_key text, p_columns text, p_rows jsonb)
as $$
execute format('insert into %1$s (%2$s, %3$s) select %2$s, %3$s from jsonb_populate_recordset('
  'null::%1$s, $1) on conflict (%2$s) do update set (%3$s) = (excluded.%4$s)',
  p_table, p_key, p_columns, replace(p_columns, ', ', ', excluded.'))
using p_rows;
$$;
