-- Raises MR001 unless triggers see every write of the table, none being straight to a partition or
-- an inheriting table, and no crash empties it.
create function millrace.check_table(p_table regclass)
stable
as $$
begin
  if exists (
      select
      from pg_class c
      where c.oid = p_table
        and (c.relkind <> 'r'
          or c.relispartition
          or c.relpersistence <> 'p'
          or exists (select from pg_inherits i where c.oid in (i.inhparent, i.inhrelid)))) then
    raise exception 'entity.table is %, which is no ordinary table', p_table
      using errcode = 'MR001', hint = 'Name a table that is logged, without partitions or '
        'inheritance; keep what must be partitioned in another, which refers to it.';
  end if;
end
$$;

-- Raises MR001 where the entity table lacks the key or a stage's column, or has one of another
-- type. Runs are filed under the key's text, which must be the same in each session and of equal
-- values.
create function millrace.check_columns(p_pipeline millrace.pipelines, p_stages text[])
as $$
declare
  c_types constant text[] := array['text', 'text', 'jsonb', 'text', 'integer',
    'timestamp with time zone', 'timestamp with time zone'];
  v_table regclass := p_pipeline.entity_table;
  v_key text := p_pipeline.entity_key;
  v_wrong record;
begin
  with recursive step as (
    select a.atttypid as type, a.atttypmod as modifier, a.attcollation as collation,
      format_type(a.atttypid, a.atttypmod) as name
    from pg_attribute a
    where a.attrelid = v_table and a.attname = v_key and not a.attisdropped
    union all
    -- A domain reads as the type that it is over.
    select t.typbasetype, t.typtypmod, s.collation, s.name
    from step s
    join pg_type t on t.oid = s.type and t.typtype = 'd'
  ), key as materialized (
    select s.*, t.typtype = 'e' as is_enum, s.type = 'numeric'::regtype as is_numeric
    from step s
    join pg_type t on t.oid = s.type and t.typtype <> 'd'
  ), shown as materialized (
    select s as stage, c.name, c.wanted, row_number() over (order by o.position, c.place) as place,
      format_type(a.atttypid, null) as type
    from unnest(p_stages) with ordinality o(s, position)
    cross join unnest(millrace.stage_columns(s), c_types) with ordinality c(name, wanted, place)
    left join pg_attribute a on a.attrelid = v_table and a.attname = c.name and not a.attisdropped
    where p_pipeline.projection = 'columns'
  )
  select f.* into v_wrong
  from (
    select 1 as place, null::bigint as nth,
      format('entity.key is %s, but table %s has no such column', v_key, v_table) as what,
      'Name the primary key''s column.' as remedy
    where not exists (select from key)
    union all
    select 2, null, format('entity.key is %s, which is not unique in table %s', v_key,
      v_table), 'Make it the primary key.'
    where not exists (
        select
        from pg_index i
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = v_table
          and i.indisunique
          and i.indisvalid
          and i.indpred is null
          and i.indnkeyatts = 1
          and a.attname = v_key)
    union all
    select 3, null, format('entity.key is %s, of type %s, whose text depends on a session''s '
      'settings', v_key, k.name), case when k.is_numeric
        then 'Declare a scale, such as numeric(20, 0), or use bigint.'
        else 'Use a key of type uuid, text, varchar, char, smallint, integer, bigint, numeric '
          'with a scale, or an enum; keep this column as a unique one of its own.' end
    from key k
    where not (k.is_enum or k.is_numeric and k.modifier >= 0 or k.type = any (
      array['uuid', 'text', 'varchar', 'bpchar', 'int2', 'int4', 'int8']::regtype[]))
    union all
    select 4, null, format('entity.key is %s, whose collation takes different texts for '
      'equal', v_key), format('Give the column a deterministic collation: '
        'alter table %s alter %I type %s collate "default";', v_table, v_key, k.name)
    from key k
    join pg_collation c on c.oid = k.collation and not c.collisdeterministic
    union all
    select 5, null, format('stage %s of pipeline %s would share its columns with pipeline '
      '%s, which has a stage of that name on the same table %s', s.name, p_pipeline.name, p.name,
      v_table), 'Give the stage another name, or use the projection none.'
    from millrace.pipelines p
    join millrace.version_stages vs on vs.version_id = p.current_version_id
    join millrace.stages s on s.id = vs.stage_id and s.name = any (p_stages)
    where p.entity_table = v_table
      and p.id <> p_pipeline.id
      and p.projection = 'columns'
      and p_pipeline.projection = 'columns'
    union all
    select 6, c.place, format('table %s has no column %s for stage %s', v_table, c.name,
      c.stage), format('select millrace.add_columns(%L, %L);', v_table::text, c.stage)
    from shown c
    where c.type is null
    union all
    select 7, c.place, format('column %s of table %s is of type %s, but must be of type %s',
      c.name, v_table, c.type, c.wanted), format('Drop or rename the column, then: '
        'select millrace.add_columns(%L, %L);', v_table::text, c.stage)
    from shown c
    where c.type <> c.wanted and not (c.wanted = 'text' and c.type = 'character varying')) f
  order by f.place, f.nth
  limit 1;
  if found then
    raise exception '%', v_wrong.what using errcode = 'MR001', hint = v_wrong.remedy;
  end if;
end
$$;
