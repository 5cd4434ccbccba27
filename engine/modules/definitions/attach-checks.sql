-- What a table must have before a pipeline can be attached to it

-- Raises MR001 where a user's constraint on a status column refuses a status that the engine
-- writes: transitions would fail. A constraint over several columns cannot be asked beforehand.
create function millrace.check_status_words(p_table regclass, p_stages text[])
returns void
language plpgsql
as $$
declare
  v_check record;
  v_refused text;
begin
  for v_check in
    select a.attname as name, c.conname as constraint, pg_get_expr(c.conbin, c.conrelid) as rule,
      format_type(a.atttypid, a.atttypmod) as type
    from unnest(p_stages) with ordinality s(name, place)
    join pg_attribute a on a.attrelid = p_table
      and a.attname = s.name || '_status'
      and not a.attisdropped
    join pg_constraint c on c.conrelid = p_table
      and c.contype = 'c'
      and c.conkey = array[a.attnum]
    order by s.place, c.conname
  loop
    execute format('select string_agg(w.%1$I, '', '') '
      'from (select u::%2$s as %1$I from unnest($1) u) w where not (%3$s)',
      v_check.name, v_check.type, v_check.rule)
    into v_refused
    using array['pending', 'queued', 'started', 'completed', 'failed', 'skipped'];
    if v_refused is not null then
      raise exception 'constraint % of table % refuses % in column %',
        v_check.constraint, p_table, v_refused, v_check.name
        using errcode = 'MR001',
          hint = format('Each stage can show pending, queued, started, completed, failed or '
            'skipped: alter table %s drop constraint %I;', p_table, v_check.constraint);
    end if;
  end loop;
end
$$;

-- Raises MR001 unless the triggers of attach() see every write of the table. What is written
-- straight to a partition, or to an inheriting table, would start nothing and leave runs without
-- rows; so would a crash that empties an unlogged table.
create function millrace.check_table(p_table regclass) returns void
language plpgsql stable
as $$
declare
  v_what text;
begin
  select case
      when c.relkind = 'p' then 'is partitioned'
      when c.relispartition then 'is a partition'
      when c.relkind in ('v', 'm') then 'is a view'
      when c.relkind = 'f' then 'is a foreign table'
      when c.relkind <> 'r' then 'is no table'
      when c.relpersistence = 't' then 'is temporary'
      when c.relpersistence = 'u' then 'is unlogged'
      when exists (select from pg_inherits i where c.oid in (i.inhparent, i.inhrelid))
        then 'inherits from another table or is inherited from'
    end
  into v_what
  from pg_class c
  where c.oid = p_table;
  if v_what is not null then
    raise exception 'entity.table is %, which %', p_table, v_what
      using errcode = 'MR001',
        hint = 'Name an ordinary table, logged, without partitions or inheritance; keep what must '
          'be partitioned in another, which refers to it.';
  end if;
end
$$;

-- Raises MR001, with the statement that helps, when the entity table lacks the key or a column.
create function millrace.check_columns(
  p_pipeline millrace.pipelines, p_stages text[]
) returns void
language plpgsql
as $$
declare
  v_key record;
begin
  if not exists (
      select from pg_attribute a
      where a.attrelid = p_pipeline.entity_table
        and a.attname = p_pipeline.entity_key
        and not a.attisdropped) then
    raise exception 'entity.key is %, but table % has no such column',
      p_pipeline.entity_key, p_pipeline.entity_table
      using errcode = 'MR001', hint = 'Name the primary key''s column.';
  end if;
  if not exists (
      select from pg_index i
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
      where i.indrelid = p_pipeline.entity_table
        and i.indisunique
        and i.indisvalid
        and i.indpred is null
        and i.indnkeyatts = 1
        and a.attname = p_pipeline.entity_key) then
    raise exception 'entity.key is %, which is not unique in table %',
      p_pipeline.entity_key, p_pipeline.entity_table
      using errcode = 'MR001', hint = 'Make it the primary key.';
  end if;
  -- Runs are filed under the key's text. So each value must have one, the same whatever a session's
  -- DateStyle, TimeZone, extra_float_digits or bytea_output, and equal values must have the same:
  -- 1.0 and 1.00 are equal where no scale is declared, and so are 'a' and 'A' under some
  -- collations.
  with recursive step as (
    select a.atttypid as type, a.atttypmod as modifier, a.attcollation as collation,
      format_type(a.atttypid, a.atttypmod) as name
    from pg_attribute a
    where a.attrelid = p_pipeline.entity_table
      and a.attname = p_pipeline.entity_key
      and not a.attisdropped
    union all
    -- A domain reads as the type that it is over.
    select t.typbasetype, t.typtypmod, s.collation, s.name
    from step s
    join pg_type t on t.oid = s.type and t.typtype = 'd'
  )
  select s.name, s.type = 'numeric'::regtype as is_numeric,
    (s.type = any (
        array['uuid', 'text', 'varchar', 'bpchar', 'int2', 'int4', 'int8']::regtype[])
      or t.typtype = 'e'
      or (s.type = 'numeric'::regtype and s.modifier >= 0)) as fits,
    coalesce(not c.collisdeterministic, false) as loose
  into v_key
  from step s
  join pg_type t on t.oid = s.type and t.typtype <> 'd'
  left join pg_collation c on c.oid = s.collation;
  if not v_key.fits then
    raise exception 'entity.key is %, of type %, whose text depends on a session''s settings',
      p_pipeline.entity_key, v_key.name
      using errcode = 'MR001',
        hint = case when v_key.is_numeric
          then 'Declare a scale, such as numeric(20, 0), or use bigint.'
          else 'Use a key of type uuid, text, varchar, char, smallint, integer, bigint, numeric '
            'with a scale, or an enum; keep this column as a unique one of its own.' end;
  elsif v_key.loose then
    raise exception 'entity.key is %, whose collation takes different texts for equal',
      p_pipeline.entity_key
      using errcode = 'MR001',
        hint = format('Give the column a deterministic collation: '
          'alter table %s alter %I type %s collate "default";',
          p_pipeline.entity_table, p_pipeline.entity_key, v_key.name);
  end if;
  if p_pipeline.projection = 'columns' then
    perform millrace.check_projected(p_pipeline, p_stages);
    perform millrace.check_status_words(p_pipeline.entity_table, p_stages);
  end if;
end
$$;

-- Raises MR001 where the stages' columns are another pipeline's, missing, or of another type.
create function millrace.check_projected(
  p_pipeline millrace.pipelines, p_stages text[]
) returns void
language plpgsql
as $$
declare
  c_types constant text[] := array['text', 'text', 'jsonb', 'text', 'integer',
    'timestamp with time zone', 'timestamp with time zone'];
  v_table regclass := p_pipeline.entity_table;
  v_wrong record;
begin
  select p.name, s.name as stage into v_wrong
  from millrace.pipelines p
  join millrace.version_stages vs on vs.version_id = p.current_version_id
  join millrace.stages s on s.id = vs.stage_id
  where p.entity_table = v_table
    and p.id <> p_pipeline.id
    and p.projection = 'columns'
    and s.name = any (p_stages)
  limit 1;
  if found then
    raise exception 'stage % of pipeline % would share its columns with pipeline %, '
      'which has a stage of that name on the same table %',
      v_wrong.stage, p_pipeline.name, v_wrong.name, v_table
      using errcode = 'MR001',
        hint = 'Give the stage another name, or use the projection none.';
  end if;
  select s as stage, c.name, format_type(a.atttypid, null) as type, c.wanted into v_wrong
  from unnest(p_stages) with ordinality o(s, position)
  cross join unnest(millrace.stage_columns(s), c_types) with ordinality c(name, wanted, place)
  left join pg_attribute a on a.attrelid = v_table and a.attname = c.name and not a.attisdropped
  where a.attname is null
    or format_type(a.atttypid, null) <> c.wanted
    and not (c.wanted = 'text' and format_type(a.atttypid, null) = 'character varying')
  -- First whatever is missing.
  order by a.attname is not null, case when a.attname is null then o.position end, c.place
  limit 1;
  if found then
    raise exception '%', case
        when v_wrong.type is null
          then format('table %s has no column %s for stage %s',
            v_table, v_wrong.name, v_wrong.stage)
        else format('column %s of table %s is of type %s, but must be of type %s',
          v_wrong.name, v_table, v_wrong.type, v_wrong.wanted)
      end
      using errcode = 'MR001', hint = format('%sselect millrace.add_columns(%L, %L);',
        case when v_wrong.type is not null then 'Drop or rename the column, then: ' end,
        v_table::text, v_wrong.stage);
  end if;
end
$$;
