-- Findings of doctor() about pipelines and their tables
--
-- A table that is restored, made anew or changed by hand loses what attach() wrote. Users then
-- write its rows without the pipeline's knowledge.

-- Returns what a pipeline lacks of all that attach() writes and needs, with the remedy; null where
-- it lacks nothing.
create function millrace.attachment_fault(p_pipeline millrace.pipelines) returns text
stable
as $$
  v_name text := p_pipeline.name;
  v_table regclass := p_pipeline.entity_table;
  v_lacking text;
  v_hint text;

-- The functions have the name of the table, and the triggers its oid. A new table of that name
-- therefore has none of the triggers.
v_lacking := (
  select substring(f.prosrc from ' from (.+?) e where')
  from pg_proc f
  where f.oid = to_regproc('millrace.' || v_name || '__lock'));
if not exists (select from pg_class where oid = v_table)
  or v_table <> to_regclass(v_lacking)
then
  return format('its table%s was dropped or made anew, its policies and grants gone: run the '
    'newest *_pipeline_%s.sql again by psql or the SQL editor, after: select millrace.cancel(id) '
    'from millrace.runs where status = ''running'' and pipeline_id = %s',
    ' ' || v_lacking, v_name, p_pipeline.id);
end if;
perform millrace.check_columns(p_pipeline);
v_lacking := (
  select string_agg(format('table %s has no column %s', v_table, name), ', ')
  from unnest(p_pipeline.required_columns) name
  where millrace.column_type(v_table, name) is null);
if v_lacking is not null then
  return format('%s: add the column again as it was, then select millrace.attach(%L)',
    v_lacking, v_name);
end if;
v_lacking := (
  select string_agg(f.what, ', ' order by f.what)
  from (
    select format('trigger millrace_%s_%s is %s', v_name, k.kind,
      case when t.oid is null then 'missing' else 'disabled' end) as what
    from (values ('deleted', true), ('truncated', true), ('key', true),
      ('inserted', p_pipeline.projection <> 'none'),
      ('updated', p_pipeline.projection <> 'none'),
      ('begun', null), ('since', null)) k(kind, wanted)
    left join pg_trigger t on t.tgrelid = v_table
      and t.tgname = format('millrace_%s_%s', v_name, k.kind)::name
    where coalesce(k.wanted, p_pipeline.status #> '{history,since}' is not null)
      and coalesce(t.tgenabled, 'D') not in ('O', 'A')
    union all
    select format('function millrace.%s__%s is missing', v_name, k.kind)
    from unnest('{lock,rows,sizes,asked,values}'::text[] || case
      when p_pipeline.projection <> 'none' then '{started,queued,apply_outcomes}'::text[]
    end) k(kind)
    where not exists (
        select from pg_proc f
        where f.pronamespace = 'millrace'::regnamespace
          and f.proname = (v_name || '__' || k.kind)::name)
    union all
    -- The projection still writes a stage of a former version while its columns are there. A
    -- project may drop them.
    select format('columns of the former stage %s are gone', s.name)
    from millrace.stages s
    join pg_proc f on f.oid = to_regproc('millrace.' || v_name || '__apply_outcomes')
    where s.pipeline_id = p_pipeline.id
      and not exists (
        select from millrace.version_stages vs
        where vs.version_id = p_pipeline.current_version_id and vs.stage_id = s.id)
      and position(format('when %L then', s.name) in f.prosrc) > 0
      and not millrace.has_columns(p_pipeline, s.name)) f);
if v_lacking is null then
  execute format('select millrace.%I(''{}'', null)', v_name || '__rows');
  v_lacking := (
    select 'stages are not given the column ' || min(a.attname) || ', which was added later'
    from pg_proc f
    join pg_attribute a
      on a.attrelid = v_table and a.attnum > 0 and not a.attisdropped
    where f.oid = to_regproc('millrace.' || v_name || '__rows')
      -- "not in" lists the engine's own columns once, and "not exists" would do so for each column.
      and a.attname::text not in (
        select unnest(case o.projection
            when 'columns' then millrace.stage_columns(s.name)
            when 'status' then millrace.status_columns(o.status)
          end)
        from millrace.pipelines o
        join millrace.stages s on s.pipeline_id = o.id
        where o.entity_table = v_table)
      and position(format('e.%I,', a.attname) in f.prosrc) = 0
      and position(format('e.%I ', a.attname) in f.prosrc) = 0);
end if;
return v_lacking || format(': select millrace.attach(%L)', v_name);
exception when others then
  get stacked diagnostics v_hint = pg_exception_hint;
  return sqlerrm || format(': %sselect millrace.attach(%L)', case
    when v_hint like '%;' then v_hint || ' '
    when v_hint <> '' then rtrim(v_hint, '.') || '; then ' end, v_name);
$$;
