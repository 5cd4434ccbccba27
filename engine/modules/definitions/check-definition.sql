-- What a definition may say
--
-- The compiler beside definePipeline() checks a definition's shape and what its stages say of one
-- another. millrace.define() checks what the database alone knows: tables, columns, functions and
-- pipelines, and what Postgres can read. Each function raises MR001 with the field, what was found
-- and the remedy.

-- Finds the table with this name; null when there is none. Of a name with too many dots, or with
-- brackets, Postgres raises an error of its own that names no field.
create function millrace.table_named(p_name text) returns regclass
language plpgsql stable
as $$
begin
  return to_regclass(p_name);
exception when syntax_error or feature_not_supported or invalid_name then
  return null;
end
$$;

-- Finds the function with this name and these arguments; null when there is none.
create function millrace.function_named(p_name text, p_arguments text)
returns regprocedure
language plpgsql stable
as $$
begin
  return to_regprocedure(format('%s(%s)', p_name, p_arguments));
exception when syntax_error or feature_not_supported or invalid_name then
  return null;
end
$$;

-- Raises MR001 unless the table of a definition exists, and every column that it names, of a type
-- that will do.
create function millrace.check_named_columns(p_definition jsonb) returns void
language plpgsql stable
as $$
declare
  v_wrong record;
begin
  if millrace.table_named(p_definition #>> '{entity,table}') is null then
    raise exception 'entity.table is %, which is no table', p_definition #> '{entity,table}'
      using errcode = 'MR001',
        hint = 'Create the table in an earlier migration and name it with its schema.';
  end if;
  select c.*, format_type(a.atttypid, null) as type
  into v_wrong
  from jsonb_to_recordset(p_definition -> 'columns')
    c(field text, "table" text, "column" text, types text[], read boolean, remedy text)
  left join pg_attribute a
    on a.attrelid = millrace.table_named(c."table")
    and a.attnum > 0
    and not a.attisdropped
    and a.attname = c."column"
  where a.attname is null
    or format_type(a.atttypid, null) <> all (c.types)
  limit 1;
  if found then
    raise exception '% %, which is %', v_wrong.field, case
        when v_wrong.read then 'asks for $.entity.' || v_wrong."column"
        else 'is ' || to_json(v_wrong."column")
      end, case
        when v_wrong.type is null then format('no column of %s', v_wrong."table")
        else 'of type ' || v_wrong.type
      end
      using errcode = 'MR001', hint = v_wrong.remedy;
  end if;
end
$$;

-- Raises MR001 where a path asks for a column that the engine keeps for a stage, of this definition
-- or of the pipeline as it was.
create function millrace.check_read_columns(p_pipeline_id int, p_definition jsonb)
returns void
language plpgsql stable
as $$
declare
  v_kept record;
begin
  select c.field, c."column", s.name as stage
  into v_kept
  from jsonb_to_recordset(p_definition -> 'columns') c(field text, "column" text, read boolean)
  join millrace.pipelines p on p.id = p_pipeline_id
  join millrace.stages s on s.pipeline_id = p.id
  where c.read
    and (p.projection = 'columns' and c."column" = any (millrace.stage_columns(s.name))
      or c."column" = any (millrace.status_columns(p.status)))
  order by s.id
  limit 1;
  if found then
    raise exception '% asks for $.entity.%, which the engine keeps for stage % and which no path '
      'sees', v_kept.field, v_kept."column", v_kept.stage
      using errcode = 'MR001', hint = 'Ask for a column of your own; a condition of when may ask '
        'for the result of a stage it needs, under $.needs.';
  end if;
end
$$;

-- Raises MR001 unless the functions that a definition names exist, and Postgres can read its
-- regular expressions.
create function millrace.check_named_functions(p_definition jsonb) returns void
language plpgsql stable
as $$
declare
  v_named record;
begin
  for v_named in
    select f.*
    from jsonb_to_recordset(p_definition -> 'functions')
      f(field text, name text, arguments text, remedy text)
  loop
    if millrace.function_named(v_named.name, v_named.arguments) is null then
      raise exception '% is %, but there is no function %(%)', v_named.field,
        to_json(v_named.name), v_named.name, v_named.arguments
        using errcode = 'MR001', hint = v_named.remedy;
    end if;
  end loop;
  for v_named in
    select p.*
    from jsonb_to_recordset(p_definition -> 'patterns') p(field text, pattern text)
  loop
    begin
      perform '' ~ v_named.pattern;
    exception when invalid_regular_expression then
      raise exception '% is %, but must be a regular expression that Postgres can read (%)',
        v_named.field, to_json(v_named.pattern), sqlerrm
        using errcode = 'MR001', hint = 'Correct or simplify it; Postgres reads most of '
          'JavaScript''s syntax.';
    end;
  end loop;
end
$$;

-- Raises MR001 unless Postgres can read each jsonpath of a definition, without variables, and each
-- that is to be a predicate is true or false.
create function millrace.check_paths(p_definition jsonb) returns void
language plpgsql stable
as $$
declare
  v_given record;
  v_path jsonpath;
  v_wanted text;
begin
  for v_given in
    select p.*
    from jsonb_to_recordset(p_definition -> 'paths')
      p(field text, path text, predicate boolean, example text)
  loop
    begin
      v_path := v_given.path::jsonpath;
      -- In the canonical form without its quoted parts a variable is $"".
      v_wanted := case
        when regexp_replace(v_path::text, '(\$?)"(\\.|[^"\\])*"', '\1""', 'g') ~ '\$""'
          then ' without variables'
      end;
      -- What is no predicate, such as $.entity.pages or a filter, would never be true.
      if v_given.predicate and v_wanted is null then
        perform jsonb_path_match('{}', v_path);
      end if;
    exception
      when singleton_sql_json_item_required then v_wanted := ', which is true or false';
      when others then v_wanted := format(' (%s)', sqlerrm);
    end;
    if v_wanted is not null then
      raise exception '% is %, but must be %', v_given.field, to_json(v_given.path),
        case when v_given.predicate then 'a jsonpath predicate' else 'a jsonpath' end || v_wanted
        using errcode = 'MR001', hint = format('Write for example %s.%s', v_given.example, case
          when v_wanted like '%true or false' then ' Compare what it finds with something, or '
            'ask whether there is any: "exists($.entity.tags[*] ? (@ == \"new\"))".'
        end);
    end if;
  end loop;
end
$$;

-- Raises MR001 where what a compiled definition says does not fit this database.
create function millrace.check_definition(p_definition jsonb) returns void
language plpgsql
as $$
declare
  c_compiler constant text := '1';
  v_seconds text := millrace.setting('worker_seconds');
  v_stage jsonb;
  v_why text;
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
  perform millrace.check_paths(p_definition);
  perform millrace.check_named_columns(p_definition);
  perform millrace.check_named_functions(p_definition);
  perform millrace.check_thresholds(p_definition -> 'stages');
  for v_stage in select s from jsonb_array_elements(p_definition -> 'stages') s loop
    if (v_stage ->> 'timeout')::interval > make_interval(secs => v_seconds::float8) then
      perform millrace.refuse_value(v_stage, '{timeout}',
        format('at most %s, the seconds that a worker may run: no worker could ever claim it',
          v_seconds),
        'Lower timeoutSeconds, or raise worker_seconds in millrace.settings (paid plans allow '
        'about 190) together with WORKER_SECONDS of the functions.');
    end if;
    perform millrace.check_child(v_stage, p_definition);
    perform millrace.check_foreign_pressures(v_stage, p_definition ->> 'pipeline');
    if v_stage #> '{limits,shared}' is not null then
      perform millrace.check_shared_names(v_stage);
    end if;
    perform millrace.hook_check_stage(v_stage);
  end loop;
  perform millrace.check_status(p_definition);
end
$$;
