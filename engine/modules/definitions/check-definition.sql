-- Lists what a definition names that this database has not, or has otherwise.
create function millrace.definition_faults(p_definition jsonb)
returns table (place int, what text, remedy text)
language sql stable
as $$
  with here as materialized (
    select p_definition ->> 'pipeline' as name, p_definition #>> '{entity,key}' as entity_key,
      to_regclass(p_definition #>> '{entity,table}') as entity_table,
      p_definition #>> '{entity,status,column}' as status_column
  ), stage as materialized (
    select s.*, s.child ->> 'pipeline' as child_name, format('stage %s: child.pipeline is %s, '
      'but must be ', s.name, s.child -> 'pipeline') as child_is
    from jsonb_to_recordset(p_definition -> 'stages')
      s(name text, kind text, timeout text, child jsonb, after jsonb)
  )
  select 1, format('entity.table is %s, which is no table', p_definition #> '{entity,table}'),
    'Create the table in an earlier migration and name it with its schema.'
  where to_regclass(p_definition #>> '{entity,table}') is null
  union all
  select 2, format('%s %s, which %s', c.field, case
      when c.read then 'asks for $.entity.' || c."column" else 'is ' || to_json(c."column") end,
    case
      when a.attname is null then 'is no column of ' || c."table"
      when k.name is null then 'is of type ' || format_type(a.atttypid, null)
      else format('the engine keeps for stage %s and which no path sees', k.name)
    end), case when k.name is null then c.remedy else 'Ask for a column of your own; a condition '
    'of when may ask for the result of a stage it needs, under $.needs.' end
  from jsonb_to_recordset(p_definition -> 'columns')
    c(field text, "table" text, "column" text, types text[], read boolean, remedy text)
  left join pg_attribute a on a.attrelid = to_regclass(c."table")
    and a.attname = c."column" and a.attnum > 0 and not a.attisdropped
  left join lateral (
    select o.name
    from (select s.name from stage s union select t.name
      from here h
      join millrace.pipelines p on p.name = h.name
      join millrace.stages t on t.pipeline_id = p.id) o
    where c.read
      and c."column" = any (case p_definition #>> '{entity,projection}'
        when 'columns' then millrace.stage_columns(o.name)
        when 'status' then millrace.status_columns(p_definition #> '{entity,status}') end)
    limit 1) k on true
  where a.attname is null or format_type(a.atttypid, null) <> all (c.types)
    or k.name is not null
  union all
  select 3, format('%s is %s, but there is no function %s(%s)', f.field, to_json(f.name), f.name,
    f.arguments), f.remedy
  from jsonb_to_recordset(p_definition -> 'functions')
    f(field text, name text, arguments text, remedy text)
  where to_regprocedure(format('%s(%s)', f.name, f.arguments)) is null
  union all
  select 4, format('stage %s: timeout is "%s", but must be at most %s, the seconds that a worker '
    'may run: no worker could ever claim it', s.name, s.timeout, h.seconds),
    'Lower timeoutSeconds, or raise worker_seconds (paid plans allow about 190) together with '
    'WORKER_SECONDS of the functions.'
  from millrace.setting('worker_seconds') h(seconds)
  join stage s on s.timeout::interval > make_interval(secs => h.seconds::float8)
  union all
  select 5, format('stage %s: after names the stage %s of pipeline %s, which does not exist',
    s.name, to_json(a.stage), m.child_name), 'Name a stage of the map''s child pipeline in '
    '"stage"; define the child pipeline first.'
  from stage s
  cross join jsonb_to_recordset(s.after) a(map text, stage text)
  join stage m on m.name = a.map
  where not exists (
      select
      from millrace.pipelines p
      join millrace.version_stages vs on vs.version_id = p.current_version_id
      join millrace.stages c on c.id = vs.stage_id
      where p.name = m.child_name and c.name = a.stage)
  union all
  select 6, s.child_is || w.what, w.remedy
  from stage s
  cross join here h
  left join millrace.pipelines c on c.name = s.child_name
  cross join lateral (values
    (c.id is null, 'the name of a pipeline that is defined already',
      'Define the child pipeline first.'),
    (millrace.contains_pipeline(c.id, h.name), 'a pipeline that does not start this one in turn',
      'Pipelines that contain one another would never end.'),
    (s.kind = 'pipeline' and (c.entity_table, c.entity_key) <> (h.entity_table, h.entity_key),
      format('a pipeline over the same table and key (this one is over %s.%s)', c.entity_table,
        c.entity_key), 'A stage of kind pipeline runs over the same row; for rows of another '
      'table use the kind map.')) w(wrong, what, remedy)
  where s.child_name is not null and w.wrong
  union all
  select 7, format('entity.status.column: %s shows pipeline %s already', h.status_column, p.name),
    'Give each pipeline a column of its own.'
  from here h
  join millrace.pipelines p on p.entity_table = h.entity_table and p.name <> h.name
    and p.status ->> 'column' = h.status_column
  union all
  select 8, format('entity.status.values: %s is no smallint, which the column is', v.value),
    'List each value once, as the column shows it.'
  from here h
  join pg_attribute a on a.attrelid = h.entity_table and a.attname = h.status_column
    and a.atttypid = 'smallint'::regtype
  cross join jsonb_to_recordset(p_definition -> 'values') v(value text)
  where not case when v.value ~ '^(0|-?[1-9]\d{0,4})$'
    then v.value::int between -32768 and 32767 else false end
$$;

-- Raises MR001 unless Postgres can read each regular expression and jsonpath of a definition.
create function millrace.check_expressions(p_definition jsonb)
stable
as $$
declare
  v_given record;
  v_path jsonpath;
  v_wrong text;
begin
  for v_given in
    select p.field, p.pattern as text, 'a regular expression that Postgres can read' as wanted,
      'Correct or simplify it; Postgres reads most of JavaScript''s syntax.' as remedy
    from jsonb_to_recordset(p_definition -> 'patterns') p(field text, pattern text)
    union all
    select p.field, p.path, 'a jsonpath' || case when p.predicate then ' predicate' else '' end,
      format('Write for example %s.', p.example)
    from jsonb_to_recordset(p_definition -> 'paths')
      p(field text, path text, predicate boolean, example text)
  loop
    begin
      if v_given.wanted !~ 'jsonpath' then
        perform '' ~ v_given.text;
      else
        v_path := v_given.text::jsonpath;
        -- In the canonical form without its quoted parts a variable is $"".
        v_wrong := case
          when regexp_replace(v_path::text, '(\$?)"(\\.|[^"\\])*"', '\1""', 'g') ~ '\$""'
            then ' without variables'
        end;
        -- What is no predicate, such as $.entity.pages or a filter, would never be true.
        if v_given.wanted ~ 'predicate' and v_wrong is null then
          perform jsonb_path_match('{}', v_path);
        end if;
      end if;
    exception
      when singleton_sql_json_item_required then
        v_wrong := ', which is true or false';
        v_given.remedy := v_given.remedy || ' Compare what it finds with something, or ask whether '
          'there is any: "exists($.entity.tags[*] ? (@ == \"new\"))".';
      when others then v_wrong := format(' (%s)', sqlerrm);
    end;
    if v_wrong is not null then
      raise exception '% is %, but must be %', v_given.field, to_json(v_given.text),
        v_given.wanted || v_wrong
        using errcode = 'MR001', hint = v_given.remedy;
    end if;
  end loop;
end
$$;

-- Raises MR001 where what a compiled definition says does not fit this database.
create function millrace.check_definition(p_definition jsonb)
as $$
declare
  c_compiler constant text := '1';
  v_stage jsonb;
  v_why text;
  v_fault record;
begin
  v_why := case
    when jsonb_typeof(p_definition) is distinct from 'object'
      or not p_definition ?& array['compiler', 'digest'] then 'is not compiled'
    when p_definition ->> 'compiler' <> c_compiler
      then format('was compiled by compiler %s, but this engine takes what compiler %s writes',
        p_definition ->> 'compiler', c_compiler)
    when p_definition ->> 'digest'
      <> encode(sha256(convert_to((p_definition - 'digest')::text, 'UTF8')), 'hex')
      then 'was changed after it was compiled'
  end;
  if v_why is not null then
    raise exception 'the definition% %', case
        when jsonb_typeof(p_definition) = 'object' and p_definition ? 'pipeline'
          then ' of pipeline ' || (p_definition ->> 'pipeline')
        else ''
      end, v_why
      using errcode = 'MR001',
        hint = 'Write it with definePipeline() in supabase/functions/_pipelines and run `npx '
          'millrace sync` of this release, which checks and compiles it.';
  end if;
  perform millrace.check_expressions(p_definition);
  select f.* into v_fault
  from millrace.definition_faults(p_definition) f
  order by f.place
  limit 1;
  if found then
    raise exception '%', v_fault.what using errcode = 'MR001', hint = v_fault.remedy;
  end if;
  for v_stage in select s from jsonb_array_elements(p_definition -> 'stages') s loop
    if v_stage #> '{limits,shared}' is not null then
      perform millrace.check_shared_names(v_stage);
    end if;
    perform millrace.hook_check_stage(v_stage);
  end loop;
end
$$;
