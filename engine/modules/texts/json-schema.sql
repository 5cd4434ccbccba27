-- JSON Schema: whether a value fits a schema
--
-- A small subset, since not every database has pg_jsonschema. The engine's own schemas may bound
-- the number of fields besides; "wanted" and "remedy" say what a value must be and what to do.

-- Cuts a value for a message after 100 characters.
create function millrace.short_json(p_value jsonb) returns text
language sql immutable
as $$
  select millrace.cut_text(p_value::text, 100)
$$;

-- Finds the first fault among the fields of an object, missing ones first, or the items of a list.
create function millrace.part_fault(p_schema jsonb, p_value jsonb, p_path text) returns jsonb
immutable
as $$
declare
  v_fields jsonb := case jsonb_typeof(p_value) when 'object' then p_value end;
  v_part record;
  v_fault jsonb;
begin
  for v_part in
    select r.name, coalesce(p_schema -> 'properties' -> r.name, '{}') as schema,
      null::jsonb as value, r.place - 1000000 as place, true as required
    from jsonb_array_elements_text(p_schema -> 'required') with ordinality r(name, place)
    where not v_fields ? r.name
    union all
    select f.key, coalesce(p_schema -> 'properties' -> f.key, p_schema -> 'additionalProperties'),
      f.value, row_number() over (order by f.key), coalesce(p_schema -> 'required' ? f.key, false)
    from jsonb_each(v_fields) f
    union all
    select null, p_schema -> 'items', i.value, i.place, true
    from jsonb_array_elements(case jsonb_typeof(p_value) when 'array' then p_value end)
      with ordinality i(value, place)
    order by place
  loop
    v_part.name := p_path || case
      when v_part.name is null then format('[%s]', v_part.place - 1)
      when v_part.name ~ '^[A-Za-z_][A-Za-z0-9_]*$' then '.' || v_part.name
      else format('[%s]', to_json(v_part.name))
    end;
    if v_part.schema = 'false' then
      return jsonb_build_object('sentence', v_part.name || ' is not known; known here: '
        || coalesce((
          select string_agg(k, ', ' order by k)
          from jsonb_object_keys(p_schema -> 'properties') k), 'nothing'));
    elsif v_part.value is null or jsonb_typeof(v_part.schema) = 'object' then
      v_fault := millrace.find_fault(v_part.schema, v_part.value, v_part.name, v_part.required);
    end if;
    exit when v_fault is not null;
  end loop;
  return v_fault;
end
$$;

-- Finds the first fault of a value against a schema: a sentence with the path, a hint and the
-- innermost remedy. A value that is missing is null of SQL, and 1.0 is an integer.
create function millrace.find_fault(
  p_schema jsonb, p_value jsonb, p_path text, p_required boolean
) returns jsonb
immutable
as $$
declare
  v_type text := jsonb_typeof(p_value);
  v_text text := case v_type when 'string' then p_value #>> '{}' end;
  v_size numeric := case v_type
    when 'string' then length(v_text)
    when 'number' then p_value::numeric
    when 'array' then jsonb_array_length(p_value)
    when 'object' then (select count(*) from jsonb_object_keys(p_value))
  end;
  v_fault jsonb := millrace.part_fault(p_schema, p_value, p_path);
  v_broken text := case
    when p_value is null then 'must be given'
    when not p_schema -> 'type' ? v_type
      and not (p_schema -> 'type' ? 'integer' and v_type = 'number' and v_size = trunc(v_size))
      then 'must be of type ' || array_to_string(array(
        select t #>> '{}' from jsonb_path_query(p_schema, '$.type[*]') t), ' or ')
    when p_schema ? 'enum'
      and p_value not in (select e from jsonb_array_elements(p_schema -> 'enum') e)
      then 'must be one of ' || (
        select string_agg(millrace.short_json(e.value), ', ' order by e.ordinality)
        from jsonb_array_elements(p_schema -> 'enum') with ordinality e)
    when p_schema -> 'const' <> p_value then 'must be ' || millrace.short_json(p_schema -> 'const')
    when v_text !~ (p_schema ->> 'pattern')
      then format('must match the pattern %s', p_schema ->> 'pattern')
    else (
      select format(k.says, p_schema ->> k.keyword)
      from (values
        ('minLength', 'string', '{-1}'::int[], 'must have at least %s characters'),
        ('maxLength', 'string', '{1}', 'must have at most %s characters'),
        ('minItems', 'array', '{-1}', 'must have at least %s'),
        ('maxItems', 'array', '{1}', 'must have at most %s'),
        ('minProperties', 'object', '{-1}', 'must have another number of fields'),
        ('maxProperties', 'object', '{1}', 'must have another number of fields'),
        ('minimum', 'number', '{-1}', 'must be at least %s'),
        ('maximum', 'number', '{1}', 'must be at most %s'),
        ('exclusiveMinimum', 'number', '{-1, 0}', 'must be above %s'),
        ('exclusiveMaximum', 'number', '{0, 1}', 'must be below %s')) k(keyword, type, faulty, says)
      where k.type = v_type
        and sign(v_size - (p_schema ->> k.keyword)::numeric) = any (k.faulty)
      limit 1)
  end;
  v_wanted text := coalesce(p_schema ->> 'wanted', (
    select format('a %snumber from %s to %s',
      case when p_schema -> 'type' ? 'integer' then 'whole ' else '' end,
      p_schema ->> 'minimum', p_schema ->> 'maximum')
    where p_schema ?& array['minimum', 'maximum']));
  v_faults text[];
begin
  if v_fault is null and v_broken is not null then
    v_fault := jsonb_build_object(
      'sentence', p_path || case
        when p_value is null then ' is missing'
        when v_type = 'array' and v_broken ~ '^must have' then format(' has %s items', v_size)
        else ' is ' || millrace.short_json(p_value)
      end || ', but ' || coalesce('must be ' || v_wanted, v_broken),
      'hint', 'Set it to ' || coalesce(v_wanted, 'such a value')
        || case when p_required then '.' else ', or leave it out.' end);
  elsif v_fault is null and p_schema ? 'anyOf' then
    v_faults := array(
      select millrace.schema_fault(s.value, p_value, p_path)
      from jsonb_array_elements(p_schema -> 'anyOf') with ordinality s
      order by s.ordinality);
    v_fault := case when array_position(v_faults, null) is null then
      jsonb_build_object('sentence', format('%s fits none of what is allowed: %s', p_path,
        array_to_string(v_faults, '; or '))) end;
  end if;
  return jsonb_build_object('remedy', p_schema -> 'remedy') || jsonb_strip_nulls(v_fault);
end
$$;

-- Says the first fault of a value against a schema as one sentence; null when it fits.
create function millrace.schema_fault(p_schema jsonb, p_value jsonb, p_path text)
returns text
language sql immutable
as $$
  select millrace.find_fault(p_schema, p_value, p_path, true) ->> 'sentence'
$$;

-- Raises MR001 about a definition.
create function millrace.refuse_definition(p_what text, p_remedy text)
as $$
begin
  raise exception '%', p_what using errcode = 'MR001', hint = p_remedy;
end
$$;

-- Cuts a text that people or services wrote to so many characters.
create function millrace.cut_text(p_text text, p_most int default 2000) returns text
language sql immutable
as $$
  select case when length(p_text) > p_most then left(p_text, p_most) || '…' else p_text end
$$;
