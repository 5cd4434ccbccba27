-- The function that the triggers of the dashboard's database webhooks call: it posts the row
-- through pg_net. The superuser that owns the stand-ins runs this file after pg_net's.

create schema supabase_functions authorization supabase_functions_admin;
grant usage on schema supabase_functions to postgres, anon, authenticated, service_role;

create table supabase_functions.migrations (
  version text primary key,
  inserted_at timestamptz not null default now()
);
create table supabase_functions.hooks (
  id bigserial primary key,
  hook_table_id int not null,
  hook_name text not null,
  created_at timestamptz not null default now(),
  request_id bigint
);
grant all on supabase_functions.hooks, supabase_functions.migrations
  to postgres, anon, authenticated, service_role;
grant usage on sequence supabase_functions.hooks_id_seq
  to postgres, anon, authenticated, service_role;

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
  v_request bigint;
begin
  if v_url is null or v_url = 'null' then
    raise exception 'url argument is missing';
  elsif v_method = 'GET' then
    v_request := net.http_get(v_url, v_params, v_headers, v_timeout);
  elsif v_method = 'POST' then
    v_request := net.http_post(
      v_url,
      jsonb_build_object(
        'type', tg_op, 'table', tg_table_name, 'schema', tg_table_schema,
        'record', case when tg_op <> 'DELETE' then to_jsonb(new) end,
        'old_record', case when tg_op <> 'INSERT' then to_jsonb(old) end),
      v_params, v_headers, v_timeout);
  else
    raise exception 'method argument % is invalid', coalesce(v_method, 'null');
  end if;
  insert into supabase_functions.hooks (hook_table_id, hook_name, request_id)
  values (tg_relid, tg_name, v_request);
  return new;
end
$$;
grant execute on function supabase_functions.http_request()
  to postgres, anon, authenticated, service_role;
