-- Checks by a subset of JSON Schema, since not every database has pg_jsonschema

-- Returns the first fault of a value against a JSON Schema as a sentence; null when the value fits.
-- The number 1.0 is an integer. A field "wanted" in a schema of the engine takes the place of the
-- keyword in the sentence.
-- p_value: null of SQL means that the value is missing.
-- p_path: the value's name in the sentence.
create function millrace.schema_fault(p_schema jsonb, p_value jsonb, p_path text)
returns text
immutable
as $$
  v_type text := jsonb_typeof(p_value);
  v_text text := case v_type when 'string' then p_value #>> '{}' end;
  v_size numeric := case v_type
    when 'string' then length(v_text)
    when 'number' then p_value::numeric
    when 'array' then jsonb_array_length(p_value)
    when 'object' then (select count(*) from jsonb_object_keys(p_value))
  end;
  v_broken text := case
    when p_value is null then 'must be given'
    when not p_schema -> 'type' ? v_type
      and not (p_schema -> 'type' ? 'integer' and v_type = 'number' and v_size = trunc(v_size))
      then 'must be of type ' || array_to_string(array(
        select t #>> '{}' from jsonb_path_query(p_schema, '$.type[*]') t), ' or ')
    when p_schema ? 'enum'
      and p_value not in (select e from jsonb_array_elements(p_schema -> 'enum') e)
      then 'must be one of ' || (
        select string_agg(millrace.cut_text(e.value::text, 100), ', ' order by e.ordinality)
        from jsonb_array_elements(p_schema -> 'enum') with ordinality e)
    when p_schema -> 'const' <> p_value
      then 'must be ' || millrace.cut_text((p_schema -> 'const')::text, 100)
    when v_text !~ (p_schema ->> 'pattern')
      then format('must match the pattern %s', p_schema ->> 'pattern')
    else (
      select regexp_replace(format(k.says, p_schema ->> k.keyword), '\m(1 [a-z]+)s$', '\1')
      from (values
        ('minLength', 'string', '{-1}'::int[], 'must have at least %s characters'),
        ('maxLength', 'string', '{1}', 'must have at most %s characters'),
        ('minItems', 'array', '{-1}', 'must have at least %s'),
        ('maxItems', 'array', '{1}', 'must have at most %s'),
        ('minProperties', 'object', '{-1}', 'must have at least %s fields'),
        ('minimum', 'number', '{-1}', 'must be at least %s'),
        ('maximum', 'number', '{1}', 'must be at most %s'),
        ('exclusiveMinimum', 'number', '{-1, 0}', 'must be above %s'),
        ('exclusiveMaximum', 'number', '{0, 1}', 'must be below %s')) k(keyword, type, faulty, says)
      where k.type = v_type
        and sign(v_size - (p_schema ->> k.keyword)::numeric) = any (k.faulty)
      limit 1)
  end;

return coalesce((
  -- The first fault of a part. Missing fields come first, then present fields, or items.
  select f.sentence
  from (
    select r.ordinal - 1000000 as ordinal, r.name,
      coalesce(p_schema -> 'properties' -> r.name, '{}') as schema, null::jsonb as value
    from jsonb_array_elements_text(p_schema -> 'required') with ordinality r(name, ordinal)
    where v_type = 'object' and not p_value ? r.name
    union all
    select row_number() over (order by o.key), o.key,
      coalesce(p_schema -> 'properties' -> o.key, p_schema -> 'additionalProperties'), o.value
    from jsonb_each(case v_type when 'object' then p_value end) o
    union all
    select i.ordinal, null, p_schema -> 'items', i.value
    from jsonb_array_elements(case when v_type = 'array' and v_broken is null then p_value end)
      with ordinality i(value, ordinal)
  ) p
  cross join lateral (
    select p_path || case
        when p.name is null then format('[%s]', p.ordinal - 1)
        when p.name ~ '^[A-Za-z_][A-Za-z0-9_]*$' then '.' || p.name
        else format('[%s]', to_json(p.name))
      end as path) n
  cross join lateral (
    select case
        when p.schema = 'false' then n.path || ' is not known; known here: ' || coalesce((
          select string_agg(k, ', ' order by k)
          from jsonb_object_keys(p_schema -> 'properties') k), 'nothing')
        else millrace.schema_fault(p.schema, p.value, n.path)
      end as sentence
    -- The offset has Postgres compute the fault once. Inlined, it would be computed twice at each
    -- level.
    offset 0) f
  where f.sentence is not null
  order by p.ordinal
  limit 1), p_path || case
    when p_value is null then ' is missing'
    when v_type = 'array' and v_broken ~ '^must have' then format(
      ' has %s item%s', v_size, case when v_size <> 1 then 's' end)
    else ' is ' || millrace.cut_text(p_value::text, 100)
  end || ', but ' || case when v_broken is not null then coalesce(
    'must be ' || (p_schema ->> 'wanted'), (
      select format('must be a %snumber from %s to %s',
        case when p_schema -> 'type' ? 'integer' then 'whole ' else '' end,
        p_schema ->> 'minimum', p_schema ->> 'maximum')
      where p_schema ?& '{minimum,maximum}'), v_broken) end, (
  select format('%s fits none of what is allowed: %s', p_path,
    string_agg(f, '; or ' order by s.ordinal))
  from jsonb_array_elements(p_schema -> 'anyOf') with ordinality s(schema, ordinal)
  cross join millrace.schema_fault(s.schema, p_value, p_path) f
  having bool_and(f is not null)));
$$;

-- Raises an error with a remedy as its hint.
-- p_what: the message; null raises nothing.
-- p_code: MR001 and others, see docs/errors.md.
create function millrace.refuse(p_what text, p_remedy text, p_code text default 'MR001')
as $$
if p_what is not null then
  raise exception '%', p_what using errcode = p_code, hint = p_remedy;
end if;
$$;

-- Returns a text, cut to p_most characters with … at the end where it is longer.
create function millrace.cut_text(p_text text, p_most int default 2000) returns text
immutable
as $$
select case when length(p_text) > p_most then left(p_text, p_most) || '…' else p_text end
$$;

-- Returns a payload as {"value": …}. Of one over 100 kB returns {"cut": …, "bytes": …} with the
-- first 20,000 characters of its text.
create function millrace.payload_json(p_value jsonb) returns jsonb
immutable
as $$
select case
  when octet_length(p_value::text) > 100000 then jsonb_build_object(
    'cut', left(p_value::text, 20000), 'bytes', octet_length(p_value::text))
  when p_value is not null then jsonb_build_object('value', p_value)
end
$$;
