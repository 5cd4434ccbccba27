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
  perform millrace.check_unchanged(p_stage, p_definition);
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
  if p_stage #> '{limits,shared}' is not null then
    perform millrace.check_shared_names(p_stage);
  end if;
  perform millrace.check_when_spent(p_stage);
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

-- Raises MR001 unless the table of a definition exists, with columns where a user is to start runs.
create or replace function millrace.check_entity(p_definition jsonb) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_entity jsonb := p_definition -> 'entity';
begin
  if millrace.table_named(v_entity ->> 'table') is null then
    raise exception 'entity.table is %, which is no table', v_entity -> 'table'
      using errcode = 'MR001',
        hint = 'Create the table in an earlier migration and name it with its schema.';
  elsif v_entity ? 'startable_by' and v_entity ->> 'projection' = 'none' then
    raise exception 'entity.startable_by belongs to the projections columns and status, this is %',
      v_entity -> 'projection'
      using errcode = 'MR001',
        hint = 'Without columns there are no statuses to write: leave startable_by out.';
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
  perform millrace.check_named_columns(v_definition -> 'entity');
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
  perform millrace.check_alerts(v_definition);
  return v_definition;
end
$$;
