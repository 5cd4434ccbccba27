-- JSON Schema: whether a value fits a schema, and what a decision's schema may say
--
-- A small subset of the engine's own, since the extension pg_jsonschema is not to be had
-- everywhere. Two kinds of schema are read here: that of definitions
-- (millrace.definition_schema()), and those by which people's decisions are checked. The first has
-- $ref, oneOf by a field "kind", schemas for any other field and bounds on the number of fields
-- besides; its "wanted" and "remedy" say what a value must be and what to do.

-- Appends a field to a path, as messages show it.
create or replace function millrace.json_path(p_path text, p_key text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return p_path || case
    when p_key ~ '^[A-Za-z_][A-Za-z0-9_]*$' then '.' || p_key
    else format('[%s]', to_json(p_key))
  end;
end
$$;

-- Cuts a value for a message after 100 characters.
create or replace function millrace.short_json(p_value jsonb) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case
    when length(p_value::text) > 100 then left(p_value::text, 100) || '…'
    else p_value::text
  end;
end
$$;

-- Puts in place of a $ref the part of the schema that it names, with the keywords beside it.
create or replace function millrace.resolve_ref(p_root jsonb, p_schema jsonb) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_schema ? '$ref' then
      (p_root #> string_to_array(substr(p_schema ->> '$ref', 3), '/')) || (p_schema - '$ref')
    else p_schema
  end
$$;

-- Chooses, of the alternatives of a oneOf, the one for the kind of this value; a kind may be the
-- default of one.
create or replace function millrace.alternative_for(p_schema jsonb, p_value jsonb) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select a
  from jsonb_array_elements(p_schema -> 'oneOf') a
  where a #> '{properties,kind,enum}'
    ? coalesce(p_value ->> 'kind', a #>> '{properties,kind,default}')
$$;

-- Says what a schema wants, as messages complete "must be …"; null where each rule says it for
-- itself.
create or replace function millrace.wanted_by(p_schema jsonb) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(p_schema ->> 'wanted', format('a %snumber from %s to %s',
    case when p_schema -> 'type' ? 'integer' then 'whole ' else '' end,
    p_schema ->> 'minimum', p_schema ->> 'maximum'))
  where p_schema ? 'wanted' or p_schema ?& array['minimum', 'maximum']
$$;

-- Says how a value breaks type, enum or const of a schema; null when it does not. 1.0 is an
-- integer.
create or replace function millrace.value_fault(p_schema jsonb, p_value jsonb) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type text := jsonb_typeof(p_value);
begin
  if p_schema ? 'type' and not p_schema -> 'type' ? v_type and not (
      v_type = 'number'
      and p_schema -> 'type' ? 'integer'
      and trunc(p_value::numeric) = p_value::numeric) then
    return 'must be of type '
      || array_to_string(array(select t #>> '{}' from jsonb_path_query(p_schema, '$.type[*]') t),
        ' or ');
  elsif p_schema ? 'enum' and not exists (
      select
      from jsonb_array_elements(p_schema -> 'enum') e
      where e = p_value) then
    return 'must be one of ' || (
      select string_agg(millrace.short_json(e.value), ', ' order by e.ordinality)
      from jsonb_array_elements(p_schema -> 'enum') with ordinality e);
  elsif p_schema ? 'const' and p_schema -> 'const' <> p_value then
    return 'must be ' || millrace.short_json(p_schema -> 'const');
  end if;
  return null;
end
$$;

-- Says how a text or a number breaks the bounds of a schema; null when it does not.
create or replace function millrace.scalar_fault(p_schema jsonb, p_value jsonb) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_text text := case when jsonb_typeof(p_value) = 'string' then p_value #>> '{}' end;
  v_number numeric := case when jsonb_typeof(p_value) = 'number' then p_value::numeric end;
begin
  return case
    when v_text is null and v_number is null then null
    when length(v_text) < (p_schema ->> 'minLength')::numeric
      then format('must have at least %s characters', p_schema ->> 'minLength')
    when length(v_text) > (p_schema ->> 'maxLength')::numeric
      then format('must have at most %s characters', p_schema ->> 'maxLength')
    when v_text !~ (p_schema ->> 'pattern')
      then format('must match the pattern %s', p_schema ->> 'pattern')
    when v_number < (p_schema ->> 'minimum')::numeric
      then format('must be at least %s', p_schema ->> 'minimum')
    when v_number > (p_schema ->> 'maximum')::numeric
      then format('must be at most %s', p_schema ->> 'maximum')
    when v_number <= (p_schema ->> 'exclusiveMinimum')::numeric
      then format('must be above %s', p_schema ->> 'exclusiveMinimum')
    when v_number >= (p_schema ->> 'exclusiveMaximum')::numeric
      then format('must be below %s', p_schema ->> 'exclusiveMaximum')
  end;
end
$$;

-- Builds a fault: the sentence that says it, a hint on what to set, and the remedy that the schema
-- names.
create or replace function millrace.fault_of(
  p_schema jsonb,
  p_sentence text,
  p_otherwise text,
  p_required boolean)
returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'sentence', p_sentence || coalesce('must be ' || w.wanted, p_otherwise),
    'hint', 'Set it to ' || coalesce(w.wanted, 'such a value')
      || case when p_required then '.' else ', or leave it out.' end,
    'remedy', p_schema -> 'remedy')
  from (select millrace.wanted_by(p_schema) as wanted) w
$$;

-- Finds the first fault among the fields of an object.
create or replace function millrace.object_fault(
  p_root jsonb,
  p_schema jsonb,
  p_value jsonb,
  p_path text)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count int := (select count(*) from jsonb_object_keys(p_value));
  v_key text;
  v_field jsonb;
  v_fault jsonb;
begin
  for v_key in select r #>> '{}' from jsonb_array_elements(p_schema -> 'required') r loop
    if not p_value ? v_key then
      return millrace.fault_of(
        millrace.resolve_ref(p_root, coalesce(p_schema -> 'properties' -> v_key, '{}')),
        format('%s is missing, but ', millrace.json_path(p_path, v_key)), 'must be given', true);
    end if;
  end loop;
  for v_key in select k from jsonb_object_keys(p_value) k order by k loop
    v_field := coalesce(p_schema -> 'properties' -> v_key, p_schema -> 'additionalProperties');
    if v_field = 'false' then
      return jsonb_build_object(
        'sentence', format('%s is not known', millrace.json_path(p_path, v_key)),
        'known', coalesce((
          select string_agg(k, ', ' order by k)
          from jsonb_object_keys(p_schema -> 'properties') k), 'nothing'));
    elsif jsonb_typeof(v_field) = 'object' then
      v_fault := millrace.find_fault(
        p_root, v_field, p_value -> v_key, millrace.json_path(p_path, v_key),
        coalesce(p_schema -> 'required' ? v_key, false));
      if v_fault is not null then
        return v_fault;
      end if;
    end if;
  end loop;
  if v_count < (p_schema ->> 'minProperties')::int
    or v_count > (p_schema ->> 'maxProperties')::int then
    return millrace.fault_of(p_schema, format('%s is %s, but ', p_path,
      millrace.short_json(p_value)),
      'must have another number of fields', false);
  end if;
  return null;
end
$$;

-- Finds the first fault of a value of which there are several kinds. A field that belongs to other
-- kinds is told so.
create or replace function millrace.kind_fault(
  p_root jsonb,
  p_schema jsonb,
  p_value jsonb,
  p_path text)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alternative jsonb := case
    when jsonb_typeof(p_value) = 'object' then millrace.alternative_for(p_schema, p_value) end;
  v_kinds text;
  v_key text;
begin
  if v_alternative is null then
    return millrace.fault_of(p_schema,
      case
        when jsonb_typeof(p_value) <> 'object' then
          format('%s is %s, but must be an object whose kind ', p_path,
            millrace.short_json(p_value))
        when p_value ? 'kind' then
          format('%s.kind is %s, but ', p_path, millrace.short_json(p_value -> 'kind'))
        else format('%s.kind is missing, but ', p_path)
      end, 'must be known', true);
  end if;
  select k, string_agg(e #>> '{}', ', ')
  into v_key, v_kinds
  from jsonb_object_keys(p_value) k
  join jsonb_array_elements(p_schema -> 'oneOf') a on a -> 'properties' ? k
  cross join jsonb_array_elements(a #> '{properties,kind,enum}') e
  where not v_alternative -> 'properties' ? k
  group by k
  order by k
  limit 1;
  if found then
    return jsonb_build_object(
      'sentence', format('%s has no meaning for a %s of kind %s', millrace.json_path(p_path, v_key),
        p_schema ->> 'noun',
        coalesce(p_value ->> 'kind', v_alternative #>> '{properties,kind,default}')),
      'hint', format('It belongs to the kinds %s: leave it out, or change the kind.', v_kinds));
  end if;
  return millrace.object_fault(p_root, v_alternative, p_value, p_path);
end
$$;

-- Finds the first fault of a list or of its items.
create or replace function millrace.array_fault(
  p_root jsonb,
  p_schema jsonb,
  p_value jsonb,
  p_path text)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_length int := jsonb_array_length(p_value);
  v_place int;
  v_fault jsonb;
begin
  if v_length < (p_schema ->> 'minItems')::numeric
    or v_length > (p_schema ->> 'maxItems')::numeric then
    return jsonb_build_object(
      'sentence', format('%s has %s items, but must have %s', p_path, v_length, case
        when v_length < (p_schema ->> 'minItems')::numeric
          then 'at least ' || (p_schema ->> 'minItems')
        else 'at most ' || (p_schema ->> 'maxItems')
      end));
  end if;
  for v_place in 0 .. case when p_schema ? 'items' then v_length else 0 end - 1 loop
    v_fault := millrace.find_fault(
      p_root, p_schema -> 'items', p_value -> v_place, format('%s[%s]', p_path, v_place), true);
    if v_fault is not null then
      return v_fault;
    end if;
  end loop;
  return null;
end
$$;

-- Finds the first fault of a value against a schema: a sentence with the path, a hint and the
-- innermost remedy on the way to it. Null when the value fits.
create or replace function millrace.find_fault(
  p_root jsonb,
  p_schema jsonb,
  p_value jsonb,
  p_path text,
  p_required boolean)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schema jsonb := case
    when p_schema ? '$ref' then millrace.resolve_ref(p_root, p_schema)
    else p_schema
  end;
  v_broken text := coalesce(
    millrace.value_fault(v_schema, p_value), millrace.scalar_fault(v_schema, p_value));
  v_fault jsonb;
  v_faults text[];
begin
  if v_broken is not null then
    return millrace.fault_of(v_schema, format('%s is %s, but ', p_path,
      millrace.short_json(p_value)),
      v_broken, p_required);
  elsif v_schema ? 'oneOf' then
    v_fault := millrace.kind_fault(p_root, v_schema, p_value, p_path);
  elsif jsonb_typeof(p_value) = 'object' then
    v_fault := millrace.object_fault(p_root, v_schema, p_value, p_path);
  elsif jsonb_typeof(p_value) = 'array' then
    v_fault := millrace.array_fault(p_root, v_schema, p_value, p_path);
  end if;
  if v_fault is null and v_schema ? 'anyOf' then
    v_faults := array(
      select millrace.schema_fault(s.value, p_value, p_path)
      from jsonb_array_elements(v_schema -> 'anyOf') with ordinality s
      order by s.ordinality);
    if array_position(v_faults, null) is null then
      return jsonb_build_object('sentence',
        format('%s fits none of what is allowed: %s', p_path, array_to_string(v_faults, '; or ')));
    end if;
  end if;
  -- What is said of several kinds does not help with a field of one.
  if v_fault ->> 'remedy' is null and v_fault is not null and not v_schema ? 'oneOf' then
    return v_fault || jsonb_build_object('remedy', v_schema -> 'remedy');
  end if;
  return v_fault;
end
$$;

-- Says the first fault of a value against a schema that check_json_schema() accepts, as one
-- sentence with the path; null when the value fits.
create or replace function millrace.schema_fault(p_schema jsonb, p_value jsonb, p_path text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault jsonb := millrace.find_fault(p_schema, p_schema, p_value, p_path, true);
begin
  return (v_fault ->> 'sentence') || coalesce('; known here: ' || (v_fault ->> 'known'), '');
end
$$;

-- Fills in what an object or a list that fits a schema leaves out and the schema has a default for.
-- It calls itself for what may leave out something in turn, and takes the rest as it is.
create or replace function millrace.with_defaults(p_root jsonb, p_schema jsonb, p_value jsonb)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schema jsonb := case
    when p_schema ? '$ref' then millrace.resolve_ref(p_root, p_schema)
    else p_schema
  end;
  v_key text;
  v_field jsonb;
  v_given jsonb;
begin
  if jsonb_typeof(p_value) = 'array' then
    return case when jsonb_typeof(p_value -> 0) = 'object' then (
      select jsonb_agg(
        millrace.with_defaults(p_root, v_schema -> 'items', i.value) order by i.place)
      from jsonb_array_elements(p_value) with ordinality i(value, place))
    else p_value end;
  elsif v_schema ? 'oneOf' then
    v_schema := millrace.alternative_for(v_schema, p_value);
  end if;
  for v_key, v_field in
    select f.key, f.value
    from jsonb_each(v_schema -> 'properties') f
    where p_value ? f.key
      or f.value ? 'default'
    union all
    select o.key, v_schema -> 'additionalProperties'
    from jsonb_object_keys(p_value) o(key)
    where jsonb_typeof(v_schema -> 'additionalProperties') = 'object'
  loop
    v_given := coalesce(p_value -> v_key, v_field -> 'default');
    if jsonb_typeof(v_given) in ('object', 'array') then
      v_given := millrace.with_defaults(p_root, v_field, v_given);
    end if;
    if v_given is distinct from p_value -> v_key then
      p_value := p_value || jsonb_build_object(v_key, v_given);
    end if;
  end loop;
  return p_value;
end
$$;

-- Raises MR001 about one keyword of a decision's schema.
create or replace function millrace.refuse_schema(
  p_path text,
  p_value jsonb,
  p_wanted text,
  p_hint text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception '% is %, but must be %',
    p_path, coalesce(millrace.short_json(p_value), 'missing'), p_wanted
    using errcode = 'MR001', hint = p_hint;
end
$$;

-- Raises MR001 unless the two bounds of a schema are absent or numbers (of a count: whole, from 0)
-- in order.
create or replace function millrace.check_schema_bounds(
  p_schema jsonb,
  p_path text,
  p_low text,
  p_high text,
  p_count boolean)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
  v_number numeric;
begin
  foreach v_key in array array[p_low, p_high] loop
    continue when not p_schema ? v_key;
    v_number := case
      when jsonb_typeof(p_schema -> v_key) = 'number' then (p_schema ->> v_key)::numeric
    end;
    if v_number is null or (p_count and (v_number < 0 or trunc(v_number) <> v_number)) then
      perform millrace.refuse_schema(p_path || '.' || v_key, p_schema -> v_key,
        case when p_count then 'a whole number from 0' else 'a number' end,
        'Set it to such a number, or leave it out.');
    end if;
  end loop;
  if (p_schema ->> p_low)::numeric > (p_schema ->> p_high)::numeric then
    perform millrace.refuse_schema(p_path || '.' || p_low, p_schema -> p_low,
      format('at most %s, which is %s', p_high, p_schema -> p_high),
      'No value could fit: correct one of the two.');
  end if;
end
$$;

-- Raises MR001 unless the pattern of a schema is a regular expression that Postgres reads.
create or replace function millrace.check_schema_pattern(p_schema jsonb, p_path text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(p_schema -> 'pattern') <> 'string' then
    perform millrace.refuse_schema(p_path || '.pattern', p_schema -> 'pattern',
      'a regular expression', 'Write it as a text.');
  end if;
  perform '' ~ (p_schema ->> 'pattern');
exception when invalid_regular_expression then
  perform millrace.refuse_schema(p_path || '.pattern', p_schema -> 'pattern',
    format('a regular expression that Postgres can read (%s)', sqlerrm),
    'Correct or simplify it; Postgres reads most of JavaScript''s syntax.');
end
$$;

-- Raises MR001 unless what a schema says of objects is well formed.
create or replace function millrace.check_schema_object(p_schema jsonb, p_path text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_required jsonb := p_schema -> 'required';
  v_key text;
begin
  if p_schema ? 'properties' and jsonb_typeof(p_schema -> 'properties') <> 'object' then
    perform millrace.refuse_schema(p_path || '.properties', p_schema -> 'properties',
      'an object of schemas',
      'Write {"properties": {"verdict": {"enum": ["accept", "reject"]}}}.');
  end if;
  for v_key in select k from jsonb_object_keys(p_schema -> 'properties') k loop
    perform millrace.check_json_schema(
      p_schema -> 'properties' -> v_key, millrace.json_path(p_path || '.properties', v_key));
  end loop;
  if p_schema ? 'additionalProperties'
    and p_schema -> 'additionalProperties' not in ('true', 'false', '{}') then
    perform millrace.refuse_schema(p_path || '.additionalProperties',
      p_schema -> 'additionalProperties',
      'true or false', 'Name each field under properties, or allow any others with true.');
  end if;
  if jsonb_typeof(v_required) <> 'array'
    or jsonb_path_exists(v_required, 'strict $[*] ? (@.type() != "string")') then
    perform millrace.refuse_schema(p_path || '.required', v_required,
      'a list of names', 'Write {"required": ["verdict"]}.');
  end if;
  for v_key in
    select k
    from jsonb_array_elements_text(v_required) k
    where p_schema -> 'additionalProperties' = 'false'
  loop
    if not coalesce(p_schema -> 'properties' ? v_key, false) then
      perform millrace.refuse_schema(p_path || '.required', v_required,
        format('a list of fields under properties, which %s is not', to_json(v_key)),
        'No value could fit: add the field to properties, or take it out of required.');
    end if;
  end loop;
end
$$;

-- Raises MR001 for a keyword that no decision would be checked by, so that no rule is silently left
-- out.
create or replace function millrace.check_schema_keywords(p_schema jsonb, p_path text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_checked text[] := array['type', 'enum', 'const', 'anyOf', 'properties', 'required',
    'additionalProperties', 'items', 'minItems', 'maxItems', 'minLength', 'maxLength', 'pattern',
    'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'];
  v_told text[] := array['title', 'description', 'default', 'format', '$schema'];
  v_key text := (
    select min(k)
    from jsonb_object_keys(p_schema) k
    where k <> all (v_checked || v_told));
begin
  if v_key is not null then
    raise exception '% is not known', millrace.json_path(p_path, v_key)
      using errcode = 'MR001',
        hint = format('Decisions are checked by a small subset of JSON Schema: %s '
          '(additionalProperties is true or '
          'false). These may stand there, but check nothing: %s.',
          array_to_string(v_checked, ', '), array_to_string(v_told, ', '));
  end if;
end
$$;

-- Raises MR001, naming the path and the remedy, unless this is a schema that decisions can be
-- checked by.
create or replace function millrace.check_json_schema(p_schema jsonb, p_path text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_types text[] := array['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'];
  v_place int;
begin
  if jsonb_typeof(p_schema) is distinct from 'object' then
    perform millrace.refuse_schema(p_path, p_schema, 'a JSON schema',
      'Write an object such as {"type": "string"}; {} takes any value.');
  end if;
  perform millrace.check_schema_keywords(p_schema, p_path);
  if p_schema -> 'type' = '[]' or exists (
      select
      from jsonb_path_query(p_schema, '$.type[*]') t
      where jsonb_typeof(t) <> 'string'
        or t #>> '{}' <> all (v_types)) then
    perform millrace.refuse_schema(p_path || '.type', p_schema -> 'type',
      'null, boolean, integer, number, string, array or object, or a list of these',
      'Correct the type, or leave it out.');
  end if;
  if jsonb_typeof(p_schema -> 'enum') <> 'array' or p_schema -> 'enum' = '[]' then
    perform millrace.refuse_schema(p_path || '.enum', p_schema -> 'enum',
      'a list of at least one value', 'Write {"enum": ["accept", "reject"]}.');
  end if;
  if jsonb_typeof(p_schema -> 'anyOf') <> 'array' or p_schema -> 'anyOf' = '[]' then
    perform millrace.refuse_schema(p_path || '.anyOf', p_schema -> 'anyOf',
      'a list of at least one schema', 'Write {"anyOf": [{"type": "string"}, {"type": "null"}]}.');
  end if;
  for v_place in 0 .. coalesce(jsonb_array_length(p_schema -> 'anyOf'), 0) - 1 loop
    perform millrace.check_json_schema(
      p_schema -> 'anyOf' -> v_place, format('%s.anyOf[%s]', p_path, v_place));
  end loop;
  if p_schema ? 'items' then
    perform millrace.check_json_schema(p_schema -> 'items', p_path || '.items');
  end if;
  perform millrace.check_schema_object(p_schema, p_path);
  perform millrace.check_schema_pattern(p_schema, p_path);
  perform millrace.check_schema_bounds(p_schema, p_path, 'minItems', 'maxItems', true);
  perform millrace.check_schema_bounds(p_schema, p_path, 'minLength', 'maxLength', true);
  perform millrace.check_schema_bounds(p_schema, p_path, 'minimum', 'maximum', false);
  perform millrace.check_schema_bounds(p_schema, p_path, 'exclusiveMinimum', 'exclusiveMaximum',
    false);
end
$$;
