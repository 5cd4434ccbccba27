-- Returns Postgres' message on why a text is no value of a type; null where the text is one, or is
-- null. Postgres 15 lacks pg_input_error_info().
create function millrace.input_fault(p_text text, p_type text) returns text
stable
as $$
execute format('select %L::%s', p_text, p_type);
return null;
exception when data_exception or syntax_error then
  return sqlerrm;
$$;
