-- Millrace, built from engine/ by `npm run check -- --write`. Change it there.

-- From level 1 (release 0.1.0) to level 2 (release 0.2.0).

-- Refuses a database that is not at the level which this upgrade leads on from.
do $level$
declare
  v_from constant int := 1;
  v_to constant int := 2;
  v_level int;
begin
  if to_regprocedure('millrace.engine()') is null then
    raise exception 'the upgrade to level % finds no Millrace here', v_to
      using errcode = 'MR004',
        hint = format('Install level %s first: apply the migrations in their order.', v_from);
  end if;
  select e.level into v_level from millrace.engine() e;
  if v_level is distinct from v_from then
    raise exception 'the upgrade leads from level % to level %, but this database is at level %',
      v_from, v_to, v_level
      using errcode = 'MR004',
        hint = 'Apply the migrations in their order, each once. Nothing has been changed.';
  end if;
end
$level$;

-- Takes every lock before it changes anything: the workers' first, then in the order in which the
-- engine's own calls take them. Whoever gets all of them within 800 ms goes on. Else it lets all go
-- and tries again, so that nobody who waits for it meanwhile is ended as part of a deadlock, which
-- Postgres looks for after a second.
do $locks$
declare
  v_altered constant text[] := array[
      'millrace.pipelines', 'millrace.stages', 'millrace.runs', 'millrace.version_moves',
      'millrace.version_stages'
    ]::text[];
  v_give_up constant timestamptz := clock_timestamp() + coalesce((
    select s.value
    from millrace.settings s
    where s.name = 'upgrade_patience'), '15 seconds')::interval;
  v_until timestamptz;
  v_table record;
begin
  loop
    begin
      v_until := clock_timestamp() + interval '800 milliseconds';
      for v_table in
        select t.name,
          case when t.name = any (v_altered) then 'access exclusive' else t.mode end as mode
        from (
          select 1 as place, 'millrace.workers' as name, 'exclusive' as mode
          union all
          select distinct 2, c.oid::regclass::text, 'share row exclusive'
          from millrace.pipelines p
          join pg_class c on c.oid = p.entity_table
          union all
          values (3, 'millrace.runs', 'exclusive'), (4, 'millrace.attempts', 'exclusive'),
            (5, 'millrace.claims', 'exclusive')
          union all
          select 6, format('%I.%I', n.nspname, c.relname), 'exclusive'
          from pg_class c
          join pg_namespace n on n.oid = c.relnamespace
          where c.relkind = 'r'
            and (n.nspname = 'millrace'
                and c.relname <> all (array['workers', 'runs', 'attempts', 'claims'])
              or format('%I.%I', n.nspname, c.relname) = any (array['public.millrace_decisions']::text[]))
        ) t
        order by t.place, t.name
      loop
        perform set_config('lock_timeout',
          greatest(1, ceil(extract(epoch from v_until - clock_timestamp()) * 1000))::int || 'ms',
          true);
        execute format('lock table %s in %s mode', v_table.name, v_table.mode);
      end loop;
      exit;
    exception when lock_not_available or deadlock_detected then
      if clock_timestamp() >= v_give_up then
        raise exception
          'the database is busy, try again: somebody holds table %. Millrace stays as it was',
          v_table.name
          using errcode = 'lock_not_available',
            hint = 'Run it when less is going on, end the transaction that holds it (select pid, '
              'xact_start, query from pg_stat_activity order by xact_start), or let it wait '
              'longer: update millrace.settings set value = ''5 minutes'' where name = '
              '''upgrade_patience''.';
      end if;
      perform pg_sleep(0.05 + random() * 0.2);
    end;
  end loop;
  perform set_config('lock_timeout', '3s', true);
end
$locks$;

-- Names what depends on these functions and views without being one of them, or an object of the
-- engine.
create function pg_temp.dependents(p_functions oid[], p_views oid[]) returns text[]
language sql
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select distinct pg_describe_object(u.class, u.id, u.part)
    from (
      select
        case when r.oid is null then d.classid else 'pg_class'::regclass::oid end as class,
        coalesce(r.ev_class, d.objid) as id,
        case when r.oid is null then d.objsubid else 0 end as part
      from pg_depend d
      left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass
        and r.oid = d.objid
      where d.deptype in ('n', 'a')
        and (d.refclassid = 'pg_proc'::regclass and d.refobjid = any (p_functions)
          or d.refclassid = 'pg_class'::regclass and d.refobjid = any (p_views)
          or d.refclassid = 'pg_type'::regclass
            and d.refobjid in (
              select t.oid
              from pg_type t
              where t.typrelid = any (p_views)))
    ) u
    left join pg_class c on u.class = 'pg_class'::regclass
      and c.oid = u.id
    left join pg_proc f on u.class = 'pg_proc'::regclass
      and f.oid = u.id
    where 'millrace'::regnamespace <> all (array[coalesce(c.relnamespace, f.pronamespace, 0)])
    order by 1)
$$;

-- Drops views of the engine with those of the engine that read them. Refuses where somebody else's
-- object does.
create function pg_temp.drop_views(p_functions oid[], p_views oid[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_views oid[];
  v_others text[];
  v_names text;
begin
  with recursive gone(id) as (
    select unnest(p_views)
    union
    select r.ev_class
    from pg_depend d
    join pg_rewrite r on r.oid = d.objid
    where d.classid = 'pg_rewrite'::regclass
      and d.refclassid = 'pg_proc'::regclass
      and d.refobjid = any (p_functions)
    union
    select r.ev_class
    from gone g
    join pg_depend d on d.refclassid = 'pg_class'::regclass
      and d.refobjid = g.id
      and d.classid = 'pg_rewrite'::regclass
    join pg_rewrite r on r.oid = d.objid
  )
  select array_agg(g.id), string_agg(g.id::regclass::text, ', ')
  into v_views, v_names
  from gone g
  join pg_class c on c.oid = g.id
  where c.relnamespace = 'millrace'::regnamespace;
  v_others := pg_temp.dependents(p_functions, v_views);
  if cardinality(v_others) > 0 then
    raise exception 'the upgrade replaces what others depend on, drop these first: %',
      array_to_string(v_others, ', ')
      using errcode = 'dependent_objects_still_exist',
        hint = 'Keep their text (select pg_get_viewdef(…)), and create them again after it. '
          'Nothing has been changed.';
  end if;
  if v_names is not null then
    execute 'drop view ' || v_names;
  end if;
end
$$;

-- Drops functions of the engine with the views that call them.
create function pg_temp.drop_functions(p_signatures text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids oid[] := array(
    select to_regprocedure(s)
    from unnest(p_signatures) s
    where to_regprocedure(s) is not null);
  v_id regprocedure;
begin
  perform pg_temp.drop_views(v_ids, '{}');
  foreach v_id in array v_ids loop
    execute 'drop function ' || v_id;
  end loop;
end
$$;

-- Keeps a view whose columns only grow, and all that reads it; makes it anew where they do not.
create function pg_temp.put_view(p_name text, p_changed boolean, p_text text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regclass(p_name) is not null then
    if not p_changed then
      return;
    end if;
    begin
      execute p_text;
      return;
    exception when invalid_table_definition then
      perform pg_temp.drop_views('{}', array[to_regclass(p_name)]::oid[]);
    end;
  end if;
  execute p_text;
end
$$;

-- The projection `status`: one column of the entity shows where its run stands.
--
-- Values are kept as text, whatever the column's type. What a stage shows is a setting of today;
-- which moves are legal follows from the graph too, so moves belong to a version.

alter table millrace.pipelines
  drop constraint pipelines_projection_known,
  add constraint pipelines_projection_known
    check (projection in ('columns', 'status', 'none')),
  add column status jsonb;
comment on column millrace.pipelines.status is
  'What the definition says of the status column; null for another projection.';

alter table millrace.stages
  add column shows jsonb;
comment on column millrace.stages.shows is
  'What the status column shows of the stage, with the values by which its layer is entered and '
  'left; null for another projection.';

alter table millrace.runs
  add column began_from text;
comment on column millrace.runs.began_from is
  'The value of the status column at which a person began the run; null elsewhere. Taking the '
  'question back leads to it again.';

create table millrace.status_values (
  pipeline_id int not null
    constraint status_values_pipeline_fkey references millrace.pipelines on delete cascade,
  value text not null,
  name text not null,
  description text not null,
  category text not null,
  is_terminal boolean not null,
  sort_order int not null,
  retired boolean not null default false,
  constraint status_values_pkey primary key (pipeline_id, value)
);
comment on table millrace.status_values is
  'What the values of a status column mean, in the order of the present chain. One that a '
  'definition drops stays, retired.';

create table millrace.version_moves (
  version_id int not null
    constraint version_moves_version_fkey references millrace.versions on delete cascade,
  from_value text,
  to_value text not null,
  by text not null
    constraint version_moves_by_known check (by in ('engine', 'person', 'call')),
  means text not null,
  at_stage_id int,
  stage_id int,
  declared boolean not null default false,
  drawn boolean not null default false,
  retired boolean not null default false
);
create unique index version_moves_key on millrace.version_moves
  (version_id, from_value, to_value, by, means, at_stage_id, stage_id) nulls not distinct;
comment on table millrace.version_moves is
  'Which value of a status column may follow which. by: the engine as work goes on, a person who '
  'writes it, or the engine after a person''s call such as start(). from_value is null for a row '
  'that is new or has no value yet. means says what a person''s write does; at_stage_id is the '
  'stage that must be live for it, stage_id the one that it begins or answers. declared: the '
  'definition lists it, so that it is legal wherever the run came to its end. retired: no longer, '
  'but histories may have it.';

-- Beginnings and endings: what a run skips since its row brought it along, what only a person
-- begins, under which name a run ended, and by which column the sweep starts runs.

alter table millrace.pipelines
  add column due_column text,
  add column has_given boolean not null default false;
comment on column millrace.pipelines.due_column is
  'The timestamptz column of the entity by which the sweep starts runs; null where none is '
  'declared.';
comment on column millrace.pipelines.has_given is
  'Whether some version has a stage whose output a row may bring along.';

alter table millrace.stages
  add column has_ends boolean not null default false;
comment on column millrace.stages.has_ends is
  'Whether in some version the completion of the stage may end its run.';

alter table millrace.version_stages
  add column given_path jsonpath,
  add column on_demand boolean not null default false,
  add column ends jsonb;
comment on column millrace.version_stages.given_path is
  'True of a row that brings the stage''s output along: its first run skips the stage.';
comment on column millrace.version_stages.on_demand is
  'Whether only a start by name begins it; a run that comes to it by itself is over.';
comment on column millrace.version_stages.ends is
  'Conditions on the row and the stage''s result, of which the first that holds ends the run: '
  '[{name, when}].';

alter table millrace.runs
  add column ended_as text,
  add column given int[];
comment on column millrace.runs.ended_as is
  'The name under which a stage''s result has ended it, which is no failure; null otherwise.';
comment on column millrace.runs.given is
  'The stages whose output the row brought along, in its first run; null in any other, and where '
  'no stage of the pipeline asks.';

create table millrace.begun_rows (
  pipeline_id int not null,
  entity_id text not null,
  constraint begun_rows_pkey primary key (pipeline_id, entity_id)
);
comment on table millrace.begun_rows is
  'Rows whose first run has been pruned, of pipelines where a row may bring along what a stage '
  'makes: what a row holds by then is mostly the engine''s own work.';

create table millrace.due_progress (
  pipeline_id int constraint due_progress_pkey primary key
    constraint due_progress_pipeline_fkey references millrace.pipelines on delete cascade,
  seen_until timestamptz not null,
  lap_at timestamptz,
  lap_key text
) with (fillfactor = 50);
comment on table millrace.due_progress is
  'How far the sweep has looked for rows that are due: once at each as it becomes due, and round '
  'and round at those that were passed over. Whoever starts due runs of a pipeline holds its row.';

create table millrace.adoptions (
  pipeline_id int constraint adoptions_pkey primary key
    constraint adoptions_pipeline_fkey references millrace.pipelines on delete cascade,
  old_column text not null,
  value_function text not null,
  otherwise text,
  last_key text,
  adopted bigint not null default 0,
  began_at timestamptz not null default millrace.now(),
  ended_at timestamptz
);
comment on table millrace.adoptions is
  'How far rows that were there before a pipeline have been given values of its status column. '
  'last_key: up to which key; ended_at: all have one.';

create table millrace.adopted_values (
  pipeline_id int not null
    constraint adopted_values_pipeline_fkey references millrace.pipelines on delete cascade,
  old_value text not null,
  value text not null,
  rows bigint not null,
  constraint adopted_values_pkey primary key (pipeline_id, old_value, value)
);
comment on table millrace.adopted_values is
  'What the values of an old status column mean, by the rows that had them when they were adopted. '
  'The old column follows by it.';

-- Bodies may name what a later statement makes.
set check_function_bodies = off;

select pg_temp.drop_functions(array[
      'millrace.new_runs(int4, text[], int4)', 'millrace.enqueue_stage(int8[], int4)',
      'millrace.start_over(int8[], int4)', 'millrace.queue_here(int4, int4, text[], text[])',
      'millrace.queue_stage(int4, int4, text[], text[])', 'millrace.begin_stage(int4, int8[])',
      'millrace.check_condition_path(jsonb)', 'millrace.check_condition_names(jsonb, jsonb)',
      'millrace.queue_one_way(int4, int4, int4, text[], text[])'
    ]::text[]);

-- What a table must have before a pipeline can be attached to it

-- Names the seven columns that the projection keeps for a stage on its entity.
create or replace function millrace.stage_columns(p_stage text) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array[p_stage || '_status', p_stage || '_job_id', p_stage || '_result',
    p_stage || '_error', p_stage || '_retry_count', p_stage || '_started_at',
    p_stage || '_completed_at']
$$;

-- Writes the statement that adds a stage's seven columns to a table.
create or replace function millrace.stage_columns_ddl(p_table text, p_stage text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select format($ddl$alter table %1$s
  add column if not exists %2$I text not null default 'pending',
  add column if not exists %3$I text,
  add column if not exists %4$I jsonb,
  add column if not exists %5$I text,
  add column if not exists %6$I int not null default 0,
  add column if not exists %7$I timestamptz,
  add column if not exists %8$I timestamptz;$ddl$,
    p_table, c.names[1], c.names[2], c.names[3], c.names[4], c.names[5], c.names[6], c.names[7])
  from (select millrace.stage_columns(p_stage) as names) c
$$;

-- Raises MR001 where a constraint on a status column refuses a status that the engine writes. A
-- constraint of the user's own that refuses one of the words would fail whatever leads to it, the
-- stage before a skipped one too. One that reads several columns cannot be asked beforehand.
create or replace function millrace.check_status_words(p_table regclass, p_stages text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
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

-- Raises MR001 unless the table is one whose every write the triggers of attach() see. Statement
-- triggers see what is written to the table that they stand on and to no other. What is written
-- straight to a partition, or to a table that inherits from this one, would start nothing and leave
-- runs without rows behind; so would a crash that empties an unlogged table.
create or replace function millrace.check_table(p_table regclass) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
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

-- Raises MR001 where values of the key have not one text each in all sessions. Runs are filed under
-- the key's text. So each value must have one, the same whatever a session's DateStyle, TimeZone,
-- extra_float_digits or bytea_output, and equal values must have the same: 1.0 and 1.00 are equal
-- where no scale is declared, and so are 'a' and 'A' under some collations.
create or replace function millrace.check_key(p_pipeline millrace.pipelines) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key record;
begin
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
end
$$;

-- Raises MR001, with the statement that helps, when the entity table lacks the key or a column.
create or replace function millrace.check_columns(
  p_pipeline millrace.pipelines, p_stages text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
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
  perform millrace.check_key(p_pipeline);
  if p_pipeline.projection = 'columns' then
    perform millrace.check_projected(p_pipeline, p_stages);
    perform millrace.check_status_words(p_pipeline.entity_table, p_stages);
  end if;
end
$$;

-- Raises MR001 where the stages' columns are another pipeline's, missing, or of another type.
create or replace function millrace.check_projected(
  p_pipeline millrace.pipelines, p_stages text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
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
  if found and v_wrong.type is null then
    raise exception 'table % has no column % for stage %', v_table, v_wrong.name, v_wrong.stage
      using errcode = 'MR001',
        hint = millrace.stage_columns_ddl(v_table::text, v_wrong.stage);
  elsif found then
    raise exception 'column % of table % is of type %, but must be of type %',
      v_wrong.name, v_table, v_wrong.type, v_wrong.wanted
      using errcode = 'MR001', hint = 'Drop or rename the column, then: '
        || millrace.stage_columns_ddl(v_table::text, v_wrong.stage);
  end if;
end
$$;

-- Says whether the entity table has the seven columns of a stage. One that was dropped may have
-- lost its columns since; the projection then leaves it out.
create or replace function millrace.has_columns(p_pipeline millrace.pipelines, p_stage text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 7 = (
    select count(*)
    from pg_attribute a
    where a.attrelid = p_pipeline.entity_table
      and not a.attisdropped
      and a.attname = any ((select millrace.stage_columns(p_stage))::name[]))
$$;

-- What attach() writes to take in statuses that users write

-- Writes the column in which a pipeline's __intake function collects, in its one pass over the
-- rows, what was written to one stage's status. p_was is what the old status is read from.
create or replace function millrace.written_rows(
  p_pipeline millrace.pipelines, p_stage text, p_ancestors text[], p_dependents text[], p_was text
) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status text := p_stage || '_status';
  v_dirty text;
  v_covered text;
begin
  v_dirty := (
    select string_agg(millrace.dirty_condition('n', d, d <> p_stage), ' or ')
    from unnest(p_stage || p_dependents) d);
  -- An earlier stage of the same row starts over in the same statement.
  v_covered := (
    select string_agg(format(
      ' and not (n.%1$I = ''queued'' and n.%1$I is distinct from %2$s)',
      a || '_status', format(p_was, a || '_status')), '')
    from unnest(p_ancestors) a);
  return format('array_agg(row(n.%1$I::text, n.%2$I, %3$s)::millrace.written) '
    'filter (where n.%2$I is distinct from %4$s%5$s) as %6$I',
    p_pipeline.entity_key, v_status, v_dirty, format(p_was, v_status),
    coalesce(v_covered, ''), p_stage);
end
$$;

-- Writes what a pipeline's __intake function does for one kind of statement. One pass over the rows
-- finds what was written to which stages: mostly nothing, and a bulk update writes one. Rows are
-- taken in the order of their keys.
create or replace function millrace.intake_body(
  p_pipeline millrace.pipelines, p_key_type text, p_from text, p_was text
) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format(E'    select %s\n    into v_written from %s;',
      string_agg(millrace.written_rows(p_pipeline, s.name,
        array(
          select a.name
          from millrace.version_stages av
          join millrace.stages a on a.id = av.stage_id
          where av.version_id = vs.version_id and s.id = any (av.dependents)
          order by a.id),
        array(
          select d.name from millrace.stages d
          where d.id = any (vs.dependents) order by d.id),
        p_was), E',\n      ' order by vs.position), p_from)
    || string_agg(format($branch$
    if v_written.%1$I is not null then
      for v_group in
        select w.status, array_agg(w.entity_id order by w.entity_id::%2$s) as ids,
          array_agg(w.entity_id) filter (where w.dirty) as dirty_ids
        from unnest(v_written.%1$I) w group by w.status order by w.status
      loop
        perform millrace.on_status_written(
          %3$s, %1$L, v_group.status, v_group.ids, v_group.dirty_ids);
      end loop;
    end if;$branch$, s.name, p_key_type, p_pipeline.id), '' order by vs.position)
  from millrace.version_stages vs
  join millrace.stages s on s.id = vs.stage_id
  where vs.version_id = p_pipeline.current_version_id
$$;

-- Creates the __intake function of a pipeline and its triggers. Without nested loops: a session
-- keeps its plan, and one made for a row or two would compare all rows of a bulk update with each
-- other.
create or replace function millrace.write_intake(p_pipeline millrace.pipelines, p_key_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
  v_written record;
  v_group record;
begin
  if tg_op = 'UPDATE' then
%2$s
  else
%3$s
  end if;
  return null;
end $$;
create or replace trigger %4$I after insert on %5$s referencing new table as new_rows
  for each statement execute function millrace.%1$I();
create or replace trigger %6$I after update on %5$s
  referencing old table as old_rows new table as new_rows
  for each statement
  -- Any session can make the announcement, so it counts from the schema's owner alone: whoever may
  -- read all data has usage.
  when (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
    or not has_schema_privilege('millrace', 'create'))
  execute function millrace.%1$I()$f$,
    p_pipeline.name || '__intake',
    millrace.intake_body(p_pipeline, p_key_type, format(
      'new_rows n join old_rows o on o.%1$I = n.%1$I', p_pipeline.entity_key), 'o.%I'),
    -- A fresh row has no old statuses: they count as pending.
    millrace.intake_body(p_pipeline, p_key_type, 'new_rows n', '''pending'''),
    'millrace_' || p_pipeline.name || '_inserted', p_pipeline.entity_table,
    'millrace_' || p_pipeline.name || '_updated');
end
$write$;

-- What attach() writes to show a pipeline's runs on its entities

-- Writes one branch of a pipeline's __apply_outcomes function: what a transition of one stage
-- writes into its columns, and into the status of those that became ready with it.
create or replace function millrace.projection_branch(
  p_pipeline millrace.pipelines, p_stage_id int, p_stage text
) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_fields constant text[] := array['status', 'job_id', 'result', 'error', 'retry_count',
    'started_at', 'completed_at'];
  v_key_type text := millrace.key_type(p_pipeline);
  v_own text;
  v_followers text;
begin
  v_own := (
    select string_agg(format('%I = c.%I', u.name, u.field), ', ' order by u.place)
    from unnest(millrace.stage_columns(p_stage), c_fields) with ordinality u(name, field, place));
  v_followers := (
    select string_agg(distinct format(
      ', %1$I = case when %2$L = any (c.queued) then ''queued'' else e.%1$I end',
      n.name || '_status', n.name), '')
    from millrace.version_stages vs
    join millrace.stages n on n.id = vs.stage_id
    where n.pipeline_id = p_pipeline.id
      and p_stage_id = any (vs.needs)
      and millrace.has_columns(p_pipeline, n.name));
  return format($branch$
  when %L then
    update %s e set %s%s
    from unnest(p_changes) c where e.%I = c.entity_id::%s;$branch$,
    p_stage, p_pipeline.entity_table, v_own, coalesce(v_followers, ''),
    p_pipeline.entity_key, v_key_type);
end
$$;

-- Writes the condition that some column of a stage, which a fresh start must clear, is not clear.
create or replace function millrace.dirty_condition(
  p_row text, p_stage text, p_with_status boolean
) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select string_agg(format(
    case
      when c = p_stage || '_retry_count' then '%I.%I <> 0'
      when c = p_stage || '_status' then '%I.%I <> ''pending'''
      else '%I.%I is not null'
    end, p_row, c), ' or ' order by place)
  from unnest(millrace.stage_columns(p_stage)) with ordinality u(c, place)
  where p_with_status or c <> p_stage || '_status'
$$;

-- Creates a function that takes the branch of one stage, and does nothing for any other.
create or replace function millrace.write_by_stage(
  p_function text, p_arguments text, p_branches text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace function millrace.%1$I(p_stage text, %2$s) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  case p_stage%3$s
  else return false;
  end case;
  return true;
end $$$f$, p_function, p_arguments, p_branches);
end
$write$;

-- Creates the __apply_outcomes, __started and __queued functions of a pipeline. What starting over
-- writes holds for whichever stages a run's version lets start over.
create or replace function millrace.write_projection(
  p_pipeline millrace.pipelines, p_key_type text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_stages millrace.stages[] := array(
    select s from millrace.stages s
    where s.pipeline_id = p_pipeline.id and millrace.has_columns(p_pipeline, s.name)
    order by s.id);
begin
  perform millrace.write_by_stage(p_pipeline.name || '__apply_outcomes',
    'p_changes millrace.change[]', (
      select string_agg(millrace.projection_branch(p_pipeline, s.id, s.name), '' order by s.id)
      from unnest(v_stages) s));
  perform millrace.write_by_stage(p_pipeline.name || '__started',
    'p_now timestamptz, p_ids text[]', (
      select string_agg(format($b$
  when %1$L then
    with free as (
      select e.ctid from %3$s e
      where e.%2$I = any (p_ids::%4$s[])
      order by e.%2$I for no key update skip locked)
    update %3$s e set %5$I = 'started', %6$I = p_now
    from free
    where e.ctid = free.ctid;$b$,
        s.name, p_pipeline.entity_key, p_pipeline.entity_table, p_key_type,
        s.name || '_status', s.name || '_started_at'), '' order by s.id)
      from unnest(v_stages) s));
  execute format($f$
create or replace function millrace.%1$I(p_stage text, p_dependents text[], p_ids text[])
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  -- Without a stage it only clears, and leaves rows alone that are clear.
  update %2$s e set %3$s
  where e.%4$I = any (p_ids::%5$s[]) and (p_stage is not null or %6$s);
  return true;
end $$$f$, p_pipeline.name || '__queued', p_pipeline.entity_table,
    (select string_agg(format('%1$I = case when p_stage = %2$L then ''queued'' '
        'when %2$L = any (p_dependents) then ''pending'' else e.%1$I end, ',
        s.name || '_status', s.name) || (
          select string_agg(format(
            '%1$I = case when %2$L = any (p_stage || p_dependents) then %3$s else e.%1$I end',
            c, s.name, case when c = s.name || '_retry_count' then '0' else 'null' end), ', ')
          from unnest((millrace.stage_columns(s.name))[2:]) c), E',\n    ' order by s.id)
     from unnest(v_stages) s),
    p_pipeline.entity_key, p_key_type,
    (select string_agg(millrace.dirty_condition('e', s.name, true), ' or ' order by s.id)
     from unnest(v_stages) s));
end
$write$;

-- What attach() writes to lock and read the rows of a pipeline

-- Writes the size of a row x in bytes as an expression over its columns. As stored: read from the
-- rows' headers and pointers, so that nothing is fetched or unpacked. At most: what it may come to
-- as JSON. Packing saves no more than 99 of 100 bytes; and the text of a jsonb value that is not
-- packed hardly has eight times its bytes. Of a text its own length is known, packed or not.
create or replace function millrace.size_expression(
  p_table regclass, p_columns name[], p_at_most boolean
) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  -- bigint, since a row may have several columns of a gigabyte.
  select '0::bigint + ' || string_agg(
    case
      when t.typlen > 0 then '64'
      when coalesce(nullif(t.typbasetype, 0), t.oid)
          in ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype)
        then format('coalesce(octet_length(x.%I), 0)', a.attname)
      when p_at_most then format('coalesce(pg_column_size(x.%1$I)::bigint '
        '* case when pg_column_compression(x.%1$I) is null then 8 else 100 end, 0)', a.attname)
      else format('coalesce(pg_column_size(x.%I), 0)', a.attname)
    end, ' + ' order by a.attnum)
  from pg_attribute a
  join pg_type t on t.oid = a.atttypid
  where a.attrelid = p_table and a.attname = any (p_columns)
$$;

-- Creates the __rows and __sizes functions of a pipeline. A column that is added later is neither
-- sent nor counted until attach() is called again. A row that may be larger than p_each is not
-- built at all.
create or replace function millrace.write_rows(
  p_pipeline millrace.pipelines, p_key_type text, p_engine_columns text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_columns name[] := array(
    select a.attname
    from pg_attribute a
    where a.attrelid = p_pipeline.entity_table
      and a.attnum > 0
      and not a.attisdropped
      and a.attname <> all (p_engine_columns)
    order by a.attnum);
  v_row text := format('(select %s from %s e where e.%I = i.id::%s) x',
    (select string_agg(format('e.%I', c.name), ', ' order by c.place)
     from unnest(v_columns) with ordinality c(name, place)),
    p_pipeline.entity_table, p_pipeline.entity_key, p_key_type);
begin
  execute format($f$
create or replace function millrace.%1$I(p_ids text[], p_each bigint) returns json[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  return array(
    select (select case when (p_each < %3$s) is not true then to_json(x) end from %2$s)
    from unnest(p_ids) with ordinality i(id, place) order by i.place);
end $$$f$, p_pipeline.name || '__rows', v_row,
    millrace.size_expression(p_pipeline.entity_table, v_columns, p_at_most => true));
  execute format($f$
create or replace function millrace.%1$I(p_ids text[]) returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  return array(
    select (select %3$s from %2$s)
    from unnest(p_ids) with ordinality i(id, place) order by i.place);
end $$$f$, p_pipeline.name || '__sizes', v_row,
    millrace.size_expression(p_pipeline.entity_table, v_columns, p_at_most => false));
end
$write$;

-- Creates the __lock function of a pipeline.
create or replace function millrace.write_lock(p_pipeline millrace.pipelines, p_key_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace function millrace.%1$I(p_ids text[], p_wait boolean default false)
returns text[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  if p_wait then
    return array(
      select e.%2$I::text from %3$s e where e.%2$I = any (p_ids::%4$s[])
      order by e.%2$I for no key update);
  end if;
  return array(
    select e.%2$I::text from %3$s e where e.%2$I = any (p_ids::%4$s[])
    order by e.%2$I for no key update skip locked);
end $$$f$,
    p_pipeline.name || '__lock', p_pipeline.entity_key, p_pipeline.entity_table, p_key_type);
end
$write$;

-- Creates the __metadata function of a pipeline, or drops it where none is declared. A column that
-- was renamed since must not make a user's own write fail.
create or replace function millrace.write_metadata(p_pipeline millrace.pipelines, p_key_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  if p_pipeline.metadata_column is null then
    execute format('drop function if exists millrace.%I(text[])',
      p_pipeline.name || '__metadata');
    return;
  end if;
  execute format($f$
create or replace function millrace.%1$I(p_ids text[]) returns jsonb[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  return array(
    select (select e.%5$I::jsonb from %3$s e where e.%2$I = i.id::%4$s)
    from unnest(p_ids) with ordinality i(id, place) order by i.place);
exception
  when others then
    if millrace.error_kind(sqlstate) <> 'lasting' then
      raise;
    end if;
    perform millrace.report('error', 'metadata_unreadable', %6$L || sqlerrm,
      jsonb_build_object('column', %5$L));
    return array_fill(null::jsonb, array[cardinality(p_ids)]);
end $$$f$, p_pipeline.name || '__metadata', p_pipeline.entity_key, p_pipeline.entity_table,
    p_key_type, p_pipeline.metadata_column,
    format('The metadata of pipeline %s cannot be read, so that its runs start without: ',
      p_pipeline.name));
end
$write$;

-- Creates the __deleted and __key functions of a pipeline with their triggers: runs go with their
-- row, and a row's key stays.
create or replace function millrace.write_row_triggers(p_pipeline millrace.pipelines)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  if tg_op = 'TRUNCATE' then
    perform millrace.delete_runs(array(
      select r.id from millrace.runs r
      where r.pipeline_id = %2$s order by r.id for update));
    perform millrace.forget_begun(%2$s, null);
  else
    perform millrace.forget(%2$s, array(select d.%3$I::text from deleted d));
  end if;
  return null;
end $$;
create or replace trigger %4$I after delete on %5$s referencing old table as deleted
  for each statement execute function millrace.%1$I();
create or replace trigger %6$I after truncate on %5$s
  for each statement execute function millrace.%1$I()$f$,
    p_pipeline.name || '__deleted', p_pipeline.id, p_pipeline.entity_key,
    'millrace_' || p_pipeline.name || '_deleted', p_pipeline.entity_table,
    'millrace_' || p_pipeline.name || '_truncated');
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  raise exception
    'the key of a row of %% cannot change from %% to %%: its runs are filed under it',
    tg_relid::regclass, old.%3$I, new.%3$I
    using errcode = 'MR005', hint = 'Insert a new row and delete the old one.';
end $$;
create or replace trigger %4$I before update of %3$I on %2$s for each row
  when (old.%3$I is distinct from new.%3$I) execute function millrace.%1$I()$f$,
    p_pipeline.name || '__key', p_pipeline.entity_table, p_pipeline.entity_key,
    'millrace_' || p_pipeline.name || '_key');
end
$write$;

-- Attaching: what is written for each pipeline
--
-- millrace.attach() writes static functions and triggers for a pipeline's entity table, so that
-- nothing is planned from text while a user's statement runs. For a pipeline `leads` over
-- public.leads it makes, all in schema millrace:
--   leads__lock(ids, wait)                   locks entities, in key order
--   leads__rows(ids, each)                   their rows, without engine columns
--   leads__sizes(ids)                        how large the rows are
--   leads__metadata(ids)                     what runs copy, where declared
--   leads__deleted()                         the trigger on delete
--   leads__key()                             refuses a changed key
--   leads__intake()                          the trigger on insert and update
--   leads__started(stage, now, ids)          shows a claim
--   leads__apply_outcomes(stage, changes)    shows a transition
--   leads__queued(stage, dependents, ids)    shows starting over
--   leads__since()                           when a status began, where there is a history
--   leads__quota_keys(ids)                   whose quota runs count against, where there is one

-- Drops the triggers of a pipeline that its present definition has no use for, since it has moved
-- to another table or ended its projection.
create or replace function millrace.detach_old(p_pipeline millrace.pipelines) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_trigger record;
begin
  for v_trigger in
    select t.tgname, t.tgrelid::regclass as relation
    from pg_trigger t
    join pg_proc f on f.oid = t.tgfoid
    where f.pronamespace = 'millrace'::regnamespace
      and f.proname = any (array[p_pipeline.name || '__intake',
        p_pipeline.name || '__deleted', p_pipeline.name || '__key',
        p_pipeline.name || '__since'])
      and (t.tgrelid <> p_pipeline.entity_table
        or p_pipeline.projection = 'none' and f.proname = p_pipeline.name || '__intake'
        or p_pipeline.projection <> 'status' and f.proname = p_pipeline.name || '__since')
  loop
    execute format('drop trigger %I on %s', v_trigger.tgname, v_trigger.relation);
  end loop;
end
$$;

-- Names the type of a pipeline's key.
create or replace function millrace.key_type(p_pipeline millrace.pipelines) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select format_type(a.atttypid, a.atttypmod)
    from pg_attribute a
    where a.attrelid = p_pipeline.entity_table and a.attname = p_pipeline.entity_key);
end
$$;

-- Writes statements that take the branch of one pipeline, by ids in ascending order. Halving finds
-- one of many pipelines in a few steps, where a `case` would try them in turn.
create or replace function millrace.branches(p_ids int[], p_branches text[]) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_half int := cardinality(p_ids) / 2;
begin
  if cardinality(p_ids) = 1 then
    return format(E'if p_pipeline_id = %s then\n%s\nend if;', p_ids[1], p_branches[1]);
  end if;
  return format(E'if p_pipeline_id <= %s then\n%s\nelse\n%s\nend if;', p_ids[v_half],
    millrace.branches(p_ids[:v_half], p_branches[:v_half]),
    millrace.branches(p_ids[v_half + 1:], p_branches[v_half + 1:]));
end
$$;

-- Creates a function that leads to one written for each pipeline.
create or replace function millrace.write_way(
  p_function text, p_signature text, p_ids int[], p_branches text[], p_comment text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace function millrace.%1$I%2$s
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
%3$s
return null;
end $$;
comment on function millrace.%1$I is %4$L;
revoke all on function millrace.%1$I from public$f$, p_function, p_signature,
    case when cardinality(p_ids) > 0 then millrace.branches(p_ids, p_branches) else '' end,
    'Written by attach(): ' || p_comment);
end
$write$;

-- Creates lock_entities, rows_of_entities, sizes_of_entities, metadata_of_entities and
-- project_entities, which lead from the engine to the functions of each pipeline; static as well,
-- with one branch a pipeline.
create or replace function millrace.write_dispatch() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_ids int[];
  v_names text[];
begin
  select array_agg(p.id order by p.id), array_agg(p.name order by p.id) into v_ids, v_names
  from millrace.pipelines p;
  perform millrace.write_way('lock_entities',
    '(p_pipeline_id int, p_ids text[], p_wait boolean) returns text[]', v_ids,
    array(select format('return millrace.%I(p_ids, p_wait);', n || '__lock')
      from unnest(v_names) n),
    'locks entities of a pipeline, skipping or waiting for those that somebody holds; '
    'returns the keys got.');
  perform millrace.write_way('rows_of_entities',
    '(p_pipeline_id int, p_ids text[], p_each bigint) returns json[]', v_ids,
    array(select format('return millrace.%I(p_ids, p_each);', n || '__rows')
      from unnest(v_names) n),
    'rows of a pipeline''s entities in the order of their keys, without the engine''s columns; '
    'null for one that may have more than p_each bytes.');
  perform millrace.write_way('sizes_of_entities',
    '(p_pipeline_id int, p_ids text[]) returns bigint[]', v_ids,
    array(select format('return millrace.%I(p_ids);', n || '__sizes') from unnest(v_names) n),
    'the bytes of what rows_of_entities() would build of each entity, as they are stored.');
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id)
  into v_ids, v_names
  from millrace.pipelines p
  where p.metadata_column is not null;
  perform millrace.write_way('metadata_of_entities',
    '(p_pipeline_id int, p_ids text[]) returns jsonb[]', v_ids,
    array(select format('return millrace.%I(p_ids);', n || '__metadata') from unnest(v_names) n),
    'the metadata columns of a pipeline''s entities in the order of their keys; '
    'null where none is declared.');
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id)
  into v_ids, v_names
  from millrace.pipelines p
  where p.projection <> 'none';
  perform millrace.write_project_entities(v_ids, v_names);
end
$write$;

-- Creates project_entities(), the one way to the projecting statements of all pipelines: what
-- transitions write (settle), a claim (started), or starting over (queued). It announces them to
-- the intake triggers, by the depth of triggers that they run at.
create or replace function millrace.write_project_entities(p_ids int[], p_names text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_branches text[] := array(
    select format($f$v_written := case p_how
  when 'settle' then millrace.%I(p_stage, p_changes)
  when 'started' then millrace.%I(p_stage, millrace.now(), p_ids)
  else millrace.%I(p_stage, p_dependents, p_ids) end;$f$,
      n.name || '__apply_outcomes', n.name || '__started', n.name || '__queued')
    from unnest(p_names) with ordinality n(name, place)
    order by n.place);
begin
  execute format($f$
create or replace function millrace.project_entities(p_pipeline_id int, p_how text, p_stage text,
  p_changes millrace.change[], p_ids text[], p_dependents text[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_said text;
  v_written boolean := false;
begin
  if p_how = 'settle' and (p_changes is null
    or current_setting('millrace.projection_off', true) is not distinct from 'on') then
    return false;
  end if;
  v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
%s
  v_said := set_config('millrace.projecting', v_outer, true);
  return v_written;
end $$;
comment on function millrace.project_entities is
  'Written by attach(): the projecting statements of all pipelines.';
revoke all on function millrace.project_entities from public$f$,
    case when cardinality(p_ids) > 0 then millrace.branches(p_ids, v_branches) else '' end);
end
$write$;

create or replace function millrace.attach(p_pipeline text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
  v_stages text[];
  v_key_type text;
  v_function regprocedure;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.name = p_pipeline;
  if not found then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = 'Define it first.';
  end if;
  v_stages := array(
    select s.name
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = v_pipeline.current_version_id
    order by vs.position);
  perform millrace.check_columns(v_pipeline, v_stages);
  perform millrace.detach_old(v_pipeline);
  v_key_type := millrace.key_type(v_pipeline);
  perform millrace.write_lock(v_pipeline, v_key_type);
  perform millrace.write_rows(v_pipeline, v_key_type, array(
    select c
    from millrace.stages s, unnest(millrace.stage_columns(s.name)) c
    where s.pipeline_id = v_pipeline.id and v_pipeline.projection = 'columns'
    union all
    select unnest(millrace.status_columns(v_pipeline.status))));
  perform millrace.write_metadata(v_pipeline, v_key_type);
  perform millrace.write_row_triggers(v_pipeline);
  if v_pipeline.projection = 'columns' then
    perform millrace.write_projection(v_pipeline, v_key_type);
    perform millrace.write_intake(v_pipeline, v_key_type);
  elsif v_pipeline.projection = 'status' then
    perform millrace.write_status(v_pipeline, v_key_type);
  end if;
  perform millrace.write_dispatch();
  perform millrace.attach_groups(v_pipeline, v_key_type);
  perform millrace.attach_quota(v_pipeline, v_key_type);
  for v_function in
    select p.oid
    from pg_proc p
    where p.pronamespace = 'millrace'::regnamespace
      and p.proname like replace(v_pipeline.name, '_', '\_') || '\_\_%'
  loop
    execute format('revoke all on function %s from public', v_function);
    execute format('comment on function %s is %L', v_function, format(
      'Written by millrace.attach(%L); see engine/code/core/attach.sql.', v_pipeline.name));
  end loop;
end
$$;

-- What a worker is told of the attempts that it has claimed

-- Finds the newest version that has a stage, with the stages that it needs there and their names.
create or replace function millrace.latest_version(
  p_stage_id int, out id int, out number int, out needs int[], out names text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  select v.id, v.number, vs.needs, array(
    select s.name
    from unnest(vs.needs) with ordinality n(id, place)
    join millrace.stages s on s.id = n.id
    order by n.place)
  into latest_version.id, latest_version.number, latest_version.needs, latest_version.names
  from millrace.version_stages vs
  join millrace.versions v on v.id = vs.version_id
  where vs.stage_id = p_stage_id
  order by v.id desc
  limit 1;
end
$$;

-- Builds claimed attempts as their worker reads them, each with its entity's row and the results of
-- its needs. As json, not jsonb: it is read once, as text, by the function at the other end. What
-- all or most of a batch have in common, the version and its needs, is looked up once. Rows and
-- results that measured_rows() has built already come along with why some are too large; else each
-- may have p_each bytes, and a batch in which one may have more is null.
create or replace function millrace.batch_of(
  p_stage millrace.stages, p_token uuid, p_items millrace.claimed[], p_entity_ids text[],
  p_each bigint, p_built millrace.built[] default null
) returns json
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows json[];
  v_within boolean;
  v_batch json;
begin
  if p_built is null then
    v_rows := millrace.rows_of_entities(p_stage.pipeline_id, p_entity_ids, p_each);
  end if;
  -- Rows made JSON as a whole: naming each field in json_build_object costs half as much again.
  select json_agg(b), bool_and(b.entity is not null and b.needs is not null)
  into v_batch, v_within
  from (
    select i.attempt_id as attempt, p_token as token, i.run_id as run, i.trace_id, i.entity_id,
      case when i.version_id = l.id then l.number
        else (select v.number from millrace.versions v
          where v.id = i.version_id) end as version,
      coalesce(i.entity, i.built_entity) as entity, i.retry_count, i.submission, i.isolated,
      -- A retry goes on with the execution of the stage that the oldest attempt began.
      case when i.number = 1 then i.attempt_id else (
        select min(a.id)
        from millrace.attempts a
        where a.run_id = i.run_id and a.stage_id = p_stage.id and not a.superseded)
      end as execution,
      case
        when p_built is not null then i.built_needs
        when i.version_id <> l.id
          then millrace.needs_of(i.run_id, i.version_id, p_stage.id, p_each)
        else (
          select case when bool_or(z.most > p_each) is not true then coalesce(
            json_object_agg(l.names[array_position(l.needs, n.stage_id)], n.output)
              filter (where (z.most > p_each) is not true), '{}') end
          from millrace.attempts n
          -- The most that its text may have, as in size_expression() of attach-rows.sql.
          cross join lateral (values (pg_column_size(n.output)::bigint
            * case when pg_column_compression(n.output) is null then 8 else 100 end)) z(most)
          where n.run_id = i.run_id
            and n.stage_id = any (l.needs)
            and n.state in ('completed', 'skipped')
            and not n.superseded)
      end as needs,
      i.failure
    from rows from (unnest(p_items), unnest(v_rows), unnest(p_built))
      as i(attempt_id, run_id, entity_id, trace_id, version_id, retry_count, submission, number,
        isolated, entity, built_entity, built_needs, failure)
    cross join millrace.latest_version(p_stage.id) l
    -- offset 0 keeps the planner from making the needs once for the JSON and once more to ask
    -- whether they are null.
    offset 0) b;
  return case when v_within then v_batch when cardinality(p_items) = 0 then '[]' end;
end
$$;

-- Builds the rows of as many items, from the first, as have p_bytes together, with the results of
-- their needs; one that alone has more comes with the failure to report. One row at a time: of what
-- is stored the size is known before it is fetched; what that leaves open shows once it is built.
-- The first row that the others leave no room for ends the batch.
create or replace function millrace.measured_rows(
  p_stage millrace.stages, p_items millrace.claimed[], p_entity_ids text[], p_bytes bigint
) returns millrace.built[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  -- What else the batch says of an item.
  c_frame constant int := 500;
  -- What is longer than Postgres can write out counts as a gigabyte.
  c_unwritable constant bigint := 1073741824;
  v_stored bigint[] := millrace.sizes_of_entities(p_stage.pipeline_id, p_entity_ids);
  v_used bigint := 0;
  v_size bigint;
  v_row millrace.built;
  v_rows millrace.built[] := '{}';
begin
  for v_i in 1 .. cardinality(p_items) loop
    v_size := c_frame + coalesce(v_stored[v_i], 0)
      + millrace.size_of_needs(p_items[v_i].run_id, p_items[v_i].version_id, p_stage.id);
    if v_size <= p_bytes then
      exit when v_used + v_size > p_bytes;
      v_row := millrace.built_row(p_stage, p_items[v_i]);
      v_size := c_frame + coalesce(
        octet_length(v_row.entity::text)::bigint + octet_length(v_row.needs::text), c_unwritable);
    end if;
    if v_size > p_bytes then
      v_row := row('{}', '{}', json_build_object('code', 'row_too_large', 'message', format(
        'the row and the results that stage %s needs have %s bytes, '
        'but a worker takes %s (setting batch_bytes); shorten the row, then retry it',
        p_stage.name, v_size, p_bytes)))::millrace.built;
      v_size := c_frame;
    end if;
    exit when v_used + v_size > p_bytes;
    v_used := v_used + v_size;
    v_rows[v_i] := v_row;
  end loop;
  return v_rows;
end
$$;

-- Builds the row of an item and the results of its needs; null where Postgres cannot write them
-- out, for it makes no text of over a gigabyte, which a number such as 1e100000 comes to.
create or replace function millrace.built_row(p_stage millrace.stages, p_item millrace.claimed)
returns millrace.built
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return row(
    coalesce((millrace.rows_of_entities(
      p_stage.pipeline_id, array[p_item.entity_id], null))[1], '{}'),
    millrace.needs_of(p_item.run_id, p_item.version_id, p_stage.id, null),
    null)::millrace.built;
exception
  when program_limit_exceeded or out_of_memory then
    return null;
end
$$;

-- Builds the batch of as many items, from the first, as p_bytes allow; kept says how many. A batch
-- whose rows are small, as nearly all are, is built in one go. Where that cannot be told
-- beforehand, its rows are measured one by one: a few per cent more work for rows of ten kilobytes,
-- and a tenth of all for rows of one.
create or replace function millrace.fill_batch(
  p_stage millrace.stages, p_token uuid, p_items millrace.claimed[], p_entity_ids text[],
  p_bytes bigint, out batch json, out kept int
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_built millrace.built[];
begin
  kept := cardinality(p_items);
  batch := millrace.batch_of(
    p_stage, p_token, p_items, p_entity_ids, p_bytes / (2 * greatest(kept, 1)));
  if pg_column_size(batch) <= p_bytes then
    return;
  end if;
  v_built := millrace.measured_rows(p_stage, p_items, p_entity_ids, p_bytes);
  kept := cardinality(v_built);
  batch := millrace.batch_of(
    p_stage, p_token, p_items[:kept], p_entity_ids[:kept], null, v_built);
end
$$;

-- Builds the batch of those attempts of a claim that are still under it, as far as p_bytes allow,
-- of what was handed out before. A row may have grown since: what has no room any more is released.
create or replace function millrace.held_batch(
  p_stage millrace.stages, p_token uuid, p_attempt_ids bigint[], p_bytes bigint,
  out batch json, out kept int
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items millrace.claimed[] := millrace.held_items(p_token, p_attempt_ids);
  v_filled record;
begin
  v_filled := millrace.fill_batch(p_stage, p_token, v_items,
    array(select i.entity_id from unnest(v_items) i), p_bytes);
  batch := v_filled.batch;
  kept := v_filled.kept;
  if kept < cardinality(v_items) then
    perform millrace.record_items(millrace.parse_items((
      select json_agg(json_build_object(
        'attempt', i.attempt_id, 'token', p_token, 'outcome', 'released'))
      from unnest(v_items[kept + 1:]) i), 'attempt'));
  end if;
end
$$;

-- Builds the results of what a stage of a run needs, by the names of the stages; null where they
-- may have more than p_each bytes.
create or replace function millrace.needs_of(
  p_run_id bigint, p_version_id int, p_stage_id int, p_each bigint
) returns json
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if 100 * millrace.size_of_needs(p_run_id, p_version_id, p_stage_id) > p_each then
    return null;
  end if;
  return coalesce((
    select json_object_agg(s.name, n.output)
    from millrace.version_stages vs
    join millrace.attempts n on n.run_id = p_run_id
      and n.stage_id = any (vs.needs)
      and n.state in ('completed', 'skipped')
      and not n.superseded
    join millrace.stages s on s.id = n.stage_id
    where vs.version_id = p_version_id and vs.stage_id = p_stage_id), '{}');
end
$$;

-- Adds up the bytes of the results that a stage of a run needs, as they are stored.
create or replace function millrace.size_of_needs(
  p_run_id bigint, p_version_id int, p_stage_id int
) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select coalesce(sum(pg_column_size(n.output)), 0)
    from millrace.version_stages vs
    join millrace.attempts n on n.run_id = p_run_id
      and n.stage_id = any (vs.needs)
      and n.state in ('completed', 'skipped')
      and not n.superseded
    where vs.version_id = p_version_id and vs.stage_id = p_stage_id);
end
$$;

-- Cancelling, and holding runs for a person's call

-- Locks runs and their entities in the lock order, waiting for both.
create or replace function millrace.hold_runs(p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
begin
  for v_group in
    select r.pipeline_id, array_agg(r.entity_id) as entity_ids
    from millrace.runs r
    where r.id = any (p_run_ids)
    group by r.pipeline_id
    order by r.pipeline_id
  loop
    perform millrace.lock_entities(v_group.pipeline_id, v_group.entity_ids, true);
  end loop;
  perform
  from millrace.runs r
  where r.id = any (p_run_ids)
  order by r.id
  for no key update;
end
$$;

-- Cancels a run by a person's call.
create or replace function millrace.cancel(p_run bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_status millrace.run_status;
begin
  perform millrace.hold_runs(array[p_run]);
  select r.status into v_status from millrace.runs r where r.id = p_run;
  if v_status is distinct from 'running' then
    raise exception 'run % cannot be cancelled: %', coalesce(p_run::text, 'null'),
      coalesce('it is ' || v_status, 'there is no such run')
      using errcode = case when v_status is null then 'MR003' else 'MR004' end,
        hint = 'Only a running run can be cancelled: '
          || 'select * from millrace.runs where status = ''running''.';
  end if;
  perform millrace.end_runs(array[p_run], 'cancelled');
  perform millrace.project_cancelled(millrace.cancel_attempts(array[p_run], null));
end
$$;

-- What a definition may not change under live runs
--
-- millrace.define() calls these once it holds the table, so that no run begins beside them. Each
-- raises MR001 with the number of runs that are in the way and the remedy, or does nothing.

-- Raises MR001 when a definition drops a stage that live runs still have ahead of them: they finish
-- on their own version, with it.
create or replace function millrace.check_dropped_stages(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dropped record;
begin
  select s.name, count(*) as runs
  into v_dropped
  from millrace.stages s
  join millrace.version_stages vs on vs.stage_id = s.id
  join millrace.runs r on r.version_id = vs.version_id and r.status = 'running'
  where s.pipeline_id = p_pipeline_id
    and not millrace.graph_of(p_definition) ? s.name
    and not exists (
      select
      from millrace.attempts a
      where a.run_id = r.id
        and a.stage_id = s.id
        and a.state in ('completed', 'skipped')
        and not a.superseded)
  group by s.name
  order by s.name
  limit 1;
  if found then
    raise exception 'stage % is dropped, but % live runs still need it', v_dropped.name,
      v_dropped.runs
      using errcode = 'MR001',
        hint = format('Let them finish, or keep the stage %s, or cancel them: '
        'select millrace.cancel(id) from millrace.runs where status = ''running'' and pipeline_id '
        '= %s.',
        v_dropped.name, p_pipeline_id);
  end if;
end
$$;

-- Raises MR001 when a definition drops a stage that a threshold of a parent pipeline counts.
create or replace function millrace.check_counted_stages(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_counted record;
begin
  select c.name, s.name as awaiting, p.name as parent
  into v_counted
  from millrace.stages c
  join millrace.version_stages vs on vs.after @> jsonb_build_array(jsonb_build_object('stage',
    c.id))
  join millrace.pipelines p on p.current_version_id = vs.version_id
  join millrace.stages s on s.id = vs.stage_id
  where c.pipeline_id = p_pipeline_id
    and not millrace.graph_of(p_definition) ? c.name
  order by c.name, p.name, s.name
  limit 1;
  if found then
    raise exception 'stage % is dropped, but stage % of pipeline % waits until children have done '
      'it',
      v_counted.name, v_counted.awaiting, v_counted.parent
      using errcode = 'MR001',
        hint = format('Keep stage %s until pipeline %s is defined without that threshold, then '
        'drop it. A stage of another name is added first, to be counted instead.', v_counted.name,
          v_counted.parent);
  end if;
end
$$;

-- Raises MR001 when a pipeline with live runs is to change its table or key.
create or replace function millrace.check_moved(p_pipeline text, p_table regclass, p_key text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_live record;
begin
  select p.id, p.entity_table, p.entity_key, count(*) as runs
  into v_live
  from millrace.pipelines p
  join millrace.runs r on r.pipeline_id = p.id and r.status = 'running'
  where p.name = p_pipeline
    and (p.entity_table <> p_table or p.entity_key <> p_key)
  group by p.id;
  if found then
    raise exception 'pipeline % cannot move from %.% to %.%: % live runs are filed under the '
      'former',
      p_pipeline, v_live.entity_table, v_live.entity_key, p_table, p_key, v_live.runs
      using errcode = 'MR001', hint = format('Let them finish, or cancel them: '
        'select millrace.cancel(id) from millrace.runs where status = ''running'' and pipeline_id '
        '= %s.', v_live.id);
  end if;
end
$$;

-- Raises MR001 when a pipeline is to change its table or key under a parent that starts runs of it:
-- a run inside a run is over the same row, and without an insert function an item's key is that of
-- the row.
create or replace function millrace.check_parents(p_pipeline text, p_table regclass, p_key text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parent record;
begin
  select o.name as pipeline, s.name as stage
  into v_parent
  from millrace.pipelines p
  join millrace.version_stages vs on vs.child_pipeline_id = p.id
  join millrace.pipelines o on o.current_version_id = vs.version_id
  join millrace.stages s on s.id = vs.stage_id
  where p.name = p_pipeline
    and (p.entity_table <> p_table or p.entity_key <> p_key)
    and s.child ->> 'insert' is null
  limit 1;
  if found then
    raise exception 'pipeline % cannot move to %.%: stage % of pipeline % starts runs of it by '
      'the keys of the former',
      p_pipeline, p_table, p_key, v_parent.stage, v_parent.pipeline
      using errcode = 'MR001',
        hint = 'Define that pipeline without the stage first, or give this one another name.';
  end if;
end
$$;

-- Raises MR001 when a stage whose attempts wait for people or children is to become one that a
-- worker runs while they wait, or the other way round.
create or replace function millrace.check_changed_kinds(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_waiting text[] := array['manual', 'pipeline', 'map'];
  v_changed record;
begin
  select t.name, t.kind, s ->> 'kind' as to_kind, count(*) as attempts
  into v_changed
  from millrace.stages t
  join jsonb_array_elements(p_definition -> 'stages') s on s ->> 'name' = t.name
  join millrace.attempts a on a.stage_id = t.id and a.state in ('queued', 'started', 'waiting')
  where t.pipeline_id = p_pipeline_id
    and t.kind <> s ->> 'kind'
    and (t.kind = any (v_waiting) or s ->> 'kind' = any (v_waiting))
  group by t.name, t.kind, s ->> 'kind'
  limit 1;
  if found then
    raise exception 'stage % cannot change from kind % to % while % attempts of it are under way',
      v_changed.name, v_changed.kind, v_changed.to_kind, v_changed.attempts
      using errcode = 'MR001',
        hint = 'Let them finish, or cancel their runs; or give the new stage another name.';
  end if;
end
$$;

-- Raises MR001 when a definition changes the child pipeline of a stage that live runs have not
-- done: they would go on with rows of the wrong table.
create or replace function millrace.check_changed_children(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_changed record;
begin
  select t.name, t.child ->> 'pipeline' as child, count(*) as runs
  into v_changed
  from millrace.stages t
  join jsonb_array_elements(p_definition -> 'stages') s on s ->> 'name' = t.name
  join millrace.version_stages vs on vs.stage_id = t.id
  join millrace.runs r on r.version_id = vs.version_id and r.status = 'running'
  where t.pipeline_id = p_pipeline_id
    and t.child ->> 'pipeline' <> s #>> '{child,pipeline}'
    and not millrace.is_done(r.id, t.id)
  group by t.name, t.child ->> 'pipeline'
  limit 1;
  if found then
    raise exception 'stage % cannot change its child pipeline %, which % live runs have ahead of '
      'them or under way',
      v_changed.name, v_changed.child, v_changed.runs
      using errcode = 'MR001',
        hint = 'Let them finish, or cancel them; or give the new stage another name.';
  end if;
end
$$;

-- What a definition may say
--
-- millrace.define() calls check_definition() before it writes anything. Its shape (fields, types,
-- bounds, defaults) is written once, in TypeScript, from which the build makes definition_schema().
-- What no schema can say stands here and in the features: whether tables, columns and functions
-- exist, and what stages and pipelines say of one another. Each function raises MR001, with the
-- field, what was found and the remedy, or does nothing.

-- Raises MR001 about one value of a stage's definition.
create or replace function millrace.refuse_value(
  p_stage jsonb,
  p_path text[],
  p_wanted text,
  p_hint text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'stage %: % is %, but must be %',
    p_stage ->> 'name', array_to_string(p_path, '.'),
    coalesce((p_stage #> p_path)::text, 'missing'), p_wanted
    using errcode = 'MR001', hint = p_hint;
end
$$;

-- Finds the table with this name; null when there is none. Of a name with too many dots, or with
-- brackets, Postgres raises an error of its own that names no field.
create or replace function millrace.table_named(p_name text) returns regclass
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return to_regclass(p_name);
exception when syntax_error or feature_not_supported or invalid_name then
  return null;
end
$$;

-- Finds the function with this name and these arguments; null when there is none.
create or replace function millrace.function_named(p_name text, p_arguments text)
returns regprocedure
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return to_regprocedure(format('%s(%s)', p_name, p_arguments));
exception when syntax_error or feature_not_supported or invalid_name then
  return null;
end
$$;

-- Says whether the table of a definition's entities has a column of this name.
create or replace function millrace.has_column(p_definition jsonb, p_column text) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from pg_attribute a
    where a.attrelid = to_regclass(p_definition #>> '{entity,table}')
      and a.attnum > 0
      and not a.attisdropped
      and a.attname = p_column)
$$;

-- Raises MR001 unless a definition has the shape that definition_schema() says. A stage is named,
-- or where it has no name, its place in the list.
create or replace function millrace.check_shape(p_definition jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schema jsonb := millrace.definition_schema();
  v_fault jsonb;
  v_sentence text;
  v_stage text;
begin
  if jsonb_typeof(p_definition) is distinct from 'object' then
    raise exception 'a definition must be an object with "pipeline", "entity" and a list '
      '"stages", this is %',
      coalesce(jsonb_typeof(p_definition), 'null')
      using errcode = 'MR001',
        hint = 'Write it with definePipeline() in supabase/functions/_pipelines and run `npm run '
          'pipelines:sync`.';
  end if;
  v_fault := millrace.find_fault(v_schema, v_schema, p_definition, '', true);
  if v_fault is null then
    return;
  end if;
  v_sentence := ltrim(v_fault ->> 'sentence', '.');
  v_stage := p_definition #>> array[
    'stages', substring(v_sentence from '^stages\[(\d+)\]\.'), 'name'];
  raise exception '%', case
    when v_stage ~ '^\w+$' then format(
      'stage %s: %s', v_stage, regexp_replace(v_sentence, '^stages\[\d+\]\.', ''))
    else v_sentence
  end
    using errcode = 'MR001', hint = coalesce(nullif(concat_ws(' ',
      v_fault ->> 'hint', 'Known here: ' || (v_fault ->> 'known') || '.', v_fault ->> 'remedy'),
        ''),
      'Correct it, or leave it out.');
end
$$;

-- Raises MR001 unless the needs of a stage are stages of this pipeline, each named once.
create or replace function millrace.check_needs(p_stage jsonb, p_names text[]) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_needs text[] := array(select jsonb_array_elements_text(p_stage -> 'needs'));
  v_need text;
begin
  select n
  into v_need
  from unnest(v_needs) n
  where n <> all (p_names)
  limit 1;
  if found then
    raise exception 'stage %: needs names %, which is no stage of this pipeline',
      p_stage ->> 'name', v_need
      using errcode = 'MR001', hint = 'Stages are: ' || array_to_string(p_names, ', ') || '.';
  end if;
  select n
  into v_need
  from unnest(v_needs) n
  group by n
  having count(*) > 1
  limit 1;
  if found then
    raise exception 'stage %: needs names % twice', p_stage ->> 'name', v_need
      using errcode = 'MR001', hint = 'Name each need once.';
  end if;
end
$$;

-- Raises MR001 where a stage names what does not exist, or says something that cannot be.
create or replace function millrace.check_stage(p_stage jsonb, p_names text[], p_definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.check_needs(p_stage, p_names);
  if p_stage ->> 'kind' = 'external' and p_stage #>> '{completion,poll_seconds}' is null
    and p_stage #> '{completion,callback}' is distinct from 'true' then
    raise exception 'stage %: an external stage needs completion by callback or by polling',
      p_stage ->> 'name'
      using errcode = 'MR001',
        hint = 'Set completion.callback to true, or completion.poll_seconds to a number, or both.';
  end if;
  if (p_stage ->> 'timeout_seconds')::numeric > millrace.setting('worker_seconds')::numeric then
    perform millrace.refuse_value(p_stage, '{timeout_seconds}',
      format('at most %s, the seconds that a worker may run: no worker could ever claim it',
        millrace.setting('worker_seconds')),
      'Lower the timeout, or raise worker_seconds in millrace.settings (paid plans allow about '
      '190) together with '
      'WORKER_SECONDS of the functions.');
  end if;
  if p_stage ? 'apply' and millrace.function_named(p_stage ->> 'apply', 'jsonb') is null then
    perform millrace.refuse_value(p_stage, '{apply}', 'a function that takes one jsonb',
      'Create the function in an earlier migration and name it with its schema.');
  end if;
  perform millrace.check_conditions(p_stage, p_definition);
  perform millrace.check_on_demand(p_stage, p_definition -> 'stages');
  perform millrace.check_ends(p_stage);
  perform millrace.check_thresholds(p_stage, p_definition -> 'stages');
  perform millrace.check_child(p_stage, p_definition);
  perform millrace.check_rival(p_stage, p_definition -> 'stages');
  perform millrace.check_fan_in(p_stage);
  if p_stage #> '{decision,schema}' is not null then
    perform millrace.check_json_schema(
      p_stage #> '{decision,schema}', format('stage %s: decision.schema', p_stage ->> 'name'));
  end if;
  perform millrace.check_limits(p_stage, p_definition);
end
$$;

-- Names the stages that come right before a stage: its needs, and the maps whose thresholds it
-- awaits.
create or replace function millrace.edges_to(p_stage jsonb) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select n #>> '{}'
    from jsonb_path_query(p_stage, '$.needs[*]') n
    union
    select m #>> '{}'
    from jsonb_path_query(p_stage, '$.after[*].map') m)
$$;

-- Orders the names of the stages topologically, by Kahn's method. Raises MR001 when some need each
-- other in a cycle: they never become free.
create or replace function millrace.order_stages(p_stages jsonb) returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ordered text[] := '{}';
  v_free text[];
begin
  loop
    select array_agg(s.value ->> 'name' order by s.ordinality)
    into v_free
    from jsonb_array_elements(p_stages) with ordinality s
    where s.value ->> 'name' <> all (v_ordered)
      and millrace.edges_to(s.value) <@ v_ordered;
    exit when v_free is null;
    v_ordered := v_ordered || v_free;
  end loop;
  if cardinality(v_ordered) < jsonb_array_length(p_stages) then
    raise exception 'the stages % need each other in a cycle', (
        select string_agg(s ->> 'name', ', ')
        from jsonb_array_elements(p_stages) s
        where s ->> 'name' <> all (v_ordered))
      using errcode = 'MR001',
        hint = 'Remove one of their needs or thresholds, so that some stage can be first.';
  end if;
  return v_ordered;
end
$$;

-- Raises MR001 unless the table of a definition exists and the column of its metadata is absent or
-- of type jsonb.
create or replace function millrace.check_entity(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_entity jsonb := p_definition -> 'entity';
  v_table text := v_entity ->> 'table';
  v_type text;
begin
  if millrace.table_named(v_table) is null then
    raise exception 'entity.table is %, which is no table', v_entity -> 'table'
      using errcode = 'MR001',
        hint = 'Create the table in an earlier migration and name it with its schema.';
  elsif v_entity ? 'startable_by' and v_entity ->> 'projection' = 'none' then
    raise exception 'entity.startable_by belongs to the projections columns and status, this is %',
      v_entity -> 'projection'
      using errcode = 'MR001',
        hint = 'Without columns there are no statuses to write: leave startable_by out.';
  elsif v_entity ? 'metadata' then
    select format_type(a.atttypid, null)
    into v_type
    from pg_attribute a
    where a.attrelid = to_regclass(v_table)
      and a.attname = v_entity ->> 'metadata'
      and a.attnum > 0
      and not a.attisdropped;
    if v_type is distinct from 'jsonb' then
      raise exception 'entity.metadata is %, which is %', v_entity -> 'metadata',
        coalesce('of type ' || v_type, format('no column of %s', v_table))
        using errcode = 'MR001',
          hint = format('Name a column of type jsonb: alter table %s add column metadata jsonb '
          'not null default ''{}''; or leave it out.', v_table);
    end if;
  end if;
end
$$;

-- Checks a definition and fills in its defaults. Raises MR001 when it is not valid.
create or replace function millrace.check_definition(p_definition jsonb) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schema jsonb := millrace.definition_schema();
  v_definition jsonb;
  v_names text[];
  v_twice text;
  v_stage jsonb;
begin
  perform millrace.check_shape(p_definition);
  v_definition := millrace.with_defaults(v_schema, v_schema, p_definition);
  perform millrace.check_entity(v_definition);
  perform millrace.check_due(v_definition);
  perform millrace.check_replaces(v_definition);
  perform millrace.check_quota(v_definition);
  v_names := array(select s ->> 'name' from jsonb_array_elements(v_definition -> 'stages') s);
  select n
  into v_twice
  from unnest(v_names) n
  group by n
  having count(*) > 1
  limit 1;
  if found then
    raise exception 'pipeline %: stage % is listed twice', v_definition ->> 'pipeline', v_twice
      using errcode = 'MR001', hint = 'Give each stage a name of its own.';
  end if;
  for v_stage in select s from jsonb_array_elements(v_definition -> 'stages') s loop
    perform millrace.check_stage(v_stage, v_names, v_definition);
  end loop;
  perform millrace.order_stages(v_definition -> 'stages');
  perform millrace.check_status(v_definition);
  return v_definition;
end
$$;

-- What a report may change
--
-- Reports are judged one by one, under the locks. lock_uniform_batch() is the fast path beside
-- check_fencing(): nearly every batch is completed as a whole under one token.

-- Says why a report changes nothing that comes when the attempt is in this state.
create or replace function millrace.stale_reason(p_state millrace.attempt_state, p_error jsonb)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_state is null then 'there is no such attempt: its entity or its run was deleted'
    when p_state = 'cancelled' then 'the attempt was cancelled'
    when p_state = 'failed' and p_error ->> 'code' = 'lost_lease'
      then 'the lease had expired and the attempt was given up'
    when p_state = 'started'
      then 'another worker has the attempt: the token is not the current one'
    else format('the attempt is %s', p_state)
  end
$$;

-- Judges the end of an external job by the attempt that it is about; null to go on. p_late: an
-- earlier submission's job. The waiting attempt must wait for this very job, or for a job of an
-- earlier submission that comes late; one that is started or queued has not said yet. A stage that
-- is completed needs no other result, whichever submission's it has; what a person completed is
-- void for every job.
create or replace function millrace.verdict_on_end(
  p_attempt millrace.attempts, p_item millrace.work, p_late boolean, p_too_large boolean
) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_late and p_too_large then 'stale'
    when p_attempt.state in ('started', 'queued') then null
    when p_attempt.state = 'waiting' and (p_late or e.same_job) then null
    when p_attempt.state = 'completed' and p_item.outcome = 'completed'
      and p_attempt.service is distinct from 'by_hand' then 'duplicate'
    when p_attempt.state::text = p_item.outcome and e.same_job then 'duplicate'
    else 'stale'
  end
  from (
    select p_attempt.service = p_item.service and p_attempt.job_id = p_item.job_id as same_job) e
$$;

-- Judges what a worker says by the attempt and the token that it shows; null to go on. A map stage
-- may wait only once it has spawned its last child.
create or replace function millrace.verdict_on_report(
  p_attempt millrace.attempts, p_item millrace.work, p_kind text
) returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return case
    when p_attempt.token::text is distinct from p_item.shown then 'stale'
    when p_attempt.state = 'started' and p_item.outcome = 'waiting' and p_kind = 'map'
      and not exists (
        select from millrace.fan_outs f
        where f.run_id = p_attempt.run_id
          and f.stage_id = p_attempt.stage_id
          and f.state = 'open'
          and f.total is not null) then 'rejected'
    when p_attempt.state = 'started' then null
    when p_attempt.state::text = p_item.outcome then 'duplicate'
    when p_item.outcome = 'waiting' and p_attempt.state = 'completed' then 'duplicate'
    else 'stale'
  end;
end
$$;

-- Judges each item under the locks and fills in what it concerns: the verdict is null to go on,
-- else duplicate, stale, busy or rejected with the reason. Call it after the locks: it must read a
-- snapshot taken under them. p_late names, by their place, the ends of jobs that an earlier
-- submission bought.
create or replace function millrace.check_fencing(
  p_items millrace.work[], p_locked bigint[], p_late int[] default '{}'
) returns millrace.work[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_judged record;
  v_item millrace.work;
  v_items millrace.work[] := '{}';
  v_twice bigint[] := array(
    select i.attempt_id
    from unnest(p_items) i where i.verdict is null
    group by i.attempt_id
    having count(*) > 1);
begin
  for v_judged in
    select i as item, a as attempt, r.entity_id, l.too_large, l.elsewhere, v.verdict,
      case when i.outcome = 'waiting' and s.kind = 'map' then 'the children are not all spawned: '
          'send the last chunk, with p_last, first'
        else format('attempt %s is listed twice in one call', i.attempt_id) end as why_rejected
    from unnest(p_items) i
    left join millrace.attempts a on a.id = i.attempt_id
    left join millrace.runs r on r.id = a.run_id
    left join millrace.stages s on s.id = a.stage_id
    cross join lateral (
      select millrace.size_fault(i, s) as too_large,
        i.claimed_stage <> s.name or i.claimed_trace <> r.trace_id::text as elsewhere
      offset 0) l
    cross join lateral (
      select millrace.verdict_of(p_items, i, a, s.kind, l.elsewhere, i.attempt_id = any (v_twice),
        a.id = any (p_locked), i.ord = any (p_late), l.too_large is not null) as verdict) v
    order by i.ord
  loop
    v_item := v_judged.item;
    if v_judged.too_large is not null then
      v_item.outcome := 'failed';
      v_item.result := null;
      v_item.error := jsonb_build_object(
        'code', 'result_too_large', 'permanent', true, 'message', v_judged.too_large);
    end if;
    v_item.token := (v_judged.attempt).token;
    v_item.run_id := (v_judged.attempt).run_id;
    v_item.stage_id := (v_judged.attempt).stage_id;
    v_item.was := (v_judged.attempt).state;
    v_item.entity_id := v_judged.entity_id;
    v_item.verdict := v_judged.verdict;
    v_item.reason := case
      when v_item.verdict = 'busy'
       then 'the entity is locked by another transaction'
      when v_item.verdict = 'rejected' then coalesce(v_item.reason, v_judged.why_rejected)
      when v_item.verdict is distinct from 'stale' then coalesce(v_item.reason, v_judged.too_large)
      when v_item.ord = any (p_late) and v_judged.too_large is not null then v_judged.too_large
      when v_judged.elsewhere then 'the job was submitted for another run'
      else millrace.stale_reason((v_judged.attempt).state, (v_judged.attempt).error) end;
    v_items := v_items || v_item;
  end loop;
  return v_items;
end
$$;

-- Says that a result is longer than its stage allows; null where it is not.
create or replace function millrace.size_fault(p_item millrace.work, p_stage millrace.stages)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_size int := case when p_item.outcome = 'completed' then octet_length(p_item.result::text) end;
begin
  if v_size > p_stage.result_limit_bytes then
    return format('the result has %s bytes, but the limit of stage %s is %s; '
      'put it into Storage and return its location',
      v_size, p_stage.name, p_stage.result_limit_bytes);
  end if;
  return null;
end
$$;

-- Judges one item of a batch under the locks; null to go on. p_elsewhere: its job was submitted for
-- another run, or for a database that was since made anew. p_twice: others of the call may name its
-- attempt too. Of two jobs of one attempt that end in one call, the second is judged when the first
-- is recorded.
create or replace function millrace.verdict_of(
  p_items millrace.work[], p_item millrace.work, p_attempt millrace.attempts, p_kind text,
  p_elsewhere boolean, p_twice boolean, p_locked boolean, p_late boolean, p_too_large boolean
) returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_repeat text;
begin
  if p_twice and p_item.verdict is null then
    v_repeat := (
      select case when p_item.shown is null and bool_or(e.job_id <> p_item.job_id) then 'busy'
        else 'rejected' end
      from unnest(p_items) e
      where e.attempt_id = p_item.attempt_id and e.verdict is null and e.ord < p_item.ord
      having count(*) > 0);
  end if;
  return case
    when p_item.verdict is not null then p_item.verdict
    when v_repeat is not null then v_repeat
    when p_attempt.id is null then 'stale'
    when not p_locked then 'busy'
    when p_item.shown is not null then millrace.verdict_on_report(p_attempt, p_item, p_kind)
    when p_elsewhere then 'stale'
    else millrace.verdict_on_end(p_attempt, p_item, p_late, p_too_large)
  end;
end
$$;

-- Locks the batch that nearly all are: everything completed under one token of one stage, with no
-- function to apply and no run to end. Returns the stage's limit of a result's bytes, under which
-- none of these can be too long; null where something is held by somebody or differs, for then the
-- batch is to be locked and judged item by item. Whether the token still counts is left to
-- complete(), whose statement finds out at no cost. At batches of 50 it saves a quarter of a
-- transition's CPU time.
create or replace function millrace.lock_uniform_batch(p_items millrace.work[]) returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage_id int := p_items[1].stage_id;
  v_token uuid := p_items[1].token;
  v_shown text := v_token::text;
  v_batch record;
begin
  select s.pipeline_id, s.result_limit_bytes,
    p.projection <> 'none' or millrace.writes_entities(p.id) as writes,
    b.run_ids, b.entity_ids, b.size, b.alike
  into v_batch
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  cross join lateral (
    select array_agg(i.run_id) as run_ids, array_agg(i.entity_id) as entity_ids, count(*) as size,
      bool_and(i.outcome = 'completed' and i.stage_id = s.id and i.token = v_token
        and i.shown = v_shown and i.verdict is null and i.reason is null
        -- Its text is longer than the jsonb value, of a list of numbers such as 1e-300 twenty
        -- times; 32 times is more than any number of a function needs.
        and pg_column_size(i.result) < s.result_limit_bytes / 32) as alike
    from unnest(p_items) i
  ) b
  where s.id = v_stage_id and s.apply is null and not s.has_ends;
  if v_batch.alike is not true then
    return null;
  end if;
  if v_batch.writes and v_batch.size > cardinality(
      millrace.lock_entities(v_batch.pipeline_id, v_batch.entity_ids, false)) then
    return null;
  end if;
  if v_batch.size > (
      select count(*)
      from (
        select from millrace.runs r
        where r.id = any (v_batch.run_ids)
        order by r.id
        for no key update skip locked) r) then
    return null;
  end if;
  return v_batch.result_limit_bytes;
end
$$;

-- Builds the answer to each item of a recorded batch, in order.
create or replace function millrace.verdicts_of(p_items millrace.work[]) returns json
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select json_agg(v)
    from (
      select i.attempt_id as attempt, i.reason,
        coalesce(i.verdict, case when i.reason is null then 'accepted' else 'rejected' end)
          as verdict
      from unnest(p_items) i
      order by i.ord) v);
end
$$;

-- Locks, judges and records a parsed batch. uniform: it went the fast way, so that all of it was
-- accepted. Whatever a user's trigger waits for may take two seconds, of the eight that the Data
-- API gives a call.
create or replace function millrace.record_items(
  p_items millrace.work[], out verdicts json, out ready int[], out uniform boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
declare
  v_limit int;
  v_done record;
begin
  uniform := false;
  if cardinality(p_items) = 0 then
    verdicts := '[]';
    ready := '{}';
    return;
  end if;
  v_limit := millrace.lock_uniform_batch(p_items);
  if v_limit is not null then
    v_done := millrace.apply_outcomes_guarded(p_items, v_limit);
    ready := v_done.ready;
    uniform := v_done.items is null and ready is not null;
  end if;
  if ready is null then
    v_done := millrace.apply_outcomes_guarded(millrace.check_fencing(p_items,
      millrace.lock_attempts(
        array(select i.attempt_id from unnest(p_items) i where i.verdict is null))));
    ready := v_done.ready;
  end if;
  verdicts := millrace.verdicts_of(coalesce(v_done.items, p_items));
end
$$;

-- The invariants
--
-- Each function here proves some of what must always hold, and returns a row for each breach. All
-- of them are stable, so check_invariants() reads all in one snapshot.

-- Finds runs that nobody will end, and live attempts of runs that are over.
create or replace function millrace.run_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'a running run owns a live attempt', r.id, null::bigint,
    'run of entity ' || r.entity_id || ' has none'
  from millrace.runs r
  where r.status = 'running'
    and not exists (
      select
      from millrace.attempts a
      where a.run_id = r.id
        and a.state in ('queued', 'started', 'waiting'))
  union all
  select 'an attempt has a run, and one that is over has no live attempt', a.run_id, a.id,
    format('the run is %s, the attempt %s', coalesce(r.status::text, 'gone'), a.state)
  from millrace.attempts a
  left join millrace.runs r on r.id = a.run_id
  where r.id is null
    or (a.state in ('queued', 'started', 'waiting') and r.status <> 'running')
  union all
  select 'no entity is under way both in a pipeline and in the one that replaces it', n.id, null,
    format('entity %s, and run %s of the other', n.entity_id, o.id)
  from millrace.pipelines p
  join millrace.runs n on n.pipeline_id = p.id and n.status = 'running'
  join millrace.runs o
    on o.pipeline_id = p.replaces_id and o.entity_id = n.entity_id and o.status = 'running'
$$;

-- Finds attempts whose columns contradict their state.
create or replace function millrace.attempt_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'a queued attempt has a due time, a started one a lease, a waiting one a deadline',
    a.run_id, a.id, a.state::text
  from millrace.attempts a
  left join millrace.claims c on c.token = a.token
  where (a.state = 'queued' and (a.queue_at is null or a.token is not null))
    or (a.state = 'started'
      and (c.token is null or a.queue_at is null or not a.id = any (c.attempt_ids)))
    or (a.state = 'waiting'
      and (a.deadline_at is null or a.queue_at is not null or a.job_id is null))
    or (a.state not in ('queued', 'started') and a.queue_at is not null)
    or (a.state <> 'waiting' and (a.poll_at is not null or a.deadline_at is not null))
  union all
  select 'an attempt that is over cannot be late', a.run_id, a.id, a.state::text
  from millrace.attempts a
  where a.late_at is not null
    and a.state not in ('queued', 'started', 'waiting')
  union all
  select 'an attempt that waits for a person has its open question', a.run_id, a.id,
    'stage ' || s.name
  from millrace.attempts a
  join millrace.stages s on s.id = a.stage_id and s.kind = 'manual'
  where a.state = 'waiting'
    and not exists (
      select
      from public.millrace_decisions d
      where d.attempt_id = a.id
        and d.closed_at is null)
  union all
  select 'no worker is awaited for a stage that none runs', a.run_id, a.id, 'stage ' || s.name
  from millrace.attempts a
  join millrace.stages s on s.id = a.stage_id and s.kind in ('manual', 'pipeline')
  where a.state in ('queued', 'started')
  union all
  select 'a superseded attempt is not live', a.run_id, a.id, a.state::text
  from millrace.attempts a
  where a.superseded
    and a.state in ('queued', 'started', 'waiting')
  union all
  select 'a completed attempt has its result, and no other has one', a.run_id, a.id,
    'stage ' || a.stage_id
  from millrace.attempts a
  where (a.state = 'completed') <> (a.output is not null)
$$;

-- Finds attempts that say of their jobs what cannot be. A result that overtook another's job is
-- that of a job whose deadline had passed, or whose worker was lost.
create or replace function millrace.job_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'a job is heard to run while its attempt waits, and overtaken by one that completes it',
    a.run_id, a.id, a.state::text
  from millrace.attempts a
  where (a.job_started_at is not null and a.state in ('queued', 'started', 'skipped'))
    or (a.overtaken_job_id is not null
      and (a.state <> 'completed' or a.overtaken_job_id = a.job_id))
    or (a.overtaken_job_id is not null and not exists (
      select
      from millrace.attempts e
      where e.run_id = a.run_id
        and e.stage_id = a.stage_id
        and e.number < a.number
        and e.state = 'failed'
        and e.error ->> 'code' in ('deadline', 'lost_lease')
        and coalesce(e.job_id = a.job_id, true)
        and (a.superseded or not e.superseded)))
$$;

-- Finds stages that are done twice, begun too early, or not begun though their needs are done.
-- While a map is under way its thresholds decide, when it is collected; once it is done they hold.
create or replace function millrace.stage_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'a stage is completed once, and has one live attempt at most', a.run_id, max(a.id),
    format('%s attempts of stage %s', count(*), s.name)
  from millrace.attempts a
  join millrace.stages s on s.id = a.stage_id
  where a.state in ('queued', 'started', 'waiting', 'completed', 'skipped')
    and not a.superseded
  group by a.run_id, a.stage_id, s.name
  having count(*) > 1
  union all
  select 'a live attempt has its needs done', a.run_id, a.id, 'stage ' || a.stage_id
  from millrace.attempts a
  join millrace.runs r on r.id = a.run_id
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
  where a.state in ('queued', 'started', 'waiting')
    and exists (
      select
      from unnest(vs.needs) n
      where not exists (
        select
        from millrace.done_attempts d
        where d.run_id = a.run_id
          and d.stage_id = n))
  union all
  select 'a completed run has all stages completed or skipped', r.id, null, 'stage ' || vs.stage_id
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id
  where r.status = 'completed'
    and not exists (
      select
      from millrace.done_attempts d
      where d.run_id = r.id
        and d.stage_id = vs.stage_id)
  union all
  select 'a stage whose needs are done has begun', r.id, null, 'stage ' || vs.stage_id
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id
  where r.status = 'running'
    and not exists (
      select
      from millrace.attempts a
      where a.run_id = r.id
        and a.stage_id = vs.stage_id
        and not a.superseded)
    and not exists (
      select
      from (
        select (t ->> 'map')::int from jsonb_array_elements(vs.after) t
        union all
        select n from unnest(vs.needs) n) n(id)
      where not exists (
        select
        from millrace.done_attempts d
        where d.run_id = r.id
          and d.stage_id = n.id))
$$;

-- Proves what must always hold.
create or replace function millrace.check_invariants()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.run_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.attempt_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.job_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.stage_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.limit_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.metadata_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.row_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.fan_out_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.status_faults() f
  union all
  select f.rule, f.run_id, f.attempt_id, f.detail from millrace.ending_faults() f
$$;

-- Claiming
--
-- A claim turns due attempts of a stage into started ones, under one lease (a row of claims). What
-- a worker is then told of them is built in batch.sql; worker-calls.sql has the calls themselves.

-- The one place that says how fresh a heartbeat must be: a worker whose last is older is not alive.
create or replace function millrace.alive_since() returns timestamptz
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return millrace.now() - interval '15 seconds';
end
$$;

-- Counts the live workers of a stage, in a snapshot of its own: those that have not left and whose
-- heartbeat is fresh.
create or replace function millrace.live_workers(p_stage_id int) returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_since timestamptz := millrace.alive_since();
begin
  return (
    select count(*)
    from millrace.workers w
    where w.stage_id = p_stage_id and w.left_at is null and w.heartbeat_at > v_since);
end
$$;

-- Says whether an attempt of this stage is queued and due, and its limits would let it be claimed.
create or replace function millrace.has_ready_work(p_stage_id int) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return (
    select exists (
        select from millrace.attempts a
        where a.stage_id = s.id and a.queue_at <= v_now and a.state = 'queued')
      and (s.limits is null or millrace.may_claim(s))
    from millrace.stages s
    where s.id = p_stage_id);
end
$$;

-- Says whether one more worker of this stage would find work and be let in.
create or replace function millrace.may_scale_out(p_stage millrace.stages) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_since timestamptz := millrace.alive_since();
begin
  return p_stage.max_workers > (
      select count(*)
      from millrace.workers w
      where w.stage_id = p_stage.id and w.left_at is null and w.heartbeat_at > v_since)
    and exists (
      select from millrace.attempts a
      where a.stage_id = p_stage.id and a.queue_at <= v_now and a.state = 'queued')
    and (p_stage.limits is null or millrace.may_claim(p_stage));
end
$$;

-- queued → started for up to p_limit due attempts of a stage, under one lease: one statement for a
-- stage without limits. The token is null when there is nothing to claim. Workers of one host claim
-- by turns, so that one which must be alone sees every other; one that must be alone waits at the
-- head until its host is idle, and never rides along behind others.
create or replace function millrace.claim(
  p_stage millrace.stages, p_worker_id uuid, p_host uuid, p_limit int,
  out token uuid, out attempt_ids bigint[], out entity_ids text[], out items millrace.claimed[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_token uuid := gen_random_uuid();
begin
  if p_limit < 1 then
    return;
  end if;
  perform pg_advisory_xact_lock(hashtext('millrace.host'), hashtext(p_host::text));
  with host as materialized (
    select count(*) > 0 as busy, coalesce(bool_or(c.isolated), false) as isolated
    from millrace.claims c where c.host = p_host and c.expires_at > v_now
  ), picked as materialized (
    select a.id, a.ctid, a.isolated
    from millrace.attempts a
    where a.stage_id = p_stage.id and a.queue_at <= v_now and a.state = 'queued'
      and not (select h.isolated from host h)
    order by a.queue_at, a.id
    limit p_limit
    for update skip locked
  ), head as materialized (
    select p.id, p.isolated from picked p limit 1
  ), chosen as (
    select p.id, p.ctid
    from picked p
    where case when (select h.isolated from head h)
      then p.id = (select h.id from head h) and not (select h.busy from host h)
      else not p.isolated end
  ), taken as (
    update millrace.attempts a
    set state = 'started', token = v_token, started_at = v_now
    from chosen c where a.ctid = c.ctid
    returning a.id, a.run_id, a.isolated, a.retry_count, a.number, a.queue_at,
      coalesce(a.submission_id, a.id) as submission
  ), leased as (
    insert into millrace.claims (token, worker_id, host, expires_at, isolated, attempt_ids)
    select v_token, p_worker_id, p_host, v_now + p_stage.lease, bool_or(t.isolated),
      array_agg(t.id order by t.queue_at, t.id)
    from taken t
    having count(*) > 0
  )
  select array_agg(t.id order by t.queue_at, t.id),
    array_agg(r.entity_id order by t.queue_at, t.id),
    array_agg(row(t.id, t.run_id, r.entity_id, r.trace_id, r.version_id, t.retry_count,
      t.submission, t.number, t.isolated)::millrace.claimed order by t.queue_at, t.id)
  into attempt_ids, entity_ids, items
  from taken t
  join millrace.runs r on r.id = t.run_id;
  if attempt_ids is not null then
    token := v_token;
  end if;
end
$$;

-- Deletes the leases of a worker under which nothing is started any more; true when there were
-- some. Only a worker (and the sweep, after expiry) deletes claims: whoever else ends an attempt
-- leaves the lease alone. p_ended attempts of the claim p_token are known to have ended in this
-- transaction: if that is all of them, nobody looks at each.
create or replace function millrace.drop_claims(
  p_worker_id uuid, p_token uuid default null, p_ended int default null
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from millrace.claims c
  where c.worker_id = p_worker_id
    and (c.token = p_token and cardinality(c.attempt_ids) = p_ended
      or not exists (
        select from millrace.attempts a
        where a.id = any (c.attempt_ids) and a.token = c.token and a.state = 'started'));
  return found;
end
$$;

-- Shows a claim on those of its entities that nobody holds; one that a user holds catches up when
-- its stage completes. A user's own trigger that refuses one row, for now or for good, must not
-- stop the stage for all: completing will name it.
create or replace function millrace.project_started(p_stage millrace.stages, p_entity_ids text[])
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  v_context text;
begin
  return millrace.project_entities(
    p_stage.pipeline_id, 'started', p_stage.name, null, p_entity_ids, null);
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    perform millrace.report('error', 'projection_failed',
      'A claim could not be shown on its entities: ' || sqlerrm,
      jsonb_build_object('stage', p_stage.name));
    return false;
end
$$;

-- Lists those attempts of a claim that are still under it, in its order.
create or replace function millrace.held_items(p_token uuid, p_attempt_ids bigint[])
returns millrace.claimed[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select row(a.id, a.run_id, r.entity_id, r.trace_id, r.version_id, a.retry_count,
      coalesce(a.submission_id, a.id), a.number, a.isolated)::millrace.claimed
    from unnest(p_attempt_ids) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    join millrace.runs r on r.id = a.run_id
    where a.token = p_token and a.state = 'started'
    order by i.place);
end
$$;

-- started → queued for those attempts of a claim, made in this transaction, that its batch has no
-- room for: as if they had never been claimed, at their place in the queue and with what the claim
-- took of the stage's limits.
create or replace function millrace.give_back(
  p_stage millrace.stages, p_token uuid, p_kept bigint[], p_back bigint[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.attempts a
  set state = 'queued', token = null, started_at = null
  where a.id = any (p_back) and a.token = p_token and a.state = 'started';
  update millrace.claims c
  set attempt_ids = p_kept
  where c.token = p_token;
  if p_stage.limits is not null then
    perform millrace.give_back_limits(p_stage, p_kept, p_back);
  end if;
end
$$;

-- Completing
--
-- Transitions are the only writers of state, and each takes a set. One call to apply_outcomes()
-- records what a batch of attempts came to, readies the next stages, finishes runs and projects all
-- of it onto the entities, in the caller's one transaction. locks.sql has the lock order.

-- Enqueues the unconditional followers of a stage that is done now, where all their other needs are
-- done already and they have not begun; conditions.sql sees to the others. ready lists them, stage
-- by stage of each run. followers, with their names: all unconditional ones, and whether any has
-- groups. all_ready: every run readied every follower; then ready is null, unless p_list says to
-- list them.
create or replace function millrace.advance(
  p_stage_id int, p_run_ids bigint[], p_list boolean default true,
  out ready millrace.ready[], out followers int[], out names text[], out has_groups boolean,
  out all_ready boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
begin
  -- Mostly the runs are of one version, no follower has other needs, and none has begun before:
  -- then no run is looked at on its own.
  with version as materialized (
    select distinct r.version_id as id from millrace.runs r
    where r.id = any (p_run_ids)
  )
  select coalesce(array_agg(distinct s.id), '{}'), coalesce(array_agg(distinct s.name), '{}'),
    coalesce(bool_or(s.has_groups), false),
    (select count(*) = 1 from version) and bool_and(cardinality(f.needs) = 1 and not exists (
      select from millrace.attempts a
      where a.run_id = any (p_run_ids) and a.stage_id = s.id))
  into followers, names, has_groups, all_ready
  from version v
  join millrace.version_stages f on f.version_id = v.id
  join millrace.stages s on s.id = f.stage_id
  where p_stage_id = any (f.needs) and f.unconditional;
  if cardinality(followers) = 0 then
    ready := '{}';
    all_ready := true;
  elsif all_ready then
    insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at, late_at)
    select r.id, s.id, 1, v_now, v_now, v_now + s.sla
    from millrace.stages s
    cross join unnest(p_run_ids) r(id)
    where s.id = any (followers)
    order by r.id;
    if p_list then
      ready := array(
        select row(r.id, f.id)::millrace.ready
        from unnest(p_run_ids) r(id)
        cross join unnest(followers) f(id));
    end if;
  else
    ready := millrace.advance_each(p_stage_id, p_run_ids);
    all_ready := cardinality(ready) = cardinality(followers) * cardinality(p_run_ids);
  end if;
end
$$;

-- Does what advance() does, run by run: each by its own version, its own other needs and what it
-- has begun before.
create or replace function millrace.advance_each(p_stage_id int, p_run_ids bigint[])
returns millrace.ready[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_ready millrace.ready[];
begin
  with run as materialized (
    select r.id, r.version_id from millrace.runs r where r.id = any (p_run_ids)
  ), follower as materialized (
    select f.version_id, f.stage_id, f.needs, v_now + s.sla as late_at
    from millrace.version_stages f
    join millrace.stages s on s.id = f.stage_id
    where f.version_id in (select r.version_id from run r)
      and p_stage_id = any (f.needs)
      and f.unconditional
  ), added as (
    insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at, late_at)
    select r.id, f.stage_id, coalesce(h.number, 0) + 1, v_now, v_now, f.late_at
    from run r
    join follower f on f.version_id = r.version_id
    cross join lateral (
      select max(a.number) as number, bool_or(not a.superseded) as begun
      from millrace.attempts a
      where a.run_id = r.id and a.stage_id = f.stage_id) h
    where h.begun is not true
      and (cardinality(f.needs) = 1 or cardinality(f.needs) - 1 = (
        select count(*)
        from millrace.attempts n
        where n.run_id = r.id
          and n.stage_id = any (f.needs)
          and n.stage_id <> p_stage_id
          and n.state in ('completed', 'skipped')
          and not n.superseded))
    order by r.id
    returning run_id, stage_id
  )
  select coalesce(array_agg(row(a.run_id, a.stage_id)::millrace.ready), '{}') into v_ready
  from added a;
  return v_ready;
end
$$;

-- Completes the runs whose last sink this stage was. Only the end of a sink can end a run; with one
-- sink nothing else needs a look.
create or replace function millrace.finish_runs(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with ended as (
    update millrace.runs r
    set status = 'completed', finished_at = millrace.now()
    from millrace.version_stages vs
    where r.id = any (p_run_ids)
      -- "is true" keeps the planner from walking the index of live runs.
      and (r.status = 'running') is true
      and vs.version_id = r.version_id
      and vs.stage_id = p_stage_id
      and vs.is_sink
      and not exists (
        select from millrace.version_stages o
        where o.version_id = r.version_id
          and o.is_sink
          and o.stage_id <> p_stage_id
          and not exists (
            select from millrace.attempts a
            where a.run_id = r.id
              and a.stage_id = o.stage_id
              and a.state in ('completed', 'skipped')
              and not a.superseded))
    returning r.fan_out_id
  )
  insert into millrace.child_tallies (fan_out_id, completed)
  select e.fan_out_id, count(*)
  from ended e
  where e.fan_out_id is not null
  group by e.fan_out_id;
end
$$;

-- started | waiting | queued → completed, with results, next stages, runs and projection. Returns
-- the stages that got work. p_uniform_limit is what lock_uniform_batch() has returned: then all of
-- it must still be as that saw it, or MR000 is raised, and apply_outcomes_guarded() takes it all
-- back.
create or replace function millrace.complete(
  p_stage_id int, p_items millrace.work[], p_uniform_limit int default null
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_on record;
  v_next record;
  v_stages int[];
  v_changes millrace.change[];
  v_shown boolean;
begin
  select s.pipeline_id, s.name, s.apply is not null or s.has_ends as is_uneven,
    s.result_limit_bytes, s.counted,
    s.counted_by_parent or s.has_conditional_followers as followed,
    array(select i.run_id from unnest(p_items) i) as run_ids
  into v_on
  from millrace.stages s
  where s.id = p_stage_id;
  v_next := millrace.advance(p_stage_id, v_on.run_ids, false);
  v_stages := case when v_next.all_ready then v_next.followers
    else array(select distinct r.stage_id from unnest(v_next.ready) r) end;
  if v_next.has_groups then
    perform millrace.assign_groups(s, case when v_next.all_ready then v_on.run_ids
      else array(
        select r.run_id from unnest(v_next.ready) r where r.stage_id = s) end)
    from unnest(v_stages) s;
  end if;
  v_changes := millrace.close_completed(p_items, v_now, p_uniform_limit is not null,
    case when v_next.all_ready then v_next.names end, v_next.ready);
  -- A definition may have changed the stage while the locks were waited for.
  if p_uniform_limit is not null and (v_on.is_uneven
    or v_on.result_limit_bytes < p_uniform_limit
    or cardinality(v_changes) is distinct from cardinality(p_items)) then
    raise exception 'the batch is not uniform' using errcode = 'MR000';
  end if;
  -- Runs that went on cannot be over; in a chain that spares the look for all stages but the last.
  if cardinality(v_stages) = 0 or not v_next.all_ready then
    perform millrace.finish_runs(p_stage_id, v_on.run_ids);
  end if;
  v_shown := millrace.project_entities(
    v_on.pipeline_id, 'settle', v_on.name, v_changes, null, null);
  if v_on.counted then
    perform millrace.note_spending(p_items);
  end if;
  if v_on.followed then
    return v_stages || millrace.advance_others(p_stage_id, v_on.run_ids);
  end if;
  return v_stages;
end
$$;

-- Writes the attempts of complete() and returns what is to be shown of them. p_names are the stages
-- that every run readied; null where p_ready says which run readied which. p_uniform: only what is
-- still started under its token.
create or replace function millrace.close_completed(
  p_items millrace.work[], p_now timestamptz, p_uniform boolean, p_names text[],
  p_ready millrace.ready[]
) returns millrace.change[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_changes millrace.change[];
begin
  with done as (
    update millrace.attempts a
    set state = 'completed', finished_at = p_now, started_at = coalesce(a.started_at, p_now),
      queue_at = null, poll_at = null, deadline_at = null, late_at = null,
      -- The job that brought the result, which may be that of an earlier submission.
      service = coalesce(i.service, a.service), job_id = coalesce(i.job_id, a.job_id),
      overtaken_job_id = case when a.job_id <> i.job_id then a.job_id end,
      output = i.result, usage = i.usage, error = null
    from unnest(p_items) i
    where a.id = i.attempt_id
      and a.state = i.was
      and (not p_uniform or a.state = 'started' and a.token = i.token)
    returning i.entity_id, a.job_id, i.result, a.retry_count, a.started_at, a.run_id
  )
  select array_agg(row(
    d.entity_id, 'completed', d.job_id, d.result, null, d.retry_count, d.started_at, p_now,
    coalesce(p_names, (
      select array_agg(s.name)
      from unnest(p_ready) r
      join millrace.stages s on s.id = r.stage_id
      where r.run_id = d.run_id)))::millrace.change)
  into v_changes
  from done d;
  return v_changes;
end
$$;

-- Calls the user's own function for the stage with a jsonb list of {attempt, run, entity_id,
-- result}; false when it has none. In the same transaction: rows it writes commit with the
-- completion.
create or replace function millrace.apply_results(p_stage_id int, p_items millrace.work[])
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_apply text := (select s.apply from millrace.stages s where s.id = p_stage_id);
begin
  if v_apply is null then
    return false;
  end if;
  if to_regprocedure(v_apply || '(jsonb)') is null then
    raise exception 'the stage''s apply function %(jsonb) does not exist', v_apply
      using errcode = 'MR004', hint = 'Create it again, or define the pipeline without it; '
        'then replay the dead letters.';
  end if;
  execute format('select %s($1)', to_regprocedure(v_apply || '(jsonb)')::regproc)
  using (
    select jsonb_agg(jsonb_build_object('attempt', i.attempt_id, 'run', i.run_id,
      'entity_id', i.entity_id, 'result', i.result) order by i.ord)
    from unnest(p_items) i);
  return true;
end
$$;

-- Constructors: they name the fields of the engine's wider row types, so that no caller fills one
-- by position.

-- Builds what the projection is to show of one stage on one entity.
create or replace function millrace.change_of(
  p_entity_id text,
  p_status text,
  p_job_id text default null,
  p_error text default null,
  p_started_at timestamptz default null,
  p_completed_at timestamptz default null
) returns millrace.change
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_change millrace.change;
begin
  v_change.entity_id := p_entity_id;
  v_change.status := p_status;
  v_change.job_id := p_job_id;
  v_change.error := p_error;
  v_change.retry_count := 0;
  v_change.started_at := p_started_at;
  v_change.completed_at := p_completed_at;
  return v_change;
end
$$;

-- Makes the work item of what the engine itself decides about an attempt: its deadline has passed,
-- its lease has expired, its children have ended, a person has answered.
create or replace function millrace.work_on(
  p_attempt millrace.attempts, p_entity_id text, p_outcome text,
  p_result jsonb default null, p_error jsonb default null, p_ord int default 1
) returns millrace.work
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_work millrace.work;
begin
  v_work.ord := p_ord;
  v_work.attempt_id := p_attempt.id;
  v_work.outcome := p_outcome;
  v_work.result := p_result;
  v_work.error := p_error;
  v_work.service := p_attempt.service;
  v_work.job_id := p_attempt.job_id;
  v_work.run_id := p_attempt.run_id;
  v_work.stage_id := p_attempt.stage_id;
  v_work.entity_id := p_entity_id;
  v_work.was := p_attempt.state;
  return v_work;
end
$$;

-- Definitions
--
-- A pipeline is a graph of stages over one entity table. The graph (which stages, which needs) is
-- versioned, and a run finishes on the version it began with. Everything else about a stage
-- (limits, retry policy, on or off) is a setting of today and applies at once. millrace.define()
-- takes the JSON that `npm run pipelines:sync` writes from the TypeScript.

-- Adds to a stage the limits that it did not say. A service takes what it is sent, however long its
-- queue; so an external stage has at most 100 in flight unless it says otherwise.
create or replace function millrace.limits_of(p_stage jsonb) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_stage ->> 'kind' = 'external' then
      '{"max_in_flight": 100}' || coalesce(p_stage -> 'limits', '{}')
    else p_stage -> 'limits'
  end
$$;

-- Reads of a stage how long it may wait: for a service as long as its completion says, for people
-- or children a week unless the definition says otherwise.
create or replace function millrace.deadline_of(p_stage jsonb) returns interval
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select make_interval(secs => case
    when p_stage ? 'completion' then (p_stage #>> '{completion,deadline_seconds}')::float8
    when p_stage ->> 'kind' in ('manual', 'pipeline', 'map') then coalesce(
      (p_stage #>> '{decision,deadline_seconds}')::float8,
      (p_stage #>> '{fan_in,deadline_seconds}')::float8,
      604800)
  end)
$$;

-- Writes the settings of a definition's stages. The columns of a worker mean nothing where no
-- function runs the stage.
create or replace function millrace.save_stages(p_pipeline_id int, p_definition jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into millrace.stages as t (
    pipeline_id, name, kind, function_name, batch_size, max_workers, lease, timeout, retry,
    callback, poll_every, deadline, deadline_from, apply, result_limit_bytes, on_failure,
    child, fan_in, decision, agent, limits, has_groups, sla)
  select p_pipeline_id, s ->> 'name', s ->> 'kind',
    case when s ->> 'kind' not in ('manual', 'pipeline') then coalesce(
      s ->> 'function',
      replace(concat_ws('-', p_definition ->> 'pipeline', s ->> 'name'), '_', '-')) end,
    coalesce((s ->> 'batch_size')::int, 10),
    coalesce((s ->> 'max_workers')::int, 2),
    make_interval(secs => coalesce((s ->> 'lease_seconds')::float8, 60)),
    make_interval(secs => coalesce((s ->> 'timeout_seconds')::float8, 30)),
    coalesce(s -> 'retry', '{}'),
    coalesce((s #>> '{completion,callback}')::boolean, false),
    make_interval(secs => (s #>> '{completion,poll_seconds}')::float8),
    millrace.deadline_of(s),
    coalesce(s #>> '{completion,deadline_from}', 'start'),
    s ->> 'apply', (s ->> 'result_limit_bytes')::int, coalesce(s ->> 'on_failure', 'fail_run'),
    s -> 'child', s -> 'fan_in', s -> 'decision', s -> 'agent', millrace.limits_of(s),
    coalesce(s -> 'limits' ? 'concurrency' or (s #>> '{limits,priority}')::boolean, false),
    make_interval(secs => (s ->> 'sla_seconds')::float8)
  from jsonb_array_elements(p_definition -> 'stages') s
  on conflict on constraint stages_name_key do update set (
    kind, function_name, batch_size, max_workers, lease, timeout, retry,
    callback, poll_every, deadline, deadline_from, apply, result_limit_bytes, on_failure,
    child, fan_in, decision, agent, limits, has_groups, sla
  ) = (
    excluded.kind, excluded.function_name, excluded.batch_size, excluded.max_workers,
    excluded.lease, excluded.timeout, excluded.retry, excluded.callback, excluded.poll_every,
    excluded.deadline, excluded.deadline_from, excluded.apply, excluded.result_limit_bytes,
    excluded.on_failure, excluded.child, excluded.fan_in, excluded.decision, excluded.agent,
    excluded.limits, excluded.has_groups, excluded.sla),
    sla_changed_at = case
      when t.sla is distinct from excluded.sla then millrace.now()
      else t.sla_changed_at
    end;
$$;

-- Switches stages as the definition says; what somebody switched off by hand stays off where it
-- says nothing. In older versions too no worker is to be queued for a stage that waits for a person
-- or a child run now.
create or replace function millrace.switch_stages(p_pipeline_id int, p_definition jsonb)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update millrace.stages t
  set enabled = (s ->> 'enabled')::boolean
  from jsonb_array_elements(p_definition -> 'stages') s
  where t.pipeline_id = p_pipeline_id
    and t.name = s ->> 'name'
    and s ? 'enabled';
  update millrace.version_stages vs
  set unconditional = false
  from millrace.stages t
  where t.pipeline_id = p_pipeline_id
    and t.kind in ('manual', 'pipeline')
    and vs.stage_id = t.id
    and vs.unconditional;
$$;

-- Reads the versioned part of a definition: each stage's needs, or an object of needs, condition,
-- thresholds, child pipeline, and how it begins and ends runs.
create or replace function millrace.graph_of(p_definition jsonb) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_object_agg(
    g.name, case when g.more = '{}' then g.needs else g.more || jsonb_build_object('needs',
      g.needs) end)
  from (
    select s ->> 'name' as name,
      coalesce((select jsonb_agg(n order by n) from jsonb_array_elements_text(s -> 'needs') n),
        '[]') as needs,
      jsonb_strip_nulls(jsonb_build_object(
        'when', s -> 'when',
        'otherwise', s -> 'otherwise',
        'after', s -> 'after',
        'given', s -> 'given',
        'on_demand', case when s -> 'on_demand' = 'true' then true end,
        'ends', s -> 'ends',
        'child', s #> '{child,pipeline}',
        'kind', case when s ->> 'kind' in ('manual', 'pipeline',
          'map') then s -> 'kind' end)) as more
    from jsonb_array_elements(p_definition -> 'stages') s) g
$$;

-- Reads the thresholds of a stage as version_stages keeps them, with ids for names.
create or replace function millrace.after_of(p_pipeline_id int, p_stage jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'map', m.id,
    'stage', c.id,
    'kind', k,
    'n', case when k = 'all' then 0 else (a ->> k)::int end) order by m.id, c.id), '[]')
  from jsonb_array_elements(p_stage -> 'after') a
  join millrace.stages m on m.pipeline_id = p_pipeline_id and m.name = a ->> 'map'
  join millrace.pipelines p on p.name = m.child ->> 'pipeline'
  join millrace.stages c on c.pipeline_id = p.id and c.name = a ->> 'stage'
  join unnest(array['count', 'consecutive', 'all']) k on a ? k
$$;

-- Writes the graph of a new version; the stages that its thresholds count are watched from now on.
create or replace function millrace.save_version_stages(
  p_pipeline_id int,
  p_version_id int,
  p_stages jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_order text[] := millrace.order_stages(p_stages);
begin
  insert into millrace.version_stages (
    version_id, stage_id, position, needs, dependents, is_sink, unconditional, when_path, otherwise,
    after, child_pipeline_id)
  with recursive edge as (
    select s ->> 'name' as after, e as before
    from jsonb_array_elements(p_stages) s, unnest(millrace.edges_to(s)) e
  ), reach as (
    select before, after from edge
    union
    select r.before, e.after from reach r join edge e on e.before = r.after
  )
  select p_version_id, t.id, array_position(v_order, t.name),
    array(
      select n.id from millrace.stages n
      where n.pipeline_id = p_pipeline_id and s -> 'needs' ? n.name order by n.id),
    array(
      select n.id from reach r
      join millrace.stages n on n.name = r.after and n.pipeline_id = p_pipeline_id
      where r.before = t.name order by n.id),
    not exists (select from jsonb_array_elements(p_stages) f where f -> 'needs' ? t.name),
    not s ? 'when' and not s ? 'after' and s ->> 'kind' not in ('manual',
      'pipeline') and not exists (
      select from reach r join jsonb_array_elements(p_stages) b on b ->> 'name' = r.before
      where r.after = t.name and b ->> 'otherwise' = 'skip_dependents'),
    (s ->> 'when')::jsonpath, case when s ? 'when' then coalesce(s ->> 'otherwise', 'skip') end,
    millrace.after_of(p_pipeline_id, s),
    (select c.id from millrace.pipelines c where c.name = s #>> '{child,pipeline}')
  from jsonb_array_elements(p_stages) s
  join millrace.stages t on t.pipeline_id = p_pipeline_id and t.name = s ->> 'name';
  update millrace.stages t
  set counted_by_parent = true
  from millrace.version_stages vs, jsonb_array_elements(vs.after) a
  where vs.version_id = p_version_id
    and t.id = (a ->> 'stage')::int
    and not t.counted_by_parent;
  update millrace.pipelines p
  set is_child = true
  from millrace.version_stages vs
  where vs.version_id = p_version_id
    and p.id = vs.child_pipeline_id
    and not p.is_child;
end
$$;

-- Marks the stages right after which some version has a stage that is not unconditional. A new kind
-- of stage may have changed that in former versions too.
create or replace function millrace.note_awaited(p_pipeline_id int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.stages t
  set has_conditional_followers = true
  from millrace.versions v
  join millrace.version_stages f on f.version_id = v.id and not f.unconditional
  where v.pipeline_id = p_pipeline_id
    and t.pipeline_id = p_pipeline_id
    and not t.has_conditional_followers
    and (t.id = any (f.needs) or f.after @> jsonb_build_array(jsonb_build_object('map', t.id)));
end
$$;

-- Finds the version with this graph: the current one when it is the same, else a new one that is
-- current from now on.
create or replace function millrace.save_version(p_pipeline_id int, p_definition jsonb) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_graph jsonb := millrace.graph_of(p_definition);
  v_id int;
begin
  select v.id
  into v_id
  from millrace.versions v
  join millrace.pipelines p on p.current_version_id = v.id
  where p.id = p_pipeline_id
    and v.graph = v_graph;
  if found then
    return v_id;
  end if;
  insert into millrace.versions (pipeline_id, number, graph)
  select p_pipeline_id, coalesce(max(v.number), 0) + 1, v_graph
  from millrace.versions v
  where v.pipeline_id = p_pipeline_id
  returning id into v_id;
  perform millrace.save_version_stages(p_pipeline_id, v_id, p_definition -> 'stages');
  perform millrace.save_endings(p_pipeline_id, v_id, p_definition -> 'stages');
  update millrace.pipelines set current_version_id = v_id where id = p_pipeline_id;
  return v_id;
end
$$;

-- Adds to a table the seven columns of each of these stages; those that are there already stay.
create or replace function millrace.add_columns(p_table regclass, variadic p_stages text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage text;
begin
  foreach v_stage in array p_stages loop
    execute millrace.stage_columns_ddl(p_table::text, v_stage);
  end loop;
end
$$;

-- Writes the pipeline's own row and returns its id.
create or replace function millrace.save_pipeline(p_definition jsonb, p_table regclass) returns int
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into millrace.pipelines as p (name, entity_table, entity_key, projection, metadata_column,
    enabled)
  values (
    p_definition ->> 'pipeline', p_table, p_definition #>> '{entity,key}',
      p_definition #>> '{entity,projection}',
    p_definition #>> '{entity,metadata}', coalesce((p_definition ->> 'enabled')::boolean, true))
  on conflict on constraint pipelines_name_key do update set
    entity_table = excluded.entity_table,
    entity_key = excluded.entity_key,
    projection = excluded.projection,
    metadata_column = excluded.metadata_column,
    enabled = coalesce((p_definition ->> 'enabled')::boolean, p.enabled)
  returning p.id
$$;

-- Defines a pipeline or changes it: checks the definition, and what it changes under live runs,
-- then writes it.
create or replace function millrace.define(p_definition jsonb) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_definition jsonb := millrace.check_definition(p_definition);
  v_name text := v_definition ->> 'pipeline';
  v_table regclass := to_regclass(v_definition #>> '{entity,table}');
  v_key text := v_definition #>> '{entity,key}';
  v_pipeline_id int;
  v_version_id int;
  v_changed jsonb;
begin
  perform millrace.check_table(v_table);
  perform millrace.lock_limiters(v_name);
  -- attach() would wait for whoever writes the table in any case; waiting here, the checks see the
  -- runs that those begin. Without a projection, who begins a run has only locked its row; and
  -- where rows are shown anew, nobody may hold one.
  execute format('lock table %s in %s mode', v_table, case
    when v_definition #>> '{entity,projection}' = 'none' or v_definition ? 'replaces'
      or exists (select from millrace.changed_values(v_definition))
      then 'exclusive'
    else 'share row exclusive'
  end);
  v_changed := (
    select jsonb_object_agg(c.was, c.now) from millrace.changed_values(v_definition) c);
  perform millrace.check_moved(v_name, v_table, v_key);
  perform millrace.check_parents(v_name, v_table, v_key);
  perform millrace.check_replaced(v_name, v_table, v_key);
  v_pipeline_id := millrace.save_pipeline(v_definition, v_table);
  perform millrace.check_dropped_stages(v_pipeline_id, v_definition);
  perform millrace.check_counted_stages(v_pipeline_id, v_definition);
  perform millrace.check_changed_kinds(v_pipeline_id, v_definition);
  perform millrace.check_changed_children(v_pipeline_id, v_definition);
  perform millrace.save_cut_over(v_pipeline_id, v_definition);
  perform millrace.forget_groups(v_pipeline_id, v_definition);
  perform millrace.save_stages(v_pipeline_id, v_definition);
  perform millrace.switch_stages(v_pipeline_id, v_definition);
  v_version_id := millrace.save_version(v_pipeline_id, v_definition);
  perform millrace.save_status(v_pipeline_id, v_version_id, v_definition);
  perform millrace.note_awaited(v_pipeline_id);
  perform millrace.save_quota(v_pipeline_id, v_definition);
  perform millrace.save_due(v_pipeline_id, v_definition);
  perform millrace.attach(v_name);
  perform millrace.show_changed(v_pipeline_id, v_changed);
  -- A fan-in rule that was changed applies to what waits already: the next sweep collects it.
  insert into millrace.child_tallies (fan_out_id)
  select f.id
  from millrace.fan_outs f
  join millrace.stages s on s.id = f.stage_id
  where s.pipeline_id = v_pipeline_id
    and f.state = 'open';
  perform millrace.schedule_polls();
  return (select v.number from millrace.versions v where v.id = v_version_id);
end
$$;

-- What a definition may say, made of supabase/functions/_millrace/define/definition-schema.ts by `npm run check -- --write`.
-- Change it there.

create or replace function millrace.definition_schema() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select $schema${
 "type":"object",
 "required":["pipeline","entity","stages"],
 "additionalProperties":false,
 "properties":{
  "pipeline":{"$ref":"#/$defs/pipeline"},
  "entity":{
   "type":"object",
   "properties":{
    "table":{"$ref":"#/$defs/table"},
    "key":{"default":"id","type":"string","minLength":1,"wanted":"the name of a column"},
    "projection":{
     "default":"columns",
     "type":"string",
     "enum":["columns","status","none"],
     "wanted":"columns, status or none",
     "remedy":"columns keeps seven columns a stage on the entity, status shows the run in one column, none keeps its state in the engine alone."
    },
    "status":{
     "type":"object",
     "properties":{
      "column":{
       "type":"string",
       "minLength":1,
       "wanted":"a column of the entity's table",
       "remedy":"Name the column of type smallint or text."
      },
      "values":{
       "type":"object",
       "additionalProperties":{
        "type":"object",
        "additionalProperties":{
         "minItems":1,
         "maxItems":2,
         "type":"array",
         "items":{"type":"string"},
         "wanted":"a list of name and description",
         "remedy":"For a column of texts the value is the name."
        }
       }
      },
      "layers":{
       "default":{},
       "type":"object",
       "additionalProperties":{
        "type":"object",
        "properties":{
         "stages":{"minItems":1,"type":"array","items":{"$ref":"#/$defs/pipeline"}},
         "enter":{"$ref":"#/$defs/enter"},
         "leave":{"$ref":"#/$defs/enter"}
        },
        "required":["stages"],
        "additionalProperties":false
       }
      },
      "failed":{"$ref":"#/$defs/enter"},
      "ends":{"$ref":"#/$defs/ends","default":{}},
      "shared":{"$ref":"#/$defs/shared","default":[]},
      "closed":{"$ref":"#/$defs/shared","default":[]},
      "moves":{"$ref":"#/$defs/moves","default":[]},
      "entries":{"$ref":"#/$defs/shared","default":[]},
      "drawn":{
       "default":[],
       "type":"array",
       "items":{
        "minItems":2,
        "type":"array",
        "items":{
         "type":["string","integer","null"],
         "wanted":"a value of the status column, or null for none"
        }
       }
      },
      "lookup":{"$ref":"#/$defs/table"},
      "history":{
       "type":"object",
       "properties":{
        "table":{"$ref":"#/$defs/table"},
        "key":{"type":"string","minLength":1,"wanted":"a column of the history"},
        "since":{
         "type":"string",
         "minLength":1,
         "wanted":"a column of the entity's table",
         "remedy":"Add a column of type timestamptz and name it."
        },
        "changes":{"$ref":"#/$defs/changes"}
       },
       "required":["table","key","since"],
       "additionalProperties":false,
       "wanted":"an object of table, key and since"
      },
      "attempts":{"$ref":"#/$defs/changes"},
      "retry_at":{"$ref":"#/$defs/changes"},
      "error":{"$ref":"#/$defs/changes"}
     },
     "required":["column","values","failed"],
     "additionalProperties":false,
     "wanted":"an object of column, values and failed"
    },
    "due":{"type":"string","minLength":1,"wanted":"the name of a timestamptz column"},
    "metadata":{"type":"string","minLength":1,"wanted":"the name of a jsonb column"},
    "startable_by":{
     "minItems":1,
     "type":"array",
     "items":{
      "type":"string",
      "pattern":"^[a-z_][a-z0-9_]*$",
      "wanted":"the name of a database role"
     }
    }
   },
   "required":["table"],
   "additionalProperties":false,
   "wanted":"an object with a table"
  },
  "replaces":{
   "type":"object",
   "properties":{
    "pipeline":{"$ref":"#/$defs/pipeline"},
    "group_by":{
     "type":"string",
     "minLength":1,
     "wanted":"a key of the metadata, whose column entity.metadata names",
     "remedy":"Name the column in entity.metadata and the key in replaces.group_by, or leave group_by out."
    }
   },
   "required":["pipeline"],
   "additionalProperties":false,
   "wanted":"an object of pipeline and group_by",
   "remedy":"Write {\"pipeline\": \"the_old_one\"}; group_by is a key of the metadata."
  },
  "quota":{
   "type":"object",
   "properties":{
    "column":{
     "type":"string",
     "minLength":1,
     "wanted":"a column of the entity's table",
     "remedy":"Name the column whose value is the tenant."
    },
    "starts":{
     "type":"object",
     "properties":{
      "count":{"type":"integer","minimum":1,"maximum":1000000},
      "per_seconds":{"type":"integer","minimum":1,"maximum":2678400}
     },
     "required":["count","per_seconds"],
     "additionalProperties":false,
     "wanted":"an object of count and per_seconds",
     "remedy":"Name both, and nothing else; or leave it out."
    },
    "spending":{
     "type":"object",
     "properties":{
      "usd":{"type":"number","minimum":0.01,"maximum":1000000},
      "per_seconds":{"type":"integer","minimum":1,"maximum":2678400}
     },
     "required":["usd","per_seconds"],
     "additionalProperties":false,
     "wanted":"an object of usd and per_seconds",
     "remedy":"Name both, and nothing else; or leave it out."
    }
   },
   "required":["column"],
   "additionalProperties":false,
   "wanted":"an object of column, and starts or spending or both",
   "remedy":"Name what is bounded and by which column, and nothing else; or leave it out.",
   "minProperties":2,
   "maxProperties":3
  },
  "enabled":{"type":"boolean","wanted":"true or false"},
  "stages":{
   "type":"array",
   "minItems":1,
   "items":{
    "noun":"stage",
    "wanted":"function, external, agent, map, manual or pipeline",
    "remedy":"A function does its work itself, an external stage hands it to a job service, a manual one waits for a person, a pipeline one for a run of another pipeline, a map one for many; an agent takes many turns with a model.",
    "oneOf":[
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["function","external"],"default":"function"},
       "function":{"$ref":"#/$defs/function"},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "batch_size":{"default":10,"type":"integer","minimum":1,"maximum":500},
       "max_workers":{"default":2,"type":"integer","minimum":1,"maximum":1000},
       "lease_seconds":{"default":60,"type":"number","minimum":5,"maximum":3600},
       "timeout_seconds":{"default":30,"type":"number","minimum":1,"maximum":190},
       "retry":{"$ref":"#/$defs/retry","default":{}},
       "limits":{"$ref":"#/$defs/limits"},
       "shows":{"$ref":"#/$defs/shows"},
       "completion":{
        "type":"object",
        "properties":{
         "callback":{"default":false,"type":"boolean","wanted":"true or false"},
         "poll_seconds":{"type":["integer","null"],"minimum":1,"maximum":3600,"default":null},
         "deadline_seconds":{"default":600,"type":"integer","minimum":1,"maximum":604800},
         "deadline_from":{
          "type":"string",
          "enum":["submission","start"],
          "wanted":"submission or start",
          "remedy":"submission counts the time in the service's queue, start does not."
         }
        },
        "additionalProperties":false
       },
       "on_failure":{"$ref":"#/$defs/on_failure"},
       "apply":{"$ref":"#/$defs/apply"},
       "ends":{"$ref":"#/$defs/ends_19"},
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"},
       "result_limit_bytes":{"default":1048576,"type":"integer","minimum":1,"maximum":10485760}
      },
      "required":["name"]
     },
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["agent"]},
       "function":{"$ref":"#/$defs/function"},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "batch_size":{"default":10,"type":"integer","minimum":1,"maximum":500},
       "max_workers":{"default":2,"type":"integer","minimum":1,"maximum":1000},
       "lease_seconds":{"default":60,"type":"number","minimum":5,"maximum":3600},
       "timeout_seconds":{"default":30,"type":"number","minimum":1,"maximum":190},
       "retry":{"$ref":"#/$defs/retry","default":{}},
       "limits":{"$ref":"#/$defs/limits"},
       "shows":{"$ref":"#/$defs/shows"},
       "agent":{
        "type":"object",
        "properties":{
         "max_turns":{"type":"integer","minimum":1,"maximum":1000},
         "max_tokens":{"type":"integer","minimum":1,"maximum":100000000},
         "max_cost_usd":{"type":"number","minimum":0,"maximum":10000},
         "max_seconds":{"type":"number","minimum":1,"maximum":604800},
         "debug":{"type":"boolean","wanted":"true or false"}
        },
        "additionalProperties":false
       },
       "on_failure":{"$ref":"#/$defs/on_failure"},
       "apply":{"$ref":"#/$defs/apply"},
       "ends":{"$ref":"#/$defs/ends_19"},
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"},
       "result_limit_bytes":{"default":1048576,"type":"integer","minimum":1,"maximum":10485760}
      },
      "required":["name","kind"]
     },
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["map"]},
       "function":{"$ref":"#/$defs/function"},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "batch_size":{"default":10,"type":"integer","minimum":1,"maximum":500},
       "max_workers":{"default":2,"type":"integer","minimum":1,"maximum":1000},
       "lease_seconds":{"default":60,"type":"number","minimum":5,"maximum":3600},
       "timeout_seconds":{"default":30,"type":"number","minimum":1,"maximum":190},
       "retry":{"$ref":"#/$defs/retry","default":{}},
       "limits":{"$ref":"#/$defs/limits"},
       "shows":{"$ref":"#/$defs/shows"},
       "child":{
        "type":"object",
        "properties":{
         "pipeline":{"$ref":"#/$defs/pipeline"},
         "insert":{
          "type":"string",
          "pattern":"^[a-z_][a-z0-9_]*\\.[a-z_][a-z0-9_]*$",
          "wanted":"schema.function, which takes (p_parent text, p_items jsonb)",
          "remedy":"Create the function in an earlier migration and name it with its schema."
         }
        },
        "required":["pipeline"],
        "additionalProperties":false,
        "wanted":"an object with the name of a pipeline"
       },
       "fan_in":{
        "type":"object",
        "properties":{
         "rule":{
          "default":"all",
          "type":"string",
          "enum":["all","at_least","share"],
          "wanted":"all, at_least or share",
          "remedy":"all waits for every child, at_least for \"count\" of them, share for that share of them."
         },
         "count":{"type":"integer","minimum":1,"maximum":100000},
         "share":{"type":"number","minimum":0,"maximum":1},
         "failed_children":{
          "type":"string",
          "enum":["fail","ignore"],
          "wanted":"fail or ignore",
          "remedy":"fail ends the stage with the first child that fails, ignore goes on with the others."
         },
         "late_children":{
          "type":"string",
          "enum":["continue","cancel"],
          "wanted":"continue or cancel",
          "remedy":"continue lets children that still run when the stage is done go on, cancel ends them."
         },
         "deadline_seconds":{"type":"number","minimum":1,"maximum":31536000},
         "at_deadline":{
          "type":"string",
          "enum":["fail","finish"],
          "wanted":"fail or finish",
          "remedy":"finish goes on with what there is at the deadline."
         }
        },
        "additionalProperties":false
       },
       "on_failure":{"$ref":"#/$defs/on_failure"},
       "apply":{"$ref":"#/$defs/apply"},
       "ends":{"$ref":"#/$defs/ends_19"},
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"},
       "result_limit_bytes":{"default":1048576,"type":"integer","minimum":1,"maximum":10485760}
      },
      "required":["name","kind","child"]
     },
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["manual"]},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "decision":{
        "type":"object",
        "properties":{
         "schema":{},
         "deadline_seconds":{"type":"number","minimum":1,"maximum":31536000}
        },
        "additionalProperties":false
       },
       "shows":{
        "type":"object",
        "properties":{
         "asked":{"$ref":"#/$defs/enter"},
         "steps":{"$ref":"#/$defs/shared","default":[]},
         "step_moves":{"$ref":"#/$defs/moves","default":[]},
         "answers":{
          "default":{},
          "type":"object",
          "additionalProperties":{
           "type":"object",
           "properties":{
            "from":{"minItems":1,"type":"array","items":{"$ref":"#/$defs/enter"}},
            "decision":{"type":"object","additionalProperties":{},"wanted":"an object"}
           },
           "required":["from","decision"],
           "additionalProperties":false
          }
         },
         "discard":{"default":false,"type":"boolean","wanted":"true or false"},
         "completed":{"$ref":"#/$defs/enter"},
         "failed":{"$ref":"#/$defs/ends","default":{}}
        },
        "required":["asked"],
        "additionalProperties":false,
        "wanted":"an object of asked and answers"
       },
       "on_failure":{"$ref":"#/$defs/on_failure"},
       "apply":{"$ref":"#/$defs/apply"},
       "ends":{"$ref":"#/$defs/ends_19"},
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"},
       "result_limit_bytes":{"default":1048576,"type":"integer","minimum":1,"maximum":10485760}
      },
      "required":["name","kind"]
     },
     {
      "type":"object",
      "additionalProperties":false,
      "properties":{
       "name":{"$ref":"#/$defs/pipeline"},
       "kind":{"type":"string","enum":["pipeline"]},
       "needs":{"$ref":"#/$defs/needs","default":[]},
       "when":{"$ref":"#/$defs/when"},
       "otherwise":{"$ref":"#/$defs/otherwise"},
       "given":{"$ref":"#/$defs/given"},
       "on_demand":{"type":"boolean","wanted":"true or false"},
       "after":{"$ref":"#/$defs/after"},
       "child":{
        "type":"object",
        "properties":{"pipeline":{"$ref":"#/$defs/pipeline"}},
        "required":["pipeline"],
        "additionalProperties":false,
        "wanted":"an object with the name of a pipeline"
       },
       "shows":{"$ref":"#/$defs/shows"},
       "on_failure":{"$ref":"#/$defs/on_failure"},
       "apply":{"$ref":"#/$defs/apply"},
       "ends":{"$ref":"#/$defs/ends_19"},
       "sla_seconds":{"type":"number","minimum":1,"maximum":31536000},
       "enabled":{"type":"boolean","wanted":"true or false"},
       "result_limit_bytes":{"default":1048576,"type":"integer","minimum":1,"maximum":10485760}
      },
      "required":["name","kind","child"]
     }
    ]
   },
   "wanted":"a list of at least one stage"
  }
 },
 "$defs":{
  "pipeline":{
   "type":"string",
   "pattern":"^[a-z][a-z0-9_]{0,40}$",
   "wanted":"a lower-case name of letters, digits and _",
   "remedy":"Use letters, digits and underscores, beginning with a letter, at most 41."
  },
  "table":{
   "type":"string",
   "pattern":"^([a-z_][a-z0-9_]*|\"([^\"]|\"\")+\")\\.([a-z_][a-z0-9_]*|\"([^\"]|\"\")+\")$",
   "wanted":"schema.table",
   "remedy":"Create the table in an earlier migration and name it with its schema."
  },
  "enter":{
   "type":["string","integer"],
   "wanted":"a value of the status column",
   "remedy":"Write the code, or the word, that the column shows."
  },
  "ends":{"type":"object","additionalProperties":{"$ref":"#/$defs/enter"}},
  "shared":{"type":"array","items":{"$ref":"#/$defs/enter"}},
  "moves":{
   "type":"array",
   "items":{
    "minItems":2,
    "maxItems":2,
    "type":"array",
    "items":{"$ref":"#/$defs/enter"},
    "wanted":"a list of two values: from and to"
   }
  },
  "changes":{
   "type":"string",
   "minLength":1,
   "wanted":"a column of the entity's table",
   "remedy":"Name the column, or leave it out."
  },
  "function":{
   "type":"string",
   "pattern":"^[a-z][a-z0-9-]*$",
   "wanted":"the name of an Edge Function",
   "remedy":"Use small letters, digits and -, a letter first."
  },
  "needs":{
   "type":"array",
   "items":{"$ref":"#/$defs/pipeline"},
   "wanted":"a list of names of stages",
   "remedy":"Write \"needs\": [\"other_stage\"]."
  },
  "when":{
   "type":"string",
   "minLength":1,
   "wanted":"a jsonpath predicate",
   "remedy":"Write for example \"$.entity.kind == \\\"scan\\\"\" or \"$.needs.count.pages > 20\"."
  },
  "otherwise":{
   "type":"string",
   "enum":["skip","skip_dependents"],
   "wanted":"skip or skip_dependents",
   "remedy":"skip lets the stages after it go on without its result, skip_dependents skips them too."
  },
  "given":{
   "type":"string",
   "minLength":1,
   "wanted":"a jsonpath predicate",
   "remedy":"Write for example \"$.entity.summary != null\"."
  },
  "after":{
   "minItems":1,
   "type":"array",
   "items":{
    "type":"object",
    "properties":{
     "map":{"$ref":"#/$defs/pipeline"},
     "stage":{"$ref":"#/$defs/pipeline"},
     "count":{"type":"integer","minimum":1,"maximum":100000},
     "consecutive":{"type":"integer","minimum":1,"maximum":100000},
     "all":{"type":"boolean","enum":[true]}
    },
    "required":["map","stage"],
    "additionalProperties":false,
    "wanted":"a threshold with a map, a stage and one of count, consecutive and all: true",
    "remedy":"Write {\"map\": \"split\", \"stage\": \"blend\", \"count\": 20}, or \"consecutive\": 10, or \"all\": true.",
    "minProperties":3,
    "maxProperties":3
   },
   "wanted":"a list of at least one threshold"
  },
  "retry":{
   "type":"object",
   "properties":{
    "max_attempts":{"default":3,"type":"integer","minimum":1,"maximum":100},
    "backoff":{"$ref":"#/$defs/backoff","default":{"kind":"exponential"}},
    "by_code":{
     "default":{},
     "type":"object",
     "additionalProperties":{
      "type":"object",
      "properties":{
       "max_attempts":{"type":"integer","minimum":1,"maximum":100},
       "backoff":{"$ref":"#/$defs/backoff"}
      },
      "additionalProperties":false
     }
    }
   },
   "additionalProperties":false
  },
  "backoff":{
   "oneOf":[
    {
     "type":"object",
     "properties":{
      "kind":{"type":"string","enum":["exponential"]},
      "base_seconds":{"default":5,"type":"number","minimum":0,"maximum":86400},
      "factor":{"default":2,"type":"number","minimum":1,"maximum":100},
      "cap_seconds":{"default":300,"type":"number","minimum":0,"maximum":604800},
      "jitter":{"default":0.2,"type":"number","minimum":0,"maximum":1}
     },
     "required":["kind"],
     "additionalProperties":false
    },
    {
     "type":"object",
     "properties":{
      "kind":{"type":"string","enum":["list"]},
      "seconds":{
       "minItems":1,
       "type":"array",
       "items":{"type":"number","minimum":0,"maximum":604800},
       "wanted":"a list of at least one number of seconds",
       "remedy":"Write {\"kind\": \"list\", \"seconds\": [5, 30]}."
      }
     },
     "required":["kind","seconds"],
     "additionalProperties":false
    }
   ],
   "noun":"backoff",
   "wanted":"exponential or list",
   "remedy":"Use {\"kind\": \"list\", \"seconds\": [5, 30]} or {\"kind\": \"exponential\", \"base_seconds\": 5, \"factor\": 2, \"cap_seconds\": 300, \"jitter\": 0.2}."
  },
  "limits":{
   "type":"object",
   "properties":{
    "max_in_flight":{"type":"integer","minimum":1,"maximum":10000},
    "rate":{
     "type":"object",
     "properties":{
      "count":{
       "type":"integer",
       "minimum":1,
       "maximum":1000000,
       "remedy":"It is how many may begin in each interval."
      },
      "per_seconds":{
       "type":"number",
       "minimum":0.001,
       "maximum":86400,
       "remedy":"It is the length of the interval."
      },
      "burst":{"type":"integer","minimum":1,"maximum":1000000}
     },
     "required":["count","per_seconds"],
     "additionalProperties":false,
     "wanted":"an object of count, per_seconds and burst"
    },
    "concurrency":{
     "type":"object",
     "properties":{
      "column":{
       "type":"string",
       "minLength":1,
       "wanted":"a column of the entity's table",
       "remedy":"Name the column whose value is the key."
      },
      "part":{
       "type":"string",
       "enum":["value","host"],
       "wanted":"value or host",
       "remedy":"value takes the column as it is, host the host of a URL."
      },
      "limit":{
       "type":"integer",
       "minimum":1,
       "maximum":1000,
       "remedy":"It is how many with the same key may be in work at once."
      }
     },
     "required":["column","limit"],
     "additionalProperties":false,
     "wanted":"an object of column, part and limit"
    },
    "priority":{"type":"boolean","wanted":"true or false"},
    "back_pressure":{
     "type":"object",
     "properties":{
      "stage":{
       "type":"string",
       "pattern":"^([a-z][a-z0-9_]*\\.)?[a-z][a-z0-9_]*$",
       "wanted":"the name of a later stage, or pipeline.stage",
       "remedy":"Name a stage after this one, or \"pipeline.stage\" of another pipeline."
      },
      "backlog":{
       "type":"integer",
       "minimum":0,
       "maximum":100000,
       "remedy":"It is how many may be queued at the later stage."
      }
     },
     "required":["stage","backlog"],
     "additionalProperties":false,
     "wanted":"an object of stage and backlog"
    }
   },
   "additionalProperties":false,
   "wanted":"an object with at least one limit",
   "remedy":"Set max_in_flight, rate, concurrency, priority or back_pressure, or leave limits out.",
   "minProperties":1,
   "maxProperties":5
  },
  "shows":{
   "type":"object",
   "properties":{
    "queued":{"$ref":"#/$defs/enter"},
    "backoff":{"$ref":"#/$defs/enter"},
    "started":{"$ref":"#/$defs/enter"},
    "completed":{"$ref":"#/$defs/enter"},
    "failed":{"$ref":"#/$defs/ends","default":{}}
   },
   "required":["queued","started","completed"],
   "additionalProperties":false,
   "wanted":"an object of queued, started and completed"
  },
  "on_failure":{
   "type":"string",
   "enum":["fail_run","continue"],
   "wanted":"fail_run or continue",
   "remedy":"fail_run ends the run, continue goes on without the stage's result."
  },
  "apply":{
   "type":"string",
   "pattern":"^[a-z_][a-z0-9_]*\\.[a-z_][a-z0-9_]*$",
   "wanted":"schema.function, which takes one jsonb",
   "remedy":"Create the function in an earlier migration and name it with its schema."
  },
  "ends_19":{
   "type":"array",
   "wanted":"a list of names and conditions",
   "remedy":"Write [{\"name\": \"rejected\", \"when\": \"$.result.ok == false\"}].",
   "minItems":1,
   "items":{
    "type":"object",
    "properties":{
     "name":{"$ref":"#/$defs/pipeline"},
     "when":{
      "type":"string",
      "minLength":1,
      "wanted":"a jsonpath predicate",
      "remedy":"Write for example \"$.result.score < 0.5\"."
     }
    },
    "required":["name","when"],
    "additionalProperties":false
   }
  }
 }
}$schema$::jsonb
$$;

-- The doctor
--
-- Each function here looks at one part of the engine and says of each point whether all is well,
-- and if not what helps. doctor() joins what they find.

-- Looks at the settings. A Vault that cannot be read is a finding, not an error.
create or replace function millrace.setting_findings()
returns table (what text, ok boolean, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_url text;
  v_headers jsonb;
  v_flag text;
  v_fault text := 'missing';
begin
  begin
    v_url := millrace.setting('project_url');
    v_headers := millrace.wake_headers();
    v_flag := coalesce(millrace.setting('use_new_pipeline'), 'false');
  exception when others then
    v_fault := 'Vault cannot be read: ' || sqlerrm;
  end;
  return query
    select 'project_url is set', coalesce(v_url ~ '^https?://[^/ ]+$', false),
      coalesce(v_url, v_fault
        || ': select vault.create_secret(''https://REF.supabase.co'', ''millrace_project_url'')');
  return query
    select 'wake_secret is set', coalesce(v_headers ? 'x-millrace-wake-secret', false),
      case
        when v_headers ? 'x-millrace-wake-secret' then 'present'
        when v_headers is null then v_fault || ': ' || millrace.wake_secret_remedy()
        else 'the doorbell shows secret_key instead, which every SQL role can read in '
          || 'net.http_request_queue: ' || millrace.wake_secret_remedy() end;
  return query
    select 'use_new_pipeline is true or false', coalesce(v_flag in ('true', 'false'), false),
      coalesce(v_flag, v_fault);
end
$$;

-- Looks at what keeps the engine going by itself: pg_cron's jobs, the sweep, pg_net, and what the
-- functions answered to wake-ups.
create or replace function millrace.doorbell_findings()
returns table (what text, ok boolean, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_swept timestamptz := (
    select s.value::timestamptz
    from millrace.settings s
    where s.name = 'last_sweep_at');
begin
  return query
    select 'pg_cron job ' || j.name, coalesce(c.active, false),
      coalesce(c.schedule, format(
        'missing: select cron.schedule(%L, %L, %L)', j.name, j.schedule, j.command))
    from millrace.schedules j
    left join cron.job c on c.jobname = j.name;
  return query
    select 'the sweep has run in the last minute',
      coalesce(v_swept > millrace.now() - interval '1 minute', false),
      coalesce(v_swept::text, 'never; it is due every ten seconds');
  return query
    select 'the functions answered the last wake-ups',
      coalesce(bool_and(n.status_code between 200 and 299), true),
      coalesce(string_agg(distinct coalesce(
        n.status_code || coalesce(
          ': ' || substring(n.content from '"message":"((?:[^"\\]|\\.)*)"'), ''),
        n.error_msg, 'no answer'), ', '), 'no wake-ups yet')
    from millrace.last_answers(20) n;
  return query
    select 'pg_net''s worker runs', w.pid is not null,
      coalesce('process ' || w.pid,
        'it is not in pg_stat_activity: select net.worker_restart()')
    from (
      select min(a.pid) as pid
      from pg_stat_activity a
      where a.datname = current_database()
        and (a.backend_type ilike '%pg_net%' or a.application_name ilike 'pg_net %')) w;
end
$$;

-- Looks at work that nobody takes, but for what waits for its limits.
create or replace function millrace.ready_work_finding()
returns table (what text, ok boolean, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'ready work is taken within a minute', count(*) = 0,
    coalesce(string_agg(format(
      'stage %s of %s waits since %s: look at the logs of function %s', s.name, p.name,
      to_char(w.since, 'YYYY-MM-DD HH24:MI:SS'), s.function_name),
      ', ' order by p.name, s.id), 'nothing waits')
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  cross join lateral (
    select min(a.queue_at) as since
    from millrace.attempts a
    where a.stage_id = s.id
      and a.queue_at <= millrace.now() - interval '1 minute'
      and a.state = 'queued') w
  where s.enabled
    and p.enabled
    and w.since is not null
    and millrace.live_workers(s.id) = 0
    and (s.limits is null or millrace.may_claim(s))
$$;

-- Tells why the functions that attach() wrote no longer fit the entity table; null when they do. A
-- column that was dropped or renamed since stops every claim. One that was added is not sent to the
-- stages, which matters to nobody where it belongs to a stage.
create or replace function millrace.fault_of(p_pipeline text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  execute format('select millrace.%I(''{}'', null)', p_pipeline || '__rows');
  return (
    select format('stages are not given the column %s, which was added later', min(a.attname))
    from millrace.pipelines p
    join pg_attribute a on a.attrelid = p.entity_table and a.attnum > 0 and not a.attisdropped
    join pg_proc f on f.pronamespace = 'millrace'::regnamespace and f.proname = p.name || '__rows'
    where p.name = p_pipeline
      and position(format('e.%I,', a.attname) in f.prosrc) = 0
      and position(format('e.%I ', a.attname) in f.prosrc) = 0
      and not exists (
        select
        from millrace.pipelines o
        join millrace.stages s on s.pipeline_id = o.id
        where o.entity_table = p.entity_table
          and a.attname = any (case o.projection
            when 'columns' then millrace.stage_columns(s.name)
            when 'status' then millrace.status_columns(o.status)
          end))
    having count(*) > 0);
exception when others then
  return sqlerrm;
end
$$;

-- Looks at what people set up: grants on entity tables, pauses, and tables that were changed.
create or replace function millrace.pipeline_findings()
returns table (what text, ok boolean, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    select 'only the engine can write results', count(*) = 0,
      coalesce(string_agg(
        format('%s may %s %s in %s: %s', f.role, replace(f.verbs, ', ', ' and '), f.what,
          f.entity_table, f.remedy), ' '),
        'no role of the Data API can')
    from millrace.forgers f;
  return query
    select 'nothing is paused', count(*) = 0,
      coalesce(string_agg(
        coalesce('stage ' || d.stage || ' of ', 'pipeline ') || d.pipeline || ': ' || d.remedy,
        ' '), 'nothing is')
    from millrace.paused d;
  return query
    select 'pipeline ' || p.name || ' fits its table', f.fault is null,
      coalesce(f.fault || format(': select millrace.attach(%L)', p.name), p.entity_table::text)
    from millrace.pipelines p
    cross join lateral millrace.fault_of(p.name) f(fault);
end
$$;

-- Looks at what takes too long: jobs at services, stages with a bound, and jobs with a deadline.
create or replace function millrace.time_findings()
returns table (what text, ok boolean, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_faulty text := millrace.faulty_jobs();
begin
  return query
    select 'jobs at services can be asked after and finished', v_faulty is null,
      coalesce(v_faulty, 'none is in trouble');
  return query
    select 'no stage is later than its bound', count(*) = 0,
      coalesce(
        string_agg(format('%s of %s: %s', l.stage, l.pipeline, l.late), ', '
          order by l.pipeline, l.id)
          || ': select * from millrace.alerts where resolved_at is null', 'none')
    from (
      select s.id, s.name as stage, p.name as pipeline, millrace.late_runs(s.id) as late
      from millrace.stages s
      join millrace.pipelines p on p.id = s.pipeline_id
      where s.sla is not null) l
    where l.late > 0;
  return query
    select 'external jobs end before their deadlines', count(*) = 0,
      coalesce(string_agg(format(
        'stage %s of %s: of the last %s jobs %s passed their deadline and %s completed: '
          || 'set limits.maxInFlight (now %s) to what the service works on at once, '
          || 'or completion.deadlineSeconds to more',
        j.stage, j.pipeline, j.ended, j.past_deadline, j.completed,
        coalesce(j.max_in_flight, 'none')), ', '), 'none passed more often than jobs completed')
    from millrace.job_outcomes j
    where j.past_deadline > j.completed;
end
$$;

-- Joins all findings.
create or replace function millrace.doctor()
returns table (what text, ok boolean, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select f.what, f.ok, f.detail from millrace.setting_findings() f;
  return query select f.what, f.ok, f.detail from millrace.doorbell_findings() f;
  return query select f.what, f.ok, f.detail from millrace.ready_work_finding() f;
  return query select f.what, f.ok, f.detail from millrace.pipeline_findings() f;
  return query select f.what, f.ok, f.detail from millrace.due_findings() f;
  return query
    select 'no invariant is violated', count(*) = 0,
      coalesce(string_agg(distinct i.rule, '; '), 'none')
    from millrace.check_invariants() i;
  return query select f.what, f.ok, f.detail from millrace.time_findings() f;
  return query
    select 'no errors in the last hour', count(*) = 0,
      coalesce(string_agg(distinct l.message, '; '), 'none')
    from millrace.log l
    where l.level = 'error'
      and l.at > millrace.now() - interval '1 hour';
end
$$;

-- The doorbell: posts to the Edge Functions through pg_net, and what came back
--
-- Every SQL role can read net.http_request_queue, where a request waits with its headers. So the
-- doorbell shows a secret that wakes and does nothing else; the project's secret key wakes only
-- where no such secret is set.

-- Returns what the doorbell shows the functions: wake_secret, else secret_key, else null.
create or replace function millrace.wake_headers() returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wake_secret text := millrace.setting('wake_secret');
  v_secret_key text;
begin
  if v_wake_secret is not null then
    return jsonb_build_object('x-millrace-wake-secret', v_wake_secret);
  end if;
  v_secret_key := millrace.setting('secret_key');
  return case when v_secret_key is not null then jsonb_build_object('apikey', v_secret_key) end;
end
$$;

-- Tells an operator how to set the wake-up secret on both sides.
create or replace function millrace.wake_secret_remedy() returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select 'set the function secret MILLRACE_WAKE_SECRET to a random text, then '
    || 'select vault.create_secret(''the same text'', ''millrace_wake_secret'')'
$$;

-- Wakes an Edge Function at commit; this alone calls pg_net. It reports a setting that is missing
-- or wrong and returns false, and never raises: the user's own write goes on.
create or replace function millrace.post(p_function text, p_body jsonb) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_url text;
  v_headers jsonb;
  v_request bigint;
begin
  -- Not as initial values: their errors (a Vault that cannot decrypt) would escape the handler.
  v_url := millrace.setting('project_url');
  v_headers := millrace.wake_headers();
  if v_url is null or v_headers is null then
    perform millrace.report('error', 'doorbell_not_configured',
      'The doorbell cannot wake: project_url or wake_secret is not set',
      jsonb_build_object('hint',
        'select vault.create_secret(''https://REF.supabase.co'', ''millrace_project_url''); '
        || millrace.wake_secret_remedy()));
    return false;
  end if;
  v_request := net.http_post(
    url := rtrim(v_url, '/') || '/functions/v1/' || p_function,
    body := p_body,
    headers := v_headers || '{"Content-Type": "application/json"}' || (
      select jsonb_build_object('x-millrace-level', e.level::text,
        'x-millrace-contracts', array_to_string(e.contracts, ','))
      from millrace.engine() e),
    timeout_milliseconds := 5000);
  insert into millrace.posts (request_id) values (v_request);
  return true;
exception
  when others then
    if not millrace.report_caught(sqlstate, null, 'doorbell_failed',
        'The doorbell could not wake: ' || sqlerrm,
        jsonb_build_object('function', p_function, 'project_url', v_url)) then
      raise;
    end if;
    return false;
end
$$;

-- Returns what the functions answered to the last so many posts of the engine, as far as they did.
create or replace function millrace.last_answers(p_limit int)
returns table (status_code int, error_msg text, content text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_posts millrace.posts[] := array(
    select p from millrace.posts p order by p.posted_at desc limit p_limit);
begin
  return query
    select r.status_code, r.error_msg, r.content
    from unnest(v_posts) p
    -- pg_net dates an answer by the start of its own transaction, which may be a moment before
    -- ours.
    join net._http_response r
      on r.id = p.request_id and r.created > p.posted_at - interval '1 minute'
    where r.created > (
      select min(o.posted_at) - interval '1 minute'
      from unnest(v_posts) o);
end
$$;

-- External jobs: how they end, who asks after them, what their services say

-- The planner settings in the headers of the public functions here and in worker-calls.sql are
-- explained there.

-- Finds the attempt that a late result of this one completes or comes too late for; null when there
-- is none. A job whose deadline passed, or whose worker was lost, may still end well. Its result is
-- as good as that of the job that was bought after it, unless somebody has voided it since: by
-- starting the stage over, a reset, a cancel, or by ending an attempt by hand.
create or replace function millrace.successor_of(p_attempt millrace.attempts)
returns millrace.attempts
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_newest millrace.attempts;
begin
  if p_attempt.state <> 'failed'
    or p_attempt.superseded
    or coalesce(p_attempt.error ->> 'code', '') not in ('deadline', 'lost_lease') then
    return null;
  end if;
  select a.* into v_newest
  from millrace.attempts a
  where a.run_id = p_attempt.run_id
    and a.stage_id = p_attempt.stage_id
    and a.number > p_attempt.number
  order by a.number desc
  limit 1;
  if v_newest.state in ('queued', 'started', 'waiting', 'completed')
    and not v_newest.superseded
    and not exists (
      select from millrace.attempts a
      where a.run_id = p_attempt.run_id
        and a.stage_id = p_attempt.stage_id
        and a.number > p_attempt.number
        and (a.state = 'cancelled' or a.service = 'by_hand')) then
    return v_newest;
  end if;
  return null;
end
$$;

-- Replaces the submission that each job's end names, as far as its run is locked, with the attempt
-- that it is about. late: the places of those that an earlier submission of the stage bought. Call
-- it after the locks: a sweep that replaces an attempt while a callback is on its way must not make
-- that callback stale.
create or replace function millrace.address_ends(
  p_items millrace.work[], p_locked bigint[], out items millrace.work[], out late int[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempt millrace.attempts;
  v_next millrace.attempts;
  v_job record;
begin
  items := p_items;
  late := '{}';
  for v_i in 1 .. cardinality(items) loop
    continue when items[v_i].verdict is not null or items[v_i].attempt_id <> all (p_locked);
    -- The newest that carries the submission; offset 0 keeps the planner from walking all attempts
    -- backwards for max().
    items[v_i].attempt_id := coalesce((
        select max(c.id)
        from (
          select a.id from millrace.attempts a
          where a.submission_id = items[v_i].attempt_id
          offset 0) c),
      items[v_i].attempt_id);
    select a.* into v_attempt from millrace.attempts a
    where a.id = items[v_i].attempt_id;
    v_next := millrace.successor_of(v_attempt);
    continue when v_next.id is null;
    v_job := (items[v_i].service, items[v_i].job_id);
    if (v_next.service, v_next.job_id) = v_job then
      -- Submitted again under the key of the stage's execution, so that its service gave it the
      -- same job.
      items[v_i].attempt_id := v_next.id;
    elsif items[v_i].outcome = 'completed'
      and coalesce((v_attempt.service, v_attempt.job_id) = v_job, true) then
      -- A failure would say nothing about the later job; and what waited for a job takes no other
      -- one's result.
      items[v_i].attempt_id := v_next.id;
      late := late || items[v_i].ord;
    end if;
  end loop;
end
$$;

-- Locks, addresses, judges and records the ends of external jobs.
create or replace function millrace.record_ends(
  p_items millrace.work[], out verdicts json, out ready int[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
declare
  v_locked bigint[];
  v_to record;
  v_done record;
begin
  -- A submission is the id of the attempt that began it, so the run and the entity to lock are
  -- known before its successor is.
  v_locked := millrace.lock_attempts(
    array(select i.attempt_id from unnest(p_items) i where i.verdict is null));
  v_to := millrace.address_ends(p_items, v_locked);
  -- Once more, for those that are queued, which a claim might take otherwise.
  v_locked := millrace.lock_attempts(array(
    select t.attempt_id
    from unnest(p_items) i
    join unnest(v_to.items) t on t.ord = i.ord
    where i.attempt_id = any (v_locked)));
  v_done := millrace.apply_outcomes_guarded(
    millrace.check_fencing(v_to.items, v_locked, v_to.late));
  verdicts := coalesce(millrace.verdicts_of(v_done.items), '[]');
  ready := v_done.ready;
end
$$;

create or replace function public.millrace_resume(p_items json) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_done record;
  v_again int[];
  v_accepted bigint[];
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  v_done := millrace.record_ends(millrace.parse_items(p_items, 'submission'));
  -- A duplicate may be the repeat of a call whose answer was lost, and its wake-ups with it: rather
  -- a wake-up too many.
  v_again := array(
    select f
    from (
      select distinct a.stage_id
      from json_to_recordset(v_done.verdicts) as d(attempt bigint, verdict text)
      join millrace.attempts a on a.id = d.attempt
      where d.verdict = 'duplicate') s,
    unnest(millrace.followers_with_work(s.stage_id)) f);
  v_accepted := array(
    select d.attempt
    from json_to_recordset(v_done.verdicts) as d(attempt bigint, verdict text)
    where d.verdict = 'accepted');
  return jsonb_build_object(
    'items', v_done.verdicts,
    'wake', millrace.wake_list(
      millrace.stages_to_wake(v_done.ready) || v_again || millrace.wakes_for_freed(v_accepted)),
    'sweep_due', millrace.sweep_due(),
    'collect', millrace.parents_to_collect('{}'));
end
$$;

create or replace function public.millrace_poll(p_limit int, p_poll_ms int default null)
returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := millrace.now();
  v_jobs jsonb;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_poll_ms is not null and p_poll_ms not between 1 and 3600000 then
    raise exception 'p_poll_ms is %, but must be from 1 to 3600000', p_poll_ms
      using errcode = 'MR002', hint = 'Set COMPLETION_POLL_INTERVAL to a number of milliseconds, '
        'or leave it unset.';
  end if;
  if p_limit is null or p_limit not between 1 and 1000 then
    raise exception 'p_limit is %, but must be from 1 to 1000', coalesce(p_limit::text, 'null')
      using errcode = 'MR002', hint = 'Send how many jobs to ask for at once.';
  end if;
  with due as (
    select a.id from millrace.attempts a
    where a.poll_at <= v_now and a.state = 'waiting'
    order by a.poll_at
    limit p_limit
    for update skip locked
  ), taken as (
    -- The next poll is set at once, so that two pollers never ask for the same job.
    update millrace.attempts a
    set poll_at = v_now + coalesce(make_interval(secs => p_poll_ms / 1000.0), s.poll_every)
    from due, millrace.stages s
    where a.id = due.id and s.id = a.stage_id
    returning a.*, s.name as stage, s.function_name, s.pipeline_id,
      s.deadline_from = 'start' and a.job_started_at is null as awaits_start
  )
  select jsonb_agg(jsonb_build_object(
      'attempt', t.id, 'submission', coalesce(t.submission_id, t.id), 'trace_id', r.trace_id,
      'pipeline', p.name, 'stage', t.stage, 'function', t.function_name,
      'service', t.service, 'job_id', t.job_id, 'entity_id', r.entity_id,
      'deadline_at', t.deadline_at, 'awaits_start', t.awaits_start,
      'faulty', t.error is not null) order by t.id)
  into v_jobs
  from taken t
  join millrace.pipelines p on p.id = t.pipeline_id
  join millrace.runs r on r.id = t.run_id;
  return jsonb_build_object('jobs', coalesce(v_jobs, '[]'),
    'more', coalesce(jsonb_array_length(v_jobs), 0) = p_limit);
end
$$;

-- Raises MR002 unless this is what millrace_note_jobs() takes.
create or replace function millrace.check_job_states(p_jobs jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault record;
begin
  if coalesce(jsonb_typeof(p_jobs), 'null') <> 'array' or jsonb_array_length(p_jobs) > 1000 then
    raise exception 'p_jobs must be a list of at most 1000 jobs, this is %',
      case when jsonb_typeof(p_jobs) = 'array' then 'a list of ' || jsonb_array_length(p_jobs)
      else coalesce(jsonb_typeof(p_jobs), 'null') end
      using errcode = 'MR002',
        hint = 'Send [{attempt, service, job_id, state}], in several calls if need be.';
  end if;
  select j.ordinality - 1 as place, j.value as job into v_fault
  from jsonb_array_elements(p_jobs) with ordinality j
  where (jsonb_typeof(j.value -> 'attempt') = 'number'
    and j.value ->> 'attempt' ~ '^[0-9]{1,18}$'
    and jsonb_typeof(j.value -> 'service') = 'string'
    and jsonb_typeof(j.value -> 'job_id') = 'string'
    and j.value ->> 'state' in ('queued', 'running')) is not true
  order by j.ordinality
  limit 1;
  if found then
    raise exception 'p_jobs[%] is %, but must be {attempt, service, job_id, state}',
      v_fault.place, left(v_fault.job::text, 200)
      using errcode = 'MR002',
        hint = 'attempt is a number; state is queued (the job waits at its service) or running.';
  end if;
end
$$;

-- A poller reports its jobs every few seconds, and most reports change nothing: while a job waits,
-- its deadline moves only once half of it has passed, and its start is noted once. A row that
-- somebody holds is left to the next report.
create or replace function public.millrace_note_jobs(p_jobs jsonb) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := millrace.now();
  v_noted int;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  perform millrace.check_job_states(p_jobs);
  with held as (
    select w.id, w.deadline, t.state
    from jsonb_to_recordset(p_jobs) as t(attempt bigint, service text, job_id text, state text)
    -- A lateral look-up, or the planner would walk the attempts of a stage; in no order, since it
    -- waits for nobody.
    cross join lateral (
      select a.id, s.deadline
      from millrace.attempts a
      join millrace.stages s on s.id = a.stage_id
      where a.id = t.attempt
        and a.state = 'waiting'
        and a.service = t.service
        and a.job_id = t.job_id
        and a.job_started_at is null
        and s.deadline_from = 'start'
        and (t.state = 'running' or a.deadline_at < v_now + s.deadline / 2)
      limit 1
      for update of a skip locked
    ) w
  ), noted as (
    update millrace.attempts a
    set deadline_at = v_now + h.deadline,
      job_started_at = case when h.state = 'running' then v_now end
    from held h
    where a.id = h.id
    returning a.id
  )
  select count(*) into v_noted from noted;
  return jsonb_build_object('noted', v_noted);
end
$$;

-- Failing, and trying again

-- Whoever may read a row reads its errors. So an error has a message for the row's owner and, where
-- there is more to say, a detail for operators (an address, a constraint, a stack), whom the
-- attempt's number leads to it. This is what the owner reads.
create or replace function millrace.owner_message(p_error jsonb, p_attempt_id bigint) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select (p_error ->> 'message')
    || case when p_error ->> 'detail' is null then ''
      else format(' (attempt %s)', p_attempt_id) end
$$;

-- Reckons the seconds until the retry with this count (0: the first), by a policy of the
-- definition.
create or replace function millrace.backoff_seconds(p_backoff jsonb, p_retry_count int)
returns float8
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_listed jsonb := p_backoff -> 'seconds';
  v_base float8 := coalesce((p_backoff ->> 'base_seconds')::float8, 5);
  v_factor float8 := coalesce((p_backoff ->> 'factor')::float8, 2);
  v_cap float8 := coalesce((p_backoff ->> 'cap_seconds')::float8, 300);
  v_jitter float8 := coalesce((p_backoff ->> 'jitter')::float8, 0.2);
begin
  if p_backoff ->> 'kind' = 'list' then
    return (v_listed ->> least(p_retry_count, jsonb_array_length(v_listed) - 1))::float8;
  end if;
  return least(v_base * power(v_factor, least(p_retry_count, 60)), v_cap)
    * (1 + v_jitter * (2 * random() - 1));
end
$$;

-- Says when a failed attempt is to be tried again; null when it is permanent or exhausted.
create or replace function millrace.retry_due(p_stage_id int, p_error jsonb, p_retry_count int)
returns timestamptz
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  -- What waits for a person or for a child run is not asked again by itself.
  v_retry jsonb := (
    select case when s.kind in ('manual', 'pipeline') then '{"max_attempts": 1}' else s.retry end
    from millrace.stages s
    where s.id = p_stage_id);
  v_policy jsonb := v_retry || coalesce(v_retry -> 'by_code' -> (p_error ->> 'code'), '{}');
begin
  if coalesce((p_error ->> 'permanent')::boolean, false)
    or p_retry_count + 1 >= coalesce((v_policy ->> 'max_attempts')::int, 3) then
    return null;
  end if;
  return millrace.now() + make_interval(secs => greatest(
    millrace.backoff_seconds(coalesce(v_policy -> 'backoff', '{}'), p_retry_count),
    least(coalesce((p_error ->> 'retry_after_ms')::float8, 0) / 1000, 86400)));
end
$$;

-- Writes the attempts of fail(), with a retry row where the policy allows one. Returns what is to
-- be shown, the runs that have no further try, whether a retry is due at once, and the runs whose
-- retry belongs into a group.
create or replace function millrace.close_failed(
  p_items millrace.work[],
  out changes millrace.change[], out dead bigint[], out due_now boolean, out grouped bigint[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
begin
  with failed as (
    update millrace.attempts a
    set state = 'failed', finished_at = v_now, queue_at = null, poll_at = null,
      deadline_at = null, late_at = null, error = i.error, usage = i.usage,
      service = coalesce(a.service, i.service), job_id = coalesce(a.job_id, i.job_id)
    from unnest(p_items) i
    where a.id = i.attempt_id and a.state = i.was
    returning a.*, i.entity_id, i.was, i.job_id as reported_job,
      millrace.retry_due(a.stage_id, i.error, a.retry_count) as due
  ), again as (
    insert into millrace.attempts (run_id, stage_id, number, parent_id, retry_count, queue_at,
      created_at, late_at, isolated, submission_id)
    select f.run_id, f.stage_id, f.number + 1, f.id, f.retry_count + 1, f.due, v_now,
      -- Read from the row as it was before this statement.
      (select o.late_at from millrace.attempts o where o.id = f.id),
      coalesce(f.error ->> 'code' in ('lost_lease', 'resource_limit')
        or f.isolated and f.error ->> 'code' = 'released', false),
      -- The id of an earlier submission is kept until its job is known to have ended: a crash after
      -- submitting buys no second job. What a person failed by hand is submitted anew.
      case when f.was = 'started' and f.reported_job is null
        and f.service is distinct from 'by_hand' then coalesce(f.submission_id, f.id) end
    from failed f
    where f.due is not null
    order by f.run_id
  )
  select array_agg(row(
      f.entity_id, case when f.due is null then 'failed' else 'queued' end, null, null,
      millrace.owner_message(f.error, f.id),
      f.retry_count + case when f.due is null then 0 else 1 end,
      case when f.due is null then f.started_at end, null, null)::millrace.change),
    coalesce(array_agg(f.run_id order by f.run_id) filter (where f.due is null), '{}'),
    coalesce(bool_or(f.due <= v_now), false),
    array_agg(f.run_id) filter (where f.due is not null and f.concurrency_group is not null)
  into changes, dead, due_now, grouped
  from failed f;
end
$$;

-- started | waiting | queued → failed, with a retry row when the policy allows one; else the run
-- fails, or goes on without the stage. Returns the stages that got work.
create or replace function millrace.fail(p_stage_id int, p_items millrace.work[]) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_failed record;
  v_cancelled millrace.cancelled[] := '{}';
  v_ready int[] := '{}';
  v_stage millrace.stages;
begin
  v_failed := millrace.close_failed(p_items);
  if v_failed.grouped is not null then
    perform millrace.assign_groups(p_stage_id, v_failed.grouped);
  end if;
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  if v_stage.counted then
    perform millrace.note_spending(p_items);
  end if;
  if v_failed.due_now then
    v_ready := array[p_stage_id];
  end if;
  if cardinality(v_failed.dead) = 0 then
    perform millrace.project(p_stage_id, v_failed.changes);
    return v_ready;
  end if;
  if v_stage.kind in ('map', 'pipeline') then
    perform millrace.abandon_fan_outs(v_failed.dead, array[p_stage_id]);
  end if;
  if v_stage.on_failure = 'continue' then
    perform millrace.project(p_stage_id, v_failed.changes);
    return v_ready || millrace.skip_failed_stage(p_stage_id, v_failed.dead);
  end if;
  -- All of it before the first projection: a user's trigger on the entity may queue a stage anew
  -- there and then.
  perform millrace.end_runs(v_failed.dead, 'failed');
  v_cancelled := millrace.cancel_attempts(v_failed.dead, null);
  perform millrace.project(p_stage_id, v_failed.changes);
  perform millrace.project_cancelled(v_cancelled);
  return v_ready;
end
$$;

-- running → failed | cancelled for locked runs; a child's end is tallied for its parent.
create or replace function millrace.end_runs(p_run_ids bigint[], p_status millrace.run_status)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with ended as (
    update millrace.runs r
    set status = p_status, finished_at = millrace.now()
    where r.id = any (p_run_ids)
    returning r.fan_out_id
  )
  insert into millrace.child_tallies (fan_out_id, failed, cancelled)
  select e.fan_out_id, count(*) filter (where p_status = 'failed'),
    count(*) filter (where p_status = 'cancelled')
  from ended e
  where e.fan_out_id is not null
  group by e.fan_out_id;
end
$$;

-- Intake and projection
--
-- Intake compares old and new statuses once a statement, whatever its number of rows. Only the
-- projecting statement itself is exempt: it announces its trigger depth, and a statement that a
-- user's own trigger runs is one level deeper. The condition stands on the trigger and not in its
-- function, which runs as the engine's owner and would not know who asks. The triggers and
-- statements themselves are written for each pipeline (attach.sql).

-- Acts on a status written by a user: queued starts, pending is allowed without a live run,
-- anything else raises MR005. The caller, an intake trigger, holds the entities, and has nested
-- loops off.
create or replace function millrace.on_status_written(
  p_pipeline_id int, p_stage text, p_status text, p_entity_ids text[], p_dirty_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_stage_id int := (
    select s.id from millrace.stages s
    where s.pipeline_id = p_pipeline_id and s.name = p_stage);
begin
  if p_status = 'queued' then
    perform millrace.queue_stage(
      p_pipeline_id, v_stage_id, p_entity_ids, coalesce(p_dirty_ids, '{}'),
      p_by_name => not millrace.begins_runs(p_pipeline_id, v_stage_id));
  elsif p_status is distinct from 'pending' then
    raise exception '%_status was set to % by hand',
      p_stage, coalesce(quote_literal(p_status), 'null')
      using errcode = 'MR005',
        hint = 'Write ''queued'' to (re)start the stage; the engine writes all other states. '
          || case
            when p_status = 'skipped' then
              format('To go on without the stage: select millrace.skip(run, %L).', p_stage)
            else 'To stop a run: select millrace.cancel(run).'
          end;
  elsif exists (
      select from millrace.runs r
      where r.pipeline_id = p_pipeline_id
        and r.entity_id = any (p_entity_ids)
        and r.status = 'running') then
    raise exception '%_status was set to ''pending'' by hand while a run is under way', p_stage
      using errcode = 'MR005',
        hint = format('Cancel the run first: select millrace.cancel(id) from millrace.runs '
          'where status = ''running'' and pipeline_id = %s and entity_id = %L.',
          p_pipeline_id, p_entity_ids[1]);
  end if;
end
$$;

-- Cancels and removes all runs of deleted entities, with their results.
create or replace function millrace.forget(p_pipeline_id int, p_entity_ids text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  perform millrace.delete_runs(array(
    select r.id from millrace.runs r
    where r.entity_id = any (p_entity_ids) and r.pipeline_id = p_pipeline_id
    order by r.id
    for update));
  perform millrace.forget_begun(p_pipeline_id, p_entity_ids);
end
$$;

-- Deletes locked runs with everything that hangs on them; the sweep deletes their metadata.
create or replace function millrace.delete_runs(p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.keep_costs(p_run_ids);
  delete from millrace.attempts a where a.run_id = any (p_run_ids);
  -- After the attempts: whoever still records a turn of one holds its row until then.
  delete from millrace.turns t where t.run_id = any (p_run_ids);
  perform millrace.forget_decisions(p_run_ids);
  perform millrace.forget_alerts(p_run_ids);
  -- Their parents count anew, and their children are cancelled by the sweep, which then forgets the
  -- fan-outs.
  insert into millrace.child_tallies (fan_out_id, recount)
  select distinct r.fan_out_id, true
  from millrace.runs r
  where r.id = any (p_run_ids) and r.fan_out_id is not null;
  update millrace.fan_outs f
  set state = 'abandoned'
  where f.run_id = any (p_run_ids) and f.state in ('open', 'finished');
  insert into millrace.dropped_metadata (metadata_id)
  select distinct r.metadata_id
  from millrace.runs r
  where r.id = any (p_run_ids) and r.metadata_id is not null;
  delete from millrace.runs r where r.id = any (p_run_ids);
end
$$;

-- Runs the projecting statements (p_how: settle, started or queued; see write_project_entities())
-- for callers that have no use for an answer.
create or replace function millrace.write_entities(
  p_pipeline_id int, p_how text, p_stage text, p_changes millrace.change[], p_ids text[],
  p_dependents text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.project_entities(
    p_pipeline_id, p_how, p_stage, p_changes, p_ids, p_dependents);
end
$$;

-- Whose a job is, and what went wrong with it
--
-- The function job-complete verifies a callback and hands it to the function of the stage whose job
-- it is about; the functions here tell which that is. What keeps a job from being asked after or
-- finished is an operator's business: it stands on the attempt that waits, in millrace.log and in
-- doctor(), and goes when the service answers again.

-- Finds the attempt of a job that is named by its id alone: one that waits for it; else one whose
-- deadline passed or whose worker was lost, which a late result may still serve; else whichever had
-- it last. Returns null where there is none, or where two wait: two services may give the same id,
-- and neither may have the other's job.
create or replace function millrace.attempt_of_job(p_job_id text) returns millrace.attempts
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found millrace.attempts[];
begin
  v_found := array(
    select a
    from (
      select a.*
      from millrace.attempts a
      where hashtextextended(a.job_id, 0) = hashtextextended(p_job_id, 0)
        and a.job_id is not null
        and a.service not in ('children', 'decision', 'by_hand')
        and a.job_id = p_job_id
      order by a.id desc
      limit 100
    ) a
    order by a.state = 'waiting' desc,
      (a.state = 'failed'
        and not a.superseded
        and a.error ->> 'code' in ('deadline', 'lost_lease')
        and exists (
          select
          from millrace.runs r
          where r.id = a.run_id
            and r.status = 'running')) desc,
      a.id desc
    limit 2);
  if v_found[1].state = 'waiting' and v_found[2].state = 'waiting' then
    return null;
  end if;
  return v_found[1];
end
$$;

-- Tells job-complete which function a callback goes to.
create or replace function public.millrace_job_owner(p_job jsonb) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off
set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_attempt millrace.attempts;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_job ? 'stage' then
    -- Whether the attempt still waits is judged when the job is recorded.
    return (
      select p_job
        || jsonb_build_object('function', s.function_name, 'service', p_job ->> 'service')
      from millrace.pipelines p
      join millrace.stages s on s.pipeline_id = p.id
      where p.name = p_job ->> 'pipeline'
        and s.name = p_job ->> 'stage'
        and s.function_name is not null);
  end if;
  if p_job ->> 'job_id' is null then
    raise exception 'p_job names neither a stage nor a job_id: %', left(p_job::text, 200)
      using errcode = 'MR002',
        hint = 'Send {pipeline, stage, submission, trace_id, entity_id} or {job_id}.';
  end if;
  v_attempt := millrace.attempt_of_job(p_job ->> 'job_id');
  return (
    select jsonb_build_object('function', s.function_name, 'service', v_attempt.service,
      'pipeline', p.name, 'stage', s.name,
      'submission', coalesce(v_attempt.submission_id, v_attempt.id),
      'trace_id', r.trace_id, 'entity_id', r.entity_id,
      'ended', r.status <> 'running' or v_attempt.state not in ('waiting', 'failed'))
    from millrace.runs r
    join millrace.stages s on s.id = v_attempt.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    where r.id = v_attempt.run_id);
end
$$;

-- Notes faults on attempts that wait for jobs. It locks those alone that change, and skips what
-- somebody holds: the next poll says it again.
create or replace function public.millrace_note_faults(p_faults jsonb) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off
set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_noted int;
  v_first jsonb;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if jsonb_typeof(p_faults) is distinct from 'array' then
    raise exception 'p_faults is %, but must be a list', coalesce(jsonb_typeof(p_faults), 'null')
      using errcode = 'MR002', hint = 'Send [{submission, service, job_id, code, message}].';
  end if;
  v_noted := millrace.note_on_attempts(p_faults);
  v_first := (
    select f.value
    from jsonb_array_elements(p_faults) f
    where f.value ->> 'code' is not null
    limit 1);
  if v_first is not null then
    perform millrace.report('error', 'job_fault',
      format('A job of service %s cannot be finished: %s',
        coalesce(nullif(v_first ->> 'service', ''), 'unknown'), v_first ->> 'message'),
      v_first);
  end if;
  return jsonb_build_object('noted', v_noted);
end
$$;

-- Writes each fault onto the attempt that waits for its job, where it says something new; returns
-- how many those are. A fault that names no attempt stands in the log alone.
create or replace function millrace.note_on_attempts(p_faults jsonb) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_noted int;
begin
  with told as (
    select
      coalesce(
        (select max(a.id) from millrace.attempts a where a.submission_id = n.id), n.id
      ) as attempt_id,
      f.service, f.job_id, f.code, left(f.message, 2000) as message
    from jsonb_to_recordset(p_faults)
      as f(submission text, service text, job_id text, code text, message text)
    cross join lateral (
      select case when f.submission ~ '^[0-9]{1,18}$' then f.submission::bigint end as id) n
  ), held as (
    select a.id, t.code, t.message
    from told t
    join millrace.attempts a on a.id = t.attempt_id
    where a.state = 'waiting'
      and (t.service = '' or a.service = t.service)
      and a.job_id = coalesce(t.job_id, a.job_id)
      and (t.code, t.message) is distinct from (a.error ->> 'code', a.error ->> 'detail')
    order by a.id
    for update of a skip locked
  ), noted as (
    update millrace.attempts a
    set error = case when h.code is not null then
      jsonb_build_object('code', h.code, 'detail', h.message, 'since', millrace.now(),
        'message', 'the job cannot be asked after or finished just now') end
    from held h
    where a.id = h.id
    returning a.id
  )
  select count(*) into v_noted from noted;
  return v_noted;
end
$$;

-- Tells what keeps jobs from being asked after or finished, by stage and reason, the oldest first;
-- null when nothing does.
create or replace function millrace.faulty_jobs() returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select string_agg(format('%s of stage %s of %s since %s: %s', g.jobs, g.stage, g.pipeline,
      to_char(g.since, 'YYYY-MM-DD HH24:MI:SS'), g.message), '; ' order by g.since)
    from (
      -- By code: each job's own message may name its id.
      select count(*) as jobs, s.name as stage, p.name as pipeline,
        min(a.error ->> 'detail') as message,
        min((a.error ->> 'since')::timestamptz) as since
      from millrace.attempts a
      join millrace.stages s on s.id = a.stage_id
      join millrace.pipelines p on p.id = s.pipeline_id
      where a.deadline_at is not null
        and a.state = 'waiting'
        and a.error is not null
      group by p.name, s.id, s.name, a.error ->> 'code'
      order by min((a.error ->> 'since')::timestamptz)
      limit 10) g);
end
$$;

-- The lock order
--
-- The same everywhere: worker, entities, runs, attempts, claims; rows of one table in id order.
--   * A transition takes entities and runs with `for no key update skip locked` and answers `busy`
--     for an attempt whose entity or run somebody holds: it never waits for a user. Only calls that
--     a person makes (cancel, retry, start) wait.
--   * It does so before it reads their state, so siblings that complete at once, or a completion
--     and a cancel, see one another. The run's lock guards its attempts too: the one writer without
--     it is a claim, which touches queued attempts alone, so only those need a lock of their own.
--   * Claims (leases) are written by their worker and by the sweep alone, since one lease covers a
--     whole batch: a user who holds one entity of it must not hold up the others.

-- Says whether transitions of a pipeline may lock its entities: for its projection, that of a child
-- run over the same row, or what an apply function writes.
create or replace function millrace.writes_entities(p_pipeline_id int) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select p.projection <> 'none' or exists (
      select from millrace.stages s
      where s.pipeline_id = p.id and (s.kind = 'pipeline' or s.apply is not null))
    from millrace.pipelines p
    where p.id = p_pipeline_id);
end
$$;

-- Locks the entities, runs and queued attempts of a batch in the one order. Returns the attempts
-- for which all were free.
create or replace function millrace.lock_attempts(p_attempt_ids bigint[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
  v_entities text[];
  v_wanted bigint[] := '{}';
  v_runs bigint[];
  v_locked bigint[] := '{}';
  v_queued boolean := false;
begin
  for v_group in
    select r.pipeline_id, array_agg(distinct r.entity_id collate "C") as entity_ids,
      array_agg(a.id) as attempt_ids, array_agg(distinct r.id) as run_ids,
      bool_or(a.state = 'queued') as any_queued
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (p_attempt_ids)
    group by r.pipeline_id
    order by r.pipeline_id
  loop
    if millrace.writes_entities(v_group.pipeline_id) then
      v_entities := millrace.lock_entities(v_group.pipeline_id, v_group.entity_ids, false);
      if cardinality(v_entities) < cardinality(v_group.entity_ids) then
        select coalesce(array_agg(a.id), '{}'), coalesce(array_agg(distinct r.id), '{}')
        into v_group.attempt_ids, v_group.run_ids
        from millrace.attempts a
        join millrace.runs r on r.id = a.run_id
        where a.id = any (v_group.attempt_ids) and r.entity_id = any (v_entities);
      end if;
    end if;
    v_locked := v_locked || v_group.attempt_ids;
    v_wanted := v_wanted || v_group.run_ids;
    v_queued := v_queued or v_group.any_queued;
  end loop;
  v_runs := array(
    select r.id from millrace.runs r
    where r.id = any (v_wanted)
    order by r.id
    for no key update skip locked);
  if cardinality(v_runs) < cardinality(v_wanted) then
    v_locked := array(
      select a.id from millrace.attempts a
      where a.id = any (v_locked) and a.run_id = any (v_runs));
  end if;
  if v_queued then
    perform from millrace.attempts a
    where a.id = any (v_locked) and a.state = 'queued'
    order by a.id
    for update;
  end if;
  return v_locked;
end
$$;

-- The log, and what an error means
--
-- The engine raises SQLSTATEs of its own, so that a caller can tell its errors apart.
--   MR001  a definition that is not valid          MR004  a call that the state does not allow
--   MR002  a call with a bad argument              MR005  a status by hand that is not allowed
--   MR003  something named that does not exist     MR006  a worker's call out of sequence

-- Writes a line into millrace.log, at most one a minute for each code. Never an upsert: a user's
-- transaction would wait for another's row.
create or replace function millrace.report(
  p_level text, p_code text, p_message text, p_detail jsonb default '{}'
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
      select
      from millrace.log
      where code = p_code
        and at > millrace.now() - interval '1 minute') then
    insert into millrace.log (level, code, message, detail)
    values (p_level, p_code, p_message, p_detail);
  end if;
end
$$;

-- Sorts SQLSTATEs, for every handler of the engine, by what they mean for the row that an error
-- came from. fatal: the whole call ends; transient: the row is tried again; lasting: the row fails.
--
-- What the server says of itself (it cancels the call, shuts down, has no room left) is fatal, for
-- a timeout strikes once and would not strike again. Code that raises the same by hand speaks for
-- its row alone: p_context, the PG_EXCEPTION_CONTEXT, tells who raised it.
create or replace function millrace.error_kind(p_sqlstate text, p_context text default null)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when left(p_sqlstate, 2) in ('53', '57') and coalesce(p_context, '') !~ '^[^\n]* RAISE(\n|$)'
      then 'fatal'
    when left(p_sqlstate, 2) in ('40', '53', '57') or p_sqlstate in ('55P03', '55006')
      then 'transient'
    else 'lasting'
  end
$$;

-- Reports an error that its caller has caught and outlives. Returns false for a fatal one, which
-- the caller then raises again.
create or replace function millrace.report_caught(
  p_sqlstate text, p_context text, p_code text, p_message text, p_detail jsonb default '{}'
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if millrace.error_kind(p_sqlstate, p_context) = 'fatal' then
    return false;
  end if;
  perform millrace.report('error', p_code, p_message, p_detail);
  return true;
end
$$;

-- Metadata: what a row's metadata column held when its run started

-- Copies what the metadata column of each entity holds, for runs that start now. ids: the copies,
-- in the order of the entities; faults: where one is too large, why. Both are null without a
-- column.
--
-- Each start copies it once more, and whoever lists runs reads it: the limit keeps one tenant's
-- rows from filling the engine's tables.
create or replace function millrace.copy_metadata(
  p_pipeline_id int, p_entity_ids text[], out ids bigint[], out faults text[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit constant int := 65536;
  v_values jsonb[] := millrace.metadata_of_entities(p_pipeline_id, p_entity_ids);
begin
  if v_values is null then
    return;
  end if;
  with given as materialized (
    select g.place, g.value, z.size,
      case when z.size <= v_limit then nextval('millrace.run_metadata_id_seq') end as id
    from unnest(v_values) with ordinality g(value, place)
    cross join lateral (select octet_length(g.value::text) as size offset 0) z
  ), copied as (
    insert into millrace.run_metadata (id, value)
    select g.id, g.value
    from given g
    where g.id is not null
  )
  select array_agg(g.id order by g.place),
    array_agg(case when g.size > v_limit then format(
      'row %s of table %s has %s bytes in its column %s, but metadata may have at most %s',
      p_entity_ids[g.place], p.entity_table, g.size, p.metadata_column, v_limit) end
      order by g.place)
  into ids, faults
  from given g
  cross join millrace.pipelines p
  where p.id = p_pipeline_id;
end
$$;

-- Raises the first fault of copy_metadata(), as MR002.
create or replace function millrace.refuse_metadata(p_faults text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault text := (select f from unnest(p_faults) f where f is not null limit 1);
begin
  if v_fault is not null then
    raise exception '%', v_fault
      using errcode = 'MR002',
        hint = 'Keep what is large in another column or in Storage, and its name in the metadata.';
  end if;
end
$$;

-- Reads a run's metadata for whoever looks at the run.
create or replace function millrace.metadata_of(p_run bigint) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select m.value
  from millrace.runs r
  join millrace.run_metadata m on m.id = r.metadata_id
  where r.id = p_run
$$;

-- Deletes metadata that runs have dropped and no run has. Whoever gives metadata to one more run
-- holds a run that has it. So no run that is not to be seen here can have it, unless one that is to
-- be seen has it too.
create or replace function millrace.sweep_metadata(p_limit int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with dropped as (
    delete from millrace.dropped_metadata d
    where d.id in (
      select o.id
      from millrace.dropped_metadata o
      order by o.id
      limit p_limit
      for update skip locked)
    returning d.metadata_id
  )
  delete from millrace.run_metadata m
  where m.id in (select d.metadata_id from dropped d)
    and not exists (select from millrace.runs r where r.metadata_id = m.id);
end
$$;

-- Finds metadata that a run lacks or that nobody will delete, for check_invariants().
create or replace function millrace.metadata_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'a run''s metadata is kept', r.id, null::bigint, 'metadata ' || r.metadata_id
  from millrace.runs r
  where r.metadata_id is not null
    and not exists (
      select
      from millrace.run_metadata m
      where m.id = r.metadata_id)
  union all
  select 'metadata has a run, or is to be deleted', null, null, 'metadata ' || m.id
  from millrace.run_metadata m
  where not exists (select from millrace.runs r where r.metadata_id = m.id)
    and not exists (
      select
      from millrace.dropped_metadata d
      where d.metadata_id = m.id)
$$;

-- New runs, and the stages that begin with them

-- Copies the results of these stages from the previous run of each entity into its new run, as
-- finished attempts, but for what that run only left out. A run that went the other way since has
-- made them out of date.
create or replace function millrace.copy_earlier_results(p_run_ids bigint[], p_keep int[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ways int[];
begin
  if cardinality(p_keep) = 0 or cardinality(p_run_ids) = 0 then
    return;
  end if;
  v_ways := millrace.ways_of((
    select r.pipeline_id from millrace.runs r where r.id = p_run_ids[1]));
  insert into millrace.attempts (run_id, stage_id, number, parent_id, state, error, retry_count,
    created_at, started_at, finished_at, output)
  select r.id, d.stage_id, 1, d.id, d.state, d.error, d.retry_count,
    d.created_at, d.started_at, d.finished_at, d.output
  from millrace.runs r
  cross join lateral (
    select o.id
    from millrace.runs o
    where o.entity_id = r.entity_id
      and o.pipeline_id = any (v_ways)
      and o.id < r.id
    order by o.id desc
    limit 1) o
  join millrace.done_attempts d
    on d.run_id = o.id and d.stage_id = any (p_keep) and not millrace.was_left_out(d.error)
  where r.id = any (p_run_ids);
end
$$;

-- Tells whether a stage is the one with which every run of its version begins.
create or replace function millrace.is_only_root(p_stage millrace.version_stages) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return p_stage.needs = '{}' and p_stage.after = '[]' and (
    select count(*) = 1
    from millrace.version_stages vs
    where vs.version_id = p_stage.version_id
      and vs.needs = '{}'
      and vs.after = '[]');
end
$$;

-- Makes new runs of the current version for entities that the caller holds and that have no live
-- run, with the results of earlier stages copied. p_done_before: a row without any run has been
-- through the stages before that one all the same. Returns the runs.
create or replace function millrace.new_runs(
  p_pipeline_id int, p_entity_ids text[], p_stage_id int, p_done_before int default null
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_pipeline millrace.pipelines;
  v_copied record := millrace.copy_metadata(p_pipeline_id, p_entity_ids);
  v_runs bigint[];
  v_stage millrace.version_stages;
begin
  perform millrace.refuse_metadata(v_copied.faults);
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  with added as (
    insert into millrace.runs (pipeline_id, version_id, entity_id, metadata_id, created_at)
    select p_pipeline_id, v_pipeline.current_version_id, e.id, e.metadata_id, v_now
    from unnest(p_entity_ids, v_copied.ids) e(id, metadata_id)
    returning id
  )
  select coalesce(array_agg(a.id), '{}') into v_runs from added a;
  select vs.* into v_stage
  from millrace.version_stages vs
  where vs.version_id = v_pipeline.current_version_id
    and vs.stage_id = p_stage_id;
  if not found then
    raise exception 'stage % is not part of the pipeline''s current version',
      (select s.name from millrace.stages s where s.id = p_stage_id)
      using errcode = 'MR004',
        hint = 'It was dropped from the definition; queue another stage.';
  end if;
  if v_pipeline.is_child then
    perform millrace.inherit_place(v_runs);
  end if;
  if v_pipeline.has_given then
    perform millrace.note_given(p_pipeline_id, v_runs);
  end if;
  if p_done_before is not null then
    perform millrace.note_done_before(v_runs, p_done_before);
  end if;
  perform millrace.copy_earlier_results(v_runs, array(
    select vs.stage_id
    from millrace.version_stages vs
    where vs.version_id = v_stage.version_id
      and vs.stage_id <> p_stage_id
      and vs.stage_id <> all (v_stage.dependents)
      and not millrace.is_only_root(v_stage)));
  return v_runs;
end
$$;

-- Raises MR005 where one of these runs lacks the result of a need of a stage, and names the stage
-- to queue instead: the need may lack a need of its own.
create or replace function millrace.refuse_missing_needs(p_run_ids bigint[], p_stage_id int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lacking record;
begin
  select count(distinct r.id) as runs, min(r.id) as run_id, min(r.entity_id) as entity_id,
    min(s.name) as need into v_lacking
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  cross join lateral unnest(vs.needs) n
  join millrace.stages s on s.id = n
  where r.id = any (p_run_ids)
    and not exists (
      select
      from millrace.done_attempts d
      where d.run_id = r.id
        and d.stage_id = n);
  if v_lacking.runs = 0 then
    return;
  end if;
  raise exception 'stage % cannot start for % entities (%, …): its need % has no result',
    (select s.name from millrace.stages s where s.id = p_stage_id),
    v_lacking.runs, v_lacking.entity_id, v_lacking.need
    using errcode = 'MR005',
      hint = format('Queue %s instead; the stages after it follow by themselves.', (
        select s.name
        from millrace.runs r
        join millrace.version_stages vs
          on vs.version_id = r.version_id and p_stage_id = any (vs.dependents)
        join millrace.stages s on s.id = vs.stage_id
        where r.id = v_lacking.run_id
          and not exists (
            select
            from millrace.done_attempts d
            where d.run_id = r.id
              and d.stage_id = vs.stage_id)
        order by vs.position
        limit 1));
end
$$;

-- Begins a stage of locked runs, whatever its thresholds say; MR005 when a need has no result.
-- Returns the stages with work.
create or replace function millrace.enqueue_stage(
  p_run_ids bigint[], p_stage_id int, p_by_name boolean default false
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.refuse_missing_needs(p_run_ids, p_stage_id);
  if (
      select bool_and(vs.unconditional)
      from millrace.runs r
      join millrace.version_stages vs
        on vs.version_id = r.version_id and vs.stage_id = p_stage_id
      where r.id = any (p_run_ids)) then
    perform millrace.queue_attempts(p_stage_id, p_run_ids);
    return array[p_stage_id];
  end if;
  return millrace.begin_stage(p_stage_id, p_run_ids, p_by_name);
end
$$;

-- Begins what may begin beside the stage that new runs start at: branches that the previous run
-- left unfinished go on too, or the run could never end. Returns the stages with work.
create or replace function millrace.start_sibling_branches(
  p_pipeline_id int, p_stage_id int, p_run_ids bigint[]
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other record;
  v_open bigint[];
  v_wake int[] := '{}';
begin
  for v_other in
    select o.stage_id, o.dependents, o.on_demand,
      exists (
        select
        from millrace.version_stages t
        where t.version_id = o.version_id
          and t.after <> '[]') as thresholds
    from millrace.pipelines p
    join millrace.version_stages vs
      on vs.version_id = p.current_version_id
        and vs.stage_id = p_stage_id
        and not millrace.is_only_root(vs)
    join millrace.version_stages o
      on o.version_id = vs.version_id
        and o.stage_id <> p_stage_id
        and o.stage_id <> all (vs.dependents)
    where p.id = p_pipeline_id
    order by o.position
  loop
    v_open := millrace.open_runs(v_other.stage_id, p_run_ids);
    -- A stage that had begun by a threshold was copied, though the map that it awaited begins
    -- again.
    perform millrace.project_queued(p_pipeline_id,
      case when not v_other.on_demand then v_other.stage_id end,
      case when v_other.on_demand then array[v_other.stage_id] else '{}' end || g.pending,
      g.entity_ids)
    from (
      select array_agg(r.entity_id) as entity_ids,
        case when v_other.thresholds then array(
          select d
          from unnest(v_other.dependents) d
          where not exists (
            select
            from millrace.attempts a
            where a.run_id = r.id and a.stage_id = d and not a.superseded))
        else v_other.dependents end as pending
      from millrace.runs r
      where r.id = any (v_open)
      group by 2) g;
    v_wake := v_wake || millrace.enqueue_stage(
      millrace.runs_to_begin(v_other.stage_id, v_open), v_other.stage_id);
  end loop;
  return v_wake;
end
$$;

-- Recording a batch
--
-- A judged batch goes through the transitions (complete.sql, fail.sql, transitions.sql), each group
-- of one stage and outcome at once, in the caller's one transaction. One bad item never sinks the
-- others: a batch that raises is halved until the guilty item stands alone. What the server says of
-- itself (log.sql, error_kind) ends the whole call.

-- Records a judged batch, each group of one stage and outcome by its transition. Returns the items,
-- with late ones marked, and the stages that have work now. p_uniform_limit is what
-- lock_uniform_batch() has returned for a batch that goes the fast way; then no items come back.
-- Failures come last: one may end a run and so cancel what other items of the batch are about,
-- which is then too late for them.
create or replace function millrace.apply_outcomes(
  p_items millrace.work[], p_uniform_limit int default null,
  out items millrace.work[], out ready int[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
  v_left record;
begin
  if p_uniform_limit is not null then
    ready := millrace.complete(p_items[1].stage_id, p_items, p_uniform_limit);
    return;
  end if;
  items := p_items;
  ready := '{}';
  for v_group in
    select i.stage_id, i.outcome, array_agg(i order by i.ord) as items,
      row_number() over (order by i.outcome = 'failed', i.stage_id, i.outcome) as place
    from unnest(p_items) i
    where i.verdict is null
    group by i.stage_id, i.outcome
    order by 4
  loop
    if v_group.place > 1 then
      v_left := millrace.without_late(items, v_group.items);
      items := v_left.all_items;
      v_group.items := v_left.in_time;
    end if;
    -- What apply writes counts: it may have started a stage over, or deleted the entity.
    if v_group.outcome = 'completed' and cardinality(v_group.items) > 0
      and millrace.apply_results(v_group.stage_id, v_group.items) then
      v_left := millrace.without_late(items, v_group.items);
      items := v_left.all_items;
      v_group.items := v_left.in_time;
    end if;
    continue when cardinality(v_group.items) = 0;
    case v_group.outcome
      when 'completed' then
        ready := ready || millrace.complete_or_end(v_group.stage_id, v_group.items);
      when 'failed' then ready := ready || millrace.fail(v_group.stage_id, v_group.items);
      when 'released' then ready := ready || millrace.release(v_group.stage_id, v_group.items);
      when 'waiting' then perform millrace.wait(v_group.stage_id, v_group.items);
    end case;
  end loop;
end
$$;

-- Finds the attempts of unrecorded items whose state is no longer what was judged.
create or replace function millrace.late_attempts(p_items millrace.work[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select i.attempt_id
    from unnest(p_items) i
    left join millrace.attempts a on a.id = i.attempt_id
    where i.verdict is null and a.state is distinct from i.was);
end
$$;

-- Marks items as stale that an earlier group of the same batch cancelled.
create or replace function millrace.mark_late(p_items millrace.work[], p_late bigint[])
returns millrace.work[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  for v_i in 1 .. cardinality(p_items) loop
    if p_items[v_i].attempt_id = any (p_late) then
      p_items[v_i].verdict := 'stale';
      p_items[v_i].reason := 'the attempt was cancelled by what else the same call did';
    end if;
  end loop;
  return p_items;
end
$$;

-- Marks those of a group as stale that are too late now, and returns the rest of the group.
create or replace function millrace.without_late(
  p_all millrace.work[], p_group millrace.work[],
  out all_items millrace.work[], out in_time millrace.work[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_late bigint[] := millrace.late_attempts(p_group);
begin
  all_items := p_all;
  in_time := p_group;
  if cardinality(v_late) > 0 then
    all_items := millrace.mark_late(p_all, v_late);
    in_time := array(
      select i from unnest(p_group) i where i.attempt_id <> all (v_late));
  end if;
end
$$;

-- Marks items as busy that the database could not record now, and reports the first. Nothing of
-- such an item was recorded: a worker sends it again shortly, a callback is asked for once more,
-- and the sweep comes by again.
create or replace function millrace.put_off(p_items millrace.work[], p_why text)
returns millrace.work[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_first millrace.work;
  v_stage record;
begin
  for v_i in 1 .. cardinality(p_items) loop
    continue when p_items[v_i].verdict is not null;
    if v_first.attempt_id is null then
      v_first := p_items[v_i];
    end if;
    p_items[v_i].verdict := 'busy';
    p_items[v_i].reason := p_why;
  end loop;
  if v_first.attempt_id is not null then
    select s.name, p.name as pipeline into v_stage
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where s.id = v_first.stage_id;
    perform millrace.report_passed_over(
      v_stage.pipeline, v_stage.name, v_first.entity_id, p_why);
  end if;
  return p_items;
end
$$;

-- Reports a row that was left for later since the database said to try again: once an hour for each
-- stage, since the next sweep may well find the same.
create or replace function millrace.report_passed_over(
  p_pipeline text, p_stage text, p_entity_id text, p_why text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
      select from millrace.log l
      where l.code = 'row_passed_over'
        and l.at > millrace.now() - interval '1 hour'
        and l.detail ->> 'pipeline' = p_pipeline
        and l.detail ->> 'stage' is not distinct from p_stage) then
    insert into millrace.log (level, code, message, detail)
    values ('warning', 'row_passed_over',
      format('Row %s of pipeline %s is passed over, and perhaps others: %s',
        p_entity_id, p_pipeline, p_why),
      jsonb_build_object('pipeline', p_pipeline, 'stage', p_stage, 'entity_id', p_entity_id));
  end if;
end
$$;

-- Records a single item, at the second try without showing it: the engine's word counts, even where
-- a user's own trigger refuses every write to the entity. Reports that refusal.
create or replace function millrace.apply_outcomes_unprojected(
  p_items millrace.work[], out items millrace.work[], out ready int[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_context text;
  v_why text;
begin
  for v_try in 1 .. 2 loop
    begin
      perform set_config('millrace.projection_off', case v_try when 2 then 'on' else '' end, true);
      select s.items, s.ready into items, ready from millrace.apply_outcomes(p_items) s;
      perform set_config('millrace.projection_off', '', true);
      return;
    exception when query_canceled or assert_failure or others then
      get stacked diagnostics v_context = pg_exception_context;
      if millrace.error_kind(sqlstate, v_context) = 'fatal' then
        raise;
      end if;
      v_why := sqlerrm;
      exit when millrace.error_kind(sqlstate, v_context) = 'transient';
      if v_try = 1 then
        perform millrace.report('error', 'projection_failed',
          'An entity refuses the projection: ' || sqlerrm,
          jsonb_build_object('entity_id', p_items[1].entity_id));
      end if;
    end;
  end loop;
  items := millrace.put_off(p_items, v_why);
  ready := '{}';
end
$$;

-- Records a part of a batch that raised as two parts, with little patience for locks. In no order
-- where the database says to try again: the time that is spent on those that it refuses is bounded,
-- and what is left when it is over differs from call to call. One part is always tried, so each
-- call may get on.
create or replace function millrace.apply_outcomes_in_halves(
  p_items millrace.work[], p_until timestamptz, p_transient boolean,
  out items millrace.work[], out ready int[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  v_half int := cardinality(p_items) / 2;
  v_left record;
  v_right record;
  v_rest millrace.work[];
begin
  if p_transient then
    p_items := array(select i from unnest(p_items) i order by random());
  end if;
  v_left := millrace.apply_outcomes_guarded(p_items[:v_half], p_until => p_until);
  v_rest := p_items[v_half + 1:];
  v_rest := millrace.mark_late(v_rest, millrace.late_attempts(v_rest));
  if p_transient and millrace.now() >= p_until then
    items := v_left.items
      || millrace.put_off(v_rest, 'others of the same call took too long');
    ready := v_left.ready;
    return;
  end if;
  v_right := millrace.apply_outcomes_guarded(v_rest, p_until => p_until);
  items := v_left.items || v_right.items;
  ready := v_left.ready || v_right.ready;
end
$$;

-- Does what apply_outcomes() does, but an item that makes Postgres raise fails alone with the SQL
-- error, or is busy where that says to try again; the items then come back. Of a uniform batch that
-- raises anything, MR000 of complete() included, neither items nor stages come back and nothing is
-- recorded, since its items have yet to be fenced one by one. p_until bounds the time for what the
-- database refuses for now.
create or replace function millrace.apply_outcomes_guarded(
  p_items millrace.work[], p_uniform_limit int default null,
  p_until timestamptz default millrace.now() + interval '2 seconds',
  out items millrace.work[], out ready int[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_done record;
  v_context text;
  v_transient boolean;
  v_why text;
  v_error jsonb;
begin
  begin
    v_done := millrace.apply_outcomes(p_items, p_uniform_limit);
    items := v_done.items;
    ready := v_done.ready;
    return;
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    -- Nobody has checked the items of a uniform batch one by one: the caller goes back and does so.
    if p_uniform_limit is not null then
      return;
    end if;
    v_transient := millrace.error_kind(sqlstate, v_context) = 'transient';
    v_why := sqlerrm;
    v_error := jsonb_build_object('code', 'sql_' || sqlstate,
      'message', 'the database refused to record this (sql_' || sqlstate || ')',
      'detail', sqlerrm,
      'permanent', left(sqlstate, 2) in ('22', '23'));
  end;
  if v_transient and cardinality(p_items) = 1 then
    items := millrace.put_off(p_items, v_why);
    ready := '{}';
  elsif cardinality(p_items) = 1 then
    p_items[1].outcome := 'failed';
    p_items[1].error := v_error;
    p_items[1].reason := v_why;
    v_done := millrace.apply_outcomes_unprojected(p_items);
    items := v_done.items;
    ready := v_done.ready;
  else
    v_done := millrace.apply_outcomes_in_halves(p_items, p_until, v_transient);
    items := v_done.items;
    ready := v_done.ready;
  end if;
end
$$;

-- Reports, and how they are read
--
-- What a worker or an external service says about attempts arrives as a JSON list. Each item is
-- parsed here, judged under the locks (check-fencing.sql) and answered on its own: accepted,
-- duplicate, stale, busy or rejected. The argument is `json`, not `jsonb`: a value that jsonb
-- cannot hold then fails its own attempt and not the whole call.

-- Makes an item that jsonb cannot hold one that it can: a failure that says so. Without the escapes
-- that jsonb refuses, the fields that say whom it concerns can be read. An item that reports a
-- failure keeps its own error.
create or replace function millrace.storable_item(p_item json) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_item json;
  v_why text;
  v_kept jsonb;
begin
  return p_item::jsonb;
exception when others then
  v_why := sqlerrm;
  v_item := regexp_replace(p_item::text,
    '(?<!\\)((?:\\\\)*)\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\1?', 'g')::json;
  v_kept := jsonb_build_object(
    'attempt', v_item ->> 'attempt', 'submission', v_item ->> 'submission',
    'token', v_item ->> 'token', 'service', v_item ->> 'service', 'job_id', v_item ->> 'job_id',
    'stage', v_item ->> 'stage', 'trace_id', v_item ->> 'trace_id');
  if v_item ->> 'outcome' = 'completed' then
    return v_kept || jsonb_build_object('outcome', 'failed', 'refused', v_why,
      'error', jsonb_build_object('code', 'unstorable_result', 'permanent', true, 'message', format(
        'the result holds something that Postgres cannot store (%s); '
        'remove it before returning the result', v_why)));
  end if;
  return v_kept || jsonb_build_object('outcome', v_item ->> 'outcome',
    'error', jsonb_strip_nulls(jsonb_build_object('detail', v_item #>> '{error,detail}'))
      || jsonb_build_object(
        'code', v_item #>> '{error,code}', 'message', v_item #>> '{error,message}',
        'permanent', coalesce(v_item #>> '{error,permanent}' = 'true', false)));
end
$$;

-- Reads the list of reports as jsonb, item by item where the whole cannot be.
create or replace function millrace.items_of(p_items json) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items jsonb;
  v_count int;
begin
  if p_items is null or json_typeof(p_items) <> 'array' then
    raise exception 'p_items is %, but must be a list', coalesce(json_typeof(p_items), 'null')
      using errcode = 'MR002',
        hint = 'Send a JSON list, an empty one when there is nothing to report.';
  end if;
  begin
    v_items := p_items;
    -- Counted like this, since counting the items of a json value parses all of it once more.
    v_count := jsonb_array_length(v_items);
  exception when others then
    v_count := json_array_length(p_items);
  end;
  if v_count > 1000 then
    raise exception 'p_items has % items, but one call takes at most 1000', v_count
      using errcode = 'MR002',
        hint = 'Send them in several calls; nothing of this one was recorded.';
  end if;
  if v_items is null then
    v_items := (
      select jsonb_agg(millrace.storable_item(i.value) order by i.ordinality)
      from json_array_elements(p_items) with ordinality i);
  end if;
  if jsonb_path_exists(v_items, '$[*] ? (@.type() != "object")') then
    v_items := (
      select jsonb_agg(
        case jsonb_typeof(i.value) when 'object' then i.value
          else jsonb_build_object('malformed', jsonb_typeof(i.value)) end
        order by i.ordinality)
      from jsonb_array_elements(v_items) with ordinality i);
  end if;
  return v_items;
end
$$;

-- Says what is malformed about a report; null when nothing is. p_id is the attempt's number, null
-- where the item names none. p_key is as in parse_items().
create or replace function millrace.item_fault(p_item jsonb, p_key text, p_id bigint) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_outcome text := p_item ->> 'outcome';
begin
  return case
    -- What names an attempt is an object, whatever other keys it has.
    when p_id is null and p_item ->> 'malformed' is not null
      then format('an item must be an object, this is %s', p_item ->> 'malformed')
    when p_id is null
      then format('%s must be the number of an attempt, this is %s',
        p_key, coalesce(p_item ->> p_key, 'null'))
    when p_key = 'attempt' and p_item ->> 'token' is null
      then 'token must be the one that the claim handed over, this is null'
    when v_outcome is null
      or v_outcome not in ('completed', 'failed', 'waiting', 'released')
      or p_key = 'submission' and v_outcome in ('waiting', 'released')
      then format('outcome must be completed, failed, waiting or released '
        '(of a job: completed or failed), this is %s', coalesce(v_outcome, 'null'))
    when v_outcome = 'completed' and not p_item ? 'result'
      then 'a completed item must have a result'
    when (v_outcome = 'waiting' or p_key = 'submission')
      and (p_item ->> 'service' is null or p_item ->> 'job_id' is null)
      then 'service and job_id must name the external job'
    when v_outcome = 'released' and p_item ->> 'limit' not in ('cpu', 'memory')
      then format('limit must be cpu, memory or left out, this is %s', p_item ->> 'limit')
    when v_outcome = 'failed'
      and jsonb_typeof(p_item #> '{error,retry_after_ms}') not in ('number', 'null')
      then 'error.retry_after_ms must be a number of milliseconds'
    when v_outcome = 'failed'
      and jsonb_typeof(p_item #> '{error,permanent}') not in ('boolean', 'null')
      then 'error.permanent must be true or false'
  end;
end
$$;

-- Makes work items of reports. One that is malformed carries the verdict rejected and the reason.
-- p_key is 'attempt' for what a worker says (which must show a token) and 'submission' for the end
-- of an external job. What a worker's items concern is filled in as it was before any lock.
-- The items are built by position, as everywhere in the statements that each transition runs: a
-- call of a constructor for each of them would cost a twentieth of the whole transition.
create or replace function millrace.parse_items(p_items json, p_key text) returns millrace.work[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items jsonb := millrace.items_of(p_items);
begin
  return array(
    select row(
      f.ordinality, k.id, a.token, f.token, f.outcome,
      case when f.outcome = 'completed' then coalesce(f.result, 'null') end,
      case when jsonb_typeof(f.usage) = 'object' then f.usage end,
      case f.outcome
        when 'failed' then '{"code": "unknown", "message": "no error was given"}'
          || case when jsonb_typeof(f.error) = 'object' then f.error else '{}' end
        -- Only one that ran alone says which limit its function reached.
        when 'released' then case when f."limit" is not null then
          jsonb_build_object('code', 'resource_limit', 'message', format(
            'the function reached the platform''s limit of %s while it worked on this row '
            'isolated; give the row less to do, or the stage less to do in one call',
            case f."limit" when 'cpu' then 'CPU time' else f."limit" end)) end
      end,
      f.service, f.job_id, a.run_id, a.stage_id, r.entity_id, a.state,
      case when v.reason is not null then 'rejected' end, coalesce(v.reason, f.refused),
      f.stage, f.trace_id)::millrace.work
    from rows from (jsonb_to_recordset(v_items) as (
        attempt text, submission text, token text, outcome text, result jsonb, usage jsonb,
        error jsonb, "limit" text, service text, job_id text, stage text, trace_id text,
        refused text))
      with ordinality f(attempt, submission, token, outcome, result, usage,
        error, "limit", service, job_id, stage, trace_id, refused, ordinality)
    cross join lateral (
      select case p_key when 'attempt' then f.attempt else f.submission end as id) n
    cross join lateral (
      select case when ltrim(n.id, '0123456789') = '' and length(n.id) between 1 and 18
        then n.id::bigint end as id) k
    left join millrace.attempts a on a.id = k.id and p_key = 'attempt'
    left join millrace.runs r on r.id = a.run_id
    cross join lateral (
      select case
        when k.id is null or f.token is null or f.outcome is distinct from 'completed'
          or f.result is null or p_key = 'submission'
        then millrace.item_fault(v_items -> (f.ordinality - 1)::int, p_key, k.id) end as reason
    ) v
    order by f.ordinality);
end
$$;

-- Pruning
--
-- pg_cron calls prune() every night, and every five seconds while there is more to delete than one
-- call can do.

-- Locks and returns the next so many runs, by id, that ended before this time and that nobody
-- needs: a parent that still waits counts its children, and one that is over may have late ones.
create or replace function millrace.lock_prunable(
  p_before timestamptz, p_after bigint, p_limit int
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    where r.id > coalesce(p_after, 0)
      and r.status <> 'running'
      and r.finished_at < p_before
      and not exists (
        select
        from millrace.fan_outs f
        where f.id = r.fan_out_id
          and f.state = 'open')
      and not exists (
        select
        from millrace.fan_outs f
        join millrace.runs c on c.fan_out_id = f.id and c.status = 'running'
        where f.run_id = r.id)
    order by r.id
    limit p_limit
    for update of r skip locked);
end
$$;

-- Deletes locked runs, but for those that cannot be; returns how many. It halves a batch until the
-- guilty run stands alone: what a user's trigger on public.millrace_decisions refuses is left to
-- the next night, and the others go.
create or replace function millrace.prune_runs(p_run_ids bigint[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  v_half int := cardinality(p_run_ids) / 2;
  v_context text;
begin
  begin
    perform millrace.remember_begun(p_run_ids);
    perform millrace.delete_runs(p_run_ids);
    return cardinality(p_run_ids);
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    if v_half = 0 then
      perform millrace.report('error', 'run_not_pruned',
        format('Run %s cannot be pruned: %s', p_run_ids[1], sqlerrm));
      return 0;
    end if;
  end;
  return millrace.prune_runs(p_run_ids[:v_half]) + millrace.prune_runs(p_run_ids[v_half + 1:]);
end
$$;

-- Deletes what is older than retention_days.
create or replace function millrace.prune() returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_before timestamptz :=
    millrace.now() - make_interval(days => millrace.setting('retention_days')::int);
  v_ends timestamptz := millrace.now() + interval '2 seconds';
  v_batch bigint[];
  v_runs int := 0;
  v_more boolean;
  v_scheduled boolean;
begin
  loop
    v_batch := millrace.lock_prunable(v_before, v_batch[cardinality(v_batch)], 1000);
    v_more := cardinality(v_batch) = 1000;
    exit when cardinality(v_batch) = 0;
    v_runs := v_runs + millrace.prune_runs(v_batch);
    exit when not v_more or millrace.now() >= v_ends;
  end loop;
  perform millrace.prune_decisions();
  v_more := millrace.prune_alerts(v_before) = 10000 or v_more;
  delete from millrace.log l where l.at < v_before;
  -- By command: a job that was unscheduled has left its history behind.
  delete from cron.job_run_details d
  where d.command ~ '^select millrace\.(sweep|wake_job_poll|prune)\(\)$'
    and d.end_time < millrace.now() - interval '1 day';
  v_scheduled := exists (
    select from cron.job j where j.jobname = 'millrace-prune-more');
  if v_more and not v_scheduled then
    perform cron.schedule('millrace-prune-more', '5 seconds', 'select millrace.prune()');
  elsif v_scheduled and not v_more then
    perform cron.unschedule('millrace-prune-more');
  end if;
  return jsonb_build_object('runs', v_runs, 'more', v_more);
end
$$;

-- Queueing a stage: what writing `queued` means, and start()

-- Shows a stage as queued and its dependents as pending, with their columns cleared.
create or replace function millrace.project_queued(
  p_pipeline_id int, p_stage_id int, p_dependents int[], p_entity_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_entity_ids) > 0 then
    perform millrace.write_entities(
      p_pipeline_id, 'queued',
      (select s.name from millrace.stages s where s.id = p_stage_id),
      null,
      p_entity_ids,
      array(select s.name from millrace.stages s where s.id = any (p_dependents)));
  end if;
end
$$;

-- Ends what locked runs have of these stages and keeps it as history. It shows none of it on the
-- entities: what they show next is the fresh start.
create or replace function millrace.supersede(p_run_ids bigint[], p_stage_ids int[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.cancel_attempts(p_run_ids, p_stage_ids);
  update millrace.attempts a
  set superseded = true
  where a.run_id = any (p_run_ids)
    and a.stage_id = any (p_stage_ids)
    and not a.superseded;
  update millrace.fan_outs f
  set state = 'abandoned'
  where f.run_id = any (p_run_ids)
    and f.stage_id = any (p_stage_ids)
    and f.state = 'finished';
end
$$;

-- Starts a stage and its dependents over in live runs that the caller has locked; what they had is
-- kept as history. Returns the stages with work.
create or replace function millrace.start_over(
  p_run_ids bigint[], p_stage_id int, p_by_name boolean
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_version record;
  v_closure int[];
  v_other record;
  v_wake int[] := '{}';
begin
  select count(*) as runs, min(r.entity_id) as entity_id into v_other
  from millrace.runs r
  where r.id = any (p_run_ids)
    and not exists (
      select
      from millrace.version_stages vs
      where vs.version_id = r.version_id
        and vs.stage_id = p_stage_id);
  if v_other.runs > 0 then
    raise exception
      'stage % is not part of the version that % live runs began with (entity %, …)',
      (select s.name from millrace.stages s where s.id = p_stage_id),
      v_other.runs, v_other.entity_id
      using errcode = 'MR005',
        hint = 'Let the runs finish, or cancel them first: select millrace.cancel(run).';
  end if;
  for v_version in
    select r.pipeline_id, vs.dependents, array_agg(r.id order by r.id) as runs,
      array_agg(r.entity_id) as entity_ids
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    where r.id = any (p_run_ids)
    group by r.pipeline_id, vs.version_id, vs.dependents
    order by vs.version_id
  loop
    v_closure := v_version.dependents || p_stage_id;
    perform millrace.supersede(v_version.runs, v_closure);
    perform millrace.forget_given(v_version.runs, v_closure);
    perform millrace.project_queued(
      v_version.pipeline_id, p_stage_id, v_version.dependents, v_version.entity_ids);
    v_wake := v_wake || millrace.enqueue_stage(
      millrace.runs_to_begin(p_stage_id, v_version.runs), p_stage_id, p_by_name);
  end loop;
  insert into millrace.child_tallies (fan_out_id, recount)
  select r.fan_out_id, true
  from millrace.runs r
  where r.id = any (p_run_ids)
    and r.fan_out_id is not null;
  return v_wake;
end
$$;

-- Clears the columns of entities whose new runs are to start at a stage. Returns the runs that are
-- to begin still: a user's trigger may have ended some.
create or replace function millrace.show_new_runs(
  p_pipeline_id int, p_stage_id int, p_run_ids bigint[], p_entity_ids text[]
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_entity_ids) = 0 then
    return p_run_ids;
  end if;
  perform millrace.project_queued(p_pipeline_id, p_stage_id, vs.dependents, p_entity_ids)
  from millrace.pipelines p
  join millrace.version_stages vs
    on vs.version_id = p.current_version_id and vs.stage_id = p_stage_id
  where p.id = p_pipeline_id;
  return millrace.runs_to_begin(p_stage_id, p_run_ids);
end
$$;

-- Queues a stage for entities that the caller holds: new runs where none is live, else starting
-- over. Dirty are the entities with columns that a new run must clear. p_by_name: somebody named
-- the stage, which overrules what it says of when it begins. Returns the stages with work.
create or replace function millrace.queue_here(
  p_pipeline_id int, p_stage_id int, p_entity_ids text[], p_dirty_ids text[],
  p_by_name boolean default true, p_done_before int default null
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_began_at timestamptz := millrace.now();
  v_counted boolean := (
    select s.counted from millrace.stages s where s.id = p_stage_id);
  v_live record;
  v_new bigint[];
  v_wake int[] := '{}';
begin
  -- Locked before it is decided who has none: without a projection, a worker that ends a run does
  -- not hold its row.
  select coalesce(array_agg(l.id), '{}') as runs, array_agg(l.entity_id) as entity_ids into v_live
  from (
    select r.id, r.entity_id
    from millrace.runs r
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_entity_ids)
      and r.status = 'running'
    order by r.id
    for no key update) l;
  if v_counted then
    perform millrace.name_payers(p_pipeline_id, v_live.runs);
  end if;
  if cardinality(v_live.runs) > 0 then
    p_entity_ids := array(
      select e
      from unnest(p_entity_ids) e
      where e not in (select l from unnest(v_live.entity_ids) l));
  end if;
  v_new := millrace.new_runs(p_pipeline_id, p_entity_ids, p_stage_id, p_done_before);
  if cardinality(v_live.runs) > 0 then
    v_wake := millrace.start_over(v_live.runs, p_stage_id, p_by_name);
    p_dirty_ids := array(
      select d
      from unnest(p_dirty_ids) d
      where d not in (select l from unnest(v_live.entity_ids) l));
  end if;
  if v_counted then
    perform millrace.name_payers(p_pipeline_id, v_new);
  end if;
  v_new := millrace.show_new_runs(p_pipeline_id, p_stage_id, v_new, p_dirty_ids);
  v_new := millrace.skip_given_needs(v_new, p_stage_id);
  if cardinality(v_new) > 0 then
    v_wake := v_wake
      || millrace.enqueue_stage(v_new, p_stage_id, p_by_name)
      || millrace.start_sibling_branches(p_pipeline_id, p_stage_id, v_new);
  end if;
  if v_counted then
    perform millrace.note_starts(v_live.runs || v_new, v_began_at);
  end if;
  return v_wake;
end
$$;

-- Queues a stage for held entities and wakes it. Where a pipeline replaces another, each entity
-- goes one of the two ways (see cut-over.sql).
create or replace function millrace.queue_stage(
  p_pipeline_id int, p_stage_id int, p_entity_ids text[], p_dirty_ids text[],
  p_by_name boolean default true, p_done_before int default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ways int[] := millrace.ways_of(p_pipeline_id);
  v_wake int[];
begin
  if cardinality(v_ways) = 1 then
    v_wake := millrace.queue_here(
      p_pipeline_id, p_stage_id, p_entity_ids, p_dirty_ids, p_by_name, p_done_before);
  else
    v_wake := millrace.queue_one_way(
      p_pipeline_id, v_ways[2], p_stage_id, p_entity_ids, p_dirty_ids, p_by_name);
  end if;
  perform millrace.wake(v_wake);
end
$$;

-- The release, and who speaks which contract.
--
-- A level is one state of the engine: its tables and its functions. A contract is what the engine
-- and the runtime say to each other: the functions of the Data API, their arguments and answers,
-- and what a wake-up holds. Its number rises only where an older side would misunderstand a newer
-- one. An engine speaks its own contract and the one before, so that the database is upgraded first
-- and the functions are deployed after it, with nothing to wait for in between.

-- Tells which contracts the engine speaks, the newest first: its own, and the one before where
-- there is one.
create or replace function millrace.contracts() returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array['1'];
end
$$;

-- Tells which release of Millrace this database has. The build writes level and release.
create or replace function millrace.engine(out level int, out release text, out contracts int[])
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  level := 2;
  release := '0.2.0';
  contracts := millrace.contracts();
end
$$;

-- Answers a call of a runtime that speaks another contract: HTTP 426 and why; null where the call
-- may go on. Every function that the runtime calls asks it first, so it costs microseconds. It does
-- not raise, or what it writes into the log, for doctor() to see at once, would go with the call. A
-- call without the header comes from no runtime.
create or replace function millrace.refuse_contract() returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  -- A fifth of what parsing the headers costs. In a value, PostgREST would escape these quotes.
  v_contract text := split_part(
    split_part(current_setting('request.headers', true), '"x-millrace-contract":"', 2), '"', 1);
  v_message text;
  v_remedy text;
begin
  if coalesce(v_contract, '') = '' or v_contract = any (millrace.contracts()) then
    return null;
  end if;
  select
    format('these functions speak contract %s, and the engine %s (level %s, release %s)',
      left(v_contract, 20), array_to_string(e.contracts, ' and '), e.level, e.release),
    case
      when v_contract ~ '^[0-9]{1,9}$' and v_contract::int > e.contracts[1]
        then 'Upgrade the database to the release of these functions: apply its migrations '
          '(supabase db push).'
      else format('Deploy the functions of release %s (supabase functions deploy).', e.release)
    end
  into v_message, v_remedy
  from millrace.engine() e;
  -- PostgREST opens no transaction that writes for a function that only reads.
  if current_setting('transaction_read_only') = 'off' then
    perform millrace.report('error', 'contract_refused', v_message || ': ' || v_remedy,
      jsonb_build_object('contract', left(v_contract, 20)));
  end if;
  perform set_config('response.status', '426', true);
  return jsonb_build_object(
    'code', 'PT426', 'message', v_message, 'hint', v_remedy, 'details', null);
end
$$;

-- Raises MR002 or MR003 unless the condition of a replay is well formed.
create or replace function millrace.check_condition(p_pipeline text, p_condition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
  v_value jsonb;
begin
  if not exists (select from millrace.pipelines p where p.name = p_pipeline) then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = 'Look it up: select name from millrace.pipelines.';
  end if;
  if jsonb_typeof(p_condition) is distinct from 'object' then
    raise exception 'the condition is %, but must be an object',
      coalesce(jsonb_typeof(p_condition), 'null')
      using errcode = 'MR002',
        hint = 'Use {} for all, or stage, error_code, failed_since, failed_before and limit.';
  end if;
  for v_key, v_value in select c.key, c.value from jsonb_each(p_condition) c order by c.key loop
    if v_key = 'stage' then
      perform millrace.stage_named(p_pipeline, p_condition ->> v_key);
    elsif v_key = 'limit' and jsonb_typeof(v_value) = 'number'
        and v_value::numeric between 1 and 1000000 then
      continue;
    elsif v_key = 'error_code' and jsonb_typeof(v_value) = 'string' then
      continue;
    elsif v_key in ('failed_since', 'failed_before') then
      begin
        perform (p_condition ->> v_key)::timestamptz;
      exception when data_exception then
        raise exception 'condition.% is %, which is no time', v_key, v_value
          using errcode = 'MR002', hint = 'Write a time such as 2026-11-21T08:00:00Z.';
      end;
    else
      raise exception 'condition.% is %, which is not known', v_key, v_value
        using errcode = 'MR002', hint = 'Use stage, error_code (texts), failed_since, '
          || 'failed_before (times) and limit (a number from 1).';
    end if;
  end loop;
end
$$;

-- Retries dead letters in bulk by a person's call.
create or replace function millrace.replay(
  p_pipeline text, p_condition jsonb default '{}', p_dry_run boolean default true
) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_runs bigint[];
begin
  perform millrace.check_condition(p_pipeline, p_condition);
  v_runs := array(
    select d.run_id
    from millrace.dead_letters d
    where d.pipeline = p_pipeline
      and d.stage = coalesce(p_condition ->> 'stage', d.stage)
      and d.error_code is not distinct from coalesce(p_condition ->> 'error_code', d.error_code)
      and d.failed_at >= coalesce((p_condition ->> 'failed_since')::timestamptz, '-infinity')
      and d.failed_at < coalesce((p_condition ->> 'failed_before')::timestamptz, 'infinity')
      and d.can_retry
    order by d.run_id
    limit (p_condition ->> 'limit')::int);
  if p_dry_run then
    return jsonb_build_object('matched', cardinality(v_runs), 'replayed', 0,
      'hint', 'Nothing was done: pass p_dry_run => false to replay them.');
  end if;
  perform millrace.hold_runs(v_runs);
  return jsonb_build_object(
    'matched', cardinality(v_runs), 'replayed', millrace.retry_runs(v_runs));
end
$$;

-- Retrying
--
-- By these calls a person lets runs go on that failed or were cancelled. They wait for the
-- entities, then lock the runs.

-- Tells whether the run's entity has no later run, neither of its pipeline nor of the one that
-- replaces it or is replaced by it.
create or replace function millrace.is_latest_run(p_run_id bigint) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ways int[] := millrace.ways_of((
    select r.pipeline_id from millrace.runs r where r.id = p_run_id));
begin
  if cardinality(v_ways) > 1 then
    perform millrace.must_see_both_ways(v_ways);
  end if;
  return not exists (
    select
    from millrace.runs r
    join millrace.runs o
      on o.entity_id = r.entity_id and o.pipeline_id = any (v_ways) and o.id > r.id
    where r.id = p_run_id);
end
$$;

-- Tells whether an attempt counts and is the newest of its stage and run.
create or replace function millrace.is_last_word(p_attempt millrace.attempts) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return not p_attempt.superseded and not exists (
    select
    from millrace.attempts n
    where n.run_id = p_attempt.run_id
      and n.stage_id = p_attempt.stage_id
      and n.number > p_attempt.number);
end
$$;

-- Makes the newest attempts of a stage the retries of those before them.
create or replace function millrace.name_parents(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.attempts a
  set parent_id = (
    select o.id
    from millrace.attempts o
    where o.run_id = a.run_id
      and o.stage_id = a.stage_id
      and o.number = a.number - 1)
  where a.run_id = any (p_run_ids)
    and a.stage_id = p_stage_id
    and a.parent_id is null
    and a.number > 1
    and millrace.is_last_word(a);
end
$$;

-- Makes a new attempt of a stage that failed or was cancelled in runs that go on. Returns the
-- stages with work.
create or replace function millrace.retry_stage(
  p_stage_id int, p_kind text, p_run_ids bigint[]
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_kind = 'manual' then
    perform millrace.open_decisions(p_stage_id, p_run_ids);
    return '{}';
  elsif p_kind = 'pipeline' then
    return millrace.retry_child_runs(p_stage_id, p_run_ids);
  elsif p_kind = 'map' then
    perform millrace.reopen_fan_outs(p_stage_id, p_run_ids);
  end if;
  perform millrace.queue_attempts(p_stage_id, p_run_ids);
  perform millrace.name_parents(p_stage_id, p_run_ids);
  perform millrace.show_queued(p_stage_id, p_run_ids);
  return array[p_stage_id];
end
$$;

-- Lets held runs go on where they had failed or were cancelled, with new attempts and a fresh
-- allowance; returns how many. All stages that failed or were cancelled go on together, or the run
-- could never end.
create or replace function millrace.retry_runs(p_run_ids bigint[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
  v_retried bigint[];
  v_wake int[] := '{}';
begin
  v_retried := array(
    select r.id
    from millrace.runs r
    -- Asked under the locks: an entity may have been queued anew since the runs were chosen.
    where r.id = any (p_run_ids)
      and r.status in ('failed', 'cancelled')
      and millrace.is_latest_run(r.id)
      and exists (
        select
        from millrace.attempts a
        where a.run_id = r.id
          and a.state in ('failed', 'cancelled')
          and millrace.is_last_word(a))
    order by r.id);
  update millrace.runs r
  set status = 'running', finished_at = null
  where r.id = any (v_retried);
  insert into millrace.child_tallies (fan_out_id, recount)
  select distinct r.fan_out_id, true
  from millrace.runs r
  where r.id = any (v_retried)
    and r.fan_out_id is not null;
  for v_stage in
    select a.stage_id, s.kind, array_agg(a.run_id order by a.run_id) as run_ids
    from millrace.attempts a
    join millrace.stages s on s.id = a.stage_id
    where a.run_id = any (v_retried)
      and a.state in ('failed', 'cancelled')
      and millrace.is_last_word(a)
    group by a.stage_id, s.kind
    order by a.stage_id
  loop
    -- The retry of one stage may fail there and then, and its run with it.
    v_wake := v_wake || millrace.retry_stage(
      v_stage.stage_id, v_stage.kind, millrace.running_of(v_stage.run_ids));
  end loop;
  perform millrace.wake(v_wake || millrace.begin_open(v_retried));
  return cardinality(v_retried);
end
$$;

-- Raises MR004 about a run whose parent has given up its children: its parent's word on it is
-- spoken, and a child that went on alone would change nothing.
create or replace function millrace.refuse_orphan(p_run millrace.runs) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parent millrace.runs;
begin
  select r.* into v_parent
  from millrace.fan_outs f
  join millrace.runs r on r.id = f.run_id
  where f.id = p_run.fan_out_id
    and f.state in ('abandoned', 'closed');
  if found then
    raise exception 'run % cannot go on: it is a child of run %, which is %',
      p_run.id, v_parent.id, v_parent.status
      using errcode = 'MR004', hint = case
        when v_parent.status in ('failed', 'cancelled') then format(
          'Retry the parent, which retries its children that failed: select millrace.retry(%s).',
          v_parent.id)
        else 'The parent went on without it: start its row anew, by itself, with millrace.start() '
          || 'or by queueing a stage.' end;
  end if;
end
$$;

-- Retries one run by a person's call.
create or replace function millrace.retry(p_run bigint, p_stage text default null) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_run millrace.runs;
  v_stage_id int;
  v_state millrace.attempt_state;
begin
  perform millrace.hold_runs(array[p_run]);
  select r.* into v_run from millrace.runs r where r.id = p_run;
  if not found then
    raise exception 'there is no run %', coalesce(p_run::text, 'null')
      using errcode = 'MR003', hint = 'Look it up: select * from millrace.dead_letters.';
  end if;
  if p_stage is not null then
    v_stage_id := (millrace.stage_named(
      (select p.name from millrace.pipelines p where p.id = v_run.pipeline_id),
      p_stage)).id;
  end if;
  if not millrace.is_latest_run(p_run) then
    raise exception 'run % cannot be retried: its entity % has a later run', p_run, v_run.entity_id
      using errcode = 'MR004', hint = 'Retry the later run, or queue the stage on the entity.';
  end if;
  perform millrace.refuse_orphan(v_run);
  select a.state into v_state
  from millrace.attempts a
  where a.run_id = p_run
    and a.stage_id = v_stage_id
  order by a.number desc
  limit 1;
  if (v_stage_id is not null and coalesce(v_state not in ('failed', 'cancelled'), true))
      or millrace.retry_runs(array[p_run]) = 0 then
    raise exception 'run % has nothing to retry%: it is %',
      p_run, coalesce(' at stage ' || p_stage, ''), v_run.status
      using errcode = 'MR004', hint =
        'Only a stage that failed or was cancelled, in a run that is over, can be retried.';
  end if;
end
$$;

-- What the entity tables and the runs say of each other

-- Finds rows that show work which no run does, and live runs without a row, for check_invariants().
-- It is stable, so all of it is read in the caller's snapshot.
--
-- A row that never had a run was not written by the engine: a restored dump, or an insert under
-- triggers that were switched off. A table that was dropped, or a key that was renamed, is
-- doctor()'s to name.
create or replace function millrace.row_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline record;
begin
  for v_pipeline in
    select p.id, p.entity_key, c.oid::regclass as entity_table,
      format_type(a.atttypid, a.atttypmod) as key_type,
      (select string_agg('e.' || quote_ident(s.name || '_status'), ', ')
       from millrace.stages s
       where s.pipeline_id = p.id
         and p.projection = 'columns'
         and millrace.has_columns(p, s.name)) as statuses
    from millrace.pipelines p
    join pg_class c on c.oid = p.entity_table
    join pg_attribute a
      on a.attrelid = c.oid and a.attname = p.entity_key and not a.attisdropped
    order by p.id
  loop
    return query execute format($q$
      select 'a live run has its row', r.id, null::bigint,
        format('%%s has no row %%s', %1$L, r.entity_id)
      from millrace.runs r
      where r.pipeline_id = $1
        and r.status = 'running'
        and not exists (select from %1$s e where e.%2$I = r.entity_id::%3$s)$q$,
      v_pipeline.entity_table, v_pipeline.entity_key, v_pipeline.key_type)
    using v_pipeline.id;
    continue when v_pipeline.statuses is null;
    return query execute format($q$
      select 'a row that shows queued or started has a live run', l.id, null::bigint,
        format('row %%s of %%s, whose last run is %%s', e.%2$I, %1$L, l.status)
      from %1$s e
      cross join lateral (
        select r.id, r.status
        from millrace.runs r
        where r.entity_id = e.%2$I::text and r.pipeline_id = any ($1)
        order by r.status = 'running' desc, r.id desc
        limit 1) l
      where ('queued' in (%3$s) or 'started' in (%3$s)) and l.status <> 'running'$q$,
      v_pipeline.entity_table, v_pipeline.entity_key, v_pipeline.statuses)
    using millrace.ways_of(v_pipeline.id);
  end loop;
end
$$;

-- The calls of a worker, as PostgREST serves them (worker-calls.sql has what they
-- share)

create or replace function public.millrace_claim(
  p_pipeline text, p_stage text, p_worker uuid, p_host uuid, p_seq int, p_limit int
) returns json
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_stage millrace.stages;
  v_worker millrace.workers;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  v_stage := millrace.stage_named(p_pipeline, p_stage);
  if p_worker is null or p_host is null or p_seq is null
    or p_limit is null or p_limit not between 0 and 1000 then
    raise exception 'p_worker, p_host and p_seq must be given and p_limit be from 0 to 1000; '
      'p_limit is %', coalesce(p_limit::text, 'null')
      using errcode = 'MR002', hint = 'Send a uuid for the worker and one for its process, '
        'a sequence number from 1, and the number of attempts to claim.';
  end if;
  select w.* into v_worker from millrace.workers w where w.id = p_worker for update;
  if not found then
    -- Signing on takes turns, so that two workers never both become the last one that the maximum
    -- allows.
    perform pg_advisory_xact_lock(hashtext('millrace.sign_on'), v_stage.id);
    -- The first try of this very call may have signed the worker on while this one waited.
    select w.* into v_worker from millrace.workers w where w.id = p_worker for update;
  end if;
  if v_worker.id is null then
    -- Its arrival answers every wake-up so far, also when it is sent home.
    delete from millrace.wake_ups r
    where r.id in (
      select u.id from millrace.wake_ups u
      where u.stage_id = v_stage.id for update skip locked);
    if millrace.live_workers(v_stage.id) >= v_stage.max_workers then
      return millrace.claim_answer(millrace.call_of(null, v_stage.id), 'refused',
        format('%s workers are live, which is the stage''s maximum', v_stage.max_workers),
        '[]', '{}', null);
    end if;
    insert into millrace.workers (id, stage_id, host, last_seq, signed_on_at, heartbeat_at)
    values (p_worker, v_stage.id, p_host, p_seq - 1, millrace.now(), millrace.now())
    returning * into v_worker;
  end if;
  if v_worker.stage_id <> v_stage.id then
    raise exception 'worker % signed on for another stage', p_worker
      using errcode = 'MR006', hint = 'Use a new worker id for each stage and each drain.';
  end if;
  return millrace.answer_in_sequence(
    millrace.call_of(v_worker, v_stage.id), p_seq, p_limit, null, '{}');
end
$$;

create or replace function public.millrace_complete(
  p_worker uuid, p_seq int, p_items json, p_limit int
) returns json
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_worker millrace.workers;
  v_call millrace.call;
  v_stage millrace.stages;
  v_items millrace.work[];
  v_done record;
  v_dropped boolean;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_limit is null or p_limit not between 0 and 1000 then
    raise exception 'p_limit is %, but must be from 0 to 1000', coalesce(p_limit::text, 'null')
      using errcode = 'MR002',
        hint = 'Send the number of attempts to claim next, 0 for none.';
  end if;
  select w.* into v_worker from millrace.workers w
  where w.id = p_worker for update;
  if not found then
    raise exception 'there is no worker %', coalesce(p_worker::text, 'null')
      using errcode = 'MR006', hint = 'Call millrace_claim first; it signs the worker on.';
  end if;
  v_items := millrace.parse_items(p_items, 'attempt');
  v_done := millrace.record_items(v_items);
  v_call := millrace.call_of(v_worker, v_worker.stage_id);
  v_stage := v_call.stage;
  if v_stage.kind = 'agent' then
    perform millrace.drop_turns(v_stage, v_done.verdicts);
  elsif v_stage.kind = 'map' then
    perform millrace.leave_children(v_stage, array(
      select v.attempt from json_to_recordset(v_done.verdicts) as v(attempt bigint)));
  end if;
  v_dropped := millrace.drop_claims(p_worker,
    case when v_done.uniform then v_items[1].token end, cardinality(v_items));
  return millrace.answer_in_sequence(v_call, p_seq, p_limit, v_done.verdicts, v_done.ready);
end
$$;

create or replace function public.millrace_renew(p_worker uuid, p_attempts bigint[])
returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := millrace.now();
  v_held bigint[];
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  update millrace.workers w set heartbeat_at = v_now where w.id = p_worker;
  with held as (
    select c.token from millrace.claims c
    where c.worker_id = p_worker order by c.token for update
  )
  update millrace.claims c
  set expires_at = v_now + s.lease
  from held, millrace.workers w
  join millrace.stages s on s.id = w.stage_id
  where c.token = held.token and w.id = p_worker;
  v_held := array(
    select a.id
    from millrace.claims c
    cross join lateral (
      select t.id
      from millrace.attempts t
      where t.id = any (c.attempt_ids) and t.token = c.token and t.state = 'started'
      offset 0) a
    where c.worker_id = p_worker);
  return jsonb_build_object('renewed', cardinality(v_held),
    'lost', array(select p from unnest(p_attempts) p where p <> all (v_held)));
end
$$;

create or replace function public.millrace_leave(
  p_worker uuid, p_hand_over boolean default false
) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_worker millrace.workers;
  v_wake jsonb := '[]';
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  select w.* into v_worker from millrace.workers w
  where w.id = p_worker for update;
  if not found or v_worker.left_at is not null then
    return '{"left": true, "wake": []}';
  end if;
  perform millrace.drop_claims(p_worker);
  -- After a third failed try it leaves all the same: the sweep wakes for whatever is ready without
  -- a worker.
  if not p_hand_over and v_worker.leave_tries < 2 and millrace.must_stay(v_worker) then
    update millrace.workers w
    set leave_tries = w.leave_tries + 1, heartbeat_at = millrace.now()
    where w.id = p_worker;
    return '{"left": false, "wake": []}';
  end if;
  update millrace.workers w set left_at = millrace.now() where w.id = p_worker;
  -- One whose budget is used has signed off first, so that its successor is not one worker too
  -- many. Somebody may be about to enqueue, relying on this worker: then it wakes to be on the safe
  -- side.
  if p_hand_over and (
      not pg_try_advisory_xact_lock(hashtext('millrace.stage'), v_worker.stage_id)
      or millrace.has_ready_work(v_worker.stage_id)) then
    v_wake := millrace.wake_list(millrace.stages_to_wake(array[v_worker.stage_id]));
  end if;
  return jsonb_build_object('left', true, 'wake', v_wake);
end
$$;

-- Says whether a worker that wants to leave should look at its queue once more. Whoever enqueues
-- holds the stage's lock in shared mode until it commits. If the leaving worker gets it, nobody is
-- about to rely on this worker, and the look at the queue, a later statement, sees all that was
-- committed before.
create or replace function millrace.must_stay(p_worker millrace.workers) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not (
      select s.enabled and p.enabled
      from millrace.stages s
      join millrace.pipelines p on p.id = s.pipeline_id
      where s.id = p_worker.stage_id) then
    return false;
  end if;
  if not pg_try_advisory_xact_lock(hashtext('millrace.stage'), p_worker.stage_id) then
    return true;
  end if;
  -- Work that must be alone may be left to the worker of the same host that is still busy: it looks
  -- again when done.
  return millrace.has_ready_work(p_worker.stage_id) and not exists (
    select from millrace.claims c
    join millrace.workers w on w.id = c.worker_id
    where c.host = p_worker.host
      and w.id <> p_worker.id
      and w.stage_id = p_worker.stage_id
      and c.expires_at > millrace.now());
end
$$;

-- Schedules, and the doors
--
-- pg_cron runs one instance of a job at a time. The completion poller follows the shortest poll
-- interval of any stage, and is scheduled only while a job waits to be polled: a job that runs
-- every two seconds costs a session each time, and rows of history. Whoever begins to wait
-- schedules it; the sweep takes it off, and makes good where the two crossed.

-- Schedules the completion poller at the shortest poll interval of any stage while a job waits,
-- else not at all. Nobody waits for another's row of cron.job: who is too late leaves it to the
-- next sweep.
create or replace function millrace.schedule_polls() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_every interval := (
    select least(min(s.poll_every), interval '59 seconds')
    from millrace.stages s
    where s.poll_every is not null
      and exists (select from millrace.attempts a where a.poll_at is not null)
    having count(*) > 0);
  v_wanted text := ceil(extract(epoch from v_every)) || ' seconds';
begin
  if v_wanted is not distinct from (
      select j.schedule from cron.job j where j.jobname = 'millrace-poll') then
    return;
  end if;
  if not pg_try_advisory_xact_lock(hashtext('millrace.schedule_polls')) then
    return;
  end if;
  if v_wanted is not null then
    perform cron.schedule('millrace-poll', v_wanted, 'select millrace.wake_job_poll()');
  elsif exists (select from cron.job j where j.jobname = 'millrace-poll') then
    perform cron.unschedule('millrace-poll');
  end if;
exception
  -- A worker's batch must not fail for want of a poller: callbacks end jobs too, and the sweep
  -- tries again.
  when others then
    if not millrace.report_caught(sqlstate, null, 'polls_not_scheduled',
        'The poller could not be scheduled: ' || sqlerrm) then
      raise;
    end if;
end
$$;

-- Wakes the completion poller if a waiting job is due to be asked for; else it costs one index
-- probe.
create or replace function millrace.wake_job_poll() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := millrace.now();
begin
  if exists (select from millrace.attempts a where a.poll_at <= v_now) then
    return millrace.post('job-poll', '{}');
  end if;
  return false;
end
$$;

-- Settings
--
-- A setting is read from Vault under the name `millrace_<name>` first, then from millrace.settings.
-- Secrets belong into Vault:
--   select vault.create_secret('https://REF.supabase.co', 'millrace_project_url');
--   select vault.create_secret('…', 'millrace_wake_secret');

-- Refuses a value that a setting cannot have, with MR002, before a function of the engine reads it.
create or replace function millrace.check_setting() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wanted text := case
    when new.name in ('worker_seconds', 'retention_days') and new.value !~ '^[1-9][0-9]{0,3}$'
      then 'a whole number from 1 to 9999'
    when new.name = 'batch_bytes' and new.value !~ '^[1-9][0-9]{4,7}$'
      then 'a whole number from 10000 to 99999999'
    when new.name = 'use_new_pipeline' and new.value not in ('true', 'false')
      then 'true or false' end;
begin
  if v_wanted is not null then
    raise exception 'setting % is %, but must be %', new.name, quote_literal(new.value), v_wanted
      using errcode = 'MR002', hint = format(
        'update millrace.settings set value = … where name = %L; it stays as it was.', new.name);
  end if;
  return new;
end
$$;

-- Reads a setting; null where nobody has set it.
create or replace function millrace.setting(p_name text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_value text;
begin
  if to_regclass('vault.decrypted_secrets') is not null then
    -- Dynamic, because a plain Postgres has no Vault to plan against.
    execute 'select decrypted_secret from vault.decrypted_secrets where name = $1'
      into v_value using 'millrace_' || p_name;
  end if;
  return coalesce(v_value, (
    select s.value from millrace.settings s where s.name = p_name));
end
$$;

-- Reads the text of the setting batch_bytes: how many bytes of rows and results a worker is handed
-- at most. Where the setting was deleted its default counts: without a bound no batch would be
-- built.
create or replace function millrace.batch_bytes(p_setting text) returns bigint
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(p_setting::bigint, 12582912);
end
$$;

-- Says the same, having read the setting.
create or replace function millrace.batch_bytes() returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return millrace.batch_bytes(
    (select s.value from millrace.settings s where s.name = 'batch_bytes'));
end
$$;

-- Starting: a run of an entity, by a person's call or a status column that was written
--
-- The calls that a person makes hold or wait for the entities, then lock the runs, as the lock
-- order says.

-- Returns a pipeline, and the one that it replaces or that replaces it (see cut-over.sql).
create or replace function millrace.ways_of(p_pipeline_id int) returns int[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array_remove(array[
    p_pipeline_id,
    (
      select p.replaces_id
      from millrace.pipelines p
      where p.id = p_pipeline_id),
    (
      select p.id
      from millrace.pipelines p
      where p.replaces_id = p_pipeline_id)], null);
end
$$;

-- Returns the stage at which a pipeline starts unless another is named.
create or replace function millrace.first_stage(p_pipeline_id int) returns int
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select vs.stage_id
    from millrace.pipelines p
    join millrace.version_stages vs
      on vs.version_id = p.current_version_id and vs.needs = '{}' and vs.after = '[]'
    where p.id = p_pipeline_id
    order by vs.on_demand, vs.position
    limit 1);
end
$$;

-- Says whether runs begin with a stage by themselves. Whoever writes `queued` there begins a run,
-- which asks the stage's own conditions; whoever writes it at any other stage names that stage.
create or replace function millrace.begins_runs(p_pipeline_id int, p_stage_id int) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from millrace.pipelines p
    join millrace.version_stages vs
      on vs.version_id = p.current_version_id and vs.stage_id = p_stage_id
    where p.id = p_pipeline_id
      and vs.needs = '{}'
      and vs.after = '[]'
      and not vs.on_demand);
end
$$;

-- Locks entities by keys that somebody outside has named, and returns them; MR002 where one is no
-- value of the key's type.
create or replace function millrace.lock_rows_named(
  p_pipeline millrace.pipelines, p_entity_ids text[], p_wait boolean
) returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return millrace.lock_entities(p_pipeline.id, p_entity_ids, p_wait);
exception
  when data_exception then
    raise exception 'a key of table % cannot be read as one: %', p_pipeline.entity_table, sqlerrm
      using errcode = 'MR002',
        hint = format('Give values of the column %s.', p_pipeline.entity_key);
end
$$;

-- Returns the live run that starting a held entity would come upon, locked; null where there is
-- none. Where one pipeline replaces another it may be one of the other, unless the caller named a
-- way that it has not gone: queue_stage() refuses that.
create or replace function millrace.run_under_way(
  p_pipeline_id int, p_stage_id int, p_entity_id text
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
  v_ways int[] := array[p_pipeline_id];
begin
  select p.* into v_pipeline
  from millrace.pipelines p
  where p.id = p_pipeline_id;
  if v_pipeline.replaces_id is not null and exists (
      select
      from millrace.version_stages vs
      where vs.version_id = v_pipeline.current_version_id
        and vs.stage_id = p_stage_id
        and vs.needs = '{}'
        and vs.after = '[]') then
    v_ways := millrace.ways_of(p_pipeline_id);
  end if;
  -- Locked, so that a worker that ends it this moment goes first.
  return (
    select r.id
    from millrace.runs r
    where r.pipeline_id = any (v_ways)
      and r.entity_id = p_entity_id
      and r.status = 'running'
    order by r.id
    limit 1
    for no key update);
end
$$;

-- Starts a run by a person's call. The row's own spelling of its key goes on, however the caller
-- wrote it.
create or replace function millrace.start(
  p_pipeline text,
  p_entity_id text,
  p_stage text default null,
  p_priority int default null,
  p_restart boolean default false
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_pipeline millrace.pipelines;
  v_stage_id int;
  v_held text[];
  v_run bigint;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.name = p_pipeline;
  if not found then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null')
      using errcode = 'MR003',
        hint = 'Define it: npm run pipelines:sync, then push the migrations.';
  end if;
  v_held := millrace.lock_rows_named(v_pipeline, array[p_entity_id], true);
  if cardinality(v_held) = 0 then
    raise exception 'table % has no row with % %',
      v_pipeline.entity_table, v_pipeline.entity_key, coalesce(p_entity_id, 'null')
      using errcode = 'MR003', hint = 'Insert the row first.';
  end if;
  if p_stage is null then
    v_stage_id := millrace.first_stage(v_pipeline.id);
  else
    v_stage_id := (millrace.stage_named(p_pipeline, p_stage)).id;
  end if;
  if p_restart is not true then
    v_run := millrace.run_under_way(v_pipeline.id, v_stage_id, v_held[1]);
  end if;
  if v_run is null then
    perform millrace.queue_stage(v_pipeline.id, v_stage_id, v_held, v_held, p_stage is not null);
    -- A run whose stages are all skipped is over already.
    v_run := (
      select max(r.id)
      from millrace.runs r
      where r.pipeline_id = any (millrace.ways_of(v_pipeline.id))
        and r.entity_id = v_held[1]);
  end if;
  if p_priority is not null and (
      select r.status = 'running' from millrace.runs r where r.id = v_run) then
    perform millrace.prioritise(v_run, p_priority);
  end if;
  return v_run;
end
$$;

-- Sweeping deadlines: jobs, children and people that never answered

-- Fails those of the waiting attempts whose deadline has passed and whose rows are free, as
-- deadline; returns how many. One that the database refuses for now comes by again in a minute,
-- behind the others.
create or replace function millrace.fail_overdue(p_ids bigint[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_ids bigint[] := millrace.lock_attempts(p_ids);
  v_refused bigint[];
  v_done record;
begin
  v_done := millrace.apply_outcomes_guarded(array(
    select jsonb_populate_record(null::millrace.work, jsonb_build_object(
      'ord', row_number() over (order by a.id),
      'attempt_id', a.id,
      'outcome', 'failed',
      'error', jsonb_build_object(
        'code', 'deadline',
        'permanent', a.service in ('children', 'decision'),
        'message', case a.service
          when 'children' then 'the children did not end before the deadline'
          when 'decision' then 'nobody decided before the deadline'
          else 'the external job did not end before its deadline' end),
      'service', a.service,
      'job_id', a.job_id,
      'run_id', a.run_id,
      'stage_id', a.stage_id,
      'entity_id', r.entity_id,
      'was', a.state))
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (v_ids)
      and a.state = 'waiting'
      and a.deadline_at <= v_now));
  perform millrace.wake(v_done.ready);
  v_refused := array(
    select i.attempt_id from unnest(v_done.items) i where i.verdict = 'busy');
  update millrace.attempts a
  set deadline_at = v_now + interval '1 minute'
  where a.id in (
    select o.id
    from millrace.attempts o
    where o.id = any (v_refused) and o.state = 'waiting'
    for update skip locked);
  return cardinality(v_done.items) - cardinality(v_refused);
end
$$;

-- Fails waiting attempts of a pipeline whose deadline has passed; returns how many. A map that
-- finishes with what there is at its deadline is left to the collection of children.
create or replace function millrace.sweep_deadlines(p_pipeline_id int, p_limit int) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_stages int[] := array(
    select s.id from millrace.stages s where s.pipeline_id = p_pipeline_id);
  v_page record;
  v_last_at timestamptz := '-infinity';
  v_last_id bigint := 0;
  v_failed int := 0;
begin
  loop
    select array_agg(d.id) as ids, max(d.deadline_at) as last_at into v_page
    from (
      select a.id, a.deadline_at
      from millrace.attempts a
      join millrace.stages s on s.id = a.stage_id
      where a.deadline_at <= v_now
        and (a.deadline_at, a.id) > (v_last_at, v_last_id)
        and a.stage_id = any (v_stages)
        and coalesce(s.fan_in ->> 'at_deadline', 'fail') <> 'finish'
      order by a.deadline_at, a.id
      limit p_limit) d;
    exit when v_page.ids is null;
    v_last_at := v_page.last_at;
    v_last_id := v_page.ids[cardinality(v_page.ids)];
    v_failed := v_failed + millrace.fail_overdue(v_page.ids);
    exit when cardinality(v_page.ids) < p_limit or v_failed >= p_limit;
  end loop;
  return v_failed;
end
$$;

-- Sweeping leases: what dead workers left behind

-- Fails those of the attempts whose lease expired and whose rows are free, as lost_lease; returns
-- how many. A worker may have renewed meanwhile: the claims are locked too and read once more. One
-- that its worker is renewing or dropping this very moment is not lost.
create or replace function millrace.fail_lost(p_ids bigint[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[] := millrace.lock_attempts(p_ids);
  v_tokens uuid[];
  v_done record;
begin
  v_tokens := array(
    select c.token
    from millrace.claims c
    where c.expires_at <= millrace.now()
    for update skip locked);
  v_done := millrace.apply_outcomes_guarded(array(
    select jsonb_populate_record(null::millrace.work, jsonb_build_object(
      'ord', row_number() over (order by a.id),
      'attempt_id', a.id,
      'token', a.token,
      'outcome', 'failed',
      'error', jsonb_build_object('code', 'lost_lease',
        'message', 'the worker ended without a word and its lease expired'),
      'run_id', a.run_id,
      'stage_id', a.stage_id,
      'entity_id', r.entity_id,
      'was', a.state))
    from millrace.attempts a
    join millrace.claims c on c.token = a.token
    join millrace.runs r on r.id = a.run_id
    where a.id = any (v_ids)
      and a.state = 'started'
      and c.token = any (v_tokens)));
  perform millrace.wake(v_done.ready);
  return (
    select count(*)
    from unnest(v_done.items) i
    where i.verdict is distinct from 'busy');
end
$$;

-- Fails started attempts of a pipeline whose lease expired; returns how many. It goes page after
-- page, so that rows which somebody holds, or which refuse to be written, keep it from none of the
-- others.
create or replace function millrace.sweep_leases(p_pipeline_id int, p_limit int) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_stages int[] := array(
    select s.id from millrace.stages s where s.pipeline_id = p_pipeline_id);
  v_ids bigint[];
  v_failed int := 0;
begin
  loop
    v_ids := array(
      select a.id
      from millrace.claims c
      cross join lateral (
        select t.id, t.stage_id
        from millrace.attempts t
        where t.id = any (c.attempt_ids) and t.token = c.token and t.state = 'started'
        offset 0) a
      where c.expires_at <= v_now
        and a.stage_id = any (v_stages)
        and a.id > coalesce(v_ids[cardinality(v_ids)], 0)
      order by a.id
      limit p_limit);
    exit when cardinality(v_ids) = 0;
    v_failed := v_failed + millrace.fail_lost(v_ids);
    exit when cardinality(v_ids) < p_limit or v_failed >= p_limit;
  end loop;
  return v_failed;
end
$$;

-- The sweep: recovery
--
-- pg_cron calls sweep() every ten seconds; when it stalls, workers and callbacks do. It makes good
-- whatever got lost: leases of dead workers, jobs that never came back, retries that fell due,
-- wake-ups that nobody heard. It also starts what is due. When idle it costs a few index probes a
-- stage.

-- Sweeps one pipeline. It reports a fault of that pipeline, such as a table that was dropped, which
-- must not end the recovery of the others.
create or replace function millrace.sweep_pipeline(
  p_pipeline_id int, out leases int, out deadlines int, out woken int
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_context text;
begin
  leases := millrace.sweep_leases(p_pipeline_id, 5000);
  deadlines := millrace.sweep_deadlines(p_pipeline_id, 5000);
  perform millrace.sweep_limits(p_pipeline_id);
  perform millrace.show_due(p_pipeline_id, 5000);
  woken := millrace.wake(array(
    select s.id
    from millrace.stages s
    where s.pipeline_id = p_pipeline_id
      and s.enabled
      and millrace.has_ready_work(s.id)));
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if not millrace.report_caught(sqlstate, v_context, 'sweep_failed', format(
        'The sweep of pipeline %s failed: %s',
        (select p.name from millrace.pipelines p where p.id = p_pipeline_id),
        sqlerrm)) then
      raise;
    end if;
end
$$;

-- Sweeps children and decisions; null where that failed, which ends no other part of the recovery.
create or replace function millrace.sweep_features() returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_children record;
  v_context text;
begin
  v_children := millrace.sweep_children();
  perform millrace.close_decisions(1000);
  return to_jsonb(v_children);
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if not millrace.report_caught(sqlstate, v_context, 'sweep_failed',
        'The sweep of children and decisions failed: ' || sqlerrm) then
      raise;
    end if;
    return null;
end
$$;

-- Deletes what nobody asks for any more: answered wake-ups, claims without started attempts,
-- workers that are gone, metadata without runs, and all but about the newest hundred posts.
create or replace function millrace.forget_leftovers() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_oldest_post timestamptz := (
    select p.posted_at from millrace.posts p order by p.posted_at desc offset 99 limit 1);
begin
  delete from millrace.wake_ups r
  where r.id in (
    select o.id
    from millrace.wake_ups o
    where o.woken_at < v_now - interval '10 seconds'
    for update skip locked);
  delete from millrace.claims c
  where c.token in (
    select o.token
    from millrace.claims o
    where o.expires_at <= v_now - interval '1 minute'
      and not exists (
        select
        from millrace.attempts a
        where a.id = any (o.attempt_ids) and a.token = o.token and a.state = 'started')
    for update skip locked);
  delete from millrace.workers w
  where w.id in (
    select o.id
    from millrace.workers o
    where o.heartbeat_at < v_now - interval '1 hour'
    for update skip locked);
  perform millrace.sweep_metadata(10000);
  delete from millrace.posts p
  where p.ctid = any (array(
    select o.ctid
    from millrace.posts o
    where o.posted_at < v_oldest_post
    for update skip locked));
end
$$;

-- Sweeps everything. Nothing that a user's trigger waits for holds it up for longer than two
-- seconds.
create or replace function millrace.sweep() returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_done jsonb;
begin
  perform millrace.sweep_quotas();
  select jsonb_build_object(
    'leases', coalesce(sum(s.leases), 0),
    'deadlines', coalesce(sum(s.deadlines), 0),
    'woken', coalesce(sum(s.woken), 0)) into v_done
  from millrace.pipelines p
  cross join lateral millrace.sweep_pipeline(p.id) s;
  v_done := v_done || coalesce(millrace.sweep_features(), '{}');
  v_done := v_done || (select to_jsonb(l) from millrace.sweep_alerts() l);
  perform millrace.forget_leftovers();
  v_done := v_done || millrace.start_due();
  perform millrace.schedule_polls();
  if exists (
      select
      from millrace.attempts a
      where a.poll_at <= millrace.now() - interval '1 minute') then
    perform millrace.wake_job_poll();
  end if;
  -- In a form that reads the same in every session, whatever its DateStyle.
  update millrace.settings s
  set value = trim('"' from to_jsonb(millrace.now())::text)
  where s.name in (
    select o.name
    from millrace.settings o
    where o.name = 'last_sweep_at'
    for update skip locked);
  return v_done;
end
$$;

-- Sweeps for a worker or a callback. The Data API's own eight seconds are not enough for all that
-- may have piled up.
create or replace function public.millrace_sweep() returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set statement_timeout = '60s'
as $$
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if not pg_try_advisory_xact_lock(hashtext('millrace.sweep')) then
    return jsonb_build_object('swept', false);
  end if;
  -- In a statement after the lock: whoever held it may just have swept.
  if not millrace.sweep_due() then
    return jsonb_build_object('swept', false);
  end if;
  perform millrace.sweep();
  return jsonb_build_object('swept', true);
end
$$;

-- Waiting, releasing, cancelling, and showing all of it

-- Writes a batch of changes of one stage into its entities' columns, where the pipeline has a
-- projection.
create or replace function millrace.project(p_stage_id int, p_changes millrace.change[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.project_entities(s.pipeline_id, 'settle', s.name, p_changes, null, null)
  from millrace.stages s
  where s.id = p_stage_id;
end
$$;

-- started → waiting for an external job, under the stage's deadline and poll interval.
create or replace function millrace.wait(p_stage_id int, p_items millrace.work[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
begin
  with waiting as (
    update millrace.attempts a
    set state = 'waiting', queue_at = null, service = i.service, job_id = i.job_id,
      deadline_at = v_now + coalesce(s.deadline, interval '10 minutes'),
      poll_at = v_now + s.poll_every
    from unnest(p_items) i, millrace.stages s
    where a.id = i.attempt_id and a.state = i.was and s.id = p_stage_id
    returning i.entity_id, a.job_id, a.retry_count, a.started_at
  )
  select array_agg(row(w.entity_id, 'started', w.job_id, null, null, w.retry_count, w.started_at,
    null, null)::millrace.change)
  into v_changes
  from waiting w;
  perform millrace.project(p_stage_id, v_changes);
  if exists (
      select from millrace.stages s
      where s.id = p_stage_id and s.poll_every is not null) then
    perform millrace.schedule_polls();
  end if;
  -- Its children may all have ended while it was still spawning: the tally makes somebody look.
  insert into millrace.child_tallies (fan_out_id)
  select f.id
  from unnest(p_items) i
  join millrace.fan_outs f on f.attempt_id = i.attempt_id
  where i.service = 'children';
end
$$;

-- started → queued without costing an attempt; the third release in a row fails an attempt. An item
-- with an error was in work when its function reached a limit of CPU or memory. Nobody knows whose
-- doing that was, so each of them runs alone from then on, which costs no attempt; one that reaches
-- the limit alone fails with that error.
create or replace function millrace.release(p_stage_id int, p_items millrace.work[]) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
  v_grouped bigint[];
begin
  with released as (
    update millrace.attempts a
    set state = 'queued', token = null, started_at = null, queue_at = v_now,
      isolated = a.isolated or i.error is not null,
      releases = a.releases + (i.error is null)::int
    from unnest(p_items) i
    where a.id = i.attempt_id
      and a.state = i.was
      and case when i.error is null then a.releases < 2 else not a.isolated end
    returning i.entity_id, a.retry_count, a.run_id, a.concurrency_group
  )
  select array_agg(row(r.entity_id, 'queued', null, null, null, r.retry_count, null, null,
      null)::millrace.change),
    array_agg(r.run_id) filter (where r.concurrency_group is not null)
  into v_changes, v_grouped
  from released r;
  if v_grouped is not null then
    perform millrace.assign_groups(p_stage_id, v_grouped);
  end if;
  perform millrace.project(p_stage_id, v_changes);
  perform millrace.fail_tired(p_stage_id, p_items);
  return array[p_stage_id];
end
$$;

-- Fails what release() has left: a row that always outlives its worker would go round for ever.
create or replace function millrace.fail_tired(p_stage_id int, p_items millrace.work[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_tired millrace.work[] := array(
    select i from unnest(p_items) i
    join millrace.attempts a on a.id = i.attempt_id
    where a.state = 'started');
begin
  for v_i in 1 .. cardinality(v_tired) loop
    v_tired[v_i].outcome := 'failed';
    v_tired[v_i].error := coalesce(v_tired[v_i].error, '{"code": "released",
        "message": "released by three workers in a row without a result"}');
    v_tired[v_i].result := null;
    v_tired[v_i].service := null;
    v_tired[v_i].job_id := null;
  end loop;
  if cardinality(v_tired) > 0 then
    perform millrace.fail(p_stage_id, v_tired);
  end if;
end
$$;

-- queued | started | waiting → cancelled, for locked runs: all of their live attempts, or those of
-- some stages; their tokens and jobs are void. Returns what is left to project, which the caller
-- does when it is done.
create or replace function millrace.cancel_attempts(p_run_ids bigint[], p_stage_ids int[])
returns millrace.cancelled[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_cancelled millrace.cancelled[];
begin
  perform from millrace.attempts a
  where a.run_id = any (p_run_ids)
    and (p_stage_ids is null or a.stage_id = any (p_stage_ids))
    and a.state = 'queued'
  order by a.id
  for update;
  with cancelled as (
    update millrace.attempts a
    set state = 'cancelled', finished_at = millrace.now(), queue_at = null, poll_at = null,
      deadline_at = null, late_at = null,
      error = '{"code": "cancelled", "message": "cancelled"}'
    from millrace.runs r
    where a.run_id = any (p_run_ids)
      and r.id = a.run_id
      and (p_stage_ids is null or a.stage_id = any (p_stage_ids))
      and a.state in ('queued', 'started', 'waiting')
    returning a.stage_id, row(r.entity_id, 'failed', a.job_id, null, 'cancelled', a.retry_count,
      a.started_at, null, null)::millrace.change as change
  )
  select coalesce(array_agg(row(c.stage_id, c.change)::millrace.cancelled), '{}') into v_cancelled
  from cancelled c;
  perform millrace.abandon_fan_outs(p_run_ids, p_stage_ids);
  return v_cancelled;
end
$$;

-- Shows cancelled attempts on their entities.
create or replace function millrace.project_cancelled(p_cancelled millrace.cancelled[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
begin
  for v_stage in
    select c.stage_id, array_agg(c.change) as changes
    from unnest(p_cancelled) c
    group by c.stage_id
    order by c.stage_id
  loop
    perform millrace.project(v_stage.stage_id, v_stage.changes);
  end loop;
end
$$;

-- Waking stages
--
-- A wake-up says "there is work at this stage" and nothing else. It may be lost, doubled or late;
-- the sweep makes good.
--
-- No lost wake-up: who enqueues takes the stage's advisory lock in shared mode (until its commit),
-- and then, in a fresh snapshot, looks for a live worker or an unanswered wake-up. A leaving worker
-- tries the same lock exclusively and looks at the queue again before it signs off. So either the
-- worker sees the work, or the enqueuer sees that the worker has gone.

-- Chooses those of the stages that are to be woken now, and notes each as woken. A worker that
-- scales its own stage out names it in p_scaling_out, since it is itself alive.
create or replace function millrace.stages_to_wake(
  p_stage_ids int[], p_scaling_out int default null
) returns int[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  -- Above read committed there is no fresh snapshot to look at, so it always wakes.
  v_look boolean := current_setting('transaction_isolation') = 'read committed';
  v_wakes int[];
begin
  perform pg_advisory_xact_lock_shared(hashtext('millrace.stage'), s.id)
  from (select distinct u.id from unnest(p_stage_ids) u(id) order by u.id) s;
  v_wakes := array(
    select s.id
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where s.id = any (p_stage_ids)
      and s.enabled
      and p.enabled
      and (not v_look or (
        (s.id is not distinct from p_scaling_out or millrace.live_workers(s.id) = 0)
        and not exists (
          select
          from millrace.wake_ups r
          where r.stage_id = s.id
            and r.woken_at > v_now - interval '2 seconds')
        -- A stage at its limits is woken when a slot is freed, or by the sweep.
        and (s.limits is null or millrace.may_claim(s)))));
  if cardinality(v_wakes) > 0 then
    insert into millrace.wake_ups (stage_id, woken_at)
    select r, v_now
    from unnest(v_wakes) r
    order by r;
  end if;
  return v_wakes;
end
$$;

-- Lists stages as the functions read a wake-up: pipeline, stage, function.
create or replace function millrace.wake_list(p_stage_ids int[]) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
      'pipeline', p.name, 'stage', s.name, 'function', s.function_name) order by s.id), '[]')
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where s.id = any (p_stage_ids));
end
$$;

-- Wakes those of the stages that have no live worker and no unanswered wake-up; returns how many.
create or replace function millrace.wake(p_stage_ids int[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage jsonb;
  v_woken int := 0;
begin
  for v_stage in
    select w
    from jsonb_array_elements(millrace.wake_list(millrace.stages_to_wake(p_stage_ids))) w
  loop
    v_woken := v_woken + millrace.post(v_stage ->> 'function', v_stage - 'function')::int;
  end loop;
  return v_woken;
end
$$;

-- Wakes stages for a worker, which has noted these wake-ups already and could not deliver them: so
-- they are posted without a second look.
create or replace function public.millrace_wake(p_stages jsonb) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off
set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_stage jsonb;
  v_woken int := 0;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if jsonb_typeof(p_stages) is distinct from 'array' then
    raise exception 'p_stages is %, but must be a list', coalesce(jsonb_typeof(p_stages), 'null')
      using errcode = 'MR002', hint = 'Send [{"pipeline": "…", "stage": "…"}].';
  end if;
  for v_stage in
    select distinct jsonb_build_object(
      'pipeline', s.value ->> 'pipeline', 'stage', n.name, 'function', n.function_name)
    from jsonb_array_elements(p_stages) s
    cross join lateral millrace.stage_named(s.value ->> 'pipeline', s.value ->> 'stage') n
  loop
    v_woken := v_woken + millrace.post(v_stage ->> 'function', v_stage - 'function')::int;
  end loop;
  return jsonb_build_object('woken', v_woken);
end
$$;

-- Lists what a run has been through, attempt by attempt.
create or replace function millrace.timeline(p_run bigint)
returns table (
  attempt_id bigint, stage text, number int, state millrace.attempt_state, parent_id bigint,
  retry_count int, queued_at timestamptz, started_at timestamptz, finished_at timestamptz,
  took interval, service text, job_id text, error_code text, error_message text, usage jsonb,
  superseded boolean
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select a.id, s.name, a.number, a.state, a.parent_id, a.retry_count,
    a.created_at, a.started_at, a.finished_at, a.finished_at - a.started_at,
    a.service, a.job_id,
    a.error ->> 'code', coalesce(a.error ->> 'detail', a.error ->> 'message'),
    a.usage, a.superseded
  from millrace.attempts a
  join millrace.stages s on s.id = a.stage_id
  where a.run_id = p_run
  order by a.id
$$;

-- What workers say
--
-- A worker signs on with its first claim, then says complete again and again (each call records
-- results and claims the next batch, in one commit), renews on a timer, and leaves. Its calls carry
-- a sequence number, so that a call repeated after a lost answer gets the same batch again. The
-- public functions here are the whole surface of the engine for Edge Functions; only service_role
-- may call them, and each returns one JSON value.
--
-- The planner settings in the headers of public functions hold for all that these call: every
-- look-up goes by an index, row by row, and plans are made once a connection, and never compiled
-- (what must scan a small table looks dear enough for that). Left to itself the planner reads a
-- queue's tables by statistics that are minutes old, and now and then walks a whole index where it
-- wants fifty rows. An index-only scan is such a walk: while a table is small, it looks cheaper
-- than a look-up by the right key. Each header repeats them, since Postgres has no name for a set
-- of settings, and a function that set them for its caller would have to put them back, whatever
-- happens.

-- Finds the stage with this name; raises MR003 when there is none.
create or replace function millrace.stage_named(p_pipeline text, p_stage text)
returns millrace.stages
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
  v_known text;
begin
  select s.* into v_stage
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  where p.name = p_pipeline and s.name = p_stage;
  if not found then
    v_known := (
      select string_agg(p.name || '.' || s.name, ', ' order by s.id)
      from millrace.stages s
      join millrace.pipelines p on p.id = s.pipeline_id);
    raise exception 'there is no stage % in a pipeline %',
      coalesce(p_stage, 'null'), coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = 'Known: ' || coalesce(v_known,
        'none, run `npm run pipelines:sync` and push the migrations') || '.';
  end if;
  return v_stage;
end
$$;

-- Reads at once what a call of a worker has to know besides its worker, whose row the caller has
-- locked; null for one that is not let in.
create or replace function millrace.call_of(p_worker millrace.workers, p_stage_id int)
returns millrace.call
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_call millrace.call;
begin
  select p_worker as worker, s as stage, s.enabled and p.enabled as open, p.is_child,
    (select o.value from millrace.settings o
     where o.name = 'batch_bytes') as batch_bytes,
    (select o.value from millrace.settings o
     where o.name = 'last_sweep_at') as last_sweep_at
  into v_call
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  where s.id = p_stage_id;
  return v_call;
end
$$;

-- Builds the answer to claim and complete alike: the batch, the functions that the worker should
-- wake now, and the fan-outs whose children have reported. p_wait_ms: how long a worker
-- that got nothing, because of limits, may wait before it asks again. p_cut: it got less than it
-- asked for and there was, since its batch has all the bytes that one may have.
create or replace function millrace.claim_answer(
  p_call millrace.call, p_status text, p_reason text, p_batch json, p_wake int[], p_verdicts json,
  p_wait_ms int default null, p_cut boolean default false
) returns json
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages := p_call.stage;
  v_wake jsonb := '[]';
  v_collect bigint[] := '{}';
begin
  if cardinality(p_wake) > 0 then
    v_wake := millrace.wake_list(p_wake);
  end if;
  if v_stage.kind = 'map' or p_call.is_child then
    v_collect := millrace.parents_to_collect('{}');
  end if;
  return json_build_object(
    'status', p_status,
    'reason', p_reason,
    'lease_ms', (extract(epoch from v_stage.lease) * 1000)::int,
    'stage', json_build_object(
      'batch_size', v_stage.batch_size,
      'timeout_ms', (extract(epoch from v_stage.timeout) * 1000)::int,
      'result_limit_bytes', v_stage.result_limit_bytes),
    'batch', p_batch,
    'wake', v_wake,
    'items', p_verdicts,
    'wait_ms', p_wait_ms,
    'sweep_due', millrace.sweep_due(p_call.last_sweep_at),
    'cut', p_cut,
    'collect', v_collect);
end
$$;

-- Says whether the last sweep, of which the setting last_sweep_at tells, is over a minute old.
-- pg_cron stalls now and then, so workers and callbacks look after the sweep as well: an answer
-- that says so has its receiver call millrace_sweep(), in a transaction of its own.
create or replace function millrace.sweep_due(p_last_sweep_at text) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(p_last_sweep_at::timestamptz <= millrace.now() - interval '1 minute', true);
end
$$;

-- Says the same, having read the setting.
create or replace function millrace.sweep_due() returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return millrace.sweep_due(
    (select s.value from millrace.settings s where s.name = 'last_sweep_at'));
end
$$;

-- Claims what is queued, as far as the stage's limits and its tenants' quotas allow. p_may_wait:
-- its worker has nothing to hand in, and so may wait for its turn to claim. The token is null when
-- it got nothing.
create or replace function millrace.claim_allowed(
  p_call millrace.call, p_limit int, p_may_wait boolean,
  out token uuid, out attempt_ids bigint[], out entity_ids text[], out items millrace.claimed[],
  out taken int, out wait_ms int
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages := p_call.stage;
  v_limit int := case when p_call.open then p_limit else 0 end;
  v_worker millrace.workers := p_call.worker;
  v_claim record;
begin
  if v_stage.limits is null then
    v_claim := millrace.claim(v_stage, v_worker.id, v_worker.host, v_limit);
  else
    v_claim := millrace.claim_limited(v_stage, v_worker.id, v_worker.host, v_limit, p_may_wait);
    wait_ms := v_claim.wait_ms;
  end if;
  token := v_claim.token;
  attempt_ids := v_claim.attempt_ids;
  entity_ids := v_claim.entity_ids;
  items := v_claim.items;
  taken := cardinality(attempt_ids);
  if token is null then
    return;
  end if;
  if v_stage.counted then
    items := millrace.keep_to_quotas(v_stage, token, attempt_ids);
    attempt_ids := array(select i.attempt_id from unnest(items) i);
    entity_ids := array(select i.entity_id from unnest(items) i);
    if cardinality(items) = 0 then
      -- All of it was held back: there may be another tenant's work behind it.
      token := null;
      wait_ms := 0;
    end if;
  elsif items is null then
    items := millrace.held_items(token, attempt_ids);
    entity_ids := array(select i.entity_id from unnest(items) i);
  end if;
end
$$;

-- Does the claiming half of millrace_claim and millrace_complete: claims for a signed-on worker,
-- shows that on the entities, remembers the claim for a repeat, and sees to scaling out.
create or replace function millrace.claim_next(
  p_call millrace.call, p_seq int, p_limit int, p_verdicts json, p_ready int[]
) returns json
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages := p_call.stage;
  v_claim record;
  v_filled record;
  v_batch json := '[]';
  v_shown boolean;
  v_cut boolean := false;
  v_wake int[] := array_remove(p_ready, v_stage.id);
begin
  v_claim := millrace.claim_allowed(p_call, p_limit, p_verdicts is null);
  if v_claim.token is not null then
    v_filled := millrace.fill_batch(v_stage, v_claim.token, v_claim.items, v_claim.entity_ids,
      millrace.batch_bytes(p_call.batch_bytes));
    v_cut := v_filled.kept < cardinality(v_claim.attempt_ids);
    if v_cut then
      perform millrace.give_back(v_stage, v_claim.token, v_claim.attempt_ids[:v_filled.kept],
        v_claim.attempt_ids[v_filled.kept + 1:]);
      v_claim.attempt_ids := v_claim.attempt_ids[:v_filled.kept];
      v_claim.entity_ids := v_claim.entity_ids[:v_filled.kept];
    end if;
    v_shown := millrace.project_started(v_stage, v_claim.entity_ids);
    -- A user's trigger may have ended one of them there and then.
    if v_filled.kept > (
        select count(*)
        from millrace.attempts a
        where a.id = any (v_claim.attempt_ids) and a.state = 'started') then
      v_filled := millrace.held_batch(v_stage, v_claim.token, v_claim.attempt_ids,
        millrace.batch_bytes(p_call.batch_bytes));
    end if;
    v_batch := v_filled.batch;
    -- A full claim with more behind it: that is how a stage scales out. One that must be alone
    -- fills its host.
    if (v_claim.taken >= p_limit or v_cut or (v_claim.items[1]).isolated)
      and millrace.may_scale_out(v_stage) then
      v_wake := v_wake || v_stage.id;
    end if;
  end if;
  update millrace.workers w
  set last_seq = p_seq, last_token = v_claim.token, heartbeat_at = millrace.now(), left_at = null,
    leave_tries = case when v_claim.token is null then w.leave_tries else 0 end
  where w.id = (p_call.worker).id;
  if cardinality(v_wake) > 0 then
    v_wake := millrace.stages_to_wake(v_wake, v_stage.id);
  end if;
  return millrace.claim_answer(p_call,
    case when not p_call.open then 'refused' when v_claim.token is null then 'empty'
      else 'working' end,
    case when not p_call.open then 'the stage or its pipeline is switched off' end,
    v_batch, v_wake, p_verdicts, v_claim.wait_ms, v_cut);
end
$$;

-- Answers a call that a worker repeats, since it may not have heard the first: with the same batch,
-- and rather a wake-up too many.
create or replace function millrace.repeat_answer(p_call millrace.call, p_verdicts json)
returns json
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages := p_call.stage;
  v_token uuid := (p_call.worker).last_token;
  v_held record;
begin
  v_held := millrace.held_batch(v_stage, v_token,
    (select c.attempt_ids from millrace.claims c where c.token = v_token),
    millrace.batch_bytes(p_call.batch_bytes));
  update millrace.workers w set heartbeat_at = millrace.now() where w.id = (p_call.worker).id;
  return millrace.claim_answer(p_call, case when v_held.kept = 0 then 'empty' else 'working' end,
    'repeated answer', v_held.batch, millrace.followers_with_work(v_stage.id), p_verdicts);
end
$$;

-- Lists the stages right after this one that have ready work.
create or replace function millrace.followers_with_work(p_stage_id int) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select distinct vs.stage_id
    from millrace.version_stages vs
    where p_stage_id = any (vs.needs) and millrace.has_ready_work(vs.stage_id));
end
$$;

-- Claims for the next call of a worker, or repeats the answer to its last. The next number is a new
-- call, the last one a repeat; anything else is an error.
create or replace function millrace.answer_in_sequence(
  p_call millrace.call, p_seq int, p_limit int, p_verdicts json, p_ready int[]
) returns json
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_last_seq int := (p_call.worker).last_seq;
begin
  if p_seq = v_last_seq then
    return millrace.repeat_answer(p_call, p_verdicts);
  elsif p_seq is distinct from v_last_seq + 1 then
    raise exception 'p_seq is %, but the last call of this worker was %',
      coalesce(p_seq::text, 'null'), v_last_seq
      using errcode = 'MR006', hint = 'Count the claim and complete calls of a worker from 1 and '
        'repeat a number only to repeat a call.';
  end if;
  return millrace.claim_next(p_call, p_seq, p_limit, p_verdicts, p_ready);
end
$$;

-- Adding children to a fan-out: items get runs, new ones or those that their rows have already

-- Cancels what abandoned fan-outs left running on these rows. Raises MR004 when a row is a child of
-- another parent that still waits for it.
create or replace function millrace.clear_the_way(
  p_fan_out millrace.fan_outs, p_entity_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other record;
begin
  select r.entity_id, f.run_id into v_other
  from millrace.runs r
  join millrace.fan_outs f on f.id = r.fan_out_id
  where r.pipeline_id = p_fan_out.child_pipeline_id
    and r.entity_id = any (p_entity_ids)
    and r.status = 'running'
    and r.fan_out_id <> p_fan_out.id
    and f.state = 'open'
  limit 1;
  if found then
    raise exception 'row % is a child of run % already', v_other.entity_id, v_other.run_id
      using errcode = 'MR004',
        hint = 'A row has one live run a pipeline: let that one finish, or cancel it, '
          'then retry this run.';
  end if;
  perform millrace.cancel_given_up(p_fan_out.child_pipeline_id, p_entity_ids);
end
$$;

-- Makes live runs of these rows, which no parent waits for, children of this fan-out; returns how
-- many. They began by themselves, or are late children. What they have done already was tallied for
-- nobody, so the children are counted anew.
create or replace function millrace.adopt_runs(
  p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]
) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count int;
begin
  with adopted as (
    update millrace.runs r
    set fan_out_id = p_fan_out.id, item_key = i.key,
      metadata_id = case when c.metadata_column is null then o.metadata_id else r.metadata_id end
    from unnest(p_item_keys, p_entity_ids) i(key, entity_id), millrace.pipelines c, millrace.runs o
    where c.id = p_fan_out.child_pipeline_id
      and o.id = p_fan_out.run_id
      and r.pipeline_id = p_fan_out.child_pipeline_id
      and r.entity_id = i.entity_id
      and r.status = 'running'
      and r.fan_out_id is distinct from p_fan_out.id
      and not exists (
        select from millrace.runs o
        where o.fan_out_id = p_fan_out.id and o.item_key = i.key offset 0)
    returning r.id
  ), dropped as (
    -- What they had before: no part of a statement sees what another part writes.
    insert into millrace.dropped_metadata (metadata_id)
    select distinct r.metadata_id
    from adopted a
    join millrace.runs r on r.id = a.id
    where r.metadata_id is not null
  )
  select count(*) into v_count from adopted;
  if v_count > 0 then
    insert into millrace.child_tallies (fan_out_id, recount) values (p_fan_out.id, true);
  end if;
  return v_count;
end
$$;

-- Gives a run to each of the items that has none in this fan-out: adopts one that is live, or makes
-- one. Returns the new runs, and how many joined the fan-out in all.
create or replace function millrace.add_child_runs(
  p_fan_out millrace.fan_outs,
  p_item_keys text[],
  p_entity_ids text[],
  out added bigint[],
  out joined int
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_adopted int := 0;
  v_new record;
  v_copied record;
begin
  if exists (
    select
    from unnest(p_entity_ids) i(entity_id)
    cross join lateral (
      select
      from millrace.runs r
      where r.pipeline_id = p_fan_out.child_pipeline_id
        and r.entity_id = i.entity_id
        and r.status = 'running'
        and r.fan_out_id is distinct from p_fan_out.id
      offset 0) r) then
    perform millrace.clear_the_way(p_fan_out, p_entity_ids);
    v_adopted := millrace.adopt_runs(p_fan_out, p_item_keys, p_entity_ids);
  end if;
  select coalesce(array_agg(i.key), '{}') as keys,
    coalesce(array_agg(i.entity_id), '{}') as entity_ids
  into v_new
  from unnest(p_item_keys, p_entity_ids) i(key, entity_id)
  where not exists (
    -- "offset 0" keeps it a look-up for each item: as a join it would read all children again.
    select from millrace.runs o
    where o.fan_out_id = p_fan_out.id and o.item_key = i.key offset 0);
  v_copied := millrace.copy_metadata(p_fan_out.child_pipeline_id, v_new.entity_ids);
  perform millrace.refuse_metadata(v_copied.faults);
  with made as (
    insert into millrace.runs (pipeline_id, version_id, entity_id, trace_id, fan_out_id, item_key,
      priority, metadata_id, created_at)
    select c.id, c.current_version_id, i.entity_id, r.trace_id, p_fan_out.id, i.key, r.priority,
      case when c.metadata_column is null then r.metadata_id else i.metadata_id end, millrace.now()
    from unnest(v_new.keys, v_new.entity_ids, v_copied.ids) i(key, entity_id, metadata_id),
      millrace.pipelines c, millrace.runs r
    where c.id = p_fan_out.child_pipeline_id and r.id = p_fan_out.run_id
    returning id
  )
  select coalesce(array_agg(m.id order by m.id), '{}') into added from made m;
  joined := v_adopted + cardinality(added);
end
$$;

-- Starts runs for the items that have none in this fan-out; returns the stages with work.
create or replace function millrace.add_children(
  p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_runs record;
  v_spawned int;
begin
  perform millrace.check_rows_differ(p_fan_out, p_item_keys, p_entity_ids);
  v_runs := millrace.add_child_runs(p_fan_out, p_item_keys, p_entity_ids);
  if v_runs.joined = 0 then
    return '{}';
  end if;
  -- What comes after a predecessor's last chunk opens the total again, until this worker's own last
  -- chunk.
  update millrace.fan_outs f
  set total = null,
    spawned = f.spawned + v_runs.joined,
    first_number = least(f.first_number,
      (select min(n) from unnest(millrace.item_numbers(p_item_keys)) n))
  where f.id = p_fan_out.id
  returning f.spawned into v_spawned;
  if v_spawned > 100000 then
    raise exception 'the fan-out has % children, but one may have at most 100000', v_spawned
      using errcode = 'MR002', hint = 'Spawn groups, whose runs spawn their members.';
  end if;
  return millrace.begin_roots(p_fan_out.child_pipeline_id, v_runs.added);
end
$$;

-- Adopting rows: what waits at the gates

-- Locks rows that show a value, that nobody holds and that have no live run, in the order of their
-- keys.
create or replace function millrace.lock_waiting(
  p_pipeline millrace.pipelines, p_value text, p_limit int
) returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_keys text[];
begin
  execute format($q$
    select array_agg(k.key order by k.place)
    from (
      select t.key, row_number() over () as place
      from (
        select e.%1$I::text as key
        from %2$s e
        where e.%3$I = $1::%4$s
        order by e.%1$I
        limit $2
        for no key update skip locked) t) k$q$,
    p_pipeline.entity_key, p_pipeline.entity_table, p_pipeline.status ->> 'column',
    millrace.status_type(p_pipeline))
  into v_keys
  using p_value, p_limit;
  return array(
    select k.key
    from unnest(v_keys) with ordinality k(key, place)
    where not exists (
      select
      from millrace.runs r
      where r.entity_id = k.key
        and r.pipeline_id = p_pipeline.id
        and r.status = 'running')
    order by k.place);
end
$$;

create or replace function millrace.begin(p_pipeline text, p_value text, p_limit int)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines := millrace.adopting_pipeline(p_pipeline);
  v_stage_id int := (
    select s.id
    from millrace.shown_stages(v_pipeline.current_version_id) s
    where s.shows ->> 'enter' = p_value
    order by s.place
    limit 1);
  v_keys text[];
begin
  if v_stage_id is null then
    raise exception 'p_value is %, at which no layer of pipeline % is entered',
      coalesce(p_value, 'null'), p_pipeline
      using errcode = 'MR002', hint = coalesce((
        select 'Rows wait at: ' || string_agg(distinct s.shows ->> 'enter', ', ') || '.'
        from millrace.shown_stages(v_pipeline.current_version_id) s), 'It has no layers.');
  elsif p_limit is null or p_limit not between 1 and 100000 then
    raise exception 'p_limit is %, but must be from 1 to 100000', coalesce(p_limit::text, 'null')
      using errcode = 'MR002', hint = 'It is how many rows begin now.';
  end if;
  v_keys := millrace.lock_waiting(v_pipeline, p_value, p_limit);
  if cardinality(v_keys) > 0 then
    perform millrace.queue_stage(v_pipeline.id, v_stage_id, v_keys, v_keys,
      p_by_name => false, p_done_before => v_stage_id);
    perform millrace.show_status(v_pipeline.id, v_keys);
  end if;
  return cardinality(v_keys);
end
$$;

-- Adopting rows: the old column follows until it is dropped
--
-- Whoever still reads the old status reads there what the new one comes to, and whoever still
-- writes it writes the new one. The trigger depends on both columns, so that dropping the old one,
-- with cascade, drops the trigger too.

-- Says whether an old value means a value of the pipeline, by the rows that were adopted so.
create or replace function millrace.old_means(p_pipeline_id int, p_old text, p_value text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from millrace.adopted_values v
    where v.pipeline_id = p_pipeline_id
      and v.old_value = p_old
      and v.value = p_value);
end
$$;

-- Says what the old column shows for a value: the old value that means it, else the one that means
-- the nearest value before it, failures and endings by themselves, else the first there is. Of
-- several it is what most rows had.
create or replace function millrace.old_value_of(p_pipeline_id int, p_value text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select v.old_value
    from millrace.adopted_values v
    join millrace.status_values o on o.pipeline_id = v.pipeline_id and o.value = v.value
    join millrace.status_values n on n.pipeline_id = v.pipeline_id and n.value = p_value
    where v.pipeline_id = p_pipeline_id
      and v.old_value <> ''
    order by o.is_terminal = n.is_terminal desc, o.sort_order <= n.sort_order desc,
      abs(o.sort_order - n.sort_order), v.rows desc, v.old_value
    limit 1);
end
$$;

-- Says where a row comes to stand that somebody gave an old value, which the function has made a
-- value of. Raises MR005 where it means none.
create or replace function millrace.value_meant(p_pipeline_id int, p_old text, p_value text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_value text := coalesce(p_value, (
    select a.otherwise
    from millrace.adoptions a
    where a.pipeline_id = p_pipeline_id));
  v_lands text := (
    select l.lands
    from millrace.landings(p_pipeline_id) l
    where l.value = v_value);
  v_adopted record;
begin
  if v_lands is null then
    select a.old_column, a.value_function, p.name, p.status ->> 'column' as status
    into v_adopted
    from millrace.adoptions a
    join millrace.pipelines p on p.id = a.pipeline_id
    where a.pipeline_id = p_pipeline_id;
    raise exception '% was set to %, which means no value of pipeline %',
      v_adopted.old_column, quote_nullable(p_old), v_adopted.name
      using errcode = 'MR005', hint = format(
        'Write %s instead, or let %s say what it means.', v_adopted.status,
        v_adopted.value_function);
  end if;
  return v_lands;
end
$$;

-- Creates the __adopted function of a pipeline with its trigger. It comes before those that note
-- since when a value stands, by its name. A row that has not been adopted yet is left to adopt(). A
-- trigger waits for whoever writes the table, and whoever would write it waits for that: so it is
-- made soon or not now.
create or replace function millrace.write_follower(
  p_pipeline millrace.pipelines, p_old_column text, p_function text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $write$
declare
  v_status text := p_pipeline.status ->> 'column';
begin
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' and new.%2$I is null and new.%3$I is not null
      or tg_op = 'UPDATE' and new.%2$I is not distinct from old.%2$I
        and old.%2$I is not null and new.%3$I is distinct from old.%3$I then
    new.%2$I := millrace.value_meant(%4$s, new.%3$I::text, %5$s::text);
  elsif new.%2$I is not null and (tg_op = 'INSERT' or new.%2$I is distinct from old.%2$I)
      and not millrace.old_means(%4$s, new.%3$I::text, new.%2$I::text) then
    new.%3$I := millrace.old_value_of(%4$s, new.%2$I::text);
  end if;
  return new;
end $$;
create or replace trigger %6$I before insert or update of %2$I, %3$I on %7$s
  for each row execute function millrace.%1$I()$f$,
    p_pipeline.name || '__adopted', v_status, p_old_column, p_pipeline.id,
    millrace.value_call(p_pipeline, p_old_column, p_function, 'new'),
    'millrace_' || p_pipeline.name || '_adopted', p_pipeline.entity_table);
  execute format('revoke all on function millrace.%I() from public',
    p_pipeline.name || '__adopted');
exception when lock_not_available then
  raise exception 'somebody has been writing to table % for over a second',
    p_pipeline.entity_table
    using errcode = 'MR004', hint = 'Nothing was written; try again shortly.';
end
$write$;

-- Adopting rows: the portions

-- Begins the adoption of a pipeline's rows, or finds the one that is under way. Raises MR004 where
-- that goes by another column or function, and MR005 where a row has no value: before anything is
-- written.
create or replace function millrace.begin_adoption(
  p_pipeline millrace.pipelines, p_old_column text, p_function text, p_else text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_adoption millrace.adoptions;
  v_faulty record;
begin
  -- One at a time, also the first. Not by the pipeline's row: define() holds the table before it.
  lock table millrace.adoptions in share row exclusive mode;
  select a.* into v_adoption
  from millrace.adoptions a
  where a.pipeline_id = p_pipeline.id;
  if v_adoption.ended_at is null and (v_adoption.old_column, v_adoption.value_function)
      <> (p_old_column, p_function) then
    raise exception 'rows of pipeline % are being adopted by % and %', p_pipeline.name,
      v_adoption.old_column, v_adoption.value_function
      using errcode = 'MR004', hint = 'Go on by the same, or call adopt() until it returns no row.';
  elsif v_adoption.pipeline_id is not null
      and (v_adoption.old_column, v_adoption.value_function) = (p_old_column, p_function) then
    update millrace.adoptions a
    set otherwise = p_else
    where a.pipeline_id = p_pipeline.id
      and a.otherwise is distinct from p_else;
    return;
  end if;
  delete from millrace.adopted_values v where v.pipeline_id = p_pipeline.id;
  delete from millrace.adoptions a where a.pipeline_id = p_pipeline.id;
  insert into millrace.adopted_values (pipeline_id, old_value, value, rows)
  select p_pipeline.id, coalesce(c.old_value, ''), coalesce(c.lands, ''), sum(c.rows)
  from millrace.count_unadopted(p_pipeline, p_old_column,
    millrace.value_call(p_pipeline, p_old_column, p_function, 'e'), p_else) c
  group by 2, 3;
  select count(*) as old_values, sum(v.rows) as rows, min(v.old_value) as old_value into v_faulty
  from millrace.adopted_values v
  where v.pipeline_id = p_pipeline.id
    and v.value = '';
  if v_faulty.old_values > 0 then
    raise exception '% old values of % rows have no value in pipeline %: %, …',
      v_faulty.old_values, v_faulty.rows, p_pipeline.name, quote_literal(v_faulty.old_value)
      using errcode = 'MR005', hint = 'Let the function say one, or name it in p_else; nothing was '
        'written. The dry run lists them.';
  end if;
  insert into millrace.adoptions (pipeline_id, old_column, value_function, otherwise)
  values (p_pipeline.id, p_old_column, p_function, p_else);
  perform millrace.write_follower(p_pipeline, p_old_column, p_function);
end
$$;

-- Takes the next rows that have no value yet, in the order of their keys: their keys, old values,
-- values, and where they come to stand. A row that somebody holds is left to the next lap.
create or replace function millrace.take_unadopted(
  p_pipeline millrace.pipelines, p_call text, p_adoption millrace.adoptions, p_limit int
) returns table (key text, old_value text, value text, lands text, stage_id int)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return query execute format($q$
    with taken as materialized (
      select e.%1$I::text as key, e.%2$I::text as old_value, coalesce(%3$s::text, $1) as value
      from %4$s e
      where e.%5$I is null%6$s
      order by e.%1$I
      limit $3
      for no key update skip locked
    ), landing as materialized (
      select l.value, l.lands, l.stage_id from millrace.landings($4) l
    )
    select t.key, t.old_value, t.value, l.lands, l.stage_id
    from taken t
    left join landing l on l.value = t.value$q$,
    p_pipeline.entity_key, p_adoption.old_column, p_call, p_pipeline.entity_table,
    p_pipeline.status ->> 'column',
    case
      when p_adoption.last_key is null then ''
      else format(' and e.%I > $2::%s', p_pipeline.entity_key, millrace.key_type(p_pipeline))
    end)
  using p_adoption.otherwise, p_adoption.last_key, p_limit, p_pipeline.id;
end
$$;

-- Writes the values of rows that the caller has taken, and the first rows of their histories.
create or replace function millrace.write_adopted(
  p_pipeline millrace.pipelines, p_old_column text, p_keys text[], p_old text[], p_lands text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_history jsonb := p_pipeline.status -> 'history';
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_said text;
begin
  -- Old values that came since the adoption began.
  insert into millrace.adopted_values (pipeline_id, old_value, value, rows)
  select distinct p_pipeline.id, t.old, t.value, 0
  from unnest(p_old, p_lands) t(old, value)
  where t.old is not null
  on conflict on constraint adopted_values_pkey do nothing;
  v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
  execute format(
    'update %1$s e set %2$I = t.value::%3$s%4$s '
    'from unnest($1, $2) t(key, value) where e.%5$I = t.key::%6$s',
    p_pipeline.entity_table, p_pipeline.status ->> 'column', millrace.status_type(p_pipeline),
    case when v_history is not null then format(', %I = $3', v_history ->> 'since') else '' end,
    p_pipeline.entity_key, millrace.key_type(p_pipeline))
  using p_keys, p_lands, millrace.now();
  v_said := set_config('millrace.projecting', v_outer, true);
  if v_history is not null then
    execute format(
      'insert into %1$s (%2$I, from_status, to_status, changed_at, changed_by, changes) '
      'select t.key::%3$s, null, t.value::%4$s, $4, $5, '
      'jsonb_build_object($6, jsonb_build_object(''old'', t.old, ''new'', t.value)) '
      'from unnest($1, $2, $3) t(key, old, value) order by t.key::%3$s',
      to_regclass(v_history ->> 'table'), v_history ->> 'key', millrace.key_type(p_pipeline),
      millrace.status_type(p_pipeline))
    using p_keys, p_old, p_lands, millrace.now(), millrace.actor(p_pipeline.entity_table),
      p_old_column;
  end if;
end
$$;

-- Begins what the values of adopted rows begin, with all that comes before it taken as done.
create or replace function millrace.begin_adopted(
  p_pipeline millrace.pipelines, p_keys text[], p_stage_ids int[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
begin
  for v_stage in
    select t.stage_id, array_agg(t.key order by t.place) as keys
    from unnest(p_keys, p_stage_ids) with ordinality t(key, stage_id, place)
    where t.stage_id is not null
    group by t.stage_id
    order by t.stage_id
  loop
    perform millrace.queue_stage(p_pipeline.id, v_stage.stage_id, v_stage.keys, v_stage.keys,
      p_by_name => true, p_done_before => v_stage.stage_id);
    perform millrace.show_status(p_pipeline.id, v_stage.keys);
  end loop;
end
$$;

-- Adopts the next portion of rows, and begins what their values begin; tells of each old value how
-- many it were. A row that has a run already shows that instead.
create or replace function millrace.adopt_portion(
  p_pipeline millrace.pipelines, p_call text, p_limit int
) returns table (
  old_value text, rows bigint, value text, lands text, begins text, problem text
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_taken record := millrace.next_unadopted(p_pipeline, p_call, p_limit);
  v_stray text;
begin
  if v_taken.keys is null then
    return query select * from millrace.end_adoption(p_pipeline);
    return;
  end if;
  v_stray := (
    select min(t.key)
    from unnest(v_taken.keys, v_taken.lands) t(key, lands)
    where t.lands is null);
  if v_stray is not null then
    raise exception 'row % of pipeline % has no value', v_stray, p_pipeline.name
      using errcode = 'MR005',
        hint = 'Let the function say one, or name it in p_else. The dry run lists such rows.';
  end if;
  perform millrace.write_adopted(p_pipeline, v_taken.old_column, array_agg(t.key),
    array_agg(t.old), array_agg(t.lands))
  from unnest(v_taken.keys, v_taken.old, v_taken.lands, v_taken.has_run) t(key, old, lands, has_run)
  where not t.has_run
  having count(*) > 0;
  perform millrace.show_status(p_pipeline.id, array(
    select t.key from unnest(v_taken.keys, v_taken.has_run) t(key, has_run) where t.has_run));
  perform millrace.begin_adopted(p_pipeline, v_taken.keys, array(
    select case when not t.has_run then t.stage_id end
    from unnest(v_taken.stage_ids, v_taken.has_run) with ordinality t(stage_id, has_run, place)
    order by t.place));
  update millrace.adoptions a
  set last_key = v_taken.keys[cardinality(v_taken.keys)],
    adopted = a.adopted + cardinality(v_taken.keys),
    ended_at = null
  where a.pipeline_id = p_pipeline.id;
  return query
    select t.old, count(*), t.value, t.lands, s.name, null::text
    from unnest(v_taken.keys, v_taken.old, v_taken.codes, v_taken.lands, v_taken.stage_ids)
      t(key, old, value, lands, stage_id)
    left join millrace.stages s on s.id = t.stage_id
    group by 1, 3, 4, 5
    order by 2 desc, 1;
end
$$;

-- Takes the next portion of rows without a value; behind the last key once more from the first one,
-- for rows that somebody held or added. keys is null when it finds none.
create or replace function millrace.next_unadopted(
  p_pipeline millrace.pipelines, p_call text, p_limit int, out old_column text, out keys text[],
  out old text[], out codes text[], out lands text[], out stage_ids int[], out has_run boolean[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_adoption millrace.adoptions;
begin
  select a.* into v_adoption
  from millrace.adoptions a
  where a.pipeline_id = p_pipeline.id;
  for v_lap in 1 .. 2 loop
    select v_adoption.old_column, array_agg(t.key order by t.place),
      array_agg(t.old_value order by t.place), array_agg(t.value order by t.place),
      array_agg(t.lands order by t.place), array_agg(t.stage_id order by t.place),
      array_agg(exists (
        select
        from millrace.runs r
        where r.entity_id = t.key and r.pipeline_id = p_pipeline.id) order by t.place)
    into old_column, keys, old, codes, lands, stage_ids, has_run
    from (
      select k.*, row_number() over () as place
      from millrace.take_unadopted(p_pipeline, p_call, v_adoption, p_limit) k) t;
    exit when keys is not null or v_adoption.last_key is null;
    v_adoption.last_key := null;
  end loop;
end
$$;

-- Ends the adoption of a pipeline's rows once each has a value; tells of those that are left since
-- somebody holds them.
create or replace function millrace.end_adoption(p_pipeline millrace.pipelines)
returns table (
  old_value text, rows bigint, value text, lands text, begins text, problem text
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  execute format('select count(*) from %s e where e.%I is null', p_pipeline.entity_table,
    p_pipeline.status ->> 'column')
  into rows;
  if rows > 0 then
    problem := 'somebody holds them: call again';
    return next;
    return;
  end if;
  update millrace.adoptions a
  set ended_at = millrace.now()
  where a.pipeline_id = p_pipeline.id
    and a.ended_at is null;
end
$$;

-- Adopting rows that were there before the pipeline
--
-- A table had a status of its own. adopt() gives each of its rows a value of the new status column,
-- as a function of the user's says; a dry run tells first what that comes to. It works in portions,
-- each a call of its own, so that no row is locked for longer than one takes. A row without a value
-- has not been adopted; so a portion that was lost is done again.
--
-- Nobody holds what was in work. So a value of work in progress becomes the value at which its
-- layer is entered, where rows wait until begin() or a person begins them. A question is asked, and
-- a stage without a layer begins, when its row is adopted: the dry run says how many.

-- Says of each value of a pipeline where a row that is adopted with it comes to stand, and which
-- stage begins there, if any.
create or replace function millrace.landings(p_pipeline_id int)
returns table (value text, lands text, stage_id int)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with version as (
    select p.current_version_id as id
    from millrace.pipelines p
    where p.id = p_pipeline_id
  ), stage as materialized (
    select s.*
    from version v
    cross join lateral millrace.shown_stages(v.id) s
  ), rest as materialized (
    select r.value
    from version v
    cross join lateral millrace.resting_values(v.id) r
    where r.live_id is null
      -- What a question's answer readies begins, where a run might also end with the answer.
      and not exists (
        select
        from stage s
        where s.ready = r.value
          and s.shows ->> 'completed' <> r.value)
    union
    select s.shows ->> 'enter' from stage s
  ), place as (
    select s.place, s.id, s.ready, s.shows ->> 'enter' as gate, l.value, l.value = s.ready as first
    from stage s
    cross join lateral unnest(
      millrace.live_values(s.shows) || array[s.shows ->> 'completed', s.shows ->> 'leave']
    ) l(value)
    where l.value is not null
  )
  select v.value, coalesce(l.gate, l.ready, v.value), case when l.gate is null then l.id end
  from millrace.status_values v
  left join lateral (
    select p.*
    from place p
    where p.value = v.value
      and v.value not in (select r.value from rest r where r.value is not null)
    order by p.gate is null, p.first desc, p.place
    limit 1) l on true
  where v.pipeline_id = p_pipeline_id
    and not v.retired
$$;

-- Finds the user's function that says which value a row has, and writes the call of it on a row
-- named so: it takes the row, or the old value alone. Raises MR002 where there is none.
create or replace function millrace.value_call(
  p_pipeline millrace.pipelines, p_old_column text, p_function text, p_row text
) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type text := (
    select format_type(a.atttypid, a.atttypmod)
    from pg_attribute a
    where a.attrelid = p_pipeline.entity_table
      and a.attname = p_old_column
      and a.attnum > 0
      and not a.attisdropped);
begin
  if v_type is null then
    raise exception 'p_old_column is %, which is no column of %',
      coalesce(p_old_column, 'null'), p_pipeline.entity_table
      using errcode = 'MR002', hint = 'Name the column of the old status.';
  elsif p_old_column = p_pipeline.status ->> 'column' then
    raise exception 'p_old_column is %, which is the status column itself', p_old_column
      using errcode = 'MR002', hint = 'Name the column of the old status.';
  elsif millrace.function_named(p_function, p_pipeline.entity_table::text) is not null then
    return format('%s(%s)', millrace.function_named(
      p_function, p_pipeline.entity_table::text)::regproc, p_row);
  elsif millrace.function_named(p_function, v_type) is not null then
    return format('%s(%s.%I)', millrace.function_named(p_function, v_type)::regproc,
      p_row, p_old_column);
  end if;
  raise exception 'p_value_function is %, which is no function of a row of % or of one %',
    coalesce(p_function, 'null'), p_pipeline.entity_table, v_type
    using errcode = 'MR002', hint = format(
      'Create one, schema.name(%s), that returns the new value of a row, and null where it knows '
      'none.', p_pipeline.entity_table);
end
$$;

-- Writes what the conditions of given stages read of a row e, as expressions to count rows by, and
-- the jsonb document that they make, over rows c that have them. Of a column that is only compared
-- with null that much is told: a text need not be fetched, and rows that are alike in this are
-- counted together.
create or replace function millrace.given_expressions(
  p_pipeline millrace.pipelines, out counted text, out document text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(string_agg(', ' || case
      when c.name is null then 'to_jsonb(e)'
      when c.only_null then format('case when e.%I is not null then true end', c.name)
      else format('to_jsonb(e.%I)', c.name)
    end || ' as given_' || c.place, '' order by c.place), ''),
    format('jsonb_build_object(%s)', string_agg(
      format('%L, c.given_%s', coalesce(c.name, '*'), c.place), ', ' order by c.place))
  from (
    select n.names[2] as name, row_number() over (order by n.names[2]) as place,
      bool_and(regexp_count(vs.given_path::text, '\."' || n.names[2] || '"')
        = regexp_count(vs.given_path::text, '\."' || n.names[2] || '" [!=]= null')) as only_null
    from millrace.version_stages vs
    cross join lateral millrace.paths_of(vs.given_path) n
    where vs.version_id = p_pipeline.current_version_id
      and vs.given_path is not null
    group by 1) c
$$;

-- Names the stages before a value of which a row has not the output, as far as they say what that
-- is. asked: the row as given_expression() tells of it.
create or replace function millrace.stages_lacking(
  p_pipeline millrace.pipelines, p_value text, p_asked jsonb
) returns text[]
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with stage as materialized (
    select * from millrace.shown_stages(p_pipeline.current_version_id)
  ), reached as (
    -- Of what a stage shows: those before it; of what stands after the last of a layer: all of it.
    select min(case
      when p_value in (s.ready, s.shows ->> 'enter')
        or p_value = any (millrace.live_values(s.shows)) then s.place
      when p_value in (s.shows ->> 'completed', s.shows ->> 'leave') then s.place + 1
    end) as place
    from stage s
  )
  select array(
    select s.name
    from stage s
    join millrace.version_stages vs
      on vs.version_id = p_pipeline.current_version_id and vs.stage_id = s.id
    cross join reached r
    where s.place < r.place
      and vs.given_path is not null
      and not coalesce(jsonb_path_match_tz(
        jsonb_build_object('entity', coalesce(p_asked -> '*', p_asked)), vs.given_path, '{}', true),
        false)
    order by s.place)
$$;

-- Counts the rows that have no value yet, by old value and what becomes of them.
create or replace function millrace.count_unadopted(
  p_pipeline millrace.pipelines, p_old_column text, p_call text, p_else text
) returns table (
  old_value text, rows bigint, value text, lands text, begins text, lacking bigint, lacks text,
  problem text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_given record := millrace.given_expressions(p_pipeline);
begin
  return query execute format($q$
    with alike as materialized (
      select e.%1$I as old, %2$s as new%3$s, count(*) as rows
      from %4$s e
      where e.%5$I is null
      group by %7$s
    ), counted as materialized (
      select c.old::text as old_value, coalesce(c.new::text, $1) as value, %6$s as asked, c.rows
      from alike c
    ), landing as materialized (
      select l.value, l.lands, l.stage_id from millrace.landings($3) l
    ), told as (
      select c.*, millrace.stages_lacking($2, l.lands, c.asked) as lacking, l.lands, l.stage_id
      from counted c
      left join landing l on l.value = c.value
    )
    select t.old_value, sum(t.rows)::bigint, t.value, t.lands, s.name,
      coalesce(sum(t.rows) filter (where t.lacking <> '{}'), 0)::bigint,
      string_agg(distinct nullif(array_to_string(t.lacking, ', '), ''), '; '),
      case
        when t.value is null then 'it has no value: let the function say one, or name it in p_else'
        when t.lands is null then format('%%s is no value of pipeline %%s', t.value, $4)
      end
    from told t
    left join millrace.stages s on s.id = t.stage_id
    group by t.old_value, t.value, t.lands, s.name
    order by 2 desc, 1$q$,
    p_old_column, p_call, v_given.counted, p_pipeline.entity_table,
    p_pipeline.status ->> 'column', v_given.document, (
      select string_agg(n::text, ', ')
      from generate_series(1, 2 + regexp_count(v_given.counted, ' as given_')) n))
  using p_else, p_pipeline, p_pipeline.id, p_pipeline.name;
end
$$;

-- Looks up a pipeline whose rows may be adopted. Raises MR002 or MR003.
create or replace function millrace.adopting_pipeline(p_pipeline text) returns millrace.pipelines
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.name = p_pipeline;
  if not found then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = 'Define it first.';
  elsif v_pipeline.projection <> 'status' then
    raise exception 'pipeline % has the projection %, not status', p_pipeline,
      v_pipeline.projection
      using errcode = 'MR002',
        hint = 'Only rows that show their status in one column can be adopted.';
  end if;
  return v_pipeline;
end
$$;

create or replace function millrace.adopt(
  p_pipeline text,
  p_old_column text,
  p_value_function text,
  p_dry_run boolean default true,
  p_else text default null,
  p_portion int default 500
) returns table (
  old_value text, rows bigint, value text, lands text, begins text, lacking bigint, lacks text,
  problem text
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines := millrace.adopting_pipeline(p_pipeline);
  v_call text := millrace.value_call(v_pipeline, p_old_column, p_value_function, 'e');
begin
  if p_else is not null and not exists (
      select from millrace.landings(v_pipeline.id) l where l.value = p_else) then
    raise exception 'p_else is %, which is no value of pipeline %', p_else, p_pipeline
      using errcode = 'MR002', hint = 'Name one of millrace.status_values, or leave it out.';
  elsif p_dry_run is not false then
    return query
      select c.*
      from millrace.count_unadopted(v_pipeline, p_old_column, v_call, p_else) c;
    return;
  end if;
  if p_portion is null or p_portion not between 1 and 100000 then
    raise exception 'p_portion is %, but must be from 1 to 100000',
      coalesce(p_portion::text, 'null')
      using errcode = 'MR002', hint = 'Some hundred rows take well under a second.';
  end if;
  perform millrace.begin_adoption(v_pipeline, p_old_column, p_value_function, p_else);
  return query
    select a.old_value, a.rows, a.value, a.lands, a.begins, null::bigint, null::text, a.problem
    from millrace.adopt_portion(v_pipeline, v_call, p_portion) a;
end
$$;

-- Agents: the turns of a conversation with a model
--
-- A stage of kind `agent` takes many turns: the model is asked, the tools it calls are run, and
-- their outputs go back to it. The worker records each turn as soon as it is over, with
-- millrace_checkpoint(), so that a crash costs one turn: the next attempt reads the conversation
-- with millrace_turns() and goes on behind its last turn.
--
-- An execution of a stage is the chain of an attempt and its automatic retries: they share one
-- conversation and its limits. A reset, or a retry that a person asks for, begins a new execution
-- with an empty conversation. The number of its first attempt names an execution; for each attempt
-- of the chain that is number - retry_count.
--
-- A checkpoint locks the attempt and, after its worker, nothing else that anybody may hold for
-- long. Only who ends or deletes that attempt can hold it: then the answer is `busy` and the worker
-- asks again, since what it has done may be void.

-- Raises MR002 with the place, the value found and the remedy unless these are turns that can be
-- recorded.
create or replace function millrace.check_turns(p_turns jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault record;
begin
  if p_turns is null or jsonb_typeof(p_turns) <> 'array' then
    raise exception 'p_turns is %, but must be a list', coalesce(jsonb_typeof(p_turns), 'null')
      using errcode = 'MR002', hint = 'Send a JSON list of turns.';
  end if;
  if jsonb_array_length(p_turns) not between 1 and 100 then
    raise exception 'p_turns has % turns, but must have 1 to 100', jsonb_array_length(p_turns)
      using errcode = 'MR002', hint = 'Send each turn as soon as it is over.';
  end if;
  select t.place, f.fault, f.hint into v_fault
  from jsonb_array_elements(p_turns) with ordinality t(turn, place)
  cross join lateral millrace.turn_fault(t.turn, p_turns #>> '{0,seq}', t.place - 1) f
  where f.fault is not null
  order by t.place
  limit 1;
  if found then
    raise exception 'p_turns[%]%', v_fault.place - 1, v_fault.fault
      using errcode = 'MR002', hint = v_fault.hint;
  end if;
end
$$;

-- Says what is wrong with a turn, and the remedy; null when it can be recorded. p_first is the
-- number of the first turn sent, p_place how many turns came after that one.
create or replace function millrace.turn_fault(
  p_turn jsonb, p_first text, p_place bigint, out fault text, out hint text
)
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_number constant text := '^[1-9][0-9]{0,8}$';
  v_seq text := p_turn ->> 'seq';
  v_kind text := p_turn ->> 'kind';
  v_call text := coalesce(jsonb_typeof(p_turn -> 'call_id'), 'null');
  v_content text := coalesce(jsonb_typeof(p_turn -> 'content'), 'null');
  v_usage text := coalesce(jsonb_typeof(p_turn -> 'usage'), 'null');
begin
  if jsonb_typeof(p_turn) <> 'object' then
    fault := format(' is %s, but must be an object', jsonb_typeof(p_turn));
    hint := 'Send {seq, kind, call_id, content, usage}.';
  elsif coalesce(v_seq !~ v_number, true) then
    fault := format('.seq is %s, but must be a whole number from 1', coalesce(v_seq, 'null'));
    hint := 'Count the turns of a conversation from 1.';
  elsif p_first ~ v_number and v_seq::int <> p_first::int + p_place then
    fault := format('.seq is %s, which does not follow the turn before', v_seq);
    hint := 'Send turns in order and without a gap.';
  elsif coalesce(v_kind, '') not in ('model', 'tool') then
    fault := format('.kind is %s, but must be model or tool', coalesce(v_kind, 'null'));
    hint := 'Say who took the turn.';
  elsif (v_call = 'string') <> (v_kind = 'tool') then
    fault := format('.call_id is %s, but must be a string for a tool and null for the model',
      coalesce(p_turn ->> 'call_id', 'null'));
    hint := 'Name the call that the tool answers.';
  elsif v_content <> 'object' then
    fault := format('.content is %s, but must be an object', v_content);
    hint := 'Send what was said.';
  elsif v_usage not in ('object', 'null') then
    fault := format('.usage is %s, but must be an object or null', v_usage);
    hint := 'Send {input_tokens, output_tokens, cost_usd}.';
  elsif octet_length(p_turn::text) > 1048576 then
    fault := format(' has %s bytes, but a turn may have 1048576', octet_length(p_turn::text));
    hint := 'Let the tool answer with less, or with the location of a file in Storage.';
  end if;
end
$$;

-- Says why a worker that shows this token may not speak for the attempt any more; null when it may.
create or replace function millrace.void_reason(p_attempt millrace.attempts, p_token uuid)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_attempt.state = 'started' and p_attempt.token = p_token then
    return null;
  end if;
  return millrace.stale_reason(p_attempt.state, p_attempt.error);
end
$$;

-- Adds turns to the conversation of a locked attempt; those whose number is taken already change
-- nothing.
create or replace function millrace.append_turns(
  p_attempt millrace.attempts, p_turns jsonb, out added int, out next_seq int
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_execution int := p_attempt.number - p_attempt.retry_count;
begin
  next_seq := 1 + coalesce((
    select max(t.seq)
    from millrace.turns t
    where t.run_id = p_attempt.run_id
      and t.stage_id = p_attempt.stage_id
      and t.execution = v_execution), 0);
  if (p_turns #>> '{0,seq}')::int > next_seq then
    raise exception 'p_turns[0].seq is %, but the next turn of this conversation is %',
        p_turns #>> '{0,seq}', next_seq
      using errcode = 'MR002',
        hint = 'Read the conversation with millrace_turns() and go on behind its last turn.';
  end if;
  insert into millrace.turns
    (run_id, stage_id, execution, seq, kind, call_id, content, usage, attempt_id, created_at)
  select p_attempt.run_id, p_attempt.stage_id, v_execution, t.seq, t.kind, t.call_id, t.content,
    nullif(t.usage, 'null'), p_attempt.id, millrace.now()
  from jsonb_to_recordset(p_turns)
    as t(seq int, kind text, call_id text, content jsonb, usage jsonb)
  where t.seq >= next_seq;
  get diagnostics added = row_count;
  next_seq := next_seq + added;
  -- Whoever took a turn is no row that always outlives its worker: the count of releases in a row
  -- begins anew.
  if added > 0 and p_attempt.releases > 0 then
    update millrace.attempts a set releases = 0 where a.id = p_attempt.id;
  end if;
end
$$;

-- An agent's worker calls it after every turn, so that a crash costs one turn.
create or replace function public.millrace_checkpoint(
  p_worker uuid, p_attempt bigint, p_token uuid, p_turns jsonb
) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off
set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_attempt millrace.attempts;
  v_reason text;
  v_done record;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_worker is null or p_attempt is null or p_token is null then
    raise exception 'p_worker, p_attempt and p_token must be given'
      using errcode = 'MR002',
        hint = 'Send the worker''s id and the attempt and token that its claim handed over.';
  end if;
  perform millrace.check_turns(p_turns);
  perform from millrace.workers w where w.id = p_worker for update;
  -- Under this lock nobody else can end the attempt, so a turn is recorded before its end or not at
  -- all.
  select a.* into v_attempt
  from millrace.attempts a
  where a.id = p_attempt
  for no key update skip locked;
  if not found and exists (select from millrace.attempts a where a.id = p_attempt) then
    perform public.millrace_renew(p_worker, '{}');
    return jsonb_build_object('status', 'busy',
      'reason', 'another transaction is ending the attempt or has locked it');
  end if;
  v_reason := millrace.void_reason(v_attempt, p_token);
  if v_reason is not null then
    return jsonb_build_object('status', 'stale', 'reason', v_reason);
  end if;
  v_done := millrace.append_turns(v_attempt, p_turns);
  perform public.millrace_renew(p_worker, '{}');
  return jsonb_build_object(
    'status', case when v_done.added > 0 then 'accepted' else 'duplicate' end,
    'next_seq', v_done.next_seq);
end
$$;

-- An agent's worker calls it once, before it asks the model anything.
create or replace function public.millrace_turns(p_worker uuid, p_attempt bigint, p_token uuid)
returns json
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off
set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_attempt millrace.attempts;
  v_reason text;
  v_stage millrace.stages;
  v_execution int;
  v_turns json;
  v_began timestamptz;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_worker is null or p_attempt is null or p_token is null then
    raise exception 'p_worker, p_attempt and p_token must be given'
      using errcode = 'MR002',
        hint = 'Send the worker''s id and the attempt and token that its claim handed over.';
  end if;
  select a.* into v_attempt from millrace.attempts a where a.id = p_attempt;
  v_reason := millrace.void_reason(v_attempt, p_token);
  if v_reason is not null then
    return json_build_object('status', 'stale', 'reason', v_reason);
  end if;
  select s.* into v_stage from millrace.stages s where s.id = v_attempt.stage_id;
  if v_stage.kind <> 'agent' then
    raise exception 'stage % is of kind %, which keeps no conversation', v_stage.name, v_stage.kind
      using errcode = 'MR004',
        hint = 'Set its kind to agent in the pipeline''s definition and push the migration.';
  end if;
  v_execution := v_attempt.number - v_attempt.retry_count;
  select min(a.started_at) into v_began
  from millrace.attempts a
  where a.run_id = v_attempt.run_id
    and a.stage_id = v_attempt.stage_id
    and a.number between v_execution and v_attempt.number;
  -- A released attempt forgets when it was started; its first turn still tells.
  select least(v_began, min(t.created_at) filter (where t.seq = 1)),
    coalesce(json_agg(json_build_object('seq', t.seq, 'kind', t.kind, 'call_id', t.call_id,
      'content', t.content, 'usage', t.usage, 'attempt', t.attempt_id) order by t.seq), '[]')
  into v_began, v_turns
  from millrace.turns t
  where t.run_id = v_attempt.run_id
    and t.stage_id = v_attempt.stage_id
    and t.execution = v_execution;
  return json_build_object('status', 'current', 'execution', v_execution,
    'elapsed_ms', greatest(0, floor(extract(epoch from millrace.now() - v_began) * 1000)),
    'limits', case jsonb_typeof(v_stage.agent) when 'object' then v_stage.agent else '{}' end,
    'turns', v_turns);
end
$$;

-- Deletes the conversations of attempts that were just completed, unless their stage says debug.
-- millrace_complete calls it for agent stages alone, in the transaction that completes them.
create or replace function millrace.drop_turns(p_stage millrace.stages, p_verdicts json)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce((p_stage.agent ->> 'debug')::boolean, false) then
    return;
  end if;
  delete from millrace.turns t
  using json_to_recordset(p_verdicts) as v(attempt bigint, verdict text)
  join millrace.attempts a
    on a.id = v.attempt and a.state = 'completed' and a.stage_id = p_stage.id
  where v.verdict = 'accepted'
    and t.run_id = a.run_id
    and t.stage_id = a.stage_id
    and t.execution = a.number - a.retry_count;
end
$$;

-- Alert bounds: a definition changes how long a stage may take

-- Says when an execution of a stage became ready.
create or replace function millrace.execution_began(
  p_run_id bigint, p_stage_id int, p_execution int
) returns timestamptz
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select a.created_at
    from millrace.attempts a
    where a.run_id = p_run_id
      and a.stage_id = p_stage_id
      and a.number = p_execution);
end
$$;

-- Sets the time at which up to so many open attempts of a stage are late, after its bound was
-- changed; returns how many it found to differ. define() leaves that to the sweep: it holds the
-- entity table, for which those may wait that hold the attempts.
create or replace function millrace.follow_bound(p_stage_id int, p_limit int) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_sla interval := (select s.sla from millrace.stages s where s.id = p_stage_id);
  v_ids bigint[];
begin
  v_ids := array(
    select a.id
    from (
      select o.*
      from millrace.attempts o
      where o.stage_id = p_stage_id
        and o.queue_at is not null
      union all
      select o.*
      from millrace.attempts o
      where o.stage_id = p_stage_id
        and o.deadline_at is not null
    ) a
    cross join lateral (
      select v_sla + case a.retry_count
        when 0 then a.created_at
        else millrace.execution_began(a.run_id, a.stage_id, a.number - a.retry_count)
      end as late_at
    ) d
    where a.late_at is distinct from d.late_at
      -- What was reported stays so, unless it is no longer late.
      and not (a.late_at is null and d.late_at <= v_now and exists (
        select
        from millrace.alerts l
        where l.run_id = a.run_id
          and l.stage_id = a.stage_id
          and l.execution = a.number - a.retry_count
          and l.resolved_at is null))
    limit p_limit);
  with held as (
    select a.id, a.run_id, a.number - a.retry_count as execution
    from millrace.attempts a
    where a.id = any (v_ids)
      and a.state in ('queued', 'started', 'waiting')
    order by a.id
    for no key update skip locked
  )
  update millrace.attempts a
  set late_at = millrace.execution_began(h.run_id, p_stage_id, h.execution) + v_sla
  from held h
  where a.id = h.id;
  return cardinality(v_ids);
end
$$;

-- Applies bounds that a definition gave, changed or dropped to the attempts that are open.
create or replace function millrace.follow_bounds() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
begin
  for v_stage in
    select s.id, s.sla_changed_at
    from millrace.stages s
    where s.sla_changed_at is not null
    order by s.id
  loop
    -- For a minute it looks again: whoever queued while the definition was being committed did so
    -- under the former bound.
    if millrace.follow_bound(v_stage.id, 5000) = 0
       and v_stage.sla_changed_at <= millrace.now() - interval '1 minute' then
      update millrace.stages s
      set sla_changed_at = null
      where s.id in (
        select o.id
        from millrace.stages o
        where o.id = v_stage.id
          and o.sla_changed_at = v_stage.sla_changed_at
        for update skip locked);
    end if;
  end loop;
end
$$;

-- Alerts: a stage that takes longer than it should
--
-- A stage may have a bound (stages.sla): how long after it became ready it should be done, waits
-- and retries included. Its attempts carry the time at which they are late (late_at). A retry takes
-- that of the attempt before it, so it belongs to the whole execution: an attempt with its
-- automatic retries, named by the number of the first. A reset, or a person's retry, begins a new
-- execution.
--
-- Whoever queues, claims or completes does no more than carry the time along. The sweep does all
-- else: it raises one alert an execution, which clears late_at, and resolves it once the execution
-- is over. For that it holds attempts without their runs, but only those that are free, and last of
-- all: it never waits, and whoever ends an attempt waits for its commit at most.

-- Says an interval as a person would, in its two largest units: 1 hour 5 minutes.
create or replace function millrace.in_words(p_interval interval) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_seconds bigint := greatest(floor(extract(epoch from p_interval)), 0);
begin
  return coalesce((
    select string_agg(
      format('%s %s%s', u.n, u.unit, case when u.n > 1 then 's' end), ' ' order by u.place)
    from (
      select o.*
      from (values
        (1, 'day', v_seconds / 86400),
        (2, 'hour', v_seconds / 3600 % 24),
        (3, 'minute', v_seconds / 60 % 60),
        (4, 'second', v_seconds % 60)
      ) o(place, unit, n)
      where o.n > 0
      order by o.place
      limit 2
    ) u), '0 seconds');
end
$$;

-- Picks the alerts whose execution goes on and is older than the bound of today.
create or replace function millrace.still_late(p_alert_ids bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
begin
  return array(
    select l.id
    from millrace.alerts l
    join millrace.stages s on s.id = l.stage_id
    join millrace.attempts f
      on f.run_id = l.run_id and f.stage_id = l.stage_id and f.number = l.execution
    where l.id = any (p_alert_ids)
      and f.created_at + s.sla <= v_now
      and exists (
        select
        from millrace.attempts a
        where a.run_id = l.run_id
          and a.stage_id = l.stage_id
          and a.state in ('queued', 'started', 'waiting')
          and a.number - a.retry_count = l.execution));
end
$$;

-- Counts the runs that are at a stage for longer than its bound, whether an alert tells of it yet
-- or not.
create or replace function millrace.late_runs(p_stage_id int) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_alerts bigint[] := millrace.still_late(array(
    select l.id
    from millrace.alerts l
    where l.stage_id = p_stage_id
      and l.resolved_at is null));
begin
  return (
    select count(*)
    from (
      select a.run_id
      from millrace.attempts a
      where a.late_at <= v_now
        and a.stage_id = p_stage_id
      union
      select l.run_id
      from millrace.alerts l
      where l.id = any (v_alerts)
    ) o);
end
$$;

-- Raises alerts about up to so many attempts that are late; returns how many.
create or replace function millrace.raise_alerts(p_limit int) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_raised int;
begin
  with due as materialized (
    select a.id, a.run_id, a.stage_id, a.number - a.retry_count as execution
    from millrace.attempts a
    where a.late_at <= v_now
    order by a.late_at
    limit p_limit
    for no key update skip locked
  ), late as materialized (
    select d.*, s.name as stage, p.name as pipeline, r.entity_id, s.sla, f.created_at as began_at
    from due d
    join millrace.attempts f
      on f.run_id = d.run_id and f.stage_id = d.stage_id and f.number = d.execution
    join millrace.runs r on r.id = d.run_id
    join millrace.stages s on s.id = d.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
  ), told as (
    -- Cleared, or put off where the bound is a longer one by now.
    update millrace.attempts a
    set late_at = case when l.began_at + l.sla > v_now then l.began_at + l.sla end
    from late l
    where a.id = l.id
  )
  insert into millrace.alerts (kind, pipeline, stage, run_id, attempt_id, entity_id, message,
    raised_at, stage_id, execution)
  select 'sla', l.pipeline, l.stage, l.run_id, l.id, l.entity_id,
    format('%s of %s %s is %s old, its bound is %s', l.stage, l.pipeline, l.entity_id,
      millrace.in_words(v_now - l.began_at), millrace.in_words(l.sla)),
    v_now, l.stage_id, l.execution
  from late l
  where l.began_at + l.sla <= v_now
  order by l.id
  on conflict do nothing;
  get diagnostics v_raised = row_count;
  return v_raised;
end
$$;

-- Looks at the next open alerts and resolves those whose execution is over or no longer late;
-- returns how many.
create or replace function millrace.resolve_alerts(p_limit int) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_seen text;
  v_ids bigint[];
  v_resolved int;
begin
  select s.value into v_seen
  from millrace.settings s
  where s.name = 'alerts_seen'
  for update skip locked;
  v_ids := array(
    select l.id
    from millrace.alerts l
    where l.resolved_at is null
      and l.id > v_seen::bigint
    order by l.id
    limit p_limit);
  update millrace.settings s
  set value = v.value
  from (
    select case when cardinality(v_ids) < p_limit then '0' else v_ids[p_limit]::text end as value
  ) v
  where s.name = 'alerts_seen'
    and v_seen <> v.value;
  v_ids := array(
    select i from unnest(v_ids) i
    except
    select i from unnest(millrace.still_late(v_ids)) i);
  update millrace.alerts l
  set resolved_at = millrace.now()
  where l.id in (
    select o.id
    from millrace.alerts o
    where o.id = any (v_ids)
      and o.resolved_at is null
    order by o.id
    for update skip locked);
  get diagnostics v_resolved = row_count;
  return v_resolved;
end
$$;

-- Raises and resolves alerts, some thousand at a time. As in sweep_pipeline(), no part of the sweep
-- may end the others: it reports its faults in millrace.log.
create or replace function millrace.sweep_alerts(out alerts int, out resolved int)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.follow_bounds();
  alerts := millrace.raise_alerts(1000);
  resolved := millrace.resolve_alerts(1000);
exception
  when others then
    if millrace.error_kind(sqlstate) = 'fatal' then
      raise;
    end if;
    perform millrace.report('error', 'sweep_failed', 'The sweep of alerts failed: ' || sqlerrm);
end
$$;

-- Removes the alerts of runs that are being deleted, without waiting for anybody. It leaves one
-- that the sweep is resolving this very moment to prune_alerts().
create or replace function millrace.forget_alerts(p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from millrace.alerts l
  where l.id in (
    select o.id
    from millrace.alerts o
    where o.run_id = any (p_run_ids)
    for update skip locked);
end
$$;

-- Removes alerts that were resolved before this time, and those whose run is gone: at most 10,000,
-- and says how many.
create or replace function millrace.prune_alerts(p_before timestamptz) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pruned int;
begin
  delete from millrace.alerts l
  where l.id in (
    select o.id
    from millrace.alerts o
    where o.resolved_at < p_before
      or not exists (select from millrace.runs r where r.id = o.run_id)
    limit 10000
    for update skip locked);
  get diagnostics v_pruned = row_count;
  return v_pruned;
end
$$;

-- Answers: what a person decides
--
-- A person decides by public.millrace_decide(), or by writing the column `decision`. Three triggers
-- do the rest: one checks the payload, one completes the waiting attempt in the same transaction,
-- and at the commit one collects the children of the parent, where the run is a child.

-- Before the update: refuses an answer that does not fit the schema or comes too late, as far as
-- the row alone shows, and notes who gave it.
create or replace function millrace.check_answer() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault text;
begin
  new.decision := coalesce(new.decision, 'null');
  if old.decided_at is not null and new.decision = old.decision then
    return old;
  elsif old.decided_at is not null then
    raise exception 'attempt % is already decided: %',
        old.attempt_id, millrace.short_json(old.decision)
      using errcode = 'MR004',
        hint = 'A decision stands. To decide anew, start the stage over: it asks again.';
  elsif old.closed_at is not null then
    raise exception 'attempt % can no longer be decided: %', old.attempt_id, old.closed_why
      using errcode = 'MR004', hint = 'Look for an open decision: closed_at is null.';
  end if;
  v_fault := millrace.schema_fault(old.schema, new.decision, 'decision');
  if v_fault is not null then
    raise exception '%', v_fault
      using errcode = 'MR002',
        hint = 'Correct it and decide again; nothing was written. '
          'The column schema of public.millrace_decisions says what is allowed.';
  end if;
  -- Some identity providers' ids are no uuids, and then auth.uid() raises.
  new.decided_by := case
    when auth.jwt() ->> 'sub' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then auth.uid()
  end;
  new.decided_at := millrace.now();
  new.closed_at := new.decided_at;
  new.closed_why := 'decided';
  return new;
end
$$;

-- Builds the outcomes of attempts that were decided just now. Refuses an answer whose attempt no
-- longer waits, or that is larger than the stage's results may be.
create or replace function millrace.outcomes_of_answers(p_attempt_ids bigint[])
returns millrace.work[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found record;
  v_items millrace.work[];
begin
  select d.attempt_id, millrace.why_undecided(a.state, a.error) as why into v_found
  from public.millrace_decisions d
  left join millrace.attempts a on a.id = d.attempt_id
  where d.attempt_id = any (p_attempt_ids)
    and a.state is distinct from 'waiting'
  order by d.attempt_id
  limit 1;
  if found then
    raise exception 'attempt % can no longer be decided: %', v_found.attempt_id, v_found.why
      using errcode = 'MR004',
        hint = 'Its row will be closed by the sweep. '
          'Look for another open decision of the same entity.';
  end if;
  v_items := array(
    select millrace.work_on(a, r.entity_id, 'completed',
      jsonb_build_object('decision', d.decision, 'decided_by', d.decided_by),
      p_ord => (row_number() over (order by a.id))::int)
    from public.millrace_decisions d
    join millrace.attempts a on a.id = d.attempt_id
    join millrace.runs r on r.id = a.run_id
    where d.attempt_id = any (p_attempt_ids));
  select i.attempt_id, octet_length(i.result::text) as size, s.name, s.result_limit_bytes
  into v_found
  from unnest(v_items) i
  join millrace.stages s on s.id = i.stage_id
  where octet_length(i.result::text) > s.result_limit_bytes
  limit 1;
  if found then
    raise exception 'the decision on attempt % has % bytes, but the limit of stage % is %',
        v_found.attempt_id, v_found.size, v_found.name, v_found.result_limit_bytes
      using errcode = 'MR002', hint = 'Make it shorter, or raise the stage''s result_limit_bytes.';
  end if;
  return v_items;
end
$$;

-- After the update, for all rows of the statement at once: completes the attempts as if a job had
-- ended, with the result {decision, decided_by}, and wakes what follows.
create or replace function millrace.take_answers() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off
set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_decided bigint[] := array(
    select n.attempt_id from new_rows n where n.decided_at is not null
    except
    select o.attempt_id from old_rows o where o.decided_at is not null);
  v_refused record;
  v_done record;
begin
  if cardinality(v_decided) = 0 then
    return null;
  end if;
  perform millrace.hold_runs(array(
    select d.run_id from public.millrace_decisions d
      where d.attempt_id = any (v_decided)));
  -- Not guarded: a fault, such as one of the stage's apply function, is the person's answer, and
  -- nothing is written.
  v_done := millrace.apply_outcomes(millrace.outcomes_of_answers(v_decided));
  select i.attempt_id, i.reason into v_refused
  from unnest(v_done.items) i
  where i.verdict is not null
  limit 1;
  if found then
    raise exception 'the decision on attempt % was not taken: %',
        v_refused.attempt_id, v_refused.reason
      using errcode = 'MR004',
        hint = 'The stage''s apply function, or another decision of the same statement, '
          'ended the attempt.';
  end if;
  perform millrace.wake(v_done.ready);
  return null;
end
$$;

-- At the commit, so that nobody holds a parent for as long as a person's transaction lasts: adds up
-- for the parents what a decision has come to in a child run. It waits for nobody; the sweep does
-- what it leaves out.
create or replace function millrace.apply_decisions() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off
set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_run_id bigint := new.run_id;
  v_fan_out millrace.fan_outs;
  v_done record;
  v_context text;
begin
  -- Above read committed it would not see what other children have reported.
  while current_setting('transaction_isolation') = 'read committed' loop
    select f.* into v_fan_out
    from millrace.runs r
    join millrace.fan_outs f on f.id = r.fan_out_id
    where r.id = v_run_id;
    exit when not found
      or not exists (select from millrace.child_tallies t
        where t.fan_out_id = v_fan_out.id)
      or not pg_try_advisory_xact_lock(
        hashtextextended('millrace.collect_children', v_fan_out.id));
    v_done := millrace.collect_children(v_fan_out.id);
    perform millrace.wake(v_done.wake);
    exit when v_done.busy;
    -- The parent may be a child itself, whose run has ended with it.
    v_run_id := v_fan_out.run_id;
  end loop;
  return null;
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    case millrace.error_kind(sqlstate, v_context)
      when 'fatal' then
        raise;
      when 'lasting' then
        perform millrace.report('error', 'collect_failed', format(
          'The children of fan-out %s cannot be added up: %s', v_fan_out.id, sqlerrm));
      else
        null;
    end case;
    return null;
end
$$;

-- Runs with the rights of the caller, so that the policies of public.millrace_decisions say who
-- may.
create or replace function public.millrace_decide(p_attempt bigint, p_decision jsonb) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_decided_at timestamptz;
begin
  select d.decided_at into v_decided_at
  from public.millrace_decisions d
  where d.attempt_id = p_attempt
  for update;
  if not found then
    raise exception 'there is no decision on attempt % that you may make',
        coalesce(p_attempt::text, 'null')
      using errcode = 'MR003',
        hint = 'Open ones: select * from public.millrace_decisions where closed_at is null. '
          'Who may read and decide is said by the policies of that table.';
  end if;
  update public.millrace_decisions d set decision = p_decision where d.attempt_id = p_attempt;
  return jsonb_build_object('attempt', p_attempt,
    'verdict', case when v_decided_at is null then 'accepted' else 'duplicate' end);
end
$$;

-- Beginning stages: queueing, waiting and skipping
--
-- begin_stage() begins what advance() does not queue by itself: a condition may skip the stage, and
-- its kind may make it wait for a person or for children instead of a worker.
--
-- The callers hold the entities and the runs. The functions here show on the entities what they do,
-- and return the stages that have work for a worker now.

-- Begins a stage whose needs are done. Skips it where it is not to run; elsewhere queues it, asks a
-- person or starts a child run. p_by_name: somebody named the stage, which overrules what the stage
-- itself says of when it begins.
create or replace function millrace.begin_stage(
  p_stage_id int, p_run_ids bigint[], p_by_name boolean default false
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_skipped record;
  v_wake int[] := '{}';
begin
  if cardinality(p_run_ids) = 0 then
    return '{}';
  end if;
  for v_skipped in
    select k.run_ids, k.why from millrace.runs_to_skip(p_stage_id, p_run_ids, p_by_name) k
  loop
    v_wake := v_wake || millrace.skip_stage(p_stage_id, v_skipped.run_ids, v_skipped.why);
    p_run_ids := array(select r from unnest(p_run_ids) r where r <> all (v_skipped.run_ids));
  end loop;
  if cardinality(p_run_ids) = 0 then
    return v_wake;
  end if;
  case (select s.kind from millrace.stages s where s.id = p_stage_id)
    when 'manual' then
      perform millrace.open_decisions(p_stage_id, p_run_ids);
      return v_wake;
    when 'pipeline' then
      return v_wake || millrace.start_child_runs(p_stage_id, p_run_ids);
    else
      perform millrace.queue_attempts(p_stage_id, p_run_ids);
      perform millrace.show_queued(p_stage_id, p_run_ids);
      return v_wake || p_stage_id;
  end case;
end
$$;

-- Picks the runs in which a stage is not to begin, and says why: the skip of a need cascades,
-- nobody asked for it, the row brought its result along, or its condition does not hold.
create or replace function millrace.runs_to_skip(
  p_stage_id int, p_run_ids bigint[], p_by_name boolean
) returns table (run_ids bigint[], why jsonb)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  for run_ids, why in
    select array_agg(c.run_id), case
      when c.on_demand then millrace.why_undemanded()
      else '{"code": "skipped", "message": "a stage it depends on was skipped",
        "dependents": true}'
    end
    from (
      select n.run_id, bool_or(n.error ? 'on_demand') as on_demand
      from millrace.attempts n
      join millrace.runs r on r.id = n.run_id
      join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
      where r.id = any (p_run_ids)
        and n.state = 'skipped'
        and not n.superseded
        and n.error -> 'dependents' = 'true'
        and (n.stage_id = any (vs.needs)
          or vs.after @> jsonb_build_array(jsonb_build_object('map', n.stage_id)))
      group by n.run_id) c
    group by c.on_demand
  loop
    return next;
    p_run_ids := array(select r from unnest(p_run_ids) r where r <> all (run_ids));
  end loop;
  if p_by_name then
    return;
  end if;
  run_ids := millrace.undemanded_runs(p_stage_id, p_run_ids);
  if cardinality(run_ids) > 0 then
    why := millrace.why_undemanded();
    return next;
    p_run_ids := array(select r from unnest(p_run_ids) r where r <> all (run_ids));
  end if;
  run_ids := millrace.given_runs(p_stage_id, p_run_ids);
  if cardinality(run_ids) > 0 then
    why := millrace.why_given();
    return next;
    p_run_ids := array(select r from unnest(p_run_ids) r where r <> all (run_ids));
  end if;
  run_ids := millrace.unmet_runs(p_stage_id, p_run_ids);
  if cardinality(run_ids) > 0 then
    why := millrace.why_unmet();
    return next;
  end if;
end
$$;

-- Says why a stage is skipped whose condition does not hold.
create or replace function millrace.why_unmet() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select '{"code": "skipped", "message": "its condition does not hold"}'::jsonb
$$;

-- Begins whatever may begin in held runs and has not. Runs that go on after they were over need it:
-- their end may have come before some stage began.
create or replace function millrace.begin_open(p_run_ids bigint[]) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
  v_wake int[] := '{}';
begin
  for v_stage in
    select vs.stage_id, array_agg(r.id) as run_ids
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where r.id = any (p_run_ids)
    group by vs.stage_id, vs.position
    order by vs.position
  loop
    v_wake := v_wake || millrace.begin_stage(v_stage.stage_id,
      millrace.open_runs(v_stage.stage_id, v_stage.run_ids));
  end loop;
  return v_wake;
end
$$;

-- Does what advance() leaves out when a stage is done: tallies a stage that is counted by the
-- parent, and begins conditional followers. A map that is done satisfies every threshold on it.
create or replace function millrace.advance_others(p_stage_id int, p_run_ids bigint[])
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if (select s.counted_by_parent from millrace.stages s
    where s.id = p_stage_id) then
    insert into millrace.child_tallies (fan_out_id, stage_id, done)
    select r.fan_out_id, p_stage_id, count(*)
    from millrace.runs r
    where r.id = any (p_run_ids)
      and r.fan_out_id is not null
    group by r.fan_out_id;
  end if;
  return millrace.begin_followers(p_stage_id, p_run_ids);
end
$$;

-- Begins the conditional followers of a stage that may begin in these runs and have not: they need
-- it, or wait for a threshold on it.
create or replace function millrace.begin_followers(p_stage_id int, p_run_ids bigint[])
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_follower record;
  v_after_it jsonb := jsonb_build_array(jsonb_build_object('map', p_stage_id));
  v_wake int[] := '{}';
begin
  for v_follower in
    with run as materialized (
      select r.id, r.version_id
      from millrace.runs r
      where r.id = any (p_run_ids)
    ), follower as materialized (
      select f.version_id, f.stage_id, f.position
      from millrace.version_stages f
      where f.version_id in (select distinct r.version_id from run r)
        and not f.unconditional
        and (p_stage_id = any (f.needs) or f.after @> v_after_it)
    )
    select f.stage_id, array_agg(r.id) as run_ids
    from follower f
    join run r on r.version_id = f.version_id
    group by f.stage_id, f.position
    order by f.position
  loop
    v_wake := v_wake || millrace.begin_stage(v_follower.stage_id,
      millrace.open_runs(v_follower.stage_id, v_follower.run_ids));
  end loop;
  return v_wake;
end
$$;

-- Skips a stage in these runs, says why, and goes on to what follows it.
create or replace function millrace.skip_stage(p_stage_id int, p_run_ids bigint[], p_why jsonb)
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.add_skipped(p_stage_id, p_run_ids, p_why);
  return millrace.continue_after_skip(p_stage_id, p_run_ids);
end
$$;

-- Adds a skipped attempt of a stage to these runs and shows it, unless nobody asked for the stage:
-- then it stays pending to whoever looks at the row.
create or replace function millrace.add_skipped(p_stage_id int, p_run_ids bigint[], p_why jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
begin
  if cardinality(p_run_ids) = 0 then
    return;
  end if;
  insert into millrace.attempts (run_id, stage_id, number, state, created_at, finished_at, error)
  select r.id, p_stage_id,
    coalesce((
      select max(a.number)
      from millrace.attempts a
      where a.run_id = r.id
        and a.stage_id = p_stage_id), 0) + 1,
    'skipped', v_now, v_now,
    p_why || case vs.otherwise
      when 'skip_dependents' then '{"dependents": true}'
      else '{}'::jsonb
    end
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  where r.id = any (p_run_ids)
  order by r.id;
  if not p_why ? 'on_demand' then
    perform millrace.show_stage(p_stage_id, p_run_ids, 'skipped', v_now);
  end if;
end
$$;

-- Readies what follows a skipped stage and finishes runs, as complete() does for the stage that it
-- completes. A user's trigger may have deleted or ended a run, or started the stage over, while the
-- skip was shown: then there is nothing to go on from.
create or replace function millrace.continue_after_skip(p_stage_id int, p_run_ids bigint[])
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_runs bigint[] := array(
    select r.id
    from millrace.runs r
    where r.id = any (p_run_ids)
      and (r.status = 'running') is true
      and exists (
        select
        from millrace.attempts a
        where a.run_id = r.id
          and a.stage_id = p_stage_id
          and a.state = 'skipped'
          and not a.superseded)
    order by r.id);
  v_ready record;
  v_wake int[] := '{}';
begin
  for v_ready in
    select r.stage_id, array_agg(r.run_id) as run_ids
    from unnest((millrace.advance(p_stage_id, v_runs)).ready) r
    group by r.stage_id
    order by r.stage_id
  loop
    perform millrace.assign_groups(v_ready.stage_id, v_ready.run_ids);
    perform millrace.show_queued(v_ready.stage_id, v_ready.run_ids);
    v_wake := v_wake || v_ready.stage_id;
  end loop;
  v_wake := v_wake || millrace.advance_others(p_stage_id, v_runs);
  perform millrace.finish_runs(p_stage_id, v_runs);
  perform millrace.show_status(r.pipeline_id, array_agg(r.entity_id))
  from millrace.runs r
  where r.id = any (v_runs) and r.status = 'completed'
  group by r.pipeline_id;
  return v_wake;
end
$$;

-- Follows a failure for good with a skipped attempt, so that the run goes on without the stage. A
-- user's trigger may have started the stage over while its failure was shown: then there is nothing
-- to go on from.
create or replace function millrace.skip_failed_stage(p_stage_id int, p_run_ids bigint[])
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_error constant jsonb := jsonb_build_object(
    'code', 'failed', 'message', 'the stage failed, and the run goes on without it');
  v_runs bigint[];
begin
  with skipped as (
    insert into millrace.attempts
      (run_id, stage_id, number, parent_id, state, created_at, finished_at, error)
    select a.run_id, a.stage_id, a.number + 1, a.id, 'skipped', v_now, v_now, v_error
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.run_id = any (p_run_ids)
      and a.stage_id = p_stage_id
      and a.state = 'failed'
      and not a.superseded
      and r.status = 'running'
      and not exists (
        select
        from millrace.attempts n
        where n.run_id = a.run_id
          and n.stage_id = a.stage_id
          and n.number > a.number)
    order by a.run_id
    returning run_id
  )
  select coalesce(array_agg(s.run_id), '{}') into v_runs from skipped s;
  return millrace.continue_after_skip(p_stage_id, v_runs);
end
$$;

-- Cancelling children
--
-- A parent that is cancelled, fails or starts over only gives its fan-out up. The sweep cancels the
-- children in batches, and whoever needs one of their rows earlier cancels them there.

-- Gives up the children of these runs at these stages, or at all of them: the sweep cancels them.
create or replace function millrace.abandon_fan_outs(p_run_ids bigint[], p_stage_ids int[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.fan_outs f
  set state = 'abandoned'
  where f.run_id = any (p_run_ids)
    and (p_stage_ids is null or f.stage_id = any (p_stage_ids))
    and f.state = 'open';
end
$$;

-- Cancels children of abandoned fan-outs on these rows, which the caller holds; the sweep may not
-- have reached them. It does not show that: what starts there next is shown in their stead.
create or replace function millrace.cancel_given_up(p_pipeline_id int, p_entity_ids text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_runs bigint[] := array(
    select r.id
    from millrace.runs r
    join millrace.fan_outs f on f.id = r.fan_out_id and f.state in ('abandoned', 'closed')
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_entity_ids)
      and r.status = 'running'
    order by r.id
    for no key update of r);
begin
  if cardinality(v_runs) > 0 then
    perform millrace.end_runs(v_runs, 'cancelled');
    perform millrace.cancel_attempts(v_runs, null);
  end if;
end
$$;

-- Cancels runs that the caller holds and shows it on their rows; returns how many it cancelled. One
-- row whose own trigger refuses to show it must not keep the others from being cancelled: it is
-- cancelled unseen, or left to the next call where the database says to try again.
create or replace function millrace.cancel_held(p_run_ids bigint[], p_until timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  -- A user's trigger on what was cancelled before may have ended some.
  v_runs bigint[] := millrace.running_of(p_run_ids);
  v_half int := cardinality(v_runs) / 2;
  v_context text;
  v_transient boolean;
  v_why text;
  v_count int;
begin
  begin
    perform millrace.end_runs(v_runs, 'cancelled');
    perform millrace.project_cancelled(millrace.cancel_attempts(v_runs, null));
    return cardinality(v_runs);
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    v_transient := millrace.error_kind(sqlstate, v_context) = 'transient';
    v_why := sqlerrm;
  end;
  if v_half > 0 then
    v_count := millrace.cancel_held(v_runs[:v_half], p_until);
    return v_count + case
      when v_transient and millrace.now() >= p_until then 0
      else millrace.cancel_held(v_runs[v_half + 1:], p_until)
    end;
  elsif v_transient then
    perform millrace.report_passed_over(p.name, null, r.entity_id, v_why)
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id
    where r.id = v_runs[1];
    return 0;
  end if;
  perform millrace.report('error', 'projection_failed',
    'A cancelled child could not be shown on its row: ' || v_why,
    jsonb_build_object('run', v_runs[1]));
  perform millrace.end_runs(v_runs, 'cancelled');
  perform millrace.cancel_attempts(v_runs, null);
  return 1;
end
$$;

-- Cancels up to so many children of abandoned fan-outs; returns how many. Those whose row somebody
-- holds are left to the next call.
create or replace function millrace.cancel_children(p_limit int) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
  v_fan_outs bigint[];
  v_runs bigint[];
  v_until timestamptz := millrace.now() + interval '2 seconds';
  v_count int := 0;
begin
  -- A person's retry, which opens them again, waits for this batch.
  v_fan_outs := array(
    select f.id
    from millrace.fan_outs f
    where f.state = 'abandoned'
    order by f.id
    for update skip locked);
  for v_group in
    select p.id, p.projection <> 'none' as projected,
      array_agg(c.id) as run_ids, array_agg(c.entity_id) as entity_ids
    from (
      select r.id, r.pipeline_id, r.entity_id
      from millrace.runs r
      where r.fan_out_id = any (v_fan_outs)
        and r.status = 'running'
      -- In no order, or the same rows, held or refused, would come first for ever.
      order by random()
      limit p_limit
    ) c
    join millrace.pipelines p on p.id = c.pipeline_id
    group by p.id
    order by p.id
  loop
    if v_group.projected then
      v_group.entity_ids := millrace.lock_entities(v_group.id, v_group.entity_ids, false);
    end if;
    v_runs := array(
      select r.id
      from millrace.runs r
      where r.id = any (v_group.run_ids)
        and r.entity_id = any (v_group.entity_ids)
        and r.status = 'running'
      order by r.id
      for no key update skip locked);
    v_count := v_count + millrace.cancel_held(v_runs, v_until);
  end loop;
  update millrace.fan_outs f
  set state = 'closed'
  where f.id = any (v_fan_outs)
    and not exists (
      select from millrace.runs r where r.fan_out_id = f.id and r.status = 'running');
  return v_count;
end
$$;

-- Checking items: what a worker hands over to be spawned

-- Picks the items' keys that are numbers which a threshold can count, in their one spelling.
create or replace function millrace.item_numbers(p_keys text[]) returns int[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(select k::int from unnest(p_keys) k where k ~ '^(0|[1-9][0-9]{0,8})$');
end
$$;

-- Raises MR002 unless the items of a chunk are objects with keys.
create or replace function millrace.check_items(p_items jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
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
create or replace function millrace.check_numbers(
  p_fan_out millrace.fan_outs, p_item_keys text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
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
create or replace function millrace.check_rows_exist(
  p_child millrace.pipelines, p_item_keys text[], p_entity_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
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
create or replace function millrace.check_rows_differ(
  p_fan_out millrace.fan_outs, p_item_keys text[], p_entity_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
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
create or replace function millrace.check_inserted(
  p_insert regprocedure, p_items jsonb, p_item_keys text[], p_entity_ids text[]
) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
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

-- What a definition may say about limits and quotas beyond their shape

-- Raises MR001 unless a stage is held back by one that comes after it, or by one of a pipeline that
-- cannot wait for this one.
create or replace function millrace.check_back_pressure(p_stage jsonb, p_definition jsonb)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text[] := '{limits,back_pressure,stage}';
  v_target text := p_stage #>> v_path;
  v_other text := case when v_target like '%.%' then split_part(v_target, '.', 1) end;
  v_later text[];
begin
  if v_other <> p_definition ->> 'pipeline' then
    if not exists (
        select
        from millrace.stages s
        join millrace.pipelines p on p.id = s.pipeline_id
        where p.name || '.' || s.name = v_target) then
      perform millrace.refuse_value(p_stage, v_path, 'a stage that is defined already',
        'Define the other pipeline before this one.');
    end if;
    -- Two pipelines that hold back one another, or a child its own parent, would wait for ever.
    if millrace.contains_pipeline(
        (select p.id from millrace.pipelines p where p.name = v_other),
        p_definition ->> 'pipeline')
      or exists (
        select
        from millrace.pipelines p
        join millrace.stages s on s.pipeline_id = p.id
        where p.name = v_other
          and s.limits #>> '{back_pressure,stage}' like '%.%'
          and split_part(s.limits #>> '{back_pressure,stage}', '.', 1) <> p.name) then
      perform millrace.refuse_value(p_stage, v_path,
        'a stage of a pipeline that neither starts runs of this one nor is itself held back by '
        'another',
        'They could hold back one another for ever.');
    end if;
    return;
  end if;
  v_later := millrace.stages_after(p_stage ->> 'name', p_definition -> 'stages');
  if regexp_replace(v_target, '^.*\.', '') <> all (v_later) then
    perform millrace.refuse_value(p_stage, v_path, 'a stage that comes after this one', case
      when cardinality(v_later) = 0 then 'No stage comes after this one: leave back_pressure out.'
      else 'After this stage come: ' || array_to_string(v_later, ', ') || '.'
    end);
  end if;
end
$$;

-- Raises MR001 unless the column and the stage that a stage's limits name exist.
create or replace function millrace.check_limits(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text[] := '{limits,concurrency,column}';
begin
  if p_stage #> v_path is not null and not millrace.has_column(p_definition,
    p_stage #>> v_path) then
    perform millrace.refuse_value(p_stage, v_path, format('a column of %s',
      p_definition #>> '{entity,table}'),
      'Name the column whose value is the key.');
  end if;
  if p_stage #> '{limits,back_pressure}' is not null then
    perform millrace.check_back_pressure(p_stage, p_definition);
  end if;
end
$$;

-- Raises MR001 unless the column of a definition's quota exists.
create or replace function millrace.check_quota(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_definition ? 'quota' and not millrace.has_column(p_definition,
    p_definition #>> '{quota,column}') then
    raise exception 'quota.column is %, but must be a column of %',
      p_definition #> '{quota,column}', p_definition #>> '{entity,table}'
      using errcode = 'MR001', hint = 'Name the column whose value is the tenant.';
  end if;
end
$$;

-- What a definition may say about conditions, thresholds, child pipelines and fan-in beyond their
-- shape

-- Raises MR001 unless the conditions of a stage are jsonpath predicates: on its row and its needs
-- whether it runs, on its row whether that brings its result along, and on row and result whether
-- the run ends with it.
create or replace function millrace.check_conditions(p_stage jsonb, p_definition jsonb)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_place int;
begin
  if p_stage ? 'otherwise' and not p_stage ? 'when' then
    perform millrace.refuse_value(p_stage, '{otherwise}', 'beside a condition in "when"',
      'Add a condition: skip lets the stages after it go on without its result, skip_dependents '
      'skips them too.');
  end if;
  perform millrace.check_predicate(p_stage, p_definition, '{when}', '{entity,needs}');
  perform millrace.check_predicate(p_stage, p_definition, '{given}', '{entity}');
  for v_place in 0 .. coalesce(jsonb_array_length(p_stage -> 'ends'), 0) - 1 loop
    perform millrace.check_predicate(
      p_stage, p_definition, array['ends', v_place::text, 'when'], '{entity,result}');
  end loop;
end
$$;

-- Raises MR001 unless what a stage says there, if anything, is a condition on these roots.
create or replace function millrace.check_predicate(
  p_stage jsonb, p_definition jsonb, p_path text[], p_roots text[]
) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_stage #> p_path is not null then
    perform millrace.check_condition_path(p_stage, p_path, p_roots);
    perform millrace.check_condition_names(p_stage, p_definition, p_path, p_roots);
  end if;
end
$$;

-- Raises MR001 unless a condition of a stage is a jsonpath predicate.
create or replace function millrace.check_condition_path(
  p_stage jsonb, p_path text[], p_roots text[]
) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wanted text := 'a jsonpath predicate';
  v_example text := case p_roots[2]
    when 'needs' then '"$.entity.kind == \"scan\"" or "$.needs.count.pages > 20"'
    when 'result' then '"$.result.score < 0.5" or "$.entity.duplicate_of != null"'
    else '"$.entity.summary != null"'
  end;
  v_path jsonpath;
begin
  begin
    v_path := (p_stage #>> p_path)::jsonpath;
  exception when others then
    perform millrace.refuse_value(p_stage, p_path, format('%s (%s)', v_wanted, sqlerrm),
      format('Write for example %s.', v_example));
  end;
  -- In the canonical form without its quoted parts a variable is $"".
  if regexp_replace(v_path::text, '(\$?)"(\\.|[^"\\])*"', '\1""', 'g') ~ '\$""' then
    perform millrace.refuse_value(p_stage, p_path, v_wanted || ' without variables',
      format('Begin each path with $.%s.', array_to_string(p_roots, ' or $.')));
  end if;
  -- What is no predicate, such as $.entity.pages or a filter, would never be true.
  begin
    perform jsonb_path_match('{}', v_path);
  exception when singleton_sql_json_item_required then
    perform millrace.refuse_value(p_stage, p_path, v_wanted || ', which is true or false',
      'Compare it with something: "$.entity.urgent == true", "exists($.entity.tags[*] ? (@ == '
      '\"new\"))".');
  end;
  if regexp_replace(v_path::text, '"(\\.|[^"\\])*"', '""', 'g') ~ '\[""' then
    perform millrace.refuse_value(p_stage, p_path,
      v_wanted || ' without a name in brackets, where only places of a list are',
      format('Write $.%1$s.count, or $.%1$s."count".', p_roots[cardinality(p_roots)]));
  end if;
end
$$;

-- Lists the names that follow each $ of a condition, up to the first that is none. It reads the
-- canonical form, in which each name is quoted and follows a dot, and passes over quoted text
-- without a dot.
create or replace function millrace.paths_of(p_condition jsonpath) returns table (names text[])
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select (n.found[1])::jsonb #>> '{}'
    from regexp_matches(m.found[1], '\.("(?:\\.|[^"\\])*")', 'g') with ordinality n(found, place)
    order by n.place)
  from regexp_matches(p_condition::text, '\$((?:\."(?:\\.|[^"\\])*")+)|"(?:\\.|[^"\\])*"',
    'g') m(found)
  where m.found[1] is not null
$$;

-- Finds the stage, of a definition or of the pipeline as it was so far, for which the engine keeps
-- this column.
create or replace function millrace.stage_with_column(p_definition jsonb, p_column text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select s.name
  from (
    select s ->> 'name' as name
    from jsonb_array_elements(p_definition -> 'stages') s
    union
    select t.name
    from millrace.stages t
    join millrace.pipelines p on p.id = t.pipeline_id
    where p.name = p_definition ->> 'pipeline') s
  where (p_definition #>> '{entity,projection}' = 'columns'
      and p_column = any (millrace.stage_columns(s.name)))
    or p_column = any (millrace.status_columns(p_definition #> '{entity,status}'))
  limit 1
$$;

-- Raises MR001 when a condition asks for what is neither a column of the user's, nor the result of
-- a need or of the stage itself: a name that is misspelt would never hold, without a word.
create or replace function millrace.check_condition_names(
  p_stage jsonb, p_definition jsonb, p_path text[], p_roots text[]
) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_asks text := format('stage %s: %s asks for ', p_stage ->> 'name', array_to_string(p_path, '.'));
  v_root text;
  v_name text;
  v_kept_for text;
begin
  for v_root, v_name in
    select p.names[1], p.names[2]
    from millrace.paths_of((p_stage #>> p_path)::jsonpath) p
  loop
    if v_root <> all (p_roots) then
      raise exception '%$.%, but there %', v_asks, v_root, case cardinality(p_roots)
          when 1 then 'is only $.' || p_roots[1]
          else format('are only $.%s and $.%s', p_roots[1], p_roots[2])
        end
        using errcode = 'MR001', hint = format('Begin each path with $.entity, the row%s.',
          case p_roots[2]
            when 'needs' then ', or $.needs, the results of its needs'
            when 'result' then ', or $.result, what the stage returns'
            else ''
          end);
    elsif v_root = 'needs' and not p_stage -> 'needs' ? v_name then
      raise exception '%the result of %, which it does not need', v_asks, v_name
        using errcode = 'MR001', hint = format('Add %s to its needs.', v_name);
    elsif v_root = 'entity' and v_name is not null
      and not millrace.has_column(p_definition, v_name) then
      raise exception '%$.entity.%, but table % has no such column', v_asks, v_name,
        p_definition #>> '{entity,table}'
        using errcode = 'MR001',
          hint = 'Correct the name, or add the column in an earlier migration.';
    end if;
    v_kept_for := case
      when v_root = 'entity' then millrace.stage_with_column(p_definition, v_name)
    end;
    if v_kept_for is not null then
      raise exception '%$.entity.%, which the engine keeps for stage % and which no condition sees',
        v_asks, v_name, v_kept_for
        using errcode = 'MR001', hint = case p_roots[2]
          when 'needs' then 'Ask for the result of a stage it needs, under $.needs, or for a '
            'column of your own.'
          else 'Ask for a column of your own.'
        end;
    end if;
  end loop;
end
$$;

-- Raises MR001 where a stage that only a person begins says of itself when it begins, and where no
-- stage would begin a run by itself.
create or replace function millrace.check_on_demand(p_stage jsonb, p_stages jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_beside text := case
    when p_stage ? 'when' then 'when'
    when p_stage ? 'given' then 'given'
  end;
begin
  if p_stage -> 'on_demand' is distinct from 'true' then
    return;
  elsif v_beside is not null then
    perform millrace.refuse_value(p_stage, array[v_beside], 'left out beside "on_demand": true',
      'Only a start by name begins the stage, which overrules its own conditions.');
  elsif not exists (
      select
      from jsonb_array_elements(p_stages) s
      where millrace.edges_to(s) = '{}'
        and s -> 'on_demand' is distinct from 'true') then
    perform millrace.refuse_value(p_stage, '{on_demand}',
      'false for at least one stage without needs',
      'A run would be over as soon as it began: let one of its first stages begin by itself.');
  end if;
end
$$;

-- Raises MR001 where two endings of a stage have one name.
create or replace function millrace.check_ends(p_stage jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_twice text;
begin
  select e ->> 'name'
  into v_twice
  from jsonb_array_elements(p_stage -> 'ends') e
  group by 1
  having count(*) > 1
  limit 1;
  if found then
    raise exception 'stage %: ends has the name % twice', p_stage ->> 'name', v_twice
      using errcode = 'MR001', hint = 'Join its conditions by || into one.';
  end if;
end
$$;

-- Raises MR001 unless the thresholds of a stage name map stages and stages of their children.
create or replace function millrace.check_thresholds(p_stage jsonb, p_stages jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_after jsonb;
  v_map jsonb;
begin
  for v_after in select a from jsonb_array_elements(p_stage -> 'after') a loop
    v_map := (
      select s
      from jsonb_array_elements(p_stages) s
      where s ->> 'name' = v_after ->> 'map');
    if v_map ->> 'kind' is distinct from 'map' then
      raise exception 'stage %: after names the map stage %, which this pipeline does not have',
        p_stage ->> 'name', v_after -> 'map'
        using errcode = 'MR001', hint = 'Name a stage of kind map in "map".';
    elsif not exists (
        select
        from millrace.pipelines p
        join millrace.version_stages vs on vs.version_id = p.current_version_id
        join millrace.stages s on s.id = vs.stage_id
        where p.name = v_map #>> '{child,pipeline}'
          and s.name = v_after ->> 'stage') then
      raise exception 'stage %: after names the stage % of pipeline %, which does not exist',
        p_stage ->> 'name', v_after -> 'stage', v_map #>> '{child,pipeline}'
        using errcode = 'MR001',
          hint = 'Name a stage of the map''s child pipeline in "stage"; define the child pipeline '
            'first.';
    end if;
  end loop;
end
$$;

-- Says whether a pipeline is the one named, or starts runs of it, however deep: pipelines that
-- contain one another would never end.
create or replace function millrace.contains_pipeline(p_pipeline_id int, p_name text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with recursive inside as (
    select p_pipeline_id as id
    union
    select vs.child_pipeline_id
    from inside i
    join millrace.pipelines p on p.id = i.id
    join millrace.version_stages vs on vs.version_id = p.current_version_id
    where vs.child_pipeline_id is not null
  )
  select exists (
    select
    from inside i
    join millrace.pipelines p on p.id = i.id
    where p.name = p_name)
$$;

-- Raises MR001 unless the child pipeline of a map or pipeline stage exists and fits, and so does a
-- map's insert function.
create or replace function millrace.check_child(p_stage jsonb, p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path text[] := '{child,pipeline}';
  v_child millrace.pipelines;
begin
  if not p_stage ? 'child' then
    return;
  end if;
  select p.*
  into v_child
  from millrace.pipelines p
  where p.name = p_stage #>> v_path;
  if not found then
    perform millrace.refuse_value(p_stage, v_path, 'the name of a pipeline that is defined already',
      'Define the child pipeline first.');
  elsif cardinality(millrace.ways_of(v_child.id)) > 1 then
    perform millrace.refuse_value(p_stage, v_path,
      'a pipeline that neither replaces another nor is replaced',
      'Only what is started by itself can go either way: end the cut-over first.');
  elsif millrace.contains_pipeline(v_child.id, p_definition ->> 'pipeline') then
    perform millrace.refuse_value(p_stage, v_path,
      'a pipeline that does not start this one in turn',
      'Pipelines that contain one another would never end.');
  elsif p_stage ->> 'kind' = 'pipeline'
    and (v_child.entity_table, v_child.entity_key)
      <> (to_regclass(p_definition #>> '{entity,table}'), p_definition #>> '{entity,key}') then
    perform millrace.refuse_value(p_stage, v_path,
      format('a pipeline over the same table and key (this one is over %s.%s)',
        v_child.entity_table, v_child.entity_key),
      'A stage of kind pipeline runs over the same row; for rows of another table use the kind '
      'map.');
  end if;
  if p_stage #>> '{child,insert}' is not null
    and millrace.function_named(p_stage #>> '{child,insert}', 'text,jsonb') is null then
    perform millrace.refuse_value(p_stage, '{child,insert}',
      'a function (p_parent text, p_items jsonb) returns table (item_key text, entity_id text)',
      'Create the function in an earlier migration and name it with its schema; without it an '
      'item''s key is the id of a '
      'row that exists.');
  end if;
end
$$;

-- Lists all stages of a definition that come after one, by needs and thresholds.
create or replace function millrace.stages_after(p_stage text, p_stages jsonb) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  with recursive reach(name) as (
    select s ->> 'name'
    from jsonb_array_elements(p_stages) s
    where p_stage = any (millrace.edges_to(s))
    union
    select s ->> 'name'
    from reach r
    join jsonb_array_elements(p_stages) s on r.name = any (millrace.edges_to(s))
  )
  select array(select r.name from reach r)
$$;

-- Raises MR001 when two stages side by side would start a run of one pipeline on the same row. Two
-- that each have a condition may be alternatives, of which a run takes one.
create or replace function millrace.check_rival(p_stage jsonb, p_stages jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text := p_stage ->> 'name';
  v_rival text;
begin
  if p_stage ->> 'kind' <> 'pipeline' then
    return;
  end if;
  select s ->> 'name'
  into v_rival
  from jsonb_array_elements(p_stages) s
  where s ->> 'kind' = 'pipeline'
    and s ->> 'name' <> v_name
    and s #> '{child,pipeline}' = p_stage #> '{child,pipeline}'
    and not (s ? 'when' and p_stage ? 'when')
    and s ->> 'name' <> all (millrace.stages_after(v_name, p_stages))
    and v_name <> all (millrace.stages_after(s ->> 'name', p_stages))
  limit 1;
  if found then
    perform millrace.refuse_value(p_stage, '{child,pipeline}',
      format('a pipeline that stage %s beside it does not start too', v_rival),
      format('A row has one live run a pipeline: let one of %s and %s need the other, or give '
        'them child pipelines of '
        'their own.', v_name, v_rival));
  end if;
end
$$;

-- Raises MR001 unless a fan-in rule has the number that belongs to it, and no other.
create or replace function millrace.check_fan_in(p_stage jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fan_in jsonb := p_stage -> 'fan_in';
begin
  if (v_fan_in ->> 'rule' = 'at_least') <> (v_fan_in ? 'count') then
    perform millrace.refuse_value(p_stage, '{fan_in,count}',
      'given with the rule at_least, and only there',
      'Write {"rule": "at_least", "count": 20}.');
  elsif (v_fan_in ->> 'rule' = 'share') <> (v_fan_in ? 'share') then
    perform millrace.refuse_value(p_stage, '{fan_in,share}',
      'given with the rule share, and only there',
      'Write {"rule": "share", "share": 0.9}.');
  end if;
end
$$;

-- Concurrency groups: how a claim takes from those whose turn it is (group-turns.sql).

-- queued → started for up to p_share due attempts of each group, as far as its key has slots.
-- Returns them, each with its group.
create or replace function millrace.take_from_groups(
  p_stage millrace.stages,
  p_groups text[],
  p_share int,
  p_token uuid,
  p_now timestamptz,
  out attempt_ids bigint[],
  out groups text[])
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit int := (p_stage.limits #>> '{concurrency,limit}')::int;
begin
  with visited as materialized (
    select u.concurrency_group,
      case when v_limit is null then p_share else least(p_share, v_limit - (
        select count(*)
        from (
          select from millrace.in_flight f
          where f.stage_id = p_stage.id and f.key = substr(u.concurrency_group, 2)
          limit v_limit) f))
      end as share
    from unnest(p_groups) u(concurrency_group)
  ), picked as materialized (
    select a.id, v.concurrency_group
    from visited v
    cross join lateral (
      select q.id
      from millrace.attempts q
      where q.stage_id = p_stage.id
        and q.concurrency_group = v.concurrency_group
        and q.queue_at <= p_now
        and q.state = 'queued'
        and not q.isolated
      order by q.queue_at, q.id
      limit v.share
      for update skip locked) a
  ), taken as (
    update millrace.attempts a
    set state = 'started', token = p_token, started_at = p_now
    from picked p
    where a.id = p.id
    returning a.id, p.concurrency_group
  )
  select coalesce(array_agg(t.id), '{}'), coalesce(array_agg(t.concurrency_group), '{}')
  into attempt_ids, groups
  from taken t;
end
$$;

-- queued → started for the oldest isolated attempt, if its host has nothing else in work. is_due
-- tells whether there is one.
create or replace function millrace.take_isolated(
  p_stage millrace.stages,
  p_busy boolean,
  p_token uuid,
  p_now timestamptz,
  out is_due boolean,
  out attempt_id bigint,
  out concurrency_group text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  select a.id, a.concurrency_group
  into attempt_id, concurrency_group
  from millrace.attempts a
  where a.stage_id = p_stage.id
    and a.isolated
    and a.queue_at <= p_now
    and a.state = 'queued'
    and coalesce(millrace.free_of_key(p_stage, a.concurrency_group) > 0, true)
  order by a.queue_at, a.id
  limit 1
  for update skip locked;
  is_due := attempt_id is not null;
  if p_busy then
    attempt_id := null;
  end if;
  update millrace.attempts a
  set state = 'started', token = p_token, started_at = p_now
  where a.id = attempt_id;
end
$$;

-- queued → started for up to p_room attempts, round by round: each round takes a share from every
-- group in turn of the highest class. When it takes nothing, wait_ms says when to ask again.
create or replace function millrace.take_by_turns(
  p_stage millrace.stages,
  p_worker_id uuid,
  p_room int,
  p_token uuid,
  p_now timestamptz,
  inout last_turn bigint,
  out attempt_ids bigint[],
  out wait_ms int)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_groups text[];
  v_got record;
begin
  attempt_ids := '{}';
  -- The number of rounds is for groups that turn out to be empty; where it ends, the worker asks
  -- again.
  for v_round in 1 .. 50 loop
    v_groups := array(
      select g.concurrency_group
      from millrace.concurrency_groups g
      where g.stage_id = p_stage.id
        and g.turn is not null
        and g.priority = (
          select t.priority
          from millrace.concurrency_groups t
          where t.stage_id = p_stage.id and t.turn is not null
          order by t.priority desc, t.turn
          limit 1)
      order by g.turn
      limit p_room - cardinality(attempt_ids));
    exit when cardinality(v_groups) = 0;
    v_got := millrace.take_from_groups(p_stage, v_groups,
      greatest((p_room - cardinality(attempt_ids)) / cardinality(v_groups), 1), p_token, p_now);
    perform millrace.note_in_flight(
      p_stage, v_got.attempt_ids, v_got.groups, p_token, p_worker_id);
    perform millrace.end_turns(p_stage, v_groups, v_got.groups, last_turn, p_now);
    last_turn := last_turn + cardinality(v_groups);
    attempt_ids := attempt_ids || v_got.attempt_ids;
    exit when cardinality(attempt_ids) >= p_room;
  end loop;
  if cardinality(attempt_ids) = 0 then
    wait_ms := case
      when cardinality(v_groups) > 0
        or exists (select from millrace.arrivals a where a.stage_id = p_stage.id) then 0
      when exists (
        select from millrace.concurrency_groups g
        where g.stage_id = p_stage.id and g.due_at = 'infinity') then 1000
    end;
  end if;
end
$$;

-- Claims at a stage with groups, by turns; an isolated attempt that is due goes first, and by
-- itself. When it takes nothing, wait_ms says after how long to ask again; null: not by waiting.
create or replace function millrace.claim_groups(
  p_stage millrace.stages,
  p_worker_id uuid,
  p_host uuid,
  p_room int,
  inout limiter millrace.limiters,
  out token uuid,
  out attempt_ids bigint[],
  out entity_ids text[],
  out wait_ms int)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_token uuid := gen_random_uuid();
  v_host record;
  v_isolated record;
  v_turns record;
  v_taken bigint[] := '{}';
begin
  select count(*) > 0 as busy, bool_or(c.isolated) as isolated
  into v_host
  from millrace.claims c
  where c.host = p_host and c.expires_at > v_now;
  if v_host.isolated then
    return;
  end if;
  limiter := millrace.admit_arrivals(p_stage.id, limiter, p_room);
  v_isolated := millrace.take_isolated(p_stage, v_host.busy, v_token, v_now);
  if v_isolated.attempt_id is not null then
    v_taken := array[v_isolated.attempt_id];
    perform millrace.note_in_flight(
      p_stage, v_taken, array[v_isolated.concurrency_group], v_token, p_worker_id);
  elsif not v_isolated.is_due then
    v_turns := millrace.take_by_turns(
      p_stage, p_worker_id, p_room, v_token, v_now, limiter.last_turn);
    limiter.last_turn := v_turns.last_turn;
    v_taken := v_turns.attempt_ids;
    wait_ms := v_turns.wait_ms;
  end if;
  if cardinality(v_taken) > 0 then
    token := v_token;
    attempt_ids := v_taken;
    entity_ids := array(
      select r.entity_id
      from unnest(v_taken) with ordinality i(id, place)
      join millrace.attempts a on a.id = i.id
      join millrace.runs r on r.id = a.run_id
      order by i.place);
    insert into millrace.claims (token, worker_id, host, expires_at, isolated, attempt_ids)
    values (v_token, p_worker_id, p_host, v_now + p_stage.lease, v_isolated.is_due, attempt_ids);
  end if;
end
$$;

-- Lists what check_invariants() finds wrong in groups: queued attempts must be within reach.
create or replace function millrace.limit_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'a queued attempt''s concurrency group is known to its stage',
    a.run_id, a.id, a.concurrency_group
  from millrace.attempts a
  join millrace.stages s on s.id = a.stage_id and s.has_groups
  where a.queue_at is not null
    and a.state = 'queued'
    and a.concurrency_group is not null
    and not exists (
      select from millrace.concurrency_groups g
      where g.stage_id = a.stage_id and g.concurrency_group = a.concurrency_group)
    and not exists (
      select from millrace.arrivals n
      where n.stage_id = a.stage_id and n.concurrency_group = a.concurrency_group)
  union all
  select 'a parked concurrency group''s key has something in flight, or was freed',
    null, null, g.concurrency_group
  from millrace.concurrency_groups g
  join millrace.stages s on s.id = g.stage_id and s.has_groups
  where g.due_at = 'infinity'
    and not exists (
      select from millrace.in_flight f
      where f.stage_id = g.stage_id and f.key = substr(g.concurrency_group, 2))
    and not exists (
      select from millrace.arrivals n
      where n.stage_id = g.stage_id
        and n.concurrency_group = '*' || substr(g.concurrency_group, 2))
$$;

-- Collecting children: sums, thresholds and joins
--
-- collect_children() takes the parent alone, adds up the tallies of its children, and looks at
-- thresholds and at the fan-in rule. It runs in a transaction of its own or at the end of a
-- decision's. The worker whose call left tallies asks for it after its commit; the sweep collects
-- whatever is left.
--
-- Lock order: it takes the fan-out's advisory lock (and waits for other collectors only), then with
-- skip locked the parent's entity, the parent's run and the fan-out's row. Where somebody holds one
-- of them it answers busy, and its caller tries again.

-- Moves the tallies of a fan-out into its sums; where one of them asks for a recount, counts the
-- children anew. It deletes tallies and counts rows in one statement, hence in one snapshot: a
-- child whose tally is not in it is not counted either.
create or replace function millrace.consume_child_tallies(p_fan_out_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (
      select from millrace.child_tallies t where t.fan_out_id = p_fan_out_id and t.recount) then
    perform millrace.recount_children(p_fan_out_id);
    return;
  end if;
  with taken as (
    delete from millrace.child_tallies t
    where t.fan_out_id = p_fan_out_id
      and not t.recount
    returning t.*
  ), progress as (
    insert into millrace.fan_progress as p (fan_out_id, stage_id, done)
    select p_fan_out_id, t.stage_id, sum(t.done)
    from taken t
    where t.stage_id is not null
    group by t.stage_id
    on conflict on constraint fan_progress_pkey do update set done = p.done + excluded.done
  )
  update millrace.fan_outs f
  set completed = f.completed + c.completed,
    failed = f.failed + c.failed,
    cancelled = f.cancelled + c.cancelled
  from (
    select coalesce(sum(t.completed), 0) as completed,
      coalesce(sum(t.failed), 0) as failed,
      coalesce(sum(t.cancelled), 0) as cancelled
    from taken t
  ) c
  where f.id = p_fan_out_id;
end
$$;

-- Counts the children of a fan-out anew and drops its tallies, in one snapshot.
create or replace function millrace.recount_children(p_fan_out_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with taken as (
    delete from millrace.child_tallies t where t.fan_out_id = p_fan_out_id
  ), progress as (
    insert into millrace.fan_progress as p (fan_out_id, stage_id, done)
    select p_fan_out_id, s.id, (
      select count(*)
      from millrace.runs r
      where r.fan_out_id = p_fan_out_id
        and exists (
          select
          from millrace.done_attempts a
          where a.run_id = r.id
            and a.stage_id = s.id))
    from millrace.fan_outs f
    join millrace.stages s on s.pipeline_id = f.child_pipeline_id and s.counted_by_parent
    where f.id = p_fan_out_id
    on conflict on constraint fan_progress_pkey
      do update set done = excluded.done, next_number = null
  )
  update millrace.fan_outs f
  set completed = c.completed,
    failed = c.failed,
    -- A child whose row was deleted is counted as cancelled.
    cancelled = greatest(f.spawned - c.completed - c.failed - c.running, 0)
  from (
    select count(*) filter (where r.status = 'completed') as completed,
      count(*) filter (where r.status = 'failed') as failed,
      count(*) filter (where r.status = 'running') as running
    from millrace.runs r
    where r.fan_out_id = p_fan_out_id
  ) c
  where f.id = p_fan_out_id;
end
$$;

-- Locks what collecting the children of a fan-out writes: the parent's entity and run while the
-- fan-out is open, and the fan-out. False when somebody holds one of them.
create or replace function millrace.hold_fan_out(p_fan_out_id bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fan_out millrace.fan_outs;
  v_run millrace.runs;
begin
  select f.* into v_fan_out from millrace.fan_outs f where f.id = p_fan_out_id;
  select r.* into v_run from millrace.runs r where r.id = v_fan_out.run_id;
  if v_fan_out.state = 'open' and v_run.id is not null then
    if millrace.writes_entities(v_run.pipeline_id)
       and cardinality(
         millrace.lock_entities(v_run.pipeline_id, array[v_run.entity_id], false)) = 0 then
      return false;
    end if;
    perform from millrace.runs r where r.id = v_run.id for no key update skip locked;
    if not found then
      return false;
    end if;
  end if;
  -- Whoever deletes, resets or retries the parent may hold the fan-out in a long transaction, or
  -- have opened it again since.
  perform
  from millrace.fan_outs f
  where f.id = p_fan_out_id
    and (f.state <> 'open' or v_fan_out.state = 'open')
  for no key update skip locked;
  return found or v_fan_out.id is null;
end
$$;

-- Adds up what the children of a fan-out have reported, begins what waited for a threshold, and
-- ends the waiting stage when its rule is met. busy: somebody holds the parent, or the database
-- said to try again.
create or replace function millrace.collect_children(
  p_fan_out_id bigint, out wake int[], out busy boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fan_out millrace.fan_outs;
  v_passed record;
  v_joined record;
begin
  wake := '{}';
  busy := false;
  perform pg_advisory_xact_lock(hashtextextended('millrace.collect_children', p_fan_out_id));
  -- The collector that this one waited for has mostly added up what this one was asked for.
  if not exists (
      select from millrace.child_tallies t where t.fan_out_id = p_fan_out_id) then
    return;
  end if;
  if not millrace.hold_fan_out(p_fan_out_id) then
    busy := true;
    return;
  end if;
  perform millrace.consume_child_tallies(p_fan_out_id);
  -- Read under the locks: a cancel may have given it up meanwhile.
  select f.* into v_fan_out from millrace.fan_outs f where f.id = p_fan_out_id;
  if v_fan_out.state = 'open'
     and (select r.status = 'running' from millrace.runs r where r.id = v_fan_out.run_id) then
    v_passed := millrace.pass_thresholds_guarded(v_fan_out);
    v_joined := millrace.join_children(v_fan_out);
    wake := v_passed.wake || v_joined.ready;
    busy := v_passed.busy or v_joined.busy;
    if busy then
      -- What the children reported is added up: this makes somebody look once more.
      insert into millrace.child_tallies (fan_out_id) values (p_fan_out_id);
    end if;
  end if;
end
$$;

-- A worker calls it after a commit that left tallies, so that the parents need not wait for the
-- sweep.
create or replace function public.millrace_collect_children(p_fan_outs bigint[]) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off
set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_fan_out bigint;
  v_done record;
  v_wake int[] := '{}';
  v_busy bigint[] := '{}';
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  if p_fan_outs is null or cardinality(p_fan_outs) > 100 then
    raise exception 'p_fan_outs has % entries, but must be a list of at most 100',
        coalesce(cardinality(p_fan_outs)::text, 'no')
      using errcode = 'MR002',
        hint = 'Send the numbers that millrace_complete answered in "collect".';
  end if;
  for v_fan_out in select distinct f from unnest(p_fan_outs) f order by f loop
    v_done := millrace.collect_children(v_fan_out);
    v_wake := v_wake || v_done.wake;
    if v_done.busy then
      v_busy := v_busy || v_fan_out;
    end if;
  end loop;
  return jsonb_build_object(
    'wake', millrace.wake_list(millrace.stages_to_wake(v_wake)),
    'busy', v_busy,
    'collect', millrace.parents_to_collect(v_busy));
end
$$;

-- Names fan-outs with tallies that nobody has added up, but for these. Collecting the children of a
-- fan-out may end a run that is a child itself, which leaves a tally with the grandparent.
create or replace function millrace.parents_to_collect(p_except bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select distinct t.fan_out_id
    from (
      select t.fan_out_id
      from millrace.child_tallies t
      where t.fan_out_id <> all (p_except)
      limit 1000
    ) t
    limit 20);
end
$$;

-- Conditions: in which runs a stage may begin
--
-- advance() queues an unconditional stage as soon as its needs are done. The others come through
-- begin_stage(): a condition may skip one, a threshold may hold it back.

-- Says whether a stage of a run is done.
create or replace function millrace.is_done(p_run_id bigint, p_stage_id int) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from millrace.done_attempts a
    where a.run_id = p_run_id
      and a.stage_id = p_stage_id);
end
$$;

-- Picks the runs that are running.
create or replace function millrace.running_of(p_run_ids bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    where r.id = any (p_run_ids)
      and (r.status = 'running') is true
    order by r.id);
end
$$;

-- Says whether all thresholds of a stage hold in a run. Where fewer children exist than a number
-- asks for, all of them will do. A map that is done (finished, skipped, gone on without) satisfies
-- all.
create or replace function millrace.thresholds_hold(p_run_id bigint, p_after jsonb)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_after record;
  v_fan_out millrace.fan_outs;
  v_progress millrace.fan_progress;
begin
  for v_after in
    select a.*
    from jsonb_to_recordset(p_after) as a(map int, stage int, kind text, n int)
  loop
    continue when millrace.is_done(p_run_id, v_after.map);
    select f.* into v_fan_out
    from millrace.fan_outs f
    where f.run_id = p_run_id
      and f.stage_id = v_after.map
      and f.state = 'open';
    if not found then
      return false;
    end if;
    select p.* into v_progress
    from millrace.fan_progress p
    where p.fan_out_id = v_fan_out.id
      and p.stage_id = v_after.stage;
    continue when v_after.kind = 'count' and v_progress.done >= v_after.n;
    -- Which number is the smallest is known once all items are.
    continue when v_after.kind = 'consecutive'
      and v_fan_out.total is not null
      and v_progress.next_number - v_fan_out.first_number >= v_after.n;
    -- The sums rule most cases out before it reads a child; one that failed after this stage is in
    -- both.
    if v_fan_out.total is null
       or coalesce(v_progress.done, 0) + v_fan_out.failed + v_fan_out.cancelled < v_fan_out.total
       or exists (
         select
         from millrace.runs r
         where r.fan_out_id = v_fan_out.id
           and r.status = 'running'
           and not millrace.is_done(r.id, v_after.stage)) then
      return false;
    end if;
  end loop;
  return true;
end
$$;

-- Picks the runs in which a stage may begin and has not: it has no attempt that counts, its needs
-- are done and its thresholds hold.
create or replace function millrace.open_runs(p_stage_id int, p_run_ids bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    where r.id = any (p_run_ids)
      and (r.status = 'running') is true
      and not exists (
        select
        from millrace.attempts a
        where a.run_id = r.id
          and a.stage_id = p_stage_id
          and not a.superseded)
      and cardinality(vs.needs) = (
        select count(*)
        from millrace.done_attempts n
        where n.run_id = r.id
          and n.stage_id = any (vs.needs))
      and (vs.after = '[]' or millrace.thresholds_hold(r.id, vs.after))
    order by r.id);
end
$$;

-- Picks the runs that are running and have no attempt of the stage that counts. A user's trigger on
-- what was shown last may have ended a run, deleted it, or begun the stage by itself. Where the run
-- has ended, nothing but this shows its stage as cancelled, since the stage has no attempt.
create or replace function millrace.runs_to_begin(p_stage_id int, p_run_ids bigint[])
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unbegun record;
begin
  select array_agg(r.id order by r.id) filter (where r.status = 'running') as runs,
    array_agg(millrace.change_of(r.entity_id, 'failed', p_error => 'cancelled'))
      filter (where r.status <> 'running' and millrace.is_latest_run(r.id)) as over
  into v_unbegun
  from millrace.runs r
  where r.id = any (p_run_ids)
    and not exists (
      select
      from millrace.attempts a
      where a.run_id = r.id
        and a.stage_id = p_stage_id
        and not a.superseded);
  perform millrace.project(p_stage_id, v_unbegun.over);
  return coalesce(v_unbegun.runs, '{}');
end
$$;

-- Picks the runs in which the condition of a stage does not hold. A condition is asked about the
-- row, without the engine's own columns, and the results of its needs. No document is built of a
-- row that is larger than a worker takes, or a few such rows would keep their neighbours from being
-- recorded: the stage begins there, and its claim refuses the row.
create or replace function millrace.unmet_runs(p_stage_id int, p_run_ids bigint[]) returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline_id int := (
    select s.pipeline_id from millrace.stages s where s.id = p_stage_id);
  v_asked record;
  v_rows json[];
begin
  select array_agg(r.id order by r.id) as runs,
    array_agg(r.entity_id order by r.id) as entity_ids,
    -- What names neither the row nor "all there is" does not look at the row.
    bool_or(vs.when_path::text ~ '"entity"|\*|keyvalue') as reads_rows
  into v_asked
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id
    and vs.stage_id = p_stage_id
    and vs.when_path is not null
  where r.id = any (p_run_ids);
  if v_asked.runs is null then
    return '{}';
  end if;
  v_rows := case
    when v_asked.reads_rows then
      millrace.rows_of_entities(v_pipeline_id, v_asked.entity_ids, millrace.batch_bytes())
    else array_fill('{}'::json, array[cardinality(v_asked.runs)])
  end;
  return array(
    select r.id
    from unnest(v_asked.runs, v_rows) u(id, entity)
    join millrace.runs r on r.id = u.id
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    cross join lateral (
      select jsonb_object_agg(s.name, n.output) as needs
      from millrace.done_attempts n
      join millrace.stages s on s.id = n.stage_id
      where n.run_id = r.id
        and n.stage_id = any (vs.needs)
    ) n
    where u.entity is not null
      -- Unknown counts as false: a comparison with what is not there, or of a text with a number.
      and not coalesce(jsonb_path_match_tz(
        jsonb_build_object('entity', u.entity::jsonb, 'needs', coalesce(n.needs, '{}')),
        vs.when_path, '{}', true), false));
end
$$;

-- Costs: what a run has cost
--
-- An attempt keeps what it used, one that failed too; usage.cost_usd is its price in US dollars.
-- What a run costs is what its attempts and those of all its descendants cost. Where nobody named a
-- price the cost is null, not 0. A result taken over from an earlier run brings no usage along, so
-- that it is paid for once.

-- Lists every attempt of these runs and of their descendants (paid_by), with its cost, under the
-- run, the stage and the attempt of it that it was for. Without paid_by: what deleted children had
-- cost.
--
-- It plans with index look-ups alone, since it is asked for one run as for ten thousand. Views ask
-- for each run by itself, hence one plan for all: a list of a thousand documents takes 0.2 s, and
-- with a plan for each run took 0.9 s.
create or replace function millrace.attempt_costs(p_runs bigint[])
returns table (run_id bigint, stage_id int, attempt_id bigint, paid_by bigint, cost_usd numeric)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_mergejoin = off set enable_hashjoin = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with recursive family as (
    select r.id as root_id, null::int as stage_id, null::bigint as attempt_id, r.id
    from unnest(p_runs) r(id)
    union all
    select m.root_id, coalesce(m.stage_id, n.stage_id), coalesce(m.attempt_id, n.attempt_id), n.id
    from family m
    cross join lateral (
      select f.stage_id, f.attempt_id, c.id
      from millrace.fan_outs f
      join millrace.runs c on c.fan_out_id = f.id
      where f.run_id = m.id
      union all
      -- A child's former runs, whose place it has taken, were paid for as well.
      select null, null, r.took_place_of
      from millrace.runs r
      where r.id = m.id
        and m.stage_id is not null
        and r.took_place_of is not null
    ) n
  )
  select m.root_id, coalesce(m.stage_id, a.stage_id), coalesce(m.attempt_id, a.id), a.id,
    case when jsonb_typeof(a.usage -> 'cost_usd') = 'number' then
      (a.usage ->> 'cost_usd')::numeric
    end
  from family m
  join millrace.attempts a on a.run_id = m.id
  union all
  select m.root_id, coalesce(m.stage_id, f.stage_id), coalesce(m.attempt_id, f.attempt_id), null,
    g.cost_usd
  from family m
  join millrace.fan_outs f on f.run_id = m.id
  join millrace.former_costs g on g.fan_out_id = f.id;
end
$$;

-- Keeps with their parents what children have cost, before their runs are deleted or leave a
-- fan-out. It may hash: its caller plans with look-ups alone, by which each child would be compared
-- with all.
create or replace function millrace.keep_costs(p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = on
set jit = off set plan_cache_mode = force_custom_plan
as $$
declare
  v_children bigint[];
begin
  if not exists (
      select
      from millrace.runs r
      where r.id = any (p_run_ids)
        and r.fan_out_id is not null) then
    return;
  end if;
  -- Of parents that stay.
  v_children := array(
    select r.id
    from millrace.runs r
    join millrace.fan_outs f on f.id = r.fan_out_id
    join millrace.runs p on p.id = f.run_id
    where r.id = any (p_run_ids)
      and p.id <> all (p_run_ids));
  if cardinality(v_children) = 0 then
    return;
  end if;
  with recursive place as (
    select r.id as child_id, r.fan_out_id, r.id, r.took_place_of
    from millrace.runs r
    where r.id = any (v_children)
    union all
    select c.child_id, c.fan_out_id, o.id, o.took_place_of
    from place c
    join millrace.runs o on o.id = c.took_place_of
  )
  insert into millrace.former_costs (fan_out_id, cost_usd)
  select c.fan_out_id, sum(t.cost_usd)
  from place c
  join millrace.attempt_costs(array(select o.id from place o)) t on t.run_id = c.id
  where t.cost_usd is not null
  group by c.fan_out_id;
end
$$;

-- Sums the cost of one run up.
create or replace function millrace.cost_of(p_run bigint) returns numeric
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select sum(c.cost_usd) from millrace.attempt_costs(array[p_run]) c
$$;

-- Sums the cost of one run up, stage by stage.
create or replace function millrace.stage_costs(p_run bigint)
returns table (stage text, attempts int, cost_usd numeric)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select s.name, count(c.attempt_id) filter (where c.paid_by = c.attempt_id)::int, sum(c.cost_usd)
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id
  join millrace.stages s on s.id = vs.stage_id
  left join millrace.attempt_costs(array[p_run]) c on c.stage_id = vs.stage_id
  where r.id = p_run
  group by s.id, s.name, vs.position
  order by vs.position;
end
$$;

-- Runs with its owner's rights, since the engine's schema stays closed: a view calls it for those
-- rows alone that row-level security shows to the caller.
create or replace function millrace_evidence.entity_costs(p_pipeline text, p_entity_ids text[])
returns numeric
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select sum(c.cost_usd)
  from millrace.attempt_costs(array(
    select r.id
    from millrace.runs r
    join millrace.pipelines p on p.id = r.pipeline_id
    where p.name = p_pipeline
      and r.entity_id = any (p_entity_ids))) c
$$;

-- Cut-over: the flag, and which way it sends a row.

-- Reads the setting use_new_pipeline. One that is neither true nor false counts as false and is
-- reported, since the engine's own configuration never makes a user's write fail.
create or replace function millrace.use_new_pipeline() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_value text;
begin
  begin
    v_value := coalesce(millrace.setting('use_new_pipeline'), 'false');
  exception
    when others then
      if millrace.error_kind(sqlstate) <> 'lasting' then
        raise;
      end if;
      v_value := sqlerrm;
  end;
  if v_value not in ('true', 'false') then
    perform millrace.report('error', 'use_new_pipeline_malformed',
      format('use_new_pipeline is %L, but must be true or false: it counts as false', v_value),
      jsonb_build_object('hint', 'select vault.update_secret(id, ''true'') from vault.secrets '
        'where name = ''millrace_use_new_pipeline'';'));
  end if;
  return v_value = 'true';
end
$$;

-- Says where an entity lies between 0 and 1, for ever: a share that grows only adds entities.
create or replace function millrace.share_of(p_entity_id text) returns numeric
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select ('x' || left(md5(p_entity_id), 8))::bit(32)::bigint / 4294967296.0
$$;

-- Picks those of the entities, none of which has anything under way, that the flag of a pipeline
-- sends its way.
create or replace function millrace.new_way_ids(
  p_new millrace.pipelines,
  p_entity_ids text[])
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_flag millrace.cut_overs;
begin
  select c.* into v_flag from millrace.cut_overs c where c.pipeline_id = p_new.id;
  case v_flag.mode
    when 'on' then
      return p_entity_ids;
    when 'off' then
      return '{}';
    when 'share' then
      return array(
        select e from unnest(p_entity_ids) e where millrace.share_of(e) < v_flag.share);
    when 'groups' then
      return array(
        select e.id
        from unnest(p_entity_ids, millrace.metadata_of_entities(p_new.id, p_entity_ids))
          e(id, metadata)
        where e.metadata ->> p_new.group_key = any (v_flag.groups));
    else
      return case when millrace.use_new_pipeline() then p_entity_ids else '{}' end;
  end case;
end
$$;

-- Finds the pipeline of this name; raises MR003 unless it replaces another.
create or replace function millrace.replacing_pipeline(p_pipeline text) returns millrace.pipelines
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines;
begin
  select p.*
  into v_new
  from millrace.pipelines p
  where p.name = p_pipeline and p.replaces_id is not null;
  if not found then
    raise exception 'there is no pipeline % that replaces another', coalesce(p_pipeline, 'null')
      using errcode = 'MR003',
        hint = coalesce(
          'These do: ' || (
            select string_agg(p.name, ', ' order by p.name)
            from millrace.pipelines p
            where p.replaces_id is not null) || '.',
          'Say "replaces" in the definition of the new one.');
  end if;
  return v_new;
end
$$;

-- Raises MR002 unless these are a mode of the flag and what belongs to it.
create or replace function millrace.check_flag(
  p_new millrace.pipelines,
  p_mode text,
  p_share numeric,
  p_groups text[])
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_mode is null or p_mode not in ('default', 'off', 'share', 'groups', 'on') then
    raise exception 'p_mode is %, but must be default, off, share, groups or on',
      coalesce(p_mode, 'null')
      using errcode = 'MR002', hint = 'default follows the setting use_new_pipeline.';
  elsif (p_mode = 'share') <> (p_share is not null) or p_share not between 0 and 1 then
    raise exception 'p_share is % in the mode %, but must be a number from 0 to 1 '
      'in the mode share, and null in the others', coalesce(p_share::text, 'null'), p_mode
      using errcode = 'MR002',
        hint = format(
          'select millrace.set_cut_over(%L, ''share'', p_share => 0.1);', p_new.name);
  elsif (p_mode = 'groups') <> (p_groups is not null)
    or cardinality(p_groups) = 0
    or array_ndims(p_groups) > 1
    or array_position(p_groups, null) is not null then
    raise exception 'p_groups is % in the mode %, but must be a list of groups '
      'in the mode groups, and null in the others', coalesce(p_groups::text, 'null'), p_mode
      using errcode = 'MR002',
        hint = format(
          'select millrace.set_cut_over(%L, ''groups'', p_groups => array[''…'']);', p_new.name);
  elsif p_mode = 'groups' and p_new.group_key is null then
    raise exception 'p_mode is groups, but pipeline % does not say what its groups are',
      p_new.name
      using errcode = 'MR002',
        hint = 'Name a key of the metadata in replaces.groupBy of its definition.';
  end if;
end
$$;

create or replace function millrace.set_cut_over(
  p_pipeline text,
  p_mode text,
  p_share numeric default null,
  p_groups text[] default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines;
begin
  -- define() must not end the cut-over, or its groups, between the check and the commit.
  perform from millrace.pipelines p where p.name = p_pipeline for share;
  v_new := millrace.replacing_pipeline(p_pipeline);
  perform millrace.check_flag(v_new, p_mode, p_share, p_groups);
  update millrace.cut_overs c
  set mode = p_mode, share = p_share, groups = p_groups, changed_at = millrace.now()
  where c.pipeline_id = v_new.id;
end
$$;

-- Finds the row's own spelling of its key, as start() does, without a lock. Raises MR002 or MR003
-- where there is no such row.
create or replace function millrace.key_of_row(p_pipeline millrace.pipelines, p_entity_id text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_table regclass := p_pipeline.entity_table;
  v_key text := p_pipeline.entity_key;
  v_type text := (
    select format_type(a.atttypid, a.atttypmod)
    from pg_attribute a
    where a.attrelid = v_table and a.attname = v_key);
  v_id text;
begin
  execute format(
    'select e.%1$I::text from %2$s e where e.%1$I = $1::%3$s', v_key, v_table, v_type)
  into v_id
  using p_entity_id;
  if v_id is null then
    raise exception 'table % has no row with % %', v_table, v_key, coalesce(p_entity_id, 'null')
      using errcode = 'MR003', hint = 'Insert the row first.';
  end if;
  return v_id;
exception
  when data_exception then
    raise exception 'a key of table % cannot be read as one: %', v_table, sqlerrm
      using errcode = 'MR002', hint = format('Give values of the column %s.', v_key);
end
$$;

create or replace function millrace.cut_over_way(
  p_pipeline text,
  p_entity_id text,
  out way text,
  out why text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines := millrace.replacing_pipeline(p_pipeline);
  v_id text := millrace.key_of_row(v_new, p_entity_id);
  v_flag millrace.cut_overs;
begin
  select case when r.pipeline_id = v_new.id then 'new' else 'old' end,
    format('run %s is under way', r.id)
  into way, why
  from millrace.runs r
  where r.pipeline_id in (v_new.id, v_new.replaces_id)
    and r.entity_id = v_id
    and r.status = 'running';
  if found then
    return;
  end if;
  select c.* into v_flag from millrace.cut_overs c where c.pipeline_id = v_new.id;
  way := case when millrace.new_way_ids(v_new, array[v_id]) = '{}' then 'old' else 'new' end;
  why := case v_flag.mode
    when 'share' then format('the share is %s, and the row lies at %s',
      v_flag.share, round(millrace.share_of(v_id), 4))
    when 'groups' then format('its %s is %s', v_new.group_key, coalesce(
      (millrace.metadata_of_entities(v_new.id, array[v_id]))[1] ->> v_new.group_key, 'null'))
    when 'default' then
      'the flag is default, and use_new_pipeline is ' || millrace.use_new_pipeline()
    else 'the flag is ' || v_flag.mode
  end;
end
$$;

-- Cut-over: from an old pipeline to a new one.
--
-- A pipeline may replace another over the same table. Both go on, and a flag says which way an
-- entity goes when it is queued at the new one's first stage: always the same column, whatever the
-- flag. It acts in one place, queue_stage(), which intake and start() call with the entities held.
-- So nobody starts an entity one way while somebody starts it the other, and what is under way
-- stays where it is: an entity with a live run starts over in that, wherever the flag points by
-- now.
--
-- The flag is a row of millrace.cut_overs, set by millrace.set_cut_over() (cut-over-flag.sql).
-- Until somebody sets it, the setting use_new_pipeline counts.

-- Queues entities at a stage of a pipeline that replaces another or is replaced: each goes one way,
-- and shows nothing of the other. Raises MR005 where one cannot. The flag parts entities without a
-- live run, and only at the new pipeline's first stage: whoever names a later stage of it, or the
-- old one, has said which way it is. Returns the stages with work.
create or replace function millrace.queue_one_way(
  p_pipeline_id int, p_other_id int, p_stage_id int, p_entity_ids text[], p_dirty_ids text[],
  p_by_name boolean
) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
  v_here text[];
  v_there text[];
  v_free text[];
  v_wake int[] := '{}';
begin
  perform millrace.must_see_both_ways(array[p_pipeline_id, p_other_id]);
  v_there := array(
    select r.entity_id
    from millrace.runs r
    where r.pipeline_id = p_other_id and r.entity_id = any (p_entity_ids) and r.status = 'running'
    order by r.id);
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  if v_pipeline.replaces_id is not null and exists (
      select from millrace.version_stages vs
      where vs.version_id = v_pipeline.current_version_id
        and vs.stage_id = p_stage_id
        and vs.needs = '{}' and vs.after = '[]') then
    v_free := array(
      select e
      from unnest(p_entity_ids) e
      where e not in (
        select r.entity_id
        from millrace.runs r
        where r.pipeline_id in (p_pipeline_id, p_other_id)
          and r.entity_id = any (p_entity_ids)
          and r.status = 'running'));
    v_there := v_there || array(
      select e
      from unnest(v_free) e
      where e not in (select unnest(millrace.new_way_ids(v_pipeline, v_free))));
  elsif cardinality(v_there) > 0 then
    perform millrace.refuse_other_way(p_pipeline_id, p_stage_id, p_other_id, v_there);
  end if;
  v_here := array(
    select e from unnest(p_entity_ids) e where e not in (select unnest(v_there)));
  if cardinality(v_here) > 0 then
    perform millrace.clear_entities(p_other_id, v_here);
    v_wake := millrace.queue_here(p_pipeline_id, p_stage_id, v_here, array(
      select d from unnest(p_dirty_ids) d where d not in (select unnest(v_there))), p_by_name);
  end if;
  if cardinality(v_there) > 0 then
    perform millrace.clear_entities(p_pipeline_id, v_there);
    v_wake := v_wake || millrace.queue_here(
      p_other_id, millrace.first_stage(p_other_id), v_there, v_there, false);
  end if;
  return v_wake;
end
$$;

-- Raises MR005 where the transaction might not see a run that has begun the other way of a
-- cut-over. Without a projection the entities are only locked, not written, so that an older
-- snapshot says nothing of a run that began since.
create or replace function millrace.must_see_both_ways(p_ways int[]) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_isolation text := current_setting('transaction_isolation');
  v_name text;
begin
  if v_isolation <> 'read committed' then
    select p.name
    into v_name
    from millrace.pipelines p
    where p.id = any (p_ways) and p.projection = 'none'
    order by p.id
    limit 1;
    if found then
      raise exception
        'no run of pipeline % can be started or taken up in a transaction that is %',
        v_name, v_isolation
        using errcode = 'MR005',
          hint = 'It is part of a cut-over and has the projection none: '
            'do so in a transaction that is read committed.';
    end if;
  end if;
end
$$;

-- Raises MR005 about entities that are under way in the other pipeline of a cut-over.
create or replace function millrace.refuse_other_way(
  p_pipeline_id int,
  p_stage_id int,
  p_other_id int,
  p_entity_ids text[])
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage text;
  v_pipeline text;
  v_other text;
begin
  select s.name, p.name, o.name
  into v_stage, v_pipeline, v_other
  from millrace.stages s, millrace.pipelines p, millrace.pipelines o
  where s.id = p_stage_id and p.id = p_pipeline_id and o.id = p_other_id;
  raise exception 'stage % of pipeline % cannot start for % entities (%, …): '
    'a run of pipeline % is under way',
    v_stage, v_pipeline, cardinality(p_entity_ids), p_entity_ids[1], v_other
    using errcode = 'MR005',
      hint = format('Let it finish, or cancel it first: select millrace.cancel(r.id) '
        'from millrace.runs r join millrace.pipelines p on p.id = r.pipeline_id '
        'where p.name = %L and r.entity_id = %L and r.status = ''running'';',
        v_other, p_entity_ids[1]);
end
$$;

-- Shows all stages of a pipeline as pending on these entities. Rows that show nothing else are not
-- touched.
create or replace function millrace.clear_entities(p_pipeline_id int, p_entity_ids text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.write_entities(p_pipeline_id, 'queued', null, null, p_entity_ids, array(
    select s.name from millrace.stages s where s.pipeline_id = p_pipeline_id));
end
$$;

-- Decisions: what a person is asked
--
-- A manual stage waits for a person. Its attempt waits with the service `decision`, and a row of
-- public.millrace_decisions asks the question. Row-level security on that table says who may read
-- and answer it. It has no policy to begin with, so nobody but service_role decides until the
-- project writes some, in which the entities' own policies count:
--   create policy decisions_of_own_books on public.millrace_decisions
--     for select to authenticated
--     using (pipeline = 'books'
--       and exists (select from public.books b where b.id::text = entity_id));
--   create policy decide_on_own_books on public.millrace_decisions
--     for update to authenticated
--     using (pipeline = 'books'
--       and exists (select from public.books b where b.id::text = entity_id));
-- A policy's own functions must name their tables with the schema: millrace_decide() sets its
-- search_path.
--
-- Locks: a person holds the decision's row first, then waits for entity and run. So nothing that
-- holds a run ever waits for a decision's row. The attempt's state refuses an answer to what ended
-- otherwise (cancelled, started over, too late, deleted), and the sweep closes its row later,
-- skipping what is locked. Two people who each change an entity and then decide on it in one
-- transaction may deadlock, which Postgres ends by refusing one of them.

-- Asks for the decision of a manual stage in held runs: adds attempts that wait for a person until
-- the stage's deadline, and their rows in public.millrace_decisions.
create or replace function millrace.open_decisions(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
begin
  with asked as (
    insert into millrace.attempts
      (id, run_id, stage_id, number, parent_id, state, created_at, started_at, deadline_at, late_at,
        service, job_id)
    overriding system value
    select i.id, i.run_id, p_stage_id, coalesce(l.number, 0) + 1,
      case when not l.superseded then l.id end,
      'waiting', v_now, v_now, v_now + s.deadline, v_now + s.sla, 'decision', i.id::text
    -- The id is drawn by hand, since it is the job's id too.
    from (
      select u.id as run_id, nextval('millrace.attempts_id_seq') as id
      from (select r.id from unnest(p_run_ids) r(id) order by r.id) u
    ) i
    join millrace.stages s on s.id = p_stage_id
    left join lateral (
      select a.*
      from millrace.attempts a
      where a.run_id = i.run_id
        and a.stage_id = p_stage_id
      order by a.number desc
      limit 1
    ) l on true
    returning *
  ), question as (
    insert into public.millrace_decisions
      (attempt_id, pipeline, stage, run_id, entity_id, schema, opened_at, deadline_at)
    select a.id, p.name, s.name, r.id, r.entity_id, coalesce(s.decision -> 'schema', '{}'),
      v_now, a.deadline_at
    from asked a
    join millrace.runs r on r.id = a.run_id
    join millrace.stages s on s.id = a.stage_id
    join millrace.pipelines p on p.id = s.pipeline_id
    returning *
  )
  select array_agg(millrace.change_of(q.entity_id, 'started', q.attempt_id::text,
    p_started_at => v_now)) into v_changes
  from question q;
  perform millrace.project(p_stage_id, v_changes);
end
$$;

-- Says what became of a manual stage's attempt that ended without a decision.
create or replace function millrace.why_undecided(p_state millrace.attempt_state, p_error jsonb)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case p_state
    when 'failed' then coalesce(p_error ->> 'message', 'it failed')
    else millrace.stale_reason(p_state, p_error)
  end;
end
$$;

-- Closes locked decisions whose attempts ended otherwise, and removes those whose attempt is gone;
-- returns how many it closed. The table is public, so a trigger of a user's may refuse one row:
-- that row alone stays as it is.
create or replace function millrace.close_held(p_ids bigint[]) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  v_half int := cardinality(p_ids) / 2;
  v_closed int;
  v_context text;
begin
  begin
    update public.millrace_decisions d
    set closed_at = coalesce(a.finished_at, millrace.now()),
        closed_why = millrace.why_undecided(a.state, a.error)
    from millrace.attempts a
    where d.attempt_id = any (p_ids)
      and a.id = d.attempt_id;
    get diagnostics v_closed = row_count;
    delete from public.millrace_decisions d
    where d.attempt_id = any (p_ids)
      and not exists (select from millrace.attempts a where a.id = d.attempt_id);
    return v_closed;
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    if v_half = 0 then
      perform millrace.report('error', 'decision_not_closed',
        format('The decision on attempt %s cannot be closed: %s', p_ids[1], sqlerrm));
      return 0;
    end if;
  end;
  return millrace.close_held(p_ids[:v_half]) + millrace.close_held(p_ids[v_half + 1:]);
end
$$;

-- Looks at the next open decisions: closes those whose attempt ended otherwise, and removes those
-- whose attempt is gone; returns how many it closed.
create or replace function millrace.close_decisions(p_limit int) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_seen text;
  v_ids bigint[];
begin
  select s.value into v_seen
  from millrace.settings s
  where s.name = 'decisions_seen'
  for update skip locked;
  v_ids := array(
    select d.attempt_id
    from public.millrace_decisions d
    where d.closed_at is null
      and d.attempt_id > v_seen::bigint
    order by d.attempt_id
    limit p_limit);
  update millrace.settings s
  set value = v.value
  from (
    select case when cardinality(v_ids) < p_limit then '0' else v_ids[p_limit]::text end as value
  ) v
  where s.name = 'decisions_seen'
    and v_seen <> v.value;
  v_ids := array(
    select d.attempt_id
    from public.millrace_decisions d
    left join millrace.attempts a on a.id = d.attempt_id
    where d.attempt_id = any (v_ids)
      and d.closed_at is null
      and a.state is distinct from 'waiting'
    order by d.attempt_id
    for update of d skip locked);
  return case when cardinality(v_ids) > 0 then millrace.close_held(v_ids) else 0 end;
end
$$;

-- Removes the decisions of runs that are being deleted, without waiting for anybody. It leaves one
-- that somebody is answering this very moment to close_decisions(), or to prune_decisions() if it
-- was closed.
create or replace function millrace.forget_decisions(p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from public.millrace_decisions d
  where d.attempt_id in (
    select o.attempt_id
    from public.millrace_decisions o
    where o.run_id = any (p_run_ids)
    for update skip locked);
end
$$;

-- Removes decisions whose attempt is gone: somebody was answering them when their run was deleted.
create or replace function millrace.prune_decisions() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from public.millrace_decisions d
  where d.attempt_id in (
    select o.attempt_id
    from public.millrace_decisions o
    where not exists (select from millrace.attempts a where a.id = o.attempt_id)
    for update skip locked);
end
$$;

-- Cut-over: what a definition says of the pipeline that it replaces.

-- Raises MR001 unless a definition replaces no pipeline, or one over the same rows that nothing
-- else is tied to.
create or replace function millrace.check_replaces(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_replaces jsonb := p_definition -> 'replaces';
  v_name text := p_definition ->> 'pipeline';
  v_old millrace.pipelines;
begin
  if coalesce(jsonb_typeof(v_replaces), 'null') = 'null' then
    return;
  elsif jsonb_typeof(v_replaces) <> 'object'
    or coalesce(jsonb_typeof(v_replaces -> 'pipeline'), '') <> 'string'
    or v_replaces - array['pipeline', 'group_by'] <> '{}' then
    raise exception 'replaces is %, but must be an object of pipeline and group_by', v_replaces
      using errcode = 'MR001',
        hint = 'Write {"pipeline": "the_old_one"}; group_by is a key of the metadata.';
  end if;
  select p.*
  into v_old
  from millrace.pipelines p
  where p.name = v_replaces ->> 'pipeline';
  if v_old.id is null or v_old.name = v_name then
    raise exception 'replaces.pipeline is %, which is no other pipeline', v_replaces -> 'pipeline'
      using errcode = 'MR001',
        hint = 'Define the old pipeline before the one that replaces it.';
  elsif v_old.entity_table <> to_regclass(p_definition #>> '{entity,table}')
    or v_old.entity_key <> coalesce(p_definition #>> '{entity,key}', 'id') then
    raise exception 'replaces.pipeline is %, which is over %.%',
      v_replaces -> 'pipeline', v_old.entity_table, v_old.entity_key
      using errcode = 'MR001', hint = 'Both must be over the same table and key.';
  end if;
  perform millrace.check_untied(v_old, v_name);
  if v_replaces ? 'group_by' and (
      coalesce(jsonb_typeof(v_replaces -> 'group_by'), '') <> 'string'
      or p_definition #>> '{entity,metadata}' is null) then
    raise exception 'replaces.group_by is %, but must be a key of the metadata, '
      'whose column entity.metadata names', v_replaces -> 'group_by'
      using errcode = 'MR001',
        hint = 'Name the column in entity.metadata and the key in replaces.group_by, '
          'or leave group_by out.';
  end if;
end
$$;

-- Raises MR001 where one of two pipelines is part of another cut-over, or is started by a stage.
create or replace function millrace.check_untied(p_old millrace.pipelines, p_new text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new millrace.pipelines;
begin
  select p.* into v_new from millrace.pipelines p where p.name = p_new;
  if p_old.replaces_id is not null or exists (
      select from millrace.pipelines p
      where p.replaces_id = v_new.id
        or (p.replaces_id = p_old.id and p.id is distinct from v_new.id)) then
    raise exception 'pipeline % cannot replace %: one of them is part of another cut-over',
      p_new, p_old.name
      using errcode = 'MR001',
        hint = 'End that first: define the pipeline of it that replaces the other '
          'without "replaces".';
  elsif p_old.is_child or v_new.is_child then
    raise exception 'pipeline % cannot replace %: a stage of another pipeline starts runs of %',
      p_new, p_old.name, case when p_old.is_child then p_old.name else p_new end
      using errcode = 'MR001',
        hint = 'Replace the pipeline that has this stage; only what is started by itself '
          'can go either way.';
  end if;
end
$$;

-- Raises MR001 when a pipeline that another replaces is to change its table or key.
create or replace function millrace.check_replaced(
  p_pipeline text,
  p_table regclass,
  p_key text)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new text := (
    select n.name
    from millrace.pipelines p
    join millrace.pipelines n on n.replaces_id = p.id
    where p.name = p_pipeline and (p.entity_table <> p_table or p.entity_key <> p_key));
begin
  if v_new is not null then
    raise exception 'pipeline % cannot move to %.%: pipeline % replaces it, over the same rows',
      p_pipeline, p_table, p_key, v_new
      using errcode = 'MR001', hint = format('Define %s without "replaces" first.', v_new);
  end if;
end
$$;

-- Writes which pipeline a definition replaces, with its flag at the default. A flag that is there
-- stays as somebody set it.
create or replace function millrace.save_cut_over(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new text := p_definition ->> 'pipeline';
  v_old text := p_definition #>> '{replaces,pipeline}';
  v_old_id int := (select p.id from millrace.pipelines p where p.name = v_old);
  v_key text := p_definition #>> '{replaces,group_by}';
  v_both int;
begin
  update millrace.pipelines p
  set replaces_id = v_old_id, group_key = v_key
  where p.id = p_pipeline_id
    and (p.replaces_id is distinct from v_old_id or p.group_key is distinct from v_key);
  if v_old_id is null then
    delete from millrace.cut_overs c where c.pipeline_id = p_pipeline_id;
    return;
  end if;
  v_both := (
    select count(*)
    from millrace.runs n
    join millrace.runs o on o.pipeline_id = v_old_id
      and o.entity_id = n.entity_id
      and o.status = 'running'
    where n.pipeline_id = p_pipeline_id and n.status = 'running');
  if v_both > 0 then
    raise exception 'pipeline % cannot replace % yet: % entities have live runs of both',
      v_new, v_old, v_both
      using errcode = 'MR001',
        hint = 'Let them finish, or cancel those of one: select millrace.cancel(id) '
          'from millrace.runs where status = ''running'' and pipeline_id = ….';
  elsif v_key is null and exists (
      select from millrace.cut_overs c
      where c.pipeline_id = p_pipeline_id and c.mode = 'groups') then
    raise exception 'replaces.group_by is missing, but the flag of pipeline % names groups', v_new
      using errcode = 'MR001',
        hint = format('Set the flag first: select millrace.set_cut_over(%L, ''off'').', v_new);
  end if;
  insert into millrace.cut_overs (pipeline_id, changed_at)
  values (p_pipeline_id, millrace.now())
  on conflict on constraint cut_overs_pkey do nothing;
end
$$;

-- Due: the sweep starts runs by a timestamp column of the entity
--
-- A row whose column is past gets a run, unless it has a live one or got its last less than a
-- minute ago. The run itself, or the user, moves the column on.
--
-- What a sweep looks at is bounded, however many rows are past due and under way: first the rows
-- that became due since it looked last, then the next few thousand of all that are past due, in
-- order and round and round. Both read the user's own index on the column.

-- Raises MR001 unless the column by which runs are due is one of type timestamptz.
create or replace function millrace.check_due(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_entity jsonb := p_definition -> 'entity';
  v_type text;
begin
  if not v_entity ? 'due' then
    return;
  end if;
  select format_type(a.atttypid, null)
  into v_type
  from pg_attribute a
  where a.attrelid = to_regclass(v_entity ->> 'table')
    and a.attname = v_entity ->> 'due'
    and a.attnum > 0
    and not a.attisdropped;
  if v_type is distinct from 'timestamp with time zone' then
    raise exception 'entity.due is %, which is %', v_entity -> 'due',
      coalesce('of type ' || v_type, format('no column of %s', v_entity ->> 'table'))
      using errcode = 'MR001',
        hint = format('Name a column of type timestamptz: alter table %s add column due_at '
        'timestamptz; or leave it out.', v_entity ->> 'table');
  end if;
end
$$;

-- Writes the statement that makes the index by which due rows are found; null where the column has
-- one, or the pipeline no such column.
create or replace function millrace.missing_due_index(p_pipeline millrace.pipelines)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_pipeline.due_column is null or exists (
      select
      from pg_index i
      join pg_class c on c.oid = i.indexrelid
      join pg_am m on m.oid = c.relam and m.amname = 'btree'
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
      where i.indrelid = p_pipeline.entity_table
        and a.attname = p_pipeline.due_column
        and i.indisvalid) then
    return null;
  end if;
  return format('create index concurrently on %s (%I, %I);',
    p_pipeline.entity_table, p_pipeline.due_column, p_pipeline.entity_key);
end
$$;

-- define() keeps by which column runs of a pipeline are due. Where that has no index it says so,
-- and how one is made: each sweep would read the whole table.
create or replace function millrace.save_due(p_pipeline_id int, p_definition jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_column text := p_definition #>> '{entity,due}';
  v_pipeline millrace.pipelines;
  v_statement text;
begin
  update millrace.pipelines p
  set due_column = v_column
  where p.id = p_pipeline_id
    and p.due_column is distinct from v_column;
  if found then
    delete from millrace.due_progress d where d.pipeline_id = p_pipeline_id;
  end if;
  if v_column is null then
    return;
  end if;
  insert into millrace.due_progress (pipeline_id, seen_until)
  values (p_pipeline_id, '-infinity')
  on conflict on constraint due_progress_pkey do nothing;
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  v_statement := millrace.missing_due_index(v_pipeline);
  if v_statement is not null then
    raise warning 'column % of table % has no index, so each sweep reads the whole table',
      v_column, v_pipeline.entity_table
      using hint = 'Make one: ' || v_statement;
  end if;
end
$$;

-- Says whether a run of a row may start because it is due: it has no live one, and its last began a
-- minute ago or earlier.
create or replace function millrace.is_rested(p_ways int[], p_key text) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return not exists (
    select
    from unnest(p_ways) w(id)
    cross join lateral (
      select r.status, r.created_at
      from millrace.runs r
      where r.entity_id = p_key
        and r.pipeline_id = w.id
      order by r.id desc
      limit 1) l
    where l.status = 'running'
      or l.created_at > millrace.now() - interval '1 minute');
end
$$;

-- Finds the next rows that are past due, in the order of column and key.
create or replace function millrace.due_rows(
  p_pipeline millrace.pipelines, p_after timestamptz, p_after_key text, p_limit int
) returns table (key text, due timestamptz)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_beyond text := case
    when p_after is null then ''
    when p_after_key is null then 'and e.%1$I > $2'
    else 'and e.%1$I >= $2 and (e.%1$I, e.%2$I) > ($2, $3::%4$s)'
  end;
begin
  return query execute format(
    'select e.%2$I::text, e.%1$I from %3$s e where e.%1$I <= $1 ' || v_beyond
      || ' order by e.%1$I, e.%2$I limit $4',
    p_pipeline.due_column, p_pipeline.entity_key, p_pipeline.entity_table,
    millrace.key_type(p_pipeline))
  using millrace.now(), p_after, p_after_key, p_limit;
end
$$;

-- Locks those of some rows that nobody holds, and returns those that are still due, now that nobody
-- can start them beside this.
create or replace function millrace.lock_due(p_pipeline millrace.pipelines, p_keys text[])
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_held text[] := millrace.lock_entities(p_pipeline.id, p_keys, false);
  v_ways int[] := millrace.ways_of(p_pipeline.id);
  v_due text[];
begin
  execute format(
    'select array_agg(e.%2$I::text order by e.%2$I) from %3$s e '
    'where e.%2$I = any ($1::%4$s[]) and e.%1$I <= $2',
    p_pipeline.due_column, p_pipeline.entity_key, p_pipeline.entity_table,
    millrace.key_type(p_pipeline))
  into v_due
  using v_held, millrace.now();
  return array(select d from unnest(v_due) d where millrace.is_rested(v_ways, d));
end
$$;

-- Starts runs of rows that the caller holds; returns how many. A row whose run cannot start, since
-- a trigger of the user's refuses to show it, must not keep the others from theirs: a portion that
-- raises is halved until it stands alone, for as long as there is time.
create or replace function millrace.start_held(
  p_pipeline millrace.pipelines, p_stage_id int, p_keys text[], p_until timestamptz
) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  v_half int := cardinality(p_keys) / 2;
  v_context text;
begin
  if cardinality(p_keys) = 0 then
    return 0;
  end if;
  begin
    perform millrace.queue_stage(p_pipeline.id, p_stage_id, p_keys, p_keys, false);
    return cardinality(p_keys);
  exception when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    if v_half = 0 or clock_timestamp() >= p_until then
      perform millrace.report('error', 'due_not_started', format(
        'Row %s of pipeline %s is due, but no run can start%s: %s', p_keys[1], p_pipeline.name,
        case when v_half > 0 then ', nor for ' || cardinality(p_keys) - 1 || ' others' end,
        sqlerrm));
      return 0;
    end if;
  end;
  return millrace.start_held(p_pipeline, p_stage_id, p_keys[:v_half], p_until)
    + millrace.start_held(p_pipeline, p_stage_id, p_keys[v_half + 1:], p_until);
end
$$;

-- Looks at the rows of a pipeline that became due since the sweep looked last, and at the next of
-- all that are past due; returns those that may start, a portion of each.
create or replace function millrace.next_due(
  p_pipeline millrace.pipelines, p_progress millrace.due_progress
) returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_portion constant int := 1000;
  v_look constant int := 5000;
  v_ways int[] := millrace.ways_of(p_pipeline.id);
  v_now timestamptz := millrace.now();
  v_fresh record;
  v_row record;
  v_looked int := 0;
  v_keys text[] := '{}';
begin
  select count(*) as looked, max(k.due) as last,
    coalesce(array_agg(k.key) filter (where millrace.is_rested(v_ways, k.key)), '{}') as keys
  into v_fresh
  from millrace.due_rows(p_pipeline, p_progress.seen_until, null, v_portion) k;
  for v_row in
    select k.key, k.due
    from millrace.due_rows(p_pipeline, p_progress.lap_at, p_progress.lap_key, v_look) k
  loop
    v_looked := v_looked + 1;
    if millrace.is_rested(v_ways, v_row.key) then
      v_keys := v_keys || v_row.key;
    end if;
    exit when cardinality(v_keys) = v_portion;
  end loop;
  update millrace.due_progress d
  set seen_until = case when v_fresh.looked = v_portion then v_fresh.last else v_now end,
    lap_at = case when v_looked = v_look or cardinality(v_keys) = v_portion then v_row.due end,
    lap_key = case when v_looked = v_look or cardinality(v_keys) = v_portion then v_row.key end
  where d.pipeline_id = p_pipeline.id;
  return array(select distinct k from unnest(v_fresh.keys || v_keys) k);
end
$$;

-- Starts the due runs of one pipeline, as many as one sweep may; returns how many. Whoever holds
-- its progress does, so that two sweeps at once never look at the same rows.
create or replace function millrace.start_due_runs(p_pipeline millrace.pipelines) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_progress millrace.due_progress;
begin
  select d.* into v_progress
  from millrace.due_progress d
  where d.pipeline_id = p_pipeline.id
  for update skip locked;
  if not found then
    return 0;
  end if;
  return millrace.start_held(p_pipeline, millrace.first_stage(p_pipeline.id),
    millrace.lock_due(p_pipeline, millrace.next_due(p_pipeline, v_progress)),
    clock_timestamp() + interval '2 seconds');
end
$$;

-- Starts the due runs of all pipelines that have some; says how many where any pipeline declares
-- a column. A fault of one, such as a column that was renamed, ends no other part of the sweep.
create or replace function millrace.start_due() returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
  v_started int;
  v_context text;
begin
  for v_pipeline in
    select p.*
    from millrace.pipelines p
    where p.due_column is not null
      and p.enabled
    order by p.id
  loop
    v_started := coalesce(v_started, 0);
    begin
      v_started := v_started + millrace.start_due_runs(v_pipeline);
    exception
      when query_canceled or assert_failure or others then
        get stacked diagnostics v_context = pg_exception_context;
        if not millrace.report_caught(sqlstate, v_context, 'sweep_failed', format(
            'The due runs of pipeline %s cannot start: %s', v_pipeline.name, sqlerrm)) then
          raise;
        end if;
    end;
  end loop;
  return jsonb_strip_nulls(jsonb_build_object('due', v_started));
end
$$;

-- Looks for columns by which runs are due that have no index.
create or replace function millrace.due_findings()
returns table (what text, ok boolean, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format('due rows of pipeline %s are found by an index', p.name), i.missing is null,
    coalesce('each sweep reads the whole table: ' || i.missing, p.due_column)
  from millrace.pipelines p
  cross join lateral millrace.missing_due_index(p) i(missing)
  where p.due_column is not null
$$;

-- Endings: a stage's result, or the row as it is by then, ends the run under a name
--
-- It is no failure: the run is completed, with no dead letter and no alert. What comes after the
-- stage, and what runs beside it, is skipped. A stage is asked when it completes, in the completing
-- transaction and after its apply function.

-- Writes how the stages of a new version begin and end runs. A stage that only a person begins may
-- skip whatever comes after it, and a stage whose output a row may bring along is skipped itself:
-- none of them is unconditional.
create or replace function millrace.save_endings(
  p_pipeline_id int, p_version_id int, p_stages jsonb
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.version_stages vs
  set given_path = (s ->> 'given')::jsonpath,
    on_demand = coalesce((s ->> 'on_demand')::boolean, false),
    ends = s -> 'ends',
    unconditional = vs.unconditional and not s ? 'given'
  from millrace.stages t
  join jsonb_array_elements(p_stages) s on s ->> 'name' = t.name
  where vs.version_id = p_version_id
    and t.id = vs.stage_id
    and t.pipeline_id = p_pipeline_id
    and s ?| array['given', 'on_demand', 'ends'];
  update millrace.version_stages vs
  set unconditional = false
  from millrace.version_stages d
  where vs.version_id = p_version_id
    and d.version_id = p_version_id
    and d.on_demand
    and (vs.stage_id = d.stage_id or vs.stage_id = any (d.dependents));
  update millrace.stages t
  set has_ends = true
  from millrace.version_stages vs
  where vs.version_id = p_version_id
    and vs.ends is not null
    and t.id = vs.stage_id
    and not t.has_ends;
  update millrace.pipelines p
  set has_given = true
  where p.id = p_pipeline_id
    and not p.has_given
    and exists (
      select
      from millrace.version_stages vs
      where vs.version_id = p_version_id and vs.given_path is not null);
end
$$;

-- Completes attempts of one stage: those whose runs it ends, and the others. Returns the stages
-- that got work.
create or replace function millrace.complete_or_end(p_stage_id int, p_items millrace.work[])
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ended record;
  v_rest millrace.work[];
begin
  if not (select s.has_ends from millrace.stages s where s.id = p_stage_id) then
    return millrace.complete(p_stage_id, p_items);
  end if;
  select coalesce(array_agg(e.run_id order by e.run_id), '{}') as run_ids,
    array_agg(e.name order by e.run_id) as names
  into v_ended
  from millrace.endings_of(p_stage_id, p_items) e;
  if cardinality(v_ended.run_ids) = 0 then
    return millrace.complete(p_stage_id, p_items);
  end if;
  v_rest := array(
    select i from unnest(p_items) i where i.run_id <> all (v_ended.run_ids) order by i.ord);
  perform millrace.complete_and_end(p_stage_id, array(
    select i from unnest(p_items) i where i.run_id = any (v_ended.run_ids) order by i.ord),
    v_ended.run_ids, v_ended.names);
  -- A user's trigger on what was shown may have ended what else the batch is about.
  v_rest := array(
    select i from unnest(v_rest) i
    where i.attempt_id <> all (millrace.late_attempts(v_rest)));
  if cardinality(v_rest) = 0 then
    return '{}';
  end if;
  return millrace.complete(p_stage_id, v_rest);
end
$$;

-- Finds the runs that these results end, and the name of the first condition that holds. A
-- condition is asked about the row, without the engine's own columns, and the result. No document
-- is built of a row that is larger than a worker takes: of such a row no condition on it holds.
create or replace function millrace.endings_of(p_stage_id int, p_items millrace.work[])
returns table (run_id bigint, name text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_asked record;
  v_rows json[];
begin
  select array_agg(i order by i.ord) as items, array_agg(i.entity_id order by i.ord) as entity_ids,
    min(r.pipeline_id) as pipeline_id,
    bool_or(vs.ends::text ~ 'entity|\*|keyvalue') as reads_rows
  into v_asked
  from unnest(p_items) i
  join millrace.runs r on r.id = i.run_id
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  where vs.ends is not null;
  if v_asked.items is null then
    return;
  end if;
  v_rows := case
    when v_asked.reads_rows then millrace.rows_of_entities(
      v_asked.pipeline_id, v_asked.entity_ids, millrace.batch_bytes())
    else array_fill('{}'::json, array[cardinality(v_asked.entity_ids)])
  end;
  return query
    select r.id, e.name
    from unnest(v_asked.items) with ordinality i
    join millrace.runs r on r.id = i.run_id
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
    cross join lateral (
      select jsonb_build_object(
        'entity', v_rows[i.ordinality]::jsonb, 'result', i.result) as value
      offset 0) asked
    cross join lateral (
      select c.value ->> 'name' as name
      from jsonb_array_elements(vs.ends) with ordinality c
      where coalesce(jsonb_path_match_tz(
        asked.value, (c.value ->> 'when')::jsonpath, '{}', true), false)
      order by c.ordinality
      limit 1) e
    where v_rows[i.ordinality] is not null;
end
$$;

-- started | waiting | queued → completed for the last attempts of runs that end under a name. All
-- of it before the first projection: a user's trigger on the entity may queue a stage anew there
-- and then.
create or replace function millrace.complete_and_end(
  p_stage_id int, p_items millrace.work[], p_run_ids bigint[], p_names text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_changes millrace.change[];
  v_skipped int[];
begin
  v_changes := millrace.close_completed(p_items, v_now, false, '{}', null);
  -- Not at the stage itself: children that come late for it go on, or do not, as it says.
  perform millrace.cancel_attempts(p_run_ids, array(
    select distinct vs.stage_id
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where r.id = any (p_run_ids)
      and vs.stage_id <> p_stage_id));
  with ended as (
    update millrace.runs r
    set status = 'completed', finished_at = v_now, ended_as = e.name
    from unnest(p_run_ids, p_names) e(id, name)
    where r.id = e.id
      and (r.status = 'running') is true
    returning r.fan_out_id
  )
  insert into millrace.child_tallies (fan_out_id, completed)
  select e.fan_out_id, count(*)
  from ended e
  where e.fan_out_id is not null
  group by e.fan_out_id;
  v_skipped := millrace.skip_the_rest(p_run_ids);
  perform millrace.tally_done(v_skipped || p_stage_id, p_run_ids);
  perform millrace.project(p_stage_id, v_changes);
  perform millrace.show_skipped_rest(s, p_run_ids) from unnest(v_skipped) s;
  if (select s.counted from millrace.stages s where s.id = p_stage_id) then
    perform millrace.note_spending(p_items);
  end if;
end
$$;

-- Skips whatever is not done in runs that have ended under a name. Returns the stages, in order.
create or replace function millrace.skip_the_rest(p_run_ids bigint[]) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_stages int[];
begin
  with skipped as (
    insert into millrace.attempts (run_id, stage_id, number, state, created_at, finished_at, error)
    select r.id, vs.stage_id,
      coalesce((
        select max(a.number)
        from millrace.attempts a
        where a.run_id = r.id
          and a.stage_id = vs.stage_id), 0) + 1,
      'skipped', v_now, v_now, jsonb_build_object(
        'code', 'skipped', 'message', 'the run ended as ' || r.ended_as, 'ended', r.ended_as)
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where r.id = any (p_run_ids)
      and not millrace.is_done(r.id, vs.stage_id)
    order by r.id, vs.position
    returning stage_id
  )
  select array_agg(s.stage_id order by s.stage_id) into v_stages
  from (select distinct k.stage_id from skipped k) s;
  return coalesce(v_stages, '{}');
end
$$;

-- Tallies for their parents what child runs that ended under a name have done last, at the stages
-- that a threshold counts.
create or replace function millrace.tally_done(p_stage_ids int[], p_run_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into millrace.child_tallies (fan_out_id, stage_id, done)
  select r.fan_out_id, s.id, count(*)
  from millrace.runs r
  join millrace.stages s on s.pipeline_id = r.pipeline_id
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = s.id
  join millrace.done_attempts d on d.run_id = r.id and d.stage_id = s.id
  where r.id = any (p_run_ids)
    and r.fan_out_id is not null
    and s.id = any (p_stage_ids)
    and s.counted_by_parent
    and d.finished_at = r.finished_at
  group by r.fan_out_id, s.id;
end
$$;

-- Shows a stage as skipped on the entities of runs that have ended under a name, unless a user's
-- trigger has started them anew since.
create or replace function millrace.show_skipped_rest(p_stage_id int, p_run_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.show_stage(p_stage_id, array(
    select r.id
    from millrace.runs r
    join millrace.done_attempts d on d.run_id = r.id and d.stage_id = p_stage_id
    where r.id = any (p_run_ids)
      and r.ended_as is not null
      and d.error ? 'ended'
      and millrace.is_latest_run(r.id)
    order by r.id), 'skipped', millrace.now());
end
$$;

-- Takes back, in a held run that goes on, that it had ended under a name: what was skipped for that
-- is pending again.
create or replace function millrace.take_ending_back(p_run millrace.runs) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_run.ended_as is null then
    return;
  end if;
  update millrace.runs r set ended_as = null where r.id = p_run.id;
  perform millrace.clear_stages(p_run, array(
    select d.stage_id
    from millrace.done_attempts d
    where d.run_id = p_run.id
      and d.error ? 'ended'));
end
$$;

-- Finds runs that say of their ending what cannot be.
create or replace function millrace.ending_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'a run that ended under a name is completed', r.id, null::bigint,
    format('%s, but it is %s', r.ended_as, r.status)
  from millrace.runs r
  where r.ended_as is not null
    and r.status <> 'completed'
  union all
  select 'a stage is skipped for the ending of its own run', a.run_id, a.id, 'stage ' || a.stage_id
  from millrace.attempts a
  join millrace.runs r on r.id = a.run_id
  where a.state = 'skipped'
    and not a.superseded
    and a.error ? 'ended'
    and a.error ->> 'ended' is distinct from r.ended_as
  union all
  select 'what the row brought along is known of its first run alone', r.id, null, r.entity_id
  from millrace.runs r
  where r.given is not null
    and exists (
      select
      from millrace.runs o
      where o.pipeline_id = r.pipeline_id
        and o.entity_id = r.entity_id
        and o.id < r.id)
$$;

-- Fan-in: what the children's ends come to for the stage that waits for them

-- Builds the error of a stage whose children failed, with the first of them.
create or replace function millrace.child_failure(p_fan_out millrace.fan_outs) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_first record;
begin
  select r.item_key, r.status, s.name as stage, millrace.owner_message(a.error, a.id) as message
  into v_first
  from millrace.runs r
  left join millrace.attempts a on a.run_id = r.id and a.state = 'failed' and not a.superseded
  left join millrace.stages s on s.id = a.stage_id
  where r.fan_out_id = p_fan_out.id
    and r.status in ('failed', 'cancelled')
  order by r.status, r.id, a.id desc
  limit 1;
  return jsonb_build_object(
    'permanent', true,
    'code', case when p_fan_out.failed > 0 then 'child_failed' else 'child_cancelled' end,
    'message', format('%s of %s children failed and %s were cancelled; the first: %s, %s',
      p_fan_out.failed, coalesce(p_fan_out.total, p_fan_out.spawned), p_fan_out.cancelled,
      coalesce(v_first.item_key, 'one that was deleted'),
      coalesce(v_first.stage || ': ' || v_first.message, v_first.status::text, 'gone')));
end
$$;

-- Says what the fan-in rule makes of the sums: completed, failed with the reason, or null (go on
-- waiting). A rule that asks for more children than there are is satisfied by all of them.
create or replace function millrace.fan_in_verdict(
  p_fan_out millrace.fan_outs,
  p_fan_in jsonb,
  p_deadline_at timestamptz,
  out outcome text,
  out error jsonb
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_over boolean :=
    p_fan_out.completed + p_fan_out.failed + p_fan_out.cancelled >= p_fan_out.total;
  v_wanted int := case p_fan_in ->> 'rule'
    when 'at_least' then (p_fan_in ->> 'count')::int
    when 'share' then ceil((p_fan_in ->> 'share')::numeric * p_fan_out.total)
  end;
begin
  -- A rule that is met counts, whichever of its last children was added up first.
  if p_fan_out.completed >= v_wanted then
    outcome := 'completed';
  elsif coalesce(p_fan_in ->> 'failed_children', 'fail') = 'fail'
        and p_fan_out.failed + p_fan_out.cancelled > 0 then
    outcome := 'failed';
    error := millrace.child_failure(p_fan_out);
  elsif v_over and (v_wanted is null or p_fan_out.completed >= p_fan_out.total) then
    outcome := 'completed';
  elsif v_over then
    outcome := 'failed';
    error := millrace.child_failure(p_fan_out);
    error := error || jsonb_build_object('code', 'too_few_children', 'message', format(
      '%s of %s children were completed, but the fan-in rule asks for %s; %s',
      p_fan_out.completed, p_fan_out.total, v_wanted, error ->> 'message'));
  elsif p_deadline_at <= millrace.now() and p_fan_in ->> 'at_deadline' = 'finish' then
    outcome := 'completed';
  end if;
end
$$;

-- Builds the result of a map stage (how many children came to what) or of a pipeline stage (the
-- results of the child's last stages).
create or replace function millrace.fan_in_output(p_fan_out millrace.fan_outs, p_kind text)
returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_kind = 'map' then
    return jsonb_build_object(
      'total', coalesce(p_fan_out.total, p_fan_out.spawned),
      'completed', p_fan_out.completed,
      'failed', p_fan_out.failed,
      'cancelled', p_fan_out.cancelled);
  end if;
  return (
    select coalesce(jsonb_object_agg(s.name, a.output), '{}')
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id and vs.is_sink
    join millrace.stages s on s.id = vs.stage_id
    join millrace.done_attempts a on a.run_id = r.id and a.stage_id = s.id
    where r.fan_out_id = p_fan_out.id);
end
$$;

-- Closes the fan-outs of attempts that were completed. Children that still run go on, or the sweep
-- cancels them, as the stage says. An attempt that the stage's apply function refused is not
-- completed: its fan-out stays open for the next attempt.
create or replace function millrace.leave_children(
  p_stage millrace.stages, p_attempt_ids bigint[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.fan_outs f
  set state = case p_stage.fan_in ->> 'late_children'
    when 'cancel' then 'abandoned'
    else 'finished'
  end
  from millrace.attempts a
  where a.id = any (p_attempt_ids)
    and a.state = 'completed'
    and f.attempt_id = a.id
    and f.state = 'open';
end
$$;

-- Completes or fails the waiting attempt of a fan-out as its rule says; returns the stages with
-- work. busy: the database said to try again.
create or replace function millrace.join_children(
  p_fan_out millrace.fan_outs, out ready int[], out busy boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  v_attempt millrace.attempts;
  v_stage millrace.stages;
  v_verdict record;
  v_done record;
begin
  ready := '{}';
  busy := false;
  select a.* into v_attempt from millrace.attempts a
    where a.id = p_fan_out.attempt_id;
  if v_attempt.state is distinct from 'waiting' then
    return;
  end if;
  select s.* into v_stage from millrace.stages s where s.id = p_fan_out.stage_id;
  v_verdict := millrace.fan_in_verdict(
    p_fan_out, coalesce(v_stage.fan_in, '{}'), v_attempt.deadline_at);
  if v_verdict.outcome is null then
    return;
  end if;
  v_done := millrace.apply_outcomes_guarded(array[millrace.work_on(v_attempt,
    (select r.entity_id from millrace.runs r where r.id = v_attempt.run_id),
    v_verdict.outcome,
    case v_verdict.outcome
      when 'completed' then millrace.fan_in_output(p_fan_out, v_stage.kind)
    end,
    v_verdict.error)]);
  ready := v_done.ready;
  busy := (v_done.items)[1].verdict is not distinct from 'busy';
  perform millrace.leave_children(v_stage, array[v_attempt.id]);
end
$$;

-- What fan-outs, their attempts and their children say of each other

-- Finds fan-outs that nobody will finish, and sums that are not what the children came to, for
-- check_invariants(). Where the worker that spawns was lost, its successor takes the fan-out over.
create or replace function millrace.fan_out_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'an attempt that waits for children has an open fan-out, and an open fan-out a live attempt',
    coalesce(a.run_id, f.run_id), coalesce(a.id, f.attempt_id),
    coalesce('fan-out ' || f.id, 'none')
  from (
    select a.*
    from millrace.attempts a
    where a.state = 'waiting'
      and a.service = 'children') a
  full join (
    select f.* from millrace.fan_outs f where f.state = 'open'
  ) f on f.attempt_id = a.id
  where f.id is null
    or (a.id is not null and f.total is null)
    or (a.id is null and not exists (
      select
      from millrace.attempts s
      where s.run_id = f.run_id
        and s.stage_id = f.stage_id
        and s.state in ('queued', 'started')
        and not s.superseded))
  union all
  select 'the sums of a fan-out and its tallies are what its children came to',
    f.run_id, f.attempt_id,
    format('fan-out %s: %s completed, %s failed, but %s and %s were counted',
      f.id, c.completed, c.failed, f.completed + t.completed, f.failed + t.failed)
  from millrace.fan_outs f
  cross join lateral (
    select count(*) filter (where r.status = 'completed') as completed,
      count(*) filter (where r.status = 'failed') as failed
    from millrace.runs r
    where r.fan_out_id = f.id) c
  cross join lateral (
    select coalesce(sum(t.completed), 0) as completed, coalesce(sum(t.failed), 0) as failed,
      coalesce(bool_or(t.recount), false) as recount
    from millrace.child_tallies t
    where t.fan_out_id = f.id) t
  where f.state = 'open'
    and not t.recount
    and (c.completed <> f.completed + t.completed or c.failed <> f.failed + t.failed)
$$;

-- Given: what a row brings along
--
-- A row's first run skips the stages whose output the row has already, by their own condition on
-- the row, asked when that run begins: what a stage writes into the row later changes nothing. A
-- later run knows nothing of it, since by then what the row holds is mostly the engine's own work.

-- Notes of new runs, whose entities the caller holds, which stages their rows bring along; of first
-- runs alone. A row that is larger than a worker takes is not read: it brings nothing along.
create or replace function millrace.note_given(p_pipeline_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ways int[];
  v_first record;
begin
  if cardinality(p_run_ids) = 0
      or not (select p.has_given from millrace.pipelines p where p.id = p_pipeline_id) then
    return;
  end if;
  v_ways := millrace.ways_of(p_pipeline_id);
  select array_agg(r.id order by r.id) as run_ids,
    array_agg(r.entity_id order by r.id) as entity_ids
  into v_first
  from millrace.runs r
  where r.id = any (p_run_ids)
    and not exists (
      select
      from millrace.runs o
      where o.entity_id = r.entity_id
        and o.pipeline_id = any (v_ways)
        and o.id < r.id)
    and not exists (
      select
      from millrace.begun_rows b
      where b.pipeline_id = any (v_ways)
        and b.entity_id = r.entity_id);
  if v_first.run_ids is null then
    return;
  end if;
  update millrace.runs r
  set given = array(
    select vs.stage_id
    from millrace.version_stages vs
    where vs.version_id = r.version_id
      and vs.given_path is not null
      and u.entity is not null
      and coalesce(jsonb_path_match_tz(
        jsonb_build_object('entity', u.entity::jsonb), vs.given_path, '{}', true), false)
    order by vs.position)
  from unnest(v_first.run_ids, millrace.rows_of_entities(
    p_pipeline_id, v_first.entity_ids, millrace.batch_bytes())) u(id, entity)
  where r.id = u.id;
end
$$;

-- Notes of new runs that their rows have been through all stages before one, by another way than a
-- run that is known: they were adopted, or their runs have been pruned.
create or replace function millrace.note_done_before(p_run_ids bigint[], p_stage_id int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.runs r
  set given = coalesce(r.given, '{}') || array(
    select vs.stage_id
    from millrace.version_stages vs
    where vs.version_id = r.version_id
      and p_stage_id = any (vs.dependents)
      and vs.stage_id <> all (coalesce(r.given, '{}'))
    order by vs.position)
  where r.id = any (p_run_ids)
    and not exists (
      select
      from millrace.runs o
      where o.entity_id = r.entity_id
        and o.pipeline_id = r.pipeline_id
        and o.id < r.id);
end
$$;

-- Picks the runs whose rows brought the output of a stage along.
create or replace function millrace.given_runs(p_stage_id int, p_run_ids bigint[])
returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    where r.id = any (p_run_ids)
      and p_stage_id = any (r.given)
    order by r.id);
end
$$;

-- Skips, in first runs that are to begin at a stage, what they would skip by themselves before it:
-- stages that their rows bring along, and stages whose condition does not hold. So a row may begin
-- in mid-pipeline by what it brings; where a stage before it has work to do, the stage's need is
-- missing. Returns the runs that are to begin still: a user's trigger may have ended some.
create or replace function millrace.skip_given_needs(p_run_ids bigint[], p_stage_id int)
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_earlier record;
  v_open bigint[];
  v_given bigint[];
  v_any boolean := false;
begin
  for v_earlier in
    select vs.stage_id, array_agg(r.id order by r.id) as run_ids
    from millrace.runs r
    join millrace.version_stages vs
      on vs.version_id = r.version_id
        and p_stage_id = any (vs.dependents)
        and not vs.on_demand
    where r.id = any (p_run_ids)
      and r.given is not null
    group by vs.stage_id, vs.position
    order by vs.position
  loop
    v_open := millrace.open_runs(v_earlier.stage_id, v_earlier.run_ids);
    v_given := millrace.given_runs(v_earlier.stage_id, v_open);
    perform millrace.add_skipped(v_earlier.stage_id, v_given, millrace.why_given());
    v_open := millrace.unmet_runs(v_earlier.stage_id, array(
      select r from unnest(v_open) r where r <> all (v_given)));
    perform millrace.add_skipped(v_earlier.stage_id, v_open, millrace.why_unmet());
    v_any := v_any or cardinality(v_given || v_open) > 0;
  end loop;
  if v_any then
    return millrace.runs_to_begin(p_stage_id, p_run_ids);
  end if;
  return p_run_ids;
end
$$;

-- Says why a stage is skipped whose output the row brought along.
create or replace function millrace.why_given() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select '{"code": "skipped", "message": "the row brought its result along"}'::jsonb
$$;

-- Forgets of runs that start over what their rows brought along of these stages: whoever starts a
-- stage over wants it and what comes after it done anew.
create or replace function millrace.forget_given(p_run_ids bigint[], p_stage_ids int[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.runs r
  set given = array(select g from unnest(r.given) g where g <> all (p_stage_ids))
  where r.id = any (p_run_ids)
    and r.given && p_stage_ids;
end
$$;

-- Remembers the rows of runs that are about to be pruned, where it counts which run was the first.
create or replace function millrace.remember_begun(p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into millrace.begun_rows (pipeline_id, entity_id)
  select distinct r.pipeline_id, r.entity_id
  from millrace.runs r
  join millrace.pipelines p on p.id = r.pipeline_id and p.has_given
  where r.id = any (p_run_ids)
  order by 1, 2
  on conflict on constraint begun_rows_pkey do nothing;
end
$$;

-- Forgets that these rows, which are deleted, had runs; null: all rows of the pipeline.
create or replace function millrace.forget_begun(p_pipeline_id int, p_entity_ids text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from millrace.begun_rows b
  where b.pipeline_id = p_pipeline_id
    and (p_entity_ids is null or b.entity_id = any (p_entity_ids));
end
$$;

-- Concurrency groups: whose turn it is.
--
-- The groups of a stage come by turns: the higher class of priority first, in a class one round
-- after the other. A group with nothing due sleeps; one whose key is at its limit is parked until a
-- slot is freed. Only claims write groups, one at a time, since they have passed the stage's
-- limiter.

-- Lists the groups with arrivals behind the one named, up to so many: each once, however many
-- arrivals it has, by a loose scan from one group to the next.
create or replace function millrace.groups_with_arrivals(
  p_stage_id int,
  p_after text,
  p_limit int)
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    with recursive seen(concurrency_group) as (
      (select a.concurrency_group
       from millrace.arrivals a
       where a.stage_id = p_stage_id and a.concurrency_group > p_after
       order by a.concurrency_group
       limit 1)
      union all
      select (
        select a.concurrency_group
        from millrace.arrivals a
        where a.stage_id = p_stage_id and a.concurrency_group > s.concurrency_group
        order by a.concurrency_group
        limit 1)
      from seen s
      where s.concurrency_group is not null
    )
    select s.concurrency_group
    from seen s
    where s.concurrency_group is not null
    limit p_limit);
end
$$;

-- Reads p_each arrivals of each of these groups, and puts the groups in turn, or to sleep until
-- they are due. Returns the keys of which slots were freed.
create or replace function millrace.read_arrivals(
  p_stage_id int,
  p_groups text[],
  p_each int,
  p_last_turn bigint,
  p_now timestamptz)
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_freed text[];
begin
  with gone as (
    delete from millrace.arrivals a
    using (
      select b.concurrency_group, b.id
      from unnest(p_groups) u(concurrency_group)
      cross join lateral (
        select n.concurrency_group, n.id
        from millrace.arrivals n
        where n.stage_id = p_stage_id and n.concurrency_group = u.concurrency_group
        order by n.id
        limit p_each) b) d
    where a.stage_id = p_stage_id and a.concurrency_group = d.concurrency_group and a.id = d.id
    returning a.concurrency_group, a.due_at
  ), news as (
    select g.concurrency_group, min(g.due_at) as due_at,
      row_number() over (order by g.concurrency_group) as place
    from gone g
    where g.concurrency_group not like '*%'
    group by g.concurrency_group
  ), admitted as (
    insert into millrace.concurrency_groups as t
      (stage_id, concurrency_group, priority, turn, due_at)
    select p_stage_id, n.concurrency_group, left(n.concurrency_group, 1)::smallint,
      case when n.due_at <= p_now then p_last_turn + n.place end,
      case when n.due_at > p_now then n.due_at end
    from news n
    on conflict on constraint concurrency_groups_pkey do update
    set turn = coalesce(t.turn, excluded.turn),
      due_at = case
        when coalesce(t.turn, excluded.turn) is not null then null
        when t.due_at < 'infinity' then least(t.due_at, excluded.due_at)
        else t.due_at
      end
  )
  select array_agg(distinct substr(g.concurrency_group, 2))
  into v_freed
  from gone g
  where g.concurrency_group like '*%';
  return v_freed;
end
$$;

-- Before a claim takes from the groups, it reads what has arrived, and puts the groups that are
-- due, and the parked ones of freed keys, in turn behind the others. It reads at least as many
-- groups and arrivals as it can take attempts, so that none waits here for longer than a round.
-- Returns the limiter as it is then.
create or replace function millrace.admit_arrivals(
  p_stage_id int,
  p_limiter millrace.limiters,
  p_room int)
returns millrace.limiters
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_many int := 100 + 2 * p_room;
  v_groups text[] := millrace.groups_with_arrivals(p_stage_id, p_limiter.arrivals_to, v_many);
  v_freed text[];
begin
  if cardinality(v_groups) < v_many and p_limiter.arrivals_to <> '' then
    v_groups := array(
      select distinct g
      from unnest(v_groups || millrace.groups_with_arrivals(
        p_stage_id, '', v_many - cardinality(v_groups))) g);
    p_limiter.arrivals_to := '';
  else
    p_limiter.arrivals_to := case
      when cardinality(v_groups) < v_many then ''
      else v_groups[v_many]
    end;
  end if;
  if cardinality(v_groups) > 0 then
    v_freed := millrace.read_arrivals(p_stage_id, v_groups,
      1 + 10 * v_many / cardinality(v_groups), p_limiter.last_turn, v_now);
  end if;
  p_limiter.last_turn := p_limiter.last_turn + v_many;
  with woken as (
    select w.concurrency_group, row_number() over () as place
    from (
      (select g.concurrency_group
       from millrace.concurrency_groups g
       where g.stage_id = p_stage_id and g.due_at <= v_now
       order by g.due_at
       limit v_many)
      union all
      select g.concurrency_group
      from unnest(v_freed) k
      cross join generate_series(0, 9) c
      join millrace.concurrency_groups g on g.stage_id = p_stage_id
        and g.concurrency_group = c || k
        and g.due_at = 'infinity') w
  )
  update millrace.concurrency_groups g
  set turn = p_limiter.last_turn + w.place, due_at = null
  from woken w
  where g.stage_id = p_stage_id and g.concurrency_group = w.concurrency_group;
  p_limiter.last_turn := p_limiter.last_turn + 11 * v_many;
  return p_limiter;
end
$$;

-- Sends groups that had their turn to the end, to sleep until something of them is due, or to be
-- parked while their key is at its limit. A group with nothing queued is deleted.
create or replace function millrace.end_turns(
  p_stage millrace.stages,
  p_groups text[],
  p_served text[],
  p_last_turn bigint,
  p_now timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit int := (p_stage.limits #>> '{concurrency,limit}')::int;
begin
  with looked as materialized (
    select u.concurrency_group, u.place, n.queue_at,
      u.concurrency_group = any (p_served) as served,
      v_limit is not null and v_limit <= (
        select count(*)
        from (
          select from millrace.in_flight f
          where f.stage_id = p_stage.id and f.key = substr(u.concurrency_group, 2)
          limit v_limit) f) as full
    from unnest(p_groups) with ordinality u(concurrency_group, place)
    left join lateral (
      select a.queue_at
      from millrace.attempts a
      where a.stage_id = p_stage.id
        and a.concurrency_group = u.concurrency_group
        and a.queue_at is not null
        and a.state = 'queued'
      order by a.queue_at, a.id
      limit 1) n on true
  ), gone as (
    delete from millrace.concurrency_groups g
    using looked k
    where g.stage_id = p_stage.id
      and g.concurrency_group = k.concurrency_group
      and k.queue_at is null
  )
  update millrace.concurrency_groups g
  set turn = case
      when not k.full and k.queue_at <= p_now and k.served then p_last_turn + k.place
    end,
    due_at = case
      when k.full then 'infinity'
      when k.queue_at > p_now then k.queue_at
      -- What is due and was not taken is locked, or isolated: it is left for a moment.
      when not k.served then p_now + interval '1 second'
    end
  from looked k
  where g.stage_id = p_stage.id
    and g.concurrency_group = k.concurrency_group
    and k.queue_at is not null;
end
$$;

-- Puts the groups of attempts that a claim does not keep back in turn. A group that got nothing
-- after all goes to the front, so that one with large rows cannot be served before it for ever. One
-- that got less than it might have has had its turn, and is announced like any group in which
-- something arrives.
create or replace function millrace.give_back_turns(
  p_stage millrace.stages,
  p_kept bigint[],
  p_back bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_first bigint := coalesce((
    select min(g.turn)
    from millrace.concurrency_groups g
    where g.stage_id = p_stage.id and g.turn is not null), 0);
begin
  with back as materialized (
    select a.concurrency_group, min(a.queue_at) as due_at, min(u.place) as place,
      a.concurrency_group in (
        select k.concurrency_group
        from millrace.attempts k
        where k.id = any (p_kept)) as served
    from unnest(p_back) with ordinality u(id, place)
    join millrace.attempts a on a.id = u.id
    where a.concurrency_group is not null
    group by a.concurrency_group
  ), announced as (
    insert into millrace.arrivals (stage_id, concurrency_group, due_at)
    select p_stage.id, b.concurrency_group, b.due_at
    from back b
    where b.served
  )
  insert into millrace.concurrency_groups as g (stage_id, concurrency_group, priority, turn)
  select p_stage.id, b.concurrency_group, left(b.concurrency_group, 1)::smallint,
    v_first - row_number() over (order by b.place desc)
  from back b
  where not b.served
  on conflict on constraint concurrency_groups_pkey do update
  set turn = excluded.turn, due_at = null;
end
$$;

-- Quotas: holding back what a tenant has no room for, until there is room again.

-- Puts attempts back into the queue until their tenant has room, and says so on their rows. With
-- them goes what the next claims would come upon, so that a few claims put back a tenant's
-- thousands. Starts are spread over the windows to come, so that each is put back about once,
-- however many there are.
create or replace function millrace.hold_back(
  p_stage millrace.stages,
  p_payer millrace.payer,
  p_kind text,
  p_attempt_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_closes_at timestamptz := millrace.window_end(p_payer.quota, p_kind);
  v_window interval := make_interval(
    secs => (p_payer.quota #>> array[p_kind, 'per_seconds'])::float8);
  v_count int := (p_payer.quota #>> '{starts,count}')::numeric;
  v_ids bigint[] := p_attempt_ids || millrace.due_of_payer(p_stage, p_payer, p_kind = 'starts');
  v_turn record;
begin
  if p_kind = 'spending' then
    v_count := cardinality(v_ids);
  end if;
  for v_turn in
    select v_closes_at + (u.place - 1) / v_count * v_window as due_at,
      array_agg(u.id order by u.place) as attempt_ids
    from unnest(v_ids) with ordinality u(id, place)
    group by 1
    order by 1
  loop
    perform millrace.put_back(p_stage, v_turn.attempt_ids, v_turn.due_at,
      jsonb_build_object(
        'code', 'quota_' || p_kind,
        'message', millrace.hold_message(p_payer.quota, p_kind, v_turn.due_at),
        'quota', p_payer.quota));
  end loop;
  perform millrace.show_held(p_stage, v_ids);
end
$$;

-- Locks and returns what is due of a tenant among the next 500 of a stage: all of it, or only
-- starts.
create or replace function millrace.due_of_payer(
  p_stage millrace.stages,
  p_payer millrace.payer,
  p_uncounted boolean)
returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_ids bigint[];
begin
  v_ids := array(
    select q.id
    from (
      select a.id, a.run_id, a.uncounted
      from millrace.attempts a
      where a.stage_id = p_stage.id and a.queue_at <= v_now and a.state = 'queued'
      order by a.queue_at, a.id
      limit 500) q
    join millrace.runs r on r.id = q.run_id
    where r.quota_of = p_payer.pipeline_id
      and r.quota_key = p_payer.key
      and (q.uncounted or not p_uncounted));
  return array(
    select a.id
    from millrace.attempts a
    where a.id = any (v_ids) and a.state = 'queued' and a.queue_at <= v_now
    order by a.queue_at, a.id
    for update skip locked);
end
$$;

-- started | queued → queued for attempts that the caller holds, due at a later time. What is held
-- back is not late: its bound moves with it.
create or replace function millrace.put_back(
  p_stage millrace.stages,
  p_attempt_ids bigint[],
  p_due_at timestamptz,
  p_why jsonb default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.attempts a
  set state = 'queued',
    token = null,
    started_at = null,
    queue_at = p_due_at,
    late_at = a.late_at + (p_due_at - millrace.now()),
    held = p_why is not null or a.held,
    error = coalesce(p_why, a.error)
  where a.id = any (p_attempt_ids);
  if p_stage.limits is not null then
    perform millrace.free_slots(p_attempt_ids);
  end if;
  if p_stage.has_groups then
    perform millrace.assign_groups(p_stage.id, array(
      select a.run_id from millrace.attempts a where a.id = any (p_attempt_ids)));
  end if;
end
$$;

-- Says what a tenant reads on a row that is held back.
create or replace function millrace.hold_message(p_quota jsonb, p_kind text, p_due_at timestamptz)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_seconds int := (p_quota #>> array[p_kind, 'per_seconds'])::numeric;
  v_unit text := case
    when v_seconds % 3600 = 0 then 'hour'
    when v_seconds % 60 = 0 then 'minute'
    else 'second'
  end;
  v_units int := v_seconds / case v_unit when 'hour' then 3600 when 'minute' then 60 else 1 end;
begin
  return format('held back until %s UTC: the quota of %s in %s %s%s is used up',
    to_char(p_due_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
    case p_kind
      when 'starts' then (p_quota #>> '{starts,count}') || ' starts'
      else (p_quota #>> '{spending,usd}') || ' US dollars'
    end,
    v_units, v_unit, case when v_units = 1 then '' else 's' end);
end
$$;

-- Shows attempts as queued, with their error, on those of their entities that nobody holds. Whoever
-- holds a row does not wait for this, nor this for him.
create or replace function millrace.show_held(p_stage millrace.stages, p_attempt_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  v_free text[];
  v_context text;
begin
  if exists (
      select from millrace.pipelines p
      where p.id = p_stage.pipeline_id and p.projection = 'none') then
    return;
  end if;
  v_free := millrace.lock_entities(p_stage.pipeline_id, array(
    select r.entity_id
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (p_attempt_ids)), false);
  perform millrace.project(p_stage.id, array(
    select jsonb_populate_record(null::millrace.change, jsonb_build_object(
      'entity_id', r.entity_id,
      'status', 'queued',
      'error', a.error ->> 'message',
      'retry_count', a.retry_count))
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (p_attempt_ids) and r.entity_id = any (v_free)));
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if millrace.error_kind(sqlstate, v_context) = 'fatal' then
      raise;
    end if;
    perform millrace.report('error', 'projection_failed',
      'What is held back could not be shown on its entities: ' || sqlerrm,
      jsonb_build_object('stage', p_stage.name));
end
$$;

-- Takes the word that they are held back from attempts that go on, and from their entities.
create or replace function millrace.show_going(p_stage millrace.stages, p_attempt_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_attempt_ids) > 0 then
    update millrace.attempts a
    set held = false, error = null
    where a.id = any (p_attempt_ids);
    perform millrace.show_held(p_stage, p_attempt_ids);
  end if;
end
$$;

-- Makes due what is held back by a quota that was changed or dropped, so many at a time; the next
-- claims ask the new numbers. Returns how many it found.
create or replace function millrace.let_go(p_pipeline millrace.pipelines, p_limit int)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_found bigint[];
  v_group record;
begin
  v_found := array(
    select a.id
    from millrace.stages s
    cross join lateral (
      select o.id, o.run_id, o.error
      from millrace.attempts o
      where o.stage_id = s.id and o.held and o.queue_at is not null and o.state = 'queued'
      order by o.queue_at, o.id) a
    join millrace.runs r on r.id = a.run_id
    where s.counted
      and r.quota_of = p_pipeline.id
      and a.error -> 'quota' is distinct from p_pipeline.quota
    limit p_limit);
  for v_group in
    select s as stage, array_agg(a.id) as attempt_ids
    from unnest(millrace.lock_attempts(v_found)) i
    join millrace.attempts a on a.id = i and a.state = 'queued' and a.held
    join millrace.stages s on s.id = a.stage_id
    group by s
  loop
    perform millrace.put_back(v_group.stage, v_group.attempt_ids, v_now);
    perform millrace.show_going(v_group.stage, v_group.attempt_ids);
  end loop;
  return cardinality(v_found);
end
$$;

-- The sweep adds up what tenants have used, and lets go what a changed definition no longer holds
-- back.
create or replace function millrace.sweep_quotas() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
begin
  perform millrace.sum_uses(10000);
  for v_pipeline in
    select p.*
    from millrace.pipelines p
    where p.quota_changed_at is not null
    order by p.id
  loop
    -- For a minute it looks again: a claim that was under way may hold back by the former
    -- numbers.
    if millrace.let_go(v_pipeline, 5000) = 0
      and v_pipeline.quota_changed_at <= millrace.now() - interval '1 minute' then
      update millrace.pipelines p
      set quota_changed_at = null
      where p.id in (
        select o.id
        from millrace.pipelines o
        where o.id = v_pipeline.id and o.quota_changed_at = v_pipeline.quota_changed_at
        for update skip locked);
    end if;
  end loop;
exception
  when others then
    if millrace.error_kind(sqlstate) = 'fatal' then
      raise;
    end if;
    perform millrace.report('error', 'sweep_failed', 'The sweep of quotas failed: ' || sqlerrm);
end
$$;

-- What is in flight: a row of in_flight for each attempt that counts against max_in_flight or
-- concurrency.
--
-- A claim inserts the rows of the attempts that it takes. Whoever ends an attempt leaves its row
-- alone: the next claims and the sweep delete the rows of attempts that have ended.

-- Deletes those of these attempts from in_flight that are no longer started or waiting, and
-- announces each freed key, since only a claim can tell whether groups of that key are parked.
create or replace function millrace.free_slots(p_attempt_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with ended as (
    delete from millrace.in_flight f
    using (
      select o.attempt_id, o.token
      from millrace.in_flight o
      where o.attempt_id = any (p_attempt_ids)
        and not exists (
          select from millrace.attempts a
          where a.id = o.attempt_id and a.token = o.token and a.state in ('started', 'waiting'))
      for update of o skip locked) e
    where f.attempt_id = e.attempt_id and f.token = e.token
    returning f.stage_id, f.key
  )
  insert into millrace.arrivals (stage_id, concurrency_group, due_at)
  select distinct e.stage_id, '*' || e.key, millrace.now()
  from ended e
  join millrace.stages s on s.id = e.stage_id and s.limits ? 'concurrency';
end
$$;

-- Frees the slots of attempts that have just ended. It notes a wake-up for those of their stages
-- that can go on and have no live worker, and returns them. The stage's lock makes the look at the
-- queue safe, as for a leaving worker: where somebody else has it, who may be enqueueing and have
-- found the stage full, the stage is woken in any case. Nobody waits while holding this lock.
create or replace function millrace.wakes_for_freed(p_attempt_ids bigint[]) returns int[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stages int[] := array(
    select distinct f.stage_id
    from millrace.in_flight f
    where f.attempt_id = any (p_attempt_ids)
    order by 1);
  v_wakes int[] := '{}';
  v_stage_id int;
begin
  if cardinality(v_stages) > 0 then
    perform millrace.free_slots(p_attempt_ids);
  end if;
  foreach v_stage_id in array v_stages loop
    if not pg_try_advisory_xact_lock(hashtext('millrace.stage'), v_stage_id)
      or (millrace.live_workers(v_stage_id) = 0 and millrace.has_ready_work(v_stage_id)) then
      insert into millrace.wake_ups (stage_id, woken_at) values (v_stage_id, millrace.now());
      v_wakes := v_wakes || v_stage_id;
    end if;
  end loop;
  return v_wakes;
end
$$;

-- A claim counts the attempts that it has just taken against max_in_flight and their keys.
create or replace function millrace.note_in_flight(
  p_stage millrace.stages,
  p_attempt_ids bigint[],
  p_groups text[],
  p_token uuid,
  p_worker_id uuid)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_stage.limits ?| array['max_in_flight', 'concurrency'] then
    insert into millrace.in_flight (attempt_id, token, stage_id, key, worker_id)
    select u.id, p_token, p_stage.id, coalesce(substr(u.concurrency_group, 2), ''), p_worker_id
    from unnest(p_attempt_ids, p_groups) u(id, concurrency_group);
  end if;
end
$$;

-- Counts what a worker took without knowing of the limit, mostly before it was defined: among the
-- p_limit oldest in the queue, or in all live runs where p_limit is null. Where a claim is passing
-- the stage's limiter at this moment, the next sweep counts instead.
create or replace function millrace.count_attempts(p_stage millrace.stages, p_limit int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  v_ids := array(
    select a.id
    from (
      select r.id
      from millrace.runs r
      where p_limit is null and r.pipeline_id = p_stage.pipeline_id and r.status = 'running'
      union
      select q.run_id
      from (
        select o.run_id
        from millrace.attempts o
        where p_limit is not null and o.stage_id = p_stage.id and o.queue_at is not null
        order by o.queue_at, o.id
        limit p_limit) q) r(id)
    join millrace.attempts a on a.run_id = r.id
      and a.stage_id = p_stage.id
      and a.state in ('started', 'waiting')
      and a.token is not null
    where p_stage.limits ?| array['max_in_flight', 'concurrency']
      and not exists (
        select from millrace.in_flight f
        where f.attempt_id = a.id and f.token = a.token));
  if cardinality(v_ids) > 0
    and pg_try_advisory_xact_lock(hashtext('millrace.limiter'), p_stage.id) then
    insert into millrace.in_flight (attempt_id, token, stage_id, key, worker_id)
    select a.id, a.token, a.stage_id, coalesce(substr(a.concurrency_group, 2), ''), c.worker_id
    from unnest(v_ids) i
    join millrace.attempts a on a.id = i
    left join millrace.claims c on c.token = a.token
    where a.state in ('started', 'waiting') and a.token is not null;
  end if;
end
$$;

-- Before a claim counts, it frees the slots of what its worker has ended, and of what has ended
-- among the next 200 of the stage. Returns up to which attempt it has looked.
create or replace function millrace.check_slots(
  p_stage_id int,
  p_worker_id uuid,
  p_checked_to bigint)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  c_many constant int := 200;
  v_next bigint[] := array(
    select f.attempt_id
    from millrace.in_flight f
    where f.stage_id = p_stage_id and f.attempt_id > p_checked_to
    order by f.attempt_id
    limit c_many);
begin
  perform millrace.free_slots(v_next || array(
    select f.attempt_id from millrace.in_flight f where f.worker_id = p_worker_id));
  return case when cardinality(v_next) < c_many then 0 else v_next[c_many] end;
end
$$;

-- Says how many more attempts of a group's key may be in work; null without a limit.
create or replace function millrace.free_of_key(p_stage millrace.stages, p_group text) returns int
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit int := (p_stage.limits #>> '{concurrency,limit}')::int;
begin
  return v_limit - (
    select count(*)
    from (
      select from millrace.in_flight f
      where f.stage_id = p_stage.id and f.key = substr(p_group, 2)
      limit v_limit) f);
end
$$;

-- A child that starts anew takes the place of its former run, while its parent still waits

-- Gives new runs of children the places of their rows' former runs in fan-outs that are open.
create or replace function millrace.inherit_place(p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_former record;
begin
  for v_former in
    select distinct on (r.id) r.id as run_id, o.id as former_id, o.fan_out_id, o.item_key,
      case when p.metadata_column is null then o.metadata_id else r.metadata_id end as metadata_id
    from millrace.runs r
    join millrace.runs o
      on o.entity_id = r.entity_id and o.pipeline_id = r.pipeline_id and o.id < r.id
    join millrace.fan_outs f on f.id = o.fan_out_id and f.state = 'open'
    join millrace.pipelines p on p.id = r.pipeline_id
    where r.id = any (p_run_ids)
    order by r.id, o.id desc
  loop
    update millrace.runs r
    set fan_out_id = null, item_key = null
    where r.id = v_former.former_id;
    -- Pruned this moment.
    continue when not found;
    update millrace.runs r
    set fan_out_id = v_former.fan_out_id, item_key = v_former.item_key,
      took_place_of = v_former.former_id, metadata_id = v_former.metadata_id
    where r.id = v_former.run_id;
    insert into millrace.child_tallies (fan_out_id, recount) values (v_former.fan_out_id, true);
  end loop;
end
$$;

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

-- Quotas: how claims keep to them.

-- claim_next() puts back those of the attempts just claimed whose tenants have no room, with the
-- tokens that they took, where the stage is counted. Returns the others.
create or replace function millrace.keep_to_quotas(
  p_stage millrace.stages,
  p_token uuid,
  p_attempt_ids bigint[])
returns millrace.claimed[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
  v_kept millrace.claimed[];
begin
  for v_group in
    select row(p.id, r.quota_key, p.quota)::millrace.payer as payer,
      array_agg(a.id order by a.queue_at, a.id) as attempt_ids
    from unnest(p_attempt_ids) i
    join millrace.attempts a on a.id = i
    join millrace.runs r on r.id = a.run_id
    join millrace.pipelines p on p.id = r.quota_of
    group by p.id, r.quota_key
    order by p.id, r.quota_key
  loop
    perform millrace.keep_to_quota(p_stage, v_group.payer, v_group.attempt_ids);
  end loop;
  v_kept := millrace.held_items(p_token, p_attempt_ids);
  -- The claim has passed the stage's gate, so that nobody else writes this row.
  update millrace.limiters g
  set tokens = g.tokens + cardinality(p_attempt_ids) - cardinality(v_kept)
  where g.stage_id = p_stage.id and p_stage.limits ? 'rate';
  if cardinality(v_kept) = 0 then
    delete from millrace.claims c where c.token = p_token;
  end if;
  return v_kept;
end
$$;

-- Charges a tenant with what was claimed of it, and puts back what it has no room for.
create or replace function millrace.keep_to_quota(
  p_stage millrace.stages,
  p_payer millrace.payer,
  p_attempt_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_over bigint[] := '{}';
begin
  if p_payer.quota ? 'spending'
    and millrace.used_by(p_payer, 'spending') >= (p_payer.quota #>> '{spending,usd}')::numeric then
    perform millrace.hold_back(p_stage, p_payer, 'spending', p_attempt_ids);
    return;
  elsif p_payer.quota ? 'starts' then
    v_over := millrace.charge_starts(p_stage, p_payer, p_attempt_ids);
  end if;
  perform millrace.show_going(p_stage, array(
    select a.id
    from millrace.attempts a
    where a.id = any (p_attempt_ids) and a.id <> all (v_over) and a.held));
end
$$;

-- Charges a tenant with the starts among these attempts, as far as it has room, and puts back and
-- returns the others. A claim that finds another charging the same tenant does not wait for it, and
-- cannot know what it leaves.
create or replace function millrace.charge_starts(
  p_stage millrace.stages,
  p_payer millrace.payer,
  p_attempt_ids bigint[])
returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_marked bigint[] := array(
    select a.id
    from unnest(p_attempt_ids) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    where a.uncounted
    order by i.place);
  v_runs bigint[];
  v_over bigint[];
begin
  if cardinality(v_marked) = 0 then
    return '{}';
  elsif not pg_try_advisory_xact_lock(hashtext('millrace.quota'),
      hashtext(p_payer.pipeline_id || ':' || p_payer.key)) then
    perform millrace.put_back(p_stage, v_marked, millrace.now() + interval '1 second');
    return v_marked;
  end if;
  v_runs := array(
    select a.run_id
    from unnest(v_marked) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    group by a.run_id
    order by min(i.place)
    limit greatest(
      (p_payer.quota #>> '{starts,count}')::numeric - millrace.used_by(p_payer, 'starts'), 0)::int);
  if cardinality(v_runs) > 0 then
    insert into millrace.quota_uses (pipeline_id, key, kind, closes_at, used)
    values (p_payer.pipeline_id, p_payer.key, 'starts',
      millrace.window_end(p_payer.quota, 'starts'), cardinality(v_runs));
    -- One start, one charge, however many stages it begins with. What another claim is just taking
    -- is its own to charge.
    update millrace.attempts a
    set uncounted = false
    where a.id in (
      select o.id
      from millrace.attempts o
      where o.run_id = any (v_runs) and o.uncounted
      for update skip locked);
  end if;
  v_over := array(
    select a.id
    from unnest(v_marked) with ordinality i(id, place)
    join millrace.attempts a on a.id = i.id
    where a.run_id <> all (v_runs)
    order by i.place);
  if cardinality(v_over) > 0 then
    perform millrace.hold_back(p_stage, p_payer, 'starts', v_over);
  end if;
  return v_over;
end
$$;

-- Limits: how much of a stage may be in work, how fast, for which keys at once, and in which order.
--
-- The limits of a stage hold across all its workers, since the claim decides each of them. A stage
-- that declares none never comes here.
--
-- A limited claim passes the stage's limiter, one claim at a time, so that what it counts stays
-- true until it commits. A worker that records results in the same call holds entities, and
-- therefore never waits for the limiter; it is told to come again.
--
--   max_in_flight, concurrency   counted in in_flight (in-flight.sql)
--   rate                         a token bucket in the limiter's row
--   concurrency, priority        the queue is sorted into groups (sort-into-groups.sql), which have
--                                turns (group-turns.sql), by which a claim takes from them
--                                (claim-by-groups.sql)
--   back_pressure                nothing is taken while a later stage has more queued than its
--                                threshold
--
-- No step looks at the whole queue: a claim reads the groups whose turn it is and the rows that it
-- takes, and counts up to a limit. Whoever enqueues only inserts arrivals, which the next claim
-- reads, and waits for nobody.

-- Makes the caller the only one who claims at this stage until it commits; null when another does.
create or replace function millrace.pass_limiter(p_stage_id int, p_may_wait boolean)
returns millrace.limiters
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limiter millrace.limiters;
  v_timeout text := current_setting('lock_timeout');
begin
  if not pg_try_advisory_xact_lock(hashtext('millrace.limiter'), p_stage_id) then
    if not p_may_wait then
      return null;
    end if;
    begin
      perform set_config('lock_timeout', '2s', true);
      perform pg_advisory_xact_lock(hashtext('millrace.limiter'), p_stage_id);
      perform set_config('lock_timeout', v_timeout, true);
    exception
      when lock_not_available then
        return null;
    end;
  end if;
  select g.*
  into v_limiter
  from millrace.limiters g
  where g.stage_id = p_stage_id
  for update;
  if not found then
    insert into millrace.limiters (stage_id) values (p_stage_id) returning * into v_limiter;
  end if;
  return v_limiter;
end
$$;

-- Says what the token bucket holds now.
create or replace function millrace.tokens_of(p_rate jsonb, p_limiter millrace.limiters)
returns float8
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count float8 := (p_rate ->> 'count')::float8;
  v_seconds float8 := extract(epoch from millrace.now() - p_limiter.refilled_at);
begin
  return least(
    coalesce((p_rate ->> 'burst')::float8, v_count),
    coalesce(p_limiter.tokens, 'infinity')
      + greatest(v_seconds, 0) * v_count / (p_rate ->> 'per_seconds')::float8);
end
$$;

-- Says how many of p_wanted attempts max_in_flight, rate and back pressure let a stage take now.
-- Where it may take none, wait_ms says when to ask again; null: not by waiting.
create or replace function millrace.room_at(
  p_stage millrace.stages,
  p_limiter millrace.limiters,
  p_wanted int,
  out room int,
  out wait_ms int)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limits jsonb := p_stage.limits;
  v_max int := (v_limits ->> 'max_in_flight')::int;
  v_tokens float8;
begin
  room := p_wanted;
  if v_max is not null then
    room := least(room, v_max - (
      select count(*)
      from (
        select from millrace.in_flight f
        where f.stage_id = p_stage.id
        limit v_max) f));
  end if;
  if room > 0 and v_limits ? 'rate' then
    v_tokens := millrace.tokens_of(v_limits -> 'rate', p_limiter);
    -- What the clock's rounding took away must not cost another round.
    room := least(room, floor(v_tokens + 1e-6));
    if room = 0 then
      wait_ms := ceil((1 - v_tokens) * 1000
        * (v_limits #>> '{rate,per_seconds}')::float8 / (v_limits #>> '{rate,count}')::float8);
    end if;
  end if;
  if room > 0 and v_limits ? 'back_pressure' and millrace.is_pressed_back(p_stage) then
    room := 0;
    wait_ms := 1000;
  end if;
end
$$;

-- Says whether a later stage's backlog holds this one back. The limit names that stage as "stage",
-- of the same pipeline, or as "pipeline.stage"; one that is gone holds nothing back.
create or replace function millrace.is_pressed_back(p_stage millrace.stages) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_backlog int := (p_stage.limits #>> '{back_pressure,backlog}')::int;
  v_path text[] := string_to_array(p_stage.limits #>> '{back_pressure,stage}', '.');
  v_later int;
begin
  if cardinality(v_path) = 1 then
    select s.id
    into v_later
    from millrace.stages s
    where s.pipeline_id = p_stage.pipeline_id and s.name = v_path[1];
  else
    select s.id
    into v_later
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where p.name = v_path[1] and s.name = v_path[2];
  end if;
  return v_backlog < (
    select count(*)
    from (
      select from millrace.attempts a
      where a.stage_id = v_later and a.queue_at is not null and a.state = 'queued'
      limit v_backlog + 1) a);
end
$$;

-- Says whether a stage's limits would let a claim take something now, if it is queued.
create or replace function millrace.may_claim(p_stage millrace.stages) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limiter millrace.limiters;
begin
  select g.*
  into v_limiter
  from millrace.limiters g
  where g.stage_id = p_stage.id;
  if (millrace.room_at(p_stage, v_limiter, 1)).room <= 0 then
    return false;
  end if;
  return not p_stage.has_groups
    or exists (
      select from millrace.concurrency_groups g
      where g.stage_id = p_stage.id and g.turn is not null)
    or exists (
      select from millrace.concurrency_groups g
      where g.stage_id = p_stage.id and g.due_at <= millrace.now())
    or exists (select from millrace.arrivals a where a.stage_id = p_stage.id)
    or exists (
      select from millrace.attempts a
      where a.stage_id = p_stage.id
        and a.isolated
        and a.queue_at <= millrace.now()
        and a.state = 'queued'
        and coalesce(millrace.free_of_key(p_stage, a.concurrency_group) > 0, true));
end
$$;

-- define() waits for the claims under way at a pipeline's stages with limits, and keeps others out
-- until its transaction ends. It does so before it locks the table, which a claim that has passed a
-- limiter may be waiting for.
create or replace function millrace.lock_limiters(p_pipeline text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtext('millrace.limiter'), s.id)
  from (
    select s.id
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id
    where p.name = p_pipeline and s.limits is not null
    order by s.id) s;
end
$$;

-- Claims as claim() does, for a stage with limits. When it takes nothing, wait_ms says after how
-- long to ask again; null: not by waiting.
create or replace function millrace.claim_limited(
  p_stage millrace.stages,
  p_worker_id uuid,
  p_host uuid,
  p_limit int,
  p_may_wait boolean,
  out token uuid,
  out attempt_ids bigint[],
  out entity_ids text[],
  out items millrace.claimed[],
  out wait_ms int)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limiter millrace.limiters;
  v_room record;
  v_claim record;
begin
  if p_limit < 1 then
    perform millrace.check_slots(p_stage.id, p_worker_id, 0);
    return;
  end if;
  -- The host's lock comes first, as claim() takes it, so that all have the same order.
  perform pg_advisory_xact_lock(hashtext('millrace.host'), hashtext(p_host::text));
  v_limiter := millrace.pass_limiter(p_stage.id, p_may_wait);
  if v_limiter.stage_id is null then
    wait_ms := 50;
    return;
  end if;
  -- A definition that this claim waited for may have changed the limits.
  select s.* into p_stage from millrace.stages s where s.id = p_stage.id;
  v_limiter.checked_to := millrace.check_slots(p_stage.id, p_worker_id, v_limiter.checked_to);
  v_room := millrace.room_at(p_stage, v_limiter, p_limit);
  wait_ms := v_room.wait_ms;
  if v_room.room > 0 and p_stage.has_groups then
    v_claim := millrace.claim_groups(p_stage, p_worker_id, p_host, v_room.room, v_limiter);
    v_limiter := v_claim.limiter;
    wait_ms := v_claim.wait_ms;
  elsif v_room.room > 0 then
    v_claim := millrace.claim(p_stage, p_worker_id, p_host, v_room.room);
    items := v_claim.items;
    perform millrace.note_in_flight(
      p_stage, v_claim.attempt_ids, null, v_claim.token, p_worker_id);
  end if;
  if v_room.room > 0 then
    token := v_claim.token;
    attempt_ids := v_claim.attempt_ids;
    entity_ids := v_claim.entity_ids;
  end if;
  perform millrace.save_limiter(p_stage, v_limiter, coalesce(cardinality(attempt_ids), 0));
end
$$;

-- A claim writes how far it has looked at its stage's limits, and what it took of the token bucket.
create or replace function millrace.save_limiter(
  p_stage millrace.stages,
  p_limiter millrace.limiters,
  p_taken int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.limiters g
  set checked_to = p_limiter.checked_to,
    last_turn = p_limiter.last_turn,
    arrivals_to = p_limiter.arrivals_to,
    tokens = case
      when p_stage.limits ? 'rate'
        then millrace.tokens_of(p_stage.limits -> 'rate', p_limiter) - p_taken
      else g.tokens
    end,
    refilled_at = millrace.now()
  where g.stage_id = p_stage.id;
end
$$;

-- Gives back the slots, tokens and turns of attempts that a claim of this transaction took and does
-- not keep. The claim has passed the limiter, so nobody else writes its row or the stage's groups.
create or replace function millrace.give_back_limits(
  p_stage millrace.stages,
  p_kept bigint[],
  p_back bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.free_slots(p_back);
  update millrace.limiters g
  set tokens = g.tokens + cardinality(p_back)
  where g.stage_id = p_stage.id and p_stage.limits ? 'rate';
  if p_stage.has_groups then
    perform millrace.give_back_turns(p_stage, p_kept, p_back);
  end if;
end
$$;

-- The sweep frees the slots of what was cancelled or lost, sorts what was queued without a group,
-- and counts what was taken without a limit.
create or replace function millrace.sweep_limits(p_pipeline_id int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
begin
  for v_stage in
    select s.*
    from millrace.stages s
    where s.pipeline_id = p_pipeline_id and s.limits is not null
    order by s.id
  loop
    perform millrace.free_slots(array(
      select f.attempt_id
      from millrace.in_flight f
      where f.stage_id = v_stage.id
      order by f.attempt_id
      limit 5000));
    if v_stage.has_groups then
      perform millrace.adopt_attempts(v_stage, 1000);
    end if;
    perform millrace.count_attempts(v_stage, 1000);
  end loop;
end
$$;

-- On demand: stages that a person alone begins
--
-- A run that comes to such a stage by itself skips it with all that comes after it, and shows
-- nothing of that, so that it is over. A start by name begins the stage in a run of its own, with
-- the results before it copied (core/new-runs.sql).

-- Picks the runs in whose version a stage begins on demand alone.
create or replace function millrace.undemanded_runs(p_stage_id int, p_run_ids bigint[])
returns bigint[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select r.id
    from millrace.runs r
    join millrace.version_stages vs
      on vs.version_id = r.version_id and vs.stage_id = p_stage_id and vs.on_demand
    where r.id = any (p_run_ids)
    order by r.id);
end
$$;

-- Says why a stage is skipped that nobody has asked for, or that comes after one.
create or replace function millrace.why_undemanded() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select '{"code": "skipped", "message": "nobody asked for it", "dependents": true,
    "on_demand": true}'::jsonb
$$;

-- Says whether an attempt was skipped for what may be otherwise in the next run: nobody asked for
-- the stage, or the run ended before it. No later run takes it over.
create or replace function millrace.was_left_out(p_error jsonb) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(p_error ?| array['on_demand', 'ended'], false)
$$;

-- Operations: what a person does to one stage of one run.
--
-- Each verb is a function: start_stage, complete_stage, fail_stage and skip (stages-by-hand.sql),
-- reset and reset_children (reset.sql), and retry (core/retry.sql). The view millrace.operations
-- tells of each stage whether it can start, is started, is done. All of them wait for the row and
-- the run, in the lock order, and raise MR003 or MR004 with the remedy.

-- Locks a run and its entity, waiting for both, and looks up the stage in the run's version. Raises
-- MR003 or MR004 when there is no such run or stage, or a later run. p_whole: the stage may be
-- null.
create or replace function millrace.hold_stage(
  p_run bigint,
  p_stage text,
  out run millrace.runs,
  out version_stage millrace.version_stages,
  p_whole boolean default false)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline text;
begin
  if p_stage is null and not p_whole then
    raise exception 'p_stage is null, but must be the name of a stage'
      using errcode = 'MR002',
        hint = 'Name one: select stage, state from millrace.operations where run_id = …';
  end if;
  perform millrace.hold_runs(array[p_run]);
  select r.* into run from millrace.runs r where r.id = p_run;
  if not found then
    raise exception 'there is no run %', coalesce(p_run::text, 'null')
      using errcode = 'MR003',
        hint = 'Look it up: select * from millrace.operations where entity_id = ''…''.';
  elsif not millrace.is_latest_run(p_run) then
    raise exception 'run % is not the latest of its entity %', p_run, run.entity_id
      using errcode = 'MR004',
        hint = 'Use the latest: select max(id) from millrace.runs where entity_id = ''…''.';
  end if;
  perform millrace.refuse_orphan(run);
  if p_stage is not null then
    select p.name
    into v_pipeline
    from millrace.pipelines p
    where p.id = run.pipeline_id;
    select vs.*
    into version_stage
    from millrace.version_stages vs
    where vs.version_id = run.version_id
      and vs.stage_id = (millrace.stage_named(v_pipeline, p_stage)).id;
    if not found then
      raise exception 'stage % is not part of the version that run % began with', p_stage, p_run
        using errcode = 'MR004',
          hint = 'Name a stage of its version: select stage from millrace.operations '
            'where run_id = ' || p_run || '.';
    end if;
  end if;
end
$$;

-- Says the state of a stage in a run: that of its newest attempt that counts, else pending.
create or replace function millrace.state_of(p_run_id bigint, p_stage_id int) returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((
    select a.state::text
    from millrace.attempts a
    where a.run_id = p_run_id and a.stage_id = p_stage_id and not a.superseded
    order by a.number desc
    limit 1), 'pending');
end
$$;

-- Raises MR004 about a verb that the state of a stage does not allow.
create or replace function millrace.refuse_operation(
  p_run bigint,
  p_stage text,
  p_verb text,
  p_state text,
  p_hint text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'stage % of run % cannot be %: it is %', p_stage, p_run, p_verb, p_state
    using errcode = 'MR004', hint = p_hint;
end
$$;

-- Cancels the live attempts of stages of a held run, and keeps what they had as history.
create or replace function millrace.supersede(p_run_id bigint, p_stage_ids int[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.cancel_attempts(array[p_run_id], p_stage_ids);
  update millrace.attempts a
  set superseded = true
  where a.run_id = p_run_id and a.stage_id = any (p_stage_ids) and not a.superseded;
end
$$;

-- completed | failed | cancelled → running for a held run. Whatever else had failed or was
-- cancelled is retried with it, except these stages, or the run could never end. Its parent counts
-- it anew. Returns the stages with work.
create or replace function millrace.reopen_run(p_run millrace.runs, p_except int[]) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
  v_wake int[] := '{}';
begin
  insert into millrace.child_tallies (fan_out_id, recount)
  select p_run.fan_out_id, true
  where p_run.fan_out_id is not null;
  if p_run.status = 'running' then
    return '{}';
  end if;
  perform millrace.take_ending_back(p_run);
  update millrace.runs r set status = 'running', finished_at = null where r.id = p_run.id;
  for v_stage in
    select a.stage_id, s.kind
    from millrace.attempts a
    join millrace.stages s on s.id = a.stage_id
    where a.run_id = p_run.id
      and a.state in ('failed', 'cancelled')
      and millrace.is_last_word(a)
      and a.stage_id <> all (p_except)
    order by a.stage_id
  loop
    v_wake := v_wake || millrace.retry_stage(
      v_stage.stage_id, v_stage.kind, millrace.running_of(array[p_run.id]));
  end loop;
  return v_wake;
end
$$;

-- Passing thresholds: stages of a parent that begin before all of its children have ended

-- Notes the first number, from the smallest on, whose child has not done a stage; looks no further
-- than is wanted. It starts where the last look ended, so each child is passed once.
create or replace function millrace.count_consecutive(
  p_fan_out millrace.fan_outs, p_stage_id int, p_wanted int
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next int := coalesce(
    (select p.next_number
      from millrace.fan_progress p
      where p.fan_out_id = p_fan_out.id
        and p.stage_id = p_stage_id),
    p_fan_out.first_number);
begin
  while v_next - p_fan_out.first_number < p_wanted
    and exists (
      select
      from millrace.runs r
      where r.fan_out_id = p_fan_out.id
        and r.item_key = v_next::text
        and millrace.is_done(r.id, p_stage_id))
  loop
    v_next := v_next + 1;
  end loop;
  update millrace.fan_progress p
  set next_number = v_next
  where p.fan_out_id = p_fan_out.id
    and p.stage_id = p_stage_id
    and p.next_number is distinct from v_next;
end
$$;

-- Begins the stages of a parent that wait for its children, whose thresholds hold now and that have
-- not begun; returns those with work.
create or replace function millrace.pass_thresholds(p_fan_out millrace.fan_outs) returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_after record;
begin
  for v_after in
    select (a ->> 'stage')::int as stage_id, max((a ->> 'n')::int) as wanted
    from millrace.runs r
    join millrace.version_stages vs on vs.version_id = r.version_id,
      jsonb_array_elements(vs.after) a
    where p_fan_out.total is not null
      and r.id = p_fan_out.run_id
      and a ->> 'kind' = 'consecutive'
      and (a ->> 'map')::int = p_fan_out.stage_id
      and not exists (
        select
        from millrace.attempts t
        where t.run_id = r.id
          and t.stage_id = vs.stage_id
          and not t.superseded)
    group by 1
  loop
    perform millrace.count_consecutive(p_fan_out, v_after.stage_id, v_after.wanted);
  end loop;
  return millrace.begin_followers(p_fan_out.stage_id, array[p_fan_out.run_id]);
end
$$;

-- Does what pass_thresholds() does, and goes on without the projection when the parent's row
-- refuses it, as apply_outcomes_unprojected() does: a user's trigger that refuses to show a stage
-- must not keep the parent waiting. It leaves what cannot begin even so to the end of the map,
-- which then fails with the reason. busy: the database said to try again.
create or replace function millrace.pass_thresholds_guarded(
  p_fan_out millrace.fan_outs, out wake int[], out busy boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  v_context text;
begin
  busy := false;
  for v_try in 1 .. 2 loop
    begin
      perform set_config(
        'millrace.projection_off', case v_try when 2 then 'on' else '' end, true);
      wake := millrace.pass_thresholds(p_fan_out);
      perform set_config('millrace.projection_off', '', true);
      return;
    exception when query_canceled or assert_failure or others then
      get stacked diagnostics v_context = pg_exception_context;
      if millrace.error_kind(sqlstate, v_context) = 'fatal' then
        raise;
      end if;
      busy := millrace.error_kind(sqlstate, v_context) = 'transient';
      perform millrace.report('error', 'threshold_failed',
        'A stage that awaited a threshold could not begin: ' || sqlerrm,
        jsonb_build_object('run', p_fan_out.run_id, 'without_projection', v_try = 2));
    end;
    exit when busy;
  end loop;
  wake := '{}';
end
$$;

-- Queueing attempts, and showing it

-- Adds a queued attempt of a stage to each of the runs.
create or replace function millrace.queue_attempts(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_again boolean := exists (
    select
    from millrace.attempts a
    where a.run_id = any (p_run_ids)
      and a.stage_id = p_stage_id);
begin
  insert into millrace.attempts (run_id, stage_id, number, queue_at, created_at, late_at)
  select r.id, p_stage_id,
    coalesce((
      select max(a.number)
      from millrace.attempts a
      where v_again
        and a.run_id = r.id
        and a.stage_id = p_stage_id), 0) + 1,
    v_now, v_now, v_now + s.sla
  from unnest(p_run_ids) r(id), millrace.stages s
  where s.id = p_stage_id
  order by r.id;
  if (select s.has_groups from millrace.stages s where s.id = p_stage_id) then
    perform millrace.assign_groups(p_stage_id, p_run_ids);
  end if;
end
$$;

-- Shows a stage in one state on the entities of these runs, since the time given where it has one.
create or replace function millrace.show_stage(
  p_stage_id int,
  p_run_ids bigint[],
  p_status text,
  p_at timestamptz default null,
  p_job_id text default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.project(p_stage_id, array(
    select millrace.change_of(r.entity_id, p_status, p_job_id,
      p_started_at => case p_status when 'started' then p_at end,
      p_completed_at => case p_status when 'skipped' then p_at end)
    from millrace.runs r
    where r.id = any (p_run_ids)));
end
$$;

-- Shows a stage as queued on the entities of these runs.
create or replace function millrace.show_queued(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.show_stage(p_stage_id, p_run_ids, 'queued');
end
$$;

-- Quotas: what tenants have used.

-- Says when the present window of an amount of a quota is over.
create or replace function millrace.window_end(p_quota jsonb, p_kind text) returns timestamptz
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_seconds numeric := (p_quota #>> array[p_kind, 'per_seconds'])::numeric;
begin
  return to_timestamp((floor(extract(epoch from millrace.now()) / v_seconds) + 1) * v_seconds);
end
$$;

-- Says what a tenant has used of an amount of its quota in the present window.
create or replace function millrace.used_by(p_payer millrace.payer, p_kind text)
returns numeric
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select coalesce(sum(u.used), 0)
    from millrace.quota_uses u
    where u.pipeline_id = p_payer.pipeline_id
      and u.key = p_payer.key
      and u.kind = p_kind
      and u.closes_at = millrace.window_end(p_payer.quota, p_kind));
end
$$;

-- Charges tenants with what attempts that have just ended say they cost.
create or replace function millrace.note_spending(p_items millrace.work[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into millrace.quota_uses (pipeline_id, key, kind, closes_at, used)
  select p.id, r.quota_key, 'spending', millrace.window_end(p.quota, 'spending'), sum(c.usd)
  from unnest(p_items) i
  cross join lateral (
    select (i.usage ->> 'cost_usd')::numeric as usd
    where jsonb_typeof(i.usage -> 'cost_usd') = 'number') c
  join millrace.runs r on r.id = i.run_id
  join millrace.pipelines p on p.id = r.quota_of
  where p.quota ? 'spending' and c.usd > 0
  group by p.id, r.quota_key;
end
$$;

-- Adds up what came since the last sweep, a row for each tenant, and deletes what is of windows
-- that are over. It deletes and adds in one statement, hence one snapshot: nothing is lost or
-- counted twice.
create or replace function millrace.sum_uses(p_limit int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with fresh as materialized (
    select distinct u.pipeline_id, u.key, u.kind, u.closes_at
    from (
      select o.*
      from millrace.quota_uses o
      where not o.summed
      order by o.id
      limit p_limit) u
  ), found as materialized (
    select u.id
    from fresh f
    join millrace.quota_uses u on u.pipeline_id = f.pipeline_id
      and u.key = f.key
      and u.kind = f.kind
      and u.closes_at = f.closes_at
    for update of u skip locked
  ), gone as (
    delete from millrace.quota_uses u
    using found f
    where u.id = f.id
    returning u.pipeline_id, u.key, u.kind, u.closes_at, u.used
  )
  insert into millrace.quota_uses (pipeline_id, key, kind, closes_at, used, summed)
  select g.pipeline_id, g.key, g.kind, g.closes_at, sum(g.used), true
  from gone g
  group by g.pipeline_id, g.key, g.kind, g.closes_at;
  delete from millrace.quota_uses u
  where u.id in (
    select o.id
    from millrace.quota_uses o
    where o.closes_at <= millrace.now()
    order by o.closes_at
    limit p_limit
    for update skip locked);
end
$$;

-- Quotas: what one tenant may start and spend in a while.
--
-- A definition may name a column that tells tenants apart, and how many starts and how many US
-- dollars each of them has in a window of time. What exceeds that is not refused, since a
-- user's write must not fail for it: it stays queued until the next window, and its error says
-- so. A pipeline without a quota pays nothing but the look at a flag.
--
--   who      a run keeps whose quota it counts against: read when a person starts it, and a child
--            has its parent's
--   window   fixed, counted from the epoch: an hour begins on the hour, a day at midnight UTC. So
--            two numbers a tenant are all that is kept, and it can be said when there is room
--            again. At worst a tenant has twice the amount around the turn of a window.
--   where    in the claim, after it has taken attempts by whatever limits: it puts back those
--            whose tenant has no room (keep-to-quotas.sql, hold-back.sql). So what is queued and
--            never begins is charged to nobody, and what may be overspent is what is in work.
--   starts   charged when the first attempt of a start is claimed. A start is what a person
--            queues, by a status or by start(). Claims charge one tenant's starts by turns: one
--            that finds another doing so puts them back for a second, and waits for nobody. What
--            operators do (retry, replay, reset) is no start.
--   spending noted when attempts end, failed ones too, by what they say they cost. Once it is
--            used up, nothing of the tenant is claimed, whoever started it.
--
-- Uses are insert-only, one row a batch and tenant (quota-uses.sql); the sweep adds them up, and
-- deletes those of windows that are over.

-- define() keeps the quota of a definition, and marks the stages whose claims are to look at
-- quotas. A mark is never taken back: what is held back must still be let go.
create or replace function millrace.save_quota(p_pipeline_id int, p_definition jsonb)
returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update millrace.pipelines p
  set quota = nullif(p_definition -> 'quota', 'null'),
    quota_changed_at = case when p.quota is not null then millrace.now() end
  where p.id = p_pipeline_id
    and p.quota is distinct from nullif(p_definition -> 'quota', 'null');
  with recursive family(id) as (
    select p.id
    from millrace.pipelines p
    where p.quota is not null
    union
    select vs.child_pipeline_id
    from family f
    join millrace.versions v on v.pipeline_id = f.id
    join millrace.version_stages vs on vs.version_id = v.id
    where vs.child_pipeline_id is not null
  )
  update millrace.stages s
  set counted = true
  from family f
  where s.pipeline_id = f.id and not s.counted;
$$;

-- attach() writes a pipeline's __quota_keys function, which reads the tenants of its entities, and
-- quota_keys(), which leads to those of all pipelines. A column that was renamed since must not
-- make a user's own write fail, so then all have one tenant.
create or replace function millrace.attach_quota(p_pipeline millrace.pipelines, p_key_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_function text := p_pipeline.name || '__quota_keys';
  v_ids int[];
  v_names text[];
begin
  execute case when p_pipeline.quota is null then
    format('drop function if exists millrace.%I(text[])', v_function)
  else format($f$
create or replace function millrace.%1$I(p_ids text[]) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  return %2$s;
exception
  when others then
    if millrace.error_kind(sqlstate) <> 'lasting' then
      raise;
    end if;
    perform millrace.report('error', 'quota_key_failed', %3$L || sqlerrm);
    return array_fill(''::text, array[cardinality(p_ids)]);
end $$$f$,
    v_function,
    millrace.keys_expression(p_pipeline, p_key_type, p_pipeline.quota ->> 'column', 'value'),
    format('The tenants of pipeline %s cannot be read, so that its runs share one quota: ',
      p_pipeline.name)) end;
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id)
  into v_ids, v_names
  from millrace.pipelines p
  where p.quota is not null;
  perform millrace.write_way('quota_keys', '(p_pipeline_id int, p_ids text[]) returns text[]',
    v_ids,
    array(select format('return millrace.%I(p_ids);', n || '__quota_keys') from unnest(v_names) n),
    'the tenants that a pipeline''s entities belong to, in the order of their keys.');
end
$write$;

-- Writes on runs that a person starts whose quota they count against. A row that was a child once
-- counts against the quota of its former parent, unless its own pipeline has a quota.
create or replace function millrace.name_payers(p_pipeline_id int, p_run_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_runs bigint[];
  v_entities text[];
begin
  if cardinality(p_run_ids) = 0 then
    return;
  elsif exists (
      select from millrace.pipelines p
      where p.id = p_pipeline_id and p.quota is null) then
    update millrace.runs r
    set quota_of = f.quota_of, quota_key = f.quota_key
    from unnest(p_run_ids) i
    join millrace.runs n on n.id = i
    cross join lateral (
      select o.quota_of, o.quota_key
      from millrace.runs o
      where o.entity_id = n.entity_id and o.pipeline_id = n.pipeline_id and o.id < n.id
      order by o.id desc
      limit 1) f
    where r.id = i and r.quota_of is null and f.quota_of is not null;
    return;
  end if;
  select array_agg(r.id), array_agg(r.entity_id)
  into v_runs, v_entities
  from millrace.runs r
  where r.id = any (p_run_ids);
  update millrace.runs r
  set quota_of = p_pipeline_id, quota_key = k.key
  from unnest(v_runs, millrace.quota_keys(p_pipeline_id, v_entities)) k(id, key)
  where r.id = k.id
    and (r.quota_of is distinct from p_pipeline_id or r.quota_key is distinct from k.key);
end
$$;

-- Lets new children count against the quota of their parents.
create or replace function millrace.inherit_quotas(p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.runs c
  set quota_of = p.quota_of,
    quota_key = p.quota_key
  from millrace.fan_outs f
  join millrace.runs p on p.id = f.run_id
  where c.id = any (p_run_ids)
    and f.id = c.fan_out_id
    and p.quota_of is not null;
end
$$;

-- Marks what a person has just started, so that the claim of it is charged to its tenant: all that
-- was queued since p_since, in the runs and in child runs that began with it. Whichever is claimed
-- first pays.
create or replace function millrace.note_starts(p_run_ids bigint[], p_since timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  with recursive family as (
    select r.id
    from unnest(p_run_ids) r(id)
    union all
    select c.id
    from family m
    join millrace.fan_outs f on f.run_id = m.id and f.state = 'open' and f.created_at >= p_since
    join millrace.runs c on c.fan_out_id = f.id
  )
  select array_agg(q.id)
  into v_ids
  from family m
  cross join lateral (
    -- "offset 0" keeps it a look-up for each run, however the planner counts them.
    select a.id
    from millrace.attempts a
    where a.run_id = m.id and a.state = 'queued' and a.created_at >= p_since
    offset 0) q;
  update millrace.attempts a set uncounted = true where a.id = any (v_ids);
end
$$;

-- Operations: starting stages of a run, or its failed children, over.

-- Puts stages of a held run back to pending: it cancels live attempts, keeps finished ones as
-- history and clears the columns. Children that came late for a stage which was over are abandoned,
-- since those that start anew must not meet them.
create or replace function millrace.clear_stages(p_run millrace.runs, p_stage_ids int[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.supersede(p_run.id, p_stage_ids);
  update millrace.fan_outs f
  set state = 'abandoned'
  where f.run_id = p_run.id and f.stage_id = any (p_stage_ids) and f.state = 'finished';
  perform millrace.write_entities(
    p_run.pipeline_id, 'queued', null, null, array[p_run.entity_id],
    array(select s.name from millrace.stages s where s.id = any (p_stage_ids)));
end
$$;

create or replace function millrace.reset(p_run bigint, p_stage text default null) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage, p_whole => true);
  v_stage millrace.version_stages := v_held.version_stage;
  v_stages int[] := v_stage.dependents || v_stage.stage_id;
  v_wake int[];
begin
  if p_stage is null then
    v_stages := array(
      select vs.stage_id
      from millrace.version_stages vs
      where vs.version_id = (v_held.run).version_id);
  end if;
  perform millrace.clear_stages(v_held.run, v_stages);
  if p_stage is not null then
    perform millrace.forget_given(array[p_run], v_stages);
  end if;
  v_wake := millrace.reopen_run(v_held.run, v_stages);
  perform millrace.wake(v_wake || millrace.begin_open(array[p_run]));
end
$$;

-- Finds the stages that need a stage, however far down. One that only awaits a threshold has had
-- it.
create or replace function millrace.needing(p_version_id int, p_stage_id int) returns int[]
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with recursive needing as (
    select vs.stage_id
    from millrace.version_stages vs
    where vs.version_id = p_version_id and p_stage_id = any (vs.needs)
    union
    select vs.stage_id
    from needing n
    join millrace.version_stages vs on vs.version_id = p_version_id and n.stage_id = any (vs.needs)
  )
  select array(select n.stage_id from needing n)
$$;

-- Retries the children of a stage that still waits which failed or were cancelled, but for those
-- whose row somebody holds. Returns how many.
create or replace function millrace.retry_failed_children(p_fan_out millrace.fan_outs) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_child int := p_fan_out.child_pipeline_id;
  v_runs bigint[];
  v_entities text[];
begin
  select coalesce(array_agg(r.id), '{}'), coalesce(array_agg(r.entity_id), '{}')
  into v_runs, v_entities
  from millrace.runs r
  where r.fan_out_id = p_fan_out.id and r.status in ('failed', 'cancelled');
  if exists (
      select from millrace.pipelines p
      where p.id = v_child and p.projection <> 'none') then
    v_entities := millrace.lock_entities(v_child, v_entities, false);
  end if;
  return millrace.retry_runs(array(
    select r.id
    from millrace.runs r
    where r.id = any (v_runs)
      and r.entity_id = any (v_entities)
      and r.status in ('failed', 'cancelled')
    order by r.id
    for no key update skip locked));
end
$$;

create or replace function millrace.reset_children(p_run bigint, p_stage text) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage_id int := (v_held.version_stage).stage_id;
  v_kind text := (select s.kind from millrace.stages s where s.id = v_stage_id);
  v_fan_out millrace.fan_outs;
  v_stages int[];
  v_failed int;
  v_wake int[];
begin
  select f.*
  into v_fan_out
  from millrace.fan_outs f
  where f.run_id = p_run and f.stage_id = v_stage_id
  order by f.id desc
  limit 1;
  if not found then
    perform millrace.refuse_operation(p_run, p_stage, 'reset by its children', 'without any',
      'Only a map or pipeline stage that has spawned has children; '
      'use millrace.reset(run, stage).');
  elsif v_fan_out.state = 'open' then
    return millrace.retry_failed_children(v_fan_out);
  elsif millrace.state_of(p_run, v_stage_id) = 'pending' then
    perform millrace.refuse_operation(p_run, p_stage, 'reset by its children', 'pending',
      'Its needs run again; it spawns anew when they are done.');
  end if;
  v_failed := (
    select count(*)
    from millrace.runs r
    where r.fan_out_id = v_fan_out.id and r.status in ('failed', 'cancelled'));
  if v_failed = 0 then
    return 0;
  end if;
  v_stages := millrace.needing((v_held.run).version_id, v_stage_id) || v_stage_id;
  perform millrace.clear_stages(v_held.run, v_stages);
  v_wake := millrace.reopen_run(v_held.run, v_stages);
  v_wake := v_wake
    || millrace.retry_stage(v_stage_id, v_kind, millrace.running_of(array[p_run]));
  perform millrace.wake(v_wake || millrace.begin_open(array[p_run]));
  return v_failed;
end
$$;

-- Retrying children: a person retries a parent, and its children go on

-- Opens the latest fan-outs of a stage again. A map spawns once more, which retries the children
-- that failed.
create or replace function millrace.reopen_fan_outs(p_stage_id int, p_run_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.fan_outs f
  set state = 'open', total = null, retry_children = true,
    -- Rows that were deleted meanwhile are no children any more.
    spawned = (select count(*) from millrace.runs r where r.fan_out_id = f.id)
  where f.id in (
      select max(o.id)
      from millrace.fan_outs o
      where o.run_id = any (p_run_ids)
        and o.stage_id = p_stage_id
      group by o.run_id)
    and f.state in ('abandoned', 'closed', 'finished');
  insert into millrace.child_tallies (fan_out_id, recount)
  select f.id, true
  from millrace.fan_outs f
  where f.run_id = any (p_run_ids)
    and f.stage_id = p_stage_id
    and f.state = 'open';
end
$$;

-- Brings the runs that are filed under these items up to date with what happened to their rows
-- since; the caller holds the rows. A row that was queued by itself has a later run, which becomes
-- the child. A row that another parent has run since can go on with that later run alone: the
-- former run leaves the fan-out, so its item gets a new one.
create or replace function millrace.refile_items(p_fan_out_id bigint, p_item_keys text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_overtaken bigint[];
begin
  perform millrace.inherit_place(array(
    select max(l.id)
    from millrace.runs c
    join millrace.runs l
      on l.entity_id = c.entity_id
      and l.pipeline_id = c.pipeline_id
      and l.id > c.id
      and l.fan_out_id is null
    where c.fan_out_id = p_fan_out_id
      and c.item_key = any (p_item_keys)
    group by c.id));
  v_overtaken := array(
    select r.id
    from millrace.runs r
    where r.fan_out_id = p_fan_out_id
      and r.item_key = any (p_item_keys)
      and r.status in ('failed', 'cancelled')
      and not millrace.is_latest_run(r.id));
  if cardinality(v_overtaken) = 0 then
    return;
  end if;
  perform millrace.keep_costs(v_overtaken);
  update millrace.runs r
  set fan_out_id = null, item_key = null
  where r.id = any (v_overtaken);
  update millrace.fan_outs f
  set spawned = f.spawned - cardinality(v_overtaken)
  where f.id = p_fan_out_id;
  insert into millrace.child_tallies (fan_out_id, recount) values (p_fan_out_id, true);
end
$$;

-- Retries those of a map's items whose runs failed, where a person retried their parent. After a
-- lost lease they stay as they are.
create or replace function millrace.retry_items(p_fan_out millrace.fan_outs, p_item_keys text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not p_fan_out.retry_children then
    return;
  end if;
  perform millrace.refile_items(p_fan_out.id, p_item_keys);
  perform millrace.retry_runs(array(
    select r.id
    from millrace.runs r
    where r.fan_out_id = p_fan_out.id
      and r.item_key = any (p_item_keys)
      and r.status in ('failed', 'cancelled')
    order by r.id
    for no key update));
end
$$;

-- Gives a pipeline stage a new attempt that waits for the same child run, which goes on where it
-- failed. Where no child had begun, one begins now. Returns the stages with work.
create or replace function millrace.retry_child_runs(p_stage_id int, p_run_ids bigint[])
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_fan_outs bigint[];
  v_children bigint[];
  v_with bigint[];
  v_without bigint[];
  v_waiting bigint[];
  v_wake int[];
begin
  perform millrace.reopen_fan_outs(p_stage_id, p_run_ids);
  v_fan_outs := array(
    select f.id
    from millrace.fan_outs f
    where f.run_id = any (p_run_ids) and f.stage_id = p_stage_id and f.state = 'open');
  perform millrace.refile_items(f, array['1']) from unnest(v_fan_outs) f;
  v_children := array(
    select r.id
    from millrace.runs r
    where r.fan_out_id = any (v_fan_outs)
    order by r.id
    for no key update);
  v_with := array(
    select distinct f.run_id
    from millrace.runs c
    join millrace.fan_outs f on f.id = c.fan_out_id
    where c.id = any (v_children));
  v_without := array(select p from unnest(p_run_ids) p where p <> all (v_with));
  v_waiting := millrace.wait_for_child_runs(p_stage_id, v_with, v_now);
  perform millrace.name_parents(p_stage_id, v_with);
  update millrace.fan_outs f
  set attempt_id = a.id, total = 1, retry_children = false
  from millrace.attempts a
  where a.id = any (v_waiting) and f.run_id = a.run_id and f.id = any (v_fan_outs);
  perform millrace.retry_runs(v_children);
  perform millrace.show_stage(p_stage_id, p_run_ids, 'started', v_now);
  update millrace.fan_outs f
  set state = 'closed'
  where f.run_id = any (v_without) and f.id = any (v_fan_outs) and f.state = 'open';
  if cardinality(v_without) = 0 then
    return '{}';
  end if;
  v_wake := millrace.start_child_runs(p_stage_id, v_without);
  perform millrace.name_parents(p_stage_id, v_without);
  return v_wake;
end
$$;

-- Concurrency groups: how the queue of a stage is sorted.
--
-- A stage with the limits concurrency or priority has its queue sorted into groups, one for each
-- key and class of priority. Whoever enqueues writes an attempt's group and inserts an arrival,
-- which the next claim reads (claim-by-groups.sql), and waits for nobody.

-- Says which key a column's value stands for: the value itself or, for the part host, the host of a
-- URL in lower case, without port and user. What is no URL counts as a whole, and null as ''.
create or replace function millrace.group_key(p_value text, p_part text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  -- An index entry must fit into a page, so what is very long is cut, with its hash to tell it
  -- from others.
  select case when octet_length(k) > 400 then left(k, 80) || md5(k) else k end
  from (
    select coalesce(
      case when p_part = 'host' then
        rtrim(lower((regexp_match(
          btrim(p_value),
          '^[a-z][a-z0-9+.-]*://(?:[^/?#]*@)?(\[[0-9a-f:.]+\]|[^/?#:@\s]+)(?::\d*)?(?:[/?#]|$)',
          'i'))[1]), '.')
      end, p_value, '') as k) v
$$;

-- Builds the expression that reads which keys the entities p_ids have in a column, in their order.
create or replace function millrace.keys_expression(
  p_pipeline millrace.pipelines,
  p_key_type text,
  p_column text,
  p_part text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format(
    'array('
    'select millrace.group_key((select e.%I::text from %s e where e.%I = i.id::%s), %L) '
    'from unnest(p_ids) with ordinality i(id, place) order by i.place)',
    p_column, p_pipeline.entity_table, p_pipeline.entity_key, p_key_type, p_part)
$$;

-- Reads the keys of entities at a stage, in their order. A column that was renamed since must not
-- make a user's own write fail, so then all have the key ''.
create or replace function millrace.group_keys(p_stage millrace.stages, p_entity_ids text[])
returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_stage.limits ? 'concurrency' then
    return millrace.keys_of_entities(p_stage.pipeline_id, p_stage.name, p_entity_ids);
  end if;
  return array_fill(''::text, array[cardinality(p_entity_ids)]);
exception
  when others then
    if millrace.error_kind(sqlstate) <> 'lasting' then
      raise;
    end if;
    perform millrace.report('error', 'group_key_failed',
      format('The keys of stage %s cannot be read, so that its rows wait under one key: %s',
        p_stage.name, sqlerrm),
      jsonb_build_object('column', p_stage.limits #>> '{concurrency,column}'));
    return array_fill(''::text, array[cardinality(p_entity_ids)]);
end
$$;

-- Gives live attempts their group, from their entity as it is now, and announces those that are
-- queued.
create or replace function millrace.place_attempts(
  p_stage millrace.stages,
  p_attempt_ids bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_by_priority boolean := coalesce((p_stage.limits ->> 'priority')::boolean, false);
  v_found record;
begin
  select array_agg(a.id) as ids,
    array_agg(r.entity_id) as entity_ids,
    array_agg(case when v_by_priority then r.priority else 0 end) as priorities
  into v_found
  from unnest(p_attempt_ids) i
  join millrace.attempts a on a.id = i
  join millrace.runs r on r.id = a.run_id;
  if v_found.ids is null then
    return;
  end if;
  with placed as (
    update millrace.attempts a
    set concurrency_group = u.priority || u.key
    from unnest(
      v_found.ids,
      v_found.priorities,
      millrace.group_keys(p_stage, v_found.entity_ids)) u(id, priority, key)
    where a.id = u.id and a.state in ('queued', 'started', 'waiting')
    returning a.concurrency_group, a.queue_at, a.state
  )
  insert into millrace.arrivals (stage_id, concurrency_group, due_at)
  select p_stage.id, p.concurrency_group, min(p.queue_at)
  from placed p
  where p.state = 'queued'
  group by p.concurrency_group;
end
$$;

-- Sorts what was just queued at a stage for these runs into its groups. An attempt keeps its group
-- until it is queued again, whatever becomes of the column.
create or replace function millrace.assign_groups(p_stage_id int, p_run_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
begin
  select s.* into v_stage from millrace.stages s where s.id = p_stage_id;
  if v_stage.has_groups then
    perform millrace.place_attempts(v_stage, array(
      select a.id
      from unnest(p_run_ids) r
      join millrace.attempts a on a.run_id = r and a.stage_id = p_stage_id and a.state = 'queued'));
  end if;
end
$$;

-- Sorts attempts that have no group, since they were queued before the stage had groups, or by a
-- transaction that did not know of them: the p_limit oldest in the queue, or all that are live
-- where p_limit is null.
create or replace function millrace.adopt_attempts(p_stage millrace.stages, p_limit int)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.place_attempts(p_stage, array(
    select a.id
    from (
      select t.id
      from millrace.runs r
      join millrace.attempts t on t.run_id = r.id
        and t.stage_id = p_stage.id
        and t.state in ('queued', 'started', 'waiting')
      where p_limit is null and r.pipeline_id = p_stage.pipeline_id and r.status = 'running'
      union all
      (select t.id
       from millrace.attempts t
       where p_limit is not null and t.stage_id = p_stage.id and t.queue_at is not null
       order by t.queue_at, t.id
       limit p_limit)) q
    join millrace.attempts a on a.id = q.id
    where a.concurrency_group is null
    for update of a skip locked));
end
$$;

-- Says what a stage with these limits sorts its queue by.
create or replace function millrace.groups_sorted_by(p_limits jsonb) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_array(
    p_limits #> '{concurrency,column}',
    case
      when p_limits ? 'concurrency' then coalesce(p_limits #>> '{concurrency,part}', 'value')
    end,
    coalesce((p_limits ->> 'priority')::boolean, false))
$$;

-- Before define() saves the stages, it forgets the groups of those that the definition no longer
-- sorts, or sorts by something else, and the slots of those that it no longer counts. What somebody
-- holds at this moment is left out: it is about to end.
create or replace function millrace.forget_groups(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage record;
begin
  for v_stage in
    select t.id,
      millrace.groups_sorted_by(t.limits) <> millrace.groups_sorted_by(s -> 'limits')
        as sorted_anew,
      coalesce(millrace.limits_of(s) ?| array['max_in_flight', 'concurrency'], false) as counted
    from millrace.stages t
    join jsonb_array_elements(p_definition -> 'stages') s on s ->> 'name' = t.name
    where t.pipeline_id = p_pipeline_id and t.limits is not null
    order by t.id
  loop
    if v_stage.sorted_anew or not v_stage.counted then
      delete from millrace.in_flight f
      using (
        select o.attempt_id, o.token
        from millrace.in_flight o
        where o.stage_id = v_stage.id
        for update skip locked) o
      where f.attempt_id = o.attempt_id and f.token = o.token;
    end if;
    if v_stage.sorted_anew then
      delete from millrace.concurrency_groups g where g.stage_id = v_stage.id;
      delete from millrace.arrivals a where a.stage_id = v_stage.id;
      update millrace.attempts a
      set concurrency_group = null
      from (
        select t.id
        from millrace.runs r
        join millrace.attempts t on t.run_id = r.id
          and t.stage_id = v_stage.id
          and t.state in ('queued', 'started', 'waiting')
          and t.concurrency_group is not null
        where r.pipeline_id = p_pipeline_id and r.status = 'running'
        for update of t skip locked) t
      where a.id = t.id;
    end if;
  end loop;
end
$$;

-- attach() writes a pipeline's __keys function, which reads the keys of its entities at each stage
-- with concurrency, and keys_of_entities(), which leads to those of all pipelines.
create or replace function millrace.write_group_keys(
  p_pipeline millrace.pipelines,
  p_key_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_function text := p_pipeline.name || '__keys';
  v_branches text;
  v_ids int[];
  v_names text[];
begin
  select string_agg(format(E'\n  when %L then return %s;', s.name, millrace.keys_expression(
    p_pipeline, p_key_type, s.limits #>> '{concurrency,column}',
    coalesce(s.limits #>> '{concurrency,part}', 'value'))), '' order by s.id)
  into v_branches
  from millrace.stages s
  where s.pipeline_id = p_pipeline.id and s.limits ? 'concurrency';
  execute case when v_branches is null then
    format('drop function if exists millrace.%I(text, text[])', v_function)
  else format($f$
create or replace function millrace.%1$I(p_stage text, p_ids text[]) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  case p_stage%2$s
  end case;
end $$$f$, v_function, v_branches) end;
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id)
  into v_ids, v_names
  from millrace.pipelines p
  where exists (
    select from millrace.stages s
    where s.pipeline_id = p.id and s.limits ? 'concurrency');
  perform millrace.write_way('keys_of_entities',
    '(p_pipeline_id int, p_stage text, p_ids text[]) returns text[]',
    v_ids,
    array(
      select format('return millrace.%I(p_stage, p_ids);', n || '__keys') from unnest(v_names) n),
    'the keys of entities at a stage with concurrency, in their order.');
end
$write$;

-- attach() writes the way from a pipeline's entities to their keys, sorts what is queued at its
-- stages with groups, and counts what is in work at those with limits. Every group is looked at
-- anew, since a limit may have been raised.
create or replace function millrace.attach_groups(p_pipeline millrace.pipelines, p_key_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
begin
  perform millrace.write_group_keys(p_pipeline, p_key_type);
  for v_stage in
    select s.*
    from millrace.stages s
    where s.pipeline_id = p_pipeline.id
    order by s.id
  loop
    if v_stage.has_groups then
      perform millrace.adopt_attempts(v_stage, null);
      insert into millrace.arrivals (stage_id, concurrency_group, due_at)
      select v_stage.id, a.concurrency_group, min(a.queue_at)
      from millrace.attempts a
      where a.stage_id = v_stage.id
        and a.concurrency_group is not null
        and a.queue_at is not null
        and a.state = 'queued'
      group by a.concurrency_group;
    end if;
    perform millrace.count_attempts(v_stage, null);
  end loop;
end
$$;

-- Spawning: the worker of a map stage hands over its items
--
-- It does so in chunks, each in a transaction of its own that fits the Data API's time limit. An
-- item is known by its key: the engine passes over one that is there already, so a worker that dies
-- half-way is followed by one that sends everything again. The total closes with the chunk that is
-- said to be the last.

-- Returns keys and entity ids of the items of a chunk, one each: what the definition's insert
-- function makes of them, or rows that exist under these keys. Even "on conflict do nothing" waits
-- for whoever holds the row, so an insert function leaves out what exists already.
create or replace function millrace.rows_for_items(
  p_stage millrace.stages,
  p_parent text,
  p_items jsonb,
  out item_keys text[],
  out entity_ids text[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_insert regprocedure := to_regprocedure((p_stage.child ->> 'insert') || '(text,jsonb)');
begin
  if p_stage.child ->> 'insert' is null then
    item_keys := array(
      select k
      from (select distinct i ->> 'key' as k from jsonb_array_elements(p_items) i) d
      order by length(k), k);
    entity_ids := item_keys;
    return;
  elsif v_insert is null then
    raise exception 'the stage''s insert function %(text, jsonb) does not exist',
        p_stage.child ->> 'insert'
      using errcode = 'MR004', hint = 'Create it again, then retry the run.';
  end if;
  execute format($query$
    select coalesce(array_agg(f.item_key order by length(f.item_key), f.item_key), '{}'),
      coalesce(array_agg(f.entity_id order by length(f.item_key), f.item_key), '{}')
    from (select distinct on (item_key) item_key, entity_id from %s($1, $2)) f
    $query$, v_insert::regproc)
  into item_keys, entity_ids
  using p_parent, p_items;
  perform millrace.check_inserted(v_insert, p_items, item_keys, entity_ids);
end
$$;

-- Returns the open fan-out of a map attempt, taken over from a lost worker or made anew.
create or replace function millrace.fan_out_of(
  p_attempt millrace.attempts, p_child_pipeline_id int
) returns millrace.fan_outs
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fan_out millrace.fan_outs;
begin
  update millrace.fan_outs f
  set attempt_id = p_attempt.id
  where f.run_id = p_attempt.run_id
    and f.stage_id = p_attempt.stage_id
    and f.state = 'open'
  returning f.* into v_fan_out;
  if not found then
    insert into millrace.fan_outs (run_id, stage_id, attempt_id, child_pipeline_id, created_at)
    values (p_attempt.run_id, p_attempt.stage_id, p_attempt.id, p_child_pipeline_id, millrace.now())
    returning * into v_fan_out;
  end if;
  return v_fan_out;
end
$$;

-- Starts the runs of a chunk of items whose rows could be had. Names an item whose row somebody
-- holds in busy, to be sent again.
create or replace function millrace.spawn_chunk(
  p_attempt millrace.attempts,
  p_items jsonb,
  p_last boolean,
  out fan_out millrace.fan_outs,
  out wake int[],
  out busy text[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage millrace.stages;
  v_child millrace.pipelines;
  v_rows record;
  v_held text[];
begin
  select s.* into v_stage from millrace.stages s where s.id = p_attempt.stage_id;
  select p.* into v_child
  from millrace.pipelines p
  where p.name = v_stage.child ->> 'pipeline';
  fan_out := millrace.fan_out_of(p_attempt, v_child.id);
  if fan_out.child_pipeline_id <> v_child.id then
    raise exception 'the children of stage % are to be runs of pipeline % now, '
        'but this fan-out began with another', v_stage.name, v_child.name
      using errcode = 'MR004', hint = 'Reset the stage: select millrace.reset(run, stage).';
  end if;
  v_rows := millrace.rows_for_items(v_stage,
    (select r.entity_id from millrace.runs r where r.id = p_attempt.run_id), p_items);
  perform millrace.check_numbers(fan_out, v_rows.item_keys);
  v_held := millrace.lock_rows_named(v_child, v_rows.entity_ids, false);
  if array(select h from unnest(v_held) h order by h)
     <> array(select e from unnest(v_rows.entity_ids) e order by e) then
    perform millrace.check_rows_exist(v_child, v_rows.item_keys, v_rows.entity_ids);
    select array_agg(i.key) filter (where i.entity_id <> all (v_held)),
      array_agg(i.key) filter (where i.entity_id = any (v_held)),
      array_agg(i.entity_id) filter (where i.entity_id = any (v_held))
    into busy, v_rows.item_keys, v_rows.entity_ids
    from unnest(v_rows.item_keys, v_rows.entity_ids) i(key, entity_id);
  end if;
  perform millrace.retry_items(fan_out, v_rows.item_keys);
  wake := millrace.add_children(fan_out, v_rows.item_keys, v_rows.entity_ids);
  if p_last and busy is null then
    update millrace.fan_outs f
    set total = f.spawned, retry_children = false
    where f.id = fan_out.id;
    insert into millrace.child_tallies (fan_out_id) values (fan_out.id);
  end if;
  select f.* into fan_out from millrace.fan_outs f where f.id = fan_out.id;
end
$$;

-- Locks a run and its entity; false when somebody keeps them for longer than 200 ms. Whoever
-- collects children holds the parent's run for a moment, again and again while children end. That
-- is worth a short wait, for the worker would come back much later.
create or replace function millrace.hold_parent(p_run_id bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
begin
  -- The row too, which children may refer to: who deletes it holds it before the run.
  perform millrace.hold_runs(array[p_run_id]);
  return exists (select from millrace.runs r where r.id = p_run_id);
exception
  when lock_not_available then
    return false;
end
$$;

-- The worker of a map stage calls it for each chunk of its items.
create or replace function public.millrace_spawn(
  p_worker uuid, p_attempt bigint, p_token uuid, p_items jsonb, p_last boolean
) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_bitmapscan = off
set enable_mergejoin = off set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_attempt millrace.attempts;
  v_stage millrace.stages;
  v_reason text;
  v_done record;
begin
  if millrace.refuse_contract() is not null then
    return millrace.refuse_contract();
  end if;
  perform millrace.check_items(p_items);
  if p_last is null then
    raise exception 'p_last is null, but must be true or false'
      using errcode = 'MR002',
        hint = 'Send true with the last chunk of the items, which may be empty.';
  end if;
  perform public.millrace_renew(p_worker, '{}');
  select a.* into v_attempt from millrace.attempts a where a.id = p_attempt;
  select s.* into v_stage from millrace.stages s where s.id = v_attempt.stage_id;
  if v_stage.kind <> 'map' then
    raise exception 'attempt % is of stage %, which is no map', p_attempt, v_stage.name
      using errcode = 'MR004', hint = 'Only a stage of kind map has children to spawn.';
  end if;
  -- Whoever cancels the parent, starts it over or deletes it waits for this chunk, or this chunk
  -- hears of it.
  if not millrace.hold_parent(v_attempt.run_id) and v_attempt.id is not null then
    return jsonb_build_object('status', 'busy', 'wake', '[]'::jsonb,
      'reason', 'the run or its row is locked by another transaction');
  end if;
  select a.* into v_attempt from millrace.attempts a where a.id = p_attempt;
  v_reason := millrace.void_reason(v_attempt, p_token);
  if v_reason is not null then
    return jsonb_build_object('status', 'stale', 'reason', v_reason, 'wake', '[]'::jsonb);
  end if;
  v_done := millrace.spawn_chunk(v_attempt, p_items, p_last);
  return jsonb_build_object(
    'status', case when v_done.busy is null then 'spawned' else 'busy' end,
    'fan_out', (v_done.fan_out).id,
    'spawned', (v_done.fan_out).spawned,
    'total', (v_done.fan_out).total,
    'busy', coalesce(v_done.busy, '{}'),
    'wake', millrace.wake_list(millrace.stages_to_wake(v_done.wake)));
end
$$;

-- Operations: starting, completing, failing and skipping a stage by hand.

-- Starts a pending stage of a running run. enqueue_stage() refuses one whose needs are not done;
-- its thresholds and its own condition are what the person overrules.
create or replace function millrace.start_stage(p_run bigint, p_stage text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage_id int := (v_held.version_stage).stage_id;
  v_state text := millrace.state_of(p_run, v_stage_id);
begin
  if (v_held.run).status <> 'running' or v_state <> 'pending' then
    perform millrace.refuse_operation(p_run, p_stage, 'started',
      format('%s, and the run is %s', v_state, (v_held.run).status),
      'Only a pending stage of a running run can be started; '
      'use millrace.retry(run) or millrace.reset(run, stage).');
  end if;
  perform millrace.wake(millrace.enqueue_stage(array[p_run], v_stage_id, true));
end
$$;

-- Ends the live attempt of a stage as a person says. Its token, job or children are void: whoever
-- has it in work hears that it comes too late, also where it would have said the same.
create or replace function millrace.end_stage(
  p_run bigint,
  p_stage text,
  p_outcome text,
  p_result jsonb,
  p_error jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage_id int := (v_held.version_stage).stage_id;
  v_attempt millrace.attempts;
  v_item millrace.work;
  v_done record;
begin
  select a.*
  into v_attempt
  from millrace.attempts a
  where a.run_id = p_run
    and a.stage_id = v_stage_id
    and a.state in ('queued', 'started', 'waiting')
  for update;
  if not found then
    perform millrace.refuse_operation(
      p_run, p_stage, p_outcome, millrace.state_of(p_run, v_stage_id),
      'Only a stage that is queued, started or waiting can be ended by hand.');
  end if;
  perform millrace.abandon_fan_outs(array[p_run], array[v_stage_id]);
  update millrace.attempts a set token = null, service = 'by_hand' where a.id = v_attempt.id;
  v_item.ord := 1;
  v_item.attempt_id := v_attempt.id;
  v_item.outcome := p_outcome;
  v_item.result := p_result;
  v_item.error := p_error;
  v_item.service := 'by_hand';
  v_item.job_id := v_attempt.job_id;
  v_item.run_id := p_run;
  v_item.stage_id := v_stage_id;
  v_item.entity_id := (v_held.run).entity_id;
  v_item.was := v_attempt.state;
  v_done := millrace.apply_outcomes_guarded(array[v_item]);
  v_item := v_done.items[1];
  if v_item.verdict = 'busy' then
    raise exception 'stage % of run % cannot be ended now: %', p_stage, p_run, v_item.reason
      using errcode = 'MR004', hint = 'Nothing was changed; try again shortly.';
  elsif p_outcome = 'completed' and v_item.outcome = 'failed' then
    raise exception 'stage % of run % cannot be completed: %', p_stage, p_run, v_item.reason
      using errcode = 'MR004',
        hint = 'Correct what its apply function or a trigger of yours refuses.';
  end if;
  perform millrace.wake(v_done.ready);
end
$$;

create or replace function millrace.complete_stage(p_run bigint, p_stage text, p_result jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
begin
  if p_result is null then
    raise exception 'p_result is null, but must be the result of stage %', p_stage
      using errcode = 'MR002', hint = 'Give the result as jsonb; ''null''::jsonb is one.';
  end if;
  perform millrace.end_stage(p_run, p_stage, 'completed', p_result, null);
end
$$;

create or replace function millrace.fail_stage(
  p_run bigint,
  p_stage text,
  p_message text,
  p_permanent boolean default false)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
begin
  perform millrace.end_stage(p_run, p_stage, 'failed', null, jsonb_build_object(
    'code', 'failed_by_hand',
    'message', coalesce(p_message, 'failed by hand'),
    'permanent', coalesce(p_permanent, false)));
end
$$;

create or replace function millrace.skip(p_run bigint, p_stage text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_indexonlyscan = off set enable_mergejoin = off
set enable_hashjoin = off set enable_memoize = off
set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  v_held record := millrace.hold_stage(p_run, p_stage);
  v_stage millrace.version_stages := v_held.version_stage;
  v_state text := millrace.state_of(p_run, v_stage.stage_id);
  v_wake int[];
begin
  if v_state in ('completed', 'skipped') then
    perform millrace.refuse_operation(p_run, p_stage, 'skipped', v_state,
      'It is done. To go on without its result: millrace.reset(run, stage), then skip it.');
  elsif v_state = 'pending' and ((v_held.run).status <> 'running' or exists (
      select from unnest(v_stage.needs) n where not millrace.is_done(p_run, n))) then
    perform millrace.refuse_operation(p_run, p_stage, 'skipped',
      'pending, and its needs are not done', 'Skip or finish its needs first.');
  end if;
  perform millrace.supersede(p_run, array[v_stage.stage_id]);
  v_wake := millrace.reopen_run(v_held.run, array[v_stage.stage_id]);
  v_wake := v_wake || millrace.skip_stage(v_stage.stage_id, millrace.running_of(array[p_run]),
    '{"code": "skipped", "message": "skipped by hand"}');
  perform millrace.wake(v_wake || millrace.begin_open(array[p_run]));
end
$$;

-- Starting children
--
-- A map stage starts runs of another pipeline for many rows, a pipeline stage one run for its own
-- row. Its attempt waits meanwhile. A child never touches its parent's rows, or a thousand children
-- that end at once would queue for one lock: it adds a tally, one row a batch, and
-- collect_children() adds the tallies up.
--
-- Whoever holds a child never takes its parent. From a parent's side children are taken in batches
-- and with skip locked only. A parent that is cancelled, fails or starts over gives its fan-out up;
-- the sweep cancels the children.

-- Begins the first stages of new child runs, whose entities the caller holds; returns the stages
-- with work.
create or replace function millrace.begin_roots(p_pipeline_id int, p_run_ids bigint[])
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_shown boolean := (
    select p.projection <> 'none' from millrace.pipelines p where p.id = p_pipeline_id);
  v_root record;
  v_runs bigint[];
  v_wake int[] := '{}';
begin
  if exists (
      select from millrace.stages s where s.pipeline_id = p_pipeline_id and s.counted) then
    perform millrace.inherit_quotas(p_run_ids);
  end if;
  perform millrace.note_given(p_pipeline_id, p_run_ids);
  for v_root in
    -- By the runs' own version: a definition may have been committed since they were made.
    select vs.stage_id, vs.dependents, vs.unconditional, vs.on_demand, r.run_ids
    from (
      select r.version_id, array_agg(r.id order by r.id) as run_ids
      from millrace.runs r
      where r.id = any (p_run_ids)
      group by r.version_id
    ) r
    join millrace.version_stages vs on vs.version_id = r.version_id
    where vs.needs = '{}'
      and vs.after = '[]'
    order by vs.version_id, vs.position
  loop
    -- A stage that failed as it began, since its own child could not, has ended its run.
    v_runs := millrace.running_of(v_root.run_ids);
    perform millrace.project_queued(p_pipeline_id,
      case when not v_root.on_demand then v_root.stage_id end,
      case when v_root.on_demand then array[v_root.stage_id] else '{}' end || v_root.dependents,
      array(select r.entity_id from millrace.runs r where r.id = any (v_runs)));
    if v_shown then
      v_runs := millrace.runs_to_begin(v_root.stage_id, v_runs);
    end if;
    if v_root.unconditional then
      perform millrace.queue_attempts(v_root.stage_id, v_runs);
      v_wake := v_wake || v_root.stage_id;
    else
      v_wake := v_wake || millrace.begin_stage(v_root.stage_id, v_runs);
    end if;
  end loop;
  return v_wake;
end
$$;

-- Adds to each of these runs an attempt of a pipeline stage that waits for its child; returns the
-- attempts.
create or replace function millrace.wait_for_child_runs(
  p_stage_id int, p_run_ids bigint[], p_at timestamptz
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attempts bigint[];
begin
  with waiting as (
    insert into millrace.attempts
      (run_id, stage_id, number, state, created_at, started_at, deadline_at, late_at,
        service, job_id)
    select r.id, p_stage_id,
      coalesce((
        select max(a.number)
        from millrace.attempts a
        where a.run_id = r.id
          and a.stage_id = p_stage_id), 0) + 1,
      'waiting', p_at, p_at, p_at + s.deadline, p_at + s.sla, 'children', s.child ->> 'pipeline'
    from unnest(p_run_ids) r(id), millrace.stages s
    where s.id = p_stage_id
    order by r.id
    returning id
  )
  select array_agg(w.id) into v_attempts from waiting w;
  return v_attempts;
end
$$;

-- Picks the waiting attempts of a pipeline stage whose child run could not start, as failures that
-- say why: a row that has a live run of the child's pipeline keeps it, and one with too much
-- metadata gets none.
create or replace function millrace.parents_without_child(
  p_child millrace.pipelines,
  p_stage_id int,
  p_run_ids bigint[],
  p_free text[],
  p_faults text[]
) returns millrace.work[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select millrace.work_on(a, r.entity_id, 'failed',
      p_ord => (row_number() over (order by a.id))::int,
      p_error => case when e.fault is null then
        jsonb_build_object('code', 'child_running', 'permanent', true, 'message', format(
          'the row has a live run of pipeline %s that %s; '
          'let it finish or cancel it, then retry this run',
          p_child.name,
          coalesce('is a child of run ' || o.run_id, 'was started by itself')))
      else
        jsonb_build_object('code', 'metadata_too_large', 'permanent', true,
          'message', e.fault || '; shorten it, then retry this run')
      end)
    from millrace.fan_outs f
    join millrace.attempts a on a.id = f.attempt_id
    join millrace.runs r on r.id = a.run_id
    left join millrace.runs l
      on l.pipeline_id = p_child.id and l.entity_id = r.entity_id and l.status = 'running'
    left join millrace.fan_outs o on o.id = l.fan_out_id
    left join unnest(p_free, p_faults) e(id, fault) on e.id = r.entity_id
    where f.run_id = any (p_run_ids)
      and f.stage_id = p_stage_id
      and f.state = 'open'
      and not exists (select from millrace.runs c where c.fan_out_id = f.id));
end
$$;

-- Starts the child run of a pipeline stage in each of these runs: it goes over the same row, which
-- the caller holds, and an attempt waits for it. Returns the stages with work.
create or replace function millrace.start_child_runs(p_stage_id int, p_run_ids bigint[])
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_child millrace.pipelines;
  v_rows text[] := array(
    select r.entity_id from millrace.runs r where r.id = any (p_run_ids));
  v_free text[];
  v_copied record;
  v_waiting bigint[];
  v_children bigint[];
  v_busy millrace.work[];
  v_wake int[];
begin
  select p.* into v_child
  from millrace.stages s
  join millrace.pipelines p on p.name = s.child ->> 'pipeline'
  where s.id = p_stage_id;
  perform millrace.cancel_given_up(v_child.id, v_rows);
  v_free := array(
    select e.id
    from unnest(v_rows) e(id)
    where not exists (
      select
      from millrace.runs l
      where l.pipeline_id = v_child.id and l.entity_id = e.id and l.status = 'running'));
  v_copied := millrace.copy_metadata(v_child.id, v_free);
  v_waiting := millrace.wait_for_child_runs(p_stage_id, p_run_ids, v_now);
  with fan_out as (
    insert into millrace.fan_outs
      (run_id, stage_id, attempt_id, child_pipeline_id, spawned, total, created_at)
    select a.run_id, p_stage_id, a.id, v_child.id, 1, 1, v_now
    from millrace.attempts a
    where a.id = any (v_waiting)
    order by a.id
    returning id, run_id
  ), added as (
    insert into millrace.runs (pipeline_id, version_id, entity_id, trace_id, fan_out_id, item_key,
      priority, metadata_id, created_at)
    select v_child.id, v_child.current_version_id, r.entity_id, r.trace_id, f.id, '1', r.priority,
      case when v_child.metadata_column is null then r.metadata_id else e.metadata_id end, v_now
    from fan_out f
    join millrace.runs r on r.id = f.run_id
    join unnest(v_free, v_copied.ids, v_copied.faults) e(id, metadata_id, fault)
      on e.id = r.entity_id and e.fault is null
    returning id
  )
  select coalesce(array_agg(a.id order by a.id), '{}') into v_children from added a;
  perform millrace.show_stage(p_stage_id, p_run_ids, 'started', v_now, v_child.name);
  v_wake := millrace.begin_roots(v_child.id, v_children);
  v_busy := millrace.parents_without_child(v_child, p_stage_id, p_run_ids, v_free, v_copied.faults);
  if cardinality(v_busy) > 0 then
    v_wake := v_wake || millrace.fail(p_stage_id, v_busy);
  end if;
  return v_wake;
end
$$;

-- The projection `status`: who moves a row

-- Names who is at hand, for the history: whom a token names, else the session's user. A name set by
-- `set_config('millrace.actor', …)` counts for service_role and for who owns the table alone, since
-- any session can set it. The role is read from its setting: in a function that runs as its owner,
-- current_user is that owner.
create or replace function millrace.actor(p_table regclass) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_role text := coalesce(nullif(current_setting('role', true), 'none'), session_user);
  v_given text := nullif(current_setting('millrace.actor', true), '');
  v_claims jsonb;
begin
  if v_given is not null and (v_role = 'service_role' or exists (
      select
      from pg_class c
      where c.oid = p_table and pg_has_role(v_role, c.relowner, 'member'))) then
    return case when v_given ~ '^[a-z]+:' then v_given else 'user:' || v_given end;
  end if;
  if v_role in ('authenticated', 'anon', 'service_role') then
    begin
      v_claims := nullif(current_setting('request.jwt.claims', true), '')::jsonb;
    exception when invalid_text_representation then
      null;
    end;
  end if;
  return 'user:' || coalesce(nullif(v_claims #>> '{app_metadata,name}', ''),
    nullif(v_claims ->> 'email', ''), nullif(v_claims ->> 'sub', ''), v_role);
end
$$;

-- The projection `status`: values that answer a question, or take it back

-- Answers the question of a manual stage as a value means it. Its row in public.millrace_decisions
-- takes the decision, and completes the attempt; one that somebody holds, who may be answering and
-- waiting for this row, is left to the sweep, and its attempt is completed here. So nobody who
-- writes a row waits for a decision.
create or replace function millrace.answer_by_value(
  p_pipeline_id int, p_stage_id int, p_value text, p_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_decision jsonb := (
    select s.shows #> array['answers', p_value, 'decision']
    from millrace.stages s
    where s.id = p_stage_id);
  v_asked bigint[];
  v_free bigint[];
  v_items millrace.work[];
  v_done record;
begin
  v_asked := array(
    select a.id
    from millrace.runs r
    join millrace.attempts a on a.run_id = r.id and a.stage_id = p_stage_id
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_ids)
      and r.status = 'running'
      and a.state = 'waiting'
    order by a.id);
  v_free := array(
    select d.attempt_id
    from public.millrace_decisions d
    where d.attempt_id = any (v_asked) and d.closed_at is null
    order by d.attempt_id
    for update skip locked);
  update public.millrace_decisions d
  set decision = v_decision
  where d.attempt_id = any (v_free);
  if cardinality(v_free) = cardinality(v_asked) then
    return;
  end if;
  perform millrace.hold_runs(array(
    select a.run_id from millrace.attempts a
    where a.id = any (v_asked) and a.id <> all (v_free)));
  v_items := array(
    select millrace.work_on(a, r.entity_id, 'completed',
      jsonb_build_object('decision', v_decision, 'decided_by', null),
      p_ord => (row_number() over (order by a.id))::int)
    from millrace.attempts a
    join millrace.runs r on r.id = a.run_id
    where a.id = any (v_asked) and a.id <> all (v_free) and a.state = 'waiting');
  v_done := millrace.apply_outcomes(v_items);
  perform millrace.wake(v_done.ready);
end
$$;

-- Takes back the question of a manual stage: it and what comes after it are skipped, and the run is
-- over, at the value from which it began.
create or replace function millrace.take_question_back(
  p_pipeline_id int, p_stage_id int, p_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_error constant jsonb := jsonb_build_object(
    'code', 'discarded', 'message', 'the question was taken back', 'on_demand', true);
  v_runs bigint[];
  v_asked bigint[];
begin
  v_runs := array(
    select r.id
    from millrace.runs r
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_ids)
      and r.status = 'running'
    order by r.id
    for no key update);
  with closed as (
    update millrace.attempts a
    set state = 'skipped', finished_at = v_now, deadline_at = null, poll_at = null,
      late_at = null, error = v_error
    where a.run_id = any (v_runs)
      and a.stage_id = p_stage_id
      and a.state = 'waiting'
    returning a.id
  )
  select coalesce(array_agg(c.id), '{}') into v_asked from closed c;
  insert into millrace.attempts (run_id, stage_id, number, state, created_at, finished_at, error)
  select r.id, d, coalesce((
      select max(a.number)
      from millrace.attempts a
      where a.run_id = r.id and a.stage_id = d), 0) + 1,
    'skipped', v_now, v_now, v_error
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = p_stage_id
  cross join lateral unnest(vs.dependents) d
  where r.id = any (v_runs)
  order by r.id;
  perform millrace.finish_runs(vs.stage_id, array_agg(r.id))
  from millrace.runs r
  join millrace.version_stages vs on vs.version_id = r.version_id and vs.is_sink
  where r.id = any (v_runs)
  group by vs.stage_id;
  perform millrace.close_held(array(
    select d.attempt_id
    from public.millrace_decisions d
    where d.attempt_id = any (v_asked) and d.closed_at is null
    order by d.attempt_id
    for update skip locked));
  perform millrace.show_status(p_pipeline_id, p_ids);
end
$$;

-- The projection `status`: what a definition says of its column
--
-- check_status() and what it calls raise MR001, with the field, what was found and the remedy, or
-- do nothing. save_status() writes what the definition says. Values are read with ->>, so that a
-- code may stand there as a number or as a text.

-- Raises MR001 about the status column of a definition.
create or replace function millrace.refuse_status(p_field text, p_found text, p_hint text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'entity.status%: %', p_field, p_found using errcode = 'MR001', hint = p_hint;
end
$$;

-- Lists every value that a definition uses, with its place. Values of failures are one place, since
-- every stage may fail alike, and so is what one stage shows more than once.
create or replace function millrace.values_used(p_definition jsonb)
returns table (value text, place text)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  with status as (
    select p_definition #> '{entity,status}' as said
  ), stage as (
    select s ->> 'name' as name, s -> 'shows' as shows
    from jsonb_array_elements(p_definition -> 'stages') s
  )
  select l, 'stage ' || s.name
  from stage s
  cross join lateral unnest(millrace.live_values(s.shows) || (s.shows ->> 'completed')) l
  where l is not null
  union
  select a, case
      when a in (select e.value from status t, jsonb_each_text(t.said -> 'ends') e) then 'ends'
      else 'stage ' || s.name
    end
  from stage s
  cross join lateral jsonb_object_keys(s.shows -> 'answers') a
  union
  select f.value, 'failures'
  from stage s
  cross join lateral jsonb_each_text(s.shows -> 'failed') f
  union
  select t.said ->> 'failed', 'failures'
  from status t
  union
  select e.value, 'ends'
  from status t
  cross join lateral jsonb_each_text(t.said -> 'ends') e
  union
  select v.value, 'layer ' || l.key
  from status t
  cross join lateral jsonb_each(t.said -> 'layers') l
  cross join lateral (values (l.value ->> 'enter'), (l.value ->> 'leave')) v(value)
  where v.value is not null
$$;

-- Raises MR001 where a column of the entity that the projection writes is missing or mistyped.
create or replace function millrace.check_status_columns(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_table text := p_definition #>> '{entity,table}';
  v_wrong record;
begin
  select c.field, c.name, c.types, format_type(a.atttypid, null) as type
  into v_wrong
  from (values
    (1, 'column', array['smallint', 'text', 'character varying']),
    (2, 'history.since', array['timestamp with time zone']),
    (3, 'history.changes', array['jsonb']),
    (4, 'attempts', array['smallint', 'integer', 'bigint']),
    (5, 'retry_at', array['timestamp with time zone']),
    (6, 'error', array['text', 'character varying'])) f(place, field, types)
  cross join lateral (
    select f.field, f.types, p_definition #>> (array['entity', 'status']
      || string_to_array(f.field, '.')) as name) c
  left join pg_attribute a
    on a.attrelid = to_regclass(v_table)
    and a.attnum > 0
    and not a.attisdropped
    and a.attname = c.name
  where c.name is not null
    and (a.attname is null or format_type(a.atttypid, null) <> all (c.types))
  order by f.place
  limit 1;
  if found then
    perform millrace.refuse_status('.' || v_wrong.field, format('%s is %s of %s', v_wrong.name,
      coalesce('a column of type ' || v_wrong.type, 'no column'), v_table),
      format('It must be of type %s: alter table %s %s column %I %s%s;',
        array_to_string(v_wrong.types, ' or '), v_table,
        case when v_wrong.type is null then 'add' else 'alter' end, v_wrong.name,
        case when v_wrong.type is null then '' else 'type ' end, v_wrong.types[1]));
  end if;
end
$$;

-- Raises MR001 unless the tables of lookup and history have the columns that the engine writes.
create or replace function millrace.check_status_tables(p_status jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_missing record;
begin
  select t.field, t.name, to_regclass(t.name) is null as no_table, c as wanted
  into v_missing
  from (values
    (1, 'lookup', p_status ->> 'lookup',
      array['name', 'description', 'category', 'is_terminal', 'sort_order', 'code']),
    (2, 'history.table', p_status #>> '{history,table}',
      array['id', p_status #>> '{history,key}', 'from_status', 'to_status', 'changed_at',
        'changed_by', 'changes', 'duration_ms'])) t(place, field, name, columns)
  cross join lateral unnest(t.columns) with ordinality u(c, n)
  left join pg_attribute a
    on a.attrelid = to_regclass(t.name)
    and a.attnum > 0
    and not a.attisdropped
    and a.attname = u.c
  where t.name is not null
    and a.attname is null
  order by t.place, u.n
  limit 1;
  if found then
    perform millrace.refuse_status('.' || v_missing.field, case
        when v_missing.no_table then format('%s is no table', v_missing.name)
        else format('table %s has no column %s', v_missing.name, v_missing.wanted)
      end, 'Create it in an earlier migration; docs/patterns/status.md shows both tables.');
  end if;
  if exists (
      select
      from pg_attribute a
      where a.attrelid = to_regclass(p_status #>> '{history,table}')
        and (a.attname = 'id' and format_type(a.atttypid, null) not in ('integer', 'bigint', 'uuid')
          or a.attname = 'duration_ms' and format_type(a.atttypid, null) <> 'bigint')) then
    perform millrace.refuse_status('.history.table', format(
      'in %s the column id must be an integer or uuid that grows, and duration_ms a bigint',
      p_status #>> '{history,table}'),
      'id says which of two values of one transaction came first: let a uuid begin with '
      'nextval() of a sequence. An int of milliseconds ends after 25 days.');
  end if;
end
$$;

-- Raises MR001 unless the stages are a chain and each says what it shows.
create or replace function millrace.check_status_chain(p_definition jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_order text[] := millrace.order_stages(p_definition -> 'stages');
  v_stage jsonb;
  v_before text;
begin
  for v_stage in
    select s
    from jsonb_array_elements(p_definition -> 'stages') s
    order by array_position(v_order, s ->> 'name')
  loop
    if not v_stage ? 'shows' then
      raise exception 'stage %: shows is missing, but the projection is status',
        v_stage ->> 'name'
        using errcode = 'MR001', hint = 'Say which values stand for it: "shows": {"queued": …, '
          '"started": …, "completed": …}, or {"asked": …} for a manual stage.';
    elsif v_before is not null and v_before <> all (millrace.edges_to(v_stage)) then
      raise exception 'the stages are no chain: % and % may be under way at once',
        v_before, v_stage ->> 'name'
        using errcode = 'MR001', hint = format(
          'One column shows one stage. Let %s need %s, or use the projection columns.',
          v_stage ->> 'name', v_before);
    end if;
    v_before := v_stage ->> 'name';
  end loop;
end
$$;

-- Raises MR001 where a value is not listed, not of the column's type, or used in two places.
create or replace function millrace.check_status_values(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status jsonb := p_definition #> '{entity,status}';
  v_coded boolean := exists (
    select
    from pg_attribute a
    where a.attrelid = to_regclass(p_definition #>> '{entity,table}')
      and a.attname = v_status ->> 'column'
      and format_type(a.atttypid, null) = 'smallint');
  v_listed text[] := array(
    select v
    from jsonb_each(v_status -> 'values') c
    cross join lateral jsonb_object_keys(c.value) v);
  v_wrong record;
begin
  select v, count(*) as times
  into v_wrong
  from unnest(v_listed) v
  group by v
  having count(*) > 1
    or v_coded and not case when v ~ '^(0|-?[1-9]\d{0,4})$'
      then v::int between -32768 and 32767 else false end
  order by 1
  limit 1;
  if found then
    perform millrace.refuse_status('.values', format('%s %s', v_wrong.v, case
        when v_wrong.times > 1 then 'is listed twice'
        else 'is no smallint, which the column is' end),
      'List each value once, as the column shows it.');
  end if;
  select u.value, min(u.place) as place, max(u.place) as other, count(*) as places
  into v_wrong
  from millrace.values_used(p_definition) u
  group by u.value
  having u.value <> all (v_listed)
    or count(*) > 1 and not u.value = any (array(
      select s #>> '{}' from jsonb_array_elements(v_status -> 'shared') s))
  order by u.value = any (v_listed), u.value
  limit 1;
  if found and v_wrong.value = any (v_listed) then
    perform millrace.refuse_status('', format('%s stands for %s and for %s', v_wrong.value,
      v_wrong.place, v_wrong.other),
      'Give each a value of its own, or list it in entity.status.shared where both are meant.');
  elsif found then
    perform millrace.refuse_status('.values', format('%s, which %s shows, is not listed',
      v_wrong.value, v_wrong.place), 'List it with a name and a description under a category.');
  end if;
end
$$;

-- Raises MR001 unless layers are of stages that stand together, each in one layer.
create or replace function millrace.check_layers(p_definition jsonb) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_order text[] := millrace.order_stages(p_definition -> 'stages');
  v_layer record;
begin
  for v_layer in
    select l.key as name, array_agg(s order by array_position(v_order, s)) as stages,
      min(array_position(v_order, s)) as first, max(array_position(v_order, s)) as last,
      count(array_position(v_order, s)) as known,
      (select o.key
       from jsonb_each(p_definition #> '{entity,status,layers}') o
       where o.key > l.key
         and exists (
           select
           from jsonb_array_elements_text(l.value -> 'stages') t
           where o.value -> 'stages' ? t)
       limit 1) as other
    from jsonb_each(p_definition #> '{entity,status,layers}') l
    cross join lateral jsonb_array_elements_text(l.value -> 'stages') s
    group by l.key, l.value
  loop
    if v_layer.known < cardinality(v_layer.stages) then
      perform millrace.refuse_status('.layers.' || v_layer.name,
        'it names a stage that this pipeline does not have',
        'Stages are: ' || array_to_string(v_order, ', ') || '.');
    elsif v_layer.other is not null then
      perform millrace.refuse_status('.layers.' || v_layer.name,
        format('it shares a stage with layer %s', v_layer.other), 'Put each stage into one layer.');
    elsif v_layer.last - v_layer.first + 1 > cardinality(v_layer.stages) then
      perform millrace.refuse_status('.layers.' || v_layer.name, format(
        'its stages %s do not stand together', array_to_string(v_layer.stages, ', ')),
        'The chain is ' || array_to_string(v_order, ', ') || '.');
    end if;
  end loop;
end
$$;

-- Raises MR001 where steps, answers, endings or moves name values that cannot be meant.
create or replace function millrace.check_status_names(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status jsonb := p_definition #> '{entity,status}';
  v_wrong record;
begin
  select s ->> 'name' as stage, v.value
  into v_wrong
  from jsonb_array_elements(p_definition -> 'stages') s
  cross join lateral (
    select f #>> '{}' as value
    from jsonb_each(s #> '{shows,answers}') a, jsonb_array_elements(a.value -> 'from') f
    union all
    select m #>> '{}'
    from jsonb_array_elements(s #> '{shows,step_moves}') p, jsonb_array_elements(p) m) v
  where v.value <> all (millrace.live_values(s -> 'shows'))
  limit 1;
  if found then
    raise exception
      'stage %: shows moves from or to %, which is neither asked nor one of its steps',
      v_wrong.stage, v_wrong.value
      using errcode = 'MR001', hint = 'List it in shows.steps, or correct it.';
  end if;
  select s ->> 'name' as stage, e ->> 'name' as name
  into v_wrong
  from jsonb_array_elements(p_definition -> 'stages') s
  cross join lateral jsonb_array_elements(s -> 'ends') e
  where not v_status -> 'ends' ? (e ->> 'name')
  limit 1;
  if found then
    perform millrace.refuse_status('.ends', format('stage %s ends runs as %s, for which there is '
      'no value', v_wrong.stage, v_wrong.name), 'Say which value stands for it.');
  end if;
  select m #>> '{}' as value, u.place
  into v_wrong
  from jsonb_array_elements(v_status -> 'moves' || jsonb_build_array(v_status -> 'entries')) p
  cross join lateral jsonb_array_elements(p) m
  left join millrace.values_used(p_definition) u on u.value = m #>> '{}'
  where u.value is null
  limit 1;
  if found then
    perform millrace.refuse_status('.moves or entries', format('%s is a value that nothing shows',
      v_wrong.value), 'Name values that stages, layers, failures or endings show.');
  end if;
end
$$;

-- Checks what a definition says of a status column, whether its projection is one or not.
create or replace function millrace.check_status(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status jsonb := p_definition #> '{entity,status}';
  v_other text;
begin
  if (p_definition #>> '{entity,projection}' = 'status') <> (v_status is not null) then
    raise exception 'entity.status is %, but entity.projection is %',
      case when v_status is null then 'missing' else 'given' end,
      p_definition #>> '{entity,projection}'
      using errcode = 'MR001',
        hint = 'It belongs to the projection status: give it there, and only there.';
  elsif v_status is null then
    return;
  end if;
  v_other := (
    select p.name
    from millrace.pipelines p
    where p.entity_table = to_regclass(p_definition #>> '{entity,table}')
      and p.name <> p_definition ->> 'pipeline'
      and p.status ->> 'column' = v_status ->> 'column'
    limit 1);
  if v_other is not null then
    perform millrace.refuse_status('.column', format('%s shows pipeline %s already',
      v_status ->> 'column', v_other), 'Give each pipeline a column of its own.');
  end if;
  perform millrace.check_status_columns(p_definition);
  perform millrace.check_status_tables(v_status);
  perform millrace.check_status_chain(p_definition);
  perform millrace.check_layers(p_definition);
  perform millrace.check_status_values(p_definition);
  perform millrace.check_status_names(p_definition);
end
$$;

-- Writes what a definition says of its status column: what stages show, with the values of their
-- layers, which values there are, and which may follow which.
create or replace function millrace.save_status(
  p_pipeline_id int, p_version_id int, p_definition jsonb
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status jsonb := p_definition #> '{entity,status}';
begin
  update millrace.pipelines p
  set status = v_status
  where p.id = p_pipeline_id and p.status is distinct from v_status;
  update millrace.stages t
  set shows = s -> 'shows' || coalesce((
      select jsonb_strip_nulls(jsonb_build_object(
        'layer', l.key, 'enter', l.value -> 'enter', 'leave', l.value -> 'leave'))
      from jsonb_each(v_status -> 'layers') l
      where l.value -> 'stages' ? t.name), '{}')
  from jsonb_array_elements(p_definition -> 'stages') s
  where t.pipeline_id = p_pipeline_id and t.name = s ->> 'name';
  if v_status is null then
    return;
  end if;
  perform millrace.save_values(p_pipeline_id, p_version_id, v_status);
  perform millrace.save_moves(v.id)
  from millrace.versions v
  where v.pipeline_id = p_pipeline_id
    and (v.id = p_version_id or exists (
      select
      from millrace.runs r
      where r.version_id = v.id and r.status = 'running'));
end
$$;

-- Lists the values of a pipeline in the order in which a row of the present version passes them;
-- those beside the chain come last, failures and endings among them.
create or replace function millrace.ordered_values(p_version_id int, p_status jsonb)
returns table (value text, place bigint)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with stage as (
    select vs.position, s.shows,
      s.shows -> 'layer' is distinct from lag(s.shows -> 'layer') over w as opens,
      s.shows -> 'layer' is distinct from lead(s.shows -> 'layer') over w as closes
    from millrace.version_stages vs
    join millrace.stages s on s.id = vs.stage_id
    where vs.version_id = p_version_id
    window w as (order by vs.position)
  ), shown as (
    select s.position, v.place, v.value
    from stage s
    cross join lateral (
      select 1 as place, case when s.opens then s.shows ->> 'enter' end as value
      union all
      select 1 + l.place, l.value
      from unnest(millrace.live_values(s.shows)) with ordinality l(value, place)
      union all
      select 100, a.key
      from jsonb_each(s.shows -> 'answers') a
      where a.key not in (select e.value from jsonb_each_text(p_status -> 'ends') e)
      union all
      select 101, s.shows ->> 'completed'
      union all
      select 102, case when s.closes then s.shows ->> 'leave' end) v
    where v.value is not null
  ), listed as (
    select v as value
    from jsonb_each(p_status -> 'values') c
    cross join lateral jsonb_object_keys(c.value) v
  ), numbered as (
    select l.value, min(s.position * 1000 + s.place) as place
    from listed l
    left join shown s on s.value = l.value
    group by l.value
  )
  select n.value, row_number() over (order by n.place, length(n.value), n.value)
  from numbered n
$$;

-- Writes the values of a pipeline, and the user's own lookup table where there is one; values that
-- the definition lists no more stay, since the history names them.
create or replace function millrace.save_values(
  p_pipeline_id int, p_version_id int, p_status jsonb
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.status_values v
  set retired = true
  where v.pipeline_id = p_pipeline_id;
  insert into millrace.status_values as t
    (pipeline_id, value, name, description, category, is_terminal, sort_order, retired)
  select p_pipeline_id, v.key,
    case when jsonb_array_length(v.value) > 1 then v.value ->> 0 else v.key end,
    v.value ->> -1, c.key,
    v.key = p_status ->> 'failed'
      or v.key in (select e.value from jsonb_each_text(p_status -> 'ends') e)
      or v.key in (
        select f.value
        from millrace.stages s
        cross join lateral jsonb_each_text(s.shows -> 'failed') f
        where s.pipeline_id = p_pipeline_id),
    o.place, false
  from jsonb_each(p_status -> 'values') c
  cross join lateral jsonb_each(c.value) v
  join millrace.ordered_values(p_version_id, p_status) o on o.value = v.key
  on conflict on constraint status_values_pkey do update
  set (name, description, category, is_terminal, sort_order, retired) = (excluded.name,
    excluded.description, excluded.category, excluded.is_terminal, excluded.sort_order, false);
  if p_status ? 'lookup' then
    -- A name may be unique: one that another value has from now on makes way.
    execute format($q$
      update %1$s t
      set name = format('%%s (%%s)', t.name, t.code)
      from millrace.status_values v
      where v.pipeline_id = $1
        and not v.retired
        and v.name = t.name
        and v.value <> t.code::text$q$, to_regclass(p_status ->> 'lookup'))
    using p_pipeline_id;
    execute format($q$
      insert into %1$s as t (code, name, description, category, is_terminal, sort_order)
      select v.value::%2$s, v.name, v.description, v.category, v.is_terminal, v.sort_order
      from millrace.status_values v
      where v.pipeline_id = $1 and not v.retired
      order by v.sort_order
      on conflict (code) do update
      set (name, description, category, is_terminal, sort_order) = (excluded.name,
        excluded.description, excluded.category, excluded.is_terminal, excluded.sort_order)
      where (t.name, t.description, t.category, t.is_terminal, t.sort_order)
        is distinct from (excluded.name, excluded.description, excluded.category,
          excluded.is_terminal, excluded.sort_order)$q$,
      to_regclass(p_status ->> 'lookup'), (
        select format_type(a.atttypid, a.atttypmod)
        from pg_attribute a
        where a.attrelid = to_regclass(p_status ->> 'lookup') and a.attname = 'code'))
    using p_pipeline_id;
  end if;
end
$$;

-- The projection `status`: what must always hold of its column and its history

-- Finds rows whose status is not their run's state, among those that show one of these values
-- (null: all). A claim is not shown while somebody holds the row, and a retry that fell due is
-- shown by the next sweep; a question's steps are a person's.
create or replace function millrace.rows_shown_wrong(
  p_pipeline millrace.pipelines, p_values text[]
) returns table (id text, shown text, value text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query execute format($q$
    select s.id, e.%3$I::text, s.value
    from millrace.status_states($1, array(
      select o.%2$I::text from %1$s o where $2 is null or o.%3$I::text = any ($2))) s
    join %1$s e on e.%2$I = s.id::%4$s
    left join millrace.stages t on t.id = s.stage_id
    where e.%3$I::text is distinct from s.value
      and not (s.phase in ('queued', 'started', 'asked')
        and coalesce(e.%3$I::text = any (millrace.live_values(t.shows)), false)
        and (s.phase <> 'queued' or e.%3$I::text = t.shows ->> 'backoff'))$q$,
    p_pipeline.entity_table, p_pipeline.entity_key, p_pipeline.status ->> 'column',
    millrace.key_type(p_pipeline))
  using p_pipeline.id, p_values;
end
$$;

-- Finds rows that do not show where their run stands, and histories that say something else.
create or replace function millrace.status_faults()
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_pipeline millrace.pipelines;
begin
  for v_pipeline in
    select p.*
    from millrace.pipelines p
    join pg_class c on c.oid = p.entity_table
    where p.projection = 'status'
    order by p.id
  loop
    return query
      select 'a row shows where its run stands', (
          select max(o.id)
          from millrace.runs o
          where o.pipeline_id = v_pipeline.id and o.entity_id = w.id),
        null::bigint, format('row %s of %s shows %s, but its run is at %s',
          w.id, v_pipeline.entity_table, coalesce(w.shown, 'nothing'), w.value)
      from millrace.rows_shown_wrong(v_pipeline, null) w;
    if v_pipeline.status ? 'history' then
      return query select f.* from millrace.history_faults(v_pipeline) f;
    end if;
  end loop;
end
$$;

-- Finds histories that are no chain of legal moves, by any version, to the value that the row has.
create or replace function millrace.history_faults(p_pipeline millrace.pipelines)
returns table (rule text, run_id bigint, attempt_id bigint, detail text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query execute format($q$
    with step as (
      select h.%3$I as key, h.id, h.from_status::text as was, h.to_status::text as now,
        lag(h.to_status::text) over w as before, lag(h.id) over w is null as first,
        lead(h.id) over w is null as last
      from %2$s h
      window w as (partition by h.%3$I order by h.id)
    ), pair as materialized (
      select distinct s.was, s.now
      from step s
    ), illegal as materialized (
      select p.was, p.now
      from pair p
      where not exists (
          select
          from millrace.version_moves m
          join millrace.versions v on v.id = m.version_id
          where v.pipeline_id = $1
            and m.from_value is not distinct from p.was
            and m.to_value = p.now)
        and not exists (
          select
          from millrace.status_values o
          where o.pipeline_id = $1 and o.retired and o.value in (p.was, p.now))
    )
    select 'a history is a chain of legal moves', null::bigint, null::bigint,
      format('row %%s of %%s went from %%s to %%s, but %%s', s.key, %1$L,
        coalesce(s.was, 'nothing'), s.now,
        case when s.was is distinct from s.before and not s.first
          then 'was at ' || coalesce(s.before, 'nothing') else 'no such move is legal' end)
    from step s
    left join illegal i on i.was is not distinct from s.was and i.now = s.now
    where not s.first and s.was is distinct from s.before
      or i.now is not null and not (s.first and s.was is null)
    union all
    select 'a history ends at the value of its row', null, null,
      format('row %%s of %%s shows %%s, but its history ends at %%s', e.%4$I, %1$L,
        coalesce(e.%5$I::text, 'nothing'), s.now)
    from step s
    join %1$s e on e.%4$I = s.key
    where s.last and e.%5$I::text is distinct from s.now$q$,
    p_pipeline.entity_table, to_regclass(p_pipeline.status #>> '{history,table}'),
    p_pipeline.status #>> '{history,key}', p_pipeline.entity_key, p_pipeline.status ->> 'column')
  using p_pipeline.id;
end
$$;

-- The projection `status`: values that people write are judged, and acted on
--
-- A statement's new values are judged in sets, by the rows of millrace.version_moves: of the
-- version that a row's live run has, else of the current one.

-- Says of entities, with the values that were written, where their latest runs stand: the version
-- to judge by, the stage that is live, and the last stage that may be started over, null where
-- there was no run.
create or replace function millrace.standings(
  p_pipeline_id int, p_ids text[], p_was text[] default null, p_now text[] default null
) returns table (
  id text, was text, now text, place bigint, run_id bigint, status millrace.run_status,
  version_id int, live_id int, until int
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    select i.id, i.was, i.now, i.place, r.id, r.status,
      case when r.status = 'running' then r.version_id else p.current_version_id end,
      case when r.status = 'running' then f.stage_id end,
      case
        when r.status = 'completed' and r.ended_as is null then 1000000
        else (
          select c.position
          from millrace.version_stages c
          where c.version_id
              = case when r.status = 'running' then r.version_id else p.current_version_id end
            and c.stage_id = f.stage_id)
      end
    from millrace.pipelines p
    cross join unnest(p_ids, p_was, p_now) with ordinality i(id, was, now, place)
    left join lateral (
      select o.*
      from millrace.runs o
      where o.entity_id = i.id
        and o.pipeline_id = p.id
      order by o.id desc
      limit 1) r on true
    left join lateral (
      select a.stage_id
      from millrace.attempts a
      join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
      where a.run_id = r.id
        and not a.superseded
        and case r.status
          when 'running' then a.state in ('queued', 'started', 'waiting')
          when 'completed' then a.state = 'completed'
          else a.state in ('failed', 'cancelled')
        end
      order by vs.position desc, a.number desc
      limit 1) f on true
    where p.id = p_pipeline_id;
end
$$;

-- Lists what people may write at a value, by where the run of its row stands (see standings());
-- fresh: of which no run is known.
create or replace function millrace.open_moves(
  p_version_id int, p_live_id int, p_until int, p_fresh boolean, p_was text
) returns table (to_value text, means text, stage_id int, declared boolean, place int)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    select v.to_value, v.means, v.stage_id, v.declared, vs.position
    from millrace.version_moves v
    left join millrace.version_stages vs
      on vs.version_id = v.version_id and vs.stage_id = v.stage_id
    where v.version_id = p_version_id
      and v.by = 'person'
      and not v.retired
      and v.from_value is not distinct from p_was
      and (v.at_stage_id is null or v.at_stage_id = p_live_id)
      and (v.means not in ('start', 'enter') or v.declared or p_fresh or vs.position <= p_until);
end
$$;

-- Says whether the questions of entities lead back to a value when they are taken back.
create or replace function millrace.leads_back(p_pipeline_id int, p_ids text[], p_value text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select bool_and(r.began_from = p_value)
    from millrace.runs r
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_ids)
      and r.status = 'running');
end
$$;

-- Judges values that people wrote, in groups that are alike: what each group's write means, null
-- where it is not allowed.
create or replace function millrace.judged_values(
  p_pipeline_id int, p_ids text[], p_was text[], p_now text[]
) returns table (
  version_id int, live_id int, until int, fresh boolean, was text, now text, ids text[],
  means text, stage_id int
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    with standing as materialized (
      select s.version_id, s.live_id, s.until, s.run_id is null as fresh, s.was, s.now,
        array_agg(s.id order by s.place) as ids
      from millrace.standings(p_pipeline_id, p_ids, p_was, p_now) s
      group by 1, 2, 3, 4, 5, 6
    )
    select s.version_id, s.live_id, s.until, s.fresh, s.was, s.now, s.ids, m.means, m.stage_id
    from standing s
    left join lateral (
      select o.means, o.stage_id
      from millrace.open_moves(s.version_id, s.live_id, s.until, s.fresh, s.was) o
      where o.to_value = s.now
        and (o.means <> 'discard' or millrace.leads_back(p_pipeline_id, s.ids, s.now))
      order by array_position(array['answer', 'step', 'discard', 'start', 'enter'], o.means),
        o.declared desc, o.place
      limit 1) m on true;
end
$$;

-- Acts on values that people wrote: judges them all, then does what each means. The caller, an
-- intake trigger, holds the entities.
create or replace function millrace.on_values_written(
  p_pipeline_id int, p_ids text[], p_was text[], p_now text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_nestloop = on
set enable_seqscan = off
set enable_indexonlyscan = off
set enable_mergejoin = off
set enable_hashjoin = off
set enable_memoize = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_group record;
begin
  for v_group in
    select j.*
    from millrace.judged_values(p_pipeline_id, p_ids, p_was, p_now) j
    order by j.means is not null, j.ids[1]
  loop
    case v_group.means
      when 'step' then null;
      when 'answer' then
        perform millrace.answer_by_value(
          p_pipeline_id, v_group.stage_id, v_group.now, v_group.ids);
      when 'discard' then
        perform millrace.take_question_back(p_pipeline_id, v_group.stage_id, v_group.ids);
      when 'start', 'enter' then
        if v_group.fresh then
          perform millrace.begin_at_value(p_pipeline_id, v_group.stage_id, v_group.means,
            v_group.was, v_group.now, v_group.ids);
        else
          perform millrace.start_at_value(
            p_pipeline_id, v_group.stage_id, v_group.was, v_group.now, v_group.ids);
        end if;
      else
        perform millrace.refuse_move(p_pipeline_id, v_group.version_id, v_group.live_id,
          v_group.until, v_group.fresh, v_group.was, v_group.now, v_group.ids);
    end case;
  end loop;
end
$$;

-- The projection `status`: which value may follow which
--
-- Moves are rows, made from the definition when it is saved. Those of the engine are what
-- status_path() says of every state that a stage can be in; those of people follow from the stages
-- (a ready value starts its stage, or starts it over) and from what the definition lists beside.
-- Intake, the view and check_invariants() read the same rows.

-- Lists the stages of a version with what moves are made of. demanded: it is on demand, or comes
-- after one that is. may_skip: a run may go on without it.
create or replace function millrace.shown_stages(p_version_id int)
returns table (
  id int, name text, place int, shows jsonb, manual boolean, on_demand boolean,
  demanded boolean, may_skip boolean, may_fail boolean, ready text, ends text[]
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select s.id, s.name, vs.position, s.shows, s.kind = 'manual', vs.on_demand,
    vs.on_demand or exists (
      select
      from millrace.version_stages d
      where d.version_id = vs.version_id and d.on_demand and vs.stage_id = any (d.dependents)),
    vs.when_path is not null or vs.given_path is not null or vs.on_demand
      or s.on_failure = 'continue',
    s.on_failure = 'continue',
    coalesce(s.shows ->> 'queued', s.shows ->> 'asked'),
    array(select e ->> 'name' from jsonb_array_elements(vs.ends) e)
  from millrace.version_stages vs
  join millrace.stages s on s.id = vs.stage_id
  where vs.version_id = p_version_id
$$;

-- Lists what a stage that is done may show; null among it where it may show nothing.
create or replace function millrace.done_values(p_shows jsonb, p_manual boolean) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_manual then array(select jsonb_object_keys(p_shows -> 'answers'))
      || (p_shows ->> 'completed')
    else array[p_shows ->> 'completed']
  end
$$;

-- Says what a run shows in which no stage was done, and which stages may have been the last that it
-- was at.
create or replace function millrace.nothing_done(p_version_id int)
returns table (value text, before int[])
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with stage as materialized (
    select * from millrace.shown_stages(p_version_id)
  ), last as (
    select s.*
    from stage s
    order by s.demanded, s.place desc
    limit 1
  )
  select coalesce(l.shows ->> 'completed', l.ready), array(
    select s.id
    from stage s
    where s.place <= l.place
      and not exists (
        select
        from stage b
        where b.place > s.place and b.place <= l.place and not b.may_skip))
  from last l
$$;

-- Lists the moves within one stage: it is claimed, tried again, done, or fails.
create or replace function millrace.moves_within(p_version_id int)
returns table (from_value text, to_value text, means text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with target as (
    select s.id, s.shows, w as was, t.value, t.phase
    from millrace.shown_stages(p_version_id) s
    join millrace.versions v on v.id = p_version_id
    join millrace.pipelines p on p.id = v.pipeline_id
    cross join lateral unnest(millrace.live_values(s.shows)) w
    cross join lateral (
      select s.ready, 'queued'
      where not s.manual
      union all
      select s.shows ->> 'backoff', 'backoff'
      union all
      select s.shows ->> 'started', 'started'
      union all
      select d, 'completed'
      from unnest(millrace.done_values(s.shows, s.manual)) d
      union all
      select f.value, 'failed'
      from jsonb_each_text(s.shows -> 'failed') f
      union all
      select p.status ->> 'failed', 'failed') t(value, phase)
    where t.value is not null
  )
  select y.was, y.value, case t.phase when 'failed' then 'fail' else 'work' end
  from target t
  cross join lateral (
    select lag(s.value, 1, t.was) over (order by s.place) as was, s.value
    from unnest((millrace.status_path(t.was, t.value, t.phase, t.id, null, null)).steps)
      with ordinality s(value, place)) y
$$;

-- Lists the moves from one stage to another: those in between may be left out, and the run may end.
create or replace function millrace.moves_between(p_version_id int)
returns table (from_value text, to_value text, means text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with stage as materialized (
    select * from millrace.shown_stages(p_version_id)
  ), target as (
    select i.id as done_id, w as was, case when i.manual then d end as via, j.ready as value,
      case when j.manual then 'asked' else 'queued' end as phase, j.id
    from stage i
    join stage j on j.place > i.place
      and not exists (
        select
        from stage b
        where b.place > i.place and b.place < j.place and not b.may_skip)
    cross join lateral unnest(millrace.live_values(i.shows)) w
    cross join lateral unnest(millrace.done_values(i.shows, i.manual)) d
    union all
    select i.id, w, case when i.manual then d end, p.status -> 'ends' ->> e, 'ended', null
    from stage i
    join millrace.versions v on v.id = p_version_id
    join millrace.pipelines p on p.id = v.pipeline_id
    cross join lateral unnest(i.ends) e
    cross join lateral unnest(millrace.live_values(i.shows)) w
    cross join lateral unnest(millrace.done_values(i.shows, i.manual)) d
    union all
    -- A row that waits at the gate of a layer, and a stage that the run goes on without.
    select null, w, null, j.ready, case when j.manual then 'asked' else 'queued' end, j.id
    from stage i
    join stage j on not exists (
      select
      from stage b
      where b.place > i.place and b.place < j.place and not b.may_skip)
    cross join lateral (
      select i.shows ->> 'enter'
      where j.place >= i.place and (j.id = i.id or i.may_skip)
      union all
      select l
      from unnest(millrace.live_values(i.shows)) l
      where j.place > i.place and i.may_fail) w(w)
    where w is not null
    union all
    select null, w, null, d, 'queued', i.id
    from stage i
    join stage k on k.place < i.place
    cross join lateral unnest(millrace.live_values(i.shows)) w
    cross join lateral unnest(millrace.done_values(k.shows, k.manual)) d
    where i.may_fail
  )
  select y.was, y.value, case t.phase when 'ended' then 'end' else 'work' end
  from target t
  cross join lateral (
    select lag(s.value, 1, t.was) over (order by s.place) as was, s.value
    from unnest((millrace.status_path(t.was, t.value, t.phase, t.id, t.done_id, t.via)).steps)
      with ordinality s(value, place)) y
$$;

-- Lists the moves to what a run shows in which nothing was done, once the last stage that it was at
-- has failed and it goes on without.
create or replace function millrace.moves_to_nothing(p_version_id int)
returns table (from_value text, to_value text, means text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select w, n.value, 'work'
  from millrace.nothing_done(p_version_id) n
  join millrace.shown_stages(p_version_id) s on s.id = any (n.before)
  cross join lateral unnest(millrace.live_values(s.shows)) w
  where s.may_fail
    and w <> n.value
$$;

-- Lists what the engine writes after a call of a person's: any stage may be started, and what is
-- under way may be cancelled, or left out.
create or replace function millrace.moves_of_calls(p_version_id int)
returns table (from_value text, to_value text, means text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with stage as materialized (
    select * from millrace.shown_stages(p_version_id)
  ), known as (
    select v.value
    from millrace.status_values v
    join millrace.versions o on o.pipeline_id = v.pipeline_id
    where o.id = p_version_id
    union all
    select null
  )
  select k.value, s.ready, 'start'
  from known k
  cross join stage s
  where k.value is distinct from s.ready
  union
  select null, s.shows ->> 'enter', 'start'
  from stage s
  where s.shows ? 'enter'
  union
  select w, p.status ->> 'failed', 'cancel'
  from stage s
  join millrace.versions v on v.id = p_version_id
  join millrace.pipelines p on p.id = v.pipeline_id
  cross join lateral unnest(millrace.live_values(s.shows)) w
  union
  select w, n.value, 'skip'
  from stage s
  join millrace.nothing_done(p_version_id) n on s.id = any (n.before)
  cross join lateral unnest(millrace.live_values(s.shows)) w
  where w <> n.value
  union
  select k.value, d, 'skip'
  from known k
  cross join stage s
  cross join lateral unnest(millrace.done_values(s.shows, s.manual)) d
  where k.value <> d
    and not exists (
      select
      from stage b
      where b.place <= s.place and k.value = any (millrace.live_values(b.shows)))
$$;

-- Lists the values at which a run may rest, with the last stage that may be started from there;
-- what follows a stage that was done begins by a condition, or when a person asks for it.
create or replace function millrace.resting_values(p_version_id int)
returns table (value text, live_id int, until int, done boolean)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with stage as materialized (
    select * from millrace.shown_stages(p_version_id)
  )
  select w, s.id, s.place, false
  from stage s
  cross join lateral unnest(millrace.live_values(s.shows)) w
  union
  select d, null, s.place, true
  from stage s
  cross join lateral unnest(millrace.done_values(s.shows, s.manual)) d
  where d is not null
    and not exists (select
      from stage l
      where l.place > s.place and not l.may_skip and not l.demanded)
  union
  select f.value, null, s.place, false
  from stage s
  join millrace.versions v on v.id = p_version_id
  join millrace.pipelines p on p.id = v.pipeline_id
  cross join lateral (
    select e.value from jsonb_each_text(s.shows -> 'failed') e
    union
    select p.status ->> 'failed'
    union
    select p.status -> 'ends' ->> e from unnest(s.ends) e) f
$$;

-- Lists what people may write while a question is open: they go from step to step, answer it, and
-- take it back.
create or replace function millrace.moves_of_questions(p_version_id int)
returns table (
  from_value text, to_value text, means text, at_stage_id int, stage_id int, declared boolean
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with stage as materialized (
    select * from millrace.shown_stages(p_version_id)
  )
  select m ->> 0, m ->> 1, 'step', s.id, s.id, false
  from stage s
  cross join lateral jsonb_array_elements(s.shows -> 'step_moves') m
  union
  select v #>> '{}', a.key, 'answer', s.id, s.id, false
  from stage s
  cross join lateral jsonb_each(s.shows -> 'answers') a
  cross join lateral jsonb_array_elements(a.value -> 'from') v
  union
  select w, r.value, 'discard', s.id, s.id, false
  from stage s
  cross join lateral unnest(millrace.live_values(s.shows)) w
  join millrace.resting_values(p_version_id) r on r.done
  where s.shows -> 'discard' = 'true'
    and r.value <> w
    and (s.shows -> 'answers' ? r.value) is not true
$$;

-- Lists what people may write: they begin rows, start stages over, and see to questions.
create or replace function millrace.moves_of_people(p_version_id int)
returns table (
  from_value text, to_value text, means text, at_stage_id int, stage_id int, declared boolean
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with stage as materialized (
    select * from millrace.shown_stages(p_version_id)
  ), status as (
    select p.status as said, array(
      select c #>> '{}' from jsonb_array_elements(p.status -> 'closed') c) as closed
    from millrace.versions v
    join millrace.pipelines p on p.id = v.pipeline_id
    where v.id = p_version_id
  ), gate as (
    select distinct on (s.shows ->> 'enter') s.*
    from stage s
    where s.shows ? 'enter'
    order by s.shows ->> 'enter', s.place
  )
  select null, s.ready, 'start', null::int, s.id, false
  from stage s
  where not s.demanded
  union
  select null, g.shows ->> 'enter', 'enter', null, g.id, false
  from gate g
  union
  select g.shows ->> 'enter', s.ready, 'start', null, s.id, false
  from gate g
  join stage s on not exists (
    select
    from stage b
    where b.place >= g.place and b.place < s.place and not b.may_skip)
  where not s.demanded
  union
  select r.value, s.ready, 'start', r.live_id, s.id, false
  from millrace.resting_values(p_version_id) r
  join stage s on s.place <= r.until or r.done and s.on_demand
  cross join status t
  where r.value <> s.ready
    and (r.value <> all (t.closed) or r.done and s.on_demand)
  union
  select * from millrace.moves_of_questions(p_version_id)
  union
  select m ->> 0, m ->> 1, case when g.id is null then 'start' else 'enter' end, null,
    coalesce(g.id, s.id), true
  from status t
  cross join lateral jsonb_array_elements(t.said -> 'moves') m
  left join gate g on g.shows ->> 'enter' = m ->> 1
  left join stage s on s.ready = m ->> 1
  where g.id is not null or s.id is not null
  union
  select null, e #>> '{}', 'step', null, null, true
  from status t
  cross join lateral jsonb_array_elements(t.said -> 'entries') e
$$;

-- Writes the moves of a version.
create or replace function millrace.save_moves(p_version_id int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update millrace.version_moves m
  set retired = true, drawn = false
  where m.version_id = p_version_id;
  insert into millrace.version_moves
    (version_id, from_value, to_value, by, means, at_stage_id, stage_id, declared)
  select p_version_id, m.*
  from (
    select e.from_value, e.to_value, 'engine', e.means, null::int, null::int, false
    from millrace.moves_within(p_version_id) e
    union
    select e.from_value, e.to_value, 'engine', e.means, null, null, false
    from millrace.moves_between(p_version_id) e
    union
    select e.from_value, e.to_value, 'engine', e.means, null, null, false
    from millrace.moves_to_nothing(p_version_id) e
    union
    select e.from_value, e.to_value, 'person', e.means, e.at_stage_id, e.stage_id,
      bool_or(e.declared)
    from millrace.moves_of_people(p_version_id) e
    group by 1, 2, 4, 5, 6) m
  on conflict (version_id, from_value, to_value, by, means, at_stage_id, stage_id) do update
  set declared = excluded.declared, retired = false;
  insert into millrace.version_moves (version_id, from_value, to_value, by, means)
  select p_version_id, c.from_value, c.to_value, 'call', c.means
  from millrace.moves_of_calls(p_version_id) c
  where not exists (
    select
    from millrace.version_moves m
    where m.version_id = p_version_id
      and m.by = 'engine'
      and not m.retired
      and m.from_value is not distinct from c.from_value
      and m.to_value = c.to_value)
  on conflict (version_id, from_value, to_value, by, means, at_stage_id, stage_id) do update
  set retired = false;
  perform millrace.mark_drawn(p_version_id);
end
$$;

-- Marks the moves of a version that the definition's diagram draws, each once: where a person and
-- the engine may make it, the person's. A chain may begin at nothing.
create or replace function millrace.mark_drawn(p_version_id int) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  with drawn as (
    select distinct on (m.from_value, m.to_value) m.ctid as place
    from millrace.versions v
    join millrace.pipelines p on p.id = v.pipeline_id
    cross join lateral jsonb_array_elements(p.status -> 'drawn') c
    cross join lateral jsonb_array_elements_text(c) with ordinality d(value, place)
    join millrace.version_moves m
      on m.version_id = v.id
      and not m.retired
      and m.from_value is not distinct from d.value
      and m.to_value = c ->> d.place::int
    where v.id = p_version_id
    order by m.from_value, m.to_value, m.by <> 'person', m.by <> 'engine', m.means desc
  )
  update millrace.version_moves m
  set drawn = true
  from drawn d
  where m.ctid = d.place
$$;

-- The projection `status`: what attach() writes to show runs in one column
--
-- For a pipeline `links` it makes links__apply_outcomes, links__started and links__queued, as for
-- the projection columns. Each is one statement over its batch: rows that show what they should are
-- left alone, a row is written once however many values it passes, and the values go into the
-- history in the same statement. Without a history no path is asked for.

-- Writes the list of what beside the status is set, and the condition that some of it differs.
-- Figures are attempts, retry_at and error; a claim changes none but retry_at.
create or replace function millrace.status_figures(
  p_status jsonb, p_claim boolean, out assigned text, out differs text
)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(string_agg(format(', %I = t.%I', f.column_name, f.name), '' order by f.place), ''),
    coalesce(string_agg(format(' or e.%I is distinct from t.%I', f.column_name, f.name), ''
      order by f.place), '')
  from (
    select n.name, n.place, p_status ->> n.name as column_name
    from unnest(array['attempts', 'retry_at', 'error']) with ordinality n(name, place)) f
  where f.column_name is not null
    and (not p_claim or f.name = 'retry_at')
$$;

-- Writes the statement that shows targets, rows of (id, value, phase, stage_id, done_id, via,
-- attempts, retry_at, error), on their entities. p_claim: it skips rows that somebody holds; the
-- caller of the others holds them.
create or replace function millrace.show_statement(
  p_pipeline millrace.pipelines, p_key_type text, p_targets text, p_claim boolean
) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_figures record := millrace.status_figures(p_pipeline.status, p_claim);
  v_values text[] := array[
    p_pipeline.entity_table::text, quote_ident(p_pipeline.entity_key), p_key_type,
    quote_ident(p_pipeline.status ->> 'column'), millrace.status_type(p_pipeline), p_targets,
    v_figures.assigned, v_figures.differs,
    case when p_claim then 'order by e.' || quote_ident(p_pipeline.entity_key)
      || ' for no key update of e skip locked' else '' end];
begin
  if p_pipeline.status ? 'history' then
    return millrace.show_with_history(p_pipeline.status -> 'history', v_values);
  elsif p_claim then
    return format($f$
    with seen as (
      select e.ctid as place, t.*
      from (%6$s) t
      join %1$s e on e.%2$s = t.id::%3$s
      where e.%4$s is distinct from t.value::%5$s%8$s
      %9$s)
    update %1$s e set %4$s = t.value::%5$s%7$s
    from seen t
    where e.ctid = t.place;$f$, variadic v_values);
  end if;
  return format($f$
    update %1$s e set %4$s = t.value::%5$s%7$s
    from (%6$s) t
    where e.%2$s = t.id::%3$s
      and (e.%4$s is distinct from t.value::%5$s%8$s);$f$, variadic v_values);
end
$write$;

-- Writes such a statement with the history: it reads what the rows really show, asks for each kind
-- of way once, and writes the values on the way with the rows. p_values is what show_statement()
-- has to say, in its order.
create or replace function millrace.show_with_history(p_history jsonb, p_values text[])
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $write$
begin
  return format($f$
    with seen as materialized (
      select e.ctid as place, e.%4$s::text as was, e.%10$I as began, t.*
      from (%6$s) t
      join %1$s e on e.%2$s = t.id::%3$s
      where e.%4$s is distinct from t.value::%5$s%8$s
      %9$s
    ), path as materialized (
      select k.*, p.steps, p.actors
      from (
        select distinct s.was, s.value, s.phase, s.stage_id, s.done_id, s.via
        from seen s) k
      cross join lateral millrace.status_path(
        k.was, k.value, k.phase, k.stage_id, k.done_id, k.via) p
    ), written as (
      update %1$s e set %4$s = t.value::%5$s,
        %10$I = case when t.was is distinct from t.value then v_now else t.began end%7$s
      from seen t
      where e.ctid = t.place
      returning e.%2$s as key, t.was, t.began, t.value, t.phase, t.stage_id, t.done_id, t.via)
    insert into %11$s (%12$I, from_status, to_status, changed_at, changed_by, duration_ms)
    select w.key,
      case when u.place = 1 then w.was else p.steps[u.place - 1] end::%5$s,
      u.value::%5$s, v_now, coalesce(u.actor, millrace.actor(%13$L)),
      case
        when u.place > 1 then 0
        when w.was is not null
          then greatest(0, extract(epoch from v_now - w.began) * 1000)::bigint
      end
    from written w
    join path p on p.was is not distinct from w.was
      and p.value = w.value
      and p.phase = w.phase
      and p.stage_id is not distinct from w.stage_id
      and p.done_id is not distinct from w.done_id
      and p.via is not distinct from w.via
    cross join lateral unnest(p.steps, p.actors) with ordinality u(value, actor, place)
    order by w.key, u.place;$f$, variadic p_values || array[
      p_history ->> 'since', to_regclass(p_history ->> 'table')::text, p_history ->> 'key',
      p_values[1]]);
end
$write$;

-- Names the type of a pipeline's status column.
create or replace function millrace.status_type(p_pipeline millrace.pipelines) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format_type(a.atttypid, a.atttypmod)
  from pg_attribute a
  where a.attrelid = p_pipeline.entity_table and a.attname = p_pipeline.status ->> 'column'
$$;

-- Names the columns of the entity that the projection keeps.
create or replace function millrace.status_columns(p_status jsonb) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array_remove(array[p_status ->> 'column', p_status #>> '{history,since}',
    p_status #>> '{history,changes}', p_status ->> 'attempts', p_status ->> 'retry_at',
    p_status ->> 'error'], null)
$$;

-- Writes the targets of a batch of which every row completed a stage and readied a later one, or
-- its run's last one.
create or replace function millrace.completed_targets(p_stage millrace.stages) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format($f$
        select c.entity_id as id, case c.queued[1] %s else %L end as value,
          case when c.queued <> '{}' then 'queued' else 'completed' end as phase,
          case c.queued[1] %s else %s end as stage_id,
          case when c.queued <> '{}' then %s end as done_id, null::text as via, 0 as attempts,
          null::timestamptz as retry_at, null::text as error
        from unnest(p_changes) c$f$,
    string_agg(format('when %L then %L', s.name, s.shows ->> 'queued'), ' ' order by s.id),
    p_stage.shows ->> 'completed',
    string_agg(format('when %L then %s', s.name, s.id), ' ' order by s.id), p_stage.id, p_stage.id)
  from millrace.stages s
  where s.pipeline_id = p_stage.pipeline_id
    and s.shows is not null
$$;

-- Says whether a stage ends each run that completes it, in every version.
create or replace function millrace.is_last(p_stage millrace.stages) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select not p_stage.has_ends and not exists (
    select
    from millrace.version_stages vs
    join millrace.versions v on v.id = vs.version_id
    where v.pipeline_id = p_stage.pipeline_id
      and vs.stage_id = p_stage.id
      and vs.dependents <> '{}')
$$;

-- Creates the __apply_outcomes function of a pipeline. Nearly every batch completes a stage and
-- readies the next, which needs no look at any run; whatever else it is asked of the tables.
create or replace function millrace.write_status_outcomes(
  p_pipeline millrace.pipelines, p_key_type text, p_stages millrace.stages[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace function millrace.%1$I(p_stage text, p_changes millrace.change[])
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  v_now timestamptz := millrace.now();
  v_ready int;
  v_ids text[];
begin
  -- Null where a run readied no stage or several.
  v_ready := (
    select case when bool_and(c.status = 'completed' and c.queued is not null)
        and min(cardinality(c.queued)) = max(cardinality(c.queued))
      then max(cardinality(c.queued)) end
    from unnest(p_changes) c);
  if v_ready = 1 or v_ready = 0 and p_stage = any (%4$L::text[]) then
    case p_stage%2$s
    else null;
    end case;
  end if;
  v_ids := array(
    select c.entity_id
    from unnest(p_changes) c
    where c.status <> 'skipped'
    order by c.entity_id);
  if cardinality(v_ids) > 0 then%3$s
  end if;
  return true;
end $$$f$,
    p_pipeline.name || '__apply_outcomes',
    coalesce((
      select string_agg(format(E'\n    when %L then%s\n    return true;', s.name,
        millrace.show_statement(p_pipeline, p_key_type, millrace.completed_targets(s), false)), ''
        order by s.id)
      from unnest(p_stages) s
      where s.kind <> 'manual'), E'\n    when '''' then null;'),
    millrace.show_statement(p_pipeline, p_key_type,
      format('select s.* from millrace.status_states(%s, v_ids) s', p_pipeline.id), false),
    array(
      select s.name
      from unnest(p_stages) s
      where s.kind <> 'manual' and millrace.is_last(s)));
end
$write$;

-- Creates the __started function of a pipeline: what a claim shows on rows that nobody holds.
create or replace function millrace.write_status_started(
  p_pipeline millrace.pipelines, p_key_type text, p_stages millrace.stages[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace function millrace.%1$I(p_stage text, p_now timestamptz, p_ids text[])
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  v_now timestamptz := p_now;
begin
  case p_stage%2$s
  else return false;
  end case;
  return true;
end $$$f$,
    p_pipeline.name || '__started',
    coalesce((
      select string_agg(format(E'\n  when %L then%s', s.name,
        millrace.show_statement(p_pipeline, p_key_type, format($t$
        select i as id, %L::text as value, 'started'::text as phase, %s as stage_id,
          null::int as done_id, null::text as via, null::timestamptz as retry_at
        from unnest(p_ids) i$t$, s.shows ->> 'started', s.id), true)), '' order by s.id)
      from unnest(p_stages) s
      where s.kind <> 'manual'), E'\n  when '''' then null;'));
end
$write$;

-- Creates the __queued function of a pipeline: a stage that starts over. What begins under a
-- condition, or with a question, shows itself when it begins.
create or replace function millrace.write_status_queued(
  p_pipeline millrace.pipelines, p_key_type text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace function millrace.%1$I(p_stage text, p_dependents text[], p_ids text[])
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  v_now timestamptz := millrace.now();
  v_value text;
  v_id int;
begin
  select s.id, s.shows ->> 'queued'
  into v_id, v_value
  from millrace.stages s
  join millrace.pipelines p on p.id = s.pipeline_id
  join millrace.version_stages vs on vs.version_id = p.current_version_id and vs.stage_id = s.id
  where s.pipeline_id = %2$s
    and s.name = p_stage
    and vs.unconditional;
  if v_value is null then
    return false;
  end if;%3$s
  return true;
end $$$f$,
    p_pipeline.name || '__queued', p_pipeline.id,
    millrace.show_statement(p_pipeline, p_key_type, $t$
        select i as id, v_value as value, 'queued'::text as phase, v_id as stage_id,
          null::int as done_id, null::text as via, 0 as attempts, null::timestamptz as retry_at,
          null::text as error
        from unnest(p_ids) i$t$, false));
end
$write$;

-- Creates the functions of a pipeline that show its runs in one column.
create or replace function millrace.write_status(p_pipeline millrace.pipelines, p_key_type text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stages millrace.stages[] := array(
    select s
    from millrace.stages s
    where s.pipeline_id = p_pipeline.id and s.shows is not null
    order by s.id);
begin
  perform millrace.write_status_outcomes(p_pipeline, p_key_type, v_stages);
  perform millrace.write_status_started(p_pipeline, p_key_type, v_stages);
  perform millrace.write_status_queued(p_pipeline, p_key_type);
  perform millrace.write_status_since(p_pipeline);
  perform millrace.write_status_intake(p_pipeline, p_key_type);
end
$$;

-- Shows the latest runs of held entities, where the pipeline has one status column.
create or replace function millrace.show_status(p_pipeline_id int, p_entity_ids text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_entity_ids) > 0 and (
      select p.projection = 'status'
      from millrace.pipelines p
      where p.id = p_pipeline_id) then
    perform millrace.write_entities(p_pipeline_id, 'settle', null, array(
      select millrace.change_of(i, 'queued')
      from unnest(p_entity_ids) i), null, null);
  end if;
end
$$;

-- The projection `status`: why a value is refused, and what to do instead

-- Names rows in an error: how many, and the first.
create or replace function millrace.rows_named(p_ids text[]) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when cardinality(p_ids) = 1 then format('1 row (%s)', p_ids[1])
    else format('%s rows (%s, …)', cardinality(p_ids), p_ids[1])
  end
$$;

-- Says of a value that a person writes while a question is open from which ones it may be written.
create or replace function millrace.remedy_at_question(p_shows jsonb, p_now text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((
      select format('Write one of %s first: %s answers from there.',
        string_agg(f #>> '{}', ', '), p_now)
      from jsonb_array_elements(p_shows #> array['answers', p_now, 'from']) f
      having count(*) > 0), (
      select format('Write one of %s first: %s is written from there.',
        string_agg(m ->> 0, ', '), p_now)
      from jsonb_array_elements(p_shows -> 'step_moves') m
      where m ->> 1 = p_now
      having count(*) > 0))
$$;

-- Says what to do instead of writing a value, by what the value means.
create or replace function millrace.remedy_of_move(
  p_version_id int, p_live_id int, p_was text, p_now text
) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with stage as materialized (
    select * from millrace.shown_stages(p_version_id)
  )
  select coalesce(
    millrace.remedy_at_question(l.shows, p_now),
    (
      select case
          when s.ready = p_now and s.place <= l.place
            then format('At %s no stage starts over.', p_was)
          when s.ready = p_now then format(
            'Stage %s has no result yet, which %s needs; to go on without it: '
            'select millrace.skip(run, %L).', l.name, s.name, l.name)
          when s.shows ->> 'started' = p_now
            then format('The engine writes %s when a worker takes stage %s.', p_now, s.name)
          when s.shows ->> 'completed' = p_now
            then format('The engine writes %s when stage %s is done.', p_now, s.name)
          else format('%s follows by itself.', p_now)
        end
      from stage s
      where p_now = s.ready
        and not s.demanded
        and p_now not in (
          select jsonb_object_keys(q.shows -> 'answers') from stage q where q.manual)
        and l.id is not null
        or s.ready <> p_now and p_now in (s.shows ->> 'started', s.shows ->> 'completed',
          s.shows ->> 'leave', s.shows ->> 'enter')
      order by p_now = s.ready desc, s.place
      limit 1),
    case when l.id is not null then 'To stop the run: select millrace.cancel(run).' end)
  from (select 1) one
  left join stage l on l.id = p_live_id
$$;

-- Says of an answer that is written too late how its question was answered, in the latest run of an
-- entity; null where it was not.
create or replace function millrace.answered_before(
  p_pipeline_id int, p_entity_id text, p_now text
) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format('Stage %s was answered with %s%s at %s.', s.name,
    millrace.done_value(s.shows, a.output), ' by ' || (a.output ->> 'decided_by'),
    to_char(a.finished_at at time zone 'utc', 'YYYY-MM-DD HH24:MI "UTC"'))
  from (
    select r.id
    from millrace.runs r
    where r.pipeline_id = p_pipeline_id and r.entity_id = p_entity_id
    order by r.id desc
    limit 1) r
  join millrace.attempts a
    on a.run_id = r.id and a.state = 'completed' and not a.superseded
  join millrace.stages s
    on s.id = a.stage_id and s.kind = 'manual' and s.shows -> 'answers' ? p_now
  order by a.id desc
  limit 1
$$;

-- Says what to wait for at a value from which people may write none.
create or replace function millrace.remedy_of_waiting(
  p_version_id int, p_live_id int, p_was text
) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select concat_ws(' ', format('At %s nobody writes: the engine goes on from there.', p_was), (
    select format('When it is %s, people may write: %s.', s.shows ->> 'completed',
      string_agg(distinct m.to_value, ', '))
    from millrace.stages s
    join millrace.open_moves(p_version_id, null, 1000000, false, s.shows ->> 'completed') m on true
    where s.id = p_live_id
    group by s.id
    having count(*) > 0))
$$;

-- Raises MR005 about a value that may not follow the one which rows have.
create or replace function millrace.refuse_move(
  p_pipeline_id int, p_version_id int, p_live_id int, p_until int, p_fresh boolean, p_was text,
  p_now text, p_ids text[]
) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows text := millrace.rows_named(p_ids);
  v_column text;
  v_pipeline text;
  v_known text := (
    select string_agg(v.value, ', ' order by v.sort_order)
    from millrace.status_values v
    where v.pipeline_id = p_pipeline_id and not v.retired);
  v_next text := (
    select string_agg(distinct m.to_value, ', ')
    from millrace.open_moves(p_version_id, p_live_id, p_until, p_fresh, p_was) m
    where m.means <> 'discard'
      or millrace.leads_back(p_pipeline_id, p_ids, m.to_value));
begin
  select p.status ->> 'column', p.name
  into v_column, v_pipeline
  from millrace.pipelines p
  where p.id = p_pipeline_id;
  if p_now is null then
    raise exception '% of % was set to null, but a row cannot leave pipeline %',
      v_column, v_rows, v_pipeline
      using errcode = 'MR005', hint = 'To stop a run: select millrace.cancel(run). '
        'Delete the row to end it for good.';
  elsif not exists (
      select
      from millrace.status_values v
      where v.pipeline_id = p_pipeline_id and v.value = p_now and not v.retired) then
    raise exception '% of % was set to %, which is no value of pipeline %',
      v_column, v_rows, p_now, v_pipeline
      using errcode = 'MR005', hint = format('Known: %s.', v_known);
  end if;
  raise exception '% of % cannot go from % to %',
    v_column, v_rows, coalesce(p_was, 'nothing'), p_now
    using errcode = 'MR005', hint = concat_ws(' ',
      case
        when p_was is null then format('A new row begins at one of %s; leave %s out, and the '
          'pipeline begins it when it is started.', v_next, v_column)
        else coalesce(millrace.answered_before(p_pipeline_id, p_ids[1], p_now),
          millrace.remedy_of_move(p_version_id, p_live_id, p_was, p_now))
      end,
      case
        when p_was is null then null
        when v_next is null then millrace.remedy_of_waiting(p_version_id, p_live_id, p_was)
        else format('From %s people may write: %s.', p_was, v_next)
      end);
end
$$;

-- The projection `status`: values that a definition changes
--
-- What a stage shows is a setting of today, so define() also changes the rows: where a value became
-- another at all its places, by that alone; where at some, or where a failure has a value of its
-- own now, by where the run stands. define() holds the table so that nobody holds a row of it.

-- Lists what a definition shows, and where.
create or replace function millrace.shown_places(p_status jsonb, p_stages jsonb)
returns table (place text, value text)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select concat_ws(' ', s ->> 'name', k.place), k.value
  from jsonb_array_elements(p_stages) s
  cross join lateral (
    select o.key, o.value
    from jsonb_each_text(s -> 'shows') o
    where o.key in ('queued', 'backoff', 'started', 'completed', 'asked')
    union all
    select 'failed ' || f.key, f.value
    from jsonb_each_text(s #> '{shows,failed}') f
    union all
    select 'step ' || v.place, v.value
    from jsonb_array_elements_text(s #> '{shows,steps}') with ordinality v(value, place)
    union all
    select 'answer ' || (a.value ->> 'decision'), a.key
    from jsonb_each(s #> '{shows,answers}') a) k(place, value)
  union all
  select 'failed', p_status ->> 'failed'
  union all
  select 'ends ' || e.key, e.value
  from jsonb_each_text(p_status -> 'ends') e
  union all
  select concat_ws(' ', 'layer', l.key, k.key), k.value
  from jsonb_each(p_status -> 'layers') l
  cross join lateral jsonb_each_text(l.value) k
  where k.key in ('enter', 'leave')
$$;

-- Lists the values that a definition changes, with what its places show from now on; null among it
-- where that depends on the run. Stages that are new, or dropped, change no row.
create or replace function millrace.changed_values(p_definition jsonb)
returns table (was text, now text[])
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with old as materialized (
    select p.status, jsonb_agg(jsonb_build_object('name', s.name, 'shows', s.shows)) as stages
    from millrace.pipelines p
    join millrace.stages s on s.pipeline_id = p.id
    where p.name = p_definition ->> 'pipeline'
      and p.status ->> 'column' = p_definition #>> '{entity,status,column}'
    group by p.id
  ), before as materialized (
    select b.*
    from old o
    cross join lateral millrace.shown_places(o.status, o.stages) b
  ), after as materialized (
    select a.*
    from old o
    cross join lateral millrace.shown_places(
      p_definition #> '{entity,status}', p_definition -> 'stages') a
  ), change as (
    select b.value as was, a.value as now
    from before b
    left join after a on a.place = b.place
    where a.place is not null
      or millrace.graph_of(p_definition) ? split_part(b.place, ' ', 1)
    union all
    -- A value for a failure, or for the time until a retry, that had none.
    select v.value, null
    from after a
    join before v on v.place in ('failed', split_part(a.place, ' ', 1) || ' queued')
    where split_part(a.place, ' ', 2) in ('failed', 'backoff')
      and not exists (select from before b where b.place = a.place)
  )
  select c.was, array_agg(distinct c.now)
  from change c
  group by c.was
  having bool_or(c.now is distinct from c.was)
$$;

-- Writes the values of rows anew that are other ones now, whichever run they have, if any.
create or replace function millrace.rename_values(
  p_pipeline millrace.pipelines, p_was text[], p_now text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_history jsonb := p_pipeline.status -> 'history';
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_type text := millrace.status_type(p_pipeline);
  v_said text;
begin
  insert into millrace.version_moves
    (version_id, from_value, to_value, by, means, retired)
  select p_pipeline.current_version_id, m.was, m.now, 'engine', 'rename', true
  from unnest(p_was, p_now) m(was, now)
  on conflict do nothing;
  update millrace.runs r
  set began_from = m.now
  from unnest(p_was, p_now) m(was, now)
  where r.pipeline_id = p_pipeline.id and r.began_from = m.was;
  v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
  execute format($q$
    with renamed as (
      update %1$s e set %2$I = m.now::%3$s%4$s
      from (
        select o.%5$I as key, m.was, m.now%6$s
        from %1$s o
        join unnest($1, $2) m(was, now) on o.%2$I::text = m.was) m
      where e.%5$I = m.key
      returning m.*)
    %7$s$q$,
    p_pipeline.entity_table, p_pipeline.status ->> 'column', v_type,
    case when v_history is null then '' else format(', %I = $3', v_history ->> 'since') end,
    p_pipeline.entity_key,
    case when v_history is null then '' else format(', o.%I as began', v_history ->> 'since') end,
    case when v_history is null then 'select count(*) from renamed' else format($q$
    insert into %1$s (%2$I, from_status, to_status, changed_at, changed_by, duration_ms)
    select r.key, r.was::%3$s, r.now::%3$s, $3, 'system:auto',
      greatest(0, extract(epoch from $3 - r.began) * 1000)::bigint
    from renamed r
    order by r.key$q$,
      to_regclass(v_history ->> 'table'), v_history ->> 'key', v_type) end)
  using p_was, p_now, millrace.now();
  v_said := set_config('millrace.projecting', v_outer, true);
end
$$;

-- Shows anew what stands at values that the definition has changed, by value as changed_values()
-- says.
create or replace function millrace.show_changed(p_pipeline_id int, p_changed jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
  v_renamed record;
  v_ids text[];
begin
  if p_changed is null then
    return;
  end if;
  select p.* into v_pipeline from millrace.pipelines p where p.id = p_pipeline_id;
  select array_agg(c.key) as was, array_agg(c.value ->> 0) as now
  into v_renamed
  from jsonb_each(p_changed) c
  where jsonb_array_length(c.value) = 1 and c.value ->> 0 is not null;
  if v_renamed.was is not null then
    perform millrace.rename_values(v_pipeline, v_renamed.was, v_renamed.now);
  end if;
  for v_ids in
    select array_agg(w.id)
    from (
      select f.id, row_number() over (order by f.id) / 1000 as portion
      from millrace.rows_shown_wrong(v_pipeline, array(
        select k
        from jsonb_object_keys(p_changed) k
        where k <> all (coalesce(v_renamed.was, '{}')))) f) w
    group by w.portion
  loop
    perform millrace.show_status(p_pipeline_id, v_ids);
  end loop;
end
$$;

-- The projection `status`: values that start a stage, or start it over

-- Raises MR005 about a value that would start a stage which cannot start, for the reason given, and
-- names the value to write instead of the stage to queue.
create or replace function millrace.refuse_start(
  p_pipeline_id int, p_was text, p_value text, p_ids text[], p_why text, p_hint text
) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception '% cannot be written to %: %', p_value,
    concat_ws(' at ', millrace.rows_named(p_ids), p_was), p_why
    using errcode = 'MR005', hint = coalesce((
      select format('Write %s instead; the stages after it follow by themselves.', s.ready)
      from millrace.pipelines p
      cross join lateral millrace.shown_stages(p.current_version_id) s
      where p.id = p_pipeline_id
        and s.name = substring(p_hint from '^Queue (\w+) instead')), p_hint);
end
$$;

-- Says whether a written value names the one stage that it starts. A value at which several stages
-- are ready names none: it begins the first of them, and their conditions decide which one runs.
create or replace function millrace.names_stage(p_pipeline_id int, p_stage_id int)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select not exists (
    select
    from millrace.pipelines p
    join millrace.version_stages vs on vs.version_id = p.current_version_id
    join millrace.stages o on o.id = vs.stage_id
    join millrace.stages s on s.id = p_stage_id
    where p.id = p_pipeline_id
      and o.id <> s.id
      and coalesce(o.shows ->> 'queued', o.shows ->> 'asked')
        = coalesce(s.shows ->> 'queued', s.shows ->> 'asked'))
$$;

-- Starts a stage, or starts it over, for entities that had a run and whose row says so. The value
-- at which it was is kept where the question that follows may be taken back.
create or replace function millrace.start_at_value(
  p_pipeline_id int, p_stage_id int, p_was text, p_value text, p_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_why text;
  v_hint text;
begin
  begin
    perform millrace.queue_stage(p_pipeline_id, p_stage_id, p_ids, p_ids,
      p_by_name => millrace.names_stage(p_pipeline_id, p_stage_id));
  exception when sqlstate 'MR005' then
    get stacked diagnostics v_why = message_text, v_hint = pg_exception_hint;
    perform millrace.refuse_start(p_pipeline_id, p_was, p_value, p_ids, v_why, v_hint);
  end;
  if (
      select s.shows -> 'discard' = 'true'
      from millrace.stages s
      where s.id = p_stage_id) then
    update millrace.runs r
    set began_from = p_was
    where r.pipeline_id = p_pipeline_id
      and r.entity_id = any (p_ids)
      and (r.status = 'running') is true;
  end if;
end
$$;

-- Finds the stage before which entities that show a value, and of which no run is known, have been
-- through all: the stage that is to begin, or the first of the layer at whose gate they wait; none
-- where they are new, or only entered.
create or replace function millrace.done_until(p_pipeline_id int, p_stage_id int, p_was text)
returns int
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select s.id
  from millrace.pipelines p
  cross join lateral millrace.shown_stages(p.current_version_id) s
  where p.id = p_pipeline_id
    and p_was is not null
    and p_was not in (select e #>> '{}' from jsonb_array_elements(p.status -> 'entries') e)
    and (s.id = p_stage_id or s.shows ->> 'enter' = p_was)
  order by s.place
  limit 1
$$;

-- Begins entities of which no run is known. Stages before the one that was written are left out
-- where the row brings their output along; where one has work to do, the value is refused. From the
-- gate of a layer a new row goes by all stages, and must come to that layer or behind it. A row
-- that had a value was there before: it was adopted, or its runs have been pruned. It has been
-- through the stages before, but not through those of a layer at whose gate it waits; and where it
-- only entered, through none.
create or replace function millrace.begin_at_value(
  p_pipeline_id int, p_stage_id int, p_means text, p_was text, p_value text, p_ids text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stage_id int := case
    when p_means = 'start' or p_was is not null then p_stage_id
    else millrace.first_stage(p_pipeline_id)
  end;
  v_why text;
  v_hint text;
  v_early record;
begin
  begin
    perform millrace.queue_stage(p_pipeline_id, v_stage_id, p_ids,
      case when p_means = 'enter' then p_ids else '{}' end,
      p_by_name => p_means = 'start' and not millrace.begins_runs(p_pipeline_id, v_stage_id)
        and millrace.names_stage(p_pipeline_id, v_stage_id),
      p_done_before => millrace.done_until(p_pipeline_id, v_stage_id, p_was));
  exception when sqlstate 'MR005' then
    get stacked diagnostics v_why = message_text, v_hint = pg_exception_hint;
    perform millrace.refuse_start(p_pipeline_id, p_was, p_value, p_ids, v_why, v_hint);
  end;
  if p_means = 'start' then
    return;
  end if;
  select min(s.name) as stage, min(s.shows ->> 'queued') as ready,
    array_agg(st.id order by st.place) as ids
  into v_early
  from millrace.standings(p_pipeline_id, p_ids) st
  join millrace.stages s on s.id = st.live_id
  join millrace.version_stages vs on vs.version_id = st.version_id and vs.stage_id = p_stage_id
  where st.until < vs.position;
  if v_early.ids is not null then
    raise exception '% cannot be written to %: stage % comes first, and the row does not bring '
      'its output along',
      p_value, millrace.rows_named(v_early.ids), v_early.stage
      using errcode = 'MR005',
        hint = format('Write %s instead, or give the row its output.', v_early.ready);
  end if;
end
$$;

-- The projection `status`: what a row shows, and by which values it gets there
--
-- What a row shows follows from its latest run. status_states() says it from the tables.
-- status_path() says which values lie between what a row really shows and that: they go into the
-- history, while the row itself is written once. A claim that was not shown, since somebody held
-- the row, is made good there.

-- Lists the values that a stage shows while it is under way.
create or replace function millrace.live_values(p_shows jsonb) returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array_remove(array[p_shows ->> 'queued', p_shows ->> 'backoff', p_shows ->> 'started',
    p_shows ->> 'asked'], null)
    || array(select s #>> '{}' from jsonb_array_elements(p_shows -> 'steps') s);
end
$$;

-- Says what a stage that is done shows: of a manual one the answer that its decision holds, of
-- several the one that says most; null where it is none of them.
create or replace function millrace.done_value(p_shows jsonb, p_output jsonb) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((
      select a.key
      from jsonb_each(p_shows -> 'answers') a
      where p_output -> 'decision' @> (a.value -> 'decision')
      order by length((a.value -> 'decision')::text) desc, a.key
      limit 1),
    p_shows ->> 'completed');
end
$$;

-- Finds the stage of a run that was completed last before a place of its version, and what that one
-- shows if it was a person's.
create or replace function millrace.done_before(
  p_run_id bigint, p_version_id int, p_place int, out done_id int, out via text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  select a.stage_id,
    case when s.kind = 'manual' then millrace.done_value(s.shows, a.output) end
  into done_id, via
  from millrace.attempts a
  join millrace.version_stages vs on vs.version_id = p_version_id and vs.stage_id = a.stage_id
  join millrace.stages s on s.id = a.stage_id
  where a.run_id = p_run_id
    and not a.superseded
    and a.state = 'completed'
    and vs.position < p_place
  order by vs.position desc
  limit 1;
end
$$;

-- Finds what decides what the latest runs of entities show: the live attempt, the last completed
-- one of a run that is over, or the one that failed; and in which phase that is. done_id is the
-- stage completed right before the live one, via what a person's shows. dropped: over without
-- having been in work. An entity whose run is between two stages is left out.
create or replace function millrace.deciding_attempts(p_pipeline_id int, p_ids text[])
returns table (
  id text, version_id int, ended_as text, began_from text, run_status millrace.run_status,
  attempt_id bigint, stage_id int, shows jsonb, phase text, code text, output jsonb,
  done_id int, via text, retry_count smallint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare v_now timestamptz := millrace.now();
begin
  return query
    select i.id, r.version_id, r.ended_as, r.began_from, r.status, w.id, w.stage_id, w.shows,
      case
        when r.ended_as is not null then 'ended' when e.discarded then 'discarded'
        when r.status = 'completed' then 'completed'
        when r.status = 'failed' and w.started_at is not null then 'failed'
        when r.status <> 'running' then 'dropped'
        when w.kind = 'manual' then 'asked'
        when w.state <> 'queued' then 'started'
        when w.shows ? 'backoff' and w.retry_count > 0 and w.queue_at > v_now then 'backoff'
        else 'queued'
      end,
      case r.status when 'failed' then w.error ->> 'code' end,
      case when r.status = 'completed' and w.kind = 'manual' then w.output end,
      d.done_id, d.via, w.retry_count
    from unnest(p_ids) i(id)
    cross join lateral (
      select o.*
      from millrace.runs o
      where o.entity_id = i.id and o.pipeline_id = p_pipeline_id
      order by o.id desc limit 1) r
    cross join lateral (
      select r.status = 'completed' and r.began_from is not null and exists (
        select
        from millrace.attempts a
        where a.run_id = r.id
          and not a.superseded
          and a.state = 'skipped' and a.error ->> 'code' = 'discarded') as discarded
      offset 0) e
    left join lateral (
      select a.*, s.kind, s.shows, vs.position
      from millrace.attempts a
      join millrace.version_stages vs on vs.version_id = r.version_id and vs.stage_id = a.stage_id
      join millrace.stages s on s.id = a.stage_id
      where a.run_id = r.id
        and not a.superseded
        and case r.status
          when 'running' then a.state in ('queued', 'started', 'waiting')
          when 'completed' then a.state = 'completed'
          else a.state in ('failed', 'cancelled')
        end
      order by vs.position desc, a.number desc
      limit 1) w on true
    left join lateral millrace.done_before(r.id, r.version_id, w.position) d
      on r.status = 'running'
    where r.status <> 'running' or w.id is not null;
end
$$;

-- Says what the latest runs of entities are to show, in which phase of which stage that is, and the
-- figures beside it. A run in which no stage was done shows the last one that nobody has to ask
-- for as completed.
create or replace function millrace.status_states(p_pipeline_id int, p_ids text[])
returns table (
  id text, value text, phase text, stage_id int, done_id int, via text, attempts int,
  retry_at timestamptz, error text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    select d.id,
      case d.phase
        when 'ended' then p.status -> 'ends' ->> d.ended_as
        when 'discarded' then d.began_from
        when 'completed' then coalesce(
          millrace.done_value(d.shows, d.output), d.shows ->> 'asked', (
          select n.value
          from millrace.nothing_done(d.version_id) n))
        when 'failed' then coalesce(d.shows -> 'failed' ->> d.code, p.status ->> 'failed')
        when 'dropped' then coalesce(d.shows -> 'failed' ->> d.code, p.status ->> 'failed')
        else d.shows ->> d.phase
      end,
      d.phase,
      case when d.phase not in ('ended', 'discarded') then d.stage_id end,
      case d.phase when 'ended' then d.stage_id else d.done_id end,
      case
        when d.phase = 'ended' and d.shows ? 'asked' then millrace.done_value(d.shows, d.output)
        else d.via
      end,
      case
        when d.run_status = 'completed' then 0
        else coalesce(d.retry_count, 0) + coalesce(a.state = 'failed', false)::int
      end,
      case
        when d.phase in ('queued', 'backoff') and (d.retry_count > 0 or a.held) then a.queue_at
      end,
      case
        when d.run_status = 'completed' then null
        when a.error is not null then millrace.owner_message(a.error, a.id)
        when d.retry_count > 0 then (
          select millrace.owner_message(o.error, o.id)
          from millrace.attempts o
          where o.id = a.parent_id)
      end
    from millrace.pipelines p
    cross join lateral millrace.deciding_attempts(p.id, p_ids) d
    left join millrace.attempts a on a.id = d.attempt_id
    where p.id = p_pipeline_id;
end
$$;

-- Lists the values by which a row gets from what it shows to a value, and who writes each: null for
-- the person at hand. p_stage_id is the stage that the value is of, and p_phase what it says of it;
-- p_done_id the stage that was completed before, p_via what that one shows if it was a person's.
create or replace function millrace.status_path(
  p_was text, p_value text, p_phase text, p_stage_id int, p_done_id int, p_via text,
  out steps text[], out actors text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at record;
  v_done record;
  v_within boolean;
  v_after boolean;
  v_crosses boolean;
  v_waited boolean;
  v_values text[];
  v_actors text[];
  v_last text := p_was;
begin
  select s.id, s.shows, 'agent:' || s.name as agent, s.kind = 'manual' as asks into v_at
  from millrace.stages s where s.id = p_stage_id;
  select s.id, s.shows, 'agent:' || s.name as agent, s.kind = 'manual' as asks into v_done
  from millrace.stages s where s.id = p_done_id;
  v_within := coalesce(p_was = any (millrace.live_values(v_at.shows)), false);
  v_after := coalesce(not v_within and v_done.id is distinct from v_at.id
    and p_was = any (millrace.live_values(v_done.shows)), false);
  v_crosses := v_at.id is not null
    and v_at.shows -> 'layer' is distinct from v_done.shows -> 'layer';
  v_waited := coalesce(p_was in (v_at.shows ->> 'backoff', v_at.shows ->> 'queued'), false);
  -- What is left of the stage that is done, layers, what comes first of the other, and the value.
  v_values := array[
    case when v_after and p_was = v_done.shows ->> 'backoff' then v_done.shows ->> 'queued' end,
    case when v_after and p_was in (v_done.shows ->> 'backoff', v_done.shows ->> 'queued')
      then v_done.shows ->> 'started' end,
    case when v_after then coalesce(p_via, v_done.shows ->> 'completed') end,
    case when v_after and v_crosses then v_done.shows ->> 'leave' end,
    case when v_crosses and p_phase <> 'dropped' and (v_after or p_was is null)
      then v_at.shows ->> 'enter' end,
    case when p_phase in ('started', 'completed', 'failed', 'backoff')
      and (not v_within or p_was = v_at.shows ->> 'backoff')
      then coalesce(v_at.shows ->> 'queued', v_at.shows ->> 'asked') end,
    case when p_phase in ('completed', 'failed', 'backoff') and (not v_within or v_waited)
      then v_at.shows ->> 'started' end,
    p_value];
  v_actors := array['system:auto', v_done.agent, case when not v_done.asks then v_done.agent end,
    'system:auto', 'system:auto', 'system:auto', v_at.agent,
    case
      when p_phase = 'completed' and v_at.asks or p_phase = 'discarded' then null
      when p_phase in ('started', 'completed') then v_at.agent
      else 'system:auto'
    end];
  steps := '{}'; actors := '{}';
  for v_place in 1 .. 8 loop
    if v_values[v_place] <> v_last or v_last is null and v_values[v_place] is not null then
      v_last := v_values[v_place];
      steps := steps || v_last;
      actors := actors || v_actors[v_place];
    end if;
  end loop;
end
$$;

-- The projection `status`: retries that fell due

-- Shows retries that fell due since the last sweep as queued, where their stage has a value of its
-- own for backoff, on rows that nobody holds. A claim need not wait for it.
create or replace function millrace.show_due(p_pipeline_id int, p_limit int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := millrace.now();
  v_stages int[] := array(
    select s.id
    from millrace.stages s
    join millrace.pipelines p on p.id = s.pipeline_id and p.projection = 'status'
    where s.pipeline_id = p_pipeline_id
      and s.shows ->> 'backoff' <> s.shows ->> 'queued');
  -- A sweep that could not show all of them leaves the rest to the next ones.
  v_since timestamptz := (
    select s.value::timestamptz - interval '10 minutes'
    from millrace.settings s
    where s.name = 'last_sweep_at');
  v_last_id bigint := 0;
  v_due record;
begin
  while cardinality(v_stages) > 0 loop
    select max(d.id) as last_id, count(*) as found, array_agg(r.entity_id) as entity_ids
    into v_due
    from (
      select a.id, a.run_id
      from millrace.attempts a
      where a.stage_id = any (v_stages)
        and a.queue_at between v_since and v_now
        and a.state = 'queued'
        and a.retry_count > 0
        and a.id > v_last_id
      order by a.id
      limit p_limit) d
    join millrace.runs r on r.id = d.run_id;
    exit when v_due.found = 0;
    perform millrace.show_status(p_pipeline_id,
      millrace.lock_entities(p_pipeline_id, v_due.entity_ids, false));
    exit when v_due.found < p_limit;
    v_last_id := v_due.last_id;
  end loop;
end
$$;

-- The projection `status`: the triggers through which a pipeline learns of written values
--
-- They are written for each pipeline, with its columns in place. What a person wrote stands in the
-- row already; it goes into the history first, so that what follows from it comes after.

-- Creates the __since function of a pipeline with its triggers, or drops them where there is no
-- history: a value that a person writes begins now. The engine's own statements set it themselves.
create or replace function millrace.write_status_since(p_pipeline millrace.pipelines)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_status text := p_pipeline.status ->> 'column';
  v_since text := p_pipeline.status #>> '{history,since}';
  v_name text := p_pipeline.name || '__since';
begin
  if v_since is null then
    -- With its triggers, if it is there: to look for a trigger locks out whoever reads the table.
    execute format('drop function if exists millrace.%I() cascade', v_name);
    return;
  end if;
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'UPDATE' and old.%2$I is not distinct from new.%2$I then
    new.%3$I := old.%3$I;
  else
    new.%3$I := millrace.now();
  end if;
  return new;
end $$;
create or replace trigger %4$I before insert on %6$s
  for each row when (new.%2$I is not null) execute function millrace.%1$I();
create or replace trigger %5$I before update on %6$s
  for each row
  when ((old.%2$I is distinct from new.%2$I or old.%3$I is distinct from new.%3$I)
    and (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
      or not has_schema_privilege('millrace', 'create')))
  execute function millrace.%1$I()$f$,
    v_name, v_status, v_since, 'millrace_' || p_pipeline.name || '_begun',
    'millrace_' || p_pipeline.name || '_since', p_pipeline.entity_table);
end
$write$;

-- Writes the statements that put what a person wrote into the history, and take what was said of
-- changed fields from the row. p_was is what the old value is read from.
create or replace function millrace.history_of_written(
  p_pipeline millrace.pipelines, p_from text, p_moved text, p_was text, p_began text
) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_history jsonb := p_pipeline.status -> 'history';
  v_changes text := v_history ->> 'changes';
begin
  if v_history is null then
    return '';
  end if;
  return format($f$
    insert into %1$s (%2$I, from_status, to_status, changed_at, changed_by, changes, duration_ms)
    select n.%3$I, %4$s, n.%5$I, n.%6$I, v_actor, %7$s,
      case when %8$s is not null
        then greatest(0, extract(epoch from n.%6$I - %8$s) * 1000)::bigint end
    from %9$s
    where %10$s
      and n.%5$I::text in (
        select v.value
        from millrace.status_values v
        where v.pipeline_id = %11$s)
    order by n.%3$I;$f$,
      to_regclass(v_history ->> 'table'), v_history ->> 'key', p_pipeline.entity_key, p_was,
      p_pipeline.status ->> 'column', v_history ->> 'since',
      coalesce('n.' || quote_ident(v_changes), 'null'), p_began, p_from, p_moved, p_pipeline.id)
    || case when v_changes is null then '' else format($f$
    v_told := array(
      select n.%5$I::text
      from %3$s
      where %4$s and n.%2$I is not null);
    if cardinality(v_told) > 0 then
      v_said := set_config('millrace.projecting', pg_trigger_depth()::text, true);
      update %1$s e set %2$I = null
      where e.%5$I = any (v_told::%6$s[]);
      v_said := set_config('millrace.projecting', v_outer, true);
    end if;$f$,
      p_pipeline.entity_table, v_changes, p_from, p_moved, p_pipeline.entity_key,
      millrace.key_type(p_pipeline)) end;
end
$write$;

-- Creates the __intake function of a pipeline with one status column, and its triggers.
create or replace function millrace.write_status_intake(
  p_pipeline millrace.pipelines, p_key_type text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
declare
  v_key text := quote_ident(p_pipeline.entity_key);
  v_column text := quote_ident(p_pipeline.status ->> 'column');
  v_both text := format('new_rows n join old_rows o on o.%1$s = n.%1$s', v_key);
  v_moved text := format('n.%1$s is distinct from o.%1$s', v_column);
  v_given text := format('n.%s is not null', v_column);
  v_bodies text[] := array[
    millrace.history_of_written(p_pipeline, v_both, v_moved, 'o.' || v_column,
      'o.' || quote_ident(p_pipeline.status #>> '{history,since}')),
    millrace.history_of_written(p_pipeline, 'new_rows n', v_given,
      format('null::%s', millrace.status_type(p_pipeline)), 'null::timestamptz')];
begin
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
  v_outer text := coalesce(current_setting('millrace.projecting', true), '');
  v_actor text;
  v_said text; v_told text[];
  v_written record;
begin
  if tg_op = 'UPDATE' then
    select array_agg(n.%2$s::text order by n.%2$s) as ids,
      array_agg(o.%3$s::text order by n.%2$s) as was,
      array_agg(n.%3$s::text order by n.%2$s) as now
    into v_written
    from %4$s
    where %5$s;
    if v_written.ids is not null then
      v_actor := millrace.actor(tg_relid);%6$s
    end if;
  else
    select array_agg(n.%2$s::text order by n.%2$s) as ids,
      array_fill(null::text, array[count(*)::int]) as was,
      array_agg(n.%3$s::text order by n.%2$s) as now
    into v_written
    from new_rows n
    where %7$s;
    if v_written.ids is not null then
      v_actor := millrace.actor(tg_relid);%8$s
    end if;
  end if;
  if v_written.ids is null then
    return null;
  end if;
  perform millrace.on_values_written(%9$s, v_written.ids, v_written.was, v_written.now);
  return null;
end $$;$f$,
    p_pipeline.name || '__intake', v_key, v_column, v_both, v_moved, v_bodies[1], v_given,
    v_bodies[2], p_pipeline.id);
  perform millrace.write_status_triggers(p_pipeline);
end
$write$;

-- Creates the triggers of the __intake function of a pipeline with one status column.
create or replace function millrace.write_status_triggers(p_pipeline millrace.pipelines)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace trigger %1$I after insert on %3$s referencing new table as new_rows
  for each statement execute function millrace.%4$I();
create or replace trigger %2$I after update on %3$s
  referencing old table as old_rows new table as new_rows
  for each statement
  when (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
    or not has_schema_privilege('millrace', 'create'))
  execute function millrace.%4$I()$f$,
    'millrace_' || p_pipeline.name || '_inserted', 'millrace_' || p_pipeline.name || '_updated',
    p_pipeline.entity_table, p_pipeline.name || '__intake');
end
$write$;

-- Sweeping children: tallies that nobody has added up, and fan-outs that are over

-- Collects the children of one fan-out and wakes what became ready; false where somebody holds the
-- parent. It outlives and reports what else goes wrong, so that a parent which refuses to be
-- written keeps the sweep from none of the others.
create or replace function millrace.sweep_fan_out(p_fan_out_id bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_done record;
  v_context text;
begin
  v_done := millrace.collect_children(p_fan_out_id);
  perform millrace.wake(v_done.wake);
  return not v_done.busy;
exception
  when query_canceled or assert_failure or others then
    get stacked diagnostics v_context = pg_exception_context;
    if not millrace.report_caught(sqlstate, v_context, 'collect_failed', format(
        'The children of fan-out %s cannot be added up: %s', p_fan_out_id, sqlerrm)) then
      raise;
    end if;
    return false;
end
$$;

-- Forgets fan-outs whose parents were deleted, once they have no children left.
create or replace function millrace.forget_fan_outs(p_limit int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with forgotten as (
    delete from millrace.fan_outs f
    where f.id in (
      select o.id
      from millrace.fan_outs o
      where o.state = 'closed'
        and not exists (select from millrace.runs r where r.id = o.run_id)
      limit p_limit
      for update skip locked)
    returning f.id
  ), progress as (
    delete from millrace.fan_progress p
    using forgotten f
    where p.fan_out_id = f.id
  )
  delete from millrace.former_costs c
  using forgotten f
  where c.fan_out_id = f.id;
end
$$;

-- Collects what children reported and nobody has added up, and fan-outs that are due; then cancels
-- the children of those that were given up. Returns how many of each.
create or replace function millrace.sweep_children(out collected int, out cancelled int)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fan_out bigint;
  v_until timestamptz := millrace.now() + interval '5 seconds';
begin
  collected := 0;
  insert into millrace.child_tallies (fan_out_id)
  select f.id
  from millrace.attempts a
  join millrace.stages s on s.id = a.stage_id
  join millrace.fan_outs f on f.attempt_id = a.id and f.state = 'open'
  where a.deadline_at <= millrace.now()
    and a.state = 'waiting'
    and s.fan_in ->> 'at_deadline' = 'finish';
  -- In no order, so that parents which refuse to be written keep it from none of the others.
  for v_fan_out in
    select t.fan_out_id
    from millrace.child_tallies t
    group by t.fan_out_id
    order by random()
  loop
    exit when collected >= 200 or millrace.now() >= v_until;
    -- Those that are being collected are left to whoever does so: waiting out of order might be
    -- waiting for each other.
    continue when not pg_try_advisory_xact_lock(
      hashtextextended('millrace.collect_children', v_fan_out));
    collected := collected + millrace.sweep_fan_out(v_fan_out)::int;
  end loop;
  cancelled := millrace.cancel_children(2000);
  perform millrace.forget_fan_outs(1000);
end
$$;

-- Switches: what a person turns while work goes on. A pipeline or a stage is paused and unpaused; a
-- run is given a priority.

create or replace function millrace.prioritise(p_run bigint, p_priority int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status millrace.run_status;
begin
  if p_priority is null or p_priority not between 0 and 9 then
    raise exception 'p_priority is %, but must be from 0 to 9', coalesce(p_priority::text, 'null')
      using errcode = 'MR002', hint = '0 is normal, 9 goes first.';
  end if;
  perform millrace.hold_runs(array[p_run]);
  select r.status into v_status from millrace.runs r where r.id = p_run;
  if v_status is distinct from 'running' then
    raise exception 'run % cannot be given a priority: %',
      coalesce(p_run::text, 'null'), coalesce('it is ' || v_status, 'there is no such run')
      using errcode = case when v_status is null then 'MR003' else 'MR004' end,
        hint = 'Only a running run waits for its turn: '
          'select * from millrace.runs where status = ''running''.';
  end if;
  update millrace.runs r set priority = p_priority where r.id = p_run;
  -- A claim that is taking one of them this moment goes first.
  perform
  from millrace.attempts a
  where a.run_id = p_run and a.state = 'queued'
  order by a.id
  for update;
  perform millrace.assign_groups(a.stage_id, array[p_run])
  from (
    select distinct a.stage_id
    from millrace.attempts a
    where a.run_id = p_run and a.state = 'queued' and a.concurrency_group is not null) a;
end
$$;

-- Switches a pipeline, or one stage of it, on or off. Returns the stages concerned.
create or replace function millrace.switch(p_pipeline text, p_stage text, p_enabled boolean)
returns int[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline_id int;
  v_stage_id int;
begin
  select p.id
  into v_pipeline_id
  from millrace.pipelines p
  where p.name = p_pipeline;
  if not found then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null')
      using errcode = 'MR003', hint = 'Look it up: select name from millrace.pipelines.';
  elsif p_stage is null then
    update millrace.pipelines p
    set enabled = p_enabled
    where p.id = v_pipeline_id and p.enabled <> p_enabled;
    return array(
      select s.id from millrace.stages s where s.pipeline_id = v_pipeline_id);
  end if;
  v_stage_id := (millrace.stage_named(p_pipeline, p_stage)).id;
  update millrace.stages s
  set enabled = p_enabled
  where s.id = v_stage_id and s.enabled <> p_enabled;
  return array[v_stage_id];
end
$$;

create or replace function millrace.pause(p_pipeline text, p_stage text default null) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.switch(p_pipeline, p_stage, false);
end
$$;

create or replace function millrace.unpause(p_pipeline text, p_stage text default null)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stages int[] := millrace.switch(p_pipeline, p_stage, true);
  v_still record;
begin
  perform millrace.wake(array(
    select s from unnest(v_stages) s where millrace.has_ready_work(s)));
  -- What still holds it back: the pipeline of a stage, or stages of a pipeline.
  select count(*) as count,
    string_agg(coalesce('stage ' || p.stage, 'the pipeline'), ', ') as names,
    string_agg(p.remedy, ' ') as remedies
  into v_still
  from millrace.paused p
  where p.pipeline = p_pipeline
    and (p_stage is null or p.stage is null);
  return case
    when p_stage is null then format('pipeline %s goes on', p_pipeline)
    when v_still.count = 0 then format('stage %s of pipeline %s goes on', p_stage, p_pipeline)
    else format('stage %s of pipeline %s is no longer paused by itself', p_stage, p_pipeline)
  end || case
    when v_still.count > 0 then format(', but %s %s still paused: %s', v_still.names,
      case v_still.count when 1 then 'is' else 'are' end, v_still.remedies)
    else ''
  end;
end
$$;

select pg_temp.put_view('millrace.done_attempts', false, $view$
-- What "done" means
--
-- A stage of a run is done when it was completed or skipped, and nobody has started it over since.
-- Then the stages that need it go on; a skipped one's result is null.

create or replace view millrace.done_attempts as
select a.id, a.run_id, a.stage_id, a.number, a.state, a.retry_count, a.created_at, a.started_at,
  a.finished_at, a.error, a.output
from millrace.attempts a
where a.state in ('completed', 'skipped')
  and not a.superseded
$view$);

select pg_temp.put_view('millrace.forgers', true, $view$
-- Who could forge results

-- The roles of the Data API that may write what only the engine should: results and the other
-- columns of stages but their statuses, on which intake keeps watch; the figures beside a status
-- column; its history and its lookup. Writing the status column itself is how people act, and
-- intake judges it. A role that no policy lets write is left out.
create or replace view millrace.forgers as
with role as (
  select r.oid, r.rolname as name
  from pg_roles a
  join pg_roles r on pg_has_role(a.oid, r.oid, 'member')
  where a.rolname = 'authenticator'
    and r.oid <> a.oid
    and not r.rolbypassrls
    and not r.rolsuper
), kept as (
  select p.entity_table::oid as table_id, 'results' as what, n.name as name,
    n.name like '%\_status' as by_people
  from millrace.pipelines p
  join millrace.stages s on s.pipeline_id = p.id
  cross join lateral unnest(millrace.stage_columns(s.name)) n(name)
  where p.projection = 'columns'
  union all
  select p.entity_table::oid, 'figures', n.name, false
  from millrace.pipelines p
  cross join unnest(array['attempts', 'retry_at', 'error']) f(field)
  cross join lateral (select p.status ->> f.field) n(name)
  where p.projection = 'status' and n.name is not null
  union all
  select a.attrelid, t.what, a.attname::text, false
  from millrace.pipelines p
  cross join lateral (
    values ('history', p.status #>> '{history,table}'), ('values', p.status ->> 'lookup')
  ) t(what, name)
  join pg_attribute a on a.attrelid = to_regclass(t.name) and a.attnum > 0 and not a.attisdropped
  where p.projection = 'status'
), entity as (
  select c.oid, c.relrowsecurity as guarded, string_agg(distinct k.what, ' and ') as what,
    coalesce(array_agg(k.name) filter (where not k.by_people), '{}') as columns,
    coalesce(array_agg(k.name) filter (where k.by_people), '{}') as statuses,
    bool_or(k.what in ('history', 'values')) as whole
  from kept k
  join pg_class c on c.oid = k.table_id
  group by c.oid, c.relrowsecurity
), forged as (
  select e.oid as table_id, r.oid as role_id, r.name as role, e.what, k.name as verb, e.columns,
    e.statuses
  from entity e
  cross join role r
  cross join (values ('delete', 'd'), ('insert', 'a'), ('update', 'w')) k(name, policy)
  where case k.name
      when 'delete' then e.whole and has_table_privilege(r.oid, e.oid, 'delete')
      else exists (
        select
        from pg_attribute a
        where a.attrelid = e.oid
          and a.attname = any (e.columns)
          and has_column_privilege(r.oid, e.oid, a.attnum, k.name))
    end
    and (not e.guarded or exists (
      select
      from pg_policy y
      where y.polrelid = e.oid
        and y.polpermissive
        and y.polcmd in ('*', k.policy)
        and exists (
          select
          from unnest(y.polroles) o
          where o = 0 or pg_has_role(r.oid, o, 'usage'))))
), allowed as (
  -- What stays to the role: the user's own columns, and statuses that were granted one by one.
  select f.table_id, f.role, f.what, f.verb,
    case f.verb
      when 'delete' then has_table_privilege('public', f.table_id, 'delete')
      else has_any_column_privilege('public', f.table_id, f.verb)
    end as by_all,
    string_agg(quote_ident(a.attname), ', ' order by a.attnum) filter (
      where a.attgenerated = ''
        and a.attidentity <> 'a'
        and a.attname <> all (f.columns)
        and f.verb <> 'delete'
        and has_column_privilege(f.role_id, f.table_id, a.attnum, f.verb)
        and (a.attname <> all (f.statuses) or exists (
          select
          from aclexplode(a.attacl) x
          where x.grantee = f.role_id
            and x.privilege_type = upper(f.verb)))) as columns
  from forged f
  join pg_attribute a on a.attrelid = f.table_id and a.attnum > 0 and not a.attisdropped
  group by f.table_id, f.role_id, f.role, f.what, f.verb
)
select
  w.table_id::regclass as entity_table,
  w.role::text as role,
  string_agg(w.verb, ', ' order by w.verb) as verbs,
  format('revoke %s on %s from %s;',
    string_agg(w.verb, ', ' order by w.verb),
    w.table_id::regclass,
    case when bool_or(w.by_all) then 'public, ' else '' end || quote_ident(w.role))
  || coalesce(' grant ' || string_agg(w.verb || ' (' || w.columns || ')', ', ' order by w.verb)
    || format(' on %s to %I;', w.table_id::regclass, w.role), '') as remedy,
  w.what
from allowed w
group by w.table_id, w.role, w.what
order by 1, 2
$view$);

select pg_temp.put_view('millrace.dead_letters', false, $view$
-- Dead letters, and retrying all that meet a condition

-- The latest attempts of stages that stand in the way of finished runs. What a parent has given up
-- goes on with the parent alone.
create or replace view millrace.dead_letters as
select a.id as attempt_id, r.id as run_id, p.name as pipeline, s.name as stage, r.entity_id,
  a.error ->> 'code' as error_code,
  coalesce(a.error ->> 'detail', a.error ->> 'message') as error_message,
  a.retry_count, a.finished_at as failed_at,
  not exists (
    select
    from millrace.runs o
    where o.entity_id = r.entity_id
      and o.pipeline_id = any (millrace.ways_of(r.pipeline_id))
      and o.id > r.id)
  and not exists (
    select
    from millrace.fan_outs f
    where f.id = r.fan_out_id
      and f.state in ('abandoned', 'closed')) as can_retry
from millrace.runs r
join millrace.pipelines p on p.id = r.pipeline_id
join millrace.attempts a on a.run_id = r.id and a.state = 'failed' and not a.superseded
join millrace.stages s on s.id = a.stage_id
where r.status = 'failed'
  and not exists (
    select
    from millrace.attempts n
    where n.run_id = a.run_id
      and n.stage_id = a.stage_id
      and n.number > a.number)
$view$);

select pg_temp.put_view('millrace.schedules', false, $view$
create or replace view millrace.schedules as
select *
from (values
  ('millrace-sweep', '10 seconds', 'select millrace.sweep()'),
  ('millrace-prune', '17 3 * * *', 'select millrace.prune()')) j(name, schedule, command)
$view$);

select pg_temp.put_view('millrace.queue_depth', false, $view$
-- Watching it
--
-- Views and functions for Supabase Studio's table editor and SQL editor.

create or replace view millrace.queue_depth as
select p.name as pipeline, s.name as stage,
  count(a.id) filter (where a.state = 'queued' and a.queue_at <= millrace.now()) as ready,
  count(a.id) filter (where a.state = 'queued' and a.queue_at > millrace.now()) as in_backoff,
  count(a.id) filter (where a.state = 'started') as started,
  min(a.queue_at) filter (where a.state = 'queued') as oldest_due_at
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.attempts a on a.stage_id = s.id and a.queue_at is not null
group by p.name, s.id, s.name
order by p.name, s.id
$view$);

select pg_temp.put_view('millrace.stage_health', false, $view$
create or replace view millrace.stage_health as
select p.name as pipeline, s.name as stage, s.enabled and p.enabled as enabled,
  count(a.id) filter (where a.state = 'queued' and a.queue_at <= millrace.now()) as ready,
  count(a.id) filter (where a.state = 'queued' and a.queue_at > millrace.now()) as in_backoff,
  count(a.id) filter (where a.state = 'started') as started,
  count(a.id) filter (where a.state = 'waiting') as waiting,
  count(a.id) filter (where a.state = 'completed' and not a.superseded) as completed,
  count(distinct a.run_id) filter (
    where a.state = 'failed' and r.status = 'failed' and not a.superseded) as failed,
  count(a.id) filter (where a.retry_count > 0) as retries,
  millrace.now() - min(coalesce(a.queue_at, a.started_at)) filter (
    where a.state in ('queued', 'started', 'waiting')
      and coalesce(a.queue_at, a.started_at) <= millrace.now()) as oldest_age,
  millrace.live_workers(s.id)::bigint as live_workers,
  s.sla,
  case when s.sla is null then 0 else millrace.late_runs(s.id) end as late
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.attempts a on a.stage_id = s.id
left join millrace.runs r on r.id = a.run_id
group by p.name, p.enabled, s.id, s.name, s.enabled, s.sla
order by p.name, s.id
$view$);

select pg_temp.put_view('millrace.job_outcomes', false, $view$
-- Of each stage the last 1,000 jobs of the last hour, so that it reads as much after a year as on
-- the first day.
create or replace view millrace.job_outcomes as
select p.name as pipeline, s.name as stage, s.limits ->> 'max_in_flight' as max_in_flight,
  j.ended, j.completed, j.past_deadline
from millrace.stages s
join millrace.pipelines p on p.id = s.pipeline_id
cross join lateral (
  select count(*) as ended,
    count(*) filter (where e.state = 'completed') as completed,
    count(*) filter (where e.state = 'failed' and e.error ->> 'code' = 'deadline') as past_deadline
  from (
    select a.state, a.error
    from millrace.attempts a
    where a.stage_id = s.id
      and a.job_id is not null
      -- A subselect, so that the hour bounds what the index is read for.
      and a.finished_at > (select millrace.now() - interval '1 hour')
    order by a.finished_at desc
    limit 1000
  ) e
) j
where s.kind in ('function', 'external')
  and s.deadline is not null
order by p.name, s.id
$view$);

select pg_temp.put_view('millrace.agent_log', false, $view$
-- What operators read of agents: each turn, and each conversation's sums

create or replace view millrace.agent_log as
select p.name as pipeline, s.name as stage, t.run_id, r.entity_id, t.execution, t.seq, t.kind,
  case
    when t.kind = 'tool' then
      case when t.content -> 'failed' = 'true' then 'fails' else 'answers' end
    when t.content ? 'discarded' then 'discarded: ' || (t.content ->> 'discarded')
    when m.calls is not null then 'calls ' || m.calls
    else 'answers'
  end as what,
  case when t.kind = 'tool' then t.content ->> 'name' else m.calls end as tool,
  case when t.kind = 'tool' then t.content ->> 'arguments' else m.arguments end as arguments,
  case when t.kind = 'tool' then t.content ->> 'output' else m.said end as output,
  (t.usage ->> 'input_tokens')::numeric + (t.usage ->> 'output_tokens')::numeric as tokens,
  (t.usage ->> 'cost_usd')::numeric as cost_usd,
  t.content ->> 'asked' as asked, t.attempt_id, t.created_at as at
from millrace.turns t
join millrace.stages s on s.id = t.stage_id
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.runs r on r.id = t.run_id
cross join lateral (
  select string_agg(i ->> 'name', ', ' order by n)
      filter (where i ->> 'type' = 'function_call') as calls,
    string_agg(i ->> 'arguments', ', ' order by n)
      filter (where i ->> 'type' = 'function_call') as arguments,
    string_agg(jsonb_path_query_first(i, '$.content[*].text') #>> '{}', E'\n' order by n) as said
  from jsonb_array_elements(case
    when t.kind = 'model' and jsonb_typeof(t.content -> 'output') = 'array'
      then t.content -> 'output'
    else '[]'
  end) with ordinality o(i, n)
) m
order by t.run_id, t.stage_id, t.execution, t.seq
$view$);

select pg_temp.put_view('millrace.agent_executions', false, $view$
create or replace view millrace.agent_executions as
select p.name as pipeline, s.name as stage, t.run_id, r.entity_id, t.execution,
  count(*) filter (where t.kind = 'model') as turns,
  count(*) filter (where t.kind = 'tool') as tool_calls,
  sum((t.usage ->> 'input_tokens')::numeric) as input_tokens,
  sum((t.usage ->> 'output_tokens')::numeric) as output_tokens,
  sum((t.usage ->> 'cost_usd')::numeric) as cost_usd,
  count(distinct t.attempt_id) as attempts,
  min(t.created_at) as first_turn_at,
  max(t.created_at) as last_turn_at
from millrace.turns t
join millrace.stages s on s.id = t.stage_id
join millrace.pipelines p on p.id = s.pipeline_id
left join millrace.runs r on r.id = t.run_id
group by p.name, s.id, s.name, t.run_id, r.entity_id, t.execution
order by t.run_id, s.id, t.execution
$view$);

select pg_temp.put_view('millrace.cut_over_report', false, $view$
create or replace view millrace.cut_over_report as
with run as materialized (
  select n.name as pipeline, w.way, w.place, r.id, r.status,
    extract(epoch from r.finished_at - r.created_at) as seconds
  from millrace.pipelines n
  cross join lateral (
    values ('new', 1, n.id), ('old', 2, n.replaces_id)
  ) w(way, place, pipeline_id)
  left join millrace.runs r
    on r.pipeline_id = w.pipeline_id
    -- A run from a later stage on did less than the other way does.
    and not exists (
      select
      from millrace.attempts a
      join millrace.attempts f on f.id = a.parent_id and f.run_id <> a.run_id
      where a.run_id = r.id)
  where n.replaces_id is not null
), cost as materialized (
  select c.run_id, sum(c.cost_usd) as cost_usd
  from millrace.attempt_costs(array(select r.id from run r where r.id is not null)) c
  group by c.run_id
), counted as (
  select r.pipeline, r.way, r.place,
    count(r.id) as runs,
    count(*) filter (where r.status = 'running') as running,
    count(*) filter (where r.status = 'completed') as completed,
    count(*) filter (where r.status = 'failed') as failed,
    percentile_cont(0.5) within group (order by r.seconds)
      filter (where r.status = 'completed') as median_seconds,
    percentile_cont(0.95) within group (order by r.seconds)
      filter (where r.status = 'completed') as p95_seconds,
    sum(c.cost_usd) as cost_usd
  from run r
  left join cost c on c.run_id = r.id
  group by r.pipeline, r.way, r.place
)
select pipeline, way, runs, running, completed, failed,
  round(completed::numeric / nullif(completed + failed, 0), 4) as success_share,
  round(median_seconds::numeric, 3) as median_seconds,
  round(p95_seconds::numeric, 3) as p95_seconds,
  cost_usd,
  round(cost_usd / nullif(runs, 0), 6) as cost_per_run
from counted
order by pipeline, place
$view$);

select pg_temp.put_view('millrace.operations', false, $view$
create or replace view millrace.operations as
select r.id as run_id, p.name as pipeline, r.entity_id, s.name as stage, s.kind,
  coalesce(a.state::text, 'pending') as state,
  case
    when a.state in ('completed', 'skipped') then 'complete'
    when a.state in ('queued', 'started', 'waiting') then 'in progress'
    when a.state in ('failed', 'cancelled') then 'failed'
    else 'not started'
  end as operation,
  r.status = 'running'
    and a.id is null
    and cardinality(vs.needs) = (
      select count(*)
      from millrace.attempts n
      where n.run_id = r.id
        and n.stage_id = any (vs.needs)
        and n.state in ('completed', 'skipped')
        and not n.superseded)
    and millrace.thresholds_hold(r.id, vs.after) as can_start,
  coalesce(a.state in ('queued', 'started', 'waiting', 'completed', 'skipped'), false)
    as is_started,
  coalesce(a.state in ('completed', 'skipped', 'failed', 'cancelled'), false) as is_done,
  coalesce(a.retry_count, 0) + coalesce((a.state = 'failed')::int, 0) as failures,
  coalesce((s.retry ->> 'max_attempts')::int, 3) as fails_after,
  a.id as attempt_id,
  coalesce(a.error ->> 'detail', a.error ->> 'message') as error
from millrace.runs r
join millrace.pipelines p on p.id = r.pipeline_id
join millrace.version_stages vs on vs.version_id = r.version_id
join millrace.stages s on s.id = vs.stage_id
left join lateral (
  select o.*
  from millrace.attempts o
  where o.run_id = r.id and o.stage_id = s.id and not o.superseded
  order by o.number desc
  limit 1) a on true
$view$);

select pg_temp.put_view('millrace.quotas', false, $view$
create or replace view millrace.quotas as
with used as (
  select u.pipeline_id, u.key, u.kind, sum(u.used) as used
  from millrace.quota_uses u
  where u.closes_at > millrace.now()
  group by u.pipeline_id, u.key, u.kind
), held as (
  select r.quota_of as pipeline_id, r.quota_key as key, substr(a.error ->> 'code', 7) as kind,
    count(*) as held, min(a.queue_at) as next_at
  from millrace.attempts a
  join millrace.runs r on r.id = a.run_id
  where a.held and a.queue_at is not null and a.state = 'queued'
  group by 1, 2, 3
)
select p.name as pipeline, key, kind,
  coalesce(u.used, 0) as used,
  coalesce(p.quota #>> array[kind, 'count'], p.quota #>> array[kind, 'usd'])::numeric as allowed,
  coalesce(h.held, 0) as held,
  h.next_at
from used u
full join held h using (pipeline_id, key, kind)
join millrace.pipelines p on p.id = pipeline_id
order by p.name, held desc, key, kind
$view$);

select pg_temp.put_view('millrace.status_moves', true, $view$
create or replace view millrace.status_moves as
select distinct p.name as pipeline, m.from_value, m.to_value, m.by, m.drawn, m.means
from millrace.pipelines p
join millrace.version_moves m on m.version_id = p.current_version_id and not m.retired
$view$);

select pg_temp.put_view('millrace.paused', false, $view$
create or replace view millrace.paused as
select
  p.name as pipeline,
  s.name as stage,
  format('select millrace.unpause(%s);',
    concat_ws(', ', quote_literal(p.name), quote_literal(s.name))) as remedy
from millrace.pipelines p
cross join lateral (
  select null::text as name, 0 as position
  where not p.enabled
  union all
  select t.name, vs.position
  from millrace.version_stages vs
  join millrace.stages t on t.id = vs.stage_id
  where vs.version_id = p.current_version_id
    and not t.enabled) s
order by p.name, s.position
$view$);

comment on function millrace.stage_columns_ddl(text, text) is
  'The statement that adds a stage''s seven columns to a table.';

comment on function millrace.attach(text) is
  'Writes the functions and triggers that tie a pipeline to its entity table. Call it again after '
  'adding columns to the table; define() does.';

comment on function millrace.cancel(bigint) is
  'running → cancelled: live attempts are cancelled, their tokens and jobs void, their columns '
  'failed with the error cancelled. Children are cancelled by the sweep, in batches.';

comment on function millrace.check_invariants() is
  'Proves that nothing is stuck or recorded twice: returns no row when all is well. One statement, '
  'hence one snapshot; safe in production.';

comment on function millrace.add_columns(regclass, text[]) is
  'Adds to a table the seven columns that the projection keeps for each of these stages.';

comment on function millrace.define(jsonb) is
  'Defines a pipeline or changes it, and returns the number of its current version. Calling it '
  'again with the same definition changes nothing.';

comment on function millrace.doctor() is
  'Checks the engine''s configuration and health, one line each with the remedy.';

comment on view millrace.done_attempts is
  'The attempt by which each stage of a run is done: completed or skipped, and not started over '
  'since.';

comment on function public.millrace_resume(json) is
  'The end of external jobs, by a verified callback or by polling: the first one wins. Items: '
  '{submission, stage, trace_id, service, job_id, outcome, result | error, usage}; stage and '
  'trace_id, where given, must be the attempt''s.';

revoke all on function public.millrace_resume(json) from public, anon, authenticated;

grant execute on function public.millrace_resume(json) to service_role;

comment on function public.millrace_poll(int, int) is
  'Takes waiting jobs whose poll is due. p_poll_ms overrides the stages'' own poll intervals. '
  'awaits_start: millrace_note_jobs() is to be told whether the job waits or runs.';

revoke all on function public.millrace_poll(int, int) from public, anon, authenticated;

grant execute on function public.millrace_poll(int, int) to service_role;

comment on function public.millrace_note_jobs(jsonb) is
  'What services say of jobs that have not ended: [{attempt, service, job_id, state}], state being '
  'queued or running. Where a stage''s deadline counts from the start, it does not run while the '
  'job is queued. noted: how many rows that changed.';

revoke all on function public.millrace_note_jobs(jsonb) from public, anon, authenticated;

grant execute on function public.millrace_note_jobs(jsonb) to service_role;

comment on view millrace.forgers is
  'Which roles of the Data API could write what only the engine should (results, figures and '
  'history of a status column, the lookup of its values), with the statements that leave them '
  'their own columns.';

comment on function public.millrace_job_owner(jsonb) is
  'Whose an external job is, and which Edge Function finishes it: {function, service, pipeline, '
  'stage, submission, trace_id, entity_id, ended}. By the stage that its metadata names, or by '
  '{job_id} alone; null when nobody waits for it. ended: what the job brings comes too late to '
  'count.';

revoke all on function public.millrace_job_owner(jsonb) from public, anon, authenticated;

grant execute on function public.millrace_job_owner(jsonb) to service_role;

comment on function public.millrace_note_faults(jsonb) is
  'What went wrong with jobs that attempts wait for: [{submission, service, job_id, code, '
  'message}]; a null code says that it is over. Shown by the timeline, doctor() and millrace.log; '
  'noted: how many attempts that changed.';

revoke all on function public.millrace_note_faults(jsonb) from public, anon, authenticated;

grant execute on function public.millrace_note_faults(jsonb) to service_role;

comment on function millrace.metadata_of(bigint) is
  'What the metadata column of a run''s row (a child''s: of its parent''s) held when it started.';

comment on function millrace.prune() is
  'Deletes finished runs older than retention_days, for about two seconds a call, old log lines '
  'and alerts, and the engine''s own rows of cron.job_run_details. When there is more, pg_cron '
  'goes on until it is done.';

comment on function millrace.engine() is
  'Which Millrace this database has: its level, its release, and the contracts that it speaks, the '
  'newest first.';

comment on view millrace.dead_letters is
  'What is exhausted or failed for good. Where can_retry is true, try again with '
  'millrace.retry(run) or millrace.replay(pipeline, condition).';

comment on column millrace.dead_letters.can_retry is
  'Whether retry() and replay() take it: not where its entity has a later run, nor a child whose '
  'parent has given it up, which goes on with its parent.';

comment on function millrace.replay(text, jsonb, boolean) is
  'Retries the dead letters of a pipeline that can be retried and meet a condition {stage, '
  'error_code, failed_since, failed_before, limit}. Counts only, unless p_dry_run is false.';

comment on function millrace.retry(bigint, text) is
  'Replays a dead letter: a failed or cancelled stage of a finished run is queued again with a '
  'fresh allowance of attempts, and with it what was cancelled beside it.';

comment on function public.millrace_claim(text, text, uuid, uuid, int, int) is
  'A worker''s claim of up to p_limit attempts. The first call signs the worker on.';

revoke all on function public.millrace_claim(text, text, uuid, uuid, int, int)
  from public, anon, authenticated;

grant execute on function public.millrace_claim(text, text, uuid, uuid, int, int) to service_role;

comment on function public.millrace_complete(uuid, int, json, int) is
  'Records what became of a worker''s attempts (each with its token) and claims the next p_limit '
  'in the same transaction.';

revoke all on function public.millrace_complete(uuid, int, json, int)
  from public, anon, authenticated;

grant execute on function public.millrace_complete(uuid, int, json, int) to service_role;

comment on function public.millrace_renew(uuid, bigint[]) is
  'Heartbeat of a worker: renews all its leases. Of the attempts it names as still running, "lost" '
  'lists those that are no longer its own.';

revoke all on function public.millrace_renew(uuid, bigint[]) from public, anon, authenticated;

grant execute on function public.millrace_renew(uuid, bigint[]) to service_role;

comment on function public.millrace_leave(uuid, boolean) is
  'Signs a worker off, unless work has come meanwhile: then left is false and it should claim '
  'again. With p_hand_over it always leaves, and "wake" names its own stage if work is left there.';

revoke all on function public.millrace_leave(uuid, boolean) from public, anon, authenticated;

grant execute on function public.millrace_leave(uuid, boolean) to service_role;

comment on view millrace.schedules is
  'The jobs that pg_cron must have at any time; those that come and go are not among them.';

select cron.schedule(j.name, j.schedule, j.command)
from millrace.schedules j;

-- Nobody but the owner calls into the schema; each file says by name who calls the public functions
-- that it makes.
revoke all on all functions in schema millrace from public;

notify pgrst, 'reload schema';

comment on function millrace.setting(text) is
  'Value of a setting: Vault''s millrace_<name>, else millrace.settings, else null.';

comment on function millrace.start(text, text, text, int, boolean) is
  'Starts a run of an entity, at the first stage or the one named, and returns it. A stage that is '
  'named begins whatever its own condition says. A run that is '
  'under way is returned as it is; with p_restart it starts over from that stage. '
  'p_priority (0 to 9) counts at stages that declare priority.';

comment on function millrace.sweep() is
  'Makes good what got lost: expired leases, passed deadlines, due retries and unheard wake-ups; '
  'starts runs of rows that are due; raises alerts. Harmless at any time.';

comment on function public.millrace_sweep() is
  'Sweeps if the last sweep is over a minute old and nobody else does so now.';

revoke all on function public.millrace_sweep() from public, anon, authenticated;

grant execute on function public.millrace_sweep() to service_role;

comment on function public.millrace_wake(jsonb) is
  'Asks the database to wake stages that a worker could not reach itself.';

revoke all on function public.millrace_wake(jsonb) from public, anon, authenticated;

grant execute on function public.millrace_wake(jsonb) to service_role;

comment on view millrace.queue_depth is
  'How much is queued at each stage, from the queue''s own index.';

comment on view millrace.stage_health is
  'One row a stage: what is ready, in work, waiting and failed, the oldest open attempt''s age, '
  'live workers, retries, and how many runs are late: longer at the stage than its bound, sla.';

comment on view millrace.job_outcomes is
  'One row a stage with external jobs: how many ended in the last hour (the last 1,000 at most), '
  'how many of them completed, and how many passed their deadline.';

comment on function millrace.timeline(bigint) is
  'Every attempt of a run in order, with times, errors, tokens and cost.';

comment on function millrace.begin(text, text, int) is
  'Begins up to so many rows that wait at the value by which a layer is entered, since they were '
  'adopted so; returns how many. Each begins at the layer''s first stage that it does not bring '
  'along.';

comment on function millrace.adopt(text, text, text, boolean, text, int) is
  'Gives rows that were there before the pipeline a value of its status column, as a function of '
  'yours says. The dry run, the default, tells for each old value how many rows there are, where '
  'they come to stand, which stage begins, and which lack what a stage before that makes. Without '
  'it each call adopts a portion and tells of that; repeat it until it returns no row.';

comment on view millrace.agent_log is
  'The conversations of agents, one row a turn: what the model said or called, and what its tools '
  'answered.';

comment on view millrace.agent_executions is
  'What each conversation of an agent has used up so far, over all attempts of its execution.';

comment on function public.millrace_checkpoint(uuid, bigint, uuid, jsonb) is
  'Records turns {seq, kind, call_id, content, usage} of an agent''s started attempt under its '
  'token, and renews its worker''s heartbeat and leases. The status is accepted, duplicate (these '
  'numbers are taken, the first ones stay), stale or busy.';

revoke all on function public.millrace_checkpoint(uuid, bigint, uuid, jsonb)
  from public, anon, authenticated;

grant execute on function public.millrace_checkpoint(uuid, bigint, uuid, jsonb) to service_role;

comment on function public.millrace_turns(uuid, bigint, uuid) is
  'What an agent''s attempt goes on from: the turns of its execution, the stage''s limits of '
  'today, and the milliseconds since the execution began (waits between retries included). The '
  'status is current or stale.';

revoke all on function public.millrace_turns(uuid, bigint, uuid)
  from public, anon, authenticated;

grant execute on function public.millrace_turns(uuid, bigint, uuid) to service_role;

comment on function public.millrace_decide(bigint, jsonb) is
  'A person''s decision on a manual stage: checked against its schema, recorded, and the run goes '
  'on, all in one transaction. Answers {attempt, verdict: accepted | duplicate}. Needs a policy '
  'for select and update on public.millrace_decisions.';

revoke all on function public.millrace_decide(bigint, jsonb)
  from public, anon, authenticated, service_role;

grant execute on function public.millrace_decide(bigint, jsonb) to authenticated, service_role;

comment on function public.millrace_collect_children(bigint[]) is
  'Collects the children of fan-outs that have reported. busy: fan-outs whose parent somebody '
  'holds; collect: fan-outs, further up, whose children have reported now.';

revoke all on function public.millrace_collect_children(bigint[])
  from public, anon, authenticated;

grant execute on function public.millrace_collect_children(bigint[]) to service_role;

comment on function millrace.cost_of(bigint) is
  'What a run has cost so far in US dollars: all of its attempts, failed ones too, and those of '
  'its descendants. Null where none named a price.';

comment on function millrace.stage_costs(bigint) is
  'What each stage of a run has cost so far in US dollars, its children counted to it, and how '
  'many attempts of its own it has.';

comment on function millrace_evidence.entity_costs(text, text[]) is
  'What all runs of these rows through a pipeline have cost in US dollars, their descendants '
  'included. Null where nobody named a price.';

revoke all on function millrace_evidence.entity_costs(text, text[]) from public, anon;

grant execute on function millrace_evidence.entity_costs(text, text[])
  to authenticated, service_role;

comment on view millrace.cut_over_report is
  'Both ways of each cut-over side by side, over all runs that are kept and began at the first '
  'stage: how many, how they ended, how long the completed ones took from start to end, what they '
  'cost with all their descendants.';

comment on function millrace.set_cut_over(text, text, numeric, text[]) is
  'Sets the flag of a pipeline that replaces another: off, share (of entities, by a stable hash), '
  'groups (by the metadata), on, or default (the setting use_new_pipeline). What is under way '
  'stays where it is.';

comment on function millrace.cut_over_way(text, text) is
  'Which way (new or old) a row goes if it is queued at the first stage now, and why.';

comment on view millrace.operations is
  'Each stage of each run: can it start, is it started, is it done (complete, or failed for good), '
  'how often has it failed. Ask for one run: where run_id = …';

comment on view millrace.quotas is
  'What each tenant has used of its quota in the present window, of what is allowed, and how many '
  'attempts are held back for it.';

comment on function millrace.reset(bigint, text) is
  'Puts a stage and all that depends on it, or the whole run, back to pending and goes on from '
  'there: also in a run that is over. What they had is kept as history; children of a map that is '
  'reset are cancelled and spawned anew.';

comment on function millrace.reset_children(bigint, text) is
  'Lets the failed and cancelled children of a map or pipeline stage go on, each from where it '
  'failed. A stage that was over waits for them again, and the stages that need it start over; one '
  'that had begun by a threshold stays. Returns how many children.';

comment on function public.millrace_spawn(uuid, bigint, uuid, jsonb, boolean) is
  'Starts the runs of children for a chunk of items {key, …} of a map attempt; p_last closes the '
  'total. Idempotent by key. busy: rows that somebody holds, to be sent again.';

revoke all on function public.millrace_spawn(uuid, bigint, uuid, jsonb, boolean)
  from public, anon, authenticated;

grant execute on function public.millrace_spawn(uuid, bigint, uuid, jsonb, boolean) to service_role;

comment on function millrace.start_stage(bigint, text) is
  'Starts a pending stage whose needs are done, without waiting for its thresholds.';

comment on function millrace.complete_stage(bigint, text, jsonb) is
  'Completes a queued, started or waiting stage with a result given by hand.';

comment on function millrace.fail_stage(bigint, text, text, boolean) is
  'Fails a queued, started or waiting stage by hand; it is retried as its policy says, unless '
  'permanent.';

comment on function millrace.skip(bigint, text) is
  'Goes on without a stage: one that is queued, started, waiting, failed, cancelled, or held back '
  'by a threshold. Its result is null to those that need it.';

comment on view millrace.status_moves is
  'Which value of a status column may follow which: by the engine as work goes on, by a person who '
  'writes it, or by a call such as start(). from_value is null for a new row. Intake judges by the '
  'same rows.';

comment on function millrace.prioritise(bigint, int) is
  'Gives a running run a priority from 0 (normal) to 9 (first), for its stages that declare '
  'priority; what is queued moves too.';

comment on function millrace.pause(text, text) is
  'Stops a pipeline, or one stage, from handing out work. What is in work goes on, and what comes '
  'in waits.';

comment on view millrace.paused is
  'What is paused, with the statement that lets it go on: a pipeline (stage is null), or one of '
  'its stages by itself.';

comment on function millrace.unpause(text, text) is
  'Lets a paused pipeline, or one stage, hand out work again, and wakes it where some is ready. A '
  'stage paused by itself stays so when its pipeline goes on: the answer names what is still '
  'paused.';

-- Drops what attach() of the level before has written, but for the functions of triggers, and has
-- attach() of this level write it.
do $attach$
declare
  v_function regprocedure;
  v_pipeline text;
begin
  for v_function in
    select f.oid
    from pg_proc f
    where f.pronamespace = 'millrace'::regnamespace
      and f.prorettype <> 'trigger'::regtype
      and (f.proname = any (array[
      'lock_entities', 'rows_of_entities', 'sizes_of_entities', 'metadata_of_entities',
      'project_entities', 'quota_keys', 'keys_of_entities'
    ]::text[])
        or exists (
          select
          from millrace.pipelines p
          where f.proname ^@ (p.name || '__')))
      and f.oid <> all (array(
        select to_regprocedure(s)::oid
        from unnest(array[
      'millrace.now()', 'millrace.stage_columns(text)',
      'millrace.stage_columns_ddl(text, text)',
      'millrace.check_status_words(regclass, text[])', 'millrace.check_table(regclass)',
      'millrace.check_key(millrace.pipelines)',
      'millrace.check_columns(millrace.pipelines, text[])',
      'millrace.check_projected(millrace.pipelines, text[])',
      'millrace.has_columns(millrace.pipelines, text)',
      'millrace.written_rows(millrace.pipelines, text, text[], text[], text)',
      'millrace.intake_body(millrace.pipelines, text, text, text)',
      'millrace.write_intake(millrace.pipelines, text)',
      'millrace.projection_branch(millrace.pipelines, int4, text)',
      'millrace.dirty_condition(text, text, bool)',
      'millrace.write_by_stage(text, text, text)',
      'millrace.write_projection(millrace.pipelines, text)',
      'millrace.size_expression(regclass, name[], bool)',
      'millrace.write_rows(millrace.pipelines, text, text[])',
      'millrace.write_lock(millrace.pipelines, text)',
      'millrace.write_metadata(millrace.pipelines, text)',
      'millrace.write_row_triggers(millrace.pipelines)',
      'millrace.detach_old(millrace.pipelines)', 'millrace.key_type(millrace.pipelines)',
      'millrace.branches(int4[], text[])',
      'millrace.write_way(text, text, int4[], text[], text)', 'millrace.write_dispatch()',
      'millrace.write_project_entities(int4[], text[])', 'millrace.attach(text)',
      'millrace.latest_version(int4)',
      'millrace.batch_of(millrace.stages, uuid, millrace.claimed[], text[], int8, millrace.built[])',
      'millrace.measured_rows(millrace.stages, millrace.claimed[], text[], int8)',
      'millrace.built_row(millrace.stages, millrace.claimed)',
      'millrace.fill_batch(millrace.stages, uuid, millrace.claimed[], text[], int8)',
      'millrace.held_batch(millrace.stages, uuid, int8[], int8)',
      'millrace.needs_of(int8, int4, int4, int8)', 'millrace.size_of_needs(int8, int4, int4)',
      'millrace.hold_runs(int8[])', 'millrace.cancel(int8)',
      'millrace.check_dropped_stages(int4, jsonb)',
      'millrace.check_counted_stages(int4, jsonb)',
      'millrace.check_moved(text, regclass, text)',
      'millrace.check_parents(text, regclass, text)',
      'millrace.check_changed_kinds(int4, jsonb)',
      'millrace.check_changed_children(int4, jsonb)',
      'millrace.refuse_value(jsonb, text[], text, text)', 'millrace.table_named(text)',
      'millrace.function_named(text, text)', 'millrace.has_column(jsonb, text)',
      'millrace.check_shape(jsonb)', 'millrace.check_needs(jsonb, text[])',
      'millrace.check_stage(jsonb, text[], jsonb)', 'millrace.edges_to(jsonb)',
      'millrace.order_stages(jsonb)', 'millrace.check_entity(jsonb)',
      'millrace.check_definition(jsonb)',
      'millrace.stale_reason(millrace.attempt_state, jsonb)',
      'millrace.verdict_on_end(millrace.attempts, millrace.work, bool, bool)',
      'millrace.verdict_on_report(millrace.attempts, millrace.work, text)',
      'millrace.check_fencing(millrace.work[], int8[], int4[])',
      'millrace.size_fault(millrace.work, millrace.stages)',
      'millrace.verdict_of(millrace.work[], millrace.work, millrace.attempts, text, bool, bool, bool, bool, bool)',
      'millrace.lock_uniform_batch(millrace.work[])', 'millrace.verdicts_of(millrace.work[])',
      'millrace.record_items(millrace.work[])', 'millrace.run_faults()',
      'millrace.attempt_faults()', 'millrace.job_faults()', 'millrace.stage_faults()',
      'millrace.check_invariants()', 'millrace.alive_since()', 'millrace.live_workers(int4)',
      'millrace.has_ready_work(int4)', 'millrace.may_scale_out(millrace.stages)',
      'millrace.claim(millrace.stages, uuid, uuid, int4)',
      'millrace.drop_claims(uuid, uuid, int4)',
      'millrace.project_started(millrace.stages, text[])', 'millrace.held_items(uuid, int8[])',
      'millrace.give_back(millrace.stages, uuid, int8[], int8[])',
      'millrace.advance(int4, int8[], bool)', 'millrace.advance_each(int4, int8[])',
      'millrace.finish_runs(int4, int8[])', 'millrace.complete(int4, millrace.work[], int4)',
      'millrace.close_completed(millrace.work[], timestamptz, bool, text[], millrace.ready[])',
      'millrace.apply_results(int4, millrace.work[])',
      'millrace.change_of(text, text, text, text, timestamptz, timestamptz)',
      'millrace.work_on(millrace.attempts, text, text, jsonb, jsonb, int4)',
      'millrace.limits_of(jsonb)', 'millrace.deadline_of(jsonb)',
      'millrace.save_stages(int4, jsonb)', 'millrace.switch_stages(int4, jsonb)',
      'millrace.graph_of(jsonb)', 'millrace.after_of(int4, jsonb)',
      'millrace.save_version_stages(int4, int4, jsonb)', 'millrace.note_awaited(int4)',
      'millrace.save_version(int4, jsonb)', 'millrace.add_columns(regclass, text[])',
      'millrace.save_pipeline(jsonb, regclass)', 'millrace.define(jsonb)',
      'millrace.definition_schema()', 'millrace.setting_findings()',
      'millrace.doorbell_findings()', 'millrace.ready_work_finding()',
      'millrace.fault_of(text)', 'millrace.pipeline_findings()', 'millrace.time_findings()',
      'millrace.doctor()', 'millrace.wake_headers()', 'millrace.wake_secret_remedy()',
      'millrace.post(text, jsonb)', 'millrace.last_answers(int4)',
      'millrace.successor_of(millrace.attempts)',
      'millrace.address_ends(millrace.work[], int8[])',
      'millrace.record_ends(millrace.work[])', 'public.millrace_resume(json)',
      'public.millrace_poll(int4, int4)', 'millrace.check_job_states(jsonb)',
      'public.millrace_note_jobs(jsonb)', 'millrace.owner_message(jsonb, int8)',
      'millrace.backoff_seconds(jsonb, int4)', 'millrace.retry_due(int4, jsonb, int4)',
      'millrace.close_failed(millrace.work[])', 'millrace.fail(int4, millrace.work[])',
      'millrace.end_runs(int8[], millrace.run_status)',
      'millrace.on_status_written(int4, text, text, text[], text[])',
      'millrace.forget(int4, text[])', 'millrace.delete_runs(int8[])',
      'millrace.write_entities(int4, text, text, millrace.change[], text[], text[])',
      'millrace.attempt_of_job(text)', 'public.millrace_job_owner(jsonb)',
      'public.millrace_note_faults(jsonb)', 'millrace.note_on_attempts(jsonb)',
      'millrace.faulty_jobs()', 'millrace.writes_entities(int4)',
      'millrace.lock_attempts(int8[])', 'millrace.report(text, text, text, jsonb)',
      'millrace.error_kind(text, text)',
      'millrace.report_caught(text, text, text, text, jsonb)',
      'millrace.copy_metadata(int4, text[])', 'millrace.refuse_metadata(text[])',
      'millrace.metadata_of(int8)', 'millrace.sweep_metadata(int4)',
      'millrace.metadata_faults()', 'millrace.copy_earlier_results(int8[], int4[])',
      'millrace.is_only_root(millrace.version_stages)',
      'millrace.new_runs(int4, text[], int4, int4)',
      'millrace.refuse_missing_needs(int8[], int4)',
      'millrace.enqueue_stage(int8[], int4, bool)',
      'millrace.start_sibling_branches(int4, int4, int8[])',
      'millrace.apply_outcomes(millrace.work[], int4)',
      'millrace.late_attempts(millrace.work[])', 'millrace.mark_late(millrace.work[], int8[])',
      'millrace.without_late(millrace.work[], millrace.work[])',
      'millrace.put_off(millrace.work[], text)',
      'millrace.report_passed_over(text, text, text, text)',
      'millrace.apply_outcomes_unprojected(millrace.work[])',
      'millrace.apply_outcomes_in_halves(millrace.work[], timestamptz, bool)',
      'millrace.apply_outcomes_guarded(millrace.work[], int4, timestamptz)',
      'millrace.storable_item(json)', 'millrace.items_of(json)',
      'millrace.item_fault(jsonb, text, int8)', 'millrace.parse_items(json, text)',
      'millrace.lock_prunable(timestamptz, int8, int4)', 'millrace.prune_runs(int8[])',
      'millrace.prune()', 'millrace.project_queued(int4, int4, int4[], text[])',
      'millrace.supersede(int8[], int4[])', 'millrace.start_over(int8[], int4, bool)',
      'millrace.show_new_runs(int4, int4, int8[], text[])',
      'millrace.queue_here(int4, int4, text[], text[], bool, int4)',
      'millrace.queue_stage(int4, int4, text[], text[], bool, int4)', 'millrace.contracts()',
      'millrace.engine()', 'millrace.refuse_contract()',
      'millrace.check_condition(text, jsonb)', 'millrace.replay(text, jsonb, bool)',
      'millrace.is_latest_run(int8)', 'millrace.is_last_word(millrace.attempts)',
      'millrace.name_parents(int4, int8[])', 'millrace.retry_stage(int4, text, int8[])',
      'millrace.retry_runs(int8[])', 'millrace.refuse_orphan(millrace.runs)',
      'millrace.retry(int8, text)', 'millrace.row_faults()',
      'public.millrace_claim(text, text, uuid, uuid, int4, int4)',
      'public.millrace_complete(uuid, int4, json, int4)',
      'public.millrace_renew(uuid, int8[])', 'public.millrace_leave(uuid, bool)',
      'millrace.must_stay(millrace.workers)', 'millrace.schedule_polls()',
      'millrace.wake_job_poll()', 'millrace.check_setting()', 'millrace.setting(text)',
      'millrace.batch_bytes(text)', 'millrace.batch_bytes()', 'millrace.ways_of(int4)',
      'millrace.first_stage(int4)', 'millrace.begins_runs(int4, int4)',
      'millrace.lock_rows_named(millrace.pipelines, text[], bool)',
      'millrace.run_under_way(int4, int4, text)',
      'millrace.start(text, text, text, int4, bool)', 'millrace.fail_overdue(int8[])',
      'millrace.sweep_deadlines(int4, int4)', 'millrace.fail_lost(int8[])',
      'millrace.sweep_leases(int4, int4)', 'millrace.sweep_pipeline(int4)',
      'millrace.sweep_features()', 'millrace.forget_leftovers()', 'millrace.sweep()',
      'public.millrace_sweep()', 'millrace.project(int4, millrace.change[])',
      'millrace.wait(int4, millrace.work[])', 'millrace.release(int4, millrace.work[])',
      'millrace.fail_tired(int4, millrace.work[])', 'millrace.cancel_attempts(int8[], int4[])',
      'millrace.project_cancelled(millrace.cancelled[])',
      'millrace.stages_to_wake(int4[], int4)', 'millrace.wake_list(int4[])',
      'millrace.wake(int4[])', 'public.millrace_wake(jsonb)', 'millrace.timeline(int8)',
      'millrace.stage_named(text, text)', 'millrace.call_of(millrace.workers, int4)',
      'millrace.claim_answer(millrace.call, text, text, json, int4[], json, int4, bool)',
      'millrace.sweep_due(text)', 'millrace.sweep_due()',
      'millrace.claim_allowed(millrace.call, int4, bool)',
      'millrace.claim_next(millrace.call, int4, int4, json, int4[])',
      'millrace.repeat_answer(millrace.call, json)', 'millrace.followers_with_work(int4)',
      'millrace.answer_in_sequence(millrace.call, int4, int4, json, int4[])',
      'millrace.clear_the_way(millrace.fan_outs, text[])',
      'millrace.adopt_runs(millrace.fan_outs, text[], text[])',
      'millrace.add_child_runs(millrace.fan_outs, text[], text[])',
      'millrace.add_children(millrace.fan_outs, text[], text[])',
      'millrace.lock_waiting(millrace.pipelines, text, int4)',
      'millrace.begin(text, text, int4)', 'millrace.old_means(int4, text, text)',
      'millrace.old_value_of(int4, text)', 'millrace.value_meant(int4, text, text)',
      'millrace.write_follower(millrace.pipelines, text, text)',
      'millrace.begin_adoption(millrace.pipelines, text, text, text)',
      'millrace.take_unadopted(millrace.pipelines, text, millrace.adoptions, int4)',
      'millrace.write_adopted(millrace.pipelines, text, text[], text[], text[])',
      'millrace.begin_adopted(millrace.pipelines, text[], int4[])',
      'millrace.adopt_portion(millrace.pipelines, text, int4)',
      'millrace.next_unadopted(millrace.pipelines, text, int4)',
      'millrace.end_adoption(millrace.pipelines)', 'millrace.landings(int4)',
      'millrace.value_call(millrace.pipelines, text, text, text)',
      'millrace.given_expressions(millrace.pipelines)',
      'millrace.stages_lacking(millrace.pipelines, text, jsonb)',
      'millrace.count_unadopted(millrace.pipelines, text, text, text)',
      'millrace.adopting_pipeline(text)', 'millrace.adopt(text, text, text, bool, text, int4)',
      'millrace.check_turns(jsonb)', 'millrace.turn_fault(jsonb, text, int8)',
      'millrace.void_reason(millrace.attempts, uuid)',
      'millrace.append_turns(millrace.attempts, jsonb)',
      'public.millrace_checkpoint(uuid, int8, uuid, jsonb)',
      'public.millrace_turns(uuid, int8, uuid)', 'millrace.drop_turns(millrace.stages, json)',
      'millrace.execution_began(int8, int4, int4)', 'millrace.follow_bound(int4, int4)',
      'millrace.follow_bounds()', 'millrace.in_words(interval)', 'millrace.still_late(int8[])',
      'millrace.late_runs(int4)', 'millrace.raise_alerts(int4)',
      'millrace.resolve_alerts(int4)', 'millrace.sweep_alerts()',
      'millrace.forget_alerts(int8[])', 'millrace.prune_alerts(timestamptz)',
      'millrace.check_answer()', 'millrace.outcomes_of_answers(int8[])',
      'millrace.take_answers()', 'millrace.apply_decisions()',
      'public.millrace_decide(int8, jsonb)', 'millrace.begin_stage(int4, int8[], bool)',
      'millrace.runs_to_skip(int4, int8[], bool)', 'millrace.why_unmet()',
      'millrace.begin_open(int8[])', 'millrace.advance_others(int4, int8[])',
      'millrace.begin_followers(int4, int8[])', 'millrace.skip_stage(int4, int8[], jsonb)',
      'millrace.add_skipped(int4, int8[], jsonb)',
      'millrace.continue_after_skip(int4, int8[])', 'millrace.skip_failed_stage(int4, int8[])',
      'millrace.abandon_fan_outs(int8[], int4[])', 'millrace.cancel_given_up(int4, text[])',
      'millrace.cancel_held(int8[], timestamptz)', 'millrace.cancel_children(int4)',
      'millrace.item_numbers(text[])', 'millrace.check_items(jsonb)',
      'millrace.check_numbers(millrace.fan_outs, text[])',
      'millrace.check_rows_exist(millrace.pipelines, text[], text[])',
      'millrace.check_rows_differ(millrace.fan_outs, text[], text[])',
      'millrace.check_inserted(regprocedure, jsonb, text[], text[])',
      'millrace.check_back_pressure(jsonb, jsonb)', 'millrace.check_limits(jsonb, jsonb)',
      'millrace.check_quota(jsonb)', 'millrace.check_conditions(jsonb, jsonb)',
      'millrace.check_predicate(jsonb, jsonb, text[], text[])',
      'millrace.check_condition_path(jsonb, text[], text[])', 'millrace.paths_of(jsonpath)',
      'millrace.stage_with_column(jsonb, text)',
      'millrace.check_condition_names(jsonb, jsonb, text[], text[])',
      'millrace.check_on_demand(jsonb, jsonb)', 'millrace.check_ends(jsonb)',
      'millrace.check_thresholds(jsonb, jsonb)', 'millrace.contains_pipeline(int4, text)',
      'millrace.check_child(jsonb, jsonb)', 'millrace.stages_after(text, jsonb)',
      'millrace.check_rival(jsonb, jsonb)', 'millrace.check_fan_in(jsonb)',
      'millrace.take_from_groups(millrace.stages, text[], int4, uuid, timestamptz)',
      'millrace.take_isolated(millrace.stages, bool, uuid, timestamptz)',
      'millrace.take_by_turns(millrace.stages, uuid, int4, uuid, timestamptz, int8)',
      'millrace.claim_groups(millrace.stages, uuid, uuid, int4, millrace.limiters)',
      'millrace.limit_faults()', 'millrace.consume_child_tallies(int8)',
      'millrace.recount_children(int8)', 'millrace.hold_fan_out(int8)',
      'millrace.collect_children(int8)', 'public.millrace_collect_children(int8[])',
      'millrace.parents_to_collect(int8[])', 'millrace.is_done(int8, int4)',
      'millrace.running_of(int8[])', 'millrace.thresholds_hold(int8, jsonb)',
      'millrace.open_runs(int4, int8[])', 'millrace.runs_to_begin(int4, int8[])',
      'millrace.unmet_runs(int4, int8[])', 'millrace.attempt_costs(int8[])',
      'millrace.keep_costs(int8[])', 'millrace.cost_of(int8)', 'millrace.stage_costs(int8)',
      'millrace_evidence.entity_costs(text, text[])', 'millrace.use_new_pipeline()',
      'millrace.share_of(text)', 'millrace.new_way_ids(millrace.pipelines, text[])',
      'millrace.replacing_pipeline(text)',
      'millrace.check_flag(millrace.pipelines, text, numeric, text[])',
      'millrace.set_cut_over(text, text, numeric, text[])',
      'millrace.key_of_row(millrace.pipelines, text)', 'millrace.cut_over_way(text, text)',
      'millrace.queue_one_way(int4, int4, int4, text[], text[], bool)',
      'millrace.must_see_both_ways(int4[])',
      'millrace.refuse_other_way(int4, int4, int4, text[])',
      'millrace.clear_entities(int4, text[])', 'millrace.open_decisions(int4, int8[])',
      'millrace.why_undecided(millrace.attempt_state, jsonb)', 'millrace.close_held(int8[])',
      'millrace.close_decisions(int4)', 'millrace.forget_decisions(int8[])',
      'millrace.prune_decisions()', 'millrace.check_replaces(jsonb)',
      'millrace.check_untied(millrace.pipelines, text)',
      'millrace.check_replaced(text, regclass, text)', 'millrace.save_cut_over(int4, jsonb)',
      'millrace.check_due(jsonb)', 'millrace.missing_due_index(millrace.pipelines)',
      'millrace.save_due(int4, jsonb)', 'millrace.is_rested(int4[], text)',
      'millrace.due_rows(millrace.pipelines, timestamptz, text, int4)',
      'millrace.lock_due(millrace.pipelines, text[])',
      'millrace.start_held(millrace.pipelines, int4, text[], timestamptz)',
      'millrace.next_due(millrace.pipelines, millrace.due_progress)',
      'millrace.start_due_runs(millrace.pipelines)', 'millrace.start_due()',
      'millrace.due_findings()', 'millrace.save_endings(int4, int4, jsonb)',
      'millrace.complete_or_end(int4, millrace.work[])',
      'millrace.endings_of(int4, millrace.work[])',
      'millrace.complete_and_end(int4, millrace.work[], int8[], text[])',
      'millrace.skip_the_rest(int8[])', 'millrace.tally_done(int4[], int8[])',
      'millrace.show_skipped_rest(int4, int8[])', 'millrace.take_ending_back(millrace.runs)',
      'millrace.ending_faults()', 'millrace.child_failure(millrace.fan_outs)',
      'millrace.fan_in_verdict(millrace.fan_outs, jsonb, timestamptz)',
      'millrace.fan_in_output(millrace.fan_outs, text)',
      'millrace.leave_children(millrace.stages, int8[])',
      'millrace.join_children(millrace.fan_outs)', 'millrace.fan_out_faults()',
      'millrace.note_given(int4, int8[])', 'millrace.note_done_before(int8[], int4)',
      'millrace.given_runs(int4, int8[])', 'millrace.skip_given_needs(int8[], int4)',
      'millrace.why_given()', 'millrace.forget_given(int8[], int4[])',
      'millrace.remember_begun(int8[])', 'millrace.forget_begun(int4, text[])',
      'millrace.groups_with_arrivals(int4, text, int4)',
      'millrace.read_arrivals(int4, text[], int4, int8, timestamptz)',
      'millrace.admit_arrivals(int4, millrace.limiters, int4)',
      'millrace.end_turns(millrace.stages, text[], text[], int8, timestamptz)',
      'millrace.give_back_turns(millrace.stages, int8[], int8[])',
      'millrace.hold_back(millrace.stages, millrace.payer, text, int8[])',
      'millrace.due_of_payer(millrace.stages, millrace.payer, bool)',
      'millrace.put_back(millrace.stages, int8[], timestamptz, jsonb)',
      'millrace.hold_message(jsonb, text, timestamptz)',
      'millrace.show_held(millrace.stages, int8[])',
      'millrace.show_going(millrace.stages, int8[])',
      'millrace.let_go(millrace.pipelines, int4)', 'millrace.sweep_quotas()',
      'millrace.free_slots(int8[])', 'millrace.wakes_for_freed(int8[])',
      'millrace.note_in_flight(millrace.stages, int8[], text[], uuid, uuid)',
      'millrace.count_attempts(millrace.stages, int4)',
      'millrace.check_slots(int4, uuid, int8)', 'millrace.free_of_key(millrace.stages, text)',
      'millrace.inherit_place(int8[])', 'millrace.json_path(text, text)',
      'millrace.short_json(jsonb)', 'millrace.resolve_ref(jsonb, jsonb)',
      'millrace.alternative_for(jsonb, jsonb)', 'millrace.wanted_by(jsonb)',
      'millrace.value_fault(jsonb, jsonb)', 'millrace.scalar_fault(jsonb, jsonb)',
      'millrace.fault_of(jsonb, text, text, bool)',
      'millrace.object_fault(jsonb, jsonb, jsonb, text)',
      'millrace.kind_fault(jsonb, jsonb, jsonb, text)',
      'millrace.array_fault(jsonb, jsonb, jsonb, text)',
      'millrace.find_fault(jsonb, jsonb, jsonb, text, bool)',
      'millrace.schema_fault(jsonb, jsonb, text)',
      'millrace.with_defaults(jsonb, jsonb, jsonb)',
      'millrace.refuse_schema(text, jsonb, text, text)',
      'millrace.check_schema_bounds(jsonb, text, text, text, bool)',
      'millrace.check_schema_pattern(jsonb, text)',
      'millrace.check_schema_object(jsonb, text)',
      'millrace.check_schema_keywords(jsonb, text)', 'millrace.check_json_schema(jsonb, text)',
      'millrace.keep_to_quotas(millrace.stages, uuid, int8[])',
      'millrace.keep_to_quota(millrace.stages, millrace.payer, int8[])',
      'millrace.charge_starts(millrace.stages, millrace.payer, int8[])',
      'millrace.pass_limiter(int4, bool)', 'millrace.tokens_of(jsonb, millrace.limiters)',
      'millrace.room_at(millrace.stages, millrace.limiters, int4)',
      'millrace.is_pressed_back(millrace.stages)', 'millrace.may_claim(millrace.stages)',
      'millrace.lock_limiters(text)',
      'millrace.claim_limited(millrace.stages, uuid, uuid, int4, bool)',
      'millrace.save_limiter(millrace.stages, millrace.limiters, int4)',
      'millrace.give_back_limits(millrace.stages, int8[], int8[])',
      'millrace.sweep_limits(int4)', 'millrace.undemanded_runs(int4, int8[])',
      'millrace.why_undemanded()', 'millrace.was_left_out(jsonb)',
      'millrace.hold_stage(int8, text, bool)', 'millrace.state_of(int8, int4)',
      'millrace.refuse_operation(int8, text, text, text, text)',
      'millrace.supersede(int8, int4[])', 'millrace.reopen_run(millrace.runs, int4[])',
      'millrace.count_consecutive(millrace.fan_outs, int4, int4)',
      'millrace.pass_thresholds(millrace.fan_outs)',
      'millrace.pass_thresholds_guarded(millrace.fan_outs)',
      'millrace.queue_attempts(int4, int8[])',
      'millrace.show_stage(int4, int8[], text, timestamptz, text)',
      'millrace.show_queued(int4, int8[])', 'millrace.window_end(jsonb, text)',
      'millrace.used_by(millrace.payer, text)', 'millrace.note_spending(millrace.work[])',
      'millrace.sum_uses(int4)', 'millrace.save_quota(int4, jsonb)',
      'millrace.attach_quota(millrace.pipelines, text)', 'millrace.name_payers(int4, int8[])',
      'millrace.inherit_quotas(int8[])', 'millrace.note_starts(int8[], timestamptz)',
      'millrace.clear_stages(millrace.runs, int4[])', 'millrace.reset(int8, text)',
      'millrace.needing(int4, int4)', 'millrace.retry_failed_children(millrace.fan_outs)',
      'millrace.reset_children(int8, text)', 'millrace.reopen_fan_outs(int4, int8[])',
      'millrace.refile_items(int8, text[])', 'millrace.retry_items(millrace.fan_outs, text[])',
      'millrace.retry_child_runs(int4, int8[])', 'millrace.group_key(text, text)',
      'millrace.keys_expression(millrace.pipelines, text, text, text)',
      'millrace.group_keys(millrace.stages, text[])',
      'millrace.place_attempts(millrace.stages, int8[])',
      'millrace.assign_groups(int4, int8[])', 'millrace.adopt_attempts(millrace.stages, int4)',
      'millrace.groups_sorted_by(jsonb)', 'millrace.forget_groups(int4, jsonb)',
      'millrace.write_group_keys(millrace.pipelines, text)',
      'millrace.attach_groups(millrace.pipelines, text)',
      'millrace.rows_for_items(millrace.stages, text, jsonb)',
      'millrace.fan_out_of(millrace.attempts, int4)',
      'millrace.spawn_chunk(millrace.attempts, jsonb, bool)', 'millrace.hold_parent(int8)',
      'public.millrace_spawn(uuid, int8, uuid, jsonb, bool)',
      'millrace.start_stage(int8, text)', 'millrace.end_stage(int8, text, text, jsonb, jsonb)',
      'millrace.complete_stage(int8, text, jsonb)',
      'millrace.fail_stage(int8, text, text, bool)', 'millrace.skip(int8, text)',
      'millrace.begin_roots(int4, int8[])',
      'millrace.wait_for_child_runs(int4, int8[], timestamptz)',
      'millrace.parents_without_child(millrace.pipelines, int4, int8[], text[], text[])',
      'millrace.start_child_runs(int4, int8[])', 'millrace.actor(regclass)',
      'millrace.answer_by_value(int4, int4, text, text[])',
      'millrace.take_question_back(int4, int4, text[])',
      'millrace.refuse_status(text, text, text)', 'millrace.values_used(jsonb)',
      'millrace.check_status_columns(jsonb)', 'millrace.check_status_tables(jsonb)',
      'millrace.check_status_chain(jsonb)', 'millrace.check_status_values(jsonb)',
      'millrace.check_layers(jsonb)', 'millrace.check_status_names(jsonb)',
      'millrace.check_status(jsonb)', 'millrace.save_status(int4, int4, jsonb)',
      'millrace.ordered_values(int4, jsonb)', 'millrace.save_values(int4, int4, jsonb)',
      'millrace.rows_shown_wrong(millrace.pipelines, text[])', 'millrace.status_faults()',
      'millrace.history_faults(millrace.pipelines)',
      'millrace.standings(int4, text[], text[], text[])',
      'millrace.open_moves(int4, int4, int4, bool, text)',
      'millrace.leads_back(int4, text[], text)',
      'millrace.judged_values(int4, text[], text[], text[])',
      'millrace.on_values_written(int4, text[], text[], text[])',
      'millrace.shown_stages(int4)', 'millrace.done_values(jsonb, bool)',
      'millrace.nothing_done(int4)', 'millrace.moves_within(int4)',
      'millrace.moves_between(int4)', 'millrace.moves_to_nothing(int4)',
      'millrace.moves_of_calls(int4)', 'millrace.resting_values(int4)',
      'millrace.moves_of_questions(int4)', 'millrace.moves_of_people(int4)',
      'millrace.save_moves(int4)', 'millrace.mark_drawn(int4)',
      'millrace.status_figures(jsonb, bool)',
      'millrace.show_statement(millrace.pipelines, text, text, bool)',
      'millrace.show_with_history(jsonb, text[])', 'millrace.status_type(millrace.pipelines)',
      'millrace.status_columns(jsonb)', 'millrace.completed_targets(millrace.stages)',
      'millrace.is_last(millrace.stages)',
      'millrace.write_status_outcomes(millrace.pipelines, text, millrace.stages[])',
      'millrace.write_status_started(millrace.pipelines, text, millrace.stages[])',
      'millrace.write_status_queued(millrace.pipelines, text)',
      'millrace.write_status(millrace.pipelines, text)', 'millrace.show_status(int4, text[])',
      'millrace.rows_named(text[])', 'millrace.remedy_at_question(jsonb, text)',
      'millrace.remedy_of_move(int4, int4, text, text)',
      'millrace.answered_before(int4, text, text)',
      'millrace.remedy_of_waiting(int4, int4, text)',
      'millrace.refuse_move(int4, int4, int4, int4, bool, text, text, text[])',
      'millrace.shown_places(jsonb, jsonb)', 'millrace.changed_values(jsonb)',
      'millrace.rename_values(millrace.pipelines, text[], text[])',
      'millrace.show_changed(int4, jsonb)',
      'millrace.refuse_start(int4, text, text, text[], text, text)',
      'millrace.names_stage(int4, int4)',
      'millrace.start_at_value(int4, int4, text, text, text[])',
      'millrace.done_until(int4, int4, text)',
      'millrace.begin_at_value(int4, int4, text, text, text, text[])',
      'millrace.live_values(jsonb)', 'millrace.done_value(jsonb, jsonb)',
      'millrace.done_before(int8, int4, int4)', 'millrace.deciding_attempts(int4, text[])',
      'millrace.status_states(int4, text[])',
      'millrace.status_path(text, text, text, int4, int4, text)',
      'millrace.show_due(int4, int4)', 'millrace.write_status_since(millrace.pipelines)',
      'millrace.history_of_written(millrace.pipelines, text, text, text, text)',
      'millrace.write_status_intake(millrace.pipelines, text)',
      'millrace.write_status_triggers(millrace.pipelines)', 'millrace.sweep_fan_out(int8)',
      'millrace.forget_fan_outs(int4)', 'millrace.sweep_children()',
      'millrace.prioritise(int8, int4)', 'millrace.switch(text, text, bool)',
      'millrace.pause(text, text)', 'millrace.unpause(text, text)'
    ]::text[]) s
        where to_regprocedure(s) is not null))
  loop
    execute 'drop function ' || v_function;
  end loop;
  if exists (select from millrace.pipelines) then
    perform millrace.write_dispatch();
  end if;
  for v_pipeline in
    select p.name
    from millrace.pipelines p
    join pg_class c on c.oid = p.entity_table
    order by p.id
  loop
    perform millrace.attach(v_pipeline);
  end loop;
end
$attach$;

drop function pg_temp.put_view(text, boolean, text);
drop function pg_temp.drop_functions(text[]);
drop function pg_temp.drop_views(oid[], oid[]);
drop function pg_temp.dependents(oid[], oid[]);

insert into millrace.releases (level, release) values (2, '0.2.0');

reset check_function_bodies;
