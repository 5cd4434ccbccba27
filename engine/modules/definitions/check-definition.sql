-- Tells whether a pipeline is the one named, or starts runs of it, however deep.
create function millrace.contains_pipeline(p_pipeline_id int, p_name text)
returns boolean
language sql stable
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

-- Lists what a definition names that this database has not, or has otherwise.
create function millrace.definition_faults(p_definition jsonb)
returns table (place int, what text, remedy text)
stable
as $$
#variable_conflict use_column
begin
  return query
    with here as materialized (
      select to_regclass(e."table") as entity_table, e.*, e.status ->> 'column' as status_column
      from jsonb_to_record(p_definition -> 'entity')
        e("table" text, key text, projection text, status jsonb)
    )
    select 1, format('entity.table is %s, which is no table', to_json(h."table")),
      'Create the table in an earlier migration and name it with its schema.'
    from here h
    where h.entity_table is null
    union all
    -- Triggers must see every write, and no crash may empty it.
    select 2, format('entity.table is %s, which is no ordinary table', h.entity_table),
      'Name a table that is logged, without partitions or inheritance; keep what must be '
      'partitioned in another, which refers to it.'
    from here h
    join pg_class c on c.oid = h.entity_table
    where (c.relkind, c.relispartition, c.relpersistence) <> ('r', false, 'p')
      or exists (select from pg_inherits i where c.oid in (i.inhparent, i.inhrelid))
    union all
    select 3, format('%s %s, which %s', c.field, case
        when c.read then 'asks for $.entity.' || c."column" else 'is ' || to_json(c."column") end,
      case
        when a.attname is null then 'is no column of ' || c."table"
        when k.name is null then 'is of type ' || format_type(a.atttypid, null)
        else format('the engine keeps for stage %s and which no path sees', k.name)
      end), case when k.name is null then c.remedy else 'Ask for a column of your own; a condition '
      'of when may ask for the result of a stage it needs, under $.needs.' end
    from here h
    cross join jsonb_to_recordset(p_definition -> 'columns')
      c(field text, "table" text, "column" text, types text[], read boolean, remedy text)
    left join pg_attribute a on a.attrelid = to_regclass(c."table")
      and a.attname = c."column" and a.attnum > 0 and not a.attisdropped
    left join lateral (
      select o.name
      from (
        select s ->> 'name' from jsonb_array_elements(p_definition -> 'stages') s
        union all
        select t.name
        from millrace.pipelines p
        join millrace.stages t on t.pipeline_id = p.id
        where p.name = p_definition ->> 'pipeline') o(name)
      where c.read and c."column" = any (case h.projection
        when 'columns' then millrace.stage_columns(o.name)
        when 'status' then millrace.status_columns(h.status) end)
      limit 1) k on true
    where a.attname is null or format_type(a.atttypid, null) <> all (c.types)
      or k.name is not null
    union all
    select 4, format('%s is %s, but there is no function %s(%s)', f.field, to_json(f.name), f.name,
      f.arguments), f.remedy
    from jsonb_to_recordset(p_definition -> 'functions')
      f(field text, name text, arguments text, remedy text)
    where to_regprocedure(format('%s(%s)', f.name, f.arguments)) is null
    union all
    select 5, format('entity.status.column: %s shows pipeline %s already', h.status_column, p.name),
      'Give each pipeline a column of its own.'
    from here h
    join millrace.pipelines p on p.entity_table = h.entity_table
      and p.name <> p_definition ->> 'pipeline' and p.status ->> 'column' = h.status_column
    union all
    select 6, format('entity.status.values: %s is no smallint, which the column is', v.value),
      'List each value once, as the column shows it.'
    from here h
    join pg_attribute a on a.attrelid = h.entity_table and a.attname = h.status_column
      and a.atttypid = 'smallint'::regtype
    cross join jsonb_to_recordset(p_definition -> 'values') v(value text)
    where v.value is distinct from
      case when pg_input_is_valid(v.value, 'smallint') then v.value::smallint::text end
    union all
    -- In a path's canonical form without its quoted parts a variable is $"". What is no predicate,
    -- such as $.entity.pages or a filter, would never be true.
    select 2, format('%s is %s, but must be a jsonpath%s%s', p.field, to_json(p.path),
      case when p.predicate then ' predicate' end, w.what), format('Write for example %s.%s',
        p.example, case when w.what ~ '^, which' then ' Compare what it finds with something, or '
          'ask whether there is any: "exists($.entity.tags[*] ? (@ == \"new\"))".' end)
    from jsonb_to_recordset(p_definition -> 'paths')
      p(field text, path text, predicate boolean, example text)
    cross join lateral (
      select case
          when not pg_input_is_valid(p.path, 'jsonpath')
            then format(' (%s)', (pg_input_error_info(p.path, 'jsonpath')).message)
          when regexp_replace(p.path::jsonpath::text, '(\$?)"(\\.|[^"\\])*"', '\1""', 'g') ~ '\$""'
            then ' without variables'
          when p.predicate and jsonb_path_query_array('{}', p.path::jsonpath, '{}', true)
              <> all ('{[true],[false],[null]}'::jsonb[])
            then ', which is true or false'
        end) w(what)
    where w.what is not null;
end
$$;

-- Lists the stages of a definition that cannot do as they say beside the pipelines, limits and
-- settings that there are.
create function millrace.stage_faults(p_definition jsonb)
returns table (place int, what text, remedy text)
stable
as $$
#variable_conflict use_column
begin
  return query
    select 10 + w.place, format('stage %s: %s', s.name, w.what), w.remedy
    from jsonb_to_recordset(p_definition -> 'stages')
      s(name text, kind text, timeout text, child jsonb, limits jsonb, when_spent text)
    cross join millrace.setting('worker_seconds') most(seconds)
    cross join lateral (
      select to_regclass(p_definition #>> '{entity,table}') as entity_table,
        p_definition #>> '{entity,key}' as entity_key) h
    left join millrace.pipelines c on c.name = s.child ->> 'pipeline'
    cross join lateral (
      select format('child.pipeline is %s, but must be ', s.child -> 'pipeline')) i(child_is)
    cross join lateral (values
      (1, s.timeout::interval > make_interval(secs => most.seconds::float8),
        format('timeout is "%s", but must be at most %s, the seconds that a worker may run: no '
          'worker could ever claim it', s.timeout, most.seconds),
        'Lower timeoutSeconds, or raise worker_seconds (paid plans allow about 190) together with '
        'WORKER_SECONDS of the functions.'),
      (2, s.when_spent = 'bypass' and not exists (
          select
          from millrace.limits l
          where l.declared ? 'spending' and s.limits -> 'shared' ? l.name),
        'when_spent is "bypass", but must be wait where limits.shared names no limit with spending',
        'Name one in limits.shared, or leave when_spent out. Those there are: select name, '
        'declared from millrace.limits.'),
      (3, s.child is not null and c.id is null,
        i.child_is || 'the name of a pipeline that is defined already',
        'Define the child pipeline first.'),
      (4, millrace.contains_pipeline(c.id, p_definition ->> 'pipeline'),
        i.child_is || 'a pipeline that does not start this one in turn',
        'Pipelines that contain one another would never end.'),
      (5, s.kind = 'pipeline' and (c.entity_table, c.entity_key) <> (h.entity_table, h.entity_key),
        format('%sa pipeline over the same table and key (this one is over %s.%s)', i.child_is,
          c.entity_table, c.entity_key), 'A stage of kind pipeline runs over the same row; for '
        'rows of another table use the kind map.')) w(place, wrong, what, remedy)
    where w.wrong
    union all
    select 13, format('stage %s: after names the stage %s of pipeline %s, which does not exist',
      s.name, to_json(a.stage), m.child ->> 'pipeline'), 'Name a stage of the map''s child '
      'pipeline in "stage"; define the child pipeline first.'
    from jsonb_to_recordset(p_definition -> 'stages') s(name text, after jsonb)
    cross join jsonb_to_recordset(s.after) a(map text, stage text)
    join jsonb_to_recordset(p_definition -> 'stages') m(name text, child jsonb) on m.name = a.map
    where not exists (
        select
        from millrace.pipelines p
        join millrace.version_stages vs on vs.version_id = p.current_version_id
        join millrace.stages c on c.id = vs.stage_id
        where p.name = m.child ->> 'pipeline' and c.name = a.stage);
end
$$;

-- Raises MR001 where what a compiled definition says does not fit this database.
create function millrace.check_definition(p_definition jsonb)
as $$
declare
  c_compiler constant text := '1';
  v_why text;
  v_given record;
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
    perform millrace.refuse_definition(concat_ws(' ', 'the definition',
        case when jsonb_typeof(p_definition) = 'object'
          then 'of pipeline ' || (p_definition ->> 'pipeline') end, v_why),
      'Write it with definePipeline() in supabase/functions/_pipelines and run `npx millrace sync` '
      'of this release, which checks and compiles it.');
  end if;
  for v_given in
    select p.field, p.pattern
    from jsonb_to_recordset(p_definition -> 'patterns') p(field text, pattern text)
  loop
    begin
      perform '' ~ v_given.pattern;
    exception when others then
      perform millrace.refuse_definition(format('%s is %s, but must be a regular expression that '
          'Postgres can read (%s)', v_given.field, to_json(v_given.pattern), sqlerrm),
        'Correct or simplify it; Postgres reads most of JavaScript''s syntax.');
    end;
  end loop;
  perform millrace.refuse_definition(f.what, f.remedy)
  from (
    select * from millrace.definition_faults(p_definition)
    union all
    select * from millrace.stage_faults(p_definition)
    order by place
    limit 1) f;
end
$$;
