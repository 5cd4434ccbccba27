-- JSON Schema: whether a value fits a schema
--
-- A small subset, since not every database has pg_jsonschema, for people's decisions and operators'
-- requests. The engine's own schemas may bound the number of fields besides; "wanted" and "remedy"
-- say what a value must be and what to do.

-- Appends a field to a path, as messages show it.
create function millrace.json_path(p_path text, p_key text) returns text
language plpgsql immutable
as $$
begin
  return p_path || case
    when p_key ~ '^[A-Za-z_][A-Za-z0-9_]*$' then '.' || p_key
    else format('[%s]', to_json(p_key))
  end;
end
$$;

-- Cuts a value for a message after 100 characters.
create function millrace.short_json(p_value jsonb) returns text
language plpgsql immutable
as $$
begin
  return case
    when length(p_value::text) > 100 then left(p_value::text, 100) || '…'
    else p_value::text
  end;
end
$$;

-- Says how a value breaks type, enum or const of a schema; null when it does not. 1.0 is an
-- integer.
create function millrace.value_fault(p_schema jsonb, p_value jsonb) returns text
language plpgsql immutable
as $$
declare
  v_type text := jsonb_typeof(p_value);
  v_text text := case v_type when 'string' then p_value #>> '{}' end;
  v_number numeric := case v_type when 'number' then p_value::numeric end;
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
create function millrace.fault_of(
  p_schema jsonb,
  p_sentence text,
  p_otherwise text,
  p_required boolean)
returns jsonb
language sql immutable
as $$
  select jsonb_build_object(
    'sentence', p_sentence || coalesce('must be ' || w.wanted, p_otherwise),
    'hint', 'Set it to ' || coalesce(w.wanted, 'such a value')
      || case when p_required then '.' else ', or leave it out.' end,
    'remedy', p_schema -> 'remedy')
  from (select (
    select coalesce(p_schema ->> 'wanted', format('a %snumber from %s to %s',
      case when p_schema -> 'type' ? 'integer' then 'whole ' else '' end,
      p_schema ->> 'minimum', p_schema ->> 'maximum'))
    where p_schema ? 'wanted' or p_schema ?& array['minimum', 'maximum']) as wanted) w
$$;

-- Finds the first fault among the fields of an object.
create function millrace.object_fault(
  p_schema jsonb,
  p_value jsonb,
  p_path text)
returns jsonb
language plpgsql immutable
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
        coalesce(p_schema -> 'properties' -> v_key, '{}'),
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
        v_field, p_value -> v_key, millrace.json_path(p_path, v_key),
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

-- Finds the first fault of a list or of its items.
create function millrace.array_fault(
  p_schema jsonb,
  p_value jsonb,
  p_path text)
returns jsonb
language plpgsql immutable
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
      p_schema -> 'items', p_value -> v_place, format('%s[%s]', p_path, v_place), true);
    if v_fault is not null then
      return v_fault;
    end if;
  end loop;
  return null;
end
$$;

-- Finds the first fault of a value against a schema: a sentence with the path, a hint and the
-- innermost remedy. Null when the value fits.
create function millrace.find_fault(
  p_schema jsonb,
  p_value jsonb,
  p_path text,
  p_required boolean)
returns jsonb
language plpgsql immutable
as $$
declare
  v_broken text := millrace.value_fault(p_schema, p_value);
  v_fault jsonb;
  v_faults text[];
begin
  if v_broken is not null then
    return millrace.fault_of(p_schema, format('%s is %s, but ', p_path,
      millrace.short_json(p_value)),
      v_broken, p_required);
  elsif jsonb_typeof(p_value) = 'object' then
    v_fault := millrace.object_fault(p_schema, p_value, p_path);
  elsif jsonb_typeof(p_value) = 'array' then
    v_fault := millrace.array_fault(p_schema, p_value, p_path);
  end if;
  if v_fault is null and p_schema ? 'anyOf' then
    v_faults := array(
      select millrace.schema_fault(s.value, p_value, p_path)
      from jsonb_array_elements(p_schema -> 'anyOf') with ordinality s
      order by s.ordinality);
    if array_position(v_faults, null) is null then
      return jsonb_build_object('sentence',
        format('%s fits none of what is allowed: %s', p_path, array_to_string(v_faults, '; or ')));
    end if;
  end if;
  if v_fault ->> 'remedy' is null and v_fault is not null then
    return v_fault || jsonb_build_object('remedy', p_schema -> 'remedy');
  end if;
  return v_fault;
end
$$;

-- Says the first fault of a value against a schema as one sentence with the path; null when the
-- value fits.
create function millrace.schema_fault(p_schema jsonb, p_value jsonb, p_path text)
returns text
language plpgsql immutable
as $$
declare
  v_fault jsonb := millrace.find_fault(p_schema, p_value, p_path, true);
begin
  return (v_fault ->> 'sentence') || coalesce('; known here: ' || (v_fault ->> 'known'), '');
end
$$;

-- Raises MR001 about one value of a stage's definition.
create function millrace.refuse_value(
  p_stage jsonb,
  p_path text[],
  p_wanted text,
  p_hint text)
returns void
language plpgsql immutable
as $$
begin
  raise exception 'stage %: % is %, but must be %',
    p_stage ->> 'name', array_to_string(p_path, '.'),
    coalesce((p_stage #> p_path)::text, 'missing'), p_wanted
    using errcode = 'MR001', hint = p_hint;
end
$$;

-- Cuts a text that people or services wrote to so many characters.
create function millrace.cut_text(p_text text, p_most int default 2000) returns text
language sql immutable
as $$
  select case when length(p_text) > p_most then left(p_text, p_most) || '…' else p_text end
$$;
