-- What the dashboard's database webhooks call: a trigger's function that posts the row through
-- pg_net. Run by the superuser that owns the stand-ins, after pg_net's.

create schema supabase_functions authorization supabase_functions_admin;
grant usage on schema supabase_functions to postgres, anon, authenticated, service_role;

-- Its arguments: URL, method, headers, parameters of a GET, milliseconds.
create function supabase_functions.http_request() returns trigger
language plpgsql security definer
set search_path = supabase_functions
as $$
declare
  v_url text := tg_argv[0];
  v_method text := tg_argv[1];
  v_headers jsonb := coalesce(nullif(tg_argv[2], 'null'), '{"Content-Type": "application/json"}');
  v_params jsonb := coalesce(nullif(tg_argv[3], 'null'), '{}');
  v_timeout int := coalesce(nullif(tg_argv[4], 'null'), '1000');
begin
  if v_url is null or v_url = 'null' then
    raise exception 'url argument is missing';
  elsif v_method = 'GET' then
    perform net.http_get(v_url, v_params, v_headers, v_timeout);
  elsif v_method = 'POST' then
    perform net.http_post(
      v_url,
      jsonb_build_object(
        'type', tg_op, 'table', tg_table_name, 'schema', tg_table_schema,
        'record', case when tg_op <> 'DELETE' then to_jsonb(new) end,
        'old_record', case when tg_op <> 'INSERT' then to_jsonb(old) end),
      v_params, v_headers, v_timeout);
  else
    raise exception 'method argument % is invalid', coalesce(v_method, 'null');
  end if;
  return new;
end
$$;
grant execute on function supabase_functions.http_request()
  to postgres, anon, authenticated, service_role;
