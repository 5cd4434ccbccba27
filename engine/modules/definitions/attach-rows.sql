-- Creates the __rows, __sizes and __asked functions of a pipeline. The last builds what conditions
-- of given stages read: of a column that is only compared with null, that much, or a bulk insert
-- would unpack all that its rows hold.
create function millrace.write_rows(
  p_pipeline millrace.pipelines, p_key_type text, p_columns name[]
)
as $write$
declare
  v_asked text := (
    select string_agg(format(
      case
        when c.only_null then 'case when x.%1$I is not null then true end as %1$I'
        else 'x.%1$I'
      end, c.name), ', ' order by c.name)
    from (
      select u.name, bool_and(not g.whole and strpos(replace(replace(
        g.path, k.read || ' != null', ''), k.read || ' == null', ''), k.read) = 0) as only_null
      from unnest(p_columns) u(name)
      cross join lateral (select '.' || to_json(u.name::text) as read) k
      join (
        select vs.given_path::text as path, regexp_count(vs.given_path::text, '\$')
          <> regexp_count(vs.given_path::text, '\$\."entity"\."') as whole
        from millrace.version_stages vs
        join millrace.versions v on v.id = vs.version_id and v.pipeline_id = p_pipeline.id
        where vs.given_path is not null) g on g.whole or strpos(g.path, k.read) > 0
      group by u.name) c);
  v_columns text := (
    select string_agg(format('e.%I', c.name), ', ' order by c.place)
    from unnest(p_columns) with ordinality c(name, place));
  v_fits text := format('(p_each < %s) is not true',
    millrace.size_expression(p_pipeline.entity_table, p_columns, p_at_most => true));
  v_function record;
begin
  for v_function in
    select f.*
    from (values
      ('rows', ', p_each bigint', 'json[]', format('case when %s then to_json(x.*) end', v_fits)),
      ('sizes', '', 'bigint[]',
        millrace.size_expression(p_pipeline.entity_table, p_columns, p_at_most => false)),
      ('asked', ', p_each bigint', 'jsonb[]', format('case when %s then jsonb_build_object('
        '''entity'', (select to_jsonb(y.*) from (select %s) y)) end', v_fits, v_asked))
    ) f(name, also, returns, read)
  loop
    perform millrace.write_function(format('%I(p_ids text[]%s) returns %s',
      p_pipeline.name || '__' || v_function.name, v_function.also, v_function.returns), format($f$
#variable_conflict use_variable
begin
  return array(
    select (select %s from (select %s from %s e where e.%I = i.id::%s) x)
    from unnest(p_ids) with ordinality i(id, place) order by i.place);
end $f$, v_function.read, v_columns, p_pipeline.entity_table, p_pipeline.entity_key, p_key_type));
  end loop;
end
$write$;

-- Creates the triggers by which runs go with their row, and a row's key stays.
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
