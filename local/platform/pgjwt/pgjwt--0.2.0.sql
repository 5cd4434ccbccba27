-- The functions of the extension pgjwt: JSON web tokens that are signed with HMAC. The search path
-- of this script (extensions.ts) has the schema of pgcrypto.

create function url_encode(data bytea) returns text
language sql immutable
as $$
  select translate(encode(data, 'base64'), e'+/=\n', '-_')
$$;

create function url_decode(data text) returns bytea
language sql immutable
as $$
  select decode(rpad(translate(data, '-_', '+/'), (length(data) + 3) / 4 * 4, '='), 'base64')
$$;

create function algorithm_sign(signables text, secret text, algorithm text) returns text
language sql immutable
set search_path from current
as $$
  select url_encode(hmac(signables, secret,
    case algorithm
      when 'HS256' then 'sha256'
      when 'HS384' then 'sha384'
      when 'HS512' then 'sha512'
      else ''
    end))
$$;

create function sign(payload json, secret text, algorithm text default 'HS256') returns text
language sql immutable
set search_path from current
as $$
  select signables || '.' || algorithm_sign(signables, secret, algorithm)
    from concat_ws('.',
      url_encode(convert_to(format('{"alg":"%s","typ":"JWT"}', algorithm), 'utf8')),
      url_encode(convert_to(payload::text, 'utf8'))) signables
$$;

create function try_cast_double(inp text) returns double precision
language plpgsql immutable
as $$
begin
  return inp::double precision;
exception
  when others then
    return null;
end
$$;

create function verify(token text, secret text, algorithm text default 'HS256')
returns table (header json, payload json, valid boolean)
language sql immutable
set search_path from current
as $$
  select j.header, j.payload,
         t.parts[3] = algorithm_sign(t.parts[1] || '.' || t.parts[2], secret, algorithm)
         and tstzrange(
           to_timestamp(try_cast_double(j.payload ->> 'nbf')),
           to_timestamp(try_cast_double(j.payload ->> 'exp'))
         ) @> current_timestamp
    from (select string_to_array(token, '.') as parts) t,
         lateral (
           select convert_from(url_decode(t.parts[1]), 'utf8')::json as header,
                  convert_from(url_decode(t.parts[2]), 'utf8')::json as payload
         ) j
$$;
