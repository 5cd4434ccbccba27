-- Chapter 29: attaching: what is written for each pipeline
--
-- millrace.attach() writes static functions and triggers for a pipeline's entity table, so that nothing is planned from
-- text while a user's statement runs. For a pipeline `leads` over public.leads it makes, all in schema millrace:
--   leads__lock(ids, wait)          locks entities, in key order          leads__started(stage, now, ids)  shows a claim
--   leads__rows(ids)                their rows, without engine columns    leads__apply_outcomes(stage, changes)    shows a transition
--   leads__intake()                 the trigger on insert and update      leads__queued(stage, dependents, ids)  shows starting over
--   leads__deleted()                the trigger on delete                 leads__key()                     refuses a changed key
--   leads__metadata(ids)            what runs copy, where declared         leads__sizes(ids)                how large the rows are
--   leads__quota_keys(ids)          whose quota runs count against, where there is one

create or replace function millrace.stage_columns(p_stage text) returns text[]
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select array[p_stage || '_status', p_stage || '_job_id', p_stage || '_result', p_stage || '_error', p_stage || '_retry_count', p_stage || '_started_at', p_stage || '_completed_at'] $$;
comment on function millrace.stage_columns(text) is 'The seven columns that the projection keeps for a stage on its entity.';

create or replace function millrace.stage_columns_ddl(p_table text, p_stage text) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select format($ddl$alter table %1$s
  add column if not exists %2$I text not null default 'pending',
  add column if not exists %3$I text,
  add column if not exists %4$I jsonb,
  add column if not exists %5$I text,
  add column if not exists %6$I int not null default 0,
  add column if not exists %7$I timestamptz,
  add column if not exists %8$I timestamptz;$ddl$, p_table,
    p_stage || '_status', p_stage || '_job_id', p_stage || '_result', p_stage || '_error', p_stage || '_retry_count', p_stage || '_started_at', p_stage || '_completed_at')
$$;
comment on function millrace.stage_columns_ddl(text, text) is 'The statement that adds a stage''s seven columns to a table.';

-- A constraint of the user's own that refuses one of the words would fail whatever leads to it, the stage before a skipped one
-- too. One that reads several columns cannot be asked beforehand.
create or replace function millrace.check_status_words(p_table regclass, p_stages text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
    execute format(
      'select string_agg(w.%1$I, '', '') from (select u::%2$s as %1$I from unnest($1) u) w where not (%3$s)',
      v_check.name, v_check.type, v_check.rule)
    into v_refused
    using array['pending', 'queued', 'started', 'completed', 'failed', 'skipped'];
    if v_refused is not null then
      raise exception 'constraint % of table % refuses % in column %',
        v_check.constraint, p_table, v_refused, v_check.name
        using errcode = 'MR001',
          hint = format('Each stage can show pending, queued, started, completed, failed or skipped: '
            'alter table %s drop constraint %I;', p_table, v_check.constraint);
    end if;
  end loop;
end
$$;
comment on function millrace.check_status_words(regclass, text[]) is
  'Raises MR001 where a constraint on a status column refuses a status that the engine writes.';

-- Statement triggers see what is written to the table that they stand on and to no other. What is written straight to a partition,
-- or to a table that inherits from this one, would start nothing and leave runs without rows behind; so would a crash that
-- empties an unlogged table.
create or replace function millrace.check_table(p_table regclass) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
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
      when exists (select from pg_inherits i where c.oid in (i.inhparent, i.inhrelid)) then 'inherits from another table or is inherited from'
    end into v_what
  from pg_class c
  where c.oid = p_table;
  if v_what is not null then
    raise exception 'entity.table is %, which %', p_table, v_what
      using errcode = 'MR001',
        hint = 'Name an ordinary table, logged, without partitions or inheritance; keep what must be partitioned in '
          'another, which refers to it.';
  end if;
end
$$;
comment on function millrace.check_table(regclass) is
  'Raises MR001 unless the table is one whose every write the triggers of attach() see.';

-- Runs are filed under the key's text. So each value must have one, the same in every session whatever its DateStyle, TimeZone,
-- extra_float_digits or bytea_output, and equal values must have the same: 1.0 and 1.00 are equal where no scale is declared, and
-- so are 'a' and 'A' under some collations.
create or replace function millrace.check_key(p_pipeline millrace.pipelines) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
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
    (s.type = any (array['uuid', 'text', 'varchar', 'bpchar', 'int2', 'int4', 'int8']::regtype[])
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
        hint = case when v_key.is_numeric then 'Declare a scale, such as numeric(20, 0), or use bigint.'
          else 'Use a key of type uuid, text, varchar, char, smallint, integer, bigint, numeric with a scale, or an enum; '
            'keep this column as a unique one of its own.' end;
  elsif v_key.loose then
    raise exception 'entity.key is %, whose collation takes different texts for equal', p_pipeline.entity_key
      using errcode = 'MR001',
        hint = format('Give the column a deterministic collation: alter table %s alter %I type %s collate "default";',
          p_pipeline.entity_table, p_pipeline.entity_key, v_key.name);
  end if;
end
$$;
comment on function millrace.check_key(millrace.pipelines) is
  'Raises MR001 where values of the key have not one text each in all sessions.';

create or replace function millrace.check_columns(p_pipeline millrace.pipelines, p_stages text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_missing record;
begin
  if not exists (select from pg_attribute a where a.attrelid = p_pipeline.entity_table and a.attname = p_pipeline.entity_key and not a.attisdropped) then
    raise exception 'entity.key is %, but table % has no such column', p_pipeline.entity_key, p_pipeline.entity_table
      using errcode = 'MR001', hint = 'Name the primary key''s column.';
  end if;
  if not exists (select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
                 where i.indrelid = p_pipeline.entity_table and i.indisunique and i.indisvalid and i.indpred is null
                   and i.indnkeyatts = 1 and a.attname = p_pipeline.entity_key) then
    raise exception 'entity.key is %, which is not unique in table %', p_pipeline.entity_key, p_pipeline.entity_table
      using errcode = 'MR001', hint = 'Make it the primary key.';
  end if;
  perform millrace.check_key(p_pipeline);
  if p_pipeline.projection = 'columns' then
    select p.name, s.name as stage into v_missing
    from millrace.pipelines p join millrace.version_stages vs on vs.version_id = p.current_version_id join millrace.stages s on s.id = vs.stage_id
    where p.entity_table = p_pipeline.entity_table and p.id <> p_pipeline.id and p.projection = 'columns' and s.name = any (p_stages) limit 1;
    if found then
      raise exception 'stage % of pipeline % would share its columns with pipeline %, which has a stage of that name on the same table %', v_missing.stage, p_pipeline.name, v_missing.name, p_pipeline.entity_table
        using errcode = 'MR001', hint = 'Give the stage another name, or use the projection none.';
    end if;
    select s as stage, c as name into v_missing from unnest(p_stages) s, unnest(millrace.stage_columns(s)) c
    where not exists (select from pg_attribute a where a.attrelid = p_pipeline.entity_table and a.attname = c and not a.attisdropped) limit 1;
    if found then
      raise exception 'table % has no column % for stage %', p_pipeline.entity_table, v_missing.name, v_missing.stage
        using errcode = 'MR001', hint = millrace.stage_columns_ddl(p_pipeline.entity_table::text, v_missing.stage);
    end if;
    select s as stage, c.name, format_type(a.atttypid, null) as type, t.wanted into v_missing
    from unnest(p_stages) s, unnest(millrace.stage_columns(s), array['text', 'text', 'jsonb', 'text', 'integer', 'timestamp with time zone', 'timestamp with time zone']) with ordinality c(name, wanted, place)
    join pg_attribute a on a.attrelid = p_pipeline.entity_table and a.attname = c.name and not a.attisdropped
    cross join lateral (select c.wanted) t
    where format_type(a.atttypid, null) <> c.wanted and not (c.wanted = 'text' and format_type(a.atttypid, null) = 'character varying') order by c.place limit 1;
    if found then
      raise exception 'column % of table % is of type %, but must be of type %', v_missing.name, p_pipeline.entity_table, v_missing.type, v_missing.wanted
        using errcode = 'MR001', hint = 'Drop or rename the column, then: ' || millrace.stage_columns_ddl(p_pipeline.entity_table::text, v_missing.stage);
    end if;
    perform millrace.check_status_words(p_pipeline.entity_table, p_stages);
  end if;
end
$$;
comment on function millrace.check_columns(millrace.pipelines, text[]) is 'Raises MR001, with the statement that helps, when the entity table lacks a column.';

-- A stage that was dropped may have lost its columns since; the projection then leaves it out.
create or replace function millrace.has_columns(p_pipeline millrace.pipelines, p_stage text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select 7 = (select count(*) from pg_attribute a where a.attrelid = p_pipeline.entity_table and not a.attisdropped and a.attname = any ((select millrace.stage_columns(p_stage))::name[]))
$$;
comment on function millrace.has_columns(millrace.pipelines, text) is 'Whether the entity table has the seven columns of a stage.';

-- One assignment list a stage: what a transition of it writes.
create or replace function millrace.projection_branch(p_pipeline millrace.pipelines, p_stage_id int, p_stage text) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select format($branch$
  when %1$L then
    update %2$s e set %3$I = c.status, %4$I = c.job_id, %5$I = c.result, %6$I = c.error, %7$I = c.retry_count, %8$I = c.started_at, %9$I = c.completed_at%10$s
    from unnest(p_changes) c where e.%11$I = c.entity_id::%12$s;$branch$,
    p_stage, p_pipeline.entity_table, p_stage || '_status', p_stage || '_job_id', p_stage || '_result', p_stage || '_error', p_stage || '_retry_count', p_stage || '_started_at', p_stage || '_completed_at',
    (select coalesce(string_agg(distinct format(', %1$I = case when %2$L = any (c.queued) then ''queued'' else e.%1$I end', n.name || '_status', n.name), ''), '')
     from millrace.version_stages vs join millrace.stages n on n.id = vs.stage_id where n.pipeline_id = p_pipeline.id and p_stage_id = any (vs.needs) and millrace.has_columns(p_pipeline, n.name)),
    p_pipeline.entity_key,
    (select format_type(a.atttypid, a.atttypmod) from pg_attribute a where a.attrelid = p_pipeline.entity_table and a.attname = p_pipeline.entity_key))
$$;
comment on function millrace.projection_branch(millrace.pipelines, int, text) is 'Source of one branch of a pipeline''s __apply_outcomes function.';

-- What starting over writes into one stage's columns, whichever stages a run's version lets start over.
create or replace function millrace.queued_assignments(p_stage text) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select format('%1$I = case when p_stage = %2$L then ''queued'' when %2$L = any (p_dependents) then ''pending'' else e.%1$I end, ', p_stage || '_status', p_stage)
    || string_agg(format('%1$I = case when %2$L = any (p_stage || p_dependents) then %3$s else e.%1$I end', c, p_stage, case when c = p_stage || '_retry_count' then '0' else 'null' end), ', ')
  from unnest((millrace.stage_columns(p_stage))[2:]) c
$$;
comment on function millrace.queued_assignments(text) is 'Source of the assignments for one stage in a pipeline''s __queued function.';

create or replace function millrace.dirty_condition(p_row text, p_stage text, p_with_status boolean) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select string_agg(format(case when c = p_stage || '_retry_count' then '%I.%I <> 0' when c = p_stage || '_status' then '%I.%I <> ''pending''' else '%I.%I is not null' end, p_row, c), ' or ' order by place)
  from unnest(millrace.stage_columns(p_stage)) with ordinality u(c, place) where p_with_status or c <> p_stage || '_status'
$$;
comment on function millrace.dirty_condition(text, text, boolean) is 'Source of the condition that some column of a stage, which a fresh start must clear, is not clear.';

-- What intake collects for one stage in its one pass over the rows. p_was is what the old status is read from.
create or replace function millrace.written_rows(p_pipeline millrace.pipelines, p_stage text, p_ancestors text[], p_dependents text[], p_was text) returns text
language sql immutable set search_path = pg_catalog, pg_temp
as $$
  select format('array_agg(row(n.%1$I::text, n.%2$I, %3$s)::millrace.written) filter (where n.%2$I is distinct from %4$s%5$s) as %6$I', p_pipeline.entity_key, p_stage || '_status',
    (select string_agg(millrace.dirty_condition('n', d, d <> p_stage), ' or ') from unnest(p_stage || p_dependents) d),
    format(p_was, p_stage || '_status'),
    -- covered: an earlier stage of the same row starts over in the same statement
    coalesce((select string_agg(format(' and not (n.%1$I = ''queued'' and n.%1$I is distinct from %2$s)', a || '_status', format(p_was, a || '_status')), '') from unnest(p_ancestors) a), ''),
    p_stage)
$$;
comment on function millrace.written_rows(millrace.pipelines, text, text[], text[], text) is 'Source of the column in which a pipeline''s __intake function collects what was written to one stage''s status.';

-- What a row has in bytes, as an expression over its columns. As stored: read from the rows' headers and pointers, so that
-- nothing is fetched or unpacked. At most: what it may come to as JSON. Packing saves no more than 99 of 100 bytes; and the
-- text of a jsonb value that is not packed hardly has eight times its bytes. Of a text its own length is known, packed or not.
create or replace function millrace.size_expression(p_table regclass, p_columns name[], p_at_most boolean) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  -- bigint, since a row may have several columns of a gigabyte.
  select '0::bigint + ' || string_agg(
    case
      when t.typlen > 0 then '64'
      when coalesce(nullif(t.typbasetype, 0), t.oid) in ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype)
        then format('coalesce(octet_length(x.%I), 0)', a.attname)
      when p_at_most then format('coalesce(pg_column_size(x.%1$I)::bigint '
        '* case when pg_column_compression(x.%1$I) is null then 8 else 100 end, 0)', a.attname)
      else format('coalesce(pg_column_size(x.%I), 0)', a.attname)
    end, ' + ' order by a.attnum)
  from pg_attribute a
  join pg_type t on t.oid = a.atttypid
  where a.attrelid = p_table and a.attname = any (p_columns)
$$;
comment on function millrace.size_expression(regclass, name[], boolean) is
  'Source of the size of a row x in bytes: as it is stored, or as it is at most when made JSON.';

-- A row that may be larger than p_each is not built at all.
create or replace function millrace.write_rows(p_pipeline millrace.pipelines, p_key_type text, p_engine_columns text[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
comment on function millrace.write_rows(millrace.pipelines, text, text[]) is
  'Creates the __rows and __sizes functions of a pipeline. A column that is added later is neither sent nor counted until attach() is called again.';

create or replace function millrace.write_common_functions(p_pipeline millrace.pipelines, p_key_type text, p_engine_columns text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace function millrace.%1$I(p_ids text[], p_wait boolean default false) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  if p_wait then
    return array(select e.%2$I::text from %3$s e where e.%2$I = any (p_ids::%4$s[]) order by e.%2$I for no key update);
  end if;
  return array(select e.%2$I::text from %3$s e where e.%2$I = any (p_ids::%4$s[]) order by e.%2$I for no key update skip locked);
end $$$f$, p_pipeline.name || '__lock', p_pipeline.entity_key, p_pipeline.entity_table, p_key_type);
  perform millrace.write_rows(p_pipeline, p_key_type, p_engine_columns);
  -- A column that was renamed since must not make a user's own write fail.
  execute case when p_pipeline.metadata_column is null then format('drop function if exists millrace.%I(text[])', p_pipeline.name || '__metadata') else format($f$
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
    perform millrace.report('error', 'metadata_unreadable', %6$L || sqlerrm, jsonb_build_object('column', %5$L));
    return array_fill(null::jsonb, array[cardinality(p_ids)]);
end $$$f$, p_pipeline.name || '__metadata', p_pipeline.entity_key, p_pipeline.entity_table, p_key_type, p_pipeline.metadata_column,
    format('The metadata of pipeline %s cannot be read, so that its runs start without: ', p_pipeline.name)) end;
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  if tg_op = 'TRUNCATE' then
    perform millrace.delete_runs(array(select r.id from millrace.runs r where r.pipeline_id = %2$s order by r.id for update));
  else
    perform millrace.forget(%2$s, array(select d.%3$I::text from deleted d));
  end if;
  return null;
end $$;
create or replace trigger %4$I after delete on %5$s referencing old table as deleted for each statement execute function millrace.%1$I();
create or replace trigger %6$I after truncate on %5$s for each statement execute function millrace.%1$I()$f$,
    p_pipeline.name || '__deleted', p_pipeline.id, p_pipeline.entity_key, 'millrace_' || p_pipeline.name || '_deleted', p_pipeline.entity_table, 'millrace_' || p_pipeline.name || '_truncated');
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  raise exception 'the key of a row of %% cannot change from %% to %%: its runs are filed under it', tg_relid::regclass, old.%3$I, new.%3$I
    using errcode = 'MR005', hint = 'Insert a new row and delete the old one.';
end $$;
create or replace trigger %4$I before update of %3$I on %2$s for each row when (old.%3$I is distinct from new.%3$I) execute function millrace.%1$I()$f$,
    p_pipeline.name || '__key', p_pipeline.entity_table, p_pipeline.entity_key, 'millrace_' || p_pipeline.name || '_key');
end
$write$;
comment on function millrace.write_common_functions(millrace.pipelines, text, text[]) is 'Creates the __lock, __rows, __sizes, __metadata, __deleted and __key functions of a pipeline.';

create or replace function millrace.write_by_stage(p_function text, p_arguments text, p_branches text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
comment on function millrace.write_by_stage(text, text, text) is 'Creates a function that takes the branch of one stage, and does nothing for any other.';

create or replace function millrace.write_projection(p_pipeline millrace.pipelines, p_key_type text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $write$
begin
  perform millrace.write_by_stage(p_pipeline.name || '__apply_outcomes', 'p_changes millrace.change[]',
    (select string_agg(millrace.projection_branch(p_pipeline, s.id, s.name), '' order by s.id) from millrace.stages s where s.pipeline_id = p_pipeline.id and millrace.has_columns(p_pipeline, s.name)));
  perform millrace.write_by_stage(p_pipeline.name || '__started', 'p_now timestamptz, p_ids text[]',
    (select string_agg(format($b$
  when %1$L then
    with free as (select e.ctid from %3$s e where e.%2$I = any (p_ids::%4$s[]) order by e.%2$I for no key update skip locked)
    update %3$s e set %5$I = 'started', %6$I = p_now from free where e.ctid = free.ctid;$b$,
      s.name, p_pipeline.entity_key, p_pipeline.entity_table, p_key_type, s.name || '_status', s.name || '_started_at'), '' order by s.id)
     from millrace.stages s where s.pipeline_id = p_pipeline.id and millrace.has_columns(p_pipeline, s.name)));
  execute format($f$
create or replace function millrace.%1$I(p_stage text, p_dependents text[], p_ids text[]) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
begin
  -- Without a stage it only clears, and leaves rows alone that are clear.
  update %2$s e set %3$s where e.%4$I = any (p_ids::%5$s[]) and (p_stage is not null or %6$s);
  return true;
end $$$f$, p_pipeline.name || '__queued', p_pipeline.entity_table,
    (select string_agg(millrace.queued_assignments(s.name), E',\n    ' order by s.id) from millrace.stages s where s.pipeline_id = p_pipeline.id and millrace.has_columns(p_pipeline, s.name)),
    p_pipeline.entity_key, p_key_type,
    (select string_agg(millrace.dirty_condition('e', s.name, true), ' or ' order by s.id) from millrace.stages s where s.pipeline_id = p_pipeline.id and millrace.has_columns(p_pipeline, s.name)));
end
$write$;
comment on function millrace.write_projection(millrace.pipelines, text) is 'Creates the __apply_outcomes, __started and __queued functions of a pipeline.';

-- One pass over the rows finds what was written to which stages: mostly nothing, and a bulk update writes one. Rows are taken
-- in the order of their keys.
create or replace function millrace.intake_body(p_pipeline millrace.pipelines, p_key_type text, p_from text, p_was text) returns text
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select format(E'    select %s\n    into v_written from %s;', string_agg(millrace.written_rows(p_pipeline, s.name,
      array(select a.name from millrace.version_stages av join millrace.stages a on a.id = av.stage_id where av.version_id = vs.version_id and s.id = any (av.dependents) order by a.id),
      array(select d.name from millrace.stages d where d.id = any (vs.dependents) order by d.id), p_was), E',\n      ' order by vs.position), p_from)
    || string_agg(format($branch$
    if v_written.%1$I is not null then
      for v_group in
        select w.status, array_agg(w.entity_id order by w.entity_id::%2$s) as ids, array_agg(w.entity_id) filter (where w.dirty) as dirty_ids
        from unnest(v_written.%1$I) w group by w.status order by w.status
      loop
        perform millrace.on_status_written(%3$s, %1$L, v_group.status, v_group.ids, v_group.dirty_ids);
      end loop;
    end if;$branch$, s.name, p_key_type, p_pipeline.id), '' order by vs.position)
  from millrace.version_stages vs join millrace.stages s on s.id = vs.stage_id where vs.version_id = p_pipeline.current_version_id
$$;
comment on function millrace.intake_body(millrace.pipelines, text, text, text) is 'Source of what a pipeline''s __intake function does for one kind of statement.';

-- Without nested loops: a session keeps its plan, and one made for a row or two would compare all rows of a bulk update with each other.
create or replace function millrace.write_intake(p_pipeline millrace.pipelines, p_key_type text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $write$
begin
  execute format($f$
create or replace function millrace.%1$I() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
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
create or replace trigger %4$I after insert on %5$s referencing new table as new_rows for each statement execute function millrace.%1$I();
create or replace trigger %6$I after update on %5$s referencing old table as old_rows new table as new_rows for each statement
  -- Any session can make the announcement, so it counts from the schema's owner alone: whoever may read all data has usage.
  when (current_setting('millrace.projecting', true) is distinct from pg_trigger_depth()::text
    or not has_schema_privilege('millrace', 'create'))
  execute function millrace.%1$I()$f$,
    p_pipeline.name || '__intake',
    millrace.intake_body(p_pipeline, p_key_type, format('new_rows n join old_rows o on o.%1$I = n.%1$I', p_pipeline.entity_key), 'o.%I'),
    -- A fresh row has no old statuses: they count as pending.
    millrace.intake_body(p_pipeline, p_key_type, 'new_rows n', '''pending'''),
    'millrace_' || p_pipeline.name || '_inserted', p_pipeline.entity_table, 'millrace_' || p_pipeline.name || '_updated');
end
$write$;
comment on function millrace.write_intake(millrace.pipelines, text) is 'Creates the __intake function of a pipeline and its triggers.';

-- A pipeline that moves to another table, or ends its projection, leaves no trigger behind.
create or replace function millrace.detach_old(p_pipeline millrace.pipelines) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_trigger record;
begin
  for v_trigger in
    select t.tgname, t.tgrelid::regclass as relation
    from pg_trigger t join pg_proc f on f.oid = t.tgfoid
    where f.pronamespace = 'millrace'::regnamespace and f.proname = any (array[p_pipeline.name || '__intake', p_pipeline.name || '__deleted', p_pipeline.name || '__key'])
      and (t.tgrelid <> p_pipeline.entity_table or (p_pipeline.projection = 'none' and f.proname = p_pipeline.name || '__intake'))
  loop
    execute format('drop trigger %I on %s', v_trigger.tgname, v_trigger.relation);
  end loop;
end
$$;
comment on function millrace.detach_old(millrace.pipelines) is 'Drops the triggers of a pipeline that its present definition has no use for.';

-- Halving finds one of many pipelines in a few steps, where a `case` would try them in turn.
create or replace function millrace.branches(p_ids int[], p_branches text[]) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_half int := cardinality(p_ids) / 2;
begin
  if cardinality(p_ids) = 1 then
    return format(E'if p_pipeline_id = %s then\n%s\nend if;', p_ids[1], p_branches[1]);
  end if;
  return format(E'if p_pipeline_id <= %s then\n%s\nelse\n%s\nend if;', p_ids[v_half],
    millrace.branches(p_ids[:v_half], p_branches[:v_half]), millrace.branches(p_ids[v_half + 1:], p_branches[v_half + 1:]));
end
$$;
comment on function millrace.branches(int[], text[]) is 'Source of statements that take the branch of one pipeline, by ids in ascending order.';

create or replace function millrace.write_way(p_function text, p_signature text, p_ids int[], p_branches text[], p_comment text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
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
revoke all on function millrace.%1$I from public$f$, p_function, p_signature, case when cardinality(p_ids) > 0 then millrace.branches(p_ids, p_branches) else '' end, 'Written by attach(): ' || p_comment);
end
$write$;
comment on function millrace.write_way(text, text, int[], text[], text) is 'Creates a function that leads to one written for each pipeline.';

-- Creates project_entities(), the one way to the projecting statements of all pipelines: what
-- transitions write (settle), a claim (started), or starting over (queued). It announces them to the
-- intake triggers, by the depth of triggers that they run at.
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

-- The ways from the engine into these functions, static as well: one branch a pipeline.
create or replace function millrace.write_dispatch() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $write$
declare
  v_ids int[];
  v_names text[];
begin
  select array_agg(p.id order by p.id), array_agg(p.name order by p.id) into v_ids, v_names from millrace.pipelines p;
  perform millrace.write_way('lock_entities', '(p_pipeline_id int, p_ids text[], p_wait boolean) returns text[]', v_ids,
    array(select format('return millrace.%I(p_ids, p_wait);', n || '__lock') from unnest(v_names) n),
    'locks entities of a pipeline, skipping or waiting for those that somebody holds; returns the keys got.');
  perform millrace.write_way('rows_of_entities', '(p_pipeline_id int, p_ids text[], p_each bigint) returns json[]', v_ids,
    array(select format('return millrace.%I(p_ids, p_each);', n || '__rows') from unnest(v_names) n),
    'rows of a pipeline''s entities in the order of their keys, without the engine''s columns; null for one that may have more than p_each bytes.');
  perform millrace.write_way('sizes_of_entities', '(p_pipeline_id int, p_ids text[]) returns bigint[]', v_ids,
    array(select format('return millrace.%I(p_ids);', n || '__sizes') from unnest(v_names) n),
    'the bytes of what rows_of_entities() would build of each entity, as they are stored.');
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id) into v_ids, v_names from millrace.pipelines p where p.metadata_column is not null;
  perform millrace.write_way('metadata_of_entities', '(p_pipeline_id int, p_ids text[]) returns jsonb[]', v_ids,
    array(select format('return millrace.%I(p_ids);', n || '__metadata') from unnest(v_names) n),
    'the metadata columns of a pipeline''s entities in the order of their keys; null where none is declared.');
  select coalesce(array_agg(p.id order by p.id), '{}'), array_agg(p.name order by p.id) into v_ids, v_names from millrace.pipelines p where p.projection = 'columns';
  perform millrace.write_project_entities(v_ids, v_names);
end
$write$;
comment on function millrace.write_dispatch() is 'Creates lock_entities, rows_of_entities, sizes_of_entities, metadata_of_entities and project_entities, which lead to the functions of each pipeline.';

create or replace function millrace.attach(p_pipeline text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_pipeline millrace.pipelines;
  v_stages text[];
  v_key_type text;
  v_function regprocedure;
begin
  select p.* into v_pipeline from millrace.pipelines p where p.name = p_pipeline;
  if not found then
    raise exception 'there is no pipeline %', coalesce(p_pipeline, 'null') using errcode = 'MR003', hint = 'Define it first.';
  end if;
  v_stages := array(select s.name from millrace.version_stages vs join millrace.stages s on s.id = vs.stage_id where vs.version_id = v_pipeline.current_version_id order by vs.position);
  perform millrace.check_columns(v_pipeline, v_stages);
  perform millrace.detach_old(v_pipeline);
  select format_type(a.atttypid, a.atttypmod) into v_key_type from pg_attribute a where a.attrelid = v_pipeline.entity_table and a.attname = v_pipeline.entity_key;
  perform millrace.write_common_functions(v_pipeline, v_key_type, case when v_pipeline.projection = 'columns'
    then array(select c from millrace.stages s, unnest(millrace.stage_columns(s.name)) c where s.pipeline_id = v_pipeline.id) else '{}' end);
  if v_pipeline.projection = 'columns' then
    perform millrace.write_projection(v_pipeline, v_key_type);
    perform millrace.write_intake(v_pipeline, v_key_type);
  end if;
  perform millrace.write_dispatch();
  perform millrace.attach_groups(v_pipeline, v_key_type);
  perform millrace.attach_quota(v_pipeline, v_key_type);
  for v_function in select p.oid from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname like replace(v_pipeline.name, '_', '\_') || '\_\_%' loop
    execute format('revoke all on function %s from public', v_function);
    execute format('comment on function %s is %L', v_function, format('Written by millrace.attach(%L); see the chapter on attaching.', v_pipeline.name));
  end loop;
end
$$;
comment on function millrace.attach(text) is 'Writes the functions and triggers that tie a pipeline to its entity table. Call it again after adding columns to the table; define() does.';
