-- Chapter 5: what a decision's schema may say
--
-- A small subset of JSON Schema of the engine's own, since the extension pg_jsonschema is not to be had everywhere.
-- What it does not know is refused when the pipeline is defined, so that no rule is silently left out.

create or replace function millrace.json_path(p_path text, p_key text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  return p_path || case when p_key ~ '^[A-Za-z_][A-Za-z0-9_]*$' then '.' || p_key else format('[%s]', to_json(p_key)) end;
end
$$;
comment on function millrace.json_path(text, text) is 'The path of an object''s field, as messages show it.';

create or replace function millrace.refuse_schema(p_path text, p_value jsonb, p_wanted text, p_hint text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception '% is %, but must be %', p_path, coalesce(millrace.short_json(p_value), 'missing'), p_wanted using errcode = 'MR001', hint = p_hint;
end
$$;
comment on function millrace.refuse_schema(text, jsonb, text, text) is 'Raises MR001 about one keyword of a JSON schema.';

create or replace function millrace.short_json(p_value jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  return case when length(p_value::text) > 100 then left(p_value::text, 100) || '…' else p_value::text end;
end
$$;
comment on function millrace.short_json(jsonb) is 'A value for a message, cut after 100 characters.';

-- One number of a schema, and that a lower bound is not above its upper one.
create or replace function millrace.check_schema_bounds(p_schema jsonb, p_path text, p_low text, p_high text, p_count boolean) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
  v_number numeric;
begin
  foreach v_key in array array[p_low, p_high] loop
    continue when not p_schema ? v_key;
    v_number := case when jsonb_typeof(p_schema -> v_key) = 'number' then (p_schema ->> v_key)::numeric end;
    if v_number is null or (p_count and (v_number < 0 or trunc(v_number) <> v_number)) then
      perform millrace.refuse_schema(p_path || '.' || v_key, p_schema -> v_key, case when p_count then 'a whole number from 0' else 'a number' end, 'Set it to such a number, or leave it out.');
    end if;
  end loop;
  if (p_schema ->> p_low)::numeric > (p_schema ->> p_high)::numeric then
    perform millrace.refuse_schema(p_path || '.' || p_low, p_schema -> p_low, format('at most %s, which is %s', p_high, p_schema -> p_high), 'No value could fit: correct one of the two.');
  end if;
end
$$;
comment on function millrace.check_schema_bounds(jsonb, text, text, text, boolean) is 'Raises MR001 unless the two bounds of a schema are absent or numbers (of a count: whole, from 0) in order.';

create or replace function millrace.check_schema_pattern(p_schema jsonb, p_path text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(p_schema -> 'pattern') <> 'string' then
    perform millrace.refuse_schema(p_path || '.pattern', p_schema -> 'pattern', 'a regular expression', 'Write it as a text.');
  end if;
  perform '' ~ (p_schema ->> 'pattern');
exception when invalid_regular_expression then
  perform millrace.refuse_schema(p_path || '.pattern', p_schema -> 'pattern', format('a regular expression that Postgres can read (%s)', sqlerrm), 'Correct or simplify it; Postgres reads most of JavaScript''s syntax.');
end
$$;
comment on function millrace.check_schema_pattern(jsonb, text) is 'Raises MR001 unless the pattern of a schema is a regular expression of Postgres.';

create or replace function millrace.check_schema_object(p_schema jsonb, p_path text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
begin
  if p_schema ? 'properties' and jsonb_typeof(p_schema -> 'properties') <> 'object' then
    perform millrace.refuse_schema(p_path || '.properties', p_schema -> 'properties', 'an object of schemas', 'Write {"properties": {"verdict": {"enum": ["accept", "reject"]}}}.');
  end if;
  for v_key in select k from jsonb_object_keys(coalesce(p_schema -> 'properties', '{}')) k loop
    perform millrace.check_json_schema(p_schema -> 'properties' -> v_key, millrace.json_path(p_path || '.properties', v_key));
  end loop;
  if p_schema ? 'additionalProperties' and p_schema -> 'additionalProperties' not in ('true', 'false', '{}') then
    perform millrace.refuse_schema(p_path || '.additionalProperties', p_schema -> 'additionalProperties', 'true or false', 'Name each field under properties, or allow any others with true.');
  end if;
  if p_schema ? 'required' and (jsonb_typeof(p_schema -> 'required') <> 'array' or jsonb_path_exists(p_schema, 'strict $.required[*] ? (@.type() != "string")')) then
    perform millrace.refuse_schema(p_path || '.required', p_schema -> 'required', 'a list of names', 'Write {"required": ["verdict"]}.');
  end if;
  for v_key in select k from jsonb_array_elements_text(coalesce(p_schema -> 'required', '[]')) k loop
    if p_schema -> 'additionalProperties' = 'false' and not coalesce(p_schema -> 'properties' ? v_key, false) then
      perform millrace.refuse_schema(p_path || '.required', p_schema -> 'required', format('a list of fields under properties, which %s is not', to_json(v_key)), 'No value could fit: add the field to properties, or take it out of required.');
    end if;
  end loop;
end
$$;
comment on function millrace.check_schema_object(jsonb, text) is 'Raises MR001 unless what a schema says of objects is well formed.';

create or replace function millrace.check_json_schema(p_schema jsonb, p_path text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_known text[] := array['type', 'enum', 'const', 'anyOf', 'properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems', 'minLength', 'maxLength', 'pattern',
    'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'title', 'description', 'default', 'format', '$schema'];
  v_hint text := 'Decisions are checked by a small subset of JSON Schema: type, enum, const, anyOf, properties, required, additionalProperties (true or false), items, minItems, maxItems, '
    'minLength, maxLength, pattern, minimum, maximum, exclusiveMinimum and exclusiveMaximum. Title, description, default, format and $schema may stand there, but check nothing.';
  v_key text;
  v_place int;
begin
  if jsonb_typeof(p_schema) is distinct from 'object' then
    perform millrace.refuse_schema(p_path, p_schema, 'a JSON schema', 'Write an object such as {"type": "string"}; {} takes any value.');
  end if;
  for v_key in select k from jsonb_object_keys(p_schema) k where k <> all (v_known) order by k loop
    raise exception '% is not known', millrace.json_path(p_path, v_key) using errcode = 'MR001', hint = v_hint;
  end loop;
  if p_schema -> 'type' = '[]' or exists (
      select from jsonb_path_query(p_schema, '$.type[*]') t
      where jsonb_typeof(t) <> 'string' or t #>> '{}' not in ('null', 'boolean', 'integer', 'number', 'string', 'array', 'object')) then
    perform millrace.refuse_schema(p_path || '.type', p_schema -> 'type', 'null, boolean, integer, number, string, array or object, or a list of these', 'Correct the type, or leave it out.');
  end if;
  if p_schema ? 'enum' and (jsonb_typeof(p_schema -> 'enum') <> 'array' or p_schema -> 'enum' = '[]') then
    perform millrace.refuse_schema(p_path || '.enum', p_schema -> 'enum', 'a list of at least one value', 'Write {"enum": ["accept", "reject"]}.');
  end if;
  if p_schema ? 'anyOf' and (jsonb_typeof(p_schema -> 'anyOf') <> 'array' or p_schema -> 'anyOf' = '[]') then
    perform millrace.refuse_schema(p_path || '.anyOf', p_schema -> 'anyOf', 'a list of at least one schema', 'Write {"anyOf": [{"type": "string"}, {"type": "null"}]}.');
  end if;
  for v_place in 0 .. coalesce(jsonb_array_length(p_schema -> 'anyOf'), 0) - 1 loop
    perform millrace.check_json_schema(p_schema -> 'anyOf' -> v_place, format('%s.anyOf[%s]', p_path, v_place));
  end loop;
  if p_schema ? 'items' then
    perform millrace.check_json_schema(p_schema -> 'items', p_path || '.items');
  end if;
  perform millrace.check_schema_object(p_schema, p_path);
  perform millrace.check_schema_pattern(p_schema, p_path);
  perform millrace.check_schema_bounds(p_schema, p_path, 'minItems', 'maxItems', true);
  perform millrace.check_schema_bounds(p_schema, p_path, 'minLength', 'maxLength', true);
  perform millrace.check_schema_bounds(p_schema, p_path, 'minimum', 'maximum', false);
  perform millrace.check_schema_bounds(p_schema, p_path, 'exclusiveMinimum', 'exclusiveMaximum', false);
end
$$;
comment on function millrace.check_json_schema(jsonb, text) is 'Raises MR001, naming the path and the remedy, unless this is a JSON schema of the subset that decisions are checked by.';

create or replace function millrace.json_is(p_value jsonb, p_type text) returns boolean
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  return jsonb_typeof(p_value) = p_type
    or (p_type = 'integer' and jsonb_typeof(p_value) = 'number' and trunc(p_value::numeric) = p_value::numeric);
end
$$;
comment on function millrace.json_is(jsonb, text) is 'Whether a value has a type of JSON Schema; 1.0 is an integer.';

-- What a value may be, whatever its type; the first fault, or null.
create or replace function millrace.value_fault(p_schema jsonb, p_value jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_types text[] := array(select t #>> '{}' from jsonb_path_query(p_schema, '$.type[*]') t);
begin
  return case
    when cardinality(v_types) > 0 and not exists (select from unnest(v_types) t where millrace.json_is(p_value, t)) then 'must be of type ' || array_to_string(v_types, ' or ')
    when p_schema ? 'enum' and not exists (select from jsonb_array_elements(p_schema -> 'enum') e where e = p_value)
      then 'must be one of ' || (select string_agg(millrace.short_json(e.value), ', ' order by e.ordinality) from jsonb_array_elements(p_schema -> 'enum') with ordinality e)
    when p_schema ? 'const' and p_schema -> 'const' <> p_value then 'must be ' || millrace.short_json(p_schema -> 'const')
  end;
end
$$;
comment on function millrace.value_fault(jsonb, jsonb) is 'How a value breaks type, enum or const of a schema; null when it does not.';

create or replace function millrace.scalar_fault(p_schema jsonb, p_value jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_text text := case when jsonb_typeof(p_value) = 'string' then p_value #>> '{}' end;
  v_number numeric := case when jsonb_typeof(p_value) = 'number' then p_value::numeric end;
begin
  return case
    when length(v_text) < (p_schema ->> 'minLength')::numeric then format('must have at least %s characters', p_schema ->> 'minLength')
    when length(v_text) > (p_schema ->> 'maxLength')::numeric then format('must have at most %s characters', p_schema ->> 'maxLength')
    when v_text !~ (p_schema ->> 'pattern') then format('must match the pattern %s', p_schema ->> 'pattern')
    when v_number < (p_schema ->> 'minimum')::numeric then format('must be at least %s', p_schema ->> 'minimum')
    when v_number > (p_schema ->> 'maximum')::numeric then format('must be at most %s', p_schema ->> 'maximum')
    when v_number <= (p_schema ->> 'exclusiveMinimum')::numeric then format('must be above %s', p_schema ->> 'exclusiveMinimum')
    when v_number >= (p_schema ->> 'exclusiveMaximum')::numeric then format('must be below %s', p_schema ->> 'exclusiveMaximum')
  end;
end
$$;
comment on function millrace.scalar_fault(jsonb, jsonb) is 'How a text or a number breaks the bounds of a schema; null when it does not.';

create or replace function millrace.object_fault(p_schema jsonb, p_value jsonb, p_path text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
  v_fault text;
begin
  for v_key in select r #>> '{}' from jsonb_array_elements(coalesce(p_schema -> 'required', '[]')) r loop
    if not p_value ? v_key then
      return format('%s is missing, but must be given', millrace.json_path(p_path, v_key));
    end if;
  end loop;
  for v_key in select k from jsonb_object_keys(p_value) k order by k loop
    if p_schema -> 'properties' ? v_key then
      v_fault := millrace.schema_fault(p_schema -> 'properties' -> v_key, p_value -> v_key, millrace.json_path(p_path, v_key));
      if v_fault is not null then
        return v_fault;
      end if;
    elsif p_schema -> 'additionalProperties' = 'false' then
      return format('%s is not known; known here: %s', millrace.json_path(p_path, v_key),
        coalesce((select string_agg(k, ', ' order by k) from jsonb_object_keys(coalesce(p_schema -> 'properties', '{}')) k), 'nothing'));
    end if;
  end loop;
  return null;
end
$$;
comment on function millrace.object_fault(jsonb, jsonb, text) is 'How an object breaks a schema, with the path; null when it fits.';

create or replace function millrace.array_fault(p_schema jsonb, p_value jsonb, p_path text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_length int := jsonb_array_length(p_value);
  v_item record;
  v_fault text;
begin
  if v_length < (p_schema ->> 'minItems')::numeric or v_length > (p_schema ->> 'maxItems')::numeric then
    return format('%s has %s items, but must have %s', p_path, v_length,
      case when v_length < (p_schema ->> 'minItems')::numeric then 'at least ' || (p_schema ->> 'minItems') else 'at most ' || (p_schema ->> 'maxItems') end);
  end if;
  if p_schema ? 'items' then
    for v_item in select e.value, e.ordinality - 1 as place from jsonb_array_elements(p_value) with ordinality e order by e.ordinality loop
      v_fault := millrace.schema_fault(p_schema -> 'items', v_item.value, format('%s[%s]', p_path, v_item.place));
      if v_fault is not null then
        return v_fault;
      end if;
    end loop;
  end if;
  return null;
end
$$;
comment on function millrace.array_fault(jsonb, jsonb, text) is 'How a list breaks a schema, with the path; null when it fits.';

create or replace function millrace.schema_fault(p_schema jsonb, p_value jsonb, p_path text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault text := coalesce(millrace.value_fault(p_schema, p_value), millrace.scalar_fault(p_schema, p_value));
  v_faults text[];
begin
  if v_fault is not null then
    return format('%s is %s, but %s', p_path, millrace.short_json(p_value), v_fault);
  end if;
  v_fault := case jsonb_typeof(p_value)
    when 'object' then millrace.object_fault(p_schema, p_value, p_path)
    when 'array' then millrace.array_fault(p_schema, p_value, p_path) end;
  if v_fault is null and p_schema ? 'anyOf' then
    v_faults := array(select millrace.schema_fault(s.value, p_value, p_path) from jsonb_array_elements(p_schema -> 'anyOf') with ordinality s order by s.ordinality);
    if array_position(v_faults, null) is null then
      return format('%s fits none of what is allowed: %s', p_path, array_to_string(v_faults, '; or '));
    end if;
  end if;
  return v_fault;
end
$$;
comment on function millrace.schema_fault(jsonb, jsonb, text) is 'The first fault of a value against a schema that check_json_schema() accepts, as one sentence with the path; null when the value fits.';
