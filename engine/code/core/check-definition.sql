-- Chapter 4: what a definition may say
--
-- Each function here raises MR001, with the field, what was found and the remedy, or does nothing. millrace.define()
-- (chapter definitions) calls check_definition() before it writes anything.

create or replace function millrace.is_kind(p_stage jsonb, p_kinds text[]) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select coalesce(p_stage ->> 'kind', 'function') = any (p_kinds) $$;
comment on function millrace.is_kind(jsonb, text[]) is 'Whether a stage of a definition is of one of these kinds.';

-- Checks one value of a stage's definition and names field, value and remedy when it will not do.
create or replace function millrace.refuse_value(p_stage jsonb, p_path text[], p_wanted text, p_hint text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'stage %: % is %, but must be %', coalesce(p_stage ->> 'name', '?'), array_to_string(p_path, '.'), coalesce((p_stage #> p_path)::text, 'missing'), p_wanted
    using errcode = 'MR001', hint = p_hint;
end
$$;
comment on function millrace.refuse_value(jsonb, text[], text, text) is 'Raises MR001 about one value of a stage''s definition.';

-- The bounds of every number; all but seconds and factors are whole.
create or replace function millrace.check_number(p_stage jsonb, p_path text[], p_min numeric, p_max numeric, p_whole boolean default false) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_value jsonb := p_stage #> p_path;
begin
  if jsonb_typeof(v_value) = 'number' and (v_value #>> '{}')::numeric between p_min and p_max
     and (not p_whole or trunc((v_value #>> '{}')::numeric) = (v_value #>> '{}')::numeric) then
    return;
  elsif v_value is not null and v_value <> 'null' then
    perform millrace.refuse_value(p_stage, p_path, format('a %snumber from %s to %s', case when p_whole then 'whole ' else '' end, p_min, p_max),
      format('Set it to a number from %s to %s, or leave it out for the default.', p_min, p_max));
  end if;
end
$$;
comment on function millrace.check_number(jsonb, text[], numeric, numeric, boolean) is 'Raises MR001 unless the value at this path of a stage is absent or a number within bounds.';

create or replace function millrace.check_type(p_stage jsonb, p_path text[], p_type text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  if p_stage #> p_path is not null and jsonb_typeof(p_stage #> p_path) not in (p_type, 'null') then
    perform millrace.refuse_value(p_stage, p_path, format('of type %s', p_type), format('Give a JSON %s, or leave it out for the default.', p_type));
  end if;
end
$$;
comment on function millrace.check_type(jsonb, text[], text) is 'Raises MR001 unless the value at this path of a stage is absent or of this JSON type.';

create or replace function millrace.check_keys(p_stage jsonb, p_path text[], p_known text[]) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_unknown text;
begin
  if jsonb_typeof(p_stage #> p_path) = 'object' then
    select k into v_unknown from jsonb_object_keys(p_stage #> p_path) k where k <> all (p_known) order by k limit 1;
    if found then
      raise exception 'stage %: % is not known', coalesce(p_stage ->> 'name', '?'), array_to_string(p_path || v_unknown, '.')
        using errcode = 'MR001', hint = 'Known here: ' || array_to_string(p_known, ', ') || '.';
    end if;
  end if;
end
$$;
comment on function millrace.check_keys(jsonb, text[], text[]) is 'Raises MR001 when an object of a stage''s definition has a field that nobody reads.';

-- With too many dots, or brackets, Postgres raises an error of its own that names no field.
create or replace function millrace.table_named(p_name text) returns regclass
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return to_regclass(p_name);
exception when syntax_error or feature_not_supported or invalid_name then
  return null;
end
$$;
comment on function millrace.table_named(text) is 'The table with this name; null when there is none, or this is no name.';

create or replace function millrace.function_named(p_name text, p_arguments text) returns regprocedure
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
begin
  return to_regprocedure(format('%s(%s)', p_name, p_arguments));
exception when syntax_error or feature_not_supported or invalid_name then
  return null;
end
$$;
comment on function millrace.function_named(text, text) is 'The function with this name and these arguments; null when there is none, or this is no name.';

create or replace function millrace.check_backoff(p_stage jsonb, p_path text[]) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_backoff jsonb := p_stage #> p_path;
begin
  perform millrace.check_keys(p_stage, p_path, array['kind', 'seconds', 'base_seconds', 'factor', 'cap_seconds', 'jitter']);
  if v_backoff is null then
    return;
  elsif v_backoff ->> 'kind' = 'list' and jsonb_typeof(v_backoff -> 'seconds') = 'array' and jsonb_array_length(v_backoff -> 'seconds') > 0
        and not jsonb_path_exists(v_backoff, '$.seconds[*] ? (@.type() != "number" || @ < 0 || @ > 604800)') then
    return;
  elsif v_backoff ->> 'kind' = 'exponential' then
    perform millrace.check_number(p_stage, p_path || 'base_seconds'::text, 0, 86400);
    perform millrace.check_number(p_stage, p_path || 'factor'::text, 1, 100);
    perform millrace.check_number(p_stage, p_path || 'cap_seconds'::text, 0, 604800);
    perform millrace.check_number(p_stage, p_path || 'jitter'::text, 0, 1);
    return;
  end if;
  perform millrace.refuse_value(p_stage, p_path, 'a backoff',
    'Use {"kind": "list", "seconds": [5, 30]} or {"kind": "exponential", "base_seconds": 5, "factor": 2, "cap_seconds": 300, "jitter": 0.2}.');
end
$$;
comment on function millrace.check_backoff(jsonb, text[]) is 'Raises MR001 unless the backoff at this path of a stage is well formed or absent.';

create or replace function millrace.check_retry(p_stage jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_code text;
begin
  perform millrace.check_type(p_stage, '{retry}', 'object');
  perform millrace.check_keys(p_stage, '{retry}', array['max_attempts', 'backoff', 'by_code']);
  perform millrace.check_type(p_stage, '{retry,by_code}', 'object');
  perform millrace.check_number(p_stage, '{retry,max_attempts}', 1, 100, true);
  perform millrace.check_backoff(p_stage, '{retry,backoff}');
  for v_code in select k from jsonb_object_keys(coalesce(p_stage #> '{retry,by_code}', '{}')) k loop
    perform millrace.check_type(p_stage, array['retry', 'by_code', v_code], 'object');
    perform millrace.check_keys(p_stage, array['retry', 'by_code', v_code], array['max_attempts', 'backoff']);
    perform millrace.check_number(p_stage, array['retry', 'by_code', v_code, 'max_attempts'], 1, 100, true);
    perform millrace.check_backoff(p_stage, array['retry', 'by_code', v_code, 'backoff']);
  end loop;
end
$$;
comment on function millrace.check_retry(jsonb) is 'Raises MR001 unless a stage''s retry policy is well formed.';

create or replace function millrace.check_completion(p_stage jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
begin
  perform millrace.check_type(p_stage, '{completion}', 'object');
  perform millrace.check_keys(p_stage, '{completion}', array['callback', 'poll_seconds', 'deadline_seconds', 'deadline_from']);
  perform millrace.check_type(p_stage, '{completion,callback}', 'boolean');
  perform millrace.check_number(p_stage, '{completion,poll_seconds}', 1, 3600);
  perform millrace.check_number(p_stage, '{completion,deadline_seconds}', 1, 604800);
  if coalesce(p_stage #>> '{completion,deadline_from}', 'start') not in ('submission', 'start') then
    perform millrace.refuse_value(p_stage, '{completion,deadline_from}', 'submission or start',
      'submission counts the time in the service''s queue, start does not.');
  end if;
  if p_stage ->> 'kind' = 'external' and p_stage #>> '{completion,poll_seconds}' is null and not coalesce((p_stage #>> '{completion,callback}')::boolean, false) then
    raise exception 'stage %: an external stage needs completion by callback or by polling', p_stage ->> 'name'
      using errcode = 'MR001', hint = 'Set completion.callback to true, or completion.poll_seconds to a number, or both.';
  end if;
end
$$;
comment on function millrace.check_completion(jsonb) is 'Raises MR001 unless the way in which a stage''s external jobs end is well formed.';

create or replace function millrace.check_needs(p_stage jsonb, p_names text[]) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_need text;
begin
  if p_stage -> 'needs' is not null and (jsonb_typeof(p_stage -> 'needs') <> 'array' or jsonb_path_exists(p_stage, '$.needs[*] ? (@.type() != "string")')) then
    perform millrace.refuse_value(p_stage, '{needs}', 'a list of names of stages', 'Write "needs": ["other_stage"].');
  end if;
  select n into v_need from jsonb_array_elements_text(coalesce(p_stage -> 'needs', '[]')) n where n <> all (p_names) limit 1;
  if found then
    raise exception 'stage %: needs names %, which is no stage of this pipeline', p_stage ->> 'name', v_need
      using errcode = 'MR001', hint = 'Stages are: ' || array_to_string(p_names, ', ') || '.';
  end if;
  select n into v_need from jsonb_array_elements_text(coalesce(p_stage -> 'needs', '[]')) n group by n having count(*) > 1 limit 1;
  if found then
    raise exception 'stage %: needs names % twice', p_stage ->> 'name', v_need using errcode = 'MR001', hint = 'Name each need once.';
  end if;
end
$$;
comment on function millrace.check_needs(jsonb, text[]) is 'Raises MR001 unless the needs of a stage are known stages, each named once.';

create or replace function millrace.check_stage(p_stage jsonb, p_names text[], p_definition jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(p_stage ->> 'name', '') !~ '^[a-z][a-z0-9_]{0,40}$' then
    raise exception 'stages[].name is %, but must be a lower-case name', coalesce(p_stage -> 'name', 'null')
      using errcode = 'MR001', hint = 'Use letters, digits and underscores, beginning with a letter, at most 41.';
  end if;
  perform millrace.check_keys(p_stage, '{}', array['name', 'kind', 'function', 'needs', 'when', 'otherwise', 'after', 'batch_size', 'max_workers', 'lease_seconds', 'timeout_seconds', 'retry', 'on_failure',
    'completion', 'child', 'fan_in', 'decision', 'agent', 'limits', 'sla_seconds', 'apply', 'enabled', 'result_limit_bytes']);
  perform millrace.check_needs(p_stage, p_names);
  perform millrace.check_type(p_stage, '{function}', 'string');
  if p_stage ->> 'function' !~ '^[A-Za-z][A-Za-z0-9_-]*$' then
    raise exception 'stage %: function is %, but must be the name of an Edge Function',
      p_stage ->> 'name', p_stage -> 'function'
      using errcode = 'MR001', hint = 'Use letters, digits, - and _, beginning with a letter.';
  end if;
  perform millrace.check_type(p_stage, '{enabled}', 'boolean');
  perform millrace.check_number(p_stage, '{batch_size}', 1, 1000, true);
  perform millrace.check_number(p_stage, '{max_workers}', 1, 1000, true);
  perform millrace.check_number(p_stage, '{lease_seconds}', 5, 3600);
  perform millrace.check_number(p_stage, '{timeout_seconds}', 1, 86400);
  perform millrace.check_number(p_stage, '{sla_seconds}', 1, 31536000);
  perform millrace.check_number(p_stage, '{result_limit_bytes}', 1, 10485760, true);
  perform millrace.check_retry(p_stage);
  perform millrace.check_completion(p_stage);
  if (p_stage ->> 'timeout_seconds')::numeric > millrace.setting('worker_seconds')::numeric then
    perform millrace.refuse_value(p_stage, '{timeout_seconds}', format('at most %s, the seconds that a worker may run: no worker could ever claim it', millrace.setting('worker_seconds')),
      'Lower the timeout, or raise worker_seconds in millrace.settings (paid plans allow about 190) together with WORKER_SECONDS of the functions.');
  end if;
  if p_stage ->> 'apply' is not null and millrace.function_named(p_stage ->> 'apply', 'jsonb') is null then
    perform millrace.refuse_value(p_stage, '{apply}', 'a function that takes one jsonb', 'Create the function in an earlier migration and name it with its schema.');
  end if;
  perform millrace.check_patterns(p_stage, p_definition);
end
$$;
comment on function millrace.check_stage(jsonb, text[], jsonb) is 'Raises MR001 with the field and the remedy when a stage''s definition is not valid.';

create or replace function millrace.edges_to(p_stage jsonb) returns text[]
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select array(select n #>> '{}' from jsonb_path_query(p_stage, '$.needs[*]') n union select m #>> '{}' from jsonb_path_query(p_stage, '$.after[*].map') m) $$;
comment on function millrace.edges_to(jsonb) is 'The stages that come right before a stage: its needs, and the map stages whose thresholds it awaits.';

-- Topological positions by Kahn's method; what never becomes free is part of a cycle.
create or replace function millrace.order_stages(p_stages jsonb) returns text[]
language plpgsql immutable set search_path = pg_catalog, pg_temp
as $$
declare
  v_ordered text[] := '{}';
  v_free text[];
begin
  loop
    select array_agg(s.value ->> 'name' order by s.ordinality) into v_free
    from jsonb_array_elements(p_stages) with ordinality s
    where s.value ->> 'name' <> all (v_ordered)
      and millrace.edges_to(s.value) <@ v_ordered;
    exit when v_free is null;
    v_ordered := v_ordered || v_free;
  end loop;
  if cardinality(v_ordered) < jsonb_array_length(p_stages) then
    raise exception 'the stages % need each other in a cycle',
      (select string_agg(s ->> 'name', ', ') from jsonb_array_elements(p_stages) s where s ->> 'name' <> all (v_ordered))
      using errcode = 'MR001', hint = 'Remove one of their needs or thresholds, so that some stage can be first.';
  end if;
  return v_ordered;
end
$$;
comment on function millrace.order_stages(jsonb) is 'Names of the stages in a topological order; MR001 when there is a cycle.';

create or replace function millrace.check_metadata(p_definition jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_name jsonb := p_definition #> '{entity,metadata}';
  v_type text;
begin
  if coalesce(jsonb_typeof(v_name), 'null') = 'null' then
    return;
  end if;
  select format_type(a.atttypid, null) into v_type from pg_attribute a
  where a.attrelid = to_regclass(p_definition #>> '{entity,table}') and a.attname = v_name #>> '{}' and a.attnum > 0 and not a.attisdropped;
  if v_type is distinct from 'jsonb' then
    raise exception 'entity.metadata is %, which is %', v_name, coalesce('of type ' || v_type, format('no column of %s', p_definition #>> '{entity,table}'))
      using errcode = 'MR001', hint = format('Name a column of type jsonb: alter table %s add column metadata jsonb not null default ''{}''; or leave it out.', p_definition #>> '{entity,table}');
  end if;
end
$$;
comment on function millrace.check_metadata(jsonb) is 'Raises MR001 unless the column of a definition''s metadata is absent or a jsonb column of the entity.';

create or replace function millrace.check_definition(p_definition jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_names text[];
  v_twice text;
  v_stage jsonb;
begin
  if jsonb_typeof(p_definition) is distinct from 'object' or jsonb_typeof(p_definition -> 'stages') is distinct from 'array' then
    raise exception 'a definition must be an object with "pipeline", "entity" and a list "stages", this is %', coalesce(jsonb_typeof(p_definition), 'null')
      using errcode = 'MR001', hint = 'Write it with definePipeline() in supabase/functions/_pipelines and run `npm run pipelines:sync`.';
  end if;
  if coalesce(p_definition ->> 'pipeline', '') !~ '^[a-z][a-z0-9_]{0,40}$' then
    raise exception 'pipeline is %, but must be a lower-case name', coalesce(p_definition -> 'pipeline', 'null')
      using errcode = 'MR001', hint = 'Use letters, digits and underscores, beginning with a letter, at most 41.';
  end if;
  if millrace.table_named(p_definition #>> '{entity,table}') is null then
    raise exception 'entity.table is %, which is no table', coalesce(p_definition #> '{entity,table}', 'null')
      using errcode = 'MR001', hint = 'Create the table in an earlier migration and name it with its schema.';
  end if;
  if coalesce(p_definition #>> '{entity,projection}', 'columns') not in ('columns', 'none') then
    raise exception 'entity.projection is %, but must be columns or none', p_definition #> '{entity,projection}'
      using errcode = 'MR001', hint = 'columns keeps seven columns a stage on the entity, none keeps the run''s state in the engine isolated.';
  end if;
  perform millrace.check_metadata(p_definition);
  perform millrace.check_replaces(p_definition);
  perform millrace.check_quota(p_definition);
  select array_agg(s ->> 'name') into v_names from jsonb_array_elements(p_definition -> 'stages') s;
  if v_names is null then
    raise exception 'pipeline %: stages is empty', p_definition ->> 'pipeline' using errcode = 'MR001', hint = 'Name at least one stage.';
  end if;
  select n into v_twice from unnest(v_names) n group by n having count(*) > 1 limit 1;
  if v_twice is not null then
    raise exception 'pipeline %: stage % is listed twice', p_definition ->> 'pipeline', v_twice using errcode = 'MR001', hint = 'Give each stage a name of its own.';
  end if;
  for v_stage in select s from jsonb_array_elements(p_definition -> 'stages') s loop
    perform millrace.check_stage(v_stage, v_names, p_definition);
  end loop;
  perform millrace.order_stages(p_definition -> 'stages');
end
$$;
comment on function millrace.check_definition(jsonb) is 'Raises MR001 when a definition is not valid.';
