-- pg_net's SQL surface (0.20). The requests are sent by local/platform/pg-net/worker.ts. The script
-- of the extension pg_net (extensions.ts). As in the real one everybody may use the schema: what a
-- caller must not see must not be left there.

create schema net;

create domain net.http_method as text check (value in ('GET', 'POST', 'DELETE'));

-- Unlogged both, as in the real one: a crash of the server empties them and starts the ids over.
create unlogged table net.http_request_queue (
  id bigserial,
  method net.http_method not null,
  url text not null,
  headers jsonb,
  body bytea,
  timeout_milliseconds int not null
);

create unlogged table net._http_response (
  id bigint,
  status_code int,
  content_type text,
  headers jsonb,
  content text,
  timed_out bool,
  error_msg text,
  created timestamptz not null default now()
);
create index _http_response_created_idx on net._http_response (created);

create type net.request_status as enum ('PENDING', 'SUCCESS', 'ERROR');
create type net.http_response as (status_code int, headers jsonb, body text);
create type net.http_response_result as (status net.request_status, message text, response net.http_response);

create function net.wake() returns void
language plpgsql
as $$
begin
  perform pg_notify('pg_net_wake', '');
end
$$;

-- Null for null, so that a parameter that is null is left out.
create function net._urlencode_string(string varchar) returns text
language sql immutable strict
as $$
  select coalesce(string_agg(
           case when c ~ '^[A-Za-z0-9._~-]$' then c
                else regexp_replace(upper(encode(convert_to(c, 'utf8'), 'hex')), '(..)', '%\1', 'g') end,
           '' order by n), '')
    from regexp_split_to_table(string, '') with ordinality as s (c, n)
$$;

-- Reads an address as libcurl does: the scheme in small letters, a path at least, the parameters
-- before the fragment. The real one says "Out of memory" and the like of a broken address, since it
-- looks the fault up in the wrong list.
create function net._encode_url_with_params_array(url text, params_array text[]) returns text
language plpgsql immutable strict
as $$
declare
  v_parts constant text[] := regexp_match(url,
    '^([a-z][a-z0-9+.-]*)://((?:[^/?#@]*@)?(?:\[[^][]+\]|[^][/?#@:]+))(?::([0-9]{1,5}))?'
    '(/[^?#]*)?(?:\?([^#]*))?(#.*)?$', 'i');
  v_query constant text := concat_ws('&', nullif(v_parts[5], ''),
    nullif(array_to_string(params_array, '&'), ''));
begin
  if v_parts is null or url ~ '[[:space:][:cntrl:]]' or v_parts[3]::int > 65535 then
    raise exception 'Bad URL: %', url using errcode = 'internal_error';
  end if;
  return lower(v_parts[1]) || '://' || v_parts[2] || coalesce(':' || v_parts[3], '')
    || coalesce(v_parts[4], '/') || coalesce('?' || nullif(v_query, ''), '')
    || coalesce(v_parts[6], '');
end
$$;

create function net._enqueue(
  p_method text, p_url text, p_params jsonb, p_headers jsonb, p_body jsonb, p_timeout int
) returns bigint
language plpgsql
as $$
declare
  v_params text[];
  v_id bigint;
begin
  select coalesce(array_agg(net._urlencode_string(key) || '=' || net._urlencode_string(value)), '{}')
    into v_params
    from jsonb_each_text(p_params);
  insert into net.http_request_queue (method, url, headers, body, timeout_milliseconds)
  values (p_method, net._encode_url_with_params_array(p_url, v_params), p_headers,
          convert_to(p_body::text, 'utf8'), p_timeout)
  returning id into v_id;
  perform net.wake();
  return v_id;
end
$$;

create function net.http_get(
  url text,
  params jsonb default '{}'::jsonb,
  headers jsonb default '{}'::jsonb,
  timeout_milliseconds int default 5000
) returns bigint
language plpgsql
as $$
begin
  return net._enqueue('GET', url, params, headers, null, timeout_milliseconds);
end
$$;

create function net.http_post(
  url text,
  body jsonb default '{}'::jsonb,
  params jsonb default '{}'::jsonb,
  headers jsonb default '{"Content-Type": "application/json"}'::jsonb,
  timeout_milliseconds int default 5000
) returns bigint
language plpgsql
as $$
declare
  v_content_type text;
begin
  select value into v_content_type
    from jsonb_each_text(coalesce(headers, '{}'::jsonb))
   where lower(key) = 'content-type'
   limit 1;
  if v_content_type is null then
    headers := headers || '{"Content-Type": "application/json"}'::jsonb;
  elsif v_content_type <> 'application/json' then
    raise exception 'Content-Type header must be "application/json"';
  end if;
  return net._enqueue('POST', url, params, headers, body, timeout_milliseconds);
end
$$;

create function net.http_delete(
  url text,
  params jsonb default '{}'::jsonb,
  headers jsonb default '{}'::jsonb,
  timeout_milliseconds int default 5000,
  body jsonb default null
) returns bigint
language plpgsql
as $$
begin
  return net._enqueue('DELETE', url, params, headers, body, timeout_milliseconds);
end
$$;

create function net._http_collect_response(request_id bigint, async bool default true)
returns net.http_response_result
language plpgsql
as $$
declare
  v_row net._http_response;
begin
  loop
    select * into v_row from net._http_response r where r.id = request_id;
    exit when found or async;
    perform pg_sleep(0.05);
  end loop;
  if v_row.id is null or v_row.error_msg is not null then
    return ('ERROR', coalesce(v_row.error_msg, 'request matching request_id not found'), null)::net.http_response_result;
  end if;
  return ('SUCCESS', 'ok', (v_row.status_code, v_row.headers, v_row.content)::net.http_response)::net.http_response_result;
end
$$;

grant usage on schema net to public;
grant all on all sequences in schema net to public;
grant all on all tables in schema net to public;
