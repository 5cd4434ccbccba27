-- Names the type of a table's column; null where it has no such column.
create function millrace.column_type(p_table regclass, p_column text) returns text
stable
as $$
begin
  return (
    select format_type(a.atttypid, a.atttypmod)
    from pg_attribute a
    where a.attrelid = p_table and a.attname = p_column and a.attnum > 0);
end
$$;

-- Names the type of a pipeline's key.
create function millrace.key_type(p_pipeline millrace.pipelines) returns text
stable
as $$
begin
  return millrace.column_type(p_pipeline.entity_table, p_pipeline.entity_key);
end
$$;

-- Quotes the name of a record's field, also one that is a word of PL/pgSQL, such as `loop`.
create function millrace.quote_field(p_name text) returns text
language sql immutable
as $$
  select '"' || replace(p_name, '"', '""') || '"'
$$;

-- Creates or replaces a function of a pipeline. Its body is a literal: a table's or column's name
-- may hold whatever ends a dollar quote.
create function millrace.write_function(p_head text, p_body text)
as $write$
begin
  execute format('create or replace function millrace.%s '
    'language plpgsql set search_path = pg_catalog, pg_temp as %L', p_head,
    E'-- Written for a pipeline; see modules/definitions/attach.sql.\n'
      || ltrim(p_body, E'\n'));
end
$write$;

-- Creates the triggers that call a pipeline's __intake function, but for what the engine writes.
create function millrace.write_intake_triggers(p_pipeline millrace.pipelines)
as $write$
begin
  execute format($f$
create or replace trigger %1$I after insert on %3$s referencing new table as new_rows
  for each statement execute function millrace.%4$I();
create or replace trigger %2$I after update on %3$s
  referencing old table as old_rows new table as new_rows
  for each statement
  -- Any session can announce that, so it counts from the schema's owner alone.
  when (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
    or not has_schema_privilege('millrace', 'create'))
  execute function millrace.%4$I()$f$,
    'millrace_' || p_pipeline.name || '_inserted', 'millrace_' || p_pipeline.name || '_updated',
    p_pipeline.entity_table, p_pipeline.name || '__intake');
end
$write$;

-- Writes the size of a row x in bytes: as stored, or at most, as JSON. Packing saves no more than
-- 99 of 100 bytes, and the text of an unpacked jsonb value hardly has eight times its bytes.
create function millrace.size_expression(
  p_table regclass, p_columns name[], p_at_most boolean
) returns text
stable
as $$
begin
  -- A row may have several columns of a gigabyte.
  return (
    select '0::bigint + ' || string_agg(
      case
        when t.typlen > 0 then '64'
        when coalesce(nullif(t.typbasetype, 0), t.oid)
            in ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype)
          then format('coalesce(octet_length(x.%I), 0)', a.attname)
        when p_at_most then format('coalesce(pg_column_size(x.%1$I)::bigint '
          '* case when pg_column_compression(x.%1$I) is null then 8 else 100 end, 0)', a.attname)
        else format('coalesce(pg_column_size(x.%I), 0)', a.attname)
      end, ' + ' order by a.attnum)
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    where a.attrelid = p_table and a.attname = any (p_columns));
end
$$;
