-- How a pipeline reads its rows, and what happens when rows are deleted

-- Creates the __rows, __sizes and __asked functions of a pipeline. They read all columns but the
-- engine's. Where conditions only compare a column with null, __asked does not read its value from
-- storage.
create function millrace.write_rows(p_pipeline millrace.pipelines, p_key_type text)
as $write$
  v_columns text;
  v_asked text;
  v_stored text;
  v_fits text;
  v_function record;

-- A compressed value has at most a hundred times its stored bytes. The text of a jsonb value that
-- is not compressed hardly has more than eight times its bytes.
select string_agg('e.' || c.name, ', ' order by a.attnum),
  string_agg(case when u.only_null then format('case when x.%1$s is not null then true end '
    'as %1$s', c.name) else 'x.' || c.name end, ', ' order by a.attname) filter (where u.asked),
  '0::bigint + ' || string_agg(z.size, ' + ' order by a.attnum),
  format('(p_each < 0::bigint + %s) is not true', string_agg(regexp_replace(z.size,
    '^coalesce.pg_column_size(.*), 0', 'coalesce(pg_column_size\1::bigint * case '
    'when pg_column_compression\1 is null then 8 else 100 end, 0'), ' + ' order by a.attnum))
into v_columns, v_asked, v_stored, v_fits
from pg_attribute a
join pg_type t on t.oid = a.atttypid
cross join lateral (
  select quote_ident(a.attname) as name, '.' || to_json(a.attname::text) as read) c
cross join lateral (
  select case
      when t.typlen > 0 then '64'
      when coalesce(nullif(t.typbasetype, 0), t.oid)
          in ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype)
        then format('coalesce(octet_length(x.%s), 0)', c.name)
      else format('coalesce(pg_column_size(x.%s), 0)', c.name)
    end as size) z
cross join lateral (
  select count(*) > 0 as asked, bool_and(not g.whole and strpos(replace(replace(
    g.path, c.read || ' != null', ''), c.read || ' == null', ''), c.read) = 0) as only_null
  from millrace.versions v
  join millrace.version_stages vs on vs.version_id = v.id
  cross join lateral (
    select vs.given_path::text as path, regexp_count(vs.given_path::text, '\$')
      <> regexp_count(vs.given_path::text, '\$\."entity"\."') as whole) g
  where v.pipeline_id = p_pipeline.id
    and (g.whole or strpos(g.path, c.read) > 0)) u
where a.attrelid = p_pipeline.entity_table and a.attnum > 0 and not a.attisdropped
  and a.attname <> all (millrace.status_columns(p_pipeline.status))
  and not exists (
    select from millrace.stages s
    where s.pipeline_id = p_pipeline.id and p_pipeline.projection = 'columns'
      and a.attname = any (millrace.stage_columns(s.name)));
for v_function in
  select f.*
  from (values
    ('rows', ', p_each bigint', 'json[]', format('case when %s then to_json(x.*) end', v_fits)),
    ('sizes', '', 'bigint[]', v_stored),
    ('asked', ', p_each bigint', 'jsonb[]', format('case when %s then jsonb_build_object('
      '''entity'', (select to_jsonb(y.*) from (select %s) y)) end', v_fits, v_asked))
  ) f(name, also, returns, read)
loop
  perform millrace.write_function(p_pipeline.name, format('%s(p_ids text[]%s) returns %s',
    v_function.name, v_function.also, v_function.returns), format($f$
begin
  return array(
    select (select %s from (select %s from %s e where e.%I = i.id::%s) x)
    from unnest(p_ids) i(id));
end $f$, v_function.read, v_columns, p_pipeline.entity_table, p_pipeline.entity_key, p_key_type));
end loop;
$write$;

-- Deletes the runs of rows that are deleted or truncated, and their copies. Raises MR005 where the
-- key of a row changes. The trigger's arguments are the pipeline's id and the column of the key;
-- those for truncate lack the column.
create function millrace.on_rows_gone() returns trigger
set plan = by_index
as $$
  v_ids text[];

if tg_op = 'UPDATE' then
  raise exception
    'MR005: the key of a row of % cannot change from % to %: its runs are filed under it',
    tg_relid::regclass, to_jsonb(old) ->> tg_argv[1], to_jsonb(new) ->> tg_argv[1]
    using hint = 'Insert a new row and delete the old one.';
elsif tg_op = 'TRUNCATE' then
  perform millrace.delete_runs(array(
    select r.id
    from millrace.runs r
    where r.pipeline_id = tg_argv[0]::int
    order by r.id
    for update));
  perform millrace.hook_rows_gone(tg_argv[0]::int, array(
    select f.entity_id from millrace.former_runs f where f.pipeline_id = tg_argv[0]::int
    union
    select b.entity_id
    from millrace.stages s
    join millrace.bypassed b on b.stage_id = s.id
    where s.pipeline_id = tg_argv[0]::int));
else
  execute format('select array(select d.%I::text from deleted d)', tg_argv[1]) into v_ids;
  perform millrace.delete_runs(array(
    select r.id
    from millrace.runs r
    -- by key
    where r.id = any (array(
      select o.id
      from millrace.runs o
      where o.entity_id = any (v_ids) and o.pipeline_id = tg_argv[0]::int
      union all
      select o.id
      from millrace.runs o
      where o.copy_key = any (v_ids) and o.pipeline_id = tg_argv[0]::int))
    order by r.id + 0
    for update));
  perform millrace.hook_rows_gone(tg_argv[0]::int, v_ids);
end if;
-- Tells queue_stage() that rows may be gone: the intake trigger of an outer statement may run
-- later.
perform set_config('millrace.rows_gone', 'on', true);
return null;
$$;

-- Creates the triggers of a pipeline on its entity table.
create function millrace.write_triggers(p_pipeline millrace.pipelines)
as $write$
  -- Any session can set millrace.projecting. The setting counts only for a role that may create
  -- objects in the schema millrace, as its owner may.
  c_theirs constant text := $f$(current_setting('millrace.projecting', true)
    is distinct from pg_trigger_depth()::text or not has_schema_privilege('millrace', 'create'))$f$;

execute format($f$
create or replace trigger millrace_%1$s_deleted after delete on %2$s
  referencing old table as deleted
  for each statement execute function millrace.on_rows_gone(%3$L, %4$L);
create or replace trigger millrace_%1$s_truncated after truncate on %2$s
  for each statement execute function millrace.on_rows_gone(%3$L);
create or replace trigger millrace_%1$s_key before update of %4$I on %2$s for each row
  when (old.%4$I is distinct from new.%4$I) execute function millrace.on_rows_gone(%3$L, %4$L)$f$,
  p_pipeline.name, p_pipeline.entity_table, p_pipeline.id, p_pipeline.entity_key);
if p_pipeline.projection <> 'none' then
  execute format($f$
create or replace trigger millrace_%1$s_inserted after insert on %2$s
  referencing new table as new_rows
  for each statement execute function millrace.%1$s__intake();
create or replace trigger millrace_%1$s_updated after update on %2$s
  referencing old table as old_rows new table as new_rows
  for each statement when %3$s execute function millrace.%1$s__intake()$f$,
    p_pipeline.name, p_pipeline.entity_table, c_theirs);
end if;
if p_pipeline.status #> '{history,since}' is not null then
  execute format($f$
create or replace trigger millrace_%1$s_begun before insert on %2$s
  for each row when (new.%4$I is not null) execute function millrace.%1$s__since();
create or replace trigger millrace_%1$s_since before update on %2$s
  for each row when ((old.%4$I, old.%5$I) is distinct from (new.%4$I, new.%5$I) and %3$s)
  execute function millrace.%1$s__since()$f$,
    p_pipeline.name, p_pipeline.entity_table, c_theirs, p_pipeline.status ->> 'column',
    p_pipeline.status #>> '{history,since}');
end if;
$write$;
