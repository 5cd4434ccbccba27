-- Raises MR001 where a definition moves a pipeline to another table or key while runs are live, or
-- a stage of another pipeline starts its runs by the former key. Also raises where a stage is
-- dropped, or gets another child pipeline, which live runs need; where a threshold counts a dropped
-- stage; and where a stage changes its kind while attempts are under way. define() has locked the
-- table.
create function millrace.check_changes(p_definition jsonb)
as $$
perform millrace.refuse(f.what, f.remedy)
from (
  with pipeline as materialized (
    select p.*, to_regclass(e."table") as new_table, e.key as new_key,
      (p.entity_table, p.entity_key) <> (to_regclass(e."table"), e.key) as moves,
      format('cancel them: select millrace.cancel(id) from millrace.runs where status = '
        '''running'' and pipeline_id = %s.', p.id) as cancel
    from millrace.pipelines p
    cross join jsonb_to_record(p_definition -> 'entity') e("table" text, key text)
    where p.name = p_definition ->> 'pipeline'
  ), stage as materialized (
    select t.*, p.cancel, s.kind as new_kind, s.child ->> 'pipeline' as new_child,
      s.name is null as dropped
    from pipeline p
    join millrace.stages t on t.pipeline_id = p.id
    left join jsonb_to_recordset(p_definition -> 'stages') s(name text, kind text, child jsonb)
      on s.name = t.name
  )
  select 1 as ordinal, format('pipeline %s cannot move from %s.%s to %s.%s: %s filed '
    'under the former', p.name, p.entity_table, p.entity_key, p.new_table, p.new_key,
    case l.runs when 1 then '1 live run is' else l.runs || ' live runs are' end) as what,
    'Let them finish, or ' || p.cancel as remedy
  from pipeline p
  cross join lateral (
    select count(*) as runs
    from millrace.runs r
    where r.pipeline_id = p.id and r.status = 'running') l
  where p.moves and l.runs > 0
  union all
  select 2, format('pipeline %s cannot move to %s.%s: stage %s of pipeline %s starts runs of it '
    'by the keys of the former', p.name, p.new_table, p.new_key, s.name, o.name),
    'Define that pipeline without the stage first, or give this one another name.'
  from pipeline p
  join millrace.version_stages vs on vs.child_pipeline_id = p.id
  join millrace.pipelines o on o.current_version_id = vs.version_id
  join millrace.stages s on s.id = vs.stage_id and s.child ->> 'insert' is null
  where p.moves
  union all
  select 3, format('stage %s %s, but %s it', s.name, w.what,
      case count(*)
        when 1 then '1 live run still needs'
        else count(*) || ' live runs still need' end),
    format('Let them finish, or keep the stage %s, or %s', s.name, s.cancel)
  from stage s
  cross join lateral (values
    (s.dropped, 'is dropped'),
    (s.child ->> 'pipeline' <> s.new_child,
      'has no more ' || (s.child ->> 'pipeline') || ' as its child pipeline')) w(wrong, what)
  join millrace.version_stages vs on vs.stage_id = s.id
  join millrace.runs r on r.version_id = vs.version_id and r.status = 'running'
  where w.wrong and not millrace.is_done(r.id, s.id)
  group by s.name, w.what, s.cancel
  union all
  select 4, format('stage %s is dropped, but stage %s of pipeline %s waits until children have '
    'done it', c.name, s.name, p.name), format('Keep stage %s until pipeline %s is defined '
    'without that threshold.', c.name, p.name)
  from stage c
  join millrace.version_stages vs
    on vs.after @> jsonb_build_array(jsonb_build_object('stage', c.id))
  join millrace.pipelines p on p.current_version_id = vs.version_id
  join millrace.stages s on s.id = vs.stage_id
  where c.dropped
  union all
  select 5, format('stage %s cannot change from kind %s to %s while attempts of it are under way: '
    '%s', s.name, s.kind, s.new_kind, count(*)),
    'Let them finish, or cancel their runs; or give the new stage another name.'
  from stage s
  join millrace.attempts a on a.stage_id = s.id and a.state < 'completed'
  where s.kind <> s.new_kind and '{manual,pipeline,map,gate}' && array[s.kind, s.new_kind]
  group by s.name, s.kind, s.new_kind
  order by ordinal, what
  limit 1) f;
$$;

-- Raises MR001 where a table's key is missing, not unique, nullable or generated, or its text
-- depends on the session or the collation. Runs are stored under the text of the key, which must be
-- the same in each session and for equal values.
create function millrace.check_key(p_pipeline millrace.pipelines)
stable
as $$
perform millrace.refuse(f.what, f.remedy)
from (
  with key as materialized (
    select b.oid as type, b.typtype = 'e' as is_enum, not c.collisdeterministic as is_careless,
      greatest(a.atttypmod, d.typtypmod) >= 0 as has_scale,
      not (a.attnotnull or d.typnotnull) as is_nullable, a.attgenerated <> '' as is_generated,
      format_type(a.atttypid, a.atttypmod) as name
    from pg_attribute a
    join pg_type d on d.oid = a.atttypid
    -- A domain may be of another domain. Postgres 15 lacks pg_basetype().
    cross join lateral (
      with recursive w as (
        select d.*
        union all
        select t.* from w join pg_type t on t.oid = w.typbasetype
      )
      select w.oid, w.typtype from w where w.typbasetype = 0) b
    left join pg_collation c on c.oid = a.attcollation
    where a.attrelid = p_pipeline.entity_table and a.attname = p_pipeline.entity_key
      and not a.attisdropped
  )
  select w.ordinal, 'entity.key is ' || p_pipeline.entity_key || w.what as what, w.remedy
  from (select) one
  left join key k on true
  cross join lateral (values
    (1, k.name is null, format(', but table %s has no such column', p_pipeline.entity_table),
      'Name the primary key''s column.'),
    (2, not exists (
        select from pg_index i
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = p_pipeline.entity_table and i.indisunique and i.indisvalid
          and i.indpred is null and i.indnkeyatts = 1
          and a.attname = p_pipeline.entity_key),
      format(', which is not unique in table %s', p_pipeline.entity_table),
      'Make it the primary key.'),
    (3, not (k.is_enum or k.type = 'numeric'::regtype and k.has_scale or k.type = any (
        array['uuid', 'text', 'varchar', 'bpchar', 'int2', 'int4', 'int8']::regtype[])),
      format(', of type %s, whose text depends on a session''s settings', k.name),
      'Use a key of type uuid, text, varchar, char, smallint, integer, bigint, numeric with a '
      'scale, or an enum; keep this column as a unique one of its own.'),
    (4, k.is_careless, ', whose collation takes different texts for equal',
      format('Give the column a deterministic collation: alter table %s alter %I type %s '
        'collate "default";', p_pipeline.entity_table, p_pipeline.entity_key, k.name)),
    (5, k.is_nullable, format(', which may be null in table %s', p_pipeline.entity_table),
      format('alter table %s alter %I set not null;',
        p_pipeline.entity_table, p_pipeline.entity_key)),
    (6, k.is_generated, ', which is generated, so that it changes with other columns',
      format('A row keeps its key: alter table %s alter %I drop expression; or use another '
        'column.', p_pipeline.entity_table, p_pipeline.entity_key))) w(ordinal, wrong, what, remedy)
  where w.wrong
  order by 1
  limit 1) f;
$$;

-- Raises MR001 where the key is unfit; where a column of a stage is missing, has another type, or
-- cannot be written; or where another pipeline writes the same columns.
create function millrace.check_columns(p_pipeline millrace.pipelines)
stable
as $$
  c_types constant text[] := array['text', 'text', 'jsonb', 'text', 'integer',
    'timestamp with time zone', 'timestamp with time zone'];

perform millrace.check_key(p_pipeline);
perform millrace.refuse(f.what, f.remedy)
from (
  with stage as materialized (
    select s.name, vs.position
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = p_pipeline.current_version_id
  ), attribute as materialized (
    select a.attname::text as name, format_type(a.atttypid, null) as type, a.attgenerated,
      a.attnotnull
    from pg_attribute a
    where a.attrelid = p_pipeline.entity_table and not a.attisdropped
  )
  select 1 as ordinal, format('stage %s of pipeline %s would share its columns with pipeline %s, '
    'which has a stage of that name on the same table %s', s.name, p_pipeline.name, p.name,
    p.entity_table) as what,
    'Give the stage another name, or use the projection none.' as remedy
  from millrace.pipelines p
  join millrace.version_stages vs on vs.version_id = p.current_version_id
  join millrace.stages s on s.id = vs.stage_id
  join stage o on o.name = s.name
  where p.entity_table = p_pipeline.entity_table and p.id <> p_pipeline.id
    and 'columns' = all (array[p.projection, p_pipeline.projection])
  union all
  select 2, format('entity.status.column: %s shows pipeline %s already', p.status ->> 'column',
    p.name), 'Give each pipeline a column of its own.'
  from millrace.pipelines p
  where p.entity_table = p_pipeline.entity_table and p.id <> p_pipeline.id
    and p.status ->> 'column' = p_pipeline.status ->> 'column'
  union all
  select 3, format('column %s of table %s %s', c.name, p_pipeline.entity_table, case
      when a.attgenerated = '' then 'is not null, but the engine writes null to it'
      else 'is generated, but the engine writes to it' end),
    format('alter table %s alter %I drop %s;', p_pipeline.entity_table, c.name,
      case a.attgenerated when '' then 'not null' else 'expression' end)
  from (
    select k.name, k.ordinal not in (1, 5)
    from stage o
    cross join unnest(millrace.stage_columns(o.name)) with ordinality k(name, ordinal)
    where p_pipeline.projection = 'columns'
    union all
    select k, k in (p_pipeline.status ->> 'retry_at', p_pipeline.status ->> 'error')
    from unnest(millrace.status_columns(p_pipeline.status)) k) c(name, nulled)
  join attribute a on a.name = c.name
  where a.attgenerated <> '' or c.nulled and a.attnotnull
  union all
  select 10 * o.position + c.ordinal, case
      when a.name is null then format('table %s has no column %s for stage %s',
        p_pipeline.entity_table, c.name, o.name)
      else format('column %s of table %s is of type %s, but must be of type %s', c.name,
        p_pipeline.entity_table, a.type, c.wanted)
    end, format('%sselect millrace.add_columns(%L, %L);',
      case when a.name is not null then 'Drop or rename the column, then: ' end,
      p_pipeline.entity_table::text, o.name)
  from stage o
  cross join unnest(millrace.stage_columns(o.name), c_types)
    with ordinality c(name, wanted, ordinal)
  left join attribute a on a.name = c.name
  where p_pipeline.projection = 'columns'
    and a.type is distinct from c.wanted
    and (c.wanted, a.type) is distinct from ('text', 'character varying')
  order by 1
  limit 1) f;
$$;
