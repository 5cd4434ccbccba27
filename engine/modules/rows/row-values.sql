-- Creates the __values function of a pipeline. It reads the concurrency key of the stage p_stage,
-- and with p_new the metadata, trace and tenant of new runs. A tenant that is also the key is read
-- once. A column that was renamed since must not make a user's own write fail. It counts as empty,
-- and the error goes into millrace.log.
create function millrace.write_values(p_pipeline millrace.pipelines)
as $write$
  -- Calls group_key() for long values alone, since the call costs more than reading the row.
  c_key constant text := 'case when octet_length(r.value::text) > 400 '
    'then millrace.group_key(r.value::text, null) else coalesce(r.value::text, '''') end';
  v_paying text[] := array(
    select s.name
    from millrace.stages s
    where s.pipeline_id = p_pipeline.id
      and s.limits #>> '{concurrency,column}' = p_pipeline.quota ->> 'column'
      and s.limits #>> '{concurrency,part}' is distinct from 'host');
  v_reads text := (
    select string_agg(format($f$
  if %1$s then
    begin
      v_values.%2$s := array(
        select %3$s
        from unnest(p_ids) with ordinality i(id, ordinal)
        left join lateral (
          select e.%4$I as value from %5$s e where e.%6$I = i.id::%7$s limit 1) r on true
        order by i.ordinal);
    exception when others then
      if millrace.error_kind(sqlstate) <> 'lasting' then raise; end if;
      perform millrace.report('error', 'column_unreadable', %8$L || sqlerrm,
        jsonb_build_object('column', %4$L));
    end;
  end if;$f$, c.condition, c.field, c.read, c.name, p_pipeline.entity_table, p_pipeline.entity_key,
      millrace.key_type(p_pipeline), format('The column %s of %s cannot be read, so that it counts '
        'as empty: ', c.name, p_pipeline.entity_table)), '' order by c.condition, c.field)
    from (
      values ('p_new', 'metadata', 'r.value::jsonb', p_pipeline.metadata_column),
        ('p_new', 'traces', 'r.value::uuid', p_pipeline.trace_column),
        ('p_new', 'payers', c_key, p_pipeline.quota ->> 'column')
      union all
      select format('p_stage = %L%s', s.name,
          case when s.name = any (v_paying) then ' and v_values.payers is null' end), 'keys',
        case when s.limits #>> '{concurrency,part}' = 'host'
          then 'millrace.group_key(r.value::text, ''host'')' else c_key end,
        s.limits #>> '{concurrency,column}'
      from millrace.stages s
      where s.pipeline_id = p_pipeline.id and s.limits ? 'concurrency'
    ) c(condition, field, read, name)
    where c.name is not null);

perform millrace.write_function(p_pipeline.name, 'values(p_ids text[], p_new boolean, '
  'p_stage text, out v_values millrace.row_values)', format($f$
begin%s
  if p_stage = any (%L::text[]) then
    v_values.keys := coalesce(v_values.payers, v_values.keys);
  end if;
end $f$, v_reads, v_paying));
$write$;

-- Puts the values that people gave to copies in place of those of their rows.
create function millrace.edited_rows(p_pipeline_id int, p_ids text[], p_rows json[])
returns json[]
as $$
return array(
  select coalesce((
    select json_object_agg(e.key, coalesce((c.edited -> e.key)::json, e.value))
    from millrace.runs c
    cross join json_each(i.entity) e
    where c.entity_id = i.id and c.pipeline_id = p_pipeline_id and c.edited is not null), i.entity)
  from unnest(p_ids, p_rows) i(id, entity));
$$;
