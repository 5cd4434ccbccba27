-- Checking items: what a worker hands over to be spawned

-- Picks the items' keys that are numbers which a threshold can count, in their one spelling.
create function millrace.item_numbers(p_keys text[]) returns int[]
language plpgsql immutable
as $$
begin
  return array(select k::int from unnest(p_keys) k where k ~ '^(0|[1-9][0-9]{0,8})$');
end
$$;

-- Raises MR002 unless the items of a chunk are objects with keys.
create function millrace.check_items(p_items jsonb) returns void
language plpgsql immutable
as $$
declare
  v_malformed jsonb;
begin
  if jsonb_typeof(p_items) is distinct from 'array' or jsonb_array_length(p_items) > 5000 then
    raise exception 'p_items is %, but must be a list of at most 5000',
        case
          when jsonb_typeof(p_items) = 'array' then jsonb_array_length(p_items) || ' items'
          else coalesce(jsonb_typeof(p_items), 'null')
        end
      using errcode = 'MR002',
        hint = 'Send the items in several chunks, and say p_last with the last one.';
  end if;
  select i into v_malformed
  from jsonb_array_elements(p_items) i
  where jsonb_typeof(i) <> 'object'
    or coalesce(jsonb_typeof(i -> 'key') not in ('string', 'number'), true)
    or length(i ->> 'key') not between 1 and 200
  limit 1;
  if found then
    raise exception 'an item has the key %, but must be an object with a "key" '
        'of 1 to 200 characters',
        coalesce(v_malformed -> 'key', 'null')
      using errcode = 'MR002', hint = 'Give each item a key that is its own, such as its number.';
  end if;
end
$$;

-- Raises MR002 when keys are no numbers where a threshold counts consecutive ones.
create function millrace.check_numbers(
  p_fan_out millrace.fan_outs, p_item_keys text[]
) returns void
language plpgsql
as $$
begin
  if cardinality(millrace.item_numbers(p_item_keys)) < cardinality(p_item_keys)
     and exists (
       select
       from millrace.runs r
       join millrace.version_stages vs on vs.version_id = r.version_id,
         jsonb_array_elements(vs.after) a
       where r.id = p_fan_out.run_id
         and a ->> 'kind' = 'consecutive'
         and (a ->> 'map')::int = p_fan_out.stage_id) then
    raise exception 'an item has the key %, but a threshold counts consecutive numbers',
        (select k from unnest(p_item_keys) k where millrace.item_numbers(array[k]) = '{}' limit 1)
      using errcode = 'MR002',
        hint = 'Use whole numbers up to 999999999, without leading zeros, as keys, '
          'or a threshold of the kind count.';
  end if;
end
$$;

-- Raises MR003 when an item has no row, and MR002 when it names its row in another spelling: runs
-- are filed under the row's own.
create function millrace.check_rows_exist(
  p_child millrace.pipelines, p_item_keys text[], p_entity_ids text[]
) returns void
language plpgsql
as $$
declare
  v_malformed record;
begin
  select i.key, i.entity_id, i.entity ->> p_child.entity_key as spelling into v_malformed
  from unnest(
    p_item_keys, p_entity_ids, millrace.rows_of_entities(p_child.id, p_entity_ids, null)
  ) i(key, entity_id, entity)
  where i.entity is null
    or i.entity ->> p_child.entity_key <> i.entity_id
  limit 1;
  if v_malformed.spelling is not null then
    raise exception 'item % names the row % of table %, whose own spelling is %',
        v_malformed.key, v_malformed.entity_id, p_child.entity_table, v_malformed.spelling
      using errcode = 'MR002', hint = 'Spell it as the table does.';
  elsif v_malformed.key is not null then
    raise exception 'table % has no row % for item %',
        p_child.entity_table, v_malformed.entity_id, v_malformed.key
      using errcode = 'MR003',
        hint = 'Insert the rows first, or name an insert function in the definition.';
  end if;
end
$$;

-- Raises MR004 when two items of a fan-out have one row.
create function millrace.check_rows_differ(
  p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]
) returns void
language plpgsql
as $$
declare
  v_twice record;
begin
  select min(i.key) as key, max(i.key) as other, i.entity_id into v_twice
  from unnest(p_item_keys, p_entity_ids) i(key, entity_id)
  group by i.entity_id
  having count(*) > 1
  limit 1;
  if not found then
    select i.key, r.item_key as other, i.entity_id into v_twice
    from unnest(p_item_keys, p_entity_ids) i(key, entity_id)
    cross join lateral (
      select o.item_key
      from millrace.runs o
      where o.entity_id = i.entity_id
        and o.pipeline_id = p_fan_out.child_pipeline_id
        and o.fan_out_id = p_fan_out.id
        and o.item_key <> i.key
      offset 0) r
    limit 1;
  end if;
  if found then
    raise exception 'the items % and % have the same row, %',
        v_twice.key, v_twice.other, v_twice.entity_id
      using errcode = 'MR004',
        hint = 'Each item needs a row of its own: let the insert function key them apart.';
  end if;
end
$$;

-- Raises MR004 unless the insert function answered one row with an entity id for each item.
create function millrace.check_inserted(
  p_insert regprocedure, p_items jsonb, p_item_keys text[], p_entity_ids text[]
) returns void
language plpgsql stable
as $$
declare
  v_malformed record;
begin
  select key,
    case
      when a.asked is null then 'was not asked for'
      when r.place is null then 'is missing'
      else 'has no entity_id'
    end as fault
  into v_malformed
  from (
    select distinct i ->> 'key' as key, true as asked
    from jsonb_array_elements(p_items) i) a
  full join (
    select u.key, u.entity_id, u.place
    from unnest(p_item_keys, p_entity_ids) with ordinality u(key, entity_id, place)
  ) r using (key)
  where a.asked is null
    or r.entity_id is null
  limit 1;
  if found then
    raise exception 'the insert function % answered % rows for % items: item % %',
        p_insert::regproc, cardinality(p_item_keys),
        (select count(distinct i ->> 'key') from jsonb_array_elements(p_items) i),
        coalesce(v_malformed.key, 'null'), v_malformed.fault
      using errcode = 'MR004',
        hint = 'Return one (item_key, entity_id) for each item, '
          'also for those whose row exists already.';
  end if;
end
$$;
