-- What attach() writes to lock and read the rows of a pipeline

-- Creates the __rows and __sizes functions of a pipeline. A column that is added later needs
-- attach() again.
create function millrace.write_rows(
  p_pipeline millrace.pipelines, p_key_type text, p_columns name[]
)
as $write$
declare
  v_row text := format('(select %s from %s e where e.%I = i.id::%s) x',
    (select string_agg(format('e.%I', c.name), ', ' order by c.place)
     from unnest(p_columns) with ordinality c(name, place)),
    p_pipeline.entity_table, p_pipeline.entity_key, p_key_type);
begin
  perform millrace.write_function(
    format('%I(p_ids text[], p_each bigint) returns json[]', p_pipeline.name || '__rows'),
    format($f$
#variable_conflict use_variable
begin
  return array(
    select (select case when (p_each < %s) is not true then to_json(x.*) end from %s)
    from unnest(p_ids) with ordinality i(id, place) order by i.place);
end $f$, millrace.size_expression(p_pipeline.entity_table, p_columns, p_at_most => true), v_row));
  perform millrace.write_function(
    format('%I(p_ids text[]) returns bigint[]', p_pipeline.name || '__sizes'), format($f$
#variable_conflict use_variable
begin
  return array(
    select (select %s from %s)
    from unnest(p_ids) with ordinality i(id, place) order by i.place);
end $f$, millrace.size_expression(p_pipeline.entity_table, p_columns, p_at_most => false), v_row));
end
$write$;

-- Creates the __deleted and __key functions of a pipeline with their triggers: runs go with their
-- row, and a row's key stays.
create function millrace.write_row_triggers(p_pipeline millrace.pipelines)
as $write$
begin
  perform millrace.write_function(
    format('%I() returns trigger security definer', p_pipeline.name || '__deleted'), format($f$
#variable_conflict use_variable
begin
  if tg_op = 'TRUNCATE' then
    perform millrace.delete_runs(array(
      select r.id from millrace.runs r
      where r.pipeline_id = %1$s order by r.id for update));
    perform millrace.hook_forgotten(%1$s, null);
  else
    perform millrace.forget(%1$s, array(select d.%2$I::text from deleted d));
  end if;
  return null;
end $f$, p_pipeline.id, p_pipeline.entity_key));
  execute format($f$
create or replace trigger %2$I after delete on %3$s referencing old table as deleted
  for each statement execute function millrace.%1$I();
create or replace trigger %4$I after truncate on %3$s
  for each statement execute function millrace.%1$I()$f$,
    p_pipeline.name || '__deleted', 'millrace_' || p_pipeline.name || '_deleted',
    p_pipeline.entity_table, 'millrace_' || p_pipeline.name || '_truncated');
  perform millrace.write_function(
    format('%I() returns trigger security definer', p_pipeline.name || '__key'), format($f$
#variable_conflict use_variable
begin
  raise exception
    'the key of a row of %% cannot change from %% to %%: its runs are filed under it',
    tg_relid::regclass, old.%1$s, new.%1$s
    using errcode = 'MR005', hint = 'Insert a new row and delete the old one.';
end $f$, millrace.quote_field(p_pipeline.entity_key)));
  execute format($f$
create or replace trigger %4$I before update of %3$I on %2$s for each row
  when (old.%3$I is distinct from new.%3$I) execute function millrace.%1$I()$f$,
    p_pipeline.name || '__key', p_pipeline.entity_table, p_pipeline.entity_key,
    'millrace_' || p_pipeline.name || '_key');
end
$write$;
